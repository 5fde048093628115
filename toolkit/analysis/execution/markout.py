"""What prices did after fills, with intervals; and what spreads share with that."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common import grouping
from toolkit.analysis.common.bootstrap import DRAWS, bootstrap_interval, bootstrap_ratios
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.execution import fills as execution_fills
from toolkit.analysis.execution.marks import Marks, marks_of, milliseconds
from toolkit.analysis.execution.tape import check_prices, quotes

Floats = npt.NDArray[np.float64]

FIGURES = {
    "estimate": "float64", "low": "float64", "high": "float64", "usd": "float64", "n": "int64",
    "missing": "int64", "clusters": "int64", "age_seconds": "float64",
}  # fmt: skip
TAKEN = ("name", "seconds", *FIGURES)


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


def markout(
    fills: Any,
    prices: Any = None,
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
        Rows given twice count once.
    prices : DataFrame, optional
        ``coin`` (or ``name``), ``time`` and a price: archived asset contexts, each batch with
        its time, or `quotes`. Without it the fills are the whole tape, and the prices are the
        mids of its `quotes`. The tape's own prices are refused: each is a bid or an ask.
    horizons : list of str or float
        Times after the fill: text such as ``"5m"``, or seconds.
    price : str, optional
        Column to take: by default the first there of ``mid_px``, ``mark_px``, ``oracle_px``.
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
        If a span of time or `level` makes no sense, or the prices are those of trades.

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
    check_level(level)
    keys = grouping.list_keys(by, TAKEN)
    rows = read_clusters(fills, keys, cluster)
    age_ms = milliseconds(max_age, "max_age")
    marks = read_marks(fills, prices, price, rows, max_age)
    spans = sorted({milliseconds(one, "a horizon") for one in horizons})
    made = []
    for span in spans:
        px, age = execution_fills.after(rows, marks, span, age_ms)
        gain = rows["_sign"].to_numpy() * (px - rows["px"].to_numpy()) * rows["sz"].to_numpy()
        table = rows.assign(_gain=gain, _base=rows["_usd"], _age=age)
        for key, group in execution_fills.groups(table, keys):
            (figures,) = figures_of(group, ["_gain"], level, draws, seed)
            made.append((*key, span / 1000, "markout", *figures))
    types = {**execution_fills.key_types(rows, keys), "seconds": "float64", "name": "str"}
    params = pd.DataFrame(made, columns=[*types, *FIGURES]).astype({**types, **FIGURES})
    params = params.sort_values([*keys, "seconds"], kind="stable", ignore_index=True)
    params.attrs["toolkit"] = facts_of("markout", fills, prices, keys, marks.source)
    return Markout(
        params=params,
        n=len(rows),
        level=level,
        method=f"gain over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        max_age_seconds=age_ms / 1000,
        cluster=cluster,
    )


def read_marks(
    fills: Any, prices: Any, price: str | None, rows: pd.DataFrame, max_age: str | float
) -> Marks:
    """Return the prices given, if they can be mids, or else the mids behind the tape itself."""
    if prices is None:
        return replace(marks_of(quotes(fills, max_age=max_age), "mid_px"), source="quotes")
    marks = marks_of(prices, price)
    check_prices(rows, marks)
    return marks


def read_clusters(fills: Any, keys: list[str], cluster: str) -> pd.DataFrame:
    """Return the fills as `execution_fills.read` does, with the number of their cluster."""
    extra = [] if cluster == "day" else [cluster]
    rows = execution_fills.read(fills, [*keys, *extra])
    return rows.assign(_cluster=execution_fills.clusters(rows, cluster))


def figures_of(
    group: pd.DataFrame, names: Sequence[str], level: float, draws: int, seed: int
) -> list[tuple[float | int, ...]]:
    """Give the figures of each name; fills lack all of them or none."""
    priced = group[group[names[0]].notna()]
    above = [1e4 * priced[name].to_numpy(dtype="float64") for name in names]
    base = priced["_base"].to_numpy(dtype="float64")
    codes = priced["_cluster"].to_numpy()
    whole, values, count = bootstrap_ratios(above, base, codes, draws=draws, seed=seed)
    usd = [float(priced[name].sum()) if len(priced) else float("nan") for name in names]
    counts = (len(priced), len(group) - len(priced), count, float(priced["_age"].mean()))
    return [
        (float(one), *bootstrap_interval(drawn, count, level), sum_, *counts)
        for one, drawn, sum_ in zip(whole, values.T, usd, strict=True)
    ]


def facts_of(name: str, fills: Any, prices: Any, keys: list[str], source: str) -> dict[str, Any]:
    """Return the provenance of a result."""
    facts = result_provenance({"fills": fills, "prices": prices})
    return {**facts, "helper": f"execution.{name}", "by": keys, "price_source": source}
