"""What `toolkit archive refresh` does: one series after the other, and what became of each."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from toolkit.cli.asking import is_repeatable
from toolkit.cli.options import fail

if TYPE_CHECKING:
    from toolkit.archive.archive import Archive
    from toolkit.client import Session
    from toolkit.contract.operations import Operation

__all__ = ["refresh_all"]

Call = tuple[Any, ...]


def refresh_all(
    archive: "Archive",
    operation: "Operation",
    subjects: Sequence[str],
    named: Mapping[str, Any],
    session: "Session",
    *,
    as_json: bool,
) -> None:
    """Refresh every subject, and say of each what came; a failure of one does not stop the others.

    Nobody is asked anything where one of them is wrong. What would fail for all of them, as a
    refused key, a spent budget or a full disk, ends it at once.
    """
    from toolkit.archive.errors import HistoryMismatch
    from toolkit.cli.bar import Overall
    from toolkit.errors import ArchiveError, ToolkitError
    from toolkit.fetch.many import FATAL_ERRORS
    from toolkit.fetch.registry import FUNCTIONS

    __import__("toolkit.fetch")  # fills FUNCTIONS
    fetch = FUNCTIONS[operation.type]
    calls = _checked(fetch, _calls(operation, subjects), named)
    failed: dict[str, ToolkitError] = {}
    left = len(calls)
    with Overall(f"archive {operation.type}", len(calls)) as shown:
        session.progress = shown.rows
        for series, call in calls.items():
            left -= 1
            try:
                done = archive.refresh(fetch, *call, session=session, **named)
            except ToolkitError as error:
                failed[series] = error
                for_all = isinstance(error, (*FATAL_ERRORS, ArchiveError))
                if for_all and not isinstance(error, HistoryMismatch):
                    break
            else:
                words = f"{done.operation} {done.subject}: {done.rows} new, {done.total} rows"
                typer.echo(json.dumps(asdict(done)) if as_json else words)
            shown.next()
    if failed:
        _say(failed, len(calls), left)


def _calls(operation: "Operation", subjects: Sequence[str]) -> list[Call]:
    """Give the arguments of each series: a subject each, or all of them where it takes many."""
    if subjects and operation.parameters and not is_repeatable(operation):
        return [(list(subjects),)]
    return [(one,) for one in subjects] or [()]


def _checked(
    fetch: Callable[..., Any], calls: Sequence[Call], named: Mapping[str, Any]
) -> dict[str, Call]:
    """Give the arguments by the name of their series; wrong ones end the command, all named."""
    from toolkit.archive.refresh import requested_series
    from toolkit.errors import ArchiveError, BadRequest

    checked, wrong = {}, []
    for call in calls:
        try:
            checked[requested_series(fetch, call, named).name] = call
        except (BadRequest, ArchiveError) as error:
            wrong.append(f"toolkit: {error}")
    if wrong:
        fail("\n".join(wrong).removeprefix("toolkit: "), code=2)
    return checked


def _say(failed: Mapping[str, Exception], asked: int, left: int) -> None:
    for series, error in failed.items():
        said = " ".join([str(error), *getattr(error, "__notes__", [])])
        typer.echo(f"toolkit: {series}: {said}", err=True)
    not_asked = f"; not asked for: {left}" if left else ""
    fail(f"{len(failed)} of {asked} failed{not_asked}")
