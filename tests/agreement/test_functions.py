"""Every operation has a fetch function whose signature and docstring say what the table says."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import toolkit as tk
from toolkit import fetch
from toolkit.contract.costs import describe_cost
from toolkit.contract.operations import OPERATIONS, VIEWS, Operation

EVERY = pytest.mark.parametrize(
    "operation", [*OPERATIONS.values(), *VIEWS.values()], ids=[*OPERATIONS, *VIEWS]
)
TAIL = {
    "max_rows": None,
    "on_incomplete": "raise",
    "numbers": "float",
    "extra": "drop",
    "session": None,
}


def function(operation: Operation) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(fetch, operation.function)
    return found


def expected(operation: Operation) -> dict[str, tuple[Any, Any]]:
    """Name -> (kind, default) of every parameter, in order, from the table."""
    positional = [
        one for one in operation.parameters if one.required or one.python in ("start", "end")
    ]
    signature: dict[str, tuple[Any, Any]] = {}
    for one in positional:
        default = inspect.Parameter.empty if one.required and not one.unless else one.default
        signature[one.python] = (inspect.Parameter.POSITIONAL_OR_KEYWORD, default)
    for one in operation.parameters:
        if one not in positional:
            signature[one.python] = (inspect.Parameter.KEYWORD_ONLY, one.default)
    for name, default in TAIL.items():
        unpaged = operation.paging == "none" and name in ("max_rows", "on_incomplete")
        fixed = operation.binary and name == "extra"  # its tuples have no further fields
        if not unpaged and not fixed:
            signature[name] = (inspect.Parameter.KEYWORD_ONLY, default)
    return signature


def parameters_in(docstring: str) -> list[str]:
    section = re.search(r"\nParameters\n-+\n(.*?)\n\n[A-Z]\w+\n-+\n", docstring, re.DOTALL)
    assert section, "no Parameters section"
    return re.findall(r"^(\w+) : \S", section[1], re.MULTILINE)


def test_there_are_22_operations_and_as_many_functions() -> None:
    assert len(OPERATIONS) == 22
    named = {name for name in fetch.__all__ if inspect.isfunction(getattr(fetch, name))}
    assert named == {one.function for one in (*OPERATIONS.values(), *VIEWS.values())}


@EVERY
def test_function_belongs_to_its_operation_and_topic(operation: Operation) -> None:
    one = function(operation)
    assert inspect.isfunction(one)
    assert one.__operation__ == (operation.view or operation.type)  # type: ignore[attr-defined]
    assert one.__module__ == "toolkit"
    topic = importlib.import_module(f"toolkit.fetch.{operation.topic}")
    assert getattr(topic, operation.function) is one
    assert one.__name__ == operation.function


@EVERY
def test_signature_is_the_table(operation: Operation) -> None:
    signature = inspect.signature(function(operation))
    found = {name: (one.kind, one.default) for name, one in signature.parameters.items()}
    assert list(found) == list(expected(operation))
    assert found == expected(operation)
    types = {name: type(one.default) for name, one in signature.parameters.items()}
    assert types == {name: type(default) for name, (_, default) in expected(operation).items()}


@EVERY
def test_every_annotation_is_there(operation: Operation) -> None:
    signature = inspect.signature(function(operation))
    assert signature.return_annotation is not inspect.Signature.empty
    for one in signature.parameters.values():
        assert one.annotation is not inspect.Parameter.empty, one.name


@EVERY
def test_body_is_a_docstring_and_one_return_that_names_every_parameter(
    operation: Operation,
) -> None:
    one = function(operation)
    tree = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    docstring, end = tree.body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(end, ast.Return)
    call = next(
        node
        for node in ast.walk(end)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("query")
    )
    assert [ast.literal_eval(argument) for argument in call.args] == [
        operation.view or operation.type
    ]
    passed = {word.arg: getattr(word.value, "id", None) for word in call.keywords}
    assert passed == {name: name for name in inspect.signature(one).parameters}


@EVERY
def test_docstring_documents_every_parameter_in_order(operation: Operation) -> None:
    one = function(operation)
    assert parameters_in(inspect.getdoc(one) or "") == list(inspect.signature(one).parameters)


@EVERY
def test_docstring_has_the_sections_a_reader_looks_for(operation: Operation) -> None:
    docstring = inspect.getdoc(function(operation)) or ""
    summary = docstring.splitlines()[0]
    assert summary.startswith("Fetch ")
    assert summary.endswith(".")
    for section in ("Parameters", "Returns", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in docstring
    assert ">>> " in docstring


@EVERY
def test_docstring_says_cost_add_on_and_first_day(operation: Operation) -> None:
    docstring = inspect.getdoc(function(operation)) or ""
    assert describe_cost(operation) in " ".join(docstring.split())
    assert ("add-on" in docstring) == operation.add_on
    since = re.search(r"Data since (\d{4}-\d{2}-\d{2})", docstring)
    assert (since[1] if since else "") == operation.since


@EVERY
def test_docstring_names_the_range_of_a_page(operation: Operation) -> None:
    if operation.page is None:
        return
    docstring = inspect.getdoc(function(operation)) or ""
    section = docstring.split(f"{operation.page.python} : int\n")[1].split("\n", 1)[0]
    assert f"{operation.page.least} to {operation.page.most}" in section


@EVERY
def test_docstring_ends_in_the_columns(operation: Operation) -> None:
    from toolkit.contract.columns import table_columns

    docstring = inspect.getdoc(function(operation)) or ""
    for table in operation.tables:
        for column in table_columns(table):
            assert re.search(rf"\b{column.name}\b", docstring), column.name


@EVERY
def test_function_stands_in_the_public_surface(operation: Operation) -> None:
    assert getattr(tk, operation.function) is function(operation)
    assert operation.function in tk.__all__
    assert operation.function in dir(tk)


@pytest.mark.parametrize("name", ["AccountStates", "DexLimits", "BorrowLendState"])
def test_named_tuples_are_the_tables_of_their_operation(name: str) -> None:
    tuple_of_frames = getattr(fetch, name)
    by_tables = {tuple(table.name for table in one.tables): one for one in OPERATIONS.values()}
    operation = by_tables[tuple_of_frames._fields]
    assert inspect.signature(function(operation)).return_annotation is tuple_of_frames


@EVERY
def test_an_answer_with_several_tables_is_a_named_tuple(operation: Operation) -> None:
    returned = inspect.signature(function(operation)).return_annotation
    names = tuple(table.name for table in operation.tables)
    assert (getattr(returned, "_fields", ("",))) == names
