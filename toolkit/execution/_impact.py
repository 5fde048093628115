"""Price impact: the law of impact by size of parent orders, and the response to single orders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit import statistics
from toolkit.arrays import Floats, Ints
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.groups import number_rows, ratio, split_groups, sum_groups
from toolkit.prepare.prices import PriceHistory, span_ms
from toolkit.prepare.provenance import state_provenance
from toolkit.prepare.trades import Trades, find_parents, read_trades
from toolkit.statistics import DRAWS, Estimate, Sampling
from toolkit.times import DAY, MINUTE

EXPONENTS: Final = np.linspace(-0.5, 2.0, 251)
"""The exponents among which the law is searched."""
_STEP: Final = float(EXPONENTS[1] - EXPONENTS[0])
_ROOT: Final = 100
"""Place of the exponent 1/2 in `EXPONENTS`."""
_UNIT: Final = 0.01
"""The impact is stated for an order of this share of a day's volume."""
_BINS: Final = 8
_FEWEST: Final = 3  # orders of different sizes that determine a law
_STEP_MS: Final = 5 * MINUTE
_LEAST_SHARE: Final = 1e-6
"""Smallest eigenvalue of the autocorrelations, as a share of the largest, of a kernel."""
_COINS: Final = ["volume_usd", "volatility_bps", "impact_bps", "y_root", "kyle_bps", "kyle_low",
                 "kyle_high"]  # fmt: skip


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
        - ``before_age_seconds``: age of `before_px` at the first fill, in seconds
        - ``after_age_seconds``: age of `after_px` at the horizon, in seconds
    coins : DataFrame
        One row per coin that takers traded; all coins have one exponent:

        - ``coin``: coin of the orders
        - ``n``: number of priced orders
        - ``volume_usd``: volume of a day, in USD
        - ``volatility_bps``: volatility of a day: root of the squared price changes of 5 minutes,
          summed over a day, in basis points
        - ``impact_bps``: impact by the law for 1 % of a day's volume, in basis points
        - ``y_root``: Y of ``impact / volatility = Y * share**0.5``, a pure number
        - ``kyle_bps``: Kyle's lambda: price change in 5 minutes for each 1 % of a day's volume that
          takers buy more than they sell in them, in basis points
        - ``kyle_low``: lower end of the interval of `kyle_bps`, in basis points
        - ``kyle_high``: upper end of the interval of `kyle_bps`, in basis points
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
    coins: pd.DataFrame
    sizes: pd.DataFrame
    lags: pd.DataFrame
    price_source: str


def impact(
    fills: Frame,
    prices: Frame,
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
        (and ``user``, ``twap_id``, ``dir``). Only fills of takers count, and of these only
        trades, as for `fill_quality`. Repeated rows count once.
    prices : DataFrame
        Mids of the market, as for `markout`: asset contexts with times, or `quotes` of the tape.
        Prices of trades are refused, because each is a bid or an ask.
    volume : mapping of coin to float, optional
        Volume of a day in USD. Without it, the volume of the fills, scaled from the time between
        the first and the last fill to a day: the market's volume only if the fills are those of all
        accounts.
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
    their logarithms cannot be fitted. All coins have one exponent, and each has its own c, because
    coins differ in volatility. The impacts of a coin are divided by their root mean square, so that
    volatile coins do not decide the exponent; ``impact_bps`` and ``root_bps`` are means over the
    orders. ``coins`` states c in units of the coin's volatility (``y_root``), and Kyle's lambda
    (1985): price changes of 5 minutes on the signed volume of takers, by least squares through
    zero. The law is missing if no positive law fits better than no impact.

    Response and autocorrelation: Bouchaud et al. (2004), one event for each taker order. The kernel
    solves ``E[r(t + j) s(t)] = sum(K(n) * C(j - n))`` for the price changes ``r`` between orders,
    with the autocorrelation C; ``kernel_bps`` is the sum of K (Eisler, Bouchaud and Kockelkoren,
    2012). Intervals: bootstrap by day; an order belongs to the day of its first fill. With `quotes`
    as prices, the error of the quotes is not part of the intervals; in simulated tapes of 20 days
    those of 95 % contain the exponent in 94 % and the impact in 86 %, as those with exact mids do.

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
    how = Sampling(level, draws, seed)
    statistics.check_count(lags, "lags")
    span, age_ms = span_ms(horizon, "horizon"), span_ms(max_age, "max_age")
    table = Table(fills, "fills")
    trades = read_trades(table, ("oid", "crossed"))
    trades = trades.take((trades.taker == 1) & (trades.usd > 0))
    is_twap, parent = find_parents(table, trades.rows)
    order = np.lexsort((parent, is_twap, trades.ms, trades.coin.codes))
    trades, is_twap, parent = trades.take(order), is_twap[order], parent[order]
    marks = reference_prices(table, prices, price, max_age)
    names, count = trades.coin.values, len(trades)
    # The volume of a day of each coin: as stated, or that of the trades by their time.
    if volume is None:
        gap = np.ptp(trades.ms) / (count - 1) if count > 1 else 0
        sums = sum_groups(trades.coin.codes, trades.usd, len(names)) / (gap * count / DAY or np.nan)
        volume = dict(zip(names, sums.tolist(), strict=True))
    daily = np.array([volume.get(name, np.nan) if name else np.nan for name in names], np.float64)
    rows = pd.DataFrame(
        {
            "kind": pd.array(np.where(is_twap, "twap", "order"), dtype="str"),
            "parent": parent,
            "user": table.text("user", blank=True).texts(trades.rows).fillna(""),
            "coin": trades.coin.texts(),
            "side": table.text("side").texts(trades.rows),
            "ms": trades.ms,
            "usd": trades.usd,
            "sign": trades.sign,
            "row": range(count),
        }
    )
    parents = rows.groupby(["kind", "parent", "user", "coin", "side"], dropna=False).agg(
        start=("ms", "min"), end=("ms", "max"), fills=("usd", "size"), usd=("usd", "sum"),
        sign=("sign", "first"), row=("row", "first"),
    ).reset_index().sort_values("start", kind="stable", ignore_index=True)  # fmt: skip
    start, end = (parents[name].to_numpy() for name in ("start", "end"))
    coin = trades.coin.take(parents.pop("row").to_numpy())
    before, before_age = marks.before(coin, start, age_ms + 1)
    after, after_age = marks.after(coin, end, span, age_ms)
    parents = parents.assign(
        start=utc_times(start),
        end=utc_times(end),
        share=parents["usd"] / daily[coin.codes],
        before_px=before,
        after_px=after,
        impact_bps=1e4 * parents.pop("sign") * (after / before - 1),
        before_age_seconds=before_age,
        after_age_seconds=after_age,
    )
    is_priced = (parents["impact_bps"].notna() & (parents["share"] > 0)).to_numpy()
    share, found = (parents[name].to_numpy()[is_priced] for name in ("share", "impact_bps"))
    days = np.unique(start[is_priced] // DAY, return_inverse=True)[1].astype(np.int64)
    by_coin = split_groups(coin.codes[is_priced], len(names))
    fitted, laws = _fit_law(share, found, by_coin, days, how)
    clusters = int(days.max(initial=-1)) + 1
    ends = [statistics.bootstrap_interval(drawn, clusters, level) for drawn in fitted[1:].T]
    low, high = np.transpose(ends)
    low[0], high[0] = np.clip((low[0], high[0]), EXPONENTS[0], EXPONENTS[-1])
    figures = pd.Series(["exponent", "impact_bps", "root_bps"], dtype="str")
    params = pd.DataFrame({"name": figures, "estimate": fitted[0], "low": low, "high": high})
    params = params.assign(n=len(found), missing=len(parents) - len(found), clusters=clusters)
    # The first fill of an order, side and moment is an event.
    oid, sign = table.ids("oid")[0][trades.rows], np.nan_to_num(trades.sign)
    number = number_rows(trades.coin.codes, trades.ms, oid, sign)
    events = trades.take(np.sort(np.unique(number, return_index=True)[1]))
    events = events.take(~np.isnan(events.sign))
    mid, _ = marks.last_at(events.coin, events.ms - 1, age_ms)
    response = _measure_response(events, mid, lags, how)
    coins = _describe_coins(marks, trades, daily, laws, how)
    numbers = [len(by_coin[names.index(name)]) for name in coins["coin"]]
    coins.insert(1, "n", np.array(numbers, dtype=np.int64))
    sizes = _average_sizes(share, found, days, how)
    state_provenance(
        (params, parents, coins, sizes, response), {"fills": table.frame, "prices": prices},
        helper="execution.impact", price_source=marks.source,
    )  # fmt: skip
    return Impact(
        params=params, n=len(found), level=level, parents=parents, coins=coins, sizes=sizes,
        lags=response, price_source=marks.source,
        method=f"law of impact by size; bootstrap by day; prices: {marks.source}",
    )  # fmt: skip


def _fit_law(
    share: Floats, found: Floats, coins: list[Ints], days: Ints, how: Sampling
) -> tuple[Floats, Floats]:
    """Return exponent, impact at 1 % and the same for 1/2, and the last two of each coin.

    The first result is (1 + draws, 3), the estimate first; the second (coins, 2). For each exponent
    a coin's best coefficient is a ratio of sums, so a resample needs sums only. The impact is the
    mean of the coefficients over the orders.
    """
    if not any(len(np.unique(share[rows])) >= _FEWEST for rows in coins):
        return np.full((1 + how.draws, 3), np.nan), np.full((len(coins), 2), np.nan)
    count, width = int(days.max()) + 1, len(EXPONENTS)
    drawn = statistics.count_draws(np.random.default_rng(how.seed), how.draws, count, 1)
    drawn = np.vstack([np.ones(count), drawn])
    gain, total, n = (np.zeros((len(drawn), size)) for size in (width, width, 1))
    own = np.full((len(coins), width), np.nan)
    for number, rows in enumerate(coins):
        if not len(rows):
            continue
        scale, moved, day = np.log(share[rows] / _UNIT), found[rows], days[rows]
        parts = np.empty((2, width, count))
        power, step = (np.exp(exponent * scale) for exponent in (EXPONENTS[0], _STEP))
        for each in range(width):
            parts[0, each] = np.bincount(day, moved * power, count)
            parts[1, each] = np.bincount(day, power * power, count)
            power = power * step
        above, below = (drawn @ part.T for part in parts)
        weight = drawn @ np.bincount(day, minlength=count)[:, None]
        best = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        # What the law removes from the sum of squares; a negative law does not count.
        gain += np.where(best > 0, best * above, 0.0) / ((moved**2).mean() or 1.0)
        total += weight * best
        n += weight
        own[number] = best[0]
    best = ratio(total, np.broadcast_to(n, total.shape))
    place, shift = statistics.grid_peaks(gain)
    exponent, here = EXPONENTS[place] + _STEP * shift, best[np.arange(len(gain)), place]
    fitted = np.stack([exponent, here, best[:, _ROOT]], axis=1)
    # Without a positive law, or with one order of each coin, no exponent is better than another.
    unknown = np.ptp(gain, axis=1) <= 1e-9 * gain.max(axis=1)
    fitted[unknown, :2] = np.nan
    laws = own[:, [place[0], _ROOT]]
    laws[:, 0] = np.where(unknown[0], np.nan, laws[:, 0])
    return fitted, laws


def _describe_coins(
    marks: PriceHistory, trades: Trades, daily: Floats, laws: Floats, how: Sampling
) -> pd.DataFrame:
    """Return volume, volatility, law and Kyle's lambda of each coin."""
    names = trades.coin.present()
    made = np.full((len(names), len(_COINS)), np.nan)
    at_trade = (trades.coin.codes << 43) + trades.ms
    flows = np.append(0.0, np.cumsum(np.nan_to_num(trades.sign) * trades.usd))
    for row, name in zip(made, names, strict=True):
        code = trades.coin.values.index(name)
        row[0], (row[2], row[3]) = daily[code], laws[code]
        inside = marks.keys >> 43 == marks.coins.get(name, -1)
        ms, px = (marks.keys[inside] & ((1 << 43) - 1)) - 1, marks.px[inside]
        is_last = np.append(np.diff(ms // _STEP_MS) > 0, True)[: len(ms)]
        ms, px = ms[is_last], px[is_last]
        if len(ms) > 1:
            change = 1e4 * (px[1:] / px[:-1] - 1)
            row[1] = np.sqrt((change**2).sum() / (ms[-1] - ms[0]) * DAY)
            flow = np.diff(flows[np.searchsorted(at_trade, (code << 43) + ms, side="right")])
            flow = 100 * flow / daily[code]
            days = np.unique(ms[1:] // DAY, return_inverse=True)[1].astype(np.int64)
            row[4:] = how.ratio(change * flow, flow * flow, days)[:3]
    coins = pd.DataFrame(made, columns=_COINS)
    coins["y_root"] /= coins["volatility_bps"] * _UNIT**0.5
    coins.insert(0, "coin", pd.Series(names, dtype="str"))
    return coins


def _average_sizes(share: Floats, found: Floats, days: Ints, how: Sampling) -> pd.DataFrame:
    """Return the mean impact of groups of orders by size."""
    groups = min(_BINS, len(np.unique(share)))
    ranks = pd.Series(share).rank(method="dense", pct=True).to_numpy(np.float64)
    place = np.ceil(ranks * groups - 1e-9).astype(np.int64)
    rows = []
    for group in np.unique(place):
        own = place == group
        mean = how.ratio(found[own], np.ones(own.sum()), days[own])[:3]
        rows.append((np.exp(np.log(share[own]).mean()), *mean, own.sum()))
    made = pd.DataFrame(rows, columns=["share", "estimate", "low", "high", "n"], dtype="float64")
    return made.astype({"n": "int64"})


def _measure_response(events: Trades, mid: Floats, lags: int, how: Sampling) -> pd.DataFrame:
    """Return response, autocorrelation of sides and kernel by lag, each with its interval.

    - ``events``: taker orders, sorted by coin and time
    - ``mid``: the price before each order; NaN if it is not known
    """
    codes, sign = events.coin.codes, events.sign
    names, days = np.unique(events.ms // DAY, return_inverse=True)
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
    sums = how.sums(parts.reshape(count, 4 * (lags + 1)))
    follow, known, agree, both = np.moveaxis(sums.reshape(-1, 4, lags + 1), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes, correlation = follow / known, agree / both
    curves = {
        "response": np.cumsum(changes[:, :lags], axis=1),
        "autocorrelation": correlation[:, 1:],
        "kernel": np.cumsum(_solve_kernels(correlation[:, :lags], changes[:, :lags]), axis=1),
    }
    table: dict[str, Any] = {"lag": np.arange(1, lags + 1)}
    for name, values in curves.items():
        ends = [statistics.bootstrap_interval(drawn, count, how.level) for drawn in values[1:].T]
        table[name if name == "autocorrelation" else f"{name}_bps"] = values[0]
        table[f"{name}_low"], table[f"{name}_high"] = np.array(ends).T
    return pd.DataFrame(table).assign(n=known[0, :lags].astype(np.int64))


def _solve_kernels(correlation: Floats, changes: Floats) -> Floats:
    """Return the kernel of each row: the solution of ``toeplitz(correlation) @ K = changes``."""
    kernels = np.full(changes.shape, np.nan)
    for row, (each, change) in enumerate(zip(correlation, changes, strict=True)):
        if not np.isfinite(each).all() or not np.isfinite(change).all():
            continue
        matrix = statistics.scipy_part("linalg").toeplitz(each)
        sizes = np.linalg.eigvalsh(matrix)
        # Orders that all have the same side do not tell the kernel apart from the response.
        if sizes[0] > _LEAST_SHARE * sizes[-1]:
            kernels[row] = np.linalg.solve(matrix, change)
    return kernels
