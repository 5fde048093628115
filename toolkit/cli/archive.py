"""``toolkit archive``: refresh, ingest, status, scan, verify, freeze and compact."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolkit.cli import console, options
from toolkit.cli.console import RowProgress, fail
from toolkit.cli.fetch import NUMBERS_OPTION, fetch_function, is_repeatable, parse_usd, unknown_dex
from toolkit.cli.files import check_path, write_frame, write_json_lines
from toolkit.cli.options import JSON_OPTION, JsonOption, flag_option, keyword_option
from toolkit.display import count_text

if TYPE_CHECKING:
    from toolkit.archive.archive import Archive
    from toolkit.archive.refresh import RefreshRequest
    from toolkit.client import Session

archive_app = typer.Typer(
    help="Archive fetched rows permanently, as Delta tables that can be verified and cited.",
    no_args_is_help=True,
)

ArchivePath = Annotated[
    str,
    typer.Argument(
        help="Folder or address, for example s3://bucket/prefix; a freeze has @<id> at its end."
    ),
]

_LONGEST_SUBJECT: Final = 60  # characters on a terminal


@archive_app.callback()
def _set_allocator() -> None:
    """Archive fetched rows permanently."""
    # With the allocator of the C library, verify and compact need a sixth less memory.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


_SUBJECTS: Final = {
    "user": "An account",
    "builder": "A builder",
    "coin": "A coin",
    "validator": "A validator",
}
"""Options of `refresh` that name subjects."""

_REFRESH_OPTIONS: Final = (
    *(
        keyword_option(name, list[str] | None, f"{words}; can be repeated.")
        for name, words in _SUBJECTS.items()
    ),
    keyword_option("start", str | None, 'First time, for example 2025-09-01 or "7d".'),
    keyword_option("end", str | None, "Last time; by default the present."),
    keyword_option("amount", str | None, "USD notional, for slippageHistory."),
    keyword_option("dex", str | None, "Dex, for an operation with a dex."),
    *(option for option in options.SOURCE_OPTIONS if option.name not in ("recordings", "archive")),
    flag_option(
        "moved",
        "Refresh only accounts that changed since their last refresh, according to an account "
        "snapshot. Without --user, check all archived accounts.",
    ),
    JSON_OPTION,
)


@archive_app.command()
@options.with_options(*_REFRESH_OPTIONS)
def refresh(
    path: ArchivePath,
    operation: Annotated[str, typer.Argument(help="Operation, for example userFillsByTime.")],
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            help="Accounts, builders, validators, coins or dexes, one series each. If one request "
            "takes many accounts, tokens or markets, all of them are one series. Or use "
            "the options --user, --builder, --coin and --validator, as in `toolkit fetch`."
        ),
    ] = None,
    **given: Any,
) -> None:
    """Fetch missing rows and archive them. The key comes from TOOLKIT_API_KEY.

    Data that the service does not have is listed on stderr, and in JSON as history. Exit code 1:
    some refreshes failed, and the others are archived; 2: the command line is wrong, and no
    request was sent.
    """
    from toolkit.archive.schemas import resolve_operation

    with _opened(path, is_new=True) as target:
        found = resolve_operation(operation)
    takes = found.parameters[0].python.removesuffix("s") if found.parameters else ""
    subjects = [*(subject or [])]
    for name in _SUBJECTS:
        if given[name] and name != takes:
            own = f"--{takes}" if takes in _SUBJECTS else "SUBJECT after the operation"
            advice = f"use {own}" if takes else "it takes no subject"
            fail(f"{found.type} has no --{name}: {advice}", code=2)
        subjects += given[name] or ()
    arguments = {n: given[n] for n in ("start", "end", "dex", "amount") if given[n] is not None}
    if "amount" in arguments:
        arguments["amount"] = parse_usd("amount", arguments["amount"])
    fetch, as_json = fetch_function(found), given["as_json"]
    with console.report_errors(), options.open_session(given) as session:
        try:
            if given["moved"]:
                start = given["start"]
                plan = target.plan_refresh(fetch, subjects or None, start=start, session=session)
                typer.echo(f"toolkit: {plan}", err=True)
                if not (subjects := plan.to_ask):
                    line = f"{found.type}: 0 new, no account needs a request"
                    typer.echo(json.dumps({"type": found.type, "rows": 0}) if as_json else line)
                    return
            calls: list[tuple[Any, ...]] = [(subject,) for subject in subjects] or [()]
            if subjects and found.parameters and not is_repeatable(found):
                calls = [(subjects,)]  # one request takes all of them
            _refresh_all(target, _check_calls(fetch, calls, arguments, session), session, as_json)
        except KeyboardInterrupt as interrupt:
            fail("; ".join(["interrupted", *getattr(interrupt, "__notes__", [])]), code=130)


@archive_app.command()
def ingest(
    path: ArchivePath,
    files: Annotated[
        Path,
        typer.Argument(
            help="A recorded answer, a frame in Parquet, or a folder of such files; with --bulk a "
            "Parquet file with the rows of many accounts, or a folder of them."
        ),
    ],
    bulk: Annotated[
        str | None,
        typer.Option(help="Operation whose rows bulk files have, for example userFillsByTime."),
    ] = None,
    start: Annotated[str | None, typer.Option(help="First time of the bulk files.")] = None,
    end: Annotated[str | None, typer.Option(help="Last time of the bulk files.")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Our name of a column = its name in bulk files; can be repeated."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Name of the bulk files' source.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Archive recorded answers (JSON with request, status, response) and frames (Parquet).

    With --bulk: the rows of many accounts, such as a published history. The files must have every
    row between --start and --end. An interrupted command continues if it is repeated.

    Exit code 1: some files or histories were left out, with the reason on stderr; the others are
    archived.
    """
    from toolkit.archive.schemas import resolve_operation

    if not files.exists():
        fail(f"there is no file or folder {files}", code=2)
    with _opened(path, is_new=True) as archive:
        if bulk is None:
            if start or end or column or source:
                fail("--start, --end, --column and --source belong to --bulk OPERATION", code=2)
            result = archive.ingest(files)
        elif start is None or end is None:
            fail(
                "--bulk needs --start and --end: the range in which the files have all rows", code=2
            )
        else:
            pairs = [text.partition("=") for text in column or ()]
            if wrong := [text for text, sign, _ in pairs if not sign]:
                fail(f"--column is OURS=THEIRS, for example px=price, not {wrong[0]}", code=2)
            names = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
            fetch = fetch_function(resolve_operation(bulk))
            with RowProgress("archive") as progress:
                told: Any = {"columns": names, "source": source, "progress": progress.update}
                try:
                    result = archive.ingest_bulk(files, fetch, start, end, **told)
                except KeyboardInterrupt:
                    note = f"{progress.rows:,} rows are archived; repeat the command to continue"
                    fail(f"interrupted; {note}", code=130)
    if as_json:
        typer.echo(json.dumps(result))
    elif bulk is not None:
        added = count_text(sum(result["kept"].values()), "new row")
        typer.echo(f"{added} of {count_text(len(result['kept']), 'history', 'histories')}")
    else:
        for name, rows in result["kept"].items():
            typer.echo(f"{name}: {count_text(rows, 'row')}")
    for name, reason in result["left"].items():
        typer.echo(f"toolkit: {name}: left out: {reason}", err=True)
    raise typer.Exit(1 if result["left"] else 0)


@archive_app.command()
def status(path: ArchivePath, as_json: JsonOption = False) -> None:
    """Print the content of the archive."""
    with _opened(path, is_new=True) as archive:
        table = archive.status()
    if as_json:
        typer.echo(table.to_json(orient="records", date_format="iso"))
    elif table.empty:
        typer.echo(f"{path} has no rows yet: toolkit archive refresh adds some")
    else:
        table = table.drop(columns=["covered_from", "bytes"])
        subjects, longest = table["subject"], _LONGEST_SUBJECT
        short = subjects.where(subjects.str.len() <= longest, subjects.str[: longest - 3] + "...")
        typer.echo(table.assign(subject=short).to_string(index=False))


_SCAN_OPTIONS: Final = (
    keyword_option(
        "columns", str | None, "Columns, separated by commas; by default all but _json."
    ),
    keyword_option("operation", str | None, "Only rows of this operation."),
    keyword_option(
        "subject", str | None, 'Only rows of this account, builder, or "<coin> <amount>".'
    ),
    keyword_option("start", str | None, "First time, for example 2025-09-01."),
    keyword_option("end", str | None, "Last time."),
    NUMBERS_OPTION,
    keyword_option(
        "out", Path | None, "File: .parquet, .csv, .xlsx or .jsonl.", None, "--out", "-o"
    ),
    JSON_OPTION,
)


@archive_app.command()
@options.with_options(*_SCAN_OPTIONS)
def scan(
    path: ArchivePath,
    record: Annotated[str, typer.Argument(help="Table, for example fills, or an operation.")],
    **given: Any,
) -> None:
    """Read all rows of one kind of record, in no order: as a table, JSON lines, or a file."""
    out, as_json, numbers = given.pop("out"), given.pop("as_json"), given.pop("numbers")
    if out is not None:
        check_path(out)
    if given["columns"] is not None:
        given["columns"] = [name.strip() for name in given["columns"].split(",")]
    with _opened(path) as archive:
        rows: Any = archive.scan(record, engine="pandas", numbers=numbers, **given)
        if out is not None:
            write_frame(rows, out)
    if out is not None:
        typer.echo(f"{len(rows):,} rows in {out}", err=True)
    elif as_json:
        write_json_lines(rows, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        shown = rows
        fields = [name for name in rows.columns if not name.startswith("_")]
        if given["columns"] is None and fields:  # whole answers have no columns of a record
            shown = rows[[*rows.columns.intersection(["_subject"]), *fields]]
        typer.echo(shown.to_string(index=False, max_rows=20, max_cols=12))
        if len(shown.columns) < len(rows.columns):
            typer.echo("columns that begin with _ are left out; --columns can name them", err=True)


@archive_app.command()
def verify(path: ArchivePath, as_json: JsonOption = False) -> None:
    """Read all rows and print every fault; the exit code is 1 if there is an error."""
    with _opened(path) as archive, RowProgress("verify") as progress:
        findings = archive.verify(progress=progress.update)
    errors = [finding for finding in findings if finding.severity == "error"]
    if as_json:
        facts = [asdict(finding) for finding in findings]
        typer.echo(json.dumps({"ok": not errors, "findings": facts}))
    else:
        for finding in findings:
            typer.echo(f"{finding.severity}: {finding.table} {finding.series}: {finding.what}")
        checked = f"{count_text(progress.rows, 'row')} and the refresh log were checked"
        typer.echo(count_text(len(errors), "error") if errors else f"no errors: {checked}")
    raise typer.Exit(1 if errors else 0)


@archive_app.command()
def freeze(path: ArchivePath, as_json: JsonOption = False) -> None:
    """Name the present rows permanently, and print the id of this freeze."""
    with _opened(path, is_new=True) as archive, RowProgress("freeze") as progress:
        name = archive.freeze(progress=progress.update)
    if as_json:
        typer.echo(json.dumps({"id": name, "archive": f"{path}@{name}"}))
        return
    typer.echo(name)
    typer.echo(f"cite it as {path}@{name}, with the address where you publish {path}", err=True)


@archive_app.command()
def compact(
    path: ArchivePath,
    forget_after_hours: Annotated[
        int | None, typer.Option(min=0, help="Remove older files, too, unless a freeze needs them.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Merge the small files of many refreshes; other programs can read and write meanwhile."""
    with _opened(path) as archive, RowProgress("compact") as progress:
        fewer = archive.compact(forget_after_hours=forget_after_hours, progress=progress.update)
    text = f"{count_text(fewer, 'file')} fewer"
    typer.echo(json.dumps({"files_fewer": fewer}) if as_json else text)


@contextmanager
def _opened(path: str, *, is_new: bool = False) -> "Iterator[Archive]":
    """Open an archive, which may be new.

    Print an error of the block as one line and exit with code 2; code 1 is for the errors of
    `verify`.
    """
    from toolkit.archive.archive import open, open_existing
    from toolkit.errors import ToolkitError

    try:
        with console.print_warnings():
            yield open(path) if is_new else open_existing(path)
    except (ToolkitError, ValueError, TypeError, OSError) as error:
        fail(str(error), code=2)


def _refresh_all(
    archive: "Archive", requests: "Sequence[RefreshRequest]", session: "Session", as_json: bool
) -> None:
    """Refresh every series, and print a line for each. A failure does not stop other series.

    No request is sent if an argument is wrong. An error that every series would get ends the
    command at once, for example a refused key, a spent budget or a full disk.
    """
    from toolkit.archive.refresh import refresh_all
    from toolkit.errors import ArchiveError, ToolkitError

    type = requests[0].series.operation.type
    if "seed" in (session.world or {}):  # a simulated exchange has no other dexes
        for request in requests:
            if words := unknown_dex(request.series.parameters.get("dex"), session, is_empty=True):
                fail(f"{type}: {words}. Nothing was archived", code=2)
    failed: dict[str, ToolkitError] = {}
    remaining = len(requests)
    with RowProgress(f"archive {type}", len(requests)) as progress:
        session.progress = lambda _: progress
        try:
            for request, outcome in refresh_all(archive.tables, requests, session):
                remaining -= 1
                if isinstance(outcome, ToolkitError):
                    failed[request.series.name] = outcome
                else:
                    total = count_text(outcome.total, "row")
                    line = f"{request.series.name}: {outcome.rows:,} new, {total}"
                    typer.echo(json.dumps(asdict(outcome)) if as_json else line)
                    dex = request.series.parameters.get("dex")
                    if words := unknown_dex(dex, session, is_empty=not outcome.total):
                        failed[request.series.name] = ToolkitError(words)
                progress.finish_pull()
        except ArchiveError as error:  # nothing can be written
            failed[archive.tables.location] = error
            remaining -= 1
    for name, failure in failed.items():
        message = " ".join([str(failure), *getattr(failure, "__notes__", [])])
        typer.echo(f"toolkit: {name}: {console.plain_message(message)}", err=True)
    if failed:
        not_requested = f"; not requested: {remaining}" if remaining else ""
        fail(f"{len(failed)} of {len(requests)} failed{not_requested}")


def _check_calls(
    fetch: Any, calls: Sequence[tuple[Any, ...]], arguments: dict[str, Any], session: "Session"
) -> list["RefreshRequest"]:
    """Return the requests of the calls; wrong arguments end the command.

    They are checked first with the local time: `Session.now_ms` may send a request.
    """
    from toolkit.archive.refresh import prepare_refresh
    from toolkit.errors import ArchiveError, BadRequest

    for source in (None, session):
        now_ms = source.now_ms() if source else time.time_ns() // 1_000_000
        checked: dict[str, RefreshRequest] = {}
        errors = []
        for call in calls:
            try:
                request = prepare_refresh(fetch, call, arguments, now_ms, source)
                checked[request.series.name] = request
            except (BadRequest, ArchiveError) as error:
                errors.append(f"toolkit: {error}")
        if errors:
            fail("\n".join(errors).removeprefix("toolkit: "), code=2)
    return [*checked.values()]
