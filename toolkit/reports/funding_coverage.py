"""Funding coverage: how much of an account's funding its funding rows cover.

A missing row looks like funding of 0. The fills show the position at each full hour, and thereby
which rows there must be.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.arrays import Ints
from toolkit.reports.report_frames import is_perp
from toolkit.times import HOUR


class FundingCoverage(NamedTuple):
    """Agreement of funding rows with positions.

    - ``held``: position hours: full hours with an open position by the fills, summed over coins
    - ``covered``: position hours with a funding row
    - ``agreeing``: position hours whose funding row has the same size as the fills
    - ``beyond``: funding rows at hours without a position in the fills
    - ``carried``: coins with a position before their first fill of the period. Its hours are not
      known.
    """

    held: int
    covered: int
    agreeing: int
    beyond: int
    carried: int

    @property
    def is_complete(self) -> bool:
        """Whether every position hour has its row, and every row belongs to a position."""
        return self.held == self.covered and self.beyond == 0 and self.carried == 0


def compare_funding(fills: pd.DataFrame, funding: pd.DataFrame, end_ms: int) -> FundingCoverage:
    """Compare funding rows with the positions from the fills.

    - ``fills``: all fills of one account in order of execution, exact numbers
    - ``funding``: its funding rows of the same period, exact numbers
    - ``end_ms``: end of the period, inclusive

    A position is known from the first fill of its coin on, not before. A row that sums n payments
    covers n hours (docs/live_service.md, section 5); its size is that of the last hour.
    """
    after = _positions_after(fills)
    held, carried = _list_position_hours(fills, after, end_ms)
    paid, earlier = _list_paid_hours(funding)
    place = _find_hours(held, paid)
    matched = place >= 0
    traded = after.take(pa.array(held.row[place[matched]])).to_pylist()
    same = np.array(traded, object) == funding["szi"].to_numpy(dtype=object)[paid.row[matched]]
    return FundingCoverage(
        held=len(held.hour),
        covered=int(matched.sum()),
        agreeing=int((earlier[matched] | same).sum()),
        beyond=int((~matched & ~earlier).sum()),
        carried=carried,
    )


class _Hours(NamedTuple):
    """Full hours (of Unix time) of coins, with the number of the fill or funding row."""

    coin: npt.NDArray[Any]
    hour: Ints
    row: Ints


def _find_hours(held: _Hours, paid: _Hours) -> Ints:
    """Return the place of each paid hour in the position hours; -1 if it is not there."""
    codes, _ = pd.factorize(np.concatenate([held.coin, paid.coin]))
    keys = codes.astype(np.int64) * 2**32 + np.concatenate([held.hour, paid.hour])
    count = len(held.hour)
    return np.asarray(pd.Index(keys[:count]).get_indexer(pd.Index(keys[count:])), np.int64)


def _list_paid_hours(funding: pd.DataFrame) -> tuple[_Hours, npt.NDArray[np.bool_]]:
    """Return the hours of funding rows, and which are before the row's own hour."""
    count = np.ones(len(funding), np.int64)
    if "n_samples" in funding:
        count = np.maximum(funding["n_samples"].fillna(1).to_numpy(np.int64), 1)
    row = np.repeat(np.arange(len(funding)), count)
    back = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    coin = funding["coin"].to_numpy(dtype=object)[row]
    return _Hours(coin, (_times_ms(funding["time"]) // HOUR)[row] - back, row), back > 0


def _list_position_hours(fills: pd.DataFrame, after: pa.Array, end_ms: int) -> tuple[_Hours, int]:
    """Return the full hours with an open position, and how many coins start from a position.

    - ``fills``: fills of one account in order of execution, exact numbers
    - ``after``: position after each fill
    - ``end_ms``: last millisecond, inclusive
    """
    is_open, times = _is_not_zero(after), _times_ms(fills["time"])
    rows_of = fills["coin"].groupby(fills["coin"], sort=True).indices
    coins = pd.Series(list(rows_of), dtype="str")
    none = np.array([], dtype=np.int64)
    parts, firsts = [_Hours(none.astype(object), none, none)], []
    for coin in coins[is_perp(coins)]:
        rows = np.asarray(rows_of[coin], np.int64)
        firsts.append(rows[0])
        hours = np.arange(times[rows[0]] // HOUR + 1, end_ms // HOUR + 1)
        # ASSUMED: A fill in the same millisecond as a funding payment is executed after the
        # payment.
        last = rows[np.searchsorted(times[rows], hours * HOUR, side="left") - 1]
        held = is_open[last]
        names = np.full(int(held.sum()), coin, dtype=object)
        parts.append(_Hours(names, hours[held], last[held]))
    carried = _is_not_zero(pa.array(fills["start_position"].iloc[firsts]))
    return _Hours(*map(np.concatenate, zip(*parts, strict=True))), int(carried.sum())


def _positions_after(fills: pd.DataFrame) -> pa.Array:
    """Return the exact position after each fill."""
    size = pa.array(fills["sz"])
    signed = pc.if_else(pa.array(fills["side"] == "B"), size, pc.negate(size))
    return pc.add(pa.array(fills["start_position"]), signed)


def _is_not_zero(numbers: pa.Array) -> npt.NDArray[np.bool_]:
    if numbers.null_count == len(numbers):  # such an array may have no type of numbers
        return np.ones(len(numbers), np.bool_)
    found = pc.not_equal(numbers, pa.scalar(0, numbers.type))
    return np.asarray(pc.fill_null(found, True))


def _times_ms(times: pd.Series) -> Ints:
    return np.asarray(times.dt.tz_localize(None).to_numpy(dtype="M8[ms]").view(np.int64))
