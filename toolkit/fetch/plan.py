"""What a call will cost, before it is made."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from toolkit.contract.costs import request_points
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import Operation
from toolkit.contract.requests import request_body
from toolkit.fetch.pages import read_pages
from toolkit.fetch.request import Request, request_of
from toolkit.times import DAY, MINUTE

__all__ = ["Plan", "plan"]

# The pages of a probe must span at least a fiftieth of the range to tell how dense the rest is.
_LEAST_SHARE = 50
# Rows that come at fixed times, every so often from some moment: the range tells their number.
# Weeks begin on Mondays, and the first Monday was the fifth of January 1970.
_GRID = {"slippageHistory": (15 * MINUTE, 0), "validatorAprHistory": (7 * DAY, 4 * DAY)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call will cost.

    Attributes
    ----------
    operation : str
        Type of the operation.
    rows : int or None
        Rows to expect; None where nothing is known without a probe.
    requests, points : int
        Requests and points to expect; at least so many where `rows` is not known. Requests that
        fail and are sent again come on top.
    minutes : float or None
        Time that it takes: the waits that points_per_minute makes, and with a probe the time of
        the requests, as that of the first. None where neither is known.
    sure : str
        How sure this is: ``exact``, ``likely``, ``at most``, ``at least``.
    why : str
        What that rests on.
    """

    operation: str
    rows: int | None
    requests: int
    points: int
    minutes: float | None
    sure: str
    why: str = ""

    def __str__(self) -> str:
        rows = "an unknown number of" if self.rows is None else f"{self.rows:,}"
        time = "" if self.minutes is None else f", {self.minutes:,.1f} minutes"
        return (
            f"{self.operation}: {rows} rows, {self.requests:,} requests, "
            f"{self.points:,} points{time} ({self.sure}: {self.why})"
        )

    def _repr_html_(self) -> str:
        """Give a small table, for notebooks."""
        unknown = "unknown"
        cells = {
            "operation": self.operation,
            "rows": unknown if self.rows is None else f"{self.rows:,}",
            "requests": f"{self.requests:,}",
            "points": f"{self.points:,}",
            "minutes": unknown if self.minutes is None else f"{self.minutes:,.1f}",
            "sure": f"{self.sure}: {self.why}",
        }
        rows = "".join(
            f'<tr><th scope="row">{name}</th><td>{escape(value)}</td></tr>'
            for name, value in cells.items()
        )
        return f"<table><caption>What the call will cost</caption><tbody>{rows}</tbody></table>"


def plan(fetch: Callable[..., Any], *arguments: Any, probe: bool = False, **named: Any) -> Plan:
    """Say what a call will cost, without making it.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    *arguments, **named
        What it would be called with.
    probe : bool, default False
        Whether to ask for the first page, and where that is not all for one from the middle of
        the rest, which costs points, and reckon from how dense that is. Pages of less than a
        fiftieth of the range tell too little: then the plan says ``at least``.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> made = tk.plan(tk.slippage_history, "BTC", 1_000, "2025-09-30", "2025-10-01")
    >>> made.rows, made.requests, made.points, made.sure
    (97, 2, 20, 'at most')
    """
    request = request_of(fetch, arguments, named)
    operation = request.operation
    if operation.latest:
        most = request.parameters["max_rows"]
        return _priced(request, most, 1, "at most", "one request for the latest rows")
    if operation.paging == "none":
        return _priced(request, None, 1, "exact", "one request, however many rows it gives")
    start = request.parameters.get("start")
    from_newest = operation.paging == "backward"  # where a probe does not tell the first row
    if operation.type in _GRID and start is not None and (from_newest or not probe):
        return _on_grid(request, start)
    if not probe:
        return _priced(request, None, 1, "at least", "nothing was asked; probe=True tells more")
    return _probed(request)


def _probed(request: Request) -> Plan:
    """Reckon from the first page, and from how dense the rows are in the middle of the rest."""
    clock = request.session.retry.clock
    begun = clock()
    page = next(read_pages(request))
    took = clock() - begun
    rows, lacks = len(page.tables[0]), page.completeness.missing_reason
    if page.is_last and not lacks:
        requests = _requests(request.operation, request, rows)
        return _priced(request, rows, requests, "exact", "the first page has all", took)
    if request.max_rows is not None and rows >= request.max_rows:
        return _priced(request, rows, 1, "exact", "the first page has max_rows", took)
    if lacks or not rows or request.operation.paging == "backward":
        why = lacks or "the first page is not all"
        return _priced(request, None, 2, "at least", why, took)
    first, last = (_time(request.operation, page.tables[0][at]) for at in (0, -1))
    if request.operation.type in _GRID:
        return _on_grid(request, first, took)
    now = request.session.now_ms()
    end = min(request.parameters.get("end") or now, now)
    many, span = rows, last - first
    seen = span
    # Where nobody says how much a page holds, a short one may be all: then the first must do.
    if request.operation.page is not None and last < end:
        many, span = _in_the_middle(request, last, end)
        seen += span
    share = seen / max(end - first, 1)
    if share * _LEAST_SHARE < 1 or span <= 0:
        why = "the pages that were asked for span less than a fiftieth of the range"
        return _priced(request, None, 2, "at least", why, took)
    expected = rows + math.ceil(many * (end - last) / span)
    if request.max_rows is not None:
        expected = min(expected, request.max_rows)
    requests = _requests(request.operation, request, expected)
    why = f"if all is as dense as what was asked for, {100 * share:.0f} % of the range"
    return _priced(request, expected, requests, "likely", why, took)


def _in_the_middle(request: Request, start: int, end: int) -> tuple[int, int]:
    """Give the rows of one page from the middle of a range, and how many milliseconds it spans.

    What grows evenly, as the accounts of a builder do, is there as dense as on the average.
    """
    middle = (start + end) // 2
    asked = {name: one for name, one in request.parameters.items() if name != "cursor"}
    asked["start"] = middle
    page = next(read_pages(replace(request, parameters=asked, max_rows=None)))
    rows = page.tables[0]
    if not rows and not page.is_last:  # one moment fills the page: it tells nothing of the rest
        return 0, 0
    return len(rows), (end if page.is_last else _time(request.operation, rows[-1])) - middle


def _time(operation: Operation, row: Any) -> int:
    time: int = getattr(row, operation.key[0])
    return time


def _on_grid(request: Request, start: int, took: float = 0.0) -> Plan:
    """Count the fixed times at which rows stand, some of which may be missing."""
    step, offset = _GRID[request.operation.type]
    now, end = request.session.now_ms(), request.parameters.get("end")
    last = now if end is None else min(end, now)
    rows = max((last - offset) // step - -(-(start - offset) // step) + 1, 0)
    rows = rows if request.max_rows is None else min(rows, request.max_rows)
    why = "rows stand at fixed times, and some may be missing"
    requests = _requests(request.operation, request, rows)
    return _priced(request, rows, requests, "at most", why, took)


def _requests(operation: Operation, request: Request, rows: int) -> int:
    """Pages, the group at each page's end read again; paging by time asks once more."""
    page = operation.page
    if page is None:
        return 2
    size: int = request.parameters[page.python]
    if operation.paging == "cursor":
        return max(math.ceil((rows + 1) / max(size - 1, 1)), 1)
    return math.ceil(rows / max(size - 1, 1)) + (1 if rows else 0) or 1


def _priced(
    request: Request, rows: int | None, requests: int, sure: str, why: str, took: float = 0.0
) -> Plan:
    operation, session = request.operation, request.session
    body = request_body(operation, request.parameters)
    cost, per_minute = request_points(operation, body, session.dexes), session.budget.per_minute
    scale, limit = operation.scale, operation.limit
    if scale is not None and body.get(scale.dex) == ALL_DEXES:
        sure, why = "at most", f"{why}; counted for {session.dexes} dexes"
    if limit is not None:
        why += f"; it may be asked {limit.calls} times in {limit.seconds // 60} minutes"
    minutes = None if per_minute is None and not took else requests * took / 60
    if per_minute is not None and minutes is not None:
        if cost > per_minute:
            why += f"; but one request costs {cost} points, more than points_per_minute"
            minutes = None
        else:
            minutes += (requests - 1) // (per_minute // cost)
    return Plan(operation.type, rows, requests, requests * cost, minutes, sure, why)
