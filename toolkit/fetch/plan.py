"""The plan of a call: what it will cost, before it is made."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import Grid
from toolkit.contract.paging import time_windows
from toolkit.contract.requests import request_body, request_points, row_points
from toolkit.display import count_text, facts_table
from toolkit.fetch.pull import Request, read_pages, request_of
from toolkit.public_names import publish_as

Estimate = tuple[int | None, int, str, str, float]
"""Rows, requests, how sure they are, why, and the seconds of one request if it was measured."""


@publish_as("toolkit")
@dataclass(frozen=True, slots=True)
class Plan:
    """What a call will cost.

    Attributes
    ----------
    operation : str
        Type of the operation.
    rows : int or None
        Expected rows; None if nothing is known without a probe.
    requests, points : int
        Expected requests and points; at least so many if `rows` is not known. Requests that fail
        and are sent again are not included.
    minutes : float or None
        Expected time: the waits of points_per_minute, and with a probe the time of the requests,
        each like the first. None if neither is known.
    sure : str
        How sure the plan is: ``exact``, ``likely``, ``at most``, ``at least``.
    why : str
        What the plan is based on.
    tokens, usd : float or None
        Expected tokens of the month, and their price in USD; None if the source has no such meter.
    """

    operation: str
    rows: int | None
    requests: int
    points: int
    minutes: float | None
    sure: str
    why: str = ""
    tokens: float | None = None
    usd: float | None = None

    def __str__(self) -> str:
        rows = "an unknown number of rows" if self.rows is None else count_text(self.rows, "row")
        time = "" if self.minutes is None else f", {self.minutes:,.1f} minutes"
        name = "token" if self.tokens == 1 else "tokens"
        price = "" if self.usd is None else f", {self.tokens:,.6g} {name} ({self.usd:,.4f} USD)"
        return (
            f"{self.operation}: {rows}, {count_text(self.requests, 'request')}, "
            f"{count_text(self.points, 'point')}{time}{price} ({self.sure}: {self.why})"
        )

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        unknown, minutes = "unknown", self.minutes
        facts = {
            "operation": self.operation,
            "rows": unknown if self.rows is None else self.rows,
            "requests": self.requests,
            "points": self.points,
            "minutes": unknown if minutes is None else f"{minutes:,.1f}",
        }
        if self.tokens is not None:
            facts |= {"tokens": f"{self.tokens:,.6g}", "USD": f"{self.usd:,.4f}"}
        return facts_table("What the call will cost", facts | {"sure": f"{self.sure}: {self.why}"})


@publish_as("toolkit")
def plan(
    fetch: Callable[..., object], *arguments: object, probe: bool = False, **named: object
) -> Plan:
    """Return what a call will cost, without making it.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    *arguments, **named
        The arguments of the fetch function.
    probe : bool, default False
        Whether to fetch the first page and, if it does not have all rows, the second one. Both cost
        points. The plan then assumes that the rest is as dense. If the pages span less than a
        fiftieth of the range, they show too little, and the plan says ``at least``.

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
    operation, session = request.operation, request.session
    rows, requests, sure, why, seconds = _estimate(request, probe=probe)
    body = request_body(operation, request.parameters)
    sent = operation.most_rows if operation.paging == "none" else rows or 0
    points = requests * request_points(operation, body, session.dexes)
    points += row_points(operation, sent)
    cost, per_minute = math.ceil(points / requests), session.budget.per_minute
    if operation.user_points and body.get("dex") == ALL_DEXES:
        sure, why = "at most", f"{why}; counted for {session.dexes} dexes"
    if (limit := operation.limit) is not None:
        why += f"; it can be requested {limit.calls} times in {limit.seconds // 60} minutes"
    minutes = requests * seconds / 60 if seconds else None
    if per_minute is not None and cost > per_minute:
        why += f"; but one request costs {cost} points, more than points_per_minute"
        minutes = None
    elif per_minute is not None:
        minutes = (minutes or 0.0) + (requests - 1) // (per_minute // cost)
    tokens = session.api.tokens(operation.type, requests)
    usd = None if tokens is None else session.api.token_usd(tokens)
    return Plan(operation.type, rows, requests, points, minutes, sure, why, tokens, usd)


def _estimate(request: Request, *, probe: bool) -> Estimate:
    """Estimate from the request, or from its first pages."""
    operation, start = request.operation, request.parameters.get("start")
    if operation.latest:
        most = request.parameters.get("max_rows") or request.max_rows or operation.most_rows
        return most, 1, "at most", "one request for the latest rows", 0.0
    if operation.paging == "none":
        sure = "at most" if operation.row_points else "exact"
        return None, 1, sure, "one request, however many rows come", 0.0
    if operation.paging == "windows":
        count = len(time_windows(operation, request.parameters, request.asked_ms))
        return None, count, "exact", f"one request for each {operation.most_rows:,} intervals", 0.0
    is_backward = operation.paging == "backward"  # then a probe does not show the first row
    if operation.grid is not None and start is not None and (is_backward or not probe):
        return _count_grid(request, operation.grid, start)
    if not probe:
        return None, 1, "at least", "nothing was fetched; probe=True shows more", 0.0
    return _probe(request)


def _probe(request: Request) -> Estimate:
    """Estimate from the density of the rows of the first two pages."""
    clock, operation = request.session.retry.clock, request.operation
    counts, begun = request.session.new_counts(), clock()
    pages = list(itertools.islice(read_pages(request, counts), 2))
    sent = max(counts.requests - counts.causes.total(), 1)
    seconds = (clock() - begun) / sent
    rows = [row for page in pages for row in page.tables[0]]
    missing_reason, most = pages[0].completeness.missing_reason, request.max_rows or math.inf
    if (not missing_reason and pages[-1].is_last) or len(rows) >= most:
        why = f"the first {count_text(len(pages), 'page')} have all rows"
        return len(rows), sent, "exact", why, seconds
    if missing_reason or not rows or operation.paging == "backward":
        why = missing_reason or "the first pages do not have all rows"
        return None, sent + 1, "at least", why, seconds
    first, last = (getattr(rows[at], operation.key[0]) for at in (0, -1))
    if operation.grid is not None:
        return _count_grid(request, operation.grid, first, seconds)
    now = request.session.now_ms()
    end = min(request.parameters.get("end") or now, now)
    share = (last - first) / max(end - first, 1)
    if share < 1 / 50 or last == first:
        why = "the first pages span less than a fiftieth of the range"
        return None, sent + 1, "at least", why, seconds
    expected = int(min(math.ceil(len(rows) / share), most))
    why = f"if the rest has as many rows per time as the first {100 * share:.0f} % of the range"
    return expected, max(_count_requests(request, expected), sent), "likely", why, seconds


def _count_grid(request: Request, grid: Grid, start: int, seconds: float = 0.0) -> Estimate:
    """Count the fixed times of rows; rows at some of them may be missing."""
    now = request.session.now_ms()
    last = min(request.parameters.get("end") or now, now)
    rows = max((last - grid.offset) // grid.step - -(-(start - grid.offset) // grid.step) + 1, 0)
    rows = int(min(rows, request.max_rows or math.inf))
    why = "rows have fixed times, and some rows may be missing"
    return rows, _count_requests(request, rows), "at most", why, seconds


def _count_requests(request: Request, rows: int) -> int:
    """Return the number of pages: ties are read again, and the end is confirmed."""
    page = request.operation.page
    if page is None and not request.operation.most_rows:
        return 2
    size: int = request.parameters[page.python] if page else request.operation.most_rows
    if request.operation.paging != "cursor":
        return math.ceil(rows / max(size - 1, 1)) + (1 if rows else 0) or 1
    pages = max(math.ceil((rows + 1) / max(size - 1, 1)), 1)
    confirm_end = request.session.confirm_end
    return pages + (pages > 1 if confirm_end is None else confirm_end)
