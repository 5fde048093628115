"""Who trades against whom: both sides of each trade, and whose trades the market follows."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd

from toolkit.execution._gains import Gain, estimate_gains
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import Frame, Names, Table
from toolkit.prepare.groups import number_groups, number_rows, ratio, sum_groups
from toolkit.prepare.prices import span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import GroupedTrades, Trades, read_clusters, read_trades, trade_columns
from toolkit.statistics import DRAWS, Sampling, check_count, check_level, shrink_estimates
from toolkit.times import SECOND

NamesOfSides = str | Mapping[str, str]


def counterparties(
    fills: Frame,
    prices: Frame | None = None,
    horizon: str | float = "5m",
    *,
    by: NamesOfSides = "user",
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
        (`tk.many` adds ``user``). Repeated rows count once.
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
        The pair with the largest volume first:

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
        - ``age_seconds``: mean age of the prices at the horizon, in seconds.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` is not valid, or the prices are those of trades.

    Notes
    -----
    The two sides of a trade share the coin and the trade id. A fill without a trade id is a trade
    without its other side. If ``crossed`` of one side is missing, the other side tells who was the
    taker; if both are missing, the trade has no names and no gain. If the prices are `quotes` of
    the tape, their own error is not part of the interval; it is in the intervals of `markout` and
    `spreads`.

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
    how = Sampling(level, draws, seed)
    age_ms, span = span_ms(max_age, "max_age"), span_ms(horizon, "horizon")
    table = Table(fills, "fills")
    trades = read_trades(table, ("tid", "crossed"))
    names, clusters = _side_names(table, trades, by), read_clusters(table, trades, cluster)
    marks = reference_prices(table, prices, price, max_age)
    # One row for each trade, from the taker's side; from the maker's, if only that is known.
    seen = np.lexsort((-trades.taker, trades.number))
    seen = np.sort(seen[np.flatnonzero(np.diff(trades.number[seen], prepend=-1))])
    trade = trades.take(seen)
    sign = trade.sign * np.array([np.nan, -1.0, 1.0])[trade.taker + 1]
    own = pd.DataFrame({"name": names.texts(), "number": trades.number, "taker": trades.taker})
    by_side = own.groupby(["taker", "number"])["name"].last().unstack("taker")
    sides = by_side.reindex(trade.number, columns=[1, 0]).set_axis(["taker", "maker"], axis=1)
    px, age = marks.after(trade.coin, trade.ms, span, age_ms)
    gain = Gain(sign * (px - trade.px) * trade.sz, trade.usd, age)
    codes, groups = number_groups(sides.astype("str"), missing_last=True)
    grouped = GroupedTrades(trade, codes, groups, clusters[seen])
    found = estimate_gains(grouped, [gain], how)
    result = groups.assign(
        trades=np.bincount(codes, minlength=len(groups)),
        volume_usd=sum_groups(codes, np.nan_to_num(trade.usd), len(groups)),
        priced=found["n"],
        gain_usd=found["usd"],
        gain_bps=found["estimate"],
        **found[["low", "high", "clusters", "age_seconds"]],
    ).sort_values("volume_usd", ascending=False, kind="stable")
    return finish(
        result, {"fills": table.frame, "prices": prices},
        helper="execution.counterparties", by=[by if isinstance(by, str) else "user"],
        price_source=marks.source, horizon_seconds=span / SECOND,
    )  # fmt: skip


def toxicity(
    fills: Frame,
    prices: Frame | None = None,
    horizon: str | float = "5m",
    *,
    by: NamesOfSides = "user",
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
        The most toxic first:

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
        - ``age_seconds``: mean age of the prices at the horizon, in seconds.

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
    table = Table(fills, "fills")
    trades = read_trades(table, ["crossed"])
    marks = reference_prices(table, prices, price, max_age)
    trades = trades.take(trades.taker == (liquidity == "taker"))
    codes, result = number_groups(
        pd.DataFrame({"name": _side_names(table, trades, by).texts()}), missing_last=True
    )
    px, age = marks.after(trades.coin, trades.ms, span, age_ms)
    gain, count = trades.sign * (px - trades.px) * trades.sz, len(result)
    known = np.flatnonzero(~np.isnan(gain))
    code, gain, usd = codes[known], gain[known], trades.usd[known]
    priced = np.bincount(code, minlength=count)
    gains, base, ages = (sum_groups(code, part, count) for part in (gain, usd, age[known]))
    rate = ratio(gains, base)
    # What each cluster adds to the gain beyond the ratio of its name.
    pair = number_rows(code, read_clusters(table, trades, cluster)[known])
    misses = np.bincount(pair, gain - rate[code] * usd)
    of_pair = code[np.unique(pair, return_index=True)[1]]
    clusters = np.bincount(of_pair, minlength=count)
    few = clusters < max(min_clusters, 2)
    squares = sum_groups(of_pair, misses**2, count) * ratio(
        clusters, np.where(few, 0, clusters - 1)
    )
    error = 1e4 * ratio(np.sqrt(squares), base)
    shown, shrunk = error > 0, np.full((3, count), np.nan)
    shrunk[:, shown] = shrink_estimates(1e4 * rate[shown], error[shown], level)[:3]
    result = result.assign(
        fills=np.bincount(codes, minlength=count),
        volume_usd=sum_groups(codes, np.nan_to_num(trades.usd), count),
        priced=priced,
        gain_usd=np.where(priced > 0, gains, np.nan),
        gain_bps=1e4 * rate,
        error_bps=error,
        **dict(zip(("shrunk_bps", "low", "high"), shrunk, strict=True)),
        clusters=clusters,
        age_seconds=ratio(ages, priced),
    )
    rank = result["shrunk_bps"].rank(ascending=False, method="min").astype("Int64")
    result.insert(0, "rank", rank)
    order = ["shrunk_bps", "gain_bps", "name"]
    return finish(
        result.sort_values(order, ascending=[False, False, True]),
        {"fills": table.frame, "prices": prices},
        helper="execution.toxicity", by=[by if isinstance(by, str) else "user"],
        price_source=marks.source, liquidity=liquidity, horizon_seconds=span / SECOND,
    )  # fmt: skip


def _side_names(table: Table, trades: Trades, by: NamesOfSides) -> Names:
    """Return the account, or the name, of each fill."""
    if not isinstance(by, str):
        table.require(["user"])
        given = {address.lower(): name for address, name in by.items()}
        return table.text("user").take(trades.rows).renamed(lambda user: given.get(user, user))
    codes, values = pd.factorize(trade_columns(table, trades, [by])[by].astype("str"))
    return Names(np.where(codes < 0, len(values), codes), [*values, ""])
