"""From a call to a complete frame: the one engine behind every fetch function."""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from toolkit.client import Batch, Counts, Progress, Session, current_session, pages
from toolkit.contract.answer_types import Numbers
from toolkit.contract.operations import OPERATIONS, VIEWS, Operation
from toolkit.contract.requests import check_request, request_body
from toolkit.errors import Incomplete, ServiceError, ToolkitError
from toolkit.fetch.certificate import Tally
from toolkit.fetch.history import announce, is_quiet, of_answer, of_question, warn_caller
from toolkit.fetch.serves import operation_of
from toolkit.frames import Collector, Extra
from toolkit.times import to_iso, to_ms

__all__ = [
    "Extra",
    "IncompleteWarning",
    "Numbers",
    "OnIncomplete",
    "Question",
    "ask",
    "batches",
    "facts_of",
    "one_frame",
    "query",
    "query_frames",
    "question_of",
    "stopping",
]

OnIncomplete = Literal["raise", "warn"]
"""What to do where not every row can be had."""


class IncompleteWarning(UserWarning):
    """A frame does not hold every row that was asked for; its provenance says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """One call of a fetch function, checked, with its session.

    Attributes
    ----------
    operation : Operation
        What is asked.
    parameters : mapping
        Python name -> value, times in milliseconds, every default filled in.
    max_rows : int or None
        The most rows to return.
    on_incomplete : {"raise", "warn"}
        What to do where not every row can be had.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    session : Session
        Whom to ask.
    asked_ms : int
        The present when it was asked; 0 for an operation without times.
    extra : {"drop", "keep"}
        What becomes of fields that are not known.
    aged : bool
        Whether its range was given as an age, counted back from `asked_ms`.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    max_rows: int | None
    on_incomplete: OnIncomplete
    numbers: Numbers
    session: Session
    asked_ms: int
    aged: bool = False
    extra: Extra = "drop"


def query(operation: str, **arguments: Any) -> pd.DataFrame:
    """Answer a call whose answer is one frame; see `ask` for the arguments."""
    (frame,) = query_frames(operation, **arguments)
    return frame


def query_frames(operation: str, **arguments: Any) -> tuple[pd.DataFrame, ...]:
    """Answer a call whose answer is several frames, one per kind of record."""
    return _frames(ask(operation, **arguments))


def ask(
    operation: str | Operation,
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
    on_incomplete: OnIncomplete = "raise",
    **parameters: Any,
) -> Question:
    """Check a call before anything is sent.

    Parameters
    ----------
    operation : str or Operation
        The operation, by its ``type`` or the name of a view.
    numbers, extra, session, on_incomplete
        As in every fetch function.
    **parameters
        The operation's parameters in Python names, and `max_rows` of paged operations.

    Raises
    ------
    BadRequest
        If the service would refuse the request.
    NotConnected
        If there is no session.
    ValueError
        If `max_rows`, `numbers`, `extra` or `on_incomplete` is none that there is.
    """
    row = _operation(operation)
    max_rows = None if row.latest else parameters.pop("max_rows", None)
    _check_choice("numbers", numbers, ("float", "exact", "text"))
    _check_choice("extra", extra, ("drop", "keep"))
    _check_choice("on_incomplete", on_incomplete, ("raise", "warn"))
    if max_rows is not None and (
        type(max_rows) is bool or int(max_rows) != max_rows or max_rows < 1
    ):
        raise ValueError(f"max_rows must be a whole number from 1, or None, not {max_rows!r}")
    session = current_session(session)
    times = [one.python for one in row.parameters if one.kind == "time"]
    now = session.now_ms() if times else 0
    given = {name: parameters[name] for name in times if parameters.get(name) is not None}
    aged = any(to_ms(time, now_ms=0) != to_ms(time, now_ms=1) for time in given.values())
    parameters |= {name: to_ms(time, now_ms=now) for name, time in given.items()}
    checked = check_request(row, request_body(row, parameters))
    return Question(row, checked, max_rows, on_incomplete, numbers, session, now, aged, extra)


def question_of(
    fetch: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> Question:
    """Turn ``fetch(*arguments, **named)`` into a question, without asking it."""
    operation = operation_of(fetch)
    bound = inspect.signature(fetch).bind(*arguments, **named)
    bound.apply_defaults()
    return ask(operation, **bound.arguments)


def _operation(named: str | Operation) -> Operation:
    if isinstance(named, Operation):
        return named
    return VIEWS.get(named) or OPERATIONS[named]


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """Break off this thread's pulls at the next page once `stop` is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


def batches(question: Question, counts: Counts | None = None) -> Iterator[Batch]:
    """Give the pages of a question, each with the rows that are certain, up to `max_rows`."""
    left, stop = question.max_rows, _stop.get()
    for batch in pages(
        question.session, question.operation, question.parameters, question.numbers, counts
    ):
        if stop is not None and stop.is_set():
            raise Incomplete("the call was interrupted")
        if left is not None:
            rows = batch.tables[0]
            whole = batch.last and len(rows) <= left
            batch = replace(batch, tables=(rows[:left],), last=whole)
            left -= len(batch.tables[0])
        yield batch
        if left == 0:
            return


def _frames(question: Question) -> tuple[pd.DataFrame, ...]:
    """Ask, and give the frames with their certificate and what is known to be missing."""
    remarks = of_question(question)
    frames = _pulled(question)
    try:
        announce(question.operation, [*remarks, *of_answer(question, frames)], frames)
    except KeyboardInterrupt as interrupt:
        _hand_over(interrupt, frames)
        raise
    return frames


def _pulled(question: Question) -> tuple[pd.DataFrame, ...]:
    collector = Collector(question.operation, question.numbers, question.extra)
    tally = Tally(question.session.counting())
    try:
        with Progress(question.session, question.operation.type, hidden=is_quiet()) as progress:
            for batch in batches(question, tally.counts):
                before = collector.rows
                collector.add(batch.tables)
                tally.add(question.operation, batch)
                progress.add(collector.rows - before)
        tally.completeness.check_complete()  # only now, when all rows that there are have come
        return collector.frames(_provenance(question, tally))
    except ToolkitError as error:
        if tally.pages == 0 and not isinstance(error, Incomplete):
            raise
        return _incomplete(question, collector, tally, error)
    except KeyboardInterrupt as interrupt:
        why = {"complete": "no", "why": "interrupted"}
        _hand_over(interrupt, collector.frames(_provenance(question, tally) | why))
        raise


def _hand_over(interrupt: KeyboardInterrupt, frames: tuple[pd.DataFrame, ...]) -> None:
    interrupt.rows = frames[0] if len(frames) == 1 else frames  # type: ignore[attr-defined]
    interrupt.add_note(f"{len(frames[0])} rows were read before; they are on this as .rows")


def _incomplete(
    question: Question, collector: Collector, tally: Tally, error: ToolkitError
) -> tuple[pd.DataFrame, ...]:
    """Hand over the rows so far: on the error, or marked in the frame."""
    why = error.args[0] if isinstance(error, ServiceError) else str(error)
    frames = collector.frames(_provenance(question, tally) | {"complete": "no", "why": why})
    known = error.cursor if isinstance(error, Incomplete) else None
    cursor = known or tally.cursor
    go_on = f"; go on with cursor={cursor!r}" if cursor else ""
    message = (
        f"{error} [{collector.rows} rows were read before; they are on the error as .rows{go_on}]"
    )
    if question.on_incomplete == "raise":
        rows = frames[0] if len(frames) == 1 else frames
        raise Incomplete(message, rows=rows, cursor=cursor) from error
    warn_caller(f"incomplete: {error}", IncompleteWarning)
    return frames


def facts_of(question: Question) -> dict[str, Any]:
    """Say what was asked, of whom and when, as plain values."""
    return {
        "operation": question.operation.type,
        **({"view": question.operation.view} if question.operation.view else {}),
        "parameters": {k: v for k, v in question.parameters.items() if v is not None},
        "numbers": question.numbers,
        **({"extra": question.extra} if question.extra != "drop" else {}),
        "source": question.session.label,
        "simulated": question.session.simulated,
        "asked_at": to_iso(question.asked_ms or question.session.now_ms()),
    }


def one_frame(operation: Operation) -> None:
    """Refuse an operation whose answer is several frames.

    Raises
    ------
    TypeError
        With what to do instead.
    """
    if len(operation.tables) > 1:
        names = ", ".join(table.name for table in operation.tables)
        raise TypeError(
            f"{operation.function} gives several frames ({names}): call it directly, for each "
            "subject"
        )


def _provenance(question: Question, tally: Tally) -> dict[str, Any]:
    """Say where the rows of a question come from, and whether they are all of them."""
    return {
        **facts_of(question),
        "complete": _completeness(question, tally),
        **tally.certificate(),
    }


def _completeness(question: Question, tally: Tally) -> str:
    if question.operation.latest:
        return "latest"
    return "yes" if tally.is_whole else f"first {question.max_rows} rows"


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
