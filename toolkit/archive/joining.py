"""What several answers showed of one fill or order, as one record, in the order of execution."""

import graphlib
import operator
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.contract.answers import encode

__all__ = ["Known", "Row", "in_order"]

Row = tuple[str, bytes]
"""What tells a row of a user: the user, and the row's text with its number among equals."""


class Known:
    """Joins the rows of one answer with the same rows of others.

    Parameters
    ----------
    before : dict
        Gains which row came before which, within a transaction.
    apart : tuple of str
        Fields that only some operations show.
    """

    def __init__(self, before: dict[Row, set[Row]], apart: tuple[str, ...]) -> None:
        self._before = before
        self._apart = apart
        self._count: dict[Row, int] = defaultdict(int)
        self._last: tuple[tuple[int, int], Row] | None = None

    def add(self, rows: dict[bytes, Any], user: str, row: Any, moment: tuple[int, int]) -> None:
        """Add a row, or what it says more than the same row of another operation."""
        bare = encode(msgspec.structs.replace(row, **dict.fromkeys(self._apart, msgspec.UNSET)))
        # Equal rows of one answer are different events: each is told by which of them it is.
        self._count[user, bare] += 1
        name = b"%d %b" % (self._count[user, bare], bare)
        held = rows.setdefault(name, row)
        for one in self._apart:
            said = getattr(row, one)
            if said is not msgspec.UNSET and getattr(held, one) in (msgspec.UNSET, None):
                setattr(held, one, said)
        if self._last is not None and self._last[0] == moment:
            self._before[user, name].add(self._last[1])
        self._last = (moment, (user, name))


def in_order(
    rows: Mapping[str, Mapping[bytes, Any]],
    key: tuple[str, str],
    before: Mapping[Row, set[Row]],
) -> list[tuple[str, Any]]:
    """Order rows by transaction, and within one as every answer showed them."""
    moment = operator.attrgetter(*key)
    grouped: dict[Any, dict[Row, Any]] = defaultdict(dict)
    for user, some in rows.items():
        for name, row in some.items():
            grouped[moment(row)][user, name] = row
    return [
        (one[0], group[one])
        for _, group in sorted(grouped.items())
        for one in _executed(list(group), before)
    ]


def _executed(rows: list[Row], before: Mapping[Row, set[Row]]) -> list[Row]:
    """Order the rows of a transaction; answers that disagree are followed row by row."""
    if len(rows) == 1:
        return rows
    sorter = graphlib.TopologicalSorter({one: before.get(one, set()) for one in rows})
    try:
        return list(sorter.static_order())
    except graphlib.CycleError:
        return rows
