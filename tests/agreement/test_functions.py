"""Every operation has a fetch function; its signature and docstring agree with the table."""

import importlib
import inspect
import re
from itertools import chain

import toolkit as tk
from toolkit.contract.fields import table_columns
from toolkit.contract.operations import FETCHED, OPERATIONS, VIEWS
from toolkit.contract.requests import describe_cost
from toolkit.fetch.registry import FUNCTIONS

EVERY = [*FETCHED.values(), *VIEWS.values()]
TAIL = {
    "max_rows": None,
    "on_incomplete": "raise",
    "numbers": "float",
    "extra": "drop",
    "session": None,
}


def fetch_function(operation):
    return FUNCTIONS[operation.view or operation.type]


def docstring(operation):
    return inspect.getdoc(fetch_function(operation)) or ""


def expected_parameters(operation):
    """Return (name, kind, default, type of the default) of every parameter, in order."""
    named = {parameter.python: parameter for parameter in operation.parameters}
    first = [name for name, item in named.items() if item.required or name in ("start", "end")]
    for name in (*first, *(name for name in named if name not in first)):
        item = named[name]
        required = item.required and not item.unless
        default = inspect.Parameter.empty if required else item.default
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        kind = positional if name in first else inspect.Parameter.KEYWORD_ONLY
        yield name, kind, default, type(default)
    for name, default in TAIL.items():
        if operation.paging != "none" or name not in ("max_rows", "on_incomplete"):
            yield name, inspect.Parameter.KEYWORD_ONLY, default, type(default)


def wrong(is_right):
    """Return the fetch functions of the operations for which a condition does not hold."""
    return [operation.function for operation in EVERY if not is_right(operation)]


def test_every_operation_has_a_public_function():
    assert len(OPERATIONS) == 22
    named = {function.__name__ for function in FUNCTIONS.values()}
    assert named == {operation.function for operation in EVERY}
    assert named <= set(tk.__all__)
    for operation in EVERY:
        function = fetch_function(operation)
        topic = importlib.import_module(f"toolkit.fetch.{operation.topic}")
        assert getattr(topic, operation.function) is getattr(tk, operation.function) is function
        assert function.__name__ == operation.function
        assert vars(function)["__operation__"] == (operation.view or operation.type)


def test_signatures_match_table():
    for operation in EVERY:
        parameters = inspect.signature(fetch_function(operation)).parameters.values()
        found = [(item.name, item.kind, item.default, type(item.default)) for item in parameters]
        assert found == list(expected_parameters(operation)), operation.function


def test_docstrings_document_every_parameter():
    def documented(operation):
        section = re.search(
            r"\nParameters\n-+\n(.*?)\n\n[A-Z]\w+\n-+\n", docstring(operation), re.S
        )
        return section and re.findall(r"^(\w+) : \S", section[1], re.M)

    assert (
        wrong(lambda row: documented(row) == [*inspect.signature(fetch_function(row)).parameters])
        == []
    )


def test_docstrings_have_sections_and_example():
    form = r"Fetch .*\.\n.*\nParameters\n-+\n.*\nReturns\n-+\n.*\nExamples\n-+\n.*>>> "
    assert wrong(lambda row: re.match(form, docstring(row), re.S)) == []


def test_docstrings_name_cost_and_limits():
    assert wrong(lambda row: describe_cost(row) in " ".join(docstring(row).split())) == []
    assert wrong(lambda row: ("add-on" in docstring(row)) == row.add_on) == []
    days = r"Data since (\d{4}-\d{2}-\d{2})"
    assert wrong(lambda row: "".join(re.findall(days, docstring(row))[:1]) == row.since) == []
    sizes = r"(?s)%s : int\n[^\n]*%s to %s"
    assert (
        wrong(
            lambda row: (
                row.page is None
                or re.search(
                    sizes % (row.page.python, row.page.least, row.page.most), docstring(row)
                )
            )
        )
        == []
    )


def test_docstrings_name_every_column():
    missing = [
        (operation.function, column.name)
        for operation in EVERY
        for column in chain.from_iterable(map(table_columns, operation.tables))
        if not re.search(rf"\b{column.name}\b", docstring(operation))
    ]
    assert missing == []


def test_several_tables_return_named_tuple():
    for operation in EVERY:
        returned = inspect.signature(fetch_function(operation)).return_annotation
        names = tuple(table.name for table in operation.tables)
        assert getattr(returned, "_fields", ("",)) == names
    several = [row for row in EVERY if len(row.tables) > 1]
    named = {inspect.signature(fetch_function(row)).return_annotation for row in several}
    assert named == {
        tk.AccountStates,
        tk.DexLimits,
        tk.BorrowLendState,
        tk.SpotMarkets,
        tk.Vault,
        tk.PortfolioState,
    }
