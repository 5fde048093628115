"""Markout: the price change after fills, with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.analysis.common.bootstrap import DRAWS, bootstrap_interval, bootstrap_ratios
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.execution.prices import list_spans, span_ms
from toolkit.analysis.execution.quote_error import QuoteErrors, estimate_quote_errors
from toolkit.analysis.execution.quotes import reference_prices
from toolkit.arrays import Floats, Ints
from toolkit.prepare.door import Frame, Names, Table
from toolkit.prepare.groups import list_keys, split_groups
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import group_trades

FIGURES: Final = {
    "estimate": "float64", "low": "float64", "high": "float64", "usd": "float64", "n": "int64",
    "missing": "int64", "clusters": "int64", "age_seconds": "float64",
}  # fmt: skip
RESULT_NAMES = ("name", "seconds", *FIGURES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Markout(Estimate):
    """Price changes after fills.

    Attributes
    ----------
    params : DataFrame
        The groups, and in each group one row per horizon:

        - ``seconds``: time from the fill to the price; negative before the fill
        - ``name``: name of the figure
        - ``estimate``: gain as a part of the value of the fills, in basis points
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate
        - ``usd``: gain of all priced fills together, in USD
        - ``n``: number of fills with a fresh price
        - ``missing``: number of fills without a fresh price, or without a price, size or side
        - ``clusters``: number of clusters that the interval resamples
        - ``age_seconds``: mean age of the prices

        The figure:

        - ``markout``: price change after the fills, in basis points; positive is good for the
          account
    price_source : str
        Column of the prices.
    max_age_seconds : float
        Largest age of a price.
    cluster : str
        What the resamples draw.
    """

    price_source: str
    max_age_seconds: float
    cluster: str


def markout(
    fills: Frame,
    prices: Frame | None = None,
    horizons: Sequence[str | float] = ("10s", "1m", "5m", "30m"),
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("liquidity",),
    cluster: str = "day",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Markout:
    """Estimate the price change after fills; positive is good for the account.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time`` and the columns of `by` and `cluster`. Repeated rows count
        once.
    prices : DataFrame, optional
        ``coin`` (or ``name``), ``time`` and a price: archived answers of `tk.meta_and_asset_ctxs`,
        with a column ``time``, or `quotes`. Without it `fills` must be the full tape of the market,
        and the prices are the mids of its `quotes`. Prices of trades are refused, because each is a
        bid or an ask.
    horizons : list of str or float
        Times after the fill: text such as ``"5m"``, or seconds. Negative times are before it:
        ``"-1m"`` compares the price a minute before the fill, which shows what the fill followed.
    price : str, optional
        Column of the price. By default the first of ``mid_px``, ``mark_px``, ``oracle_px`` that
        exists.
    max_age : str or float, default "60s"
        How old the last price may be at the horizon. A price from before the fill does not count.
        But quotes (`quotes`, or mids with ``bid_px`` and ``ask_px``) hold until the next one: they
        count if they were that fresh at the fill, up to `max_age` after the last of them. Fills
        without such a price, or without a side, count as ``missing``, not as 0.
    by : str, list of str or None, default ("liquidity",)
        Groups, as for `fill_quality`.
    cluster : str, default "day"
        What the resamples draw for the intervals: ``hour``, ``day`` or ``week`` (UTC), ``user``, or
        another column. Fills of one cluster move together.
    level, draws, seed
        Level of the intervals; number of resamples; their seed.

    Returns
    -------
    Markout
        ``params`` has a row for each group and horizon. ``estimate`` is the gain, the sum of
        ``(price - px) * sz`` (with the opposite sign for sells), divided by the value traded, the
        sum of ``px * sz``, in basis points; ``usd`` is the gain. Intervals are missing for fewer
        than two clusters.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` is not valid, or the prices are those of trades.

    Notes
    -----
    Percentile bootstrap by cluster, expanded for few clusters as by Hesterberg (2015). With
    `quotes` as prices, the intervals include the error of the quotes: see `spreads`. Which fills
    count is as in `fill_quality`.

    Examples
    --------
    Bought at 100. Ten seconds later the mid is 100.5, and that price is two seconds old.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.5],
    ...     "time": pd.to_datetime([0, 9000], unit="ms", utc=True)})
    >>> found = markout(fills, mids, ["5s", "10s"]).params
    >>> found[["liquidity", "seconds", "estimate", "usd", "n", "missing", "age_seconds"]]
      liquidity  seconds  estimate  usd  n  missing  age_seconds
    0     taker      5.0       NaN  NaN  0        1          NaN
    1     taker     10.0      50.0  1.0  1        0          2.0
    """
    check_level(level)
    keys = list_keys(by, RESULT_NAMES)
    table = Table(fills, "fills")
    trades, codes, groups, clusters = group_trades(table, keys, cluster).of_one_side()
    marks = reference_prices(table, prices, price, max_age)
    age_ms, spans = span_ms(max_age, "max_age"), list_spans(horizons, "horizons", signed=True)
    errors = estimate_quote_errors(marks, age_ms)
    if errors:
        errors = errors.with_clusters(trades, clusters, cluster)
    gains = []
    for span in spans:
        px, age = marks.after(trades.coin, trades.ms, span, age_ms)
        gain = trades.sign * (px - trades.px) * trades.sz
        slope = (
            [-trades.sign * errors.signs.after(trades.coin, trades.ms, span, age_ms)[0]]
            if errors
            else []
        )
        gains.append(Gains([gain], trades.usd, [age], clusters, trades.coin, errors, slope))
    made = [
        (place, span / 1000, "markout", *figures)
        for place, rows in enumerate(split_groups(codes, len(groups)))
        for span, found in zip(spans, gains, strict=True)
        for figures in found.take(rows).estimate(level, draws, seed)
    ]
    params = add_figures(groups, made, {"seconds": "float64", "name": "str", **FIGURES})
    return Markout(
        params=finish(
            params, {"fills": table.frame, "prices": prices},
            helper="execution.markout", by=keys, price_source=marks.source,
        ),
        n=len(trades),
        level=level,
        method=f"gain over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        max_age_seconds=age_ms / 1000,
        cluster=cluster,
    )  # fmt: skip


class Gains(NamedTuple):
    """Gains of trades in one or several figures; a trade has all figures and an age, or none.

    - ``values``: the gains of each figure, in USD
    - ``base``: the values by which their sums are divided, in USD
    - ``ages``: age of the prices of each figure, in seconds
    - ``cluster``: cluster of each trade
    - ``coin``, ``errors``, ``slopes``: the error of the prices, and how much each figure of a trade
      moves with it, as `QuoteErrors.widen` needs them; None and empty for exact prices
    """

    values: Sequence[Floats]
    base: Floats
    ages: Sequence[Floats]
    cluster: Ints
    coin: Names | None = None
    errors: QuoteErrors | None = None
    slopes: Sequence[Floats] = ()

    def take(self, rows: Ints) -> "Gains":
        """Return the gains of some trades."""
        return Gains(
            [gain[rows] for gain in self.values], self.base[rows], [age[rows] for age in self.ages],
            self.cluster[rows], self.coin and self.coin.take(rows), self.errors,
            [slope[rows] for slope in self.slopes],
        )  # fmt: skip

    def estimate(self, level: float, draws: int, seed: int) -> list[tuple[float, ...]]:
        """Return the values of `FIGURES` for each figure."""
        priced = np.flatnonzero(~np.isnan(self.values[0]))
        found = self.take(priced)
        whole, values, count = bootstrap_ratios(
            [1e4 * gain for gain in found.values], found.base, found.cluster, draws=draws, seed=seed
        )
        n = len(priced)
        made: list[tuple[float, ...]] = []
        for place, gain in enumerate(found.values):
            estimate = float(whole[place])
            interval = bootstrap_interval(values[:, place], count, level)
            if found.errors and found.coin and n:
                slope = found.slopes[place] * found.base / found.base.sum()
                miss = 1e4 * gain - estimate * found.base
                interval = found.errors.widen(
                    interval, estimate, found.coin, slope, miss, found.cluster, level
                )
            usd, age = (
                (float(gain.sum()), float(found.ages[place].mean())) if n else (np.nan, np.nan)
            )
            made.append((estimate, *interval, usd, n, len(self.base) - n, count, age))
        return made


def add_figures(
    groups: pd.DataFrame, made: Sequence[tuple[object, ...]], types: Mapping[str, str]
) -> pd.DataFrame:
    """Return rows of figures with the columns of their groups.

    - ``made``: the place of the group, then the values of the columns `types`
    """
    places, *values = zip(*made, strict=True) if made else ([], *([] for _ in types))
    columns = {
        name: pd.Series(value, dtype=dtype) if dtype == "str" else np.array(value, dtype)
        for (name, dtype), value in zip(types.items(), values, strict=True)
    }
    own = groups.iloc[list(places)].reset_index(drop=True)
    return pd.DataFrame({**own, **columns}, index=own.index)
