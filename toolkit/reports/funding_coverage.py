"""Funding coverage: how much of an account's funding its funding rows cover.

The service has funding rows only for times at which the account had approved a builder, and a
missing row looks like funding of 0. The fills show the position at each full hour, and thereby
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
    held = list_position_hours(fills, end_ms)
    paid = _paid_hours(funding)
    both = held.merge(paid, on=["coin", "hour"], how="outer", indicator=True)
    matched = both[both["_merge"] == "both"]
    earlier = both["earlier"].eq(True)
    same = matched["szi"] == matched["paid_szi"]
    return FundingCoverage(
        held=len(held),
        covered=len(matched),
        agreeing=int((earlier[both["_merge"] == "both"] | same).sum()),
        beyond=int(((both["_merge"] == "right_only") & ~earlier).sum()),
        carried=_count_carried(fills),
    )


def _paid_hours(funding: pd.DataFrame) -> pd.DataFrame:
    """Return the hours of funding rows; `earlier` hours are before the row's own hour."""
    count = np.ones(len(funding), np.int64)
    if "n_samples" in funding:
        count = np.maximum(funding["n_samples"].fillna(1).to_numpy(np.int64), 1)
    row = np.repeat(np.arange(len(funding)), count)
    back = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return pd.DataFrame(
        {
            "coin": funding["coin"].to_numpy(dtype=object)[row],
            "hour": (_times_ms(funding["time"]) // HOUR)[row] - back,
            "paid_szi": funding["szi"].to_numpy(dtype=object)[row],
            "earlier": back > 0,
        }
    )


def list_position_hours(fills: pd.DataFrame, end_ms: int) -> pd.DataFrame:
    """Return the full hours with an open position: ``coin``, ``hour`` (of Unix time), ``szi``.

    - ``fills``: fills of one account in order of execution, exact numbers
    - ``end_ms``: last millisecond, inclusive
    """
    perps = fills[is_perp(fills["coin"])]
    end = _positions_after(perps)
    parts = []
    for coin, at in perps.groupby("coin", sort=True).indices.items():
        times = _times_ms(perps["time"].iloc[at])
        hours = np.arange(times[0] // HOUR + 1, end_ms // HOUR + 1)
        # ASSUMED: A fill in the same millisecond as a funding payment is executed after the
        # payment.
        last = np.searchsorted(times, hours * HOUR, side="left") - 1
        szi = end[at][last]
        open_ = szi != 0
        names = np.full(int(open_.sum()), coin, dtype=object)
        parts.append(pd.DataFrame({"coin": names, "hour": hours[open_], "szi": szi[open_]}))
    if not parts:
        empty = np.array([], dtype=object)
        return pd.DataFrame({"coin": empty, "hour": empty.astype(np.int64), "szi": empty})
    return pd.concat(parts, ignore_index=True)


def _count_carried(fills: pd.DataFrame) -> int:
    """Return the number of perps whose first fill starts from a position."""
    first = fills[is_perp(fills["coin"])].drop_duplicates("coin")
    return sum(value != 0 for value in first["start_position"])


def _positions_after(fills: pd.DataFrame) -> npt.NDArray[Any]:
    """Return the position after each fill as Python decimals."""
    size = pa.array(fills["sz"])
    signed = pc.if_else(pa.array(fills["side"] == "B"), size, pc.negate(size))
    return np.array(pc.add(pa.array(fills["start_position"]), signed).to_pylist(), dtype=object)


def _times_ms(times: pd.Series) -> Ints:
    return np.asarray(times.dt.tz_localize(None).to_numpy(dtype="M8[ms]").view(np.int64))
