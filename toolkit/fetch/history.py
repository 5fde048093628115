"""What the service does not have, or may not have: said with the rows.

Specification, "Limits", data availability. The facts stand in provenance as ``history``; what
somebody may not expect is a `HistoryWarning` as well, once per call.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from toolkit.contract.dexes import ALL_DEXES, canonical_dex, strip_native_dex
from toolkit.contract.operations import Operation
from toolkit.contract.requests import parse_cursor
from toolkit.errors import HistoryWarning
from toolkit.times import DAY, HOUR, to_iso, to_ms

if TYPE_CHECKING:
    from toolkit.fetch.query import Question

__all__ = [
    "Remark",
    "announce",
    "held_back",
    "is_quiet",
    "of_answer",
    "of_coverage",
    "of_question",
    "quietly",
    "warn_caller",
]

_HELD_BACK: Final = "not warned of"

_FILLS: Final = ("userFills", "userFillsByTime", "builderApprovedFillsByTime")
# ASSUMED: an account with so many fills is one of the "very high-volume addresses" whose history
# may be incomplete; the specification names no number.
_VERY_ACTIVE: Final = 100_000


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a caller should know of the rows.

    Attributes
    ----------
    words : str
        What it is.
    warns : bool
        Whether it is worth a warning, or only a note in provenance.
    """

    words: str
    warns: bool


@dataclass(frozen=True, slots=True)
class _Gap:
    """Days, both inclusive, of which the service lacks some rows."""

    operations: tuple[str, ...]
    first: str
    last: str
    words: str


# Specification, "Data availability".
_GAPS: Final = (
    _Gap(
        ("userFillsByTime", "builderApprovedFillsByTime"),
        "2025-07-28",
        "2025-08-01",
        "TWAP fills from before 2025-08-02 are missing",
    ),
    _Gap(
        ("builderOrdersByTime",),
        "2025-08-07",
        "2025-11-04",
        "orders before 2025-11-05 may be missing: of users with more than 100,000 orders between "
        "2025-08-07 and 2025-11-04 the service keeps only the last 100,000",
    ),
)


def of_question(question: "Question", *, told: bool = True) -> list[Remark]:
    """Say what the range of a question, seen before anything is asked, must lack.

    Parameters
    ----------
    question : Question
        What is asked.
    told : bool, default True
        Whether the caller said where the range begins; else what it lacks is only noted.
    """
    span = _span(question, told)
    return [] if span is None else [*_outside(question, *span), *_in_gaps(question, *span)]


def of_answer(question: "Question", frames: Sequence[pd.DataFrame]) -> list[Remark]:
    """Say what the answer to a question makes known or leaves open."""
    remarks = []
    if question.operation.type in _FILLS and not question.session.simulated:
        most = _most_rows_of_one(frames[0])
        some = "may be missing: the fills of some very active accounts are not complete"
        known = f"; {most:,} fills of one account came" if most >= _VERY_ACTIVE else ""
        remarks.append(Remark(some + known, bool(known)))
    if said := question.session.source.history:
        remarks.append(Remark(said, False))
    if covered := frames[0].attrs.get("toolkit", {}).get("covered"):
        end, now = question.parameters.get("end"), question.session.now_ms()
        remarks += of_coverage(to_ms(covered[-1][1]), end, now)
    empty = not any(len(frame) for frame in frames)
    remarks += _of_names(question, empty)
    if empty:
        remarks += _of_another_present(question)
    return remarks


def of_coverage(until_ms: int, end_ms: int | None, now_ms: int) -> list[Remark]:
    """Of an archive that has a history only up to some time before its present: say so.

    Parameters
    ----------
    until_ms, end_ms : int
        Up to when it has it, and up to when it was asked for; None for all there is.
    now_ms : int
        The archive's present.
    """
    if until_ms >= (now_ms if end_ms is None else min(now_ms, end_ms)):
        return []
    words = (
        f"the archive has this history up to {to_iso(until_ms)} only, and its present is "
        f"{to_iso(now_ms)}: what came in between is there once it is refreshed"
    )
    # Histories that are refreshed one after the other are minutes apart.
    return [Remark(words, now_ms - until_ms > HOUR)]


def announce(
    operation: Operation, remarks: Sequence[Remark], frames: Sequence[pd.DataFrame] = ()
) -> str:
    """Note the remarks in the frames' provenance, and warn of what is worth it, once a call.

    Returns
    -------
    str
        All of them.
    """
    noted = "; ".join(one.words for one in remarks)
    if noted:
        for frame in frames:
            frame.attrs["toolkit"]["history"] = noted
    said = "; ".join(one.words for one in remarks if one.warns)
    if said and _quiet.get():
        for frame in frames:
            frame.attrs["toolkit"][_HELD_BACK] = said
    elif said:
        warn_caller(f"{operation.function}: {said}", HistoryWarning)
    return noted


def held_back(frame: pd.DataFrame) -> str:
    """Take out of a frame what a call that was made `quietly` did not warn of."""
    said: str = frame.attrs["toolkit"].pop(_HELD_BACK, "")
    return said


@contextmanager
def quietly() -> Iterator[None]:
    """Let this thread announce nothing and show no bar: one call for many does, for all."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """Whether this thread works for a call that speaks for it."""
    return _quiet.get()


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("toolkit"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def _span(question: "Question", told: bool) -> tuple[int, int, bool] | None:
    """Give the range asked for, and whether it begins where it was told to, not at a cursor."""
    named = {one.python for one in question.operation.parameters}
    if "start" not in named:
        return None
    asked = question.parameters
    now = question.asked_ms
    end = now if asked.get("end") is None else asked["end"]
    if asked.get("cursor"):
        return int(parse_cursor(question.operation, asked["cursor"])[0]), end, False
    return asked.get("start") or 0, end, told


def _outside(question: "Question", start: int, end: int, told: bool) -> Iterator[Remark]:
    """Compare the range with the days that the service has, and with the present."""
    since, now = question.operation.since, question.asked_ms
    if told and since and start < to_ms(since):
        begins = f"the range begins {to_iso(start)}" if start > 0 else "all was asked for"
        yield Remark(
            f"{begins}, and the service has data from {since} on: nothing before can come",
            start > 0,
        )
    if start > now:
        yield Remark(f"the range begins {to_iso(start)}, after the present, {to_iso(now)}", True)
    elif told and start > end:
        yield Remark(f"the range ends {to_iso(end)}, before it begins, {to_iso(start)}", True)


def _in_gaps(question: "Question", start: int, end: int, told: bool) -> Iterator[Remark]:
    """Say which rows of the range the service may lack; the simulated exchange lacks none.

    Whoever asks for all there is, or goes on from a cursor, gets a note and no warning.
    """
    if question.session.simulated:
        return
    for gap in _GAPS:
        within = start < to_ms(gap.last) + DAY and end >= to_ms(gap.first)
        if question.operation.type in gap.operations and within:
            yield Remark(gap.words, told and start > 0)


def _most_rows_of_one(frame: pd.DataFrame) -> int:
    if "user" not in frame.columns:
        return len(frame)
    return int(frame["user"].value_counts().max()) if len(frame) else 0


def _of_names(question: "Question", empty: bool) -> Iterator[Remark]:
    """Say whether the coin or dex is unknown, as far as can be told for free.

    Accounts have a state, all of it 0, on a dex that is not there either. Recordings and archives
    have no seed, and do not list every name that they have rows of.
    """
    world = question.session.world if isinstance(question.session.world, Mapping) else {}
    if not empty and "seed" not in world:
        return
    for name, known in (("coin", world.get("perp_coins")), ("dex", world.get("dexes"))):
        value = question.parameters.get(name)
        if not isinstance(value, str) or canonical_dex(value) in ("", ALL_DEXES):
            continue
        if not known and empty:
            words = f"no rows: a {name} {value!r} that the service does not know gives none either"
            yield Remark(words, False)
        elif known and strip_native_dex(canonical_dex(value)) not in known:
            yield Remark(f"there is no {name} {value!r}{_instead(value, known)}", True)


def _of_another_present(question: "Question") -> Iterator[Remark]:
    """Of an empty answer: whether the range was counted from another present than the service's."""
    told, asked = question.session.source.told_now_ms(), question.asked_ms
    if told is None or abs(told - asked) <= DAY:
        return
    start = question.parameters.get("start") or 0
    if question.aged or told < start <= asked:
        yield Remark(
            f"no rows: the range was counted from {to_iso(asked)}, and the present of the service "
            f"is {to_iso(told)}; ask for dates before that, or again with an age, which counts "
            "from there unless the session was given another now_ms",
            True,
        )


def _instead(name: str, names: Sequence[str], most: int = 8) -> str:
    """Name the one that differs in case or dex alone, else some of them."""
    bare = name.rpartition(":")[2].casefold()
    if alike := [one for one in names if one.rpartition(":")[2].casefold() == bare]:
        return f"; did you mean {' or '.join(map(repr, alike))}?"
    shown = ", ".join(repr(name) for name in names[:most])
    return f": there are {shown}" + (", ..." if len(names) > most else "")
