"""One command for each operation, with options from the operations table.

`toolkit fetch` and `toolkit plan` have these commands.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final

import typer
from typer.core import TyperGroup

from toolkit.cli.console import fail
from toolkit.cli.options import keyword_option, set_options
from toolkit.contract.extra_operations import FETCHED, known_operation
from toolkit.contract.operations import Operation, Parameter
from toolkit.contract.requests import describe_cost
from toolkit.display import count_text


class OperationGroup(TyperGroup):
    """A group of commands by operation; its error for another operation names `toolkit info`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; an unknown name ends the command line with a message."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = get_close_matches(name, FETCHED, n=1)
            points = known_operation(name).points
            suggestion = f" Did you mean {near[0]}?" if near else ""
            request = json.dumps({"type": name})
            fail(
                f"{name} is none of the {len(FETCHED)} operations with a function.{suggestion} "
                f"toolkit info '{request}' sends any request and prints the answer as JSON; "
                f"one request costs {count_text(points, 'point')}",
                code=2,
            )
        return super().resolve_command(ctx, args)


Command = Callable[[Operation, dict[str, Any]], None]


class NumberForm(StrEnum):
    """The forms of number columns."""

    float = "float"
    exact = "exact"
    text = "text"


_TYPES: Final[dict[str, Any]] = {
    "addresses": list[str],
    "texts": list[str],
    "whole": int | None,
    "flag": bool,
}
"""Kind of a parameter -> type of its option, if it is not text. For USD, a message of its own says
what a number is."""


def add_operations(
    app: typer.Typer, command: Command, options: tuple[inspect.Parameter, ...]
) -> None:
    """Add a command for each operation, named by its type, with a hidden alias in snake case."""
    for operation in FETCHED.values():
        call = _operation_command(operation, command, options)
        for name in dict.fromkeys((operation.type, operation.function)):
            app.command(
                name,
                help=f"{operation.summary} {describe_cost(operation)}",
                short_help=operation.summary,
                hidden=name != operation.type,
            )(call)


def _operation_command(
    operation: Operation, command: Command, options: tuple[inspect.Parameter, ...]
) -> Callable[..., None]:
    def call(**values: Any) -> None:
        command(operation, values)

    own = [_parameter_option(operation, parameter) for parameter in operation.parameters]
    if operation.paging != "none":
        own.append(keyword_option("max_rows", int | None, "Most rows to return; by default all."))
    own.append(keyword_option("numbers", NumberForm, "Form of number columns.", NumberForm.float))
    set_options(call, [*own, *options])
    return call


def _parameter_option(operation: Operation, parameter: Parameter) -> inspect.Parameter:
    help = f"{parameter.meaning[:1].upper()}{parameter.meaning[1:]}."
    kind = _TYPES.get(parameter.kind, str | None)
    if parameter is operation.parameters[0] and is_repeatable(operation):
        kind, help = list[str], f"{help} The option can be repeated."
    if parameter.kind == "time":
        help += ' For example 2025-09-01T12:00 or "7d"'
        help += "." if parameter.python == "end" else ", or 0."
    if parameter.required:
        help += f" Required, or {parameter.unless}." if parameter.unless else " Required."
    default: Any = [] if kind == list[str] else False if kind is bool else None
    return keyword_option(parameter.python, kind, help, default)


def fetch_function(operation: Operation) -> Callable[..., Any]:
    """Return the fetch function of an operation."""
    from toolkit.fetch.registry import FUNCTIONS

    return FUNCTIONS[operation.type]


def fetch_arguments(operation: Operation, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the fetch function, out of all options.

    A missing argument ends the command.
    """
    names = [parameter.python for parameter in operation.parameters] + ["max_rows", "numbers"]
    arguments: dict[str, Any] = {}
    for name in names:
        value = options.get(name)
        if value is not None and value != []:
            arguments[name] = value.value if isinstance(value, StrEnum) else value
    for parameter in operation.parameters:
        if parameter.kind == "usd" and parameter.python in arguments:
            arguments[parameter.python] = parse_usd(parameter.python, arguments[parameter.python])
        if not parameter.required or parameter.python in arguments:
            continue
        if parameter.unless and parameter.unless in arguments:
            continue
        other = f" or --{parameter.unless}" if parameter.unless else ""
        fail(f"{operation.type} needs --{parameter.python.replace('_', '-')}{other}", code=2)
    if is_repeatable(operation) and len(arguments.get(names[0], [])) == 1:
        arguments[names[0]] = arguments[names[0]][0]
    return arguments


def parse_usd(name: str, text: str) -> float:
    """Return a number of USD; another text ends the command."""
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        fail(f"--{name} is a number of USD, such as 10000 or 1e4, not {text!r}", code=2)


def is_repeatable(operation: Operation) -> bool:
    """Return whether `tk.many` can fetch the operation for many subjects."""
    parameters = operation.parameters
    return bool(parameters) and parameters[0].required and parameters[0].kind in ("address", "text")


def has_many_subjects(operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """Return whether there are several subjects for a function that takes one."""
    return is_repeatable(operation) and isinstance(
        arguments.get(operation.parameters[0].python), list
    )
