"""What `toolkit fetch` and `toolkit plan` share: options from the operations table, a session."""

import inspect
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from toolkit.cli.options import Size, fail
from toolkit.contract.costs import describe_cost
from toolkit.contract.extra_operations import known_operation
from toolkit.contract.operations import OPERATIONS, Operation, Parameter

if TYPE_CHECKING:
    from toolkit.client import Session

__all__ = [
    "SOURCE",
    "OperationGroup",
    "add_operations",
    "arguments_of",
    "asking",
    "is_many",
    "is_repeatable",
    "session_of",
    "warning",
]


class OperationGroup(TyperGroup):
    """Commands by operation; of another operation it says how to ask it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; a name without one ends the command line in words."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = get_close_matches(name, OPERATIONS, n=1)
            points = known_operation(name).points
            meant = f" Did you mean {near[0]}?" if near else ""
            request = json.dumps({"type": name})
            fail(
                f"{name} is none of the 22 operations that have a function.{meant} "
                f"toolkit info '{request}' asks for any operation and prints the answer as JSON; "
                f"one request costs {points} points",
                code=2,
            )
        return super().resolve_command(ctx, args)


Command = Callable[[Operation, dict[str, Any]], None]


class Numbers(StrEnum):
    """The forms of number columns."""

    float = "float"
    exact = "exact"
    text = "text"


def _option(name: str, kind: Any, words: str, default: Any = None) -> inspect.Parameter:
    option = typer.Option(f"--{name.replace('_', '-')}", help=words)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


SOURCE: Final = (
    _option("base_url", str | None, "Address of the service; else TOOLKIT_BASE_URL."),
    _option("points_per_minute", int | None, "The key's quota: requests wait instead of failing."),
    _option("most_points", int | None, "Spend no more points than that."),
    _option("seed", int | None, "Ask a simulated exchange drawn from this seed instead."),
    _option("size", Size | None, "Ask a simulated exchange of this size instead."),
    _option("recordings", Path | None, "Ask a folder of recorded answers instead."),
    _option("archive", str | None, "Ask an archive instead: its folder, @<id> for a freeze."),
)
"""The options that say whom to ask. The key comes from TOOLKIT_API_KEY alone."""

_TYPES: Final[dict[str, Any]] = {
    "address": str | None,
    "addresses": list[str],
    "text": str | None,
    "texts": list[str],
    "whole": int | None,
    "time": str | None,
    "usd": float | None,
    "flag": bool,
    "cursor": str | None,
    "venue": str | None,
}


def add_operations(
    app: typer.Typer, command: Command, options: tuple[inspect.Parameter, ...]
) -> None:
    """Give an app one command per operation, by its type and, hidden, in snake case."""
    for operation in OPERATIONS.values():
        call = _command(operation, command, options)
        for name in dict.fromkeys((operation.type, operation.function)):
            app.command(
                name,
                help=f"{operation.summary} {describe_cost(operation)}",
                short_help=operation.summary,
                hidden=name != operation.type,
            )(call)


def arguments_of(operation: Operation, options: Mapping[str, Any]) -> dict[str, Any]:
    """Pick what was given for the fetch function, out of all options.

    A missing one ends the command in words.
    """
    names = [one.python for one in operation.parameters] + ["max_rows", "numbers"]
    given = {name: options.get(name) for name in names}
    made = {k: _plain(v) for k, v in given.items() if v is not None and v != []}
    for one in operation.parameters:
        if one.required and one.python not in made and not (one.unless and one.unless in made):
            other = f" or --{one.unless}" if one.unless else ""
            fail(f"{operation.type} needs --{one.python.replace('_', '-')}{other}", code=2)
    if is_repeatable(operation) and len(made.get(names[0], [])) == 1:
        made[names[0]] = made[names[0]][0]
    return made


def is_many(operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """Whether several subjects were given to a function that takes one."""
    return is_repeatable(operation) and isinstance(
        arguments.get(operation.parameters[0].python), list
    )


def session_of(options: Mapping[str, Any], progress: Any = False) -> "Session":
    """Connect to what the options name: a service, or a local source; never a guess."""
    local = {k: options[k] for k in ("seed", "size", "recordings", "archive")}
    local = {k: v for k, v in local.items() if v is not None}
    if local and options["base_url"]:
        fail("--base-url and a local source are two: give one of them", code=2)
    for name in ("points_per_minute", "most_points"):
        if local and options[name] is not None:
            fail(f"--{name.replace('_', '-')} is for a service, not for a local source", code=2)
    if local:
        from toolkit.local_service import local as connect_locally

        if "size" in local:
            local["size"] = local["size"].value
        session = connect_locally(**local, default=False)
        session.progress = progress
        return session
    from toolkit.client import connect

    return connect(
        options["base_url"],
        points_per_minute=options["points_per_minute"],
        most_points=options["most_points"],
        progress=progress,
        default=False,
    )


@contextmanager
def asking() -> Iterator[None]:
    """Say warnings and errors in words, without a traceback."""
    from toolkit.errors import BadRequest, NotConnected, ToolkitError

    with warning():
        try:
            yield
        except BrokenPipeError:  # whoever read stdout has enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except NotConnected as error:
            fail(f"{error}; on the command line: --base-url, or --size tiny", code=2)
        except (BadRequest, ValueError, TypeError) as error:
            fail(str(error), code=2)
        except (ToolkitError, OSError) as error:
            fail(str(error))
        except KeyboardInterrupt:
            fail("interrupted; nothing was written", code=130)


@contextmanager
def warning() -> Iterator[None]:
    """Say warnings in words, each once, on stderr."""
    said = set()

    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            print(f"toolkit: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = say
        yield


def _command(
    operation: Operation, command: Command, options: tuple[inspect.Parameter, ...]
) -> Callable[..., None]:
    def call(**given: Any) -> None:
        command(operation, given)

    own = [_of_parameter(operation, one) for one in operation.parameters]
    if operation.paging != "none":
        own.append(_option("max_rows", int | None, "Most rows to return; all when not given."))
    own.append(_option("numbers", Numbers, "Form of number columns.", Numbers.float))
    call.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    return call


def _of_parameter(operation: Operation, one: Parameter) -> inspect.Parameter:
    words = f"{one.meaning[:1].upper()}{one.meaning[1:]}."
    kind = _TYPES[one.kind]
    if one is operation.parameters[0] and is_repeatable(operation):
        kind, words = list[str], f"{words} May be given more than once."
    if one.kind == "time":
        words += ' Such as 2025-09-01T12:00 or "7d"' + ("." if one.python == "end" else ", or 0.")
    if one.required:
        words += " Required." if not one.unless else f" Required, or {one.unless}."
    empty: Any = [] if kind == list[str] else False if kind is bool else None
    return _option(one.python, kind, words, empty)


def is_repeatable(operation: Operation) -> bool:
    """Whether `tk.many` asks it of many subjects."""
    parameters = operation.parameters
    return bool(parameters) and parameters[0].required and parameters[0].kind in ("address", "text")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value
