"""What prices did after fills, with intervals: markouts, spreads paid and kept, impact."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis import execution_fills, grouping
from toolkit.analysis.marks import marks_of, milliseconds
from toolkit.analysis.origin import joint
from toolkit.analysis.resampling import DRAWS, interval, ratios
from toolkit.analysis.result import Estimate, checked

Floats = npt.NDArray[np.float64]

_FIGURES = {
    "estimate": "float64", "low": "float64", "high": "float64", "usd": "float64", "n": "int64",
    "missing": "int64", "clusters": "int64", "age_seconds": "float64",
}  # fmt: skip
_SPLIT = ["effective", "realised", "impact"]
_TAKEN = ("name", "seconds", *_FIGURES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Markout(Estimate):
    """What prices did after fills.

    Attributes
    ----------
    params : DataFrame
        The groups, ``seconds`` after the fill, ``name`` (``markout``), ``estimate`` in basis
        points with ``low`` and ``high``, ``usd``, ``n`` fills priced, ``missing``: fills without
        a fresh price, ``clusters``, ``age_seconds`` of the prices in the mean.
    price_source : str
        The column that prices were taken from.
    max_age_seconds : float
        How old a price could be.
    cluster : str
        What was drawn again.
    """

    price_source: str
    max_age_seconds: float
    cluster: str

    picture: ClassVar[str] = "markout"


@dataclass(frozen=True, eq=False, kw_only=True)
class Spreads(Estimate):
    """Half spreads paid and kept, and what fills moved.

    Attributes
    ----------
    params : DataFrame
        The groups, ``name`` (``effective``, ``realised``, ``impact``), ``estimate`` in basis
        points with ``low`` and ``high``, ``usd``, ``n``, ``missing``, ``clusters``,
        ``age_seconds``.
    price_source, cluster : str
        The column that prices were taken from; what was drawn again.
    seconds : float
        Time after the fill at which it was looked at again.
    """

    price_source: str
    seconds: float
    cluster: str

    picture: ClassVar[str] = "spreads"


def markout(
    fills: Any,
    prices: Any,
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
    """Say what the price did after fills: positive is good for the account.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time`` and what `by` and `cluster` need (pandas, Polars, DuckDB).
        Rows given twice count twice.
    prices : DataFrame
        ``coin`` (or ``name``), ``time`` and a price: archived asset contexts, each batch with
        its time, or the tape: fills of anybody.
    horizons : list of str or float
        Times after the fill: text such as ``"5m"``, or seconds.
    price : str, optional
        Column to take: by default the first there of ``mid_px``, ``mark_px``, ``px``,
        ``oracle_px``.
    max_age : str or float, default "60s"
        How old the price may be at that time; it must be from after the fill. Fills without such
        a price are counted as ``missing``, not as 0.
    by : str, list of str or None, default ("liquidity",)
        Groups, as for `fill_quality`.
    cluster : str, default "day"
        What is drawn again for the intervals: ``day`` (UTC), ``user``, or another column; fills
        of one cluster move together.
    level, draws, seed
        Of the intervals; number of resamples; their seed.

    Returns
    -------
    Markout
        ``params`` has a row for each group and horizon: sum of ``(price - px) * sz`` (sells: the
        other way round) over the sum of ``px * sz``, in basis points; ``usd`` is the sum.
        Intervals are missing for fewer than two clusters.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` makes no sense.

    Notes
    -----
    Percentile bootstrap by cluster, expanded for few clusters as by Hesterberg (2015).

    Examples
    --------
    Bought at 100; ten seconds later the mid is 100.5, which was known for two seconds then.

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
    checked(level)
    keys = grouping.listed(by, _TAKEN)
    rows = _read(fills, keys, cluster)
    marks, age_ms = marks_of(prices, price), milliseconds(max_age, "max_age")
    spans = sorted({milliseconds(one, "a horizon") for one in horizons})
    made = []
    for span in spans:
        px, age = execution_fills.after(rows, marks, span, age_ms)
        gain = rows["_sign"].to_numpy() * (px - rows["px"].to_numpy()) * rows["sz"].to_numpy()
        table = rows.assign(_gain=gain, _base=rows["_usd"], _age=age)
        for key, group in execution_fills.groups(table, keys):
            (figures,) = _figures(group, ["_gain"], level, draws, seed)
            made.append((*key, span / 1000, "markout", *figures))
    types = {**execution_fills.key_types(rows, keys), "seconds": "float64", "name": "str"}
    params = pd.DataFrame(made, columns=[*types, *_FIGURES]).astype({**types, **_FIGURES})
    params = params.sort_values([*keys, "seconds"], kind="stable", ignore_index=True)
    params.attrs["toolkit"] = _facts("markout", fills, prices, keys, marks.source)
    return Markout(
        params=params,
        n=len(rows),
        level=level,
        method=f"gain over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        max_age_seconds=age_ms / 1000,
        cluster=cluster,
    )


def spreads(
    fills: Any,
    prices: Any,
    horizon: str | float = "5m",
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("liquidity",),
    cluster: str = "day",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Spreads:
    """Split the half spread that fills paid into what was kept by the other side, and impact.

    Parameters
    ----------
    fills, prices, price, by, cluster, level, draws, seed
        As for `markout`; rows given twice count twice.
    horizon : str or float, default "5m"
        Time after the fill.
    max_age : str or float, default "60s"
        How old the prices may be, at the fill and at that time. A fill that lacks either is
        ``missing`` from all three figures, as is one without a price or size of its own.

    Returns
    -------
    Spreads
        Costs in basis points of the price before, positive where the account of the fill pays.
        With s = 1 for buys and -1 for sells, price before p, price after q:

        - ``effective``: s * (px - p), paid against the price before;
        - ``realised``: s * (px - q), what of it the other side kept;
        - ``impact``: s * (q - p), how far the price went on; effective = realised + impact.

        A maker's effective spread is negative: it earns it.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` makes no sense.

    Notes
    -----
    Half of the spreads of Huang and Stoll (1996), weighted by value.

    Examples
    --------
    The mid was 100; bought at 100.1; a minute later it is 100.04.

    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.1], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.04],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True)})
    >>> spreads(fills, mids, "1m").params[["name", "estimate", "n"]].round(6)
            name  estimate  n
    0  effective      10.0  1
    1   realised       6.0  1
    2     impact       4.0  1
    """
    checked(level)
    keys = grouping.listed(by, _TAKEN)
    rows = _read(fills, keys, cluster)
    marks, age_ms = marks_of(prices, price), milliseconds(max_age, "max_age")
    span = milliseconds(horizon, "the horizon")
    start, _ = execution_fills.before(rows, marks, age_ms)
    end, age = execution_fills.after(rows, marks, span, age_ms)
    px, sz, sign = (rows[name].to_numpy() for name in ("px", "sz", "_sign"))
    # A fill that lacks one of them is missing from every figure, or they would not add up.
    lacks = np.isnan(start + end + px + sz)
    start, end = (np.where(lacks, np.nan, one) for one in (start, end))
    table = rows.assign(
        effective=sign * (px - start) * sz,
        realised=sign * (px - end) * sz,
        impact=sign * (end - start) * sz,
        _base=start * sz,
        _age=age,
    )
    made = [
        (*key, name, *figures)
        for key, group in execution_fills.groups(table, keys)
        for name, figures in zip(_SPLIT, _figures(group, _SPLIT, level, draws, seed), strict=True)
    ]
    types = {**execution_fills.key_types(rows, keys), "name": "str"}
    params = pd.DataFrame(made, columns=[*types, *_FIGURES]).astype({**types, **_FIGURES})
    params.attrs["toolkit"] = _facts("spreads", fills, prices, keys, marks.source)
    return Spreads(
        params=params,
        n=len(rows),
        level=level,
        method=f"cost over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        seconds=span / 1000,
        cluster=cluster,
    )


def _read(fills: Any, keys: list[str], cluster: str) -> pd.DataFrame:
    extra = [] if cluster == "day" else [cluster]
    rows = execution_fills.read(fills, [*keys, *extra])
    return rows.assign(_cluster=execution_fills.clusters(rows, cluster))


def _figures(
    group: pd.DataFrame, names: Sequence[str], level: float, draws: int, seed: int
) -> list[tuple[float | int, ...]]:
    """Give the figures of each name; fills lack all of them or none."""
    priced = group[group[names[0]].notna()]
    above = [1e4 * priced[name].to_numpy(dtype="float64") for name in names]
    base = priced["_base"].to_numpy(dtype="float64")
    codes = priced["_cluster"].to_numpy()
    whole, values, count = ratios(above, base, codes, draws=draws, seed=seed)
    usd = [float(priced[name].sum()) if len(priced) else float("nan") for name in names]
    counts = (len(priced), len(group) - len(priced), count, float(priced["_age"].mean()))
    return [
        (float(one), *interval(drawn, count, level), sum_, *counts)
        for one, drawn, sum_ in zip(whole, values.T, usd, strict=True)
    ]


def _facts(name: str, fills: Any, prices: Any, keys: list[str], source: str) -> dict[str, Any]:
    facts = joint({"fills": fills, "prices": prices})
    return {**facts, "helper": f"execution.{name}", "by": keys, "price_source": source}
