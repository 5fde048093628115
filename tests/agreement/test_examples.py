"""The examples of public functions run.

Doctest finds a function in the module that its ``__module__`` names. The functions and classes of
`toolkit` itself are imported lazily, so doctest does not find them by itself.
"""

import doctest
import inspect

import pytest

import toolkit as tk

FUNCTIONS = [
    name
    for name in tk.__all__
    if inspect.isfunction(value := getattr(tk, name)) and value.__module__ == "toolkit"
]


CLASSES = [
    name
    for name in tk.__all__
    if inspect.isclass(value := getattr(tk, name)) and value.__module__ == "toolkit"
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_names_are_found():
    assert {"user_fills", "meta", "margin_tables", "delegations", "concat"} <= set(FUNCTIONS)
    assert {"Plan", "Session", "AccountStates"} <= set(CLASSES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example_runs(name):
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(tk, name), name, module=False)
    assert example.examples, f"{name} has no example"
    assert run_examples([example]) == []


@pytest.mark.parametrize("name", CLASSES)
def test_examples_of_class_run(name):
    kind = getattr(tk, name)
    own = [kind, *(value for value in vars(kind).values() if inspect.isfunction(value))]
    finder = doctest.DocTestFinder(recurse=False)
    examples = [example for value in own for example in finder.find(value, name, module=False)]
    assert run_examples(examples) == []


def run_examples(examples):
    """Return what doctest reports about examples that fail."""
    report: list[str] = []
    for example in examples:
        doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append)
    return report
