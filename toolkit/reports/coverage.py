"""How much of an account's funding its funding rows cover.

Funding rows can be had only for times at which the account had approved a builder, and a row
that is missing looks like funding of 0. The fills tell how large each position was at each full
hour, so they tell which rows there must be.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.reports.material import is_perp
from toolkit.times import HOUR

__all__ = ["Coverage", "coverage", "position_hours"]


class Coverage(NamedTuple):
    """How funding rows and positions agree.

    Attributes
    ----------
    held : int
        Hours at whose turn a position was open, over all coins, by the fills.
    covered : int
        Those of them with a funding row.
    agreeing : int
        Those of them whose row states the size that the fills give.
    beyond : int
        Funding rows at hours where the fills show no position.
    """

    held: int
    covered: int
    agreeing: int
    beyond: int
    carried: int
    """Coins held before their first fill of the period; for how long is not known."""

    @property
    def complete(self) -> bool:
        """Whether every hour has its row, and no row is unexplained."""
        return self.held == self.covered and self.beyond == 0 and self.carried == 0


def coverage(fills: pd.DataFrame, funding: pd.DataFrame, end_ms: int) -> Coverage:
    """Compare funding rows with the positions that the fills show.

    Parameters
    ----------
    fills : DataFrame
        All fills of one account in order of execution, exact numbers.
    funding : DataFrame
        Its funding rows of the same period, exact numbers.
    end_ms : int
        End of the period, inclusive.

    Returns
    -------
    Coverage

    Notes
    -----
    A position is followed from the first fill of its coin on; what was held before is not known
    from fills. A row that sums up n payments covers n hours (docs/live_service.md, section 5); the
    size that it states is that of the last.
    """
    held = position_hours(fills, end_ms)
    paid = _paid_hours(funding)
    both = held.merge(paid, on=["coin", "hour"], how="outer", indicator=True)
    matched = both[both["_merge"] == "both"]
    earlier = both["earlier"].eq(True)
    same = matched["szi"] == matched["paid_szi"]
    return Coverage(
        held=len(held),
        covered=len(matched),
        agreeing=int((earlier[both["_merge"] == "both"] | same).sum()),
        beyond=int(((both["_merge"] == "right_only") & ~earlier).sum()),
        carried=_carried(fills),
    )


def _paid_hours(funding: pd.DataFrame) -> pd.DataFrame:
    """List the hours that funding rows pay; `earlier` ones come before the row's own hour."""
    count = np.ones(len(funding), np.int64)
    if "n_samples" in funding:
        count = np.maximum(funding["n_samples"].fillna(1).to_numpy(np.int64), 1)
    row = np.repeat(np.arange(len(funding)), count)
    back = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return pd.DataFrame(
        {
            "coin": funding["coin"].to_numpy(dtype=object)[row],
            "hour": (_ms(funding["time"]) // HOUR)[row] - back,
            "paid_szi": funding["szi"].to_numpy(dtype=object)[row],
            "earlier": back > 0,
        }
    )


def position_hours(fills: pd.DataFrame, end_ms: int) -> pd.DataFrame:
    """List the full hours at which a position was open: ``coin``, ``hour`` (of Unix time), ``szi``.

    Parameters
    ----------
    fills : DataFrame
        Fills of one account in order of execution, exact numbers.
    end_ms : int
        Last moment, inclusive.
    """
    perps = fills[is_perp(fills["coin"])]
    end = _after(perps)
    parts = []
    for coin, at in perps.groupby("coin", sort=True).indices.items():
        times = _ms(perps["time"].iloc[at])
        hours = np.arange(times[0] // HOUR + 1, end_ms // HOUR + 1)
        # ASSUMED: a fill in the very millisecond of a funding hour comes after the payment.
        last = np.searchsorted(times, hours * HOUR, side="left") - 1
        szi = end[at][last]
        open_ = szi != 0
        names = np.full(int(open_.sum()), coin, dtype=object)
        parts.append(pd.DataFrame({"coin": names, "hour": hours[open_], "szi": szi[open_]}))
    if not parts:
        empty = np.array([], dtype=object)
        return pd.DataFrame({"coin": empty, "hour": empty.astype(np.int64), "szi": empty})
    return pd.concat(parts, ignore_index=True)


def _carried(fills: pd.DataFrame) -> int:
    """Count the perps whose first fill starts from a position."""
    first = fills[is_perp(fills["coin"])].drop_duplicates("coin")
    return sum(value != 0 for value in first["start_position"])


def _after(fills: pd.DataFrame) -> npt.NDArray[Any]:
    """Give the position after each fill, as Python decimals."""
    size = pa.array(fills["sz"])
    signed = pc.if_else(pa.array(fills["side"] == "B"), size, pc.negate(size))
    return np.array(pc.add(pa.array(fills["start_position"]), signed).to_pylist(), dtype=object)


def _ms(times: pd.Series) -> npt.NDArray[np.int64]:
    return np.asarray(times.dt.tz_localize(None).to_numpy(dtype="M8[ms]").view(np.int64))
