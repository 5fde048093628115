"""``toolkit archive``: refresh, ingest, status, scan, verify, freeze and compact."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolkit.cli.asking import asking, session_of, warning
from toolkit.cli.bar import counting
from toolkit.cli.options import Size, fail
from toolkit.cli.refreshing import refresh_all
from toolkit.cli.writing import check_place, write, write_lines

if TYPE_CHECKING:
    from toolkit.archive.archive import Archive

__all__ = ["archive_app"]

archive_app = typer.Typer(
    help="Keep what is fetched, for good: Delta tables that can be verified and cited.",
    no_args_is_help=True,
)

Where = Annotated[
    str, typer.Argument(help="Folder, or address such as s3://bucket/prefix; @<id> for a freeze.")
]
_WIDE: Final = 60  # characters of a subject on a terminal
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@archive_app.callback()
def archive() -> None:
    """Keep what is fetched, for good."""


@archive_app.command()
def refresh(
    path: Where,
    operation: Annotated[str, typer.Argument(help="Operation, such as userFillsByTime.")],
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            help="Accounts, builders, validators, coins or dexes, one series each; the accounts, "
            "tokens or markets of an operation that takes many of them are one together."
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option(help='First time, such as 2025-09-01 or "7d".')
    ] = None,
    end: Annotated[str | None, typer.Option(help="Last time; else now.")] = None,
    amount: Annotated[float | None, typer.Option(help="USD notional, of slippageHistory.")] = None,
    dex: Annotated[str | None, typer.Option(help="Dex, of an operation that has one.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Address of the service; else TOOLKIT_BASE_URL.")
    ] = None,
    points_per_minute: Annotated[
        int | None, typer.Option(help="The key's quota: requests wait instead of failing.")
    ] = None,
    most_points: Annotated[int | None, typer.Option(help="Spend no more points than that.")] = None,
    seed: Annotated[int | None, typer.Option(help="Ask a simulated exchange instead.")] = None,
    size: Annotated[Size | None, typer.Option(help="Ask a simulated exchange instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch what is missing, and keep it. The key comes from TOOLKIT_API_KEY.

    What the service does not have is told on stderr, and in JSON as history. Exit code 1: some
    failed; the others are kept. 2: the command line is wrong, and nobody was asked.
    """
    from toolkit.archive.series import find_operation

    with _failing():
        asked, kept = find_operation(operation), _open(path)
    given = {"start": start, "end": end, "amount": amount, "dex": dex}
    named: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    source = {
        "base_url": base_url,
        "points_per_minute": points_per_minute,
        "most_points": most_points,
        "seed": seed,
        "size": size,
        "recordings": None,
        "archive": None,
    }
    with asking(), session_of(source) as session:
        try:
            refresh_all(kept, asked, subject or [], named, session, as_json=as_json)
        except KeyboardInterrupt as interrupt:
            fail("; ".join(["interrupted", *getattr(interrupt, "__notes__", [])]), code=130)


@archive_app.command()
def ingest(
    path: Where,
    recordings: Annotated[Path, typer.Argument(help="A recorded answer, or a folder of them.")],
    as_json: AsJson = False,
) -> None:
    """Keep recorded answers: JSON files with request, status and response.

    Exit code 1: some were left out, and why is said on stderr; the others are kept.
    """
    if not recordings.exists():
        fail(f"there is no file or folder {recordings}", code=2)
    with _failing():
        found = _open(path).ingest(recordings)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        for name, rows in found["kept"].items():
            typer.echo(f"{name}: {rows} rows")
    for name, why in found["left"].items():
        typer.echo(f"toolkit: {name}: left out: {why}", err=True)
    raise typer.Exit(1 if found["left"] else 0)


@archive_app.command()
def status(path: Where, as_json: AsJson = False) -> None:
    """Say what is in the archive."""
    with _failing():
        found = _open(path).status()
    if as_json:
        typer.echo(found.to_json(orient="records", date_format="iso"))
    elif found.empty:
        typer.echo(f"there is nothing in {path}")
    else:
        shown = found.drop(columns=["covered_from", "bytes"])
        whole = shown["subject"]
        short = whole.where(whole.str.len() <= _WIDE, whole.str[: _WIDE - 3] + "...")
        typer.echo(shown.assign(subject=short).to_string(index=False))


@archive_app.command()
def scan(
    path: Where,
    record: Annotated[str, typer.Argument(help="Table, such as fills, or an operation's type.")],
    columns: Annotated[
        str | None, typer.Option(help="Columns, with commas between; else all but _json.")
    ] = None,
    operation: Annotated[str | None, typer.Option(help="Only rows of this operation.")] = None,
    subject: Annotated[
        str | None, typer.Option(help='Only rows of this account, builder, or "<coin> <amount>".')
    ] = None,
    start: Annotated[str | None, typer.Option(help="First time, such as 2025-09-01.")] = None,
    end: Annotated[str | None, typer.Option(help="Last time.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File: .parquet, .csv or .jsonl.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read all rows of one kind of record: a table, JSON lines, or a file. In no order."""
    if out is not None:
        check_place(out)
    chosen = None if columns is None else [one.strip() for one in columns.split(",")]
    with _failing():
        found = _existing(path).scan(
            record,
            operation=operation,
            subject=subject,
            start=start,
            end=end,
            columns=chosen,
            engine="pandas",
        )
    if out is not None:
        with _failing():
            write(found, out)
        typer.echo(f"{len(found):,} rows in {out}", err=True)
    elif as_json:
        write_lines(found, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        typer.echo(found.to_string(index=False, max_rows=20, max_cols=12))


@archive_app.command()
def verify(path: Where, as_json: AsJson = False) -> None:
    """Read everything, and say what is wrong; the exit code is 1 if anything is."""
    with _failing(), counting("verify") as count:
        found = _existing(path).verify(progress=count)
    errors = [one for one in found if one.severity == "error"]
    if as_json:
        typer.echo(json.dumps({"ok": not errors, "findings": [asdict(one) for one in found]}))
    else:
        for one in found:
            typer.echo(f"{one.severity}: {one.table} {one.series}: {one.what}")
        typer.echo("whole" if not errors else f"{len(errors)} errors")
    raise typer.Exit(1 if errors else 0)


@archive_app.command()
def freeze(path: Where, as_json: AsJson = False) -> None:
    """Give the present rows a name for good."""
    with _failing(), counting("freeze") as count:
        name = _open(path).freeze(progress=count)
    typer.echo(json.dumps({"id": name, "archive": f"{path}@{name}"}) if as_json else name)


@archive_app.command()
def compact(
    path: Where,
    forget_after_hours: Annotated[
        int | None,
        typer.Option(min=0, help="Also remove old files, unless a freeze needs them."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Join the small files of many refreshes; readers and writers may go on meanwhile."""
    with _failing(), counting("compact") as count:
        fewer = _existing(path).compact(forget_after_hours=forget_after_hours, progress=count)
    typer.echo(json.dumps({"files_fewer": fewer}) if as_json else f"{fewer} files fewer")


def _open(path: str) -> "Archive":
    from toolkit.archive.archive import open

    return open(path)


def _existing(path: str) -> "Archive":
    from toolkit.archive.archive import open_existing

    return open_existing(path)


@contextmanager
def _failing() -> Iterator[None]:
    """Say what went wrong in one line, with exit code 2: 1 is for what `verify` finds."""
    from toolkit.errors import ToolkitError

    try:
        with warning():
            yield
    except (ToolkitError, ValueError, TypeError, OSError) as error:
        typer.echo(f"toolkit: {error}", err=True)
        raise typer.Exit(2) from None
