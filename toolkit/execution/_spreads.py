"""Effective and realised half spreads and impact: against prices, or from the tape itself."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.errors import warn_caller
from toolkit.execution import _gains
from toolkit.execution import _quotes as quotes
from toolkit.prepare import groups as grouping
from toolkit.prepare.door import Frame, Names, Table, utc_times
from toolkit.prepare.prices import span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import LIQUIDITY, group_trades
from toolkit.statistics import DRAWS, Estimate, Sampling, student
from toolkit.times import SECOND

_SPLIT = ("effective", "realised", "impact")


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
        - ``age_seconds``: mean age of the price: before the fill (``effective``), at the horizon
          (``realised``), the older of both (``impact``); on the tape, mean time between two trades

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


def spreads(
    fills: Frame,
    prices: Frame | None = None,
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
    how = Sampling(level, draws, seed)
    keys = grouping.list_keys(by, _gains.RESULT_NAMES)
    table = Table(fills, "fills")
    age_ms = span_ms(max_age, "max_age")
    if prices is None:
        return _spreads_of_tape(table, keys, age_ms, level)
    span = span_ms(horizon, "horizon")
    grouped = group_trades(table, keys, cluster).of_one_side()
    trades, coin, ms = grouped.trades, grouped.trades.coin, grouped.trades.ms
    marks = quotes.reference_prices(table, prices, price, max_age)
    start, start_age = marks.before(coin, ms, age_ms)
    end, end_age = marks.after(coin, ms, span, age_ms)
    # A fill has all three figures or none, so that the figures add up.
    is_missing = np.isnan(start + end + trades.usd)
    start, end = (np.where(is_missing, np.nan, px) for px in (start, end))
    errors = _gains.estimate_quote_errors(marks, age_ms, grouped, cluster)
    slopes: list[Floats | None] = [None] * 3
    if errors:
        first = trades.sign * errors.signs.before(coin, ms, age_ms)[0]
        last = trades.sign * errors.signs.after(coin, ms, span, age_ms)[0]
        slopes = [first, last, first - last]
    moves = (trades.px - start, trades.px - end, end - start)
    ages = (start_age, end_age, np.maximum(start_age, end_age))
    gains = [
        _gains.Gain(trades.sign * move * trades.sz, start * trades.sz, age, slope)
        for move, age, slope in zip(moves, ages, slopes, strict=True)
    ]
    params = _gains.estimate_gains(grouped, gains, how, {"name": _SPLIT}, errors)
    return Spreads(
        params=finish(
            params, {"fills": table.frame, "prices": prices},
            helper="execution.spreads", by=keys, price_source=marks.source,
        ),
        n=len(trades),
        level=level,
        method=f"cost over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        seconds=span / SECOND,
        cluster=cluster,
    )  # fmt: skip


def _spreads_of_tape(table: Table, keys: list[str], age_ms: int, level: float) -> Spreads:
    """Estimate the half spread and its parts from the trades themselves.

    Raise ValueError for another group than liquidity, coin, dex, hour, day and week: a trade has
    two accounts, and only one taker.
    """
    trades, names = quotes.read_tape(table)
    changes = quotes.price_changes(trades, age_ms)
    allowed = ("coin", "dex", *grouping.CALENDAR)
    if wrong := [key for key in keys if key not in (LIQUIDITY, *allowed)]:
        raise ValueError(
            f"by={wrong[0]!r} needs prices: on the tape alone, group by liquidity, "
            f"{', '.join(allowed)}; or pass prices=tk.execution.quotes(tape)"
        )
    usd, coin = trades["usd"].to_numpy(), trades["coin"].to_numpy()
    texts = {"coin": Names(coin, names).texts(), "time": utc_times(trades["ms"])}
    tape = Table(pd.DataFrame(texts), "fills", "trades of a tape")
    columns = grouping.group_columns(tape, [key for key in keys if key != LIQUIDITY])
    codes, groups = grouping.number_groups(columns)
    rows_of_changes = grouping.split_groups(codes[changes.index], len(groups))
    made = []
    for place, rows in enumerate(grouping.split_groups(codes, len(groups))):
        own = changes.iloc[rows_of_changes[place]]
        volumes = grouping.sum_groups(coin[rows], usd[rows], len(names))
        parts = quotes.parts_by_coin(own, len(names))
        values, variances, freedom = _combine_parts(parts, volumes)
        reach = student(level, freedom) * np.sqrt(variances)
        counts = (len(own), len(rows) - len(own), 0, float(own["gap"].mean()))
        for side in ("maker", "taker") if LIQUIDITY in keys else ("",):
            if side and not trades[side].to_numpy()[rows].any():
                continue
            sign = -1.0 if side == "maker" else 1.0
            value = sign * values
            intervals = zip(_SPLIT, value, value - reach, value + reach, strict=True)
            made += [(place, side, *each, np.nan, *counts) for each in intervals]
    types = {LIQUIDITY: "str", "name": "str", **_gains.FIGURES}
    figures = pd.DataFrame(made, columns=["place", *types]).astype(types)
    named = groups.iloc[figures["place"].astype("int64")].reset_index(drop=True)
    params = pd.concat([named, figures], axis=1)[[*keys, "name", *_gains.FIGURES]]
    if keys:
        params = params.sort_values(keys, kind="stable", ignore_index=True)
    if len(trades) > 1 and params["estimate"].isna().all():
        warn_caller(
            f"fills: these {len(trades):,} trades show no spread. Pass the tape of all accounts, "
            "in which buyers and sellers alternate; or, for the fills of one account, pass prices=",
            UserWarning,
        )
    of_change, agree = changes["coin"].to_numpy(), changes["sign"] * changes["before"]
    n, count = (np.bincount(each, minlength=len(names)) for each in (coin, of_change))
    parts = quotes.parts_by_coin(changes, len(names))[:, 0].T
    coins = pd.DataFrame(
        {
            "coin": pd.Series(names, dtype="str"),
            "trades": n,
            "changes": count,
            "turns": np.bincount(of_change[agree < 0], minlength=len(names)),
            "sign_autocorrelation": grouping.ratio(
                np.bincount(of_change, agree, len(names)), count
            ),
            "volume_usd": grouping.sum_groups(coin, usd, len(names)),
            **dict(zip(quotes.PARTS, parts, strict=True)),
        }
    )[n > 0]
    facts = {"helper": "execution.spreads", "by": keys, "price_source": "trades"}
    return Spreads(
        params=finish(params, {"fills": table.frame}, **facts),
        n=len(trades),
        level=level,
        method="regression of price changes on the signs of trades (Glosten and Harris)",
        price_source="trades",
        seconds=float("nan"),
        cluster="none",
        coins=coins.reset_index(drop=True),
    )


def _combine_parts(parts: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of several coins' parts; coins without an estimate are left out.

    Degrees of freedom as by Welch (1947) and Satterthwaite (1946).

    - ``parts``: as `parts_by_coin` returns them; the result is (3, 3)
    """
    known = ~np.isnan(parts[:, 0]).any(axis=1) & (weights > 0)
    if not known.any():
        return np.full((3, 3), np.nan)
    shares = (weights[known] / weights[known].sum())[:, None]
    values, variances, freedom = np.moveaxis(parts[known], 1, 0)
    weighted = shares**2 * variances
    variance, below = weighted.sum(axis=0), (weighted**2 / freedom).sum(axis=0)
    whole = np.divide(variance**2, below, out=freedom.min(axis=0), where=below > 0)
    return np.stack([(shares * values).sum(axis=0), variance, whole])
