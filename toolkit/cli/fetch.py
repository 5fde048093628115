"""``toolkit fetch``, ``toolkit plan`` and ``toolkit info``: requests from the command line.

`fetch` writes the rows of one operation into a file or on the screen. `plan` estimates the cost of
a fetch. `info` sends any request and prints its answer. `fetch` and `plan` have one command for
each operation, with options from the operations table.
"""

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from typer.core import TyperGroup

from toolkit.cli.console import RowProgress, fail, plain_message, report_errors
from toolkit.cli.files import check_path, write_frame, write_json_lines
from toolkit.cli.options import (
    JSON_OPTION,
    SOURCE_OPTIONS,
    flag_option,
    keyword_option,
    open_session,
    with_options,
)
from toolkit.contract.dexes import ALL_DEXES, canonical_dex
from toolkit.contract.operations import FETCHED, Operation, Parameter, known_operation
from toolkit.contract.requests import describe_cost
from toolkit.display import count_text

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.client import Session

INCOMPLETE: Final = 3
"""Exit code if rows are missing, or contradict each other."""


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


NUMBERS_OPTION: Final = keyword_option(
    "numbers", Literal["float", "exact", "text"], "Form of number columns.", "float"
)
_MAX_ROWS: Final = "Most rows to return; by default all."

_TYPES: Final[dict[str, Any]] = {
    "addresses": list[str],
    "texts": list[str],
    "whole": int | None,
    "flag": bool,
}
"""Kind of a parameter -> type of its option, if it is not text. For USD, a message of its own says
what a number is."""


def add_operations(
    app: typer.Typer,
    command: Callable[[Operation, dict[str, Any]], None],
    *options: inspect.Parameter,
) -> None:
    """Add a command for each operation, named by its type, with a hidden alias in snake case."""

    def command_of(operation: Operation) -> Callable[..., None]:
        own = [_parameter_option(operation, parameter) for parameter in operation.parameters]
        if operation.paging != "none":
            own.append(keyword_option("max_rows", int | None, _MAX_ROWS))

        @with_options(*own, NUMBERS_OPTION, *options)
        def call(**values: Any) -> None:
            command(operation, values)

        return call

    for operation in FETCHED.values():
        call = command_of(operation)
        for name in dict.fromkeys((operation.type, operation.function)):
            app.command(
                name,
                help=f"{operation.summary} {describe_cost(operation)}",
                short_help=operation.summary,
                hidden=name != operation.type,
            )(call)


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


def _fetch_arguments(
    operation: Operation, options: Mapping[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """Return the subjects if there are several for a function of one, and the other arguments.

    A missing argument ends the command.
    """
    names = [parameter.python for parameter in operation.parameters] + ["max_rows", "numbers"]
    given = {name: options.get(name) for name in names}
    arguments = {name: value for name, value in given.items() if value not in (None, [])}
    for parameter in operation.parameters:
        name = parameter.python
        if parameter.kind == "usd" and name in arguments:
            arguments[name] = parse_usd(name, arguments[name])
        if parameter.required and not {name, parameter.unless} & arguments.keys():
            other = f" or --{parameter.unless}" if parameter.unless else ""
            fail(f"{operation.type} needs --{name.replace('_', '-')}{other}", code=2)
    subjects = arguments.pop(names[0], []) if is_repeatable(operation) else []
    if len(subjects) == 1:
        arguments[names[0]] = subjects.pop()
    return subjects, arguments


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


fetch_app = typer.Typer(
    cls=OperationGroup,
    help="Fetch an operation into a Parquet, CSV, Excel or JSON lines file.\n\nExit code 0: "
    "complete; 3: rows are missing or contradict each other; 1: failed; 2: the command line is "
    "wrong.",
    short_help="Fetch an operation into a Parquet, CSV, Excel or JSON lines file.",
    no_args_is_help=True,
)

plan_app = typer.Typer(
    cls=OperationGroup,
    help="Estimate the rows, requests, points and minutes of a fetch, and how certain they are.",
    no_args_is_help=True,
)


_FETCH_OPTIONS: Final = (
    keyword_option(
        "out",
        str | None,
        "File to write: *.parquet, *.csv, *.xlsx or *.jsonl; - writes JSON lines to stdout. An "
        "answer of several frames becomes several files, name.frame.parquet.",
        None,
        "--out",
        "-o",
    ),
    flag_option("partial", "Write the received rows even if others are missing."),
    flag_option("as_json", "Print provenance as JSON on stdout.", "--json"),
)

_PROBE: Final = "Request a page or two, which costs points, and estimate from them."


def _fetch_operation(operation: Operation, options: dict[str, Any]) -> None:
    """Fetch an operation, write its frames, and print their provenance."""
    out = options["out"]
    if out == "-" and options["as_json"]:
        fail("-o - and --json both write to stdout: write to a file instead", code=2)
    if out not in (None, "-"):
        check_path(Path(out))
    with report_errors():
        frames, is_complete = _fetch_frames(operation, options)
        if not is_complete and not options["partial"]:
            fail("nothing was written; --partial writes the received rows", code=INCOMPLETE)
        for name, frame in frames.items():
            if out == "-":
                write_json_lines(frame, sys.stdout.buffer, {"frame": name} if name else {})
                sys.stdout.buffer.flush()
            elif out is not None:
                path = Path(out)
                write_frame(frame, path.with_suffix(f".{name}{path.suffix}") if name else path)
        facts = {name: frame.attrs["toolkit"] for name, frame in frames.items()}
        if options["as_json"]:
            typer.echo(json.dumps(facts if len(facts) > 1 else next(iter(facts.values()))))
        else:
            for name, fact in facts.items():
                title = f"{fact['operation']} {name}".strip()
                requests = count_text(fact["requests"], "request")
                typer.echo(
                    f"{title}: {count_text(fact['rows'], 'row')}, complete: {fact['complete']}, "
                    f"{requests}, {count_text(fact['points'], 'point')} ({fact['source']})",
                    err=True,
                )
            for frame in frames.values() if out is None else ():
                typer.echo(frame.to_string(max_rows=20, max_cols=12))
    raise typer.Exit(0 if is_complete else INCOMPLETE)


def _fetch_frames(
    operation: Operation, options: dict[str, Any]
) -> "tuple[dict[str, pd.DataFrame], bool]":
    """Return the frames by name, and whether they are complete.

    A dex that does not exist ends the command: its answer has no rows, and no error.
    """
    import toolkit as tk
    from toolkit.frames.provenance import provenance

    def name_frames(result: Any) -> dict[str, Any]:
        if not isinstance(result, tuple):
            return {"": result}
        return dict(zip((table.name for table in operation.tables), result, strict=True))

    subjects, arguments = _fetch_arguments(operation, options)
    function = fetch_function(operation)
    with open_session(options, progress=RowProgress) as session:
        try:
            if subjects:
                result = tk.many(function, subjects, session=session, **arguments)
            else:
                result = function(**arguments, session=session)
        except tk.Incomplete as error:
            typer.echo(f"toolkit: incomplete: {plain_message(error)}", err=True)
            return name_frames(error.rows), False
        frames = name_frames(result)
        # An account has a state on every dex, also on one that does not exist.
        is_empty = next(iter(frames.values())).empty or "users" in arguments
        if words := unknown_dex(arguments.get("dex"), session, is_empty=is_empty):
            fail(f"{operation.function}: {words}. Nothing was written", code=2)
    complete = [str(provenance(frame)["complete"]) for frame in frames.values()]
    return frames, not any(text.startswith("no") for text in complete)


def unknown_dex(dex: Any, session: "Session", *, is_empty: bool) -> str:
    """Return a sentence if a dex does not exist, else an empty text.

    If its answer has no rows, the service is asked for its dexes, which costs 2 points.
    """
    from toolkit.fetch.remarks import dex_remarks, join_remarks

    if not isinstance(dex, str) or canonical_dex(dex) in ("", ALL_DEXES):
        return ""
    world = session.world or ({"dexes": _list_dexes(dex, session)} if is_empty else {})
    return join_remarks(dex_remarks(dex, world, is_empty))[1]


def _list_dexes(dex: str, session: "Session") -> list[str]:
    """Return the dexes that a service lists; none if it has no list, such as an archive."""
    import toolkit as tk

    try:
        try:
            listed: Any = tk.info({"type": "perpDexs"}, session=session)
            return ["", *(entry["name"] for entry in listed if entry is not None)]
        except tk.BadRequest:  # a strict service has no list, but the perps of each dex
            return ["", dex] if len(tk.meta(dex=dex, session=session)) else [""]
    except (tk.ToolkitError, LookupError, TypeError):
        return []


def _plan_operation(operation: Operation, options: dict[str, Any]) -> None:
    subjects, arguments = _fetch_arguments(operation, options)
    if subjects:
        fail("toolkit plan takes only one subject: plan them one by one", code=2)
    with report_errors():
        import toolkit as tk

        with open_session(options) as session:
            estimate = tk.plan(
                fetch_function(operation), probe=options["probe"], session=session, **arguments
            )
    typer.echo(json.dumps(asdict(estimate)) if options["as_json"] else str(estimate))


add_operations(fetch_app, _fetch_operation, *_FETCH_OPTIONS, *SOURCE_OPTIONS)
add_operations(
    plan_app, _plan_operation, flag_option("probe", _PROBE), JSON_OPTION, *SOURCE_OPTIONS
)


@with_options(*SOURCE_OPTIONS)
def info(
    request: Annotated[
        str, typer.Argument(help='The request as JSON, for example \'{"type": "allMids"}\'.')
    ],
    **options: Any,
) -> None:
    """Send a request unchanged, and print the answer as JSON.

    The request may be of any operation of the service, also one that has no function here.
    """
    try:
        sent = json.loads(request)
    except ValueError as error:
        fail(f'the request is not JSON, such as \'{{"type": "allMids"}}\': {error}', code=2)
    with report_errors():
        import toolkit as tk

        with open_session(options) as session:
            answer = tk.info(sent, session=session)
    if isinstance(answer, bytes):
        sys.stdout.buffer.write(answer)
    else:
        typer.echo(json.dumps(answer, ensure_ascii=False))
