"""Markout: the price change after fills, with intervals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import grouping
from toolkit.analysis.common.bootstrap import DRAWS, bootstrap_interval, bootstrap_ratios
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.execution.fill_quality import (
    group_fills,
    key_types,
    prices_after,
    read_market_trades,
    read_reference_prices,
)
from toolkit.analysis.execution.prices import list_spans, span_ms
from toolkit.analysis.execution.quote_error import QuoteErrors, estimate_quote_errors

FIGURES = {
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

        - ``seconds``: time from the fill to the price
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

    picture: ClassVar[str] = "markout"


def markout(
    fills: IntoFrame,
    prices: IntoFrame | None = None,
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
        ``coin, px, sz, side, time`` and the columns of `by` and `cluster` (pandas, Polars, DuckDB,
        PySpark). Repeated rows count once.
    prices : DataFrame, optional
        ``coin`` (or ``name``), ``time`` and a price: archived answers of `tk.meta_and_asset_ctxs`,
        with a column ``time``, or `quotes`. Without it `fills` must be the full tape of the market,
        and the prices are the mids of its `quotes`. Prices of trades are refused, because each is a
        bid or an ask.
    horizons : list of str or float
        Times after the fill: text such as ``"5m"``, or seconds.
    price : str, optional
        Column of the price. By default the first of ``mid_px``, ``mark_px``, ``oracle_px`` that
        exists.
    max_age : str or float, default "60s"
        How old the last price may be at the horizon. The price must be later than the fill. Fills
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
    `quotes` as prices, the intervals include the error of the quotes: see `spreads`.

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
    keys = grouping.list_keys(by, RESULT_NAMES)
    rows = read_clusters(fills, keys, cluster)
    age_ms = span_ms(max_age, "max_age")
    marks = read_reference_prices(fills, prices, price, rows, max_age)
    errors = estimate_quote_errors(marks.quotes, age_ms)
    errors = errors and errors.with_clusters(rows, cluster)
    spans = list_spans(horizons, "horizons")
    made = []
    for span in spans:
        px, age = prices_after(rows, marks, span, age_ms)
        gain = rows["_sign"].to_numpy() * (px - rows["px"].to_numpy()) * rows["sz"].to_numpy()
        table = rows.assign(_gain=gain, _base=rows["_usd"], _age=age)
        if errors:
            table["_gain_slope"] = (
                -rows["_sign"] * prices_after(rows, errors.signs, span, age_ms)[0]
            )
        for key, group in group_fills(table, keys):
            (figures,) = estimate_gains(group, ["_gain"], level, draws, seed, errors)
            made.append((*key, span / 1000, "markout", *figures))
    types = {**key_types(rows, keys), "seconds": "float64", "name": "str"}
    params = pd.DataFrame(made, columns=[*types, *FIGURES]).astype({**types, **FIGURES})
    params = params.sort_values([*keys, "seconds"], kind="stable", ignore_index=True)
    params.attrs["toolkit"] = result_facts("markout", fills, prices, keys, marks.source)
    return Markout(
        params=params,
        n=len(rows),
        level=level,
        method=f"gain over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        max_age_seconds=age_ms / 1000,
        cluster=cluster,
    )


def read_clusters(fills: IntoFrame, keys: list[str], cluster: str) -> pd.DataFrame:
    """Return the fills as `read_market_trades` does, with the number of each fill's cluster."""
    rows = read_market_trades(fills, list(dict.fromkeys([*keys, cluster])))
    names = rows[cluster]
    return rows.assign(_cluster=pd.factorize(names, sort=True)[0].astype("int64"))


def estimate_gains(
    group: pd.DataFrame,
    names: Sequence[str],
    level: float,
    draws: int,
    seed: int,
    errors: QuoteErrors | None = None,
) -> list[tuple[float | int, ...]]:
    """Return the figures of each column of gains; a fill has all of them and an age, or none.

    With `errors` the group has for each gain a column ``<name>_slope``, as `QuoteErrors.widen`
    needs it.
    """
    gains = [group[name].to_numpy(dtype="float64") for name in names]
    is_priced = ~np.isnan(gains[0])
    gains = [gain[is_priced] for gain in gains]
    base = group["_base"].to_numpy(dtype="float64")[is_priced]
    codes = group["_cluster"].to_numpy()[is_priced]
    age = group["_age"].to_numpy(dtype="float64")[is_priced]
    whole, values, count = bootstrap_ratios(
        [1e4 * gain for gain in gains], base, codes, draws=draws, seed=seed
    )
    nothing = float("nan")
    usd = [float(gain.sum()) if len(gain) else nothing for gain in gains]
    mean_age = float(age.mean()) if len(age) else nothing
    counts = (len(base), len(group) - len(base), count, mean_age)
    intervals = [bootstrap_interval(drawn, count, level) for drawn in values.T]
    if errors and len(base):
        priced = group[is_priced]
        intervals = [
            errors.widen(interval, float(estimate), priced, name, level)
            for interval, estimate, name in zip(intervals, whole, names, strict=True)
        ]
    return [
        (float(estimate), *interval, sum_, *counts)
        for estimate, interval, sum_ in zip(whole, intervals, usd, strict=True)
    ]


def result_facts(
    name: str, fills: IntoFrame, prices: IntoFrame | None, keys: list[str], source: str
) -> dict[str, Any]:
    """Return the provenance of a result."""
    facts = result_provenance({"fills": fills, "prices": prices})
    return {**facts, "helper": f"execution.{name}", "by": keys, "price_source": source}
