"""The examples of public functions run.

Doctest finds a function in the module that its ``__module__`` names. The functions and classes of
`toolkit` and of `toolkit.plots` are imported lazily, so doctest does not find them by itself.
"""

import doctest
import inspect

import toolkit as tk

OWN = {
    name: value
    for name in tk.__all__
    if getattr(value := getattr(tk, name), "__module__", "") == "toolkit"
}
PLOTS = {name: getattr(tk.plots, name) for name in tk.plots.__all__}


def test_examples_run():
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report, without = [], []
    for name, value in (OWN | PLOTS).items():
        members = [*vars(value).values()] if inspect.isclass(value) else []
        documented = [value, *filter(inspect.isfunction, members)]
        tests = [
            test
            for item in documented
            for test in finder.find(item, name, module=False, globs=dict(PLOTS))
        ]
        for test in tests:
            runner.run(test, out=report.append)
        if inspect.isfunction(value) and not any(test.examples for test in tests):
            without.append(name)
    assert report == []
    assert without == [], "add an example"
    assert {"user_fills", "margin_tables", "concat", "Plan", "Session", "AccountStates"} <= {*OWN}
