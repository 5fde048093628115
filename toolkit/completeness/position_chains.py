"""Position chains: a fill starts from the position that the fill before it left.

The next fill must start at the start plus the signed size. A spot buy ends lower by its fee, which
is paid in the bought token. In perps, a gap in a chain proves that fills are missing. Tokens of
spot and outcome markets also move without a fill, so a gap there may be a transfer
(docs/live_service.md, section 3).

The order of fills in one millisecond (a tie) is not known. If the given order is no chain, the
fills of a tie count as edges of a graph from start to end. If no fill is missing, one path goes
through all edges. A path begins at a start at which no other fill ends. If an account trades with
itself, both fills start from the same position and cancel each other.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from toolkit.arrays import Flags, Floats, Ints

__all__ = ["ChainBreak", "LastValues", "PositionChains", "PositionColumns"]


_PERP_UNIT: Final = 1e-6  # sizes of perps have at most six decimals
_FINEST_DECIMALS: Final = 8  # of sizes and balances of tokens
_ROUNDING: Final = 1e-6  # in units of the last decimal
_NOISE: Final = 4e-15  # relative error of a sum of two floats, with a margin


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """The columns of fills in the order of time, as arrays of equal length.

    Attributes
    ----------
    chain
        Which chain a fill belongs to: small numbers, from 0.
    time
        Unix milliseconds.
    start, change
        Position before the fill, and the signed size without a fee in the bought token.
    px
        Price.
    trade
        Trade id, or 0.
    is_token
        Whether the coin is a spot pair or an outcome.
    """

    chain: Ints
    time: Ints
    start: Floats
    change: Floats
    px: Floats
    trade: Ints
    is_token: Flags


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """A fill that does not start from where the fill before it ended.

    Attributes
    ----------
    row
        The row of the fill.
    start
        The position from which it starts.
    expected
        The position that the fill before it left; NaN if it is not known.
    since
        The time of the last fill of the position chain that is earlier than this fill, in Unix
        milliseconds.
    """

    row: int
    start: float
    expected: float
    since: int = 0


class LastValues:
    """The last value of each series so far; a series is a small number, from 0."""

    def __init__(self) -> None:
        self._values: Floats = np.full(64, np.nan)

    def shift(self, series: Ints, values: Floats) -> Floats:
        """Return the value before each row in its series, NaN before the first one.

        Parameters
        ----------
        series
            The series of each row, ascending.
        values
            The values, in the order of time within a series. The last of each is kept.
        """
        if len(series) and (lacking := int(series[-1]) + 1 - len(self._values)) > 0:
            more = np.full(max(lacking, len(self._values)), np.nan)
            self._values = np.concatenate((self._values, more))
        is_first = np.ones(len(series), dtype=np.bool_)
        is_first[1:] = series[1:] != series[:-1]
        before = np.empty(len(series))
        before[1:] = values[:-1]
        before[is_first] = self._values[series[is_first]]
        is_last = np.ones(len(series), dtype=np.bool_)
        is_last[:-1] = is_first[1:]
        self._values[series[is_last]] = values[is_last]
        return before

    def replace(self, series: int, value: float) -> None:
        """Set the last value of one series."""
        self._values[series] = value


class PositionChains:
    """The position at the end of each position chain, and the breaks of the fills that follow."""

    def __init__(self) -> None:
        self._ends, self._times = LastValues(), LastValues()

    def add_fills(self, fills: PositionColumns) -> list[ChainBreak]:
        """Add the fills of complete ties that follow, and return their breaks.

        Examples
        --------
        >>> ones, none = np.ones(3), np.zeros(3, dtype=np.int64)
        >>> fills = PositionColumns(
        ...     none, np.arange(3), np.array([0.0, 1.0, 5.0]), ones, ones, none, none > 0
        ... )
        >>> PositionChains().add_fills(fills)
        [ChainBreak(row=2, start=5.0, expected=2.0, since=1)]
        """
        if not len(fills.chain):
            return []
        is_short = fills.chain.max() < 2**16  # numpy sorts short numbers several times as fast
        order = np.argsort(fills.chain.astype(np.uint16 if is_short else np.int64), kind="stable")
        chain, start, change = fills.chain[order], fills.start[order], fills.change[order]
        before = self._ends.shift(chain, start + change)
        time_before = self._times.shift(chain, fills.time[order].astype(np.float64))
        distance = np.abs(start - before)
        # NaN means an unknown position; the comparison is then false.
        if not np.any(distance > _PERP_UNIT / 2):
            return []
        differs = distance > _PERP_UNIT / 2 + _NOISE * np.maximum(np.abs(start), np.abs(change))
        breaks: list[ChainBreak] = []
        for broken in np.unique(chain[differs]).tolist():
            places = np.flatnonzero(chain == broken)
            rows, expected = order[places], before[places]
            if fills.is_token[rows[0]]:
                breaks += _token_breaks(fills, rows, expected, differs[places])
            else:
                found, end = _follow_ties(fills, rows, float(expected[0]), differs[places])
                self._ends.replace(broken, end)
                breaks += found
        times = np.empty(len(order))
        times[order] = time_before
        dated = (replace(found, since=_time_before(fills, found.row, times)) for found in breaks)
        return sorted(dated, key=lambda found: found.row)


def _time_before(fills: PositionColumns, row: int, times: Floats) -> int:
    """Return the time of the last fill of the chain before the tie of this row.

    If there is none, return the time of the row. `times` has the time of the fill before each row,
    which may be in the same tie.
    """
    is_tie = (fills.chain == fills.chain[row]) & (fills.time == fills.time[row])
    before = float(times[np.flatnonzero(is_tie)[0]])
    return int(fills.time[row]) if np.isnan(before) else int(before)


def _token_breaks(
    fills: PositionColumns, rows: Ints, expected: Floats, differs: Flags
) -> Iterator[ChainBreak]:
    """Yield the breaks of a spot or outcome coin; less than a unit of the balances is rounding."""
    starts = fills.start[rows]
    scaled = (starts * 10.0**decimals for decimals in range(_FINEST_DECIMALS))
    is_whole = (bool(np.all(np.abs(values - np.rint(values)) < _ROUNDING)) for values in scaled)
    unit = 10.0 ** -next(itertools.compress(itertools.count(), is_whole), _FINEST_DECIMALS)
    far = differs & (np.abs(starts - expected) > (1 + _ROUNDING) * unit)
    for row, before in zip(rows[far].tolist(), expected[far].tolist(), strict=True):
        yield ChainBreak(row, float(fills.start[row]), before)


def _follow_ties(
    fills: PositionColumns, rows: Ints, before: float, differs: Flags
) -> tuple[list[ChainBreak], float]:
    """Return the breaks of one perp, tie by tie, and the position after it.

    `differs` states which fills do not start from the end of the fill before them.
    """
    largest = float(np.nanmax(np.abs(fills.start[rows])))
    unit = _PERP_UNIT if largest < _PERP_UNIT / _NOISE else 1.0
    position = None if np.isnan(before) else round(before / unit)
    breaks: list[ChainBreak] = []
    bounds = np.flatnonzero(np.diff(fills.time[rows])) + 1
    for tie, is_other in zip(np.split(rows, bounds), np.split(differs, bounds), strict=True):
        is_ordered = not is_other.any() and not np.isnan(fills.start[tie] + fills.change[tie]).any()
        if is_ordered and round(float(fills.start[tie[0]]) / unit) == position:
            last = tie[-1]
            position = round(float(fills.start[last] + fills.change[last]) / unit)
            continue
        edges = [_edge(fills, row, unit) for row in _without_own_trades(fills, tie.tolist())]
        starts, position = _match_edges(edges, position)
        breaks += (
            ChainBreak(row, float(fills.start[row]), expected * unit) for row, expected in starts
        )
    return breaks, np.nan if position is None else position * unit


PositionEdge = tuple[int, int, int]
"""Row, and the position before and after the fill in units."""


def _edge(fills: PositionColumns, row: int, unit: float) -> PositionEdge:
    start = float(fills.start[row])
    return row, round(start / unit), round((start + float(fills.change[row])) / unit)


def _without_own_trades(fills: PositionColumns, tie: Sequence[int]) -> list[int]:
    """Return the rows of a tie without pairs of fills that an account made with itself."""
    kept: list[int] = []
    open_pairs: dict[tuple[float, ...], list[int]] = defaultdict(list)
    for row in tie:
        start, change = float(fills.start[row]), float(fills.change[row])
        if np.isnan(start + change):
            continue
        place = (start, float(fills.px[row]), float(fills.trade[row]))
        if others := open_pairs[*place, -change]:
            kept.remove(others.pop())
        else:
            open_pairs[*place, change].append(row)
            kept.append(row)
    return kept


def _match_edges(
    edges: Sequence[PositionEdge], before: int | None
) -> tuple[list[tuple[int, int]], int | None]:
    """Match the starts of the fills of a tie with their ends.

    Return two values: the fills that start where no other fill ends (and not at `before`), each
    with the expected position; and the position after the tie, None if it is not known.

    Parameters
    ----------
    edges
        The fills of one tie.
    before
        The position before the tie, if it is known.
    """
    if not edges:
        return [], before
    surplus = Counter(start for _, start, _ in edges)
    surplus.subtract(end for _, _, end in edges)
    starts = list(surplus.elements())
    ends = list((-surplus).elements())
    if before is None:
        before = starts[0] if starts else edges[0][1]
    if before in starts:
        starts.remove(before)
    elif not starts and all(start != before for _, start, _ in edges):
        starts = [edges[0][1]]  # the fills return to their first position, but `before` is not it
        before_round, before = before, edges[0][1]
        return list(_explain_starts(edges, starts, before_round)), before
    after = before if not ends else ends[0] if len(ends) == 1 else None
    return list(_explain_starts(edges, starts, before)), after


def _explain_starts(
    edges: Sequence[PositionEdge], starts: Sequence[int], before: int
) -> Iterator[tuple[int, int]]:
    """Yield a row for each start without an end, with the position of the fill before it."""
    waiting = Counter(starts)
    expected = before
    for row, start, end in edges:
        if waiting[start] > 0:
            waiting[start] -= 1
            yield row, expected
        expected = end
