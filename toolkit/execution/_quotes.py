"""Quotes from a tape: half spread and its parts, from the prices and takers of trades.

The price of a trade is a bid or an ask, never the mid. `crossed` and `side` of a fill name the
taker exactly, so a regression of price changes on the signs of trades separates the half spread
from price changes:

    change(t) = (transitory + permanent) * sign(t) - transitory * sign(t - 1) + news(t)

(Glosten and Harris, 1988; Huang and Stoll, 1997). The regression includes the sign of the trade
before, so the result does not depend on how signs follow each other. With the last trade as the mid
it does: with an autocorrelation of 0.8, only a fifth of the spread would show.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.prepare.door import NO_TIME, Frame, Names, Table, utc_times
from toolkit.prepare.groups import split_groups, starts_group
from toolkit.prepare.prices import PriceHistory, read_prices, span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import read_trades
from toolkit.times import SECOND

PARTS = ("half_spread", "transitory", "permanent")
_FEWEST_TURNS = 2  # changes of the taker's side, which alone show the spread
_ENOUGH_SHARED = 10
_LEAST_LEFT = 1e-6
"""Share of a variance that the regression must leave in the residuals."""


def read_tape(table: Table) -> tuple[pd.DataFrame, list[str]]:
    """Return the trades of a tape in order, one row for each taker's order and moment.

    Fills of one coin, moment, transaction and taker's side are one trade. Its price is the best
    one, which was the quote; the other prices were deeper in the book. Fills that met no quote are
    left out, as are fills without ``side`` and trades whose taker is not known.

    Returns: ``coin`` (place among the names, which are returned, too), ``ms, tx, sign`` (1: the
    taker bought), ``px``, ``usd``; ``sure``: whether the order of this trade among those of its
    moment is known; ``taker``, ``maker``: whether the trade has a fill of that side.
    """
    fills = read_trades(table, ["crossed"])
    table.require_some("crossed", "says which side was the taker")
    known = (fills.taker >= 0) & ~np.isnan(fills.sign * fills.usd) & (fills.px > 0)
    fills = fills.take(known & (table.ms()[fills.rows] != NO_TIME))
    tx, sign = table.ids("tx_index")[0][fills.rows], fills.sign * (2 * fills.taker - 1)
    order = np.lexsort((sign, tx, fills.ms, fills.coin.codes))
    fills, tx, sign = fills.take(order), tx[order], sign[order]
    coin, ms, px = fills.coin.codes, fills.ms, fills.px
    is_next = starts_group(coin, ms, tx, sign)
    first, number = np.flatnonzero(is_next), np.cumsum(is_next) - 1
    best = np.where(sign[first] > 0, np.minimum.reduceat(px, first), np.maximum.reduceat(px, first))
    parts = (fills.usd, fills.usd * fills.taker, fills.taker, np.ones(len(px)))
    usd, taken, takers, n = (np.bincount(number, part, len(first)) for part in parts)
    alone = starts_group(coin[first], ms[first], tx[first])
    trades = pd.DataFrame(
        {
            "coin": coin[first],
            "ms": ms[first],
            "tx": tx[first],
            "sign": sign[first],
            "px": best,
            # If both sides of a trade are on the tape, its volume is that of the takers.
            "usd": np.where(taken > 0, taken, usd),
            "sure": alone & np.append(alone, True)[1:],
            "taker": takers > 0,
            "maker": takers < n,
        }
    )
    return trades, fills.coin.values


def price_changes(trades: pd.DataFrame, max_age_ms: float) -> pd.DataFrame:
    """Return the trades whose price is compared with the trade before them.

    Adds ``change`` in basis points, ``before`` (the sign of the trade before) and ``gap`` in
    seconds. Trades without an earlier trade of the coin within the time limit, and trades of
    unknown order, are left out.
    """
    coin, sure, ms = trades["coin"].to_numpy(), trades["sure"].to_numpy(), trades["ms"]
    gap = np.diff(ms.to_numpy()) / SECOND
    is_pair = ~starts_group(coin)[1:] & sure[1:] & sure[:-1] & (gap <= max_age_ms / SECOND)
    last = np.flatnonzero(is_pair)
    px, sign = trades["px"].to_numpy(), trades["sign"].to_numpy()
    return trades.iloc[last + 1].assign(
        change=1e4 * np.log(px[last + 1] / px[last]), before=sign[last], gap=gap[last]
    )


def estimate_parts(changes: pd.DataFrame) -> tuple[Floats, Floats]:
    """Estimate the parts of the half spread of one coin, in basis points.

    Weighted least squares, with a constant. Weights are 1 / (gap + median gap), since the variance
    of a price change grows with time. The variance is that of Newey and West (1987), with 4 * (n /
    100)^(2/9) lags and residuals divided by the root of one minus their leverage (MacKinnon and
    White, 1985). It is scaled so that its mean and its variance are right if changes are
    independent with variances of one over the weights, and its degrees of freedom follow from the
    same condition (Bell and McCaffrey, 2002; Imbens and Kolesár, 2016): a few changes of the
    taker's side can determine an estimate from thousands of trades.

    Returns
    -------
    parts : array of float, (3, 3)
        Rows: the values, their variances, and the degrees of freedom of the variances; columns: in
        the order of `PARTS`. NaN if the trades do not determine the values; variances are NaN, too,
        if single changes determine the values.
    moves : array of float
        By how much each change moved the transitory part.
    """
    parts, count = np.full((3, 3), np.nan), len(changes)
    numbers = (changes[name].to_numpy("float64") for name in ("sign", "before", "gap", "change"))
    sign, before, gap, change = numbers
    turns = int((sign != before).sum())
    if turns < _FEWEST_TURNS or turns == count or count <= 3:
        return parts, np.zeros(0)
    known = np.column_stack([np.ones(count), sign, -before])
    weights = 1.0 / (gap + max(float(np.median(gap)), 1e-3))
    weighted = known * weights[:, None]
    square = weighted.T @ known
    if np.linalg.matrix_rank(square, hermitian=True) < 3:
        return parts, np.zeros(0)
    inverse = np.linalg.inv(square)
    fitted = inverse @ (weighted.T @ change)
    # Rows: half spread, transitory, permanent. Columns: constant, half spread, transitory.
    sums = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    # From here on every row is divided by its own standard deviation, the root of 1 / weight.
    root = np.sqrt(weights)
    basis = np.linalg.qr(known * root[:, None])[0]
    residual = (change - known @ fitted) * root
    correction = 1.0 / np.sqrt(np.maximum(1.0 - (basis**2).sum(axis=1), 1e-6))
    pulls = (known * root[:, None]) @ inverse @ sums.T
    parts[0] = sums @ fitted
    for place, pull in enumerate(pulls.T):
        parts[1:, place] = _variance(pull, pull * correction, residual, basis)
    return parts, pulls[:, 1] * residual


def _variance(
    pull: Floats, corrected: Floats, residual: Floats, basis: Floats
) -> tuple[float, float]:
    """Return the variance of an estimate, and the degrees of freedom of that variance.

    The variance is a quadratic form e'Be of the residuals, with B = `pull` times the weights of
    Newey and West. If changes are independent, with variance 1, the residuals are Me with M = I -
    QQ' (Q the `basis` of the regressors): the form's mean is tr(MB), its variance 2 tr(MBMB).

    - ``pull`` (array of float, (n,)): how the estimate moves with each change
    - ``corrected`` (array of float, (n,)): the same, times the factor of each residual
    - ``residual`` (array of float, (n,)): residuals of the regression
    - ``basis`` (array of float, (n, 3)): orthonormal columns that span the regressors
    """
    lags = int(4 * (len(pull) / 100) ** (2 / 9))
    weights = 1 - np.abs(np.arange(-lags, lags + 1)) / (lags + 1)
    score, diagonal = corrected * residual, corrected**2
    variance = float(score @ np.convolve(score, weights, "same"))
    squares = float(diagonal @ np.convolve(diagonal, weights**2, "same"))
    near = [np.convolve(corrected * column, weights, "same") for column in basis.T]
    image = corrected[:, None] * np.column_stack(near)  # B Q
    inner = basis.T @ image
    trace = float(diagonal.sum())
    mean = trace - float(np.trace(inner))
    spread = squares - 2 * float((image**2).sum()) + float((inner**2).sum())
    if mean <= _LEAST_LEFT * trace or spread <= 0:
        return np.nan, np.nan  # the regression fits the decisive changes exactly
    return max(variance, 0.0) * float(pull @ pull) / mean, max(mean**2 / spread, 1.0)


def parts_by_coin(changes: pd.DataFrame, count: int) -> Floats:
    """Return the parts of each coin, as of `estimate_parts`: (coins, 3, 3)."""
    found = np.full((count, 3, 3), np.nan)
    for code, rows in enumerate(split_groups(changes["coin"].to_numpy(), count)):
        if len(rows):
            found[code] = estimate_parts(changes.iloc[rows])[0]
    return found


def quotes(tape: Frame, *, max_age: str | float = "60s") -> pd.DataFrame:
    """Estimate bid, ask and mid from the tape: prices for `fill_quality`, `spreads`, `markout`.

    Parameters
    ----------
    tape : DataFrame
        Fills of all accounts, or of the takers: ``coin, px, sz, side, time, crossed``, and
        ``tx_index, dir, liquidation_method`` if they exist. Repeated rows count once.
        Fills without ``crossed`` or ``side`` are left out, because their taker's side is not known.
    max_age : str or float, default "60s"
        Trades with more time between them do not show how the price changes from one to the next.

    Returns
    -------
    DataFrame
        Sorted by coin and time, one row for each coin and moment with a trade. Quotes are
        missing if the trades of a coin do not show its spread, which needs changes of the
        taker's side. An estimated spread below 0 counts as 0: bids are never above asks.

        - ``coin``: coin of the trade.
        - ``time``: time of the trade, UTC.
        - ``bid_px``: best bid, in USD: half a spread below the mid.
        - ``ask_px``: best ask, in USD: half a spread above the mid.
        - ``mid_px``: mid price, in USD: the last trade's price, less the transitory half spread if
          the taker bought, plus it if the taker sold.
        - ``sell_px``: price of the last taker sell, in USD: a bid without any model.
        - ``buy_px``: price of the last taker buy, in USD: an ask without any model. The older of
          the two prices is stale, so their mean is not a mid if one side trades for long.
        - ``sell_age_seconds``: age of `sell_px`, in seconds.
        - ``buy_age_seconds``: age of `buy_px`, in seconds.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` is not a span of time.

    Notes
    -----
    The tape has to be complete, since trades that are not on it move the price as well. The spread
    is one number for each coin, estimated from all of its trades, later ones included. The
    regression is that of Glosten and Harris (1988); see `spreads` without prices for its intervals.

    Examples
    --------
    Takers buy at 100.01 and sell at 99.99, two of each in turn.

    >>> import pandas as pd
    >>> tape = pd.DataFrame({"coin": "XYZ", "side": list("BBAABBAA"), "crossed": True, "sz": 1.0,
    ...     "px": [100.01, 100.01, 99.99, 99.99] * 2,
    ...     "time": pd.to_datetime(range(0, 8000, 1000), unit="ms", utc=True)})
    >>> quotes(tape)[["bid_px", "mid_px", "ask_px", "sell_age_seconds"]].tail(2).round(2)
       bid_px  mid_px  ask_px  sell_age_seconds
    6   99.99   100.0  100.01               0.0
    7   99.99   100.0  100.01               0.0
    """
    age_ms = span_ms(max_age, "max_age")
    table = Table(tape, "tape", "fills")
    return finish(_estimate_quotes(table, age_ms), {"tape": table.frame}, helper="execution.quotes")


def _estimate_quotes(table: Table, age_ms: int) -> pd.DataFrame:
    trades, names = read_tape(table)
    ms, px, sign = (trades[name].to_numpy() for name in ("ms", "px", "sign"))
    coin = Names(trades["coin"].to_numpy(), names)
    parts = parts_by_coin(price_changes(trades, age_ms), len(names))
    half, transitory, _ = parts[coin.codes, 0].T
    half = np.maximum(half, 0.0)  # quotes never cross
    # If both sides trade in one transaction, their order is not known: the mid is between them.
    is_next = starts_group(coin.codes, ms, trades["tx"].to_numpy())
    number = np.cumsum(is_next) - 1
    n = np.bincount(number)
    mid = px * np.exp(-sign * transitory / 1e4)
    bid, ask = mid * np.exp(-half / 1e4), mid * np.exp(half / 1e4)
    bid, ask, mid = ((np.bincount(number, each) / n)[number] for each in (bid, ask, mid))
    result = {
        "coin": coin.texts(), "time": utc_times(ms), "bid_px": bid, "ask_px": ask, "mid_px": mid,
    }  # fmt: skip
    is_first = starts_group(coin.codes)
    start = np.maximum.accumulate(np.where(is_first, np.arange(len(ms)), 0))
    ages = {}
    for side, own in (("sell", -1.0), ("buy", 1.0)):
        last = np.maximum.accumulate(np.where(sign == own, np.arange(len(ms)), -1))
        known = last >= start
        result[f"{side}_px"] = np.where(known, px[last], np.nan)
        ages[f"{side}_age_seconds"] = np.where(known, (ms - ms[last]) / SECOND, np.nan)
    is_last = np.append(starts_group(coin.codes, ms), True)[1:]
    return pd.DataFrame({**result, **ages})[is_last]


def reference_prices(
    fills: Table, prices: Frame | None, price: str | None, max_age: str | float
) -> PriceHistory:
    """Return the passed prices; without any, the mids of the `quotes` of the fills.

    Raise ValueError if the passed prices are those of trades, which are bids and asks and not mids:
    from a column ``px``, or equal to the fills' own prices.
    """
    if prices is None:
        own = _estimate_quotes(fills, span_ms(max_age, "max_age"))
        return replace(read_prices(own, "mid_px"), source="quotes")
    marks, words = read_prices(prices, price), ""
    if marks.source == "px":
        words = "prices: column px holds the prices of trades"
    else:
        px, age = marks.last_at(fills.text("coin"), fills.ms())
        own = np.isclose(px[age == 0], fills.number("px")[age == 0], rtol=1e-12, atol=0.0)
        if len(own) >= _ENOUGH_SHARED and own.mean() > 0.9:
            words = f"prices: column {marks.source} holds the fills' own prices"
    if words:
        raise ValueError(
            f"{words}. The price of a trade is a bid or an ask and not a mid: spreads "
            "measured against it are too small if takers of one side follow each other. Leave out "
            "prices if the fills are the whole tape, or pass tk.execution.quotes(tape), or asset "
            "contexts with mid_px or mark_px"
        )
    return marks
