"""Quotes from a tape: half spread and its parts, from the prices and takers of trades.

The price of a trade is a bid or an ask, never the mid. `crossed` and `side` of a fill name the
taker exactly, so a regression of price changes on the signs of trades separates the half spread
from price changes:

    change(t) = (transitory + permanent) * sign(t) - transitory * sign(t - 1) + news(t)

(Glosten and Harris, 1988; Huang and Stoll, 1997). The regression includes the sign of the trade
before, so the result does not depend on how signs follow each other. With the last trade as the mid
it does: with an autocorrelation of 0.8, only a fifth of the spread would show.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import fill_kinds, frame_access, grouping, markets, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.execution.prices import PriceHistory, span_ms
from toolkit.arrays import Floats
from toolkit.installation import explain_missing
from toolkit.rules.directions import AUTO_DELEVERAGING, LIQUIDATED
from toolkit.times import SECOND

NEEDED: Final = ("coin", "px", "sz", "side", "time", "crossed")
SIGNS: Final = {"B": 1.0, "A": -1.0}
PARTS: Final = ("half_spread", "transitory", "permanent")
_OPTIONAL: Final = ("tx_index", "dir", "liquidation_method")
_FEWEST_TURNS: Final = 2  # changes of the taker's side, which alone show the spread
_ENOUGH_SHARED: Final = 10
_LEAST_LEFT: Final = 1e-6
"""Share of a variance that the regression must leave in the residuals."""
_QUOTES: Final = {
    "coin": "str", "time": "datetime64[ms, UTC]", "bid_px": "float64", "ask_px": "float64",
    "mid_px": "float64", "sell_px": "float64", "buy_px": "float64",
    "sell_age_seconds": "float64", "buy_age_seconds": "float64",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SpreadParts:
    """Half spread, its transitory and its permanent part, in basis points.

    - ``values`` (array of float, (3,)): in the order of `PARTS`; NaN if the trades do not determine
      them
    - ``variances`` (array of float, (3,)): variances of the values; NaN if single changes determine
      the values
    - ``freedom`` (array of float, (3,)): degrees of freedom of the variances
    - ``moves`` (array of float): by how much each change moved the transitory part
    """

    values: Floats
    variances: Floats
    freedom: Floats
    moves: Floats = field(default_factory=lambda: np.zeros(0))

    def intervals(self, level: float) -> list[tuple[float, float]]:
        """Return low and high of each part; NaN if the variance is not known."""
        with explain_missing("analysis"):
            from scipy import stats

        reach = stats.t.ppf((1 + level) / 2, self.freedom) * np.sqrt(self.variances)
        return list(zip(self.values - reach, self.values + reach, strict=True))


_UNKNOWN: Final = SpreadParts(np.full(3, np.nan), np.full(3, np.nan), np.full(3, np.nan))


def side_signs(side: pd.Series) -> pd.Series:
    """Return 1 for a buy (``B``), -1 for a sell (``A``); missing if the side is not known."""
    return side.map(SIGNS).astype("float64")


def read_trades(fills: IntoFrame, what: str) -> pd.DataFrame:
    """Return the trades of a tape in order, one row for each taker's order and moment.

    Fills of one coin, moment, transaction and taker's side are one trade. Its price is the best
    one, which was the quote; the other prices were deeper in the book. Fills that met no quote are
    left out: conversions, settlements, backstop liquidations, auto-deleveraging. So are fills
    without ``side``. Messages name the rows as ``what``.

    Returns: ``coin, ms, tx, sign`` (1: the taker bought), ``px``, ``usd``; ``sure``: whether
    the order of this trade among those of its moment is known; ``taker``, ``maker``: whether the
    trade has a fill of that side.
    """
    fills = drop_repeated_rows(fills, "fills", what)
    rows = frame_access.pandas_columns(fills, what, NEEDED, _OPTIONAL, ("px", "sz"))
    frame = nw.from_native(rows, eager_only=True)
    column_names = frame.columns
    frame_access.require_some_values(frame, "crossed", what, "says which side was the taker")
    fill_kinds.warn_missing_directions(frame, what)
    rows = frame.filter(
        fill_kinds.is_market_trade(column_names) & ~_is_off_book(column_names)
    ).to_native()
    taker, sign = rows["crossed"].astype("boolean"), side_signs(rows["side"])
    rows = rows.assign(ms=timestamps.ms_from_times(rows["time"]), usd=rows["px"] * rows["sz"])
    known = taker.notna() & sign.notna() & rows["usd"].notna() & rows["ms"].notna()
    rows = rows[known & (rows["px"] > 0)]
    bought = (sign[rows.index] > 0) == taker[rows.index].astype("bool")
    rows = rows.assign(
        coin=rows["coin"].astype("str"),
        tx=rows["tx_index"].astype("Int64").fillna(0).astype("int64") if "tx_index" in rows else 0,
        sign=np.where(bought, 1.0, -1.0),
        _taker=taker[rows.index].astype("bool"),
        _maker=~taker[rows.index].astype("bool"),
        # If both sides of a trade are on the tape, its volume is that of the takers.
        taken=np.where(taker[rows.index].astype("bool"), rows["usd"], 0.0),
    )
    grouped = rows.groupby(["coin", "ms", "tx", "sign"], sort=True)
    trades = grouped.agg(low=("px", "min"), high=("px", "max"), usd=("usd", "sum"),
                         taken=("taken", "sum"), taker=("_taker", "any"),
                         maker=("_maker", "any")).reset_index()  # fmt: skip
    trades["px"] = trades["low"].where(trades["sign"] > 0, trades["high"])
    trades["usd"] = trades["taken"].where(trades["taken"] > 0, trades["usd"])
    trades["sure"] = ~trades.duplicated(["coin", "ms", "tx"], keep=False)
    return trades.drop(columns=["low", "high", "taken"])


def _is_off_book(column_names: Sequence[str]) -> nw.Expr:
    """Return whether the exchange set the price: a backstop liquidation, auto-deleveraging."""
    off = nw.col(column_names[0]).is_null() & nw.lit(False)
    if "dir" in column_names:
        word = nw.col("dir").cast(nw.String()).fill_null("")
        off = off | word.str.starts_with(LIQUIDATED) | (word == AUTO_DELEVERAGING)
    if "liquidation_method" in column_names:
        method = nw.col("liquidation_method").cast(nw.String()).fill_null("")
        off = off | (method == "backstop")
    return off


def price_changes(trades: pd.DataFrame, max_age_ms: float) -> pd.DataFrame:
    """Return the trades whose price is compared with the trade before them.

    Adds ``change`` in basis points, ``before`` (the sign of the trade before) and ``gap`` in
    seconds. Trades without an earlier trade of the coin within the time limit, and trades of
    unknown order, are left out.
    """
    last = trades.groupby("coin", sort=False)[["px", "sign", "ms", "sure"]].shift(1)
    changes = trades.assign(
        change=1e4 * np.log(trades["px"] / last["px"].astype("float64")),
        before=last["sign"].astype("float64"),
        gap=(trades["ms"] - last["ms"].astype("float64")) / SECOND,
    )
    sure = changes["sure"] & last["sure"].eq(True)
    return changes[sure & (changes["gap"] <= max_age_ms / SECOND)]


def estimate_parts(changes: pd.DataFrame) -> SpreadParts:
    """Estimate the parts of the half spread of one coin.

    Weighted least squares, with a constant. Weights are 1 / (gap + median gap), since the variance
    of a price change grows with time. The variance is that of Newey and West (1987), with 4 * (n /
    100)^(2/9) lags and residuals divided by the root of one minus their leverage (MacKinnon and
    White, 1985). It is scaled so that its mean and its variance are right if changes are
    independent with variances of one over the weights, and its degrees of freedom follow from the
    same condition (Bell and McCaffrey, 2002; Imbens and Kolesár, 2016): a few changes of the
    taker's side can determine an estimate from thousands of trades.
    """
    sign, before, gap = (changes[name].to_numpy("float64") for name in ("sign", "before", "gap"))
    turns = int((sign != before).sum())
    if turns < _FEWEST_TURNS or turns == len(changes) or len(changes) <= 3:
        return _UNKNOWN
    known = np.column_stack([np.ones(len(changes)), sign, -before])
    weights = 1.0 / (gap + max(float(np.median(gap)), 1e-3))
    weighted = known * weights[:, None]
    square = weighted.T @ known
    if np.linalg.matrix_rank(square, hermitian=True) < 3:
        return _UNKNOWN
    inverse = np.linalg.inv(square)
    change = changes["change"].to_numpy("float64")
    fitted = inverse @ (weighted.T @ change)
    # Rows: half spread, transitory, permanent. Columns: constant, half spread, transitory.
    parts = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    # From here on every row is divided by its own standard deviation, the root of 1 / weight.
    root = np.sqrt(weights)
    basis = np.linalg.qr(known * root[:, None])[0]
    residual = (change - known @ fitted) * root
    correction = 1.0 / np.sqrt(np.maximum(1.0 - (basis**2).sum(axis=1), 1e-6))
    pulls = (known * root[:, None]) @ inverse @ parts.T
    found = [_variance(pull, correction, residual, basis) for pull in pulls.T]
    variances, freedom = np.transpose(found)
    return SpreadParts(parts @ fitted, variances, freedom, pulls[:, 1] * residual)


def _variance(
    pull: Floats, correction: Floats, residual: Floats, basis: Floats
) -> tuple[float, float]:
    """Return the variance of an estimate, and the degrees of freedom of that variance.

    The variance is a quadratic form e'Be of the residuals, with B = `pull` times the weights of
    Newey and West. If changes are independent, with variance 1, the residuals are Me with M = I -
    QQ' (Q the `basis` of the regressors): the form's mean is tr(MB), its variance 2 tr(MBMB).

    - ``pull`` (array of float, (n,)): how the estimate moves with each change
    - ``correction`` (array of float, (n,)): factor of each residual
    - ``residual`` (array of float, (n,)): residuals of the regression
    - ``basis`` (array of float, (n, 3)): orthonormal columns that span the regressors
    """
    corrected = pull * correction
    score = corrected * residual
    lags = min(int(4 * (len(pull) / 100) ** (2 / 9)), len(pull) - 1)
    weights = 1 - np.abs(np.arange(-lags, lags + 1)) / (lags + 1)
    variance = float(score @ _sum_near(score, weights))
    diagonal = corrected**2
    trace = float(diagonal.sum())
    squares = float(diagonal @ _sum_near(diagonal, weights**2))
    near = [_sum_near(corrected * column, weights) for column in basis.T]
    image = corrected[:, None] * np.column_stack(near)  # B Q
    inner = basis.T @ image
    mean = trace - float(np.trace(inner))
    spread = squares - 2 * float((image**2).sum()) + float((inner**2).sum())
    if mean <= _LEAST_LEFT * trace or spread <= 0:
        return np.nan, np.nan  # the regression fits the decisive changes exactly
    return max(variance, 0.0) * float(pull @ pull) / mean, max(mean**2 / spread, 1.0)


def _sum_near(values: Floats, weights: Floats) -> Floats:
    """Return at each place the weighted sum of the values around it."""
    reach = len(weights) // 2
    around: Floats = np.convolve(values, weights)[reach : reach + len(values)]
    return around


def combine_parts(parts: Sequence[SpreadParts], weights: Sequence[float]) -> SpreadParts:
    """Return the weighted mean of several coins' parts; coins without an estimate are left out.

    Degrees of freedom as by Welch (1947) and Satterthwaite (1946).
    """
    known = [n for n, part in enumerate(parts) if not np.isnan(part.values).any()]
    total = sum(weights[n] for n in known)
    if not total:
        return _UNKNOWN
    shares = np.array([weights[n] / total for n in known])[:, None]
    values = (shares * [parts[n].values for n in known]).sum(axis=0)
    weighted = shares**2 * [parts[n].variances for n in known]
    freedom = np.array([parts[n].freedom for n in known])
    variances, below = weighted.sum(axis=0), (weighted**2 / freedom).sum(axis=0)
    least = freedom.min(axis=0)
    whole = np.divide(variances**2, below, out=least, where=below > 0)
    return SpreadParts(values, variances, whole)


def with_trade_groups(trades: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Add the columns that trades can be grouped by: the dex, and hour, day, week.

    Raise ValueError if `keys` has another column: a trade has two accounts, and only one taker.
    """
    allowed = ("coin", "dex", *grouping.CALENDAR)
    if wrong := [key for key in keys if key not in allowed]:
        raise ValueError(
            f"by={wrong[0]!r} needs prices: on the tape alone, group by liquidity, "
            f"{', '.join(allowed)}; or pass prices=tk.execution.quotes(tape)"
        )
    if "dex" in keys:
        frame = nw.from_native(trades, eager_only=True)
        dexes = frame.select(dex=markets.dex_of(nw.col("coin"))).to_native()
        trades = trades.assign(dex=dexes["dex"])
    for key in keys:
        if key in grouping.CALENDAR:
            length, into = grouping.CALENDAR[key]
            start = trades["ms"] - (trades["ms"] + into) % length
            trades = trades.assign(**{key: timestamps.timestamps_from_ms(start)})
    return trades


def quotes(tape: IntoFrame, *, max_age: str | float = "60s") -> pd.DataFrame:
    """Estimate bid, ask and mid from the tape: prices for `fill_quality`, `spreads`, `markout`.

    Parameters
    ----------
    tape : DataFrame
        Fills of all accounts, or of the takers: ``coin, px, sz, side, time, crossed``, and
        ``tx_index, dir, liquidation_method`` if they exist (any engine). Repeated rows count once.
        Fills without ``crossed`` or ``side`` are left out, because their taker's side is not known.
    max_age : str or float, default "60s"
        Trades with more time between them do not show how the price changes from one to the next.

    Returns
    -------
    DataFrame
        pandas, sorted by coin and time, one row for each coin and moment with a trade. Quotes are
        missing if the trades of a coin do not show its spread, which needs changes of the
        taker's side.

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
    trades = read_trades(tape, "tape")
    changes = price_changes(trades, age_ms)
    found = {coin: estimate_parts(rows).values for coin, rows in changes.groupby("coin", sort=True)}
    blank = np.full(3, np.nan)
    spread = np.array([found.get(coin, blank) for coin in trades["coin"]]).reshape(-1, 3)
    sign, px = trades["sign"].to_numpy("float64"), trades["px"].to_numpy("float64")
    mid = px * np.exp(-sign * spread[:, 1] / 1e4)
    rows_of_tape = trades.assign(
        mid_px=mid,
        bid_px=mid * np.exp(-spread[:, 0] / 1e4),
        ask_px=mid * np.exp(spread[:, 0] / 1e4),
    )
    for name, own in (("sell", -1.0), ("buy", 1.0)):
        last = (
            rows_of_tape[["px", "ms"]]
            .where(rows_of_tape["sign"] == own)
            .groupby(rows_of_tape["coin"])
            .ffill()
        )
        rows_of_tape[f"{name}_px"] = last["px"]
        rows_of_tape[f"{name}_age_seconds"] = (rows_of_tape["ms"] - last["ms"]) / SECOND
    # If both sides trade in one transaction, their order is not known: the mid is between them.
    unsure = rows_of_tape.groupby(["coin", "ms", "tx"], sort=False)
    for name in ("mid_px", "bid_px", "ask_px"):
        rows_of_tape[name] = unsure[name].transform("mean")
    rows_of_tape = rows_of_tape.drop_duplicates(["coin", "ms"], keep="last").reset_index(drop=True)
    rows_of_tape["time"] = timestamps.timestamps_from_ms(rows_of_tape["ms"])
    result = rows_of_tape[list(_QUOTES)].astype(_QUOTES)
    result.attrs["toolkit"] = {**result_provenance({"tape": tape}), "helper": "execution.quotes"}
    return result


def refuse_trade_prices(rows: pd.DataFrame, marks: PriceHistory) -> None:
    """Raise ValueError if prices are those of trades, which are bids and asks and not mids.

    Raise ValueError if the prices come from a column ``px``, or equal the fills' own prices.
    """
    words = ""
    if marks.source == "px":
        words = "prices: column px holds the prices of trades"
    else:
        px, when = marks.last_at(rows["coin"], rows["_ms"].to_numpy())
        shared = when == rows["_ms"].to_numpy()
        own = np.isclose(px[shared], rows["px"].to_numpy()[shared], rtol=1e-12, atol=0.0)
        if shared.sum() >= _ENOUGH_SHARED and own.mean() > 0.9:
            words = f"prices: column {marks.source} holds the fills' own prices"
    if words:
        raise ValueError(
            f"{words}. The price of a trade is a bid or an ask and not a mid: spreads "
            "measured against it are too small if takers of one side follow each other. Leave out "
            "prices if the fills are the whole tape, or pass tk.execution.quotes(tape), or asset "
            "contexts with mid_px or mark_px"
        )
