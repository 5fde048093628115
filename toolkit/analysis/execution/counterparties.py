"""Who trades against whom: both sides of each trade, and whose trades the market follows."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common.bootstrap import DRAWS
from toolkit.analysis.common.estimate import check_count, check_level
from toolkit.analysis.common.shrinkage import shrink_estimates
from toolkit.analysis.execution.fill_quality import prices_after, read_reference_prices
from toolkit.analysis.execution.markout import estimate_gains, read_clusters, result_facts
from toolkit.analysis.execution.prices import span_ms

Names = str | Mapping[str, str]
_PAIR: Final = {
    "taker": "str", "maker": "str", "trades": "int64", "volume_usd": "float64", "priced": "int64",
    "gain_usd": "float64", "gain_bps": "float64", "low": "float64", "high": "float64",
    "clusters": "int64",
}  # fmt: skip
_RANKING: Final = {
    "rank": "Int64", "name": "str", "fills": "int64", "volume_usd": "float64", "priced": "int64",
    "gain_usd": "float64", "gain_bps": "float64", "error_bps": "float64", "shrunk_bps": "float64",
    "low": "float64", "high": "float64", "clusters": "int64",
}  # fmt: skip


def counterparties(
    fills: IntoFrame,
    prices: IntoFrame | None = None,
    horizon: str | float = "5m",
    *,
    by: Names = "user",
    price: str | None = None,
    max_age: str | float = "60s",
    cluster: str = "day",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Join both sides of each trade: how much each taker traded with each maker, and who gained.

    Parameters
    ----------
    fills : DataFrame
        Fills of as many accounts as possible: ``coin, px, sz, side, time, tid, crossed, user``
        (pandas, Polars, DuckDB, PySpark; `tk.many` adds ``user``). Repeated rows count once.
    prices, price, max_age
        As for `markout`. Without `prices` the fills must be the full tape.
    horizon : str or float, default "5m"
        Time after the trade at which the gain is measured.
    by : str or mapping of address to name, default "user"
        How the two sides are named: by a column, such as ``user`` or ``builder``, or by a name for
        each address. Addresses without a name keep the address.
    cluster, level, draws, seed
        As for `markout`.

    Returns
    -------
    DataFrame
        pandas, the pair with the largest volume first:

        - ``taker``: account of the taker; missing if that side is not in the frame, or has no name.
        - ``maker``: account of the maker; missing as for ``taker``.
        - ``trades``: number of trades.
        - ``volume_usd``: volume of the trades, each counted once, in USD.
        - ``priced``: number of trades with a fresh price at the horizon, and a side.
        - ``gain_usd``: gain of the taker from the trade to the horizon, without fees, in USD.
          Positive is good for the taker; the maker's gain is the opposite.
        - ``gain_bps``: the gain in basis points of the priced volume.
        - ``low``: lower end of the interval of `gain_bps`, bootstrap by cluster.
        - ``high``: upper end of the interval of `gain_bps`, bootstrap by cluster.
        - ``clusters``: number of clusters.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` is not valid, or the prices are those of trades.

    Notes
    -----
    The two sides of a trade share the coin and the trade id. A fill without a trade id is a trade
    without its other side. If the prices are `quotes` of the tape, their own error is not part of
    the interval; it is in the intervals of `markout` and `spreads`.

    Examples
    --------
    Account a takes 2 at 100 from account b; a minute later the mid is 100.5.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"user": ["0xa", "0xb"], "coin": "XYZ", "px": 100.0, "sz": 2.0,
    ...     "side": ["B", "A"], "crossed": [True, False], "tid": 7,
    ...     "time": pd.to_datetime([1000, 1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.5],
    ...     "time": pd.to_datetime([60_000], unit="ms", utc=True)})
    >>> found = counterparties(fills, mids, "1m")
    >>> found[["taker", "maker", "trades", "volume_usd", "gain_usd", "gain_bps"]]
      taker maker  trades  volume_usd  gain_usd  gain_bps
    0   0xa   0xb       1       200.0       1.0      50.0
    """
    check_level(level)
    age_ms, span = span_ms(max_age, "max_age"), span_ms(horizon, "horizon")
    column = by if isinstance(by, str) else "user"
    keys = list(dict.fromkeys((column, "tid", "crossed")))
    rows = read_clusters(fills, keys, cluster)
    marks = read_reference_prices(fills, prices, price, rows, max_age)
    trades = _join_sides(rows, _side_names(rows, by))
    px, age = prices_after(trades, marks, span, age_ms)
    gain = trades["_sign"].to_numpy() * (px - trades["px"].to_numpy()) * trades["sz"].to_numpy()
    # Numbers alone: there may be thousands of pairs, and the rows of each one are copied.
    figures = trades[["_cluster"]].assign(_gain=gain, _base=trades["_usd"], _age=age)
    sides = [trades["taker"], trades["maker"]]
    made = []
    for pair, group in figures.groupby(sides, sort=True, dropna=False):
        ((bps, low, high, usd, priced, _, count, _),) = estimate_gains(
            group, ["_gain"], level, draws, seed
        )
        volume = float(group["_base"].sum())
        made.append((*pair, len(group), volume, priced, usd, bps, low, high, count))
    table = pd.DataFrame(made, columns=list(_PAIR)).astype(_PAIR)
    table = table.sort_values("volume_usd", ascending=False, kind="stable", ignore_index=True)
    facts = result_facts("counterparties", fills, prices, [column], marks.source)
    table.attrs["toolkit"] = {**facts, "horizon_seconds": span / 1000}
    return table


def toxicity(
    fills: IntoFrame,
    prices: IntoFrame | None = None,
    horizon: str | float = "5m",
    *,
    by: Names = "user",
    liquidity: Literal["taker", "maker"] = "taker",
    price: str | None = None,
    max_age: str | float = "60s",
    cluster: str = "hour",
    min_clusters: int = 10,
    level: float = 0.95,
) -> pd.DataFrame:
    """Rank accounts or builders by how far prices follow their trades.

    Flow is toxic for the makers if prices move on in the direction of the taker. With
    ``liquidity="maker"`` the ranking shows which makers lose the most to such flow.

    Parameters
    ----------
    fills, prices, horizon, by, price, max_age
        As for `counterparties`; ``tid`` is not needed.
    liquidity : {"taker", "maker"}, default "taker"
        Which side of the trades counts.
    cluster : str, default "hour"
        Fills of one cluster move together: ``hour``, ``day``, ``week`` or a column.
    min_clusters : int, default 10
        Names with fewer clusters have no standard error and no shrunk value.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    DataFrame
        pandas, the most toxic first:

        - ``rank``: 1 for the highest ``shrunk_bps``; names without one are last.
        - ``name``: the account or builder; all fills without a name form one row with a missing
          name.
        - ``fills``: number of fills on that side.
        - ``volume_usd``: volume of the fills on that side, in USD.
        - ``priced``: number of fills with a fresh price at the horizon, and a side.
        - ``gain_usd``: gain from the fill to the horizon, without fees, in USD. Positive is good
          for the named side, and bad for the other side.
        - ``gain_bps``: the gain in basis points of the priced volume.
        - ``error_bps``: standard error of ``gain_bps``, robust for clusters.
        - ``shrunk_bps``: best guess of the true gain, after shrinkage to the mean of all names.
        - ``low``: lower end of the interval of the true gain after shrinkage.
        - ``high``: upper end of the interval of the true gain after shrinkage.
        - ``clusters``: number of clusters.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If an argument is not valid, or the prices are those of trades.

    Notes
    -----
    Standard error of a ratio of sums, linearised, with the clusters of Liang and Zeger (1986).
    Shrinkage: Morris (1983). At least five names are needed for it. If the prices are `quotes` of
    the tape, their own error is not part of the standard error.

    Examples
    --------
    The price follows account a, and turns against account b.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"user": ["0xa", "0xb"], "coin": "XYZ", "px": 100.0, "sz": 1.0,
    ...     "side": ["B", "A"], "crossed": True,
    ...     "time": pd.to_datetime([1000, 1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [101.0],
    ...     "time": pd.to_datetime([60_000], unit="ms", utc=True)})
    >>> toxicity(fills, mids, "1m")[["name", "fills", "gain_bps"]].values.tolist()
    [['0xa', 1, 100.0], ['0xb', 1, -100.0]]
    """
    check_level(level)
    check_count(min_clusters, "min_clusters")
    if liquidity not in ("taker", "maker"):
        raise ValueError(f"liquidity must be 'taker' or 'maker', not {liquidity!r}")
    age_ms, span = span_ms(max_age, "max_age"), span_ms(horizon, "horizon")
    column = by if isinstance(by, str) else "user"
    rows = read_clusters(fills, list(dict.fromkeys((column, "crossed"))), cluster)
    marks = read_reference_prices(fills, prices, price, rows, max_age)
    crossed = rows["crossed"].astype("boolean")
    is_side = (crossed if liquidity == "taker" else ~crossed).fillna(False).to_numpy(bool)
    rows = rows.assign(_name=_side_names(rows, by))[is_side].reset_index(drop=True)
    px, _ = prices_after(rows, marks, span, age_ms)
    rows["_gain"] = rows["_sign"] * (px - rows["px"]) * rows["sz"]
    made = [
        _rank_row(name, group, min_clusters)
        for name, group in rows.groupby("_name", sort=True, dropna=False)
    ]
    table = pd.DataFrame(made, columns=["name", *list(_RANKING)[2:]])
    known = table["error_bps"].gt(0).to_numpy()
    values, errors = (table.loc[known, n].to_numpy(np.float64) for n in ("gain_bps", "error_bps"))
    shrunk = shrink_estimates(values, errors, level)
    table.loc[known, "shrunk_bps"] = shrunk.values
    table.loc[known, "low"], table.loc[known, "high"] = shrunk.low, shrunk.high
    table = table.sort_values(
        ["shrunk_bps", "gain_bps", "name"], ascending=[False, False, True], ignore_index=True
    )
    table["rank"] = table["shrunk_bps"].rank(ascending=False, method="min").astype("Int64")
    table = table[list(_RANKING)].astype(_RANKING)
    facts = result_facts("toxicity", fills, prices, [column], marks.source)
    table.attrs["toolkit"] = {**facts, "liquidity": liquidity, "horizon_seconds": span / 1000}
    return table


def _side_names(rows: pd.DataFrame, by: Names) -> pd.Series:
    if isinstance(by, str):
        return rows[by].astype("str")
    names = {address.lower(): name for address, name in by.items()}
    users = rows["user"].astype("str")
    return users.map(names).fillna(users).astype("str")


def _join_sides(rows: pd.DataFrame, names: pd.Series) -> pd.DataFrame:
    """Return one row per trade, seen from the taker, with the names of both sides."""
    ids = rows["tid"].astype("Int64").fillna(0).to_numpy(np.int64)
    # A fill without a trade id has no other side: its own negative number keeps it apart.
    ids = np.where(ids > 0, ids, -1 - np.arange(len(rows)))
    taken = rows["crossed"].astype("boolean").fillna(True).to_numpy(bool)
    table = rows.assign(_id=ids, _taken=taken, _name=names)
    table = table.sort_values(["_id", "coin", "_taken"], ascending=[True, True, False])
    sides = table.groupby(["_id", "coin", "_taken"], sort=False).first()["_name"].unstack()
    trades = table.drop_duplicates(["_id", "coin"]).set_index(["_id", "coin"])
    trades = trades.assign(taker=None, maker=None)
    if True in sides:
        trades["taker"] = sides[True]
    if False in sides:
        trades["maker"] = sides[False]
    # If only the maker of a trade is in the frame, the trade is seen from the maker's side.
    trades["_sign"] = trades["_sign"].where(trades["_taken"], -trades["_sign"])
    trades = trades.reset_index()
    order = ["_ms", "coin", "_id"]
    return trades.sort_values(order, kind="stable", ignore_index=True)


def _rank_row(name: Any, group: pd.DataFrame, min_clusters: int) -> tuple[Any, ...]:
    priced = group[group["_gain"].notna()]
    gain, base = priced["_gain"].to_numpy(np.float64), priced["_usd"].to_numpy(np.float64)
    _, codes = np.unique(priced["_cluster"], return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    total, value = float(gain.sum()), float(base.sum())
    ratio = total / value if value > 0 else np.nan
    error = np.nan
    if count >= max(min_clusters, 2) and value > 0:
        misses = np.bincount(codes, gain - ratio * base)
        error = 1e4 * float(np.sqrt(count / (count - 1) * (misses @ misses))) / value
    return (
        name, len(group), float(group["_usd"].sum()), len(priced), total if count else np.nan,
        1e4 * ratio, error, np.nan, np.nan, np.nan, count,
    )  # fmt: skip
