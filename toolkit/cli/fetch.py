"""``toolkit fetch``: one operation, complete, into a file or on the screen."""

import inspect
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolkit.cli.asking import (
    SOURCE,
    OperationGroup,
    add_operations,
    arguments_of,
    asking,
    is_many,
    session_of,
)
from toolkit.cli.options import fail
from toolkit.cli.writing import check_place

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.contract.operations import Operation

__all__ = ["INCOMPLETE", "fetch_app"]

INCOMPLETE: Final = 3
"""Exit code where not every row could be had."""

fetch_app = typer.Typer(
    cls=OperationGroup,
    help="Fetch an operation into a Parquet, CSV or JSON lines file.\n\nExit code 0: complete; "
    "3: not every row could be had; 1: failed; 2: the command line is wrong.",
    short_help="Fetch an operation into a Parquet, CSV or JSON lines file.",
    no_args_is_help=True,
)


@fetch_app.callback()
def fetch() -> None:
    """Fetch an operation into a file."""


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


_OUTPUT: Final = (
    _keyword(
        "out",
        Annotated[
            str | None,
            typer.Option(
                "--out",
                "-o",
                help="File to write, *.parquet, *.csv or *.jsonl; - writes JSON lines to stdout. "
                "An answer of several frames becomes several files, name.frame.parquet.",
            ),
        ],
        None,
    ),
    _keyword(
        "partial",
        Annotated[
            bool, typer.Option("--partial", help="Write what came also where rows are missing.")
        ],
        False,
    ),
    _keyword(
        "as_json",
        Annotated[bool, typer.Option("--json", help="Print provenance as JSON on stdout.")],
        False,
    ),
)


def _fetch(operation: "Operation", options: dict[str, Any]) -> None:
    """Fetch, write, and say what came."""
    out = options["out"]
    if out == "-" and options["as_json"]:
        fail("-o - and --json both want stdout: write to a file", code=2)
    if out not in (None, "-"):
        check_place(Path(out))
    with asking():
        frames, whole = _asked(operation, options)
        if not whole and not options["partial"]:
            fail("nothing was written; --partial writes what came", code=INCOMPLETE)
        _write(frames, out)
        _report(frames, options["as_json"], out)
    raise typer.Exit(0 if whole else INCOMPLETE)


def _asked(
    operation: "Operation", options: dict[str, Any]
) -> "tuple[dict[str, pd.DataFrame], bool]":
    """Give the frames by name, and whether they are all there is."""
    import toolkit as tk
    from toolkit.cli.bar import Bar
    from toolkit.fetch.registry import FUNCTIONS

    __import__("toolkit.fetch")  # fills FUNCTIONS
    arguments = arguments_of(operation, options)
    function = FUNCTIONS[operation.type]
    with session_of(options, progress=Bar if sys.stderr.isatty() else False) as session:
        try:
            if is_many(operation, arguments):
                subjects = arguments.pop(operation.parameters[0].python)
                made = tk.many(function, subjects, session=session, **arguments)
            else:
                made = function(**arguments, session=session)
        except tk.Incomplete as error:
            typer.echo(f"toolkit: incomplete: {error}", err=True)
            return _named(operation, error.rows), False
    return _named(operation, made), True


def _named(operation: "Operation", made: Any) -> "dict[str, pd.DataFrame]":
    if isinstance(made, tuple):
        names = [table.name for table in operation.tables]
        return dict(zip(names, made, strict=True))
    return {"": made}


def _write(frames: "dict[str, pd.DataFrame]", out: str | None) -> None:
    from toolkit.cli.writing import write, write_lines

    if out == "-":
        for name, frame in frames.items():
            write_lines(frame, sys.stdout.buffer, {"frame": name} if name else {})
        sys.stdout.buffer.flush()
    elif out is not None:
        for name, frame in frames.items():
            path = Path(out)
            write(frame, path.with_suffix(f".{name}{path.suffix}") if name else path)


def _report(frames: "dict[str, pd.DataFrame]", as_json: bool, out: str | None) -> None:
    facts = {name: frame.attrs["toolkit"] for name, frame in frames.items()}
    if as_json:
        typer.echo(json.dumps(facts if len(facts) > 1 else next(iter(facts.values()))))
        return
    for name, one in facts.items():
        words = (
            f"{one['operation']} {name}".strip()
            + f": {one['rows']:,} rows, complete: {one['complete']}, {one['requests']} requests, "
            f"{one['points']} points ({one['source']})"
        )
        typer.echo(words, err=True)
    if out is None:
        for frame in frames.values():
            typer.echo(frame.to_string(max_rows=20, max_cols=12))


add_operations(fetch_app, _fetch, (*_OUTPUT, *SOURCE))
