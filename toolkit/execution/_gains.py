"""Gains of groups of trades, with intervals that contain the error of estimated quotes.

The mid of `quotes` is the price of the last trade, less the taker's sign times the transitory half
spread of the coin. So an error of this estimate moves the mids of all buys to one side, and those
of all sells to the other: resampling the fills cannot show this error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.execution._quotes import PARTS, estimate_parts, price_changes
from toolkit.prepare.door import Names, Table
from toolkit.prepare.groups import CALENDAR, period_start, split_groups, sum_groups
from toolkit.prepare.prices import PriceHistory, make_history
from toolkit.prepare.trades import GroupedTrades
from toolkit.statistics import Sampling, student

FIGURES: Final = {
    "estimate": "float64", "low": "float64", "high": "float64", "usd": "float64", "n": "int64",
    "missing": "int64", "clusters": "int64", "age_seconds": "float64",
}  # fmt: skip
RESULT_NAMES = ("name", "seconds", *FIGURES)
_TRANSITORY: Final = PARTS.index("transitory")


class QuoteErrors(NamedTuple):
    """The errors of the transitory half spreads behind quotes.

    - ``signs``: the sign of the trade that each quote is from: 1 if the taker bought, -1 if the
      taker sold, 0 if both sides traded in one moment
    - ``variance``, ``freedom`` (array of float, (coins,)): variance in basis points squared, and
      its degrees of freedom, by the codes of the fills' coins
    - ``moves`` (array of float, (coins, clusters)): by how much each cluster moved the half spread
    """

    signs: PriceHistory
    variance: Floats
    freedom: Floats
    moves: Floats

    def widen(
        self, figures: Sequence[float], slopes: Floats, misses: Floats, clusters: Ints, level: float
    ) -> tuple[float, float]:
        """Return the interval of a figure with the error of the quotes.

        Zou and Donner (2008) describe how to join the errors of two estimates. The two errors are
        correlated, because the same tape changes the figure of the fills and the estimated spread.
        The correlation is that of the amounts that each cluster adds to both.

        - ``figures``: estimate, low and high with exact quotes, in basis points
        - ``slopes``: by how much the figure moves with the half spread of each coin
        - ``misses``, ``clusters``: what each fill adds to the figure's numerator beyond the
          estimate, and its cluster
        - ``level``: the level of the interval
        """
        estimate, low, high = figures
        used = np.flatnonzero(slopes)
        if not len(used):
            return low, high
        squares = self.variance[used] * slopes[used] ** 2
        variance = float(squares.sum())
        freedom = variance**2 / float((squares**2 / self.freedom[used]).sum()) if variance else 1.0
        reach = float(student(level, freedom)) * np.sqrt(variance)
        # The correlation of what each cluster adds to the figure and to the half spreads.
        count, inside = int(clusters.max()) + 1, clusters >= 0
        fills = np.bincount(clusters[inside], misses[inside], count)
        quotes = slopes[used] @ self.moves[used, :count]
        size = float(np.sqrt((quotes @ quotes) * (fills @ fills)))
        shared = 2 * reach * (float(quotes @ fills) / size if size else 0.0)
        below, above = abs(estimate - low), abs(estimate - high)
        return (
            estimate - np.sqrt(below**2 + reach**2 + shared * below),
            estimate + np.sqrt(above**2 + reach**2 + shared * above),
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
    table, coins = Table(marks.quotes, "prices"), grouped.trades.coin
    bought, sold = (table.number(f"{side}_age_seconds") == 0 for side in ("buy", "sell"))
    trades = pd.DataFrame(
        {
            "coin": table.text("coin").among(coins),
            "ms": table.ms(),
            "sign": bought.astype(np.float64) - sold,
            "px": np.where(bought, table.number("buy_px"), table.number("sell_px")),
            "sure": bought != sold,
        }
    )
    trades = trades[trades["coin"] >= 0].sort_values(["coin", "ms"], kind="stable")
    changes = price_changes(trades, max_age_ms)
    own = np.full(len(changes), -1)
    if cluster in CALENDAR and len(trades):
        starts, first = np.unique(period_start(grouped.trades.ms, cluster), return_index=True)
        codes = pd.Series(grouped.cluster[first], index=starts)
        starts = period_start(changes["ms"].to_numpy(), cluster)
        own = codes.reindex(starts, fill_value=-1).to_numpy()
    number = len(coins.values)
    variance, freedom = np.full((2, number), np.nan)
    moved = np.zeros((number, int(grouped.cluster.max(initial=-1)) + 1))
    for code, rows in enumerate(split_groups(changes["coin"].to_numpy(), number)):
        if len(rows):
            parts, moves = estimate_parts(changes.iloc[rows])
            variance[code], freedom[code] = parts[1:, _TRANSITORY]
            place = own[rows[: len(moves)]]
            np.add.at(moved[code], place[place >= 0], moves[place >= 0])
    coin, ms, sign = (trades[name].to_numpy() for name in ("coin", "ms", "sign"))
    signs = make_history("sign", Names(coin, coins.values), ms, sign)
    return QuoteErrors(replace(signs, until=marks.until), variance, freedom, moved)


class Gain(NamedTuple):
    """A figure of trades.

    - ``value``: the gains in USD; NaN if a trade has no price
    - ``base``: the values by which their sum is divided, in USD
    - ``age``: age of the prices in seconds
    - ``slope``: how much the figure of a trade moves with the error of quotes
    """

    value: Floats
    base: Floats
    age: Floats
    slope: Floats | None = None


def estimate_gains(
    grouped: GroupedTrades,
    gains: Sequence[Gain],
    how: Sampling,
    labels: Mapping[str, Any] | None = None,
    errors: QuoteErrors | None = None,
) -> pd.DataFrame:
    """Return the `FIGURES` of each group and gain, below the columns of groups and labels.

    - ``labels``: by the name of a column, its value for each gain
    """
    trades, codes, groups, cluster = grouped
    made, coins = [], trades.coin
    for own in split_groups(codes, len(groups)):
        for gain in gains:
            rows = own[~np.isnan(gain.value[own])]
            value, base, n = 1e4 * gain.value[rows], gain.base[rows], len(rows)
            estimate, low, high, count = how.ratio(value, base, cluster[rows])
            if errors and gain.slope is not None and n:
                slopes = gain.slope[rows] * base / base.sum()
                slopes = sum_groups(coins.codes[rows], slopes, len(coins.values))
                miss, exact = value - estimate * base, (estimate, low, high)
                low, high = errors.widen(exact, slopes, miss, cluster[rows], how.level)
            usd, age = (gain.value[rows].sum(), gain.age[rows].mean()) if n else (np.nan, np.nan)
            made.append((estimate, low, high, usd, n, len(own) - n, count, age))
    columns = {name: np.tile(values, len(groups)) for name, values in (labels or {}).items()}
    for place, (name, kind) in enumerate(FIGURES.items()):
        columns[name] = np.array([figures[place] for figures in made], dtype=kind)
    front = groups.iloc[np.repeat(np.arange(len(groups)), len(gains))].reset_index(drop=True)
    return pd.DataFrame({**front, **columns})
