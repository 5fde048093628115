"""Every operation has a fetch function; its signature and docstring agree with the table."""

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
from toolkit.contract.operations import OPERATIONS, VIEWS
from toolkit.contract.requests import describe_cost

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


def fetch_function(operation):
    function: Callable[..., Any] = getattr(fetch, operation.function)
    return function


def expected_parameters(operation):
    """Return name -> (kind, default) of every parameter in the order of the table."""
    positional = [
        parameter
        for parameter in operation.parameters
        if parameter.required or parameter.python in ("start", "end")
    ]
    signature: dict[str, tuple[Any, Any]] = {}
    for item in positional:
        default = inspect.Parameter.empty if item.required and not item.unless else item.default
        signature[item.python] = (inspect.Parameter.POSITIONAL_OR_KEYWORD, default)
    for parameter in operation.parameters:
        if parameter not in positional:
            signature[parameter.python] = (inspect.Parameter.KEYWORD_ONLY, parameter.default)
    for name, default in TAIL.items():
        unpaged = operation.paging == "none" and name in ("max_rows", "on_incomplete")
        if not unpaged:
            signature[name] = (inspect.Parameter.KEYWORD_ONLY, default)
    return signature


def parameters_in(docstring):
    section = re.search(r"\nParameters\n-+\n(.*?)\n\n[A-Z]\w+\n-+\n", docstring, re.DOTALL)
    assert section, "no Parameters section"
    return re.findall(r"^(\w+) : \S", section[1], re.MULTILINE)


def test_every_operation_has_a_function():
    assert len(OPERATIONS) == 22
    named = {name for name, value in vars(fetch).items() if inspect.isfunction(value)}
    assert named == {operation.function for operation in (*OPERATIONS.values(), *VIEWS.values())}


@EVERY
def test_function_matches_operation_and_topic(operation):
    function = fetch_function(operation)
    assert inspect.isfunction(function)
    assert vars(function)["__operation__"] == (operation.view or operation.type)
    assert function.__module__ == "toolkit"
    topic = importlib.import_module(f"toolkit.fetch.{operation.topic}")
    assert getattr(topic, operation.function) is function
    assert function.__name__ == operation.function


@EVERY
def test_signature_matches_table(operation):
    signature = inspect.signature(fetch_function(operation))
    found = {
        name: (parameter.kind, parameter.default)
        for name, parameter in signature.parameters.items()
    }
    assert list(found) == list(expected_parameters(operation))
    assert found == expected_parameters(operation)
    types = {name: type(parameter.default) for name, parameter in signature.parameters.items()}
    assert types == {
        name: type(default) for name, (_, default) in expected_parameters(operation).items()
    }


@EVERY
def test_signature_has_annotations(operation):
    signature = inspect.signature(fetch_function(operation))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter.name


@EVERY
def test_body_is_one_return(operation):
    function = fetch_function(operation)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    docstring, end = tree.body
    assert isinstance(docstring, ast.Expr)
    assert isinstance(end, ast.Return)
    call = next(
        node
        for node in ast.walk(end)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("fetch_frame")
    )
    assert [ast.literal_eval(argument) for argument in call.args] == [
        operation.view or operation.type
    ]
    passed = {word.arg: getattr(word.value, "id", None) for word in call.keywords}
    assert passed == {name: name for name in inspect.signature(function).parameters}


@EVERY
def test_docstring_documents_every_parameter(operation):
    function = fetch_function(operation)
    assert parameters_in(inspect.getdoc(function) or "") == list(
        inspect.signature(function).parameters
    )


@EVERY
def test_docstring_has_sections(operation):
    docstring = inspect.getdoc(fetch_function(operation)) or ""
    summary = docstring.splitlines()[0]
    assert summary.startswith("Fetch ")
    assert summary.endswith(".")
    for section in ("Parameters", "Returns", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in docstring
    assert ">>> " in docstring


@EVERY
def test_docstring_names_cost_and_limits(operation):
    docstring = inspect.getdoc(fetch_function(operation)) or ""
    assert describe_cost(operation) in " ".join(docstring.split())
    assert ("add-on" in docstring) == operation.add_on
    since = re.search(r"Data since (\d{4}-\d{2}-\d{2})", docstring)
    assert (since[1] if since else "") == operation.since


@EVERY
def test_docstring_names_page_sizes(operation):
    if operation.page is None:
        return
    docstring = inspect.getdoc(fetch_function(operation)) or ""
    section = docstring.split(f"{operation.page.python} : int\n")[1].split("\n", 1)[0]
    assert f"{operation.page.least} to {operation.page.most}" in section


@EVERY
def test_docstring_names_every_column(operation):
    from toolkit.contract.columns import table_columns

    docstring = inspect.getdoc(fetch_function(operation)) or ""
    for table in operation.tables:
        for column in table_columns(table):
            assert re.search(rf"\b{column.name}\b", docstring), column.name


@EVERY
def test_function_is_public(operation):
    assert getattr(tk, operation.function) is fetch_function(operation)
    assert operation.function in tk.__all__
    assert operation.function in dir(tk)


@pytest.mark.parametrize("name", ["AccountStates", "DexLimits", "BorrowLendState"])
def test_named_tuples_match_tables(name):
    tuple_of_frames = getattr(fetch, name)
    by_tables = {
        tuple(table.name for table in operation.tables): operation
        for operation in OPERATIONS.values()
    }
    operation = by_tables[tuple_of_frames._fields]
    assert inspect.signature(fetch_function(operation)).return_annotation is tuple_of_frames


@EVERY
def test_several_tables_return_named_tuple(operation):
    returned = inspect.signature(fetch_function(operation)).return_annotation
    names = tuple(table.name for table in operation.tables)
    assert (getattr(returned, "_fields", ("",))) == names


def public_functions():
    """Return every public function by the name that users write."""
    topics = {name: getattr(tk, name) for name in tk.__all__}
    modules = {name: topic for name, topic in topics.items() if inspect.ismodule(topic)}
    named = {
        f"{topic}.{name}": getattr(module, name)
        for topic, module in modules.items()
        for name in getattr(module, "__all__", ())
    }
    return {name: value for name, value in {**topics, **named}.items() if inspect.isfunction(value)}


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_public_docstring_has_sections(name):
    function = public_functions()[name]
    docstring = inspect.getdoc(function) or ""
    if inspect.signature(function).parameters:
        assert "\nParameters\n----------\n" in docstring
    if inspect.signature(function).return_annotation not in (None, "None"):
        assert re.search(r"\n(Returns|Yields)\n-+\n", docstring)
