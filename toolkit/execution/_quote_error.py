"""The error of estimated quotes, in the intervals of what is measured against them.

The mid of `quotes` is the price of the last trade, less the taker's sign times the transitory half
spread of the coin. So an error of this estimate moves the mids of all buys to one side, and those
of all sells to the other: resampling the fills cannot show this error.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.execution._quotes import PARTS, estimate_parts, price_changes, rows_by_coin
from toolkit.prepare.door import Names, Table
from toolkit.prepare.groups import CALENDAR, period_start
from toolkit.prepare.prices import PriceHistory, make_history
from toolkit.prepare.trades import GroupedTrades
from toolkit.statistics.quantiles import student

_TRANSITORY: Final = PARTS.index("transitory")


class _CoinError(NamedTuple):
    """The error of one coin's transitory half spread.

    - ``variance``, ``freedom``: variance in basis points squared, and its degrees of freedom
    - ``moves``: by how much each trade moved the half spread, in basis points
    - ``cluster``: the cluster of each of these trades; -1 for none
    """

    variance: float
    freedom: float
    moves: Floats
    cluster: Ints


@dataclass(frozen=True)
class QuoteErrors:
    """The estimated transitory half spreads behind quotes, and their errors.

    - ``signs``: the sign of the trade that each quote is from: 1 if the taker bought, -1 if the
      taker sold, 0 if both sides traded in one moment
    - ``coins``: coin -> its error
    """

    signs: PriceHistory
    coins: dict[str, _CoinError]

    def widen(
        self,
        interval: tuple[float, float],
        estimate: float,
        coin: Names,
        slopes: Floats,
        misses: Floats,
        clusters: Ints,
        level: float,
    ) -> tuple[float, float]:
        """Return the interval of a figure with the error of the quotes.

        Zou and Donner (2008) describe how to join the errors of two estimates. The two errors are
        correlated, because the same tape changes the figure of the fills and the estimated spread.
        The correlation is that of the amounts that each cluster adds to both.

        - ``interval``, ``estimate``: the figure with exact quotes, in basis points
        - ``coin``, ``clusters``: the coin and the cluster of each fill
        - ``slopes``: by how much each fill moves the figure with the half spread of its coin
        - ``misses``: what each fill adds to the figure's numerator beyond the estimate
        - ``level``: the level of the interval
        """
        by_coin = np.bincount(coin.codes, slopes, len(coin.values))
        moved = [(coin.values[code], by_coin[code]) for code in np.flatnonzero(by_coin)]
        if not moved:
            return interval
        known = [(slope, self.coins[name]) for name, slope in moved if name in self.coins]
        squares = np.array([error.variance * slope**2 for slope, error in known])
        variance = float(squares.sum()) if len(known) == len(moved) else np.nan
        freedom = np.array([error.freedom for _, error in known])
        whole = variance**2 / float((squares**2 / freedom).sum()) if variance else 1.0
        reach = float(student(level, whole)) * np.sqrt(variance)
        # The correlation of what each cluster adds to the figure and to the half spreads.
        count, inside = int(clusters.max()) + 1, clusters >= 0
        fills, quotes = np.bincount(clusters[inside], misses[inside], count), np.zeros(count)
        for slope, error in known:
            inside = (error.cluster >= 0) & (error.cluster < count)
            quotes += slope * np.bincount(error.cluster[inside], error.moves[inside], count)
        size = float(np.sqrt((quotes @ quotes) * (fills @ fills)))
        shared = 2 * reach * (float(quotes @ fills) / size if size else 0.0)
        low, high = (abs(estimate - end) for end in interval)
        return (
            estimate - np.sqrt(low**2 + reach**2 + shared * low),
            estimate + np.sqrt(high**2 + reach**2 + shared * high),
        )


def estimate_quote_errors(
    marks: PriceHistory, max_age_ms: float, grouped: GroupedTrades, cluster: str
) -> QuoteErrors | None:
    """Return the errors of `quotes`, estimated from the trades that they show.

    - ``marks``: prices; if they are no quotes of a tape, they have no such errors
    - ``max_age_ms``: the longest time between two trades that show how the price changes
    - ``grouped``, ``cluster``: the fills; the trades have their clusters if these are periods
    """
    if not marks.is_tape:
        return None
    table = Table(marks.quotes, "prices")
    coin, ms = table.text("coin").sorted(), table.ms()
    order = np.lexsort((ms, coin.codes))
    bought, sold = (table.number(f"{side}_age_seconds")[order] == 0 for side in ("buy", "sell"))
    buy_px, sell_px = (table.number(f"{side}_px")[order] for side in ("buy", "sell"))
    coin, ms, sign = coin.take(order), ms[order], bought.astype(np.float64) - sold
    trades = pd.DataFrame(
        {
            "coin": pd.Categorical.from_codes(coin.codes, pd.Index(coin.values)),
            "ms": ms,
            "sign": sign,
            "px": np.where(bought, buy_px, sell_px),
            "sure": bought != sold,
        }
    )
    starts, first = np.zeros(0), np.zeros(0, dtype=np.int64)
    if cluster in CALENDAR:
        starts, first = np.unique(period_start(grouped.trades.ms, cluster), return_index=True)
    codes = pd.Series(grouped.cluster[first], index=starts)
    errors = {}
    for name, rows in rows_by_coin(price_changes(trades, max_age_ms)):
        parts = estimate_parts(rows)
        own = np.full(len(parts.moves), -1)
        if len(codes) and len(own):
            start = period_start(rows["ms"].to_numpy(), cluster)
            own = codes.reindex(start, fill_value=-1).to_numpy()
        errors[name] = _CoinError(
            float(parts.variances[_TRANSITORY]), float(parts.freedom[_TRANSITORY]), parts.moves, own
        )
    return QuoteErrors(replace(make_history("sign", coin, ms, sign), until=marks.until), errors)
