"""The certificate of a pull: whether it is complete, and what shows it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from toolkit.client import Batch, Counts
from toolkit.completeness.headers import Completeness
from toolkit.contract.operations import Operation
from toolkit.contract.paging import key_getter
from toolkit.contract.requests import make_cursor
from toolkit.times import to_iso

__all__ = ["SUMMED", "Tally", "summed"]

SUMMED: Final = ("pages", "ties", "requests", "points", "waits", "waited_seconds")
"""What of a certificate adds up over several pulls."""


@dataclass(slots=True)
class Tally:
    """What a pull has done so far.

    Attributes
    ----------
    counts : Counts
        Its requests, points, retries and waits.
    pages : int
        Pages that were read.
    first, last : str or None
        Key of the first and of the last row, as a cursor writes it.
    batch : Batch or None
        The newest page.
    """

    counts: Counts
    pages: int = 0
    first: str | None = None
    last: str | None = None
    batch: Batch | None = field(default=None, repr=False)

    def add(self, operation: Operation, batch: Batch) -> None:
        """Take note of a page."""
        self.pages += 1
        self.batch = batch
        rows = batch.tables[0]
        if operation.key and not operation.binary and len(rows):
            key = key_getter(operation)
            self.first = self.first or make_cursor(key(rows[0]))
            self.last = make_cursor(key(rows[-1]))

    @property
    def completeness(self) -> Completeness:
        """How complete the service says that the answer is."""
        return Completeness() if self.batch is None else self.batch.completeness

    @property
    def is_whole(self) -> bool:
        """Whether the end was reached."""
        return self.batch is not None and self.batch.last

    @property
    def cursor(self) -> str | None:
        """The cursor from which to go on, where it has cursors and nothing before is missing."""
        if self.batch is None or self.completeness.missing_reason:
            return None
        reader = self.batch.reader
        with_cursors = reader.operation.paging.endswith("cursor") and not reader.by_time
        return make_cursor(reader.kept) if reader.kept is not None and with_cursors else None

    def certificate(self) -> Mapping[str, Any]:
        """Give what shows that the rows are all of them, as plain values."""
        return {
            **(
                {"covered": [tuple(map(to_iso, covered))]}
                if (covered := self.completeness.covered)
                else {}
            ),
            "pages": self.pages,
            "ties": self.batch.reader.ties if self.batch else 0,
            "first": self.first,
            "last": self.last,
            **self.counts.facts(),
        }


def summed(certificates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add the counts of several pulls."""
    causes: Counter[str] = Counter()
    for one in certificates:
        causes.update(one.get("retries", {}))
    sums = {name: sum(one.get(name, 0) for one in certificates) for name in SUMMED}
    return sums | {"retries": dict(sorted(causes.items()))}
