"""The error of estimated quotes, in the intervals of what is measured against them.

The mid of `quotes` is the price of the last trade, less the taker's sign times the transitory half
spread of the coin. So an error of this estimate moves the mids of all buys to one side, and those
of all sells to the other: resampling the fills cannot show this error.
"""

from dataclasses import dataclass, field, replace
from typing import Final, Self

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, grouping, timestamps
from toolkit.analysis.execution.prices import PriceHistory
from toolkit.analysis.execution.quotes import PARTS, estimate_parts, price_changes
from toolkit.arrays import Floats, Ints
from toolkit.installation import explain_missing

_SIDES: Final = ("sell_px", "buy_px", "sell_age_seconds", "buy_age_seconds")
_TRANSITORY: Final = PARTS.index("transitory")


@dataclass(frozen=True)
class QuoteErrors:
    """The estimated transitory half spreads behind quotes, and their errors.

    - ``signs``: the sign of the trade that each quote is from: 1 if the taker bought, -1 if the
      taker sold, 0 if both sides traded in one moment
    - ``variances``, ``freedom``: coin -> variance of the half spread in basis points squared, and
      its degrees of freedom
    - ``moves``: coin -> times of its trades in milliseconds, and by how much each of them moved the
      half spread, in basis points
    - ``clusters``: coin -> the cluster of each of these trades; -1 for none
    """

    signs: PriceHistory
    variances: dict[str, float]
    freedom: dict[str, float]
    moves: dict[str, tuple[Floats, Floats]]
    clusters: dict[str, Ints] = field(default_factory=dict)

    def with_clusters(self, rows: pd.DataFrame, cluster: str) -> Self:
        """Return the errors with the clusters of fills, if these are hours, days or weeks."""
        if cluster not in grouping.CALENDAR:
            return self
        length, into = grouping.CALENDAR[cluster]
        known = rows.drop_duplicates(cluster)
        starts = timestamps.ms_from_times(known[cluster]).to_numpy("float64")
        codes = pd.Series(known["_cluster"].to_numpy(), index=starts)
        found = {
            coin: codes.reindex(ms - (ms + into) % length).fillna(-1).to_numpy("int64")
            for coin, (ms, _) in self.moves.items()
        }
        return replace(self, clusters=found)

    def widen(
        self,
        interval: tuple[float, float],
        estimate: float,
        rows: pd.DataFrame,
        name: str,
        level: float,
    ) -> tuple[float, float]:
        """Return the interval of a figure with the error of the quotes.

        Zou and Donner (2008) describe how to join the errors of two estimates. The two errors are
        correlated, because the same tape changes the figure of the fills and the estimated spread.
        The correlation is that of the amounts that each cluster adds to both.

        - ``interval``, ``estimate``: the figure with exact quotes, in basis points
        - ``rows``: the fills with ``coin, _base, _cluster`` and the next two columns
        - ``name``: column of the figure's numerator; ``<name>_slope`` says by how much the figure
          of a fill moves with the half spread of its coin
        - ``level``: the level of the interval
        """
        with explain_missing("analysis"):
            from scipy import stats

        base = rows["_base"].to_numpy("float64")
        slopes = pd.Series(rows[f"{name}_slope"].to_numpy("float64") * base / base.sum())
        by_coin = slopes.groupby(rows["coin"].to_numpy("str")).sum()
        by_coin = by_coin[by_coin != 0]
        if by_coin.empty:
            return interval
        squares = (
            np.array([self.variances.get(coin, np.nan) for coin in by_coin.index]) * by_coin**2
        )
        freedom = [self.freedom.get(coin, np.nan) for coin in by_coin.index]
        variance = float(squares.sum())
        whole = variance**2 / float((squares**2 / freedom).sum()) if variance else 1.0
        reach = float(stats.t.ppf((1 + level) / 2, whole)) * np.sqrt(variance)
        shared = 2 * reach * self._correlation(by_coin, rows, 1e4 * rows[name] - estimate * base)
        low, high = (abs(estimate - end) for end in interval)
        return (
            estimate - np.sqrt(low**2 + reach**2 + shared * low),
            estimate + np.sqrt(high**2 + reach**2 + shared * high),
        )

    def _correlation(self, slopes: pd.Series, rows: pd.DataFrame, left: pd.Series) -> float:
        """Return the correlation of what each cluster adds to a figure and to half spreads."""
        count = int(rows["_cluster"].max()) + 1
        fills = np.bincount(rows["_cluster"], left.to_numpy("float64"), count)
        quotes = np.zeros(count)
        for coin, slope in slopes.items():
            codes = self.clusters.get(str(coin), np.zeros(0, np.int64))
            inside = (codes >= 0) & (codes < count)
            if len(codes):
                moves = self.moves[str(coin)][1][inside]
                quotes += slope * np.bincount(codes[inside], moves, count)
        size = float(np.sqrt((quotes @ quotes) * (fills @ fills)))
        return float(quotes @ fills) / size if size else 0.0


def estimate_quote_errors(prices: IntoFrame | None, max_age_ms: float) -> QuoteErrors | None:
    """Return the errors of `quotes`, estimated from the trades that they show.

    - ``prices``: quotes; None, or a frame without their columns, has no such errors
    - ``max_age_ms``: the longest time between two trades that show how the price changes
    """
    if prices is None or not set(_SIDES) <= set(nw.from_native(prices).columns):
        return None
    rows = frame_access.pandas_columns(prices, "prices", ("coin", "time", *_SIDES), (), _SIDES)
    bought, sold = rows["buy_age_seconds"] == 0, rows["sell_age_seconds"] == 0
    trades = pd.DataFrame(
        {
            "coin": rows["coin"].astype("str"),
            "ms": timestamps.ms_from_times(rows["time"]),
            "sign": bought.astype("float64") - sold,
            "px": rows["buy_px"].where(bought, rows["sell_px"]),
            "sure": bought != sold,
        }
    ).sort_values(["coin", "ms"], kind="stable", ignore_index=True)
    changes = price_changes(trades, max_age_ms)
    parts = {str(coin): estimate_parts(found) for coin, found in changes.groupby("coin")}
    moves = {
        str(coin): (found["ms"].to_numpy("float64"), parts[str(coin)].moves)
        for coin, found in changes.groupby("coin")
        if len(parts[str(coin)].moves)
    }
    signs = {
        str(coin): (found["ms"].to_numpy("float64"), found["sign"].to_numpy("float64"))
        for coin, found in trades.groupby("coin")
    }
    return QuoteErrors(
        PriceHistory("sign", signs),
        {coin: float(found.variances[_TRANSITORY]) for coin, found in parts.items()},
        {coin: float(found.freedom[_TRANSITORY]) for coin, found in parts.items()},
        moves,
    )
