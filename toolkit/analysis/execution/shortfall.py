"""Implementation shortfall: what each order cost against the price at its decision."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, timestamps, usd_values
from toolkit.analysis.common.bootstrap import DRAWS, bootstrap_interval, bootstrap_ratios
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.execution.orders import sort_events
from toolkit.analysis.execution.prices import PriceHistory, read_prices, span_ms
from toolkit.analysis.execution.quotes import refuse_trade_prices, side_signs
from toolkit.arrays import Floats
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.rules.twaps import SLICE_TYPE
from toolkit.times import DAY

PARTS: Final = ("delay", "trading", "opportunity", "fees")
_ORDERS: Final = {
    "kind": "str", "parent": "int64", "coin": "str", "side": "str", "placed": "datetime64[ms, UTC]",
    "ended": "datetime64[ms, UTC]", "size": "float64", "filled": "float64",
    "maker_share": "float64", "decision_px": "float64", "first_px": "float64", "end_px": "float64",
    "delay": "float64", "trading": "float64", "opportunity": "float64", "fees": "float64",
    "total": "float64", "total_bps": "float64",
}  # fmt: skip


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
        - ``maker_share``: share of the filled size that rested in the book
        - ``decision_px``: price at the decision, in USD
        - ``first_px``: price before the first fill, in USD; missing without fills
        - ``end_px``: price at the end of the order, in USD
        - ``delay``: gain from the decision to the first fill, in USD
        - ``trading``: gain of the fills against the price before the first fill, in USD
        - ``opportunity``: gain that the unfilled size missed, with the opposite sign, in USD
        - ``fees``: fees of the fills, in USD, negative if paid
        - ``total``: sum of the four parts, in USD
        - ``total_bps``: the sum in basis points of the decided value
    price_source : str
        Column of the prices.
    """

    orders: pd.DataFrame
    price_source: str

    picture: ClassVar[str] = "shortfall"


def shortfall(
    orders: IntoFrame,
    fills: IntoFrame,
    prices: IntoFrame,
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
        orig_sz``, with ``order_type`` and ``is_trigger`` if known, from `tk.historical_orders`
        (pandas, Polars, DuckDB, PySpark). Repeated events count once.
    fills : DataFrame
        Fills of the same account and time: ``oid, coin, px, sz, side, time, crossed, fee``, with
        ``twap_id`` and the fee columns if known. Repeated rows count once.
    prices : DataFrame
        Mids of the market, as for `markout`: asset contexts with times, or `quotes` of the tape.
        Prices of trades are refused, because each is a bid or an ask.
    price : str, optional
        Column of the price, as for `markout`.
    max_age : str or float, default "60s"
        Largest age of a price. An order without a fresh decision price has no figures.
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
    placing, or of triggering for trigger orders. If the order is filled in the millisecond
    of the decision, the decision price is the last one before this millisecond: quotes of the tape
    would contain the fill itself. Rejected orders and
    triggers that never fired are left out. The slices of a TWAP are one order of kind ``twap``: its
    size is what was filled, so its opportunity cost is 0. A fee in the bought token counts at the
    price of the fill. A fee in another token counts at par (one token is one USD), but as 0 on a
    perp of the native dex. Intervals: bootstrap by the day of the decision.

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
    check_level(level)
    age_ms = span_ms(max_age, "max_age")
    marks = read_prices(prices, price)
    parents, late = _read_parents(orders)
    rows = _read_executions(fills)
    refuse_trade_prices(rows, marks)
    table = _price_parents(_add_executions(parents, rows), marks, age_ms, late)
    params = _sum_parts(table, level, draws, seed)
    facts = result_provenance({"orders": orders, "fills": fills, "prices": prices})
    facts |= {"helper": "execution.shortfall", "price_source": marks.source}
    table = table[list(_ORDERS)].astype(_ORDERS)
    table.attrs["toolkit"] = params.attrs["toolkit"] = facts
    return Shortfall(
        params=params,
        n=int(table["total"].notna().sum()),
        level=level,
        method=f"implementation shortfall; bootstrap by day; prices: {marks.source}",
        orders=table,
        price_source=marks.source,
    )


def _read_parents(orders: IntoFrame) -> tuple[pd.DataFrame, float]:
    """Return one row per order that reached the market, and the time of the last event."""
    needed = ("coin", "side", "timestamp", "orig_sz")
    optional = ("order_type", "is_trigger", "sz")
    events = sort_events(orders, needed, optional, ("orig_sz",))
    fired = events["ms"].where(events["status"] == "triggered").groupby(events["oid"]).min()
    first, last = (events.groupby("oid").nth(place).set_index("oid") for place in (0, -1))
    trigger = first.get("is_trigger", pd.Series(False, first.index)).astype("boolean").fillna(False)
    kind = first.get("order_type", pd.Series("", first.index)).fillna("")
    table = pd.DataFrame(
        {
            "coin": first["coin"].astype("str"),
            "side": first["side"].astype("str"),
            "_placed": fired.reindex(first.index).where(trigger, first["placed"]),
            "_ended": last["ms"].where(last["_group"] != "active"),
            # A reduce-only order shrinks to the position that is left when it executes.
            "size": last["orig_sz"].astype("float64"),
            "_open": last["sz"].astype("float64") if "sz" in last else np.nan,
        }
    )
    kept = (last["_group"] != "rejected") & (kind != SLICE_TYPE) & table["_placed"].notna()
    return table[kept].reset_index(names="parent"), float(events["ms"].max())


def _read_executions(fills: IntoFrame) -> pd.DataFrame:
    """Return the fills with their fee in USD, and the id of their order or TWAP."""
    fills = drop_repeated_rows(fills, "fills")
    amounts = ("px", "sz", "fee")
    frame = frame_access.open_as_floats(fills, "fills", amounts)
    frame_access.require_columns(frame, ("oid", "coin", "side", "time", "crossed"), "fills")
    usd_values.warn_missing_tokens(frame, "fills")
    frame = usd_values.add_fees_in_usd(frame, "float")
    frame = frame.with_columns(_paid=nw.when(~nw.col("fee").is_null()).then(nw.col("_fee")))
    kept = ("oid", "coin", "px", "sz", "side", "time", "crossed", "_paid")
    rows = frame_access.pandas_columns(nw.to_native(frame), "fills", kept, ("twap_id",))
    rows["_ms"] = timestamps.ms_from_times(rows["time"]).astype("float64")
    twap = rows["twap_id"] if "twap_id" in rows else pd.Series(pd.NA, rows.index)
    is_twap = twap.notna()
    rows["kind"] = np.where(is_twap, "twap", "order")
    rows["parent"] = twap.where(is_twap, rows["oid"]).astype("int64")
    rows["coin"] = rows["coin"].astype("str")
    rows["_value"] = rows["px"] * rows["sz"]
    rows["_rested"] = rows["sz"].where(~rows["crossed"].astype("boolean").fillna(True), 0.0)
    return rows.sort_values(["_ms", "parent", "px", "sz"], kind="stable", ignore_index=True)


def _add_executions(parents: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the orders, and TWAPs from their fills, with the sums of their fills."""
    # A fill without a price, size or fee makes the sums of its order unknown.
    is_known = rows[["_value", "_paid"]].notna().all(axis=1)
    sums = (
        rows.assign(_known=is_known)
        .groupby(["kind", "parent"], sort=True)
        .agg(
            filled=("sz", "sum"),
            _value=("_value", "sum"),
            _paid=("_paid", "sum"),
            _known=("_known", "all"),
            _rested=("_rested", "sum"),
            _first=("_ms", "min"),
            _last=("_ms", "max"),
            coin=("coin", "first"),
            side=("side", "first"),
        )
    )
    sums[["_value", "_paid"]] = sums[["_value", "_paid"]].where(sums.pop("_known"))
    twaps = sums.loc[sums.index.get_level_values("kind") == "twap"].reset_index()
    twaps = twaps.assign(_placed=twaps["_first"], _ended=twaps["_last"], size=twaps["filled"])
    own = ["filled", "_value", "_paid", "_rested", "_first"]
    singles = parents.assign(kind="order").merge(
        sums[own].reset_index(), on=["kind", "parent"], how="left"
    )
    is_unfilled = singles["_first"].isna()
    singles.loc[is_unfilled, own[:-1]] = 0.0
    kept = pd.MultiIndex.from_frame(singles[["kind", "parent"]])
    is_other = (rows["kind"] == "order") & ~pd.MultiIndex.from_frame(rows[["kind", "parent"]]).isin(
        kept
    )
    if others := int(is_other.sum()):
        lack = "does not count: its order is" if others == 1 else "do not count: their orders are"
        warn_caller(
            f"fills: {others:,} of {count_text(len(rows), 'fill')} {lack} not in orders. Fetch the "
            "orders for the full time range of the fills",
            HistoryWarning,
        )
    wrong = (singles["size"] - singles["_open"] - singles["filled"]).abs() > 1e-9 * singles["size"]
    if wrong.any():
        warn_caller(
            f"fills: for {int(wrong.sum()):,} of {count_text(len(singles), 'order')}, the sizes of "
            "the fills do not add up to the filled size in orders. Fetch the fills for the full "
            "time range of the orders",
            HistoryWarning,
        )
    both = pd.concat([singles, twaps], ignore_index=True) if len(twaps) else singles
    return both.sort_values(["_placed", "kind", "parent"], kind="stable", ignore_index=True)


def _price_parents(
    table: pd.DataFrame, marks: PriceHistory, age_ms: int, late: float
) -> pd.DataFrame:
    """Return the orders with their prices and the parts of their shortfall."""

    def price_at(ms: pd.Series) -> Floats:
        at = ms.to_numpy(np.float64)
        px, when = marks.last_at(table["coin"], np.where(np.isnan(at), -np.inf, at))
        return np.where(at - when <= age_ms, px, np.nan)

    is_twap = (table["kind"] == "twap").to_numpy()
    # An order may be filled in the millisecond of its decision, as the first slice of a TWAP is.
    # A quote of this millisecond would contain its own fill: the price is from before.
    decision = price_at(table["_placed"] - (table["_first"] == table["_placed"]))
    first = price_at(table["_first"] - 1)
    end = price_at(table["_ended"].fillna(late))
    sign = side_signs(table["side"]).to_numpy()
    size, filled = (table[name].to_numpy(np.float64) for name in ("size", "filled"))
    rest = np.where(is_twap, 0.0, np.maximum(size - filled, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        parts: dict[str, Any] = {
            "delay": np.where(filled > 0, -sign * filled * (first - decision), 0.0),
            "trading": np.where(
                filled > 0, -sign * (table["_value"].to_numpy() - filled * first), 0.0
            ),
            "opportunity": np.where(rest > 0, -sign * rest * (end - decision), 0.0),
            "fees": -table["_paid"].to_numpy(np.float64),
        }
        share = table["_rested"].to_numpy(np.float64) / np.where(filled > 0, filled, np.nan)
    known = ~np.isnan(decision) & ~np.isnan(sum(parts[name] for name in PARTS)) & (size > 0)
    parts = {name: np.where(known, value, np.nan) + 0.0 for name, value in parts.items()}
    total = sum(parts[name] for name in PARTS)
    return table.assign(
        placed=timestamps.timestamps_from_ms(table["_placed"]),
        ended=timestamps.timestamps_from_ms(table["_ended"]),
        maker_share=share,
        decision_px=decision,
        first_px=first,
        end_px=end,
        **parts,
        total=total,
        _decided=np.where(known, size * decision, np.nan),
        total_bps=1e4 * total / (size * decision),
    )


def _sum_parts(table: pd.DataFrame, level: float, draws: int, seed: int) -> pd.DataFrame:
    known = table[table["total"].notna()]
    names = (*PARTS, "total")
    above = [1e4 * known[name].to_numpy(np.float64) for name in names]
    base = known["_decided"].to_numpy(np.float64)
    _, days = np.unique(known["_placed"].to_numpy(np.float64) // DAY, return_inverse=True)
    whole, values, count = bootstrap_ratios(above, base, days, draws=draws, seed=seed)
    made = [
        (
            name, float(estimate), *bootstrap_interval(drawn, count, level),
            float(known[name].sum(min_count=1)), len(known), len(table) - len(known), count,
        )
        for name, estimate, drawn in zip(names, whole, values.T, strict=True)
    ]  # fmt: skip
    types = {
        "name": "str", "estimate": "float64", "low": "float64", "high": "float64", "usd": "float64",
        "n": "int64", "missing": "int64", "clusters": "int64",
    }  # fmt: skip
    return pd.DataFrame(made, columns=list(types)).astype(types)
