"""What a pull lacks and what it proves: remarks, and the certificate of its pages.

A remark is a sentence about data that the service cannot have. Specification, "Limits", data
availability. Provenance has remarks under ``history``. A remark that the caller may not expect is
also a `HistoryWarning`, once per call. The certificate has the counts of the pages, and the
evidence that all rows came.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from toolkit.completeness.checks import (
    BreakLog,
    HistoryChecks,
    PageColumns,
    check_answer,
    row_proof,
)
from toolkit.completeness.headers import Completeness
from toolkit.contract.dexes import ALL_DEXES, canonical_dex
from toolkit.contract.market_names import suggest_names
from toolkit.contract.operations import Operation
from toolkit.contract.paging import row_keys
from toolkit.contract.requests import INTERVALS, make_cursor, parse_cursor
from toolkit.times import DAY, HOUR, to_iso, to_ms

__all__ = [
    "Certificate",
    "Page",
    "Remark",
    "active_account_remark",
    "builder_remarks",
    "clock_remarks",
    "coverage_remarks",
    "date_remark",
    "first_row_remarks",
    "gap_remarks",
    "name_remarks",
    "range_remarks",
]

# ASSUMED: An account with 100,000 fills or more is one of the "very high-volume addresses" whose
# history may be incomplete. The specification states no number.
_VERY_ACTIVE: Final = 100_000

_OWN_ROWS: Final = {
    "builderApprovedFillsByTime": "tk.user_fills_by_time",
    "builderApprovedFundingByTime": "tk.user_funding",
}
"""Operation on the users of a builder -> the function for one account."""


@dataclass(frozen=True, slots=True)
class Page:
    """The certain rows of one page of an answer.

    Attributes
    ----------
    tables : tuple
        For each table of the operation its rows, or its columns by name.
    is_last : bool
        Whether all rows have come.
    completeness : Completeness
        What the service stated with the first page about the complete answer.
    content : bytes
        The body of the page as it came.
    first : int
        Position in the body of the first row.
    cursor : str or None
        The cursor after which to continue.
    ties : int
        How many ties at the end of a page were requested again, up to this page.
    """

    tables: tuple[Any, ...]
    is_last: bool
    completeness: Completeness
    content: bytes = field(default=b"[]", repr=False)
    first: int = 0
    cursor: str | None = None
    ties: int = 0

    def texts(self) -> list[bytes]:
        """Return the JSON text of each row, for an operation that answers with a list."""
        rows = msgspec.json.decode(self.content, type=list[msgspec.Raw])
        return [bytes(row) for row in rows[self.first : self.first + len(self.tables[0])]]


@dataclass(slots=True)
class Certificate:
    """What the pages of a pull show so far.

    Attributes
    ----------
    operation : Operation
        The operation of the request.
    parameters : mapping
        The parameters of the request, Python name -> value.
    pages : int
        How many pages were read.
    first, last : str or None
        Keys of the first and the last row, written as a cursor is.
    is_at_end : bool
        Whether the last page was read.
    completeness : Completeness
        What the service stated with the first page.
    breaks : BreakLog
        Where the rows contradict each other.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    pages: int = 0
    first: str | None = None
    last: str | None = None
    is_at_end: bool = False
    completeness: Completeness = field(default_factory=Completeness)
    breaks: BreakLog = field(default_factory=BreakLog)
    _page: Page | None = field(default=None, repr=False)
    _checks: HistoryChecks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._checks = HistoryChecks(self.operation, self.parameters)

    def add_page(self, page: Page, tables: Sequence[PageColumns]) -> None:
        """Count a page, check its rows, and keep the evidence that it brings.

        Parameters
        ----------
        page : Page
            The page.
        tables : sequence of mapping
            The columns of each of its tables.
        """
        if self.operation.key:
            self.breaks.add(self._checks.add_page(tables[0]))
        elif not self.operation.binary:
            self.breaks.add(list(check_answer(self.operation, self.parameters, tables)))
        self.pages += 1
        self.is_at_end = page.is_last
        self.completeness = page.completeness
        self._page = page
        rows = page.tables[0]
        if self.operation.key and not self.operation.binary and len(rows):
            first, last = row_keys(self.operation, [rows[0], rows[-1]])
            self.first = self.first or make_cursor(first)
            self.last = make_cursor(last)

    @property
    def resume_cursor(self) -> str | None:
        """The cursor from which to go on; None if there is none, or if earlier rows are missing."""
        if self._page is None or self.completeness.missing_reason or self.breaks.reason:
            return None
        return self._page.cursor

    def facts(self, counts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the certificate as plain values for provenance.

        Parameters
        ----------
        counts : mapping
            Requests, points, retries and waits of the pull.
        """
        covered = self.completeness.covered
        proof = row_proof(self.operation, self.parameters)._asdict() if self.operation.key else {}
        return {
            **({"covered": [tuple(map(to_iso, covered))]} if covered else {}),
            **proof,
            **self.breaks.facts(),
            "pages": self.pages,
            "ties": self._page.ties if self._page else 0,
            "first": self.first,
            "last": self.last,
            **counts,
        }


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about data that the service cannot have.

    Attributes
    ----------
    words : str
        The sentence.
    warns : bool
        Whether it is a warning, too, or only a note in provenance.
    """

    words: str
    warns: bool


def gap_remarks(gaps: Sequence[str]) -> list[Remark]:
    """Return a remark about places where rows may be missing or repeated.

    Examples
    --------
    >>> gap_remarks(["BTC at noon came twice", "ETH at noon came twice"])[0].words
    'rows may be missing or repeated: BTC at noon came twice; and 1 more, under gaps in provenance'
    """
    if not gaps:
        return []
    more = f"; and {len(gaps) - 1} more, under gaps in provenance" if len(gaps) > 1 else ""
    return [Remark(f"rows may be missing or repeated: {gaps[0]}{more}", True)]


def range_remarks(
    operation: Operation,
    parameters: Mapping[str, Any],
    now_ms: int,
    *,
    simulated: bool,
    has_start: bool = True,
) -> list[Remark]:
    """Return remarks about data that the service cannot have for this range.

    Parameters
    ----------
    operation : Operation
        The operation of the request.
    parameters : mapping
        Its parameters, Python name -> value.
    now_ms : int
        The present at the time of the request.
    simulated : bool
        Whether the service is the simulated exchange, which has no gaps.
    has_start : bool, default True
        Whether the caller chose where the range begins. If not, gaps are noted without a warning.
    """
    if not any(parameter.python == "start" for parameter in operation.parameters):
        return []
    end = now_ms if parameters.get("end") is None else parameters["end"]
    if parameters.get("cursor"):
        start, has_start = int(parse_cursor(operation, parameters["cursor"])[0]), False
    else:
        start = parameters.get("start") or 0
    remarks, since = [], operation.since
    if has_start and since and start < to_ms(since):
        requested = f" ({to_iso(start)})" if start else ""
        words = f"the requested start{requested} precedes the first available day ({since})"
        remarks.append(Remark(words, start != 0))
    if start > now_ms:
        words = f"the requested range begins at {to_iso(start)}, after the present"
        remarks.append(Remark(f"{words} ({to_iso(now_ms)})", True))
    elif has_start and start > end:
        words = f"the requested range ends at {to_iso(end)}, before it begins ({to_iso(start)})"
        remarks.append(Remark(words, True))
    if not simulated:  # of known gaps, only a caller who chose a start is warned
        remarks += [
            Remark(gap.words, has_start and start > 0)
            for gap in operation.gaps
            if start < to_ms(gap.last) + DAY and end >= to_ms(gap.first)
        ]
    return remarks


def active_account_remark(most_fills: int) -> Remark:
    """Return the remark that fills of very active accounts may be missing.

    Parameters
    ----------
    most_fills : int
        The number of fills that came of one account: of the account with the most fills.
    """
    words = "some fills may be missing: the fills of some very active accounts are not complete"
    if most_fills < _VERY_ACTIVE:
        return Remark(words, False)
    return Remark(f"{words}; one account has {most_fills:,} fills here", True)


def coverage_remarks(until_ms: int, end_ms: int | None, now_ms: int) -> list[Remark]:
    """Return a remark if an archive has a history only up to a time before its present.

    Parameters
    ----------
    until_ms : int
        Up to when the history is complete.
    end_ms : int or None
        The end of the requested range; None if the request has no end.
    now_ms : int
        The present of the archive.
    """
    if until_ms >= (now_ms if end_ms is None else min(now_ms, end_ms)):
        return []
    words = (
        f"the archive has this history up to {to_iso(until_ms)} only, and its present is "
        f"{to_iso(now_ms)}; refresh the archive to get the rows in between"
    )
    # A refresh of many histories takes minutes, so their ends differ by minutes without a gap.
    return [Remark(words, now_ms - until_ms > HOUR)]


def name_remarks(
    parameters: Mapping[str, Any],
    world: Mapping[str, Any],
    *,
    is_empty: bool,
    lists_markets: bool = False,
) -> Iterator[Remark]:
    """Yield a remark if the requested dex does not exist, as far as that is known.

    Parameters
    ----------
    parameters : mapping
        Parameters of the request, Python name -> value.
    world : mapping
        What a local service contains; empty for any other service. Only a simulated world, which
        has a seed, lists every name: recordings and archives have rows of further names.
    is_empty : bool
        Whether no row came. True also for the state of an account: it is no evidence that a dex
        exists, because for a dex that does not exist, every amount of the state is 0.
    lists_markets : bool, default False
        Whether the answer lists the markets of a dex, so that it has rows if the dex exists.
    """
    if not is_empty and "seed" not in world:
        return
    value, known = parameters.get("dex"), world.get("dexes")
    if not isinstance(value, str) or canonical_dex(value) in ("", ALL_DEXES):
        return
    if not known and is_empty:
        yield Remark(f"no rows came; the service may not know the dex {value!r}", lists_markets)
    elif known and canonical_dex(value) not in known:
        yield Remark(f"there is no dex {value!r}; {suggest_names(value, known)}", True)


def first_row_remarks(parameters: Mapping[str, Any], first: str, last: str) -> list[Remark]:
    """Return a remark if rows of intervals begin after the requested start.

    Parameters
    ----------
    parameters : mapping
        Parameters of the request, Python name -> value.
    first, last : str
        The times of the first and the last row, in Unix milliseconds.
    """
    start = parameters["start"]
    lead = int(first) - start
    if lead <= INTERVALS[parameters["interval"]]:
        return []
    words = (
        f"the rows begin at {to_iso(int(first))}, after the requested start: nothing was traded "
        "before, or the service does not keep older rows of this interval"
    )
    return [Remark(words, start != 0 and lead > (int(last) - start) / 10)]


def builder_remarks(type: str) -> Iterator[Remark]:
    """Yield a remark if no row came of the users of a builder: the address may be a user's."""
    if own := _OWN_ROWS.get(type):
        yield Remark(
            "no rows came of users of this builder; if the address is an account, "
            f"{own} has its rows",
            False,
        )


def date_remark(end: int) -> Remark:
    """Return a remark about an empty range whose end is a date, which may mean the whole day."""
    day = to_iso(end)[:10]
    return Remark(
        f"no rows came, and the range ends where {day} begins: a date means 00:00 UTC. Pass the "
        f"next day as the end to include {day}",
        True,
    )


def clock_remarks(
    parameters: Mapping[str, Any], asked_ms: int, service_ms: int | None, *, is_aged: bool
) -> list[Remark]:
    """Return a remark on an empty answer if the range was counted from another present.

    Parameters
    ----------
    parameters : mapping
        Parameters of the request, Python name -> value.
    asked_ms : int
        The present from which the range was counted.
    service_ms : int or None
        The present of the service; None if it states none.
    is_aged : bool
        Whether the range was given as an age, such as ``"7d"``.
    """
    if service_ms is None or abs(service_ms - asked_ms) <= DAY:
        return []
    start = parameters.get("start") or 0
    if not (is_aged or service_ms < start <= asked_ms):
        return []
    return [
        Remark(
            f"no rows came. The range was counted from {to_iso(asked_ms)}, but the service's "
            f"present is {to_iso(service_ms)}. Pass dates before it. Or repeat the call: an age "
            "then counts from the service's present (unless now_ms of the session is set)",
            True,
        )
    ]
