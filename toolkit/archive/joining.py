"""What several answers showed of one fill or order, as one record, in the order of execution."""

import graphlib
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from toolkit.contract.recorded import join_records

__all__ = ["Known", "Name", "Row", "in_order"]

Name = tuple[Any, ...]
"""What tells a row of an account: which event it is of, and its number among rows of that event."""

Row = tuple[str, Name]
"""What tells a row: the user and the row's name."""


class Known:
    """Joins the rows of one answer with the same rows of others.

    Two answers may write one event differently: other operations show other fields, a later
    service new ones, and frames that were ingested the numbers without their zeros.

    Parameters
    ----------
    before : dict
        Gains which row came before which, within a transaction.
    event : callable
        Gives the fields of a row that say which event it is.
    """

    def __init__(self, before: dict[Row, set[Row]], event: Callable[[Any], Name]) -> None:
        self._before = before
        self._event = event
        self._count: dict[tuple[str, Name], int] = defaultdict(int)
        self._last: tuple[tuple[int, int], Row] | None = None

    def add(self, rows: dict[Name, Any], user: str, row: Any, moment: tuple[int, int]) -> None:
        """Add a row, or what it says more than the same row of another operation."""
        event = self._event(row)
        # Rows of one answer are different events, however alike: each is told by which it is.
        self._count[user, event] += 1
        name = (self._count[user, event], *event)
        held = rows.setdefault(name, row)
        if held is not row:
            rows[name] = join_records(held, row)
        if self._last is not None and self._last[0] == moment:
            self._before[user, name].add(self._last[1])
        self._last = (moment, (user, name))


def in_order(
    rows: Mapping[str, Mapping[Name, Any]],
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
