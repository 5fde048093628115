"""The examples of public functions run.

Doctest finds a function in the module that its ``__module__`` names. Fetch functions name the
package, whose public names are imported lazily, so doctest does not find them by itself.
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


def test_fetch_functions_are_found() -> None:
    assert {"user_fills", "meta", "margin_tables", "delegations"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example_runs(name: str) -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(tk, name), name, module=False)
    assert example.examples, f"{name} has no example"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    report: list[str] = []
    doctest.DocTestRunner(optionflags=flags).run(example, out=report.append)
    assert report == []
