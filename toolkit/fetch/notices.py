"""Notices of a call: remarks in the provenance of its frames, and warnings to its caller."""

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import pandas as pd

from toolkit.completeness.headers import Completeness
from toolkit.completeness.remarks import (
    Remark,
    active_account_remark,
    clock_remarks,
    coverage_remarks,
    name_remarks,
    range_remarks,
)
from toolkit.contract.operations import Operation
from toolkit.contract.records import Fill
from toolkit.errors import HistoryWarning
from toolkit.fetch.request import Request
from toolkit.times import to_ms

__all__ = [
    "IncompleteWarning",
    "announce",
    "answer_remarks",
    "is_quiet",
    "pop_held_warning",
    "quiet_calls",
    "request_remarks",
    "warn_caller",
    "warn_incomplete",
]

_HELD_WARNING: Final = "not warned of"
"""Key in provenance, between a quiet call and the call that it works for."""


class IncompleteWarning(UserWarning):
    """Rows that were requested are missing from a frame; its provenance says why."""


def request_remarks(request: Request, *, has_start: bool = True) -> list[Remark]:
    """Return remarks about data that the service cannot have for the range of a request.

    Parameters
    ----------
    request : Request
        The request. Nothing is sent.
    has_start : bool, default True
        Whether the caller chose where the range begins. If not, gaps are noted without a warning.
    """
    return range_remarks(
        request.operation,
        request.parameters,
        request.asked_ms,
        simulated=request.session.simulated,
        has_start=has_start,
    )


def answer_remarks(request: Request, frames: Sequence[pd.DataFrame]) -> list[Remark]:
    """Return remarks about data that is, or may be, missing from an answer."""
    session, parameters = request.session, request.parameters
    remarks = []
    if request.operation.tables[0].record is Fill and not session.simulated:
        remarks.append(active_account_remark(_most_rows_of_account(frames[0])))
    if history := session.source.history:
        remarks.append(Remark(history, False))
    if covered := frames[0].attrs.get("toolkit", {}).get("covered"):
        until_ms = to_ms(covered[-1][1])
        remarks += coverage_remarks(until_ms, parameters.get("end"), session.now_ms())
    is_empty = not any(len(frame) for frame in frames)
    world = session.world if isinstance(session.world, Mapping) else {}
    remarks += name_remarks(parameters, world, is_empty=is_empty)
    if is_empty:
        service_ms = session.source.stated_now_ms()
        remarks += clock_remarks(parameters, request.asked_ms, service_ms, is_aged=request.is_aged)
    return remarks


def _most_rows_of_account(frame: pd.DataFrame) -> int:
    if "user" not in frame.columns:
        return len(frame)
    return int(frame["user"].value_counts().max()) if len(frame) else 0


def announce(
    operation: Operation, remarks: Sequence[Remark], frames: Sequence[pd.DataFrame] = ()
) -> str:
    """Write remarks into the provenance of frames, and issue one warning for those that warn.

    Returns
    -------
    str
        All remarks.
    """
    noted = "; ".join(remark.words for remark in remarks)
    if noted:
        for frame in frames:
            frame.attrs["toolkit"]["history"] = noted
    warning = "; ".join(remark.words for remark in remarks if remark.warns)
    if warning and is_quiet():
        for frame in frames:
            frame.attrs["toolkit"][_HELD_WARNING] = warning
    elif warning:
        warn_caller(f"{operation.function}: {warning}", HistoryWarning)
    return noted


def pop_held_warning(frame: pd.DataFrame) -> str:
    """Remove from a frame the warning that a quiet call did not issue, and return it."""
    warning: str = frame.attrs["toolkit"].pop(_HELD_WARNING, "")
    return warning


@contextmanager
def quiet_calls() -> Iterator[None]:
    """Let the calls of this thread issue no warning and show no bar: `tk.many` does it for all."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """Return whether this thread works for another call, which issues the warnings."""
    return _quiet.get()


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


def warn_incomplete(completeness: Completeness) -> None:
    """Warn the caller if the service states that rows are missing."""
    if completeness.missing_reason:
        warn_caller(f"incomplete: {completeness.missing_reason}", IncompleteWarning)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("toolkit"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
