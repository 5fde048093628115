"""Effective and realised half spreads and impact: against prices, or from the tape itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import grouping
from toolkit.analysis.common.bootstrap import DRAWS
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.execution.fill_quality import (
    LIQUIDITY,
    group_fills,
    key_types,
    prices_after,
    prices_before,
    read_reference_prices,
)
from toolkit.analysis.execution.markout import (
    FIGURES,
    RESULT_NAMES,
    estimate_gains,
    read_clusters,
    result_facts,
)
from toolkit.analysis.execution.prices import span_ms
from toolkit.analysis.execution.quote_error import estimate_quote_errors
from toolkit.analysis.execution.quotes import (
    PARTS,
    combine_parts,
    estimate_parts,
    price_changes,
    read_trades,
    with_trade_groups,
)
from toolkit.errors import warn_caller

_SPLIT = ["effective", "realised", "impact"]
_COINS: Final = {
    "coin": "str", "trades": "int64", "changes": "int64", "turns": "int64",
    "sign_autocorrelation": "float64", "volume_usd": "float64",
    **dict.fromkeys(PARTS, "float64"),
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Spreads(Estimate):
    """Half spreads that fills paid, and their parts.

    Attributes
    ----------
    params : DataFrame
        The groups, and in each group one row per figure:

        - ``name``: name of the figure
        - ``estimate``: mean of the fills, weighted by value, in basis points
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate
        - ``usd``: sum over the fills, in USD; missing on the tape
        - ``n``: number of fills with both prices; on the tape, of trades shortly after another one
        - ``missing``: number of fills without a fresh price, or without a price, size or side; on
          the tape, number of trades that do not shortly follow another one, or of unknown order
        - ``clusters``: number of clusters that the interval resamples; 0 on the tape
        - ``age_seconds``: mean age of the prices; on the tape, mean time between the two trades

        The figures:

        - ``effective``: half spread that the fill paid against the price before, in basis points
        - ``realised``: part of the half spread that the other side kept, in basis points
        - ``impact``: part of the half spread by which the price changed, in basis points
    price_source : str
        Column of the prices, or ``trades`` for the tape.
    seconds : float
        Time from the fill to the second price; NaN on the tape, where the parts are from one trade
        to the next.
    cluster : str
        What the resamples draw, or ``none``.
    coins : DataFrame or None
        On the tape, one row per coin:

        - ``coin``: coin of the trades
        - ``trades``: number of trades
        - ``changes``: number of trades shortly after another trade
        - ``turns``: number of changes of the taker's side
        - ``sign_autocorrelation``: correlation of the taker's side with that of the trade before
        - ``volume_usd``: volume of the trades, in USD
        - ``half_spread``: estimated half spread, in basis points
        - ``transitory``: part of the half spread that the maker earns, in basis points
        - ``permanent``: part of the half spread by which a trade moves both quotes, in basis points
    """

    price_source: str
    seconds: float
    cluster: str
    coins: pd.DataFrame | None = None

    picture: ClassVar[str] = "spreads"


def spreads(
    fills: IntoFrame,
    prices: IntoFrame | None = None,
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
    """Split the half spread that fills paid into realised spread and price impact.

    Parameters
    ----------
    fills, prices, price, by, cluster, level, draws, seed
        As for `markout`. Without `prices` the fills must be the full tape of all accounts, with
        ``crossed``; `by` is then one of ``liquidity``, ``coin``, ``dex``, ``hour``, ``day``,
        ``week``. The fills of one account show no spread, and a warning says so. Prices of trades
        are refused as `prices`, because each is a bid or an ask. Repeated rows count once.
    horizon : str or float, default "5m"
        Time after the fill. It has no meaning on the tape.
    max_age : str or float, default "60s"
        Largest age of the prices, at the fill and at `horizon` after it. A fill without one of
        them, or without a price, size or side of its own, is ``missing`` from all three figures. On
        the tape: largest age of the trade before.

    Returns
    -------
    Spreads
        Costs in basis points of the price before, positive if the account of the fill pays. With s
        = 1 for buys and -1 for sells, price before p, price after q:

        - ``effective``: s * (px - p), the cost against the price before.
        - ``realised``: s * (px - q), the part that the other side kept.
        - ``impact``: s * (q - p), the price change; effective = realised + impact.

        A maker's effective spread is negative: it is income.

        On the tape, in the same frame, per trade at its best price: ``effective`` is the half
        spread, ``realised`` its transitory part (what the maker earns for the trade itself),
        ``impact`` its permanent part (by how much a trade moves both quotes). ``n`` is the number
        of trades shortly after another trade, ``age_seconds`` the mean time between the two;
        ``usd`` is missing and ``clusters`` is 0. For several coins the figures are means weighted
        by volume.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` is not valid, the prices are those of trades, or the tape
        cannot be grouped by `by`.

    Notes
    -----
    With prices: half of the spreads of Huang and Stoll (1996), weighted by value. With `quotes` as
    prices, the intervals include the error of the quotes: the standard error of the transitory half
    spread of each coin, times the share of the fills whose figure moves with it (Zou and Donner,
    2008). The error is estimated from the trades that the quotes show, so pass all of them. In
    simulated tapes of 500 trades (and of 1,500 at a correlation of signs of 0.8), intervals of 95 %
    contain the true value in 92 to 98 %.

    On the tape: a regression of price changes on the signs of trades (Glosten and Harris, 1988,
    without their terms in size; Huang and Stoll, 1997). The intervals are those of Student's t with
    the variance of Newey and West (1987), corrected for small samples, and its own degrees of
    freedom (Bell and McCaffrey, 2002; Imbens and Kolesár, 2016). They are missing if too few trades
    change sides. In simulated tapes of 300 and of 3,000 trades, with signs from uncorrelated to
    0.95 correlated, intervals of 95 % contain the true value in 92 to 98 %. `crossed` and `side`
    name the taker, so no sign is guessed. The regression includes the sign of the trade before,
    so the figures hold however strongly signs follow each other. With the last trade as the mid,
    only (1 - autocorrelation) of the half spread would show. The figures do not include what large
    orders pay beyond the best price.

    Examples
    --------
    The mid is 100; the fill buys at 100.1; a minute later the mid is 100.04.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.1], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.04],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True)})
    >>> spreads(fills, mids, "1m").params[["name", "estimate", "n"]].round(6)
            name  estimate  n
    0  effective      10.0  1
    1   realised       6.0  1
    2     impact       4.0  1

    A tape without any other price: takers buy at 100.01 and sell at 99.99, two of each in turn.

    >>> tape = pd.DataFrame({"coin": "XYZ", "side": list("BBAABBAA"), "crossed": True, "sz": 1.0,
    ...     "px": [100.01, 100.01, 99.99, 99.99] * 2,
    ...     "time": pd.to_datetime(range(0, 8000, 1000), unit="ms", utc=True)})
    >>> found = spreads(tape)
    >>> round(found["effective"], 6), round(found.coins["transitory"].item(), 6)
    (1.0, 1.0)
    """
    check_level(level)
    keys = grouping.list_keys(by, RESULT_NAMES)
    if prices is None:
        return _spreads_of_tape(fills, keys, max_age, level)
    rows = read_clusters(fills, keys, cluster)
    marks, age_ms = (
        read_reference_prices(fills, prices, price, rows, max_age),
        span_ms(max_age, "max_age"),
    )
    span = span_ms(horizon, "the horizon")
    start, _ = prices_before(rows, marks, age_ms)
    end, age = prices_after(rows, marks, span, age_ms)
    px, sz, sign = (rows[name].to_numpy() for name in ("px", "sz", "_sign"))
    # A fill without one of them is missing from every figure, so that the figures add up.
    is_missing = np.isnan(start + end + px + sz)
    start, end = (np.where(is_missing, np.nan, prices_then) for prices_then in (start, end))
    table = rows.assign(
        effective=sign * (px - start) * sz,
        realised=sign * (px - end) * sz,
        impact=sign * (end - start) * sz,
        _base=start * sz,
        _age=age,
    )
    errors = estimate_quote_errors(marks.quotes, age_ms)
    if errors:
        errors = errors.with_clusters(rows, cluster)
        first = sign * prices_before(rows, errors.signs, age_ms)[0]
        last = sign * prices_after(rows, errors.signs, span, age_ms)[0]
        table = table.assign(effective_slope=first, realised_slope=last, impact_slope=first - last)
    figures_of_groups = [
        (*key, name, *figures)
        for key, group in group_fills(table, keys)
        for name, figures in zip(
            _SPLIT, estimate_gains(group, _SPLIT, level, draws, seed, errors), strict=True
        )
    ]
    types = {**key_types(rows, keys), "name": "str"}
    params = pd.DataFrame(figures_of_groups, columns=[*types, *FIGURES]).astype(
        {**types, **FIGURES}
    )
    params.attrs["toolkit"] = result_facts("spreads", fills, prices, keys, marks.source)
    return Spreads(
        params=params,
        n=len(rows),
        level=level,
        method=f"cost over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        seconds=span / 1000,
        cluster=cluster,
    )


def _spreads_of_tape(
    fills: IntoFrame, keys: list[str], max_age: str | float, level: float
) -> Spreads:
    """Estimate the half spread and its parts from the trades themselves."""
    own_keys = [key for key in keys if key != LIQUIDITY]
    trades = with_trade_groups(read_trades(fills, "fills"), own_keys)
    age_ms = span_ms(max_age, "max_age")
    changes = price_changes(trades, age_ms)
    figures_of_groups = []
    for key, group in group_fills(trades, own_keys):
        rows = changes.loc[changes.index.intersection(group.index)]
        coins = [
            (trades_of_coin["usd"].sum(), rows[rows["coin"] == coin])
            for coin, trades_of_coin in group.groupby("coin")
        ]
        parts = combine_parts(
            [estimate_parts(trades_of_coin) for _, trades_of_coin in coins],
            [usd for usd, _ in coins],
        )
        counts = (len(rows), len(group) - len(rows), 0, float(rows["gap"].mean()))
        sides = [("taker", 1.0), ("maker", -1.0)] if LIQUIDITY in keys else [("", 1.0)]
        for side, sign in sides:
            if side and not group[side].any():
                continue
            words = dict(zip(own_keys, key, strict=True)) | {LIQUIDITY: side}
            for name, value, ends in zip(_SPLIT, parts.values, parts.intervals(level), strict=True):
                figures = (sign * value, *sorted(sign * end for end in ends), np.nan)
                figures_of_groups.append((*(words[key] for key in keys), name, *figures, *counts))
    types = {**key_types(trades.assign(**{LIQUIDITY: ""}), keys), "name": "str"}
    params = pd.DataFrame(figures_of_groups, columns=[*types, *FIGURES]).astype(
        {**types, **FIGURES}
    )
    if keys:
        params = params.sort_values(keys, kind="stable", ignore_index=True)
    if len(trades) > 1 and params["estimate"].isna().all():
        warn_caller(
            f"fills: these {len(trades):,} trades show no spread. Pass the tape of all accounts, "
            "in which buyers and sellers alternate; or, for the fills of one account, pass prices=",
            UserWarning,
        )
    facts = {"helper": "execution.spreads", "by": keys, "price_source": "trades"}
    params.attrs["toolkit"] = {**result_provenance({"fills": fills}), **facts}
    return Spreads(
        params=params,
        n=len(trades),
        level=level,
        method="regression of price changes on the signs of trades (Glosten and Harris)",
        price_source="trades",
        seconds=float("nan"),
        cluster="none",
        coins=_coin_figures(trades, changes),
    )


def _coin_figures(trades: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each coin on the tape."""
    figures = []
    for coin, trades_of_coin in trades.groupby("coin", sort=True):
        rows = changes[changes["coin"] == coin]
        both = (rows["sign"] * rows["before"]).mean()
        turns = int((rows["sign"] != rows["before"]).sum())
        values = estimate_parts(rows).values
        figures.append(
            (
                coin,
                len(trades_of_coin),
                len(rows),
                turns,
                both,
                trades_of_coin["usd"].sum(),
                *values,
            )
        )
    result = pd.DataFrame(figures, columns=list(_COINS)).astype(_COINS)
    return result
