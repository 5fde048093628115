"""Funding coverage: how much of an account's funding its funding rows cover.

A missing row looks like funding of 0. The fills show the position at each full hour, and thereby
which rows there must be.
"""

from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.reports.report_frames import is_perp
from toolkit.times import HOUR

_UNITS: Final = 1e6  # sizes of perps have at most six decimals


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

    - ``fills``: all fills of one account in order of execution
    - ``funding``: its funding rows of the same period
    - ``end_ms``: end of the period, inclusive

    A position is known from the first fill of its coin on, not before. A row that sums n payments
    covers n hours (docs/live_service.md, section 5); its size is that of the last hour.
    """
    fills = fills[is_perp(fills["coin"])].reset_index(drop=True)
    funding = funding.reset_index(drop=True)
    start, size = (_UNITS * fills[name].astype("float64") for name in ("start_position", "sz"))
    steps = _read_hours(fills).assign(
        start=start.round(), after=(start + size.where(fills["side"] == "B", -size)).round()
    )
    steps = steps.sort_values("time", kind="stable", ignore_index=True)
    coins = steps.groupby("coin")
    until = coins["time"].shift(-1, fill_value=end_ms)
    hours = until // HOUR - steps["time"] // HOUR
    paid = _read_hours(funding).assign(szi=(_UNITS * funding["szi"].astype("float64")).round())
    count = np.ones(len(paid), np.int64)
    if "n_samples" in funding:
        count = np.fmax(funding["n_samples"].fillna(1).to_numpy(np.int64), 1)
    paid = paid.loc[paid.index.repeat(count)].reset_index(drop=True)
    back = np.arange(len(paid)) - np.repeat(np.cumsum(count) - count, count)
    paid = paid.assign(time=(paid["time"] // HOUR - back) * HOUR, earlier=back > 0)
    # ASSUMED: A fill in the same millisecond as a funding payment is executed after the payment.
    paid = pd.merge_asof(
        paid.sort_values("time", kind="stable"),
        steps.assign(known=True),
        on="time",
        by="coin",
        allow_exact_matches=False,
    )
    matched = paid["known"].notna() & (paid["after"] != 0) & (paid["time"] <= end_ms)
    same = paid["earlier"] | (paid["szi"] == paid["after"])
    return FundingCoverage(
        held=int(hours[steps["after"] != 0].sum()),
        covered=int(matched.sum()),
        agreeing=int((matched & same).sum()),
        beyond=int((~matched & ~paid["earlier"]).sum()),
        carried=int(np.count_nonzero(coins["start"].nth(0))),
    )


def _read_hours(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the coins and the times in milliseconds of a frame."""
    ms = frame["time"].dt.as_unit("ms").astype("int64")
    return pd.DataFrame({"coin": frame["coin"].astype("str"), "time": ms})
