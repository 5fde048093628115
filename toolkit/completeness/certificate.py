"""The certificate of a pull: the counts and the evidence that its rows are complete."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from toolkit.completeness.answer_checks import check_answer
from toolkit.completeness.headers import Completeness
from toolkit.completeness.row_checks import BreakLog, HistoryChecks, PageColumns, row_proof
from toolkit.contract.operations import Operation
from toolkit.contract.paging import PageReader, key_getter
from toolkit.contract.requests import make_cursor
from toolkit.times import to_iso

__all__ = ["SUMMED_COUNTS", "Certificate", "sum_counts"]

SUMMED_COUNTS: Final = ("pages", "ties", "requests", "points", "waits", "waited_seconds")
"""The counts of a certificate that add up over several pulls."""


class CertifiedPage(Protocol):
    """A page as a certificate sees it."""

    @property
    def tables(self) -> tuple[Any, ...]:
        """For each table of the operation its rows, or its columns by name."""

    @property
    def reader(self) -> PageReader:
        """The position of the pull after the page."""

    @property
    def is_last(self) -> bool:
        """Whether all rows have come."""

    @property
    def completeness(self) -> Completeness:
        """What the service stated about the complete answer."""


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
    _reader: PageReader | None = field(default=None, repr=False)
    _checks: HistoryChecks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._checks = HistoryChecks(self.operation, self.parameters)

    def add_page(self, page: CertifiedPage, tables: Sequence[PageColumns]) -> None:
        """Count a page, check its rows, and keep the evidence that it brings.

        Parameters
        ----------
        page : CertifiedPage
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
        self._reader = page.reader
        rows = page.tables[0]
        if self.operation.key and not self.operation.binary and len(rows):
            key = key_getter(self.operation)
            self.first = self.first or make_cursor(key(rows[0]))
            self.last = make_cursor(key(rows[-1]))

    def check_complete(self) -> None:
        """Raise an error if the service states that rows are missing.

        Raises
        ------
        Incomplete
            With what is missing, and what to do.
        """
        self.completeness.check_complete()

    @property
    def resume_cursor(self) -> str | None:
        """The cursor from which to go on; None if there is none, or if earlier rows are missing."""
        reader = self._reader
        if reader is None or reader.last_kept_key is None or self.completeness.missing_reason:
            return None
        if "breaks" in self.breaks.facts():
            return None
        has_cursors = reader.operation.paging.endswith("cursor") and not reader.by_time
        return make_cursor(reader.last_kept_key) if has_cursors else None

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
            "ties": self._reader.ties if self._reader else 0,
            "first": self.first,
            "last": self.last,
            **counts,
        }


def sum_counts(certificates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of the counts of several certificates.

    Examples
    --------
    >>> sum_counts([{"pages": 2, "retries": {"429": 1}}, {"pages": 3}])["pages"]
    5
    """
    causes: Counter[str] = Counter()
    for certificate in certificates:
        causes.update(certificate.get("retries", {}))
    sums = {
        name: sum(certificate.get(name, 0) for certificate in certificates)
        for name in SUMMED_COUNTS
    }
    return sums | {"retries": dict(sorted(causes.items()))}
