"""Fills compared with the price before them and the prices after them; copies of fills."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.execution._gains import RESULT_NAMES, Gain, estimate_gains, estimate_quote_errors
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import list_keys, sum_groups
from toolkit.prepare.prices import LATEST, list_spans, span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import group_trades
from toolkit.statistics import DRAWS, Estimate, Sampling
from toolkit.times import SECOND

_QUALITY = ("fills", "volume_usd", "priced", "covered", "improvement_usd", "improvement_bps",
            "age_seconds", "oldest_seconds")  # fmt: skip


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
    how = Sampling(level, draws, seed)
    keys = list_keys(by, RESULT_NAMES)
    table = Table(fills, "fills")
    grouped = group_trades(table, keys, cluster).of_one_side()
    trades, coin, ms = grouped.trades, grouped.trades.coin, grouped.trades.ms
    marks = reference_prices(table, prices, price, max_age)
    age_ms, spans = span_ms(max_age, "max_age"), list_spans(horizons, "horizons", signed=True)
    errors = estimate_quote_errors(marks, age_ms, grouped, cluster)
    gains = []
    for span in spans:
        px, age = marks.after(coin, ms, span, age_ms)
        slope = -trades.sign * errors.signs.after(coin, ms, span, age_ms)[0] if errors else None
        gains.append(Gain(trades.sign * (px - trades.px) * trades.sz, trades.usd, age, slope))
    labels = {"seconds": np.array(spans) / SECOND, "name": ["markout"] * len(spans)}
    params = estimate_gains(grouped, gains, how, labels, errors)
    return Markout(
        params=finish(
            params, {"fills": table.frame, "prices": prices},
            helper="execution.markout", by=keys, price_source=marks.source,
        ),
        n=len(trades),
        level=level,
        method=f"gain over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        max_age_seconds=age_ms / SECOND,
        cluster=cluster,
    )  # fmt: skip


def fill_quality(
    fills: Frame,
    prices: Frame | None = None,
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("side", "liquidity"),
) -> pd.DataFrame:
    """Compare the prices of fills with the last price before each fill.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time`` and the columns of `by`. Repeated rows count once.
    prices : DataFrame, optional
        ``coin`` (or ``name``), ``time`` and a price: archived answers of `tk.meta_and_asset_ctxs`,
        with a column ``time``, or `quotes`. Without it `fills` must be the full tape of the market,
        and the prices are the mids of its `quotes`. Prices of trades are refused, because each is a
        bid or an ask.
    price : str, optional
        Column of the price. By default the first of ``mid_px``, ``mark_px``, ``oracle_px`` that
        exists. The provenance of the result names it as ``price_source``.
    max_age : str or float, default "60s"
        Largest age of a price at the fill: text, or seconds. A fill without such a price is
        counted, but not priced.
    by : str, list of str or None, default ("side", "liquidity")
        Groups: ``liquidity`` (taker or maker, from ``crossed``), ``side``, ``coin``, ``user``,
        ``dex``, ``hour``, ``day``, ``week``, or any other column. None: one row.

    Returns
    -------
    DataFrame
        Sorted: the columns of `by`, then

        - ``fills``: number of fills.
        - ``volume_usd``: volume of all fills, in USD.
        - ``priced``: number of fills that have a price, a size and a side, and for which `prices`
          has a price before the fill.
        - ``covered``: volume of the priced fills, as a share of the volume of all fills.
        - ``improvement_usd``: gain of the priced fills against the price before the fill, in USD;
          positive is good for the account: sum of (price - px) * sz for buys, (px - price) * sz for
          sells.
        - ``improvement_bps``: gain of the priced fills in basis points of their value at the price
          before the fill.
        - ``age_seconds``: mean age of the prices, in seconds.
        - ``oldest_seconds``: largest age of the prices, in seconds.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` is not a span of time, or the prices are those of trades.

    Notes
    -----
    The price before a fill is the last one before the fill's own millisecond, so a fill is not
    compared with a quote that it made itself. Fills that met no order on a book are left out,
    because the exchange sets their price: conversions of outcome tokens (docs/live_service.md,
    section 7), settlements, dust conversions, fills between two vaults of one leader (``Net Child
    Vaults``), backstop liquidations and auto-deleveraging.

    If a group has both sides of a trade (the same ``tid``), the fill of the taker counts, because
    the gains of both sides cancel.

    Examples
    --------
    An account buys 2 at 101. Half a second before, the mid was 100: a loss of 2 USD, or 100 bps.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [101.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1500], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0],
    ...     "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> fill_quality(fills, mids)[["liquidity", "improvement_usd", "improvement_bps", "covered"]]
      liquidity  improvement_usd  improvement_bps  covered
    0     taker             -2.0           -100.0      1.0
    """
    keys = list_keys(by, _QUALITY)
    table = Table(fills, "fills")
    trades, codes, groups, _ = group_trades(table, keys).of_one_side()
    marks = reference_prices(table, prices, price, max_age)
    px, age = marks.before(trades.coin, trades.ms, span_ms(max_age, "max_age"))
    gain = trades.sign * (px - trades.px) * trades.sz
    rows = pd.DataFrame({"gain": gain, "base": px * trades.sz, "usd": trades.usd, "age": age})
    # Figures are those of the fills that have a price.
    found = rows[~np.isnan(gain)].groupby(codes[~np.isnan(gain)])
    sums = found.sum().reindex(groups.index)
    count, volume = len(groups), sum_groups(codes, np.nan_to_num(trades.usd), len(groups))
    priced = found.size().reindex(groups.index, fill_value=0)
    result = groups.assign(
        fills=np.bincount(codes, minlength=count),
        volume_usd=volume,
        priced=priced,
        covered=sums["usd"].fillna(0) / np.where(volume != 0, volume, np.nan),
        improvement_usd=sums["gain"],
        improvement_bps=sums["gain"] / sums["base"] * 1e4,
        age_seconds=sums["age"] / priced,
        oldest_seconds=found["age"].max(),
    )
    return finish(
        result, {"fills": table.frame, "prices": prices},
        helper="execution.fill_quality", by=keys, price_source=marks.source,
    )  # fmt: skip


_FIGURES = ("delay", "fills", "volume_usd", "priced", "own_usd", "delay_usd", "slippage_usd",
            "copied_usd", "cost_bps", "low", "high", "clusters", "age_seconds")  # fmt: skip


def copy_trading(
    fills: Frame,
    prices: Frame,
    delays: Sequence[str | float] = ("1s", "10s", "1m", "5m"),
    *,
    slippage_bps: float | Mapping[str, float] = 0.0,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = None,
    cluster: str = "day",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute what a copier would have gained by trading the same sizes with a delay.

    Parameters
    ----------
    fills : DataFrame
        Fills of the copied account: ``coin, px, sz, side, time`` and the columns of `by`. Repeated
        rows count once.
    prices : DataFrame
        Mids of the market over the time of the fills, as for `markout`.
    delays : sequence of str or float
        Time between a fill and its copy: text such as ``"10s"``, or seconds.
    slippage_bps : float or mapping of coin to float, default 0
        What the copier pays against the mid, in basis points, such as half the spread and the
        impact of the size (`tk.slippage.cost`).
    price, max_age, cluster, level, draws, seed
        As for `markout`.
    by : str, list of str or None
        Groups, as for `fill_quality`.

    Returns
    -------
    DataFrame
        The columns of `by`, then for the fills with a fresh price at the copy's time and a
        last price of their coin:

        - ``delay``: time from the fill of the account to that of the copier, in seconds.
        - ``fills``: number of fills.
        - ``volume_usd``: volume of all fills, in USD.
        - ``priced``: number of fills with a side, a price at the copy's time and a last price; the
          gains are of these fills.
        - ``own_usd``: gain of the account from its fills to the last price of each coin, without
          fees, in USD.
        - ``delay_usd``: gain that the delay adds, in USD; negative if prices run ahead of the
          copier.
        - ``slippage_usd``: gain that slippage adds, in USD, at most 0.
        - ``copied_usd``: gain of the copier: ``own_usd + delay_usd + slippage_usd``.
        - ``cost_bps``: ``-(delay_usd + slippage_usd)`` in basis points of the priced volume;
          positive if the copier does worse than the account.
        - ``low``: lower end of the interval of `cost_bps`, bootstrap by cluster.
        - ``high``: upper end of the interval of `cost_bps`, bootstrap by cluster.
        - ``clusters``: number of clusters.
        - ``age_seconds``: mean age of the prices at the copies' times, in seconds.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time, `level` or `slippage_bps` is not valid, or the prices are those of
        trades.

    Notes
    -----
    With s = 1 for buys and -1 for sells, price of the copy q, last price e: the account gains
    ``s * (e - px) * sz`` and the copier ``s * (e - q) * sz``. The copier's own trades do not move
    the prices here. If a group has both sides of a trade, the taker is copied, because the gains of
    both sides cancel. Fees are those of the copier's account, and not part of the figures.

    Examples
    --------
    Bought 2 at 100. A second later the mid is 101, in the end it is 104. The copier pays 10 bps.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 101.0, 104.0],
    ...     "time": pd.to_datetime([900, 2000, 9000], unit="ms", utc=True)})
    >>> copy_trading(fills, mids, ["1s"], slippage_bps=10.0)[
    ...     ["delay", "own_usd", "delay_usd", "slippage_usd", "copied_usd"]].values.tolist()
    [[1.0, 8.0, -2.0, -0.202, 5.798]]
    """
    how = Sampling(level, draws, seed)
    keys = list_keys(by, _FIGURES)
    table = Table(fills, "fills")
    grouped = group_trades(table, keys, cluster).of_one_side()
    trades, codes, groups, _ = grouped
    marks = reference_prices(table, prices, price, max_age)
    age_ms, number = span_ms(max_age, "max_age"), len(groups)
    traded, stated = trades.coin.present(), slippage_bps
    if not isinstance(stated, Mapping):
        stated = dict.fromkeys(traded, stated)
    for name, value in stated.items():
        if not value >= 0:
            raise ValueError(
                f"slippage_bps of {name} must be 0 or more, not {value!r}: the copier pays it"
            )
    if missing := sorted(set(traded) - set(stated)):
        raise ValueError(
            f"slippage_bps has no value for {', '.join(missing)}. Add them to the mapping"
        )
    share = trades.coin.facts(lambda name: float(stated.get(name, np.nan))) / 1e4
    end, _ = marks.last_at(trades.coin, np.full(len(trades), LATEST))
    made, names = [], ("own_usd", "delay_usd", "slippage_usd")
    for span in list_spans(delays, "delays"):
        copied, age = marks.after(trades.coin, trades.ms, span, age_ms)
        moves = (trades.sign * (end - trades.px), trades.sign * (trades.px - copied))
        parts = np.array([*moves, -share * copied]) * trades.sz
        parts[:, np.isnan(parts).any(axis=0)] = np.nan
        found = estimate_gains(grouped, [Gain(-parts[1] - parts[2], trades.usd, age)], how)
        sums = [sum_groups(codes, np.nan_to_num(part), number) for part in parts]
        usd = pd.DataFrame(dict(zip(names, sums, strict=True)))[found["n"] > 0]
        made.append(
            groups.assign(
                delay=span / SECOND,
                fills=np.bincount(codes, minlength=number),
                volume_usd=sum_groups(codes, np.nan_to_num(trades.usd), number),
                priced=found["n"],
                **usd,
                copied_usd=usd.sum(axis=1),
                cost_bps=found["estimate"],
                **found[["low", "high", "clusters", "age_seconds"]],
            )
        )
    result = pd.concat(made).sort_index(kind="stable")
    return finish(
        result, {"fills": table.frame, "prices": prices},
        helper="execution.copy_trading", by=keys, price_source=marks.source,
    )  # fmt: skip
