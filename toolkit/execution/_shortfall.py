"""Implementation shortfall: what each order cost against the price at its decision."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.display import count_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.execution._quotes import reference_prices
from toolkit.prepare import Fills
from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.prepare.groups import number_rows
from toolkit.prepare.money import warn_missing_tokens
from toolkit.prepare.orders import read_events
from toolkit.prepare.prices import LATEST, span_ms
from toolkit.prepare.provenance import state_provenance
from toolkit.prepare.roles import is_off_book
from toolkit.prepare.trades import Trades, find_parents, read_signs, read_trades
from toolkit.rules.twaps import SLICE_TYPE
from toolkit.statistics import DRAWS, Estimate, Sampling, bootstrap_interval, bootstrap_ratios
from toolkit.times import DAY


@dataclass(frozen=True, eq=False, kw_only=True)
class Shortfall(Estimate):
    """Implementation shortfall of orders, in parts.

    Attributes
    ----------
    params : DataFrame
        One row per part and one for the total:

        - ``name``: name of the part
        - ``estimate``: sum of the part as a share of the decided value, in basis points, negative
          for a cost
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate
        - ``usd``: sum of the part over the orders, in USD, negative for a cost
        - ``n``: number of orders with figures
        - ``missing``: number of orders without figures
        - ``clusters``: number of days, which the interval resamples

        The parts:

        - ``delay``: gain from the decision to the first fill, in basis points
        - ``trading``: gain of the fills against the price before the first fill, in basis points
        - ``opportunity``: gain that the unfilled size missed, with the opposite sign, in basis
          points
        - ``fees``: fees of the fills, in basis points, negative if paid
        - ``total``: sum of the four parts, in basis points
    orders : DataFrame
        One row per order, in the order of placing; amounts in USD, positive if good for the
        account:

        - ``kind``: ``order`` or ``twap``
        - ``parent``: the order id, or the TWAP id
        - ``coin``: coin of the order
        - ``side``: B for a buy, A for a sell; an order without a side has no figures
        - ``placed``: time of the decision, UTC
        - ``ended``: time of the end, UTC; missing for an order that is still open
        - ``size``: decided size, in units of the coin
        - ``filled``: filled size, in units of the coin
        - ``maker_share``: share of the filled size that rested in the book; missing if ``crossed``
          of a fill is not known
        - ``decision_px``: price at the decision, in USD
        - ``first_px``: price before the first fill, in USD; missing without fills
        - ``end_px``: price at the end of the order, in USD
        - ``delay``: gain from the decision to the first fill, in USD
        - ``trading``: gain of the fills against the price before the first fill, in USD
        - ``opportunity``: gain that the unfilled size missed, with the opposite sign, in USD
        - ``fees``: fees of the fills, in USD, negative if paid
        - ``total``: sum of the four parts, in USD
        - ``total_bps``: the sum in basis points of the decided value
        - ``decision_age_seconds``: age of `decision_px` at the decision, in seconds
        - ``first_age_seconds``: age of `first_px` at the first fill, in seconds
        - ``end_age_seconds``: age of `end_px` at the end, in seconds
    price_source : str
        Column of the prices.
    """

    orders: pd.DataFrame
    price_source: str


def shortfall(
    orders: Frame,
    fills: Frame,
    prices: Frame,
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Shortfall:
    """Split the cost of orders against their decision price: delay, trading, opportunity, fees.

    A paper order is filled at once, entirely, at the price of the decision. The shortfall is the
    gain of the real order less the gain of the paper order, both up to the end of the order.

    Parameters
    ----------
    orders : DataFrame
        Status events of one account: ``oid, status, status_timestamp, timestamp, coin, side,
        orig_sz``, with ``order_type`` and ``is_trigger`` if known, from `tk.historical_orders`.
        Repeated events count once.
    fills : DataFrame
        Fills of the same account and time: ``oid, coin, px, sz, side, time, crossed, fee``, with
        ``twap_id`` and the fee columns if known. Repeated rows count once.
    prices : DataFrame
        Mids of the market, as for `markout`: asset contexts with times, or `quotes` of the tape.
        Prices of trades are refused, because each is a bid or an ask.
    price : str, optional
        Column of the price, as for `markout`.
    max_age : str or float, default "60s"
        Largest age of a price. An order without a fresh decision price has no figures. Quotes hold
        until the next one, so those that were fresh at the decision count until the order's end.
    level, draws, seed
        Level of the intervals; number of resamples; their seed.

    Returns
    -------
    Shortfall
        ``params`` has a row for each part, in basis points of the decided value, and one for the
        total; negative is a cost. ``orders`` has a row for each order.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` or `level` is not valid, or the prices are those of trades.

    Warns
    -----
    HistoryWarning
        If the fills of an order do not add up to what its last event says was filled.

    Notes
    -----
    Perold (1988), "The implementation shortfall: paper versus reality". With s = 1 for buys and -1
    for sells, decided size S, fills (px, sz) of total size F, decision price d, price f before the
    first fill, price e at the end:

    - delay = -s * F * (f - d)
    - trading = -s * sum(sz * (px - f))
    - opportunity = -s * (S - F) * (e - d)
    - fees = -sum(fee)

    Their sum is ``s * sum(sz * (e - px)) + fees - s * S * (e - d)``. The decision is the time of
    placing, or of triggering for trigger orders. If the order is filled in the millisecond of the
    decision, the decision price is the last one before this millisecond: quotes of the tape would
    contain the fill itself. Rejected orders, triggers that never fired, and orders that the
    exchange filled at its own price (backstop liquidations, auto-deleveraging) are left out. The
    slices of a TWAP are one order of kind ``twap``: its size is what was filled, so its opportunity
    cost is 0. A fee in the bought token counts at the price of the fill. A fee in another token
    counts at par (one token is one USD), but as 0 on a perp of the native dex. Intervals: bootstrap
    by the day of the decision.

    Examples
    --------
    A buy of 4 is decided at 100. Before its first fill the mid is 101; 3 are filled at 102 for a
    fee of 1; then it is cancelled, with the mid at 105.

    >>> import pandas as pd
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> orders = pd.DataFrame({"oid": 1, "status": ["open", "canceled"], "coin": "XYZ",
    ...     "status_timestamp": ms(1000, 9000), "timestamp": ms(1000, 1000), "side": "B",
    ...     "orig_sz": 4.0})
    >>> fills = pd.DataFrame({"oid": 1, "coin": "XYZ", "px": [102.0], "sz": 3.0, "side": "B",
    ...     "time": ms(5000), "crossed": True, "fee": 1.0})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 101.0, 105.0],
    ...     "time": ms(900, 4000, 8000)})
    >>> found = shortfall(orders, fills, mids)
    >>> found.orders[["delay", "trading", "opportunity", "fees", "total", "total_bps"]]
       delay  trading  opportunity  fees  total  total_bps
    0   -3.0     -3.0         -5.0  -1.0  -12.0     -300.0
    """
    how = Sampling(level, draws, seed)
    table = Table(fills, "fills")
    parents, late = _read_parents(orders)
    trades = read_trades(table, ("oid", "crossed", "fee"))
    marks = reference_prices(table, prices, price, max_age)
    # The exchange filled these orders at its own price.
    forced = parents["parent"].isin(table.ids("oid")[0][is_off_book(table)])
    found = _add_executions(parents[~forced], table, trades)
    placed, ended, begun = (found[name].to_numpy() for name in ("placed", "ended", "first"))
    size, filled, age_ms = found["size"], found["filled"], span_ms(max_age, "max_age")
    # An order may be filled in the millisecond of its decision, as the first slice of a TWAP is.
    # A quote of this millisecond would contain its own fill: the price is from before.
    moments = {
        "decision": placed - (begun == placed),
        "first": np.maximum(begun, 0) - 1,
        "end": np.where(ended == NO_TIME, late, ended),
    }
    read, px, ages = Table(found, "orders"), {}, {}
    coin, sign = read.text("coin"), read_signs(read.text("side"))
    for name, ms in moments.items():
        # Quotes hold: else only orders would count that other trades follow.
        held = 0 if marks.until is None else np.maximum(ms - placed, 0)
        px[name], ages[f"{name}_age_seconds"] = marks.last_at(coin, ms, age_ms + held)
    rest = np.where(found["kind"] == "twap", 0.0, np.maximum(size - filled, 0.0))
    costs = {
        "delay": np.where(filled > 0, sign * filled * (px["first"] - px["decision"]), 0.0),
        "trading": np.where(filled > 0, sign * (found["value"] - filled * px["first"]), 0.0),
        "opportunity": np.where(rest > 0, sign * rest * (px["end"] - px["decision"]), 0.0),
        "fees": found["paid"],
    }
    parts = -pd.DataFrame(costs)
    parts[np.isnan(px["decision"]) | parts.isna().any(axis=1) | ~(size > 0)] = np.nan
    parts += 0.0  # not -0
    parts["total"] = parts.sum(axis=1, skipna=False)
    result = found[["kind", "parent", "coin", "side"]].assign(
        kind=found["kind"].astype("str"),
        placed=utc_times(placed),
        ended=utc_times(ended),
        size=size,
        filled=filled,
        maker_share=found["rested"] / filled.where(filled > 0),
        **{f"{name}_px": values for name, values in px.items()},
        **parts,
        total_bps=1e4 * parts["total"] / (size * px["decision"]),
        **ages,
    )
    known = result[parts["total"].notna()]
    days = np.unique(known["placed"].array.asi8 // DAY, return_inverse=True)[1]
    base = (known["size"] * known["decision_px"]).to_numpy()
    above = [1e4 * known[name].to_numpy() for name in parts]
    whole, values, count = bootstrap_ratios(above, base, days, how)
    params = pd.DataFrame({"name": pd.Series([*parts], dtype="str"), "estimate": whole})
    ends = [bootstrap_interval(drawn, count, level) for drawn in values.T]
    params[["low", "high"]] = np.array(ends)
    params["usd"] = known[[*parts]].sum(min_count=1).to_numpy()
    params = params.assign(n=len(known), missing=len(result) - len(known), clusters=count)
    state_provenance(
        (params, result), {"orders": orders, "fills": table.frame, "prices": prices},
        helper="execution.shortfall", price_source=marks.source,
    )  # fmt: skip
    return Shortfall(
        params=params, n=len(known), level=level, orders=result, price_source=marks.source,
        method=f"implementation shortfall; bootstrap by day; prices: {marks.source}",
    )  # fmt: skip


def _read_parents(orders: Frame) -> tuple[pd.DataFrame, int]:
    """Return one row per order that reached the market, and the time of the last event."""
    events = read_events(orders)
    table, first = events.table, events.is_first()
    table.require(("coin", "side", "timestamp", "orig_sz"))
    begin, end = events.take(first), events.take(events.is_last())
    fired = np.full(len(begin), LATEST)
    triggered = events.status.facts("triggered".__eq__)
    np.minimum.at(fired, (np.cumsum(first) - 1)[triggered], events.ms[triggered])
    is_trigger, group = table.flag("is_trigger")[0][begin.rows], end.groups()
    placed = np.where(is_trigger, fired, table.ms("timestamp")[begin.rows])
    parents = pd.DataFrame(
        {
            "kind": "order",
            "parent": begin.oid,
            "coin": table.text("coin").texts(begin.rows),
            "side": table.text("side").texts(begin.rows),
            "placed": placed,
            "ended": np.where(group.facts("active".__eq__), NO_TIME, end.ms),
            # A reduce-only order shrinks to the position that is left when it executes.
            "size": table.number("orig_sz")[end.rows],
            "open": table.number("sz", np.nan)[end.rows],
        }
    )
    kept = (placed != LATEST) & (placed != NO_TIME) & ~group.facts("rejected".__eq__)
    kept &= ~table.text("order_type", blank=True).facts(SLICE_TYPE.__eq__)[begin.rows]
    return parents[kept], int(events.ms.max(initial=NO_TIME))


def _add_executions(parents: pd.DataFrame, table: Table, trades: Trades) -> pd.DataFrame:
    """Return the orders, and TWAPs from their fills, with the sums of their fills."""
    warn_missing_tokens(table)
    money = Fills(table.frame).money
    (is_twap, parent), sz = find_parents(table, trades.rows), np.nan_to_num(trades.sz)
    rows = pd.DataFrame(
        {
            "kind": np.where(is_twap, "twap", "order"),
            "parent": parent,
            "coin": trades.coin.texts(),
            "side": table.text("side").texts(trades.rows),
            "fills": 1,
            "filled": sz,
            "value": trades.usd,
            "paid": (money.fee + money.fee_in_cost)[trades.rows],
            "rested": np.where(trades.taker < 0, np.nan, sz * (trades.taker == 0)),
            "first": trades.ms,
            "last": trades.ms,
        }
    )
    # A fill without a price, size or fee makes the sums of its order unknown.
    lacks = rows["value"].isna() | np.isnan(table.number("fee"))[trades.rows]
    rows.loc[lacks, ["value", "paid"]] = np.nan
    # The ids of TWAPs of two accounts may be equal.
    user = table.text("user", blank=True).codes[trades.rows]
    number = number_rows(is_twap, parent, is_twap * user, is_twap * trades.coin.codes)
    by_order, names = rows.groupby(number), ["fills", "filled", "value", "paid", "rested"]
    sums = by_order.first(skipna=False)
    sums[names], sums["last"] = by_order[names].sum(skipna=False), by_order["last"].last()
    is_twap = (sums["kind"] == "twap").to_numpy(bool)
    twaps = sums[is_twap]
    twaps = twaps.assign(placed=twaps["first"], ended=twaps["last"], size=twaps["filled"])
    own = sums[~is_twap].set_index("parent").drop(columns=["kind", "coin", "side", "last"])
    matched = own.reindex(parents["parent"], fill_value=0).reset_index(drop=True)
    matched["first"] = np.where(matched["fills"] == 0, NO_TIME, matched["first"])
    singles = pd.concat([parents.reset_index(drop=True), matched], axis=1)
    if others := int(own.loc[~own.index.isin(parents["parent"]), "fills"].sum()):
        lack = "does not count: its order is" if others == 1 else "do not count: their orders are"
        warn_caller(
            f"fills: {others:,} of {count_text(len(rows), 'fill')} {lack} not in orders. "
            "Fetch the orders for the full time range of the fills",
            HistoryWarning,
        )
    wrong = (singles["size"] - singles["open"] - singles["filled"]).abs() > 1e-9 * singles["size"]
    if wrong.any():
        warn_caller(
            f"fills: for {int(wrong.sum()):,} of {count_text(len(singles), 'order')}, the sizes of "
            "the fills do not add up to the filled size in orders. Fetch the fills for the full "
            "time range of the orders",
            HistoryWarning,
        )
    both = pd.concat([singles, twaps], ignore_index=True) if len(twaps) else singles
    return both.sort_values(["placed", "kind", "parent"], kind="stable", ignore_index=True)
