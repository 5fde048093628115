"""Price impact: the law of impact by size of parent orders, and the response to single orders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import fill_kinds, frame_access, timestamps
from toolkit.analysis.common.bootstrap import (
    DRAWS,
    bootstrap_interval,
    bootstrap_ratio,
    resample_sums,
)
from toolkit.analysis.common.estimate import Estimate, check_count, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.execution.prices import PriceHistory, read_prices, span_ms
from toolkit.analysis.execution.quotes import refuse_trade_prices, side_signs
from toolkit.arrays import Floats, Ints
from toolkit.installation import explain_missing
from toolkit.times import DAY

EXPONENTS: Final = np.linspace(-0.5, 2.0, 251)
"""The exponents among which the law is searched."""
_ROOT: Final = 100
"""Place of the exponent 1/2 in `EXPONENTS`."""
_UNIT: Final = 0.01
"""The impact is stated for an order of this share of a day's volume."""
_BINS: Final = 8
_FEWEST: Final = 3  # orders of different sizes that determine a law
_FIGURES: Final = {
    "name": "str", "estimate": "float64", "low": "float64", "high": "float64", "n": "int64",
    "missing": "int64", "clusters": "int64",
}  # fmt: skip
_PARENTS: Final = {
    "kind": "str", "parent": "int64", "user": "str", "coin": "str", "side": "str",
    "start": "datetime64[ms, UTC]", "end": "datetime64[ms, UTC]", "fills": "int64",
    "usd": "float64", "share": "float64", "before_px": "float64", "after_px": "float64",
    "impact_bps": "float64",
}  # fmt: skip
_SIZES: Final = {
    "share": "float64", "estimate": "float64", "low": "float64", "high": "float64", "n": "int64",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Impact(Estimate):
    """The law of price impact of parent orders, and the response to single orders.

    Attributes
    ----------
    params : DataFrame
        One row per figure:

        - ``name``: name of the figure
        - ``estimate``: value of the figure, in the unit of the figure
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate
        - ``n``: number of parent orders
        - ``missing``: number of parent orders without a price
        - ``clusters``: number of days, which the interval resamples

        The figures:

        - ``exponent``: d of the law ``c * share**d``, a pure number
        - ``impact_bps``: impact by the law for 1 % of a day's volume
        - ``root_bps``: impact for 1 % of a day's volume if the exponent were 1/2
    parents : DataFrame
        One row per parent order:

        - ``kind``: ``order`` or ``twap``
        - ``parent``: id of the order or of the TWAP
        - ``user``: account of the order
        - ``coin``: coin of the order
        - ``side``: B for a buy, A for a sell; an order without a side has no impact
        - ``start``: time of the first fill, UTC
        - ``end``: time of the last fill, UTC
        - ``fills``: number of fills
        - ``usd``: value of the fills, in USD
        - ``share``: share of a day's volume of the coin
        - ``before_px``: last price before the first fill, in USD
        - ``after_px``: price at the horizon after the last fill, in USD
        - ``impact_bps``: price change from before to after, positive if it follows the order
    sizes : DataFrame
        Mean impact by size, one row for each group of equally many orders:

        - ``share``: share of a day's volume, geometric mean of the orders
        - ``estimate``: mean impact of the orders, in basis points
        - ``low``: lower end of the interval of the mean impact
        - ``high``: upper end of the interval of the mean impact
        - ``n``: number of orders
    lags : DataFrame
        One row per lag:

        - ``lag``: distance between the two orders of a pair, in taker orders of the coin
        - ``response_bps``: mean price change from before an order to before the order `lag` later,
          positive if it follows the order
        - ``response_low``: lower end of the interval of the response, in basis points
        - ``response_high``: upper end of the interval of the response, in basis points
        - ``autocorrelation``: correlation of the sides of the two orders, -1 to 1
        - ``autocorrelation_low``: lower end of the interval of the correlation
        - ``autocorrelation_high``: upper end of the interval of the correlation
        - ``kernel_bps``: part of the response that the order itself caused
        - ``kernel_low``: lower end of the interval of `kernel_bps`, in basis points
        - ``kernel_high``: upper end of the interval of `kernel_bps`, in basis points
        - ``n``: number of pairs of orders
    price_source : str
        Column of the prices.
    """

    parents: pd.DataFrame
    sizes: pd.DataFrame
    lags: pd.DataFrame
    price_source: str

    picture: ClassVar[str] = "impact"


def impact(
    fills: IntoFrame,
    prices: IntoFrame,
    *,
    volume: Mapping[str, float] | None = None,
    price: str | None = None,
    horizon: str | float = "10s",
    max_age: str | float = "60s",
    lags: int = 20,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Impact:
    """Estimate how the price impact of orders grows with their size, and how it decays.

    Parameters
    ----------
    fills : DataFrame
        Fills of all accounts of the markets, or of some: ``oid, coin, px, sz, side, time, crossed``
        (and ``user``, ``twap_id``, ``dir``), in pandas, Polars, DuckDB, PySpark. Only fills of
        takers count, and of these only trades, as for `fill_quality`. Repeated rows count once.
    prices : DataFrame
        Mids of the market, as for `markout`: asset contexts with times, or `quotes` of the tape.
        Prices of trades are refused, because each is a bid or an ask.
    volume : mapping of coin to float, optional
        Volume of a day in USD. Without it, the volume of the fills, by the days with fills: the
        market's volume only if the fills are those of all accounts.
    price : str, optional
        Column of the price, as for `markout`.
    horizon : str or float, default "10s"
        Time after the last fill at which impact is measured.
    max_age : str or float, default "60s"
        Largest age of a price. An order that lacks one of the two prices is left out.
    lags : int, default 20
        Number of lags of the response.
    level, draws, seed
        Level of the intervals; number of resamples of days; their seed.

    Returns
    -------
    Impact
        ``params`` has the exponent with its interval: the square-root law holds if the interval
        contains 1/2. ``sizes`` has the mean impact by size, ``lags`` the response.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If an argument is not valid, or the prices are those of trades.

    Notes
    -----
    A parent order is all fills of one order id, or of one TWAP id. Its impact is
    ``s * (after / before - 1)``, with s = 1 for buys and -1 for sells. The law
    ``c * (size / volume of a day)**d`` (Almgren et al., 2005; Toth et al., 2011) is fitted by least
    squares over d from -0.5 to 2, with c > 0. The impacts of single orders have both signs, so
    their logarithms cannot be fitted. It is missing if no positive law fits better than no impact.

    Response and autocorrelation: Bouchaud et al. (2004), one event for each taker order. The kernel
    solves ``E[r(t + j) s(t)] = sum(K(n) * C(j - n))`` for the price changes ``r`` between orders,
    with the autocorrelation C; ``kernel_bps`` is the sum of K (Eisler, Bouchaud and Kockelkoren,
    2012). Intervals: bootstrap by day; an order belongs to the day of its first fill.

    Examples
    --------
    Orders of 1, 4 and 16 move the price by 1, 2 and 4 basis points: a square root.

    >>> import pandas as pd
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> fills = pd.DataFrame({"oid": [1, 2, 3], "coin": "XYZ", "px": 100.0, "sz": [1.0, 4.0, 16.0],
    ...     "side": "B", "crossed": True, "time": ms(1_000, 101_000, 201_000)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100, 100.01, 100, 100.02, 100, 100.04],
    ...     "time": ms(0, 2_000, 100_000, 102_000, 200_000, 202_000)})
    >>> found = impact(fills, mids, volume={"XYZ": 160_000.0})
    >>> found.params[["name", "estimate"]].round(2)
             name  estimate
    0    exponent       0.5
    1  impact_bps       4.0
    2    root_bps       4.0
    """
    check_level(level)
    check_count(lags, "lags")
    span, age_ms = span_ms(horizon, "horizon"), span_ms(max_age, "max_age")
    marks = read_prices(prices, price)
    rows = _read_taker_fills(fills)
    refuse_trade_prices(rows, marks)
    parents = _price_parents(_join_parents(rows, volume), marks, span, age_ms)
    known = parents[parents["impact_bps"].notna() & (parents["share"] > 0)]
    day = (timestamps.ms_from_times(known["start"]) // DAY).to_numpy(np.int64)
    _, days = np.unique(day, return_inverse=True)
    share, found = (known[name].to_numpy(np.float64) for name in ("share", "impact_bps"))
    counts = (len(known), len(parents) - len(known), len(np.unique(day)))
    fitted = _fit_law(share, found, days.astype(np.int64), draws, seed)
    figures = []
    for name, values in zip(("exponent", "impact_bps", "root_bps"), fitted.T, strict=True):
        low, high = bootstrap_interval(values[1:], counts[2], level)
        if name == "exponent":
            low, high = np.clip((low, high), EXPONENTS[0], EXPONENTS[-1])
        figures.append((name, values[0], low, high, *counts))
    facts = result_provenance({"fills": fills, "prices": prices})
    facts |= {"helper": "execution.impact", "price_source": marks.source}
    events = rows[rows["_sign"].notna()].drop_duplicates(["coin", "_ms", "oid", "side"])
    events = events.reset_index(drop=True)
    before = events["_ms"].to_numpy(np.float64) - 1
    events = events.assign(_mid=_last_price(events["coin"], marks, before, age_ms))
    response = measure_response(events, lags, level, draws, seed)
    params = pd.DataFrame(figures, columns=list(_FIGURES)).astype(_FIGURES)
    sizes = _average_sizes(share, found, days.astype(np.int64), level, draws, seed)
    parents = parents[list(_PARENTS)].astype(_PARENTS)
    for table in (params, parents, sizes, response):
        table.attrs["toolkit"] = facts
    return Impact(
        params=params, n=counts[0], level=level, parents=parents, sizes=sizes, lags=response,
        price_source=marks.source,
        method=f"law of impact by size; bootstrap by day; prices: {marks.source}",
    )  # fmt: skip


def _read_taker_fills(fills: IntoFrame) -> pd.DataFrame:
    """Return the trades of takers among the fills, with the id of their order or TWAP."""
    needed = ("oid", "coin", "px", "sz", "side", "time", "crossed")
    optional = ("user", "twap_id", "dir")
    rows = frame_access.pandas_columns(
        drop_repeated_rows(fills, "fills"), "fills", needed, optional, ("px", "sz")
    )
    frame = nw.from_native(rows, eager_only=True)
    fill_kinds.warn_missing_directions(frame, "fills")
    rows = frame.filter(fill_kinds.is_market_trade(frame.columns)).to_native()
    taken = rows["crossed"].astype("boolean").fillna(False).to_numpy(bool)
    rows = rows[taken & (rows["px"] * rows["sz"] > 0).to_numpy(bool)].reset_index(drop=True)
    twap = rows["twap_id"] if "twap_id" in rows else pd.Series(pd.NA, rows.index)
    is_twap = twap.notna()
    rows["kind"] = pd.Series(np.where(is_twap, "twap", "order"), rows.index, dtype="str")
    rows["parent"] = twap.where(is_twap, rows["oid"]).astype("int64")
    rows["user"] = rows["user"].astype("str").fillna("") if "user" in rows else ""
    rows["coin"] = rows["coin"].astype("str")
    rows["side"] = rows["side"].astype("str")
    rows["_sign"] = side_signs(rows["side"])
    rows["_ms"] = timestamps.ms_from_times(rows["time"]).astype("float64")
    rows["_usd"] = rows["px"] * rows["sz"]
    return rows.sort_values(["coin", "_ms", "kind", "parent"], kind="stable", ignore_index=True)


def _join_parents(rows: pd.DataFrame, volume: Mapping[str, float] | None) -> pd.DataFrame:
    """Return one row per parent order, with its share of a day's volume."""
    keys = ["kind", "parent", "user", "coin", "side"]
    parents = rows.groupby(keys, sort=False, as_index=False, dropna=False).agg(
        fills=("_ms", "size"), usd=("_usd", "sum"), _start=("_ms", "min"), _end=("_ms", "max"),
        _sign=("_sign", "first"),
    )  # fmt: skip
    parents["start"] = timestamps.timestamps_from_ms(parents["_start"])
    parents["end"] = timestamps.timestamps_from_ms(parents["_end"])
    if volume is None:
        daily = rows.assign(_day=rows["_ms"] // DAY).groupby(["coin", "_day"])["_usd"].sum()
        daily = daily.groupby("coin").mean()
    else:
        daily = pd.Series(dict(volume), dtype="float64")
    parents["share"] = parents["usd"] / parents["coin"].map(daily).astype("float64")
    return parents.sort_values(["_start", *keys], kind="stable", ignore_index=True)


def _price_parents(
    parents: pd.DataFrame, marks: PriceHistory, span: int, age_ms: int
) -> pd.DataFrame:
    start, end = (parents[name].to_numpy(np.float64) for name in ("_start", "_end"))
    before = _last_price(parents["coin"], marks, start - 1, age_ms)
    after, when = marks.last_at(parents["coin"], end + span)
    # A price from before the last fill does not contain its impact.
    is_after = (when >= end) & (end + span - when <= age_ms)
    after = np.where(is_after, after, np.nan)
    moved = 1e4 * parents["_sign"].to_numpy(np.float64) * (after / before - 1)
    return parents.assign(before_px=before, after_px=after, impact_bps=moved)


def _last_price(coin: pd.Series, marks: PriceHistory, at: Floats, age_ms: int) -> Floats:
    px, when = marks.last_at(coin, at)
    return np.where(at - when <= age_ms, px, np.nan)


def _fit_law(share: Floats, found: Floats, days: Ints, draws: int, seed: int) -> Floats:
    """Return exponent, impact at 1 % and the same for 1/2: (1 + draws, 3), the estimate first.

    For each exponent the best coefficient is a ratio of sums, so a resample needs sums only.
    """
    if len(np.unique(share)) < _FEWEST:
        return np.full((1 + draws, 3), np.nan)
    count = int(days.max()) + 1
    parts = np.empty((count, 2 * len(EXPONENTS)))
    scale = np.log(share / _UNIT)
    for place, exponent in enumerate(EXPONENTS):
        power = np.exp(exponent * scale)
        parts[:, 2 * place] = np.bincount(days, found * power, count)
        parts[:, 2 * place + 1] = np.bincount(days, power * power, count)
    whole = parts.sum(axis=0, keepdims=True)
    sums = np.vstack([whole, resample_sums(parts, draws, seed)])
    with np.errstate(divide="ignore", invalid="ignore"):
        best = sums[:, ::2] / sums[:, 1::2]
        # What the law removes from the sum of squares; a negative law does not count.
        gain = np.where(best > 0, best * sums[:, ::2], 0.0)
    line = np.arange(len(sums))
    place = gain.argmax(axis=1)
    inner = np.clip(place, 1, len(EXPONENTS) - 2)
    left, here, right = (gain[line, inner + step] for step in (-1, 0, 1))
    bend = left - 2 * here + right
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where((place == inner) & (bend < 0), 0.5 * (left - right) / bend, 0.0)
    step = EXPONENTS[1] - EXPONENTS[0]
    fitted = np.stack(
        [EXPONENTS[place] + step * np.clip(shift, -0.5, 0.5), best[line, place], best[:, _ROOT]],
        axis=1,
    )
    fitted[gain.max(axis=1) <= 0, :2] = np.nan
    return fitted


def _average_sizes(
    share: Floats, found: Floats, days: Ints, level: float, draws: int, seed: int
) -> pd.DataFrame:
    """Return the mean impact of groups of orders by size."""
    groups = min(_BINS, len(np.unique(share)))
    ranks = pd.Series(share).rank(method="dense", pct=True).to_numpy(np.float64)
    place = np.ceil(ranks * groups - 1e-9).astype(np.int64)
    rows: list[tuple[Any, ...]] = []
    for group in np.unique(place):
        own = place == group
        mean, values, count = bootstrap_ratio(
            found[own], np.ones(own.sum()), days[own], draws=draws, seed=seed
        )
        low, high = bootstrap_interval(values, count, level)
        rows.append((np.exp(np.log(share[own]).mean()), mean, low, high, int(own.sum())))
    return pd.DataFrame(rows, columns=list(_SIZES)).astype(_SIZES)


_CURVES: Final = ("response_bps", "autocorrelation", "kernel_bps")
_LEAST_SHARE: Final = 1e-6
"""Smallest eigenvalue of the autocorrelations, as a share of the largest, of a kernel."""


def measure_response(
    events: pd.DataFrame, lags: int, level: float, draws: int, seed: int
) -> pd.DataFrame:
    """Return response, autocorrelation of sides and kernel by lag, each with its interval.

    - ``events``: taker orders sorted by coin and time: ``coin``, ``_ms``, ``_sign``, ``_mid`` (the
      price before the order; missing if unknown)
    """
    codes = np.unique(events["coin"].astype("str"), return_inverse=True)[1]
    sign, mid = (events[name].to_numpy(np.float64) for name in ("_sign", "_mid"))
    names, days = np.unique(events["_ms"].to_numpy(np.float64) // DAY, return_inverse=True)
    moves = np.full(len(events), np.nan)
    is_same = codes[1:] == codes[:-1]
    moves[:-1] = np.where(is_same, 1e4 * (mid[1:] / mid[:-1] - 1), np.nan)
    count = len(names)
    # For each day: sums of r(t + j) s(t) and of s(t + j) s(t), and how many pairs there are.
    parts = np.zeros((count, 4, lags + 1))
    for lag in range(min(lags, len(events) - 1) + 1):
        size = len(events) - lag
        is_pair = codes[:size] == codes[lag:]
        follow = moves[lag:] * sign[:size]
        is_known = is_pair & ~np.isnan(follow)
        pairs = (np.where(is_known, follow, 0.0), is_known, is_pair * sign[:size] * sign[lag:],
                 is_pair)  # fmt: skip
        for place, values in enumerate(pairs):
            parts[:, place, lag] = np.bincount(days[:size], values.astype(np.float64), count)
    flat = parts.reshape(count, 4 * (lags + 1))
    sums = np.vstack([flat.sum(axis=0, keepdims=True), resample_sums(flat, draws, seed)])
    follow, known, agree, both = np.moveaxis(sums.reshape(-1, 4, lags + 1), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes, correlation = follow / known, agree / both
    curves = {
        "response_bps": np.cumsum(changes[:, :lags], axis=1),
        "autocorrelation": correlation[:, 1:],
        "kernel_bps": np.cumsum(_solve_kernels(correlation[:, :lags], changes[:, :lags]), axis=1),
    }
    table = {"lag": pd.Series(np.arange(1, lags + 1), dtype="int64")}
    for name in _CURVES:
        values = curves[name]
        ends = [bootstrap_interval(values[1:, lag], count, level) for lag in range(lags)]
        short = name.removesuffix("_bps")
        table[name] = pd.Series(values[0])
        table[f"{short}_low"] = pd.Series([low for low, _ in ends], dtype="float64")
        table[f"{short}_high"] = pd.Series([high for _, high in ends], dtype="float64")
    table["n"] = pd.Series(known[0, :lags].astype(np.int64))
    return pd.DataFrame(table)


def _solve_kernels(correlation: Floats, changes: Floats) -> Floats:
    """Return the kernel of each row: the solution of ``toeplitz(correlation) @ K = changes``."""
    with explain_missing("analysis"):
        from scipy import linalg

    kernels = np.full(changes.shape, np.nan)
    for row, (each, change) in enumerate(zip(correlation, changes, strict=True)):
        if not np.isfinite(each).all() or not np.isfinite(change).all():
            continue
        matrix = linalg.toeplitz(each)
        sizes = np.linalg.eigvalsh(matrix)
        # Orders that all have the same side do not tell the kernel apart from the response.
        if sizes[0] > _LEAST_SHARE * sizes[-1]:
            kernels[row] = np.linalg.solve(matrix, change)
    return kernels
