"""What snapshots of TWAP orders say: schedules, and what is outstanding.

Frames as `tk.perp_twap_snapshots` gives them. A snapshot's numbers are floats on the wire, so
that results are float64, whatever kind of numbers was asked for.
"""

from collections.abc import Iterable
from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, grouping, markets, timestamps
from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.times import SECOND, Time

__all__ = ["adherence", "pressure"]

SLICE_MS = 30 * SECOND
SIZES = ("total_sz", "executed_sz", "remaining_sz")
ORDER = ("market", "address", "twap_id")
SCHEDULE = ("duration_secs", "start_time_ms", "slice_number", "waiting")


def adherence(twaps: Any, *, at: Time | None = None) -> Any:
    """Say of each TWAP order how far its schedule is, and how far it is behind it.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot (pandas, Polars eager or lazy, DuckDB relation). Rows given twice
        stand once.
    at : time, optional
        When the snapshot was taken; without it a column ``asked_at``, or when the frame was
        fetched.

    Returns
    -------
    DataFrame
        Of the engine of `twaps`, sorted: ``market, address, twap_id, is_buy`` and the sizes
        ``total_sz, executed_sz, remaining_sz`` as they are, then float64

        - ``elapsed``: share of the duration that is over, 0 to 1; missing while the order
          waits for its trigger, as is all that follows from it;
        - ``progress``: ``executed_sz / total_sz``;
        - ``behind``: ``elapsed - progress``, negative where it is ahead; ``behind_sz``: the same
          in size;
        - ``left_secs``: seconds until its end;
        - ``slices_due``: slices that the schedule has by now, one every 30 seconds, and
          ``slice_number``: those it has done;
        - ``avg_px``: ``executed_ntl / executed_sz``, missing where nothing is executed.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If nothing says when the snapshot was taken.

    Notes
    -----
    A TWAP spreads its size evenly over its duration (specification, "TWAP snapshot"). The start
    of an order that had waited for its trigger is when it was registered: it looks behind.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": ["BTC"], "address": ["0xa"], "twap_id": [1], "is_buy": [True],
    ...     "total_sz": [10.0], "executed_sz": [4.0], "remaining_sz": [6.0],
    ...     "executed_ntl": [400.0], "duration_secs": [600], "slice_number": [9],
    ...     "start_time_ms": pd.to_datetime([0], unit="ms", utc=True), "waiting": [False]})
    >>> adherence(snapshot, at=300_000)[["elapsed", "progress", "behind_sz", "avg_px"]]
       elapsed  progress  behind_sz  avg_px
    0      0.5       0.4        1.0   100.0
    """
    needed = (*ORDER, "is_buy", *SIZES, "executed_ntl", *SCHEDULE)
    frame = timed(twaps, needed, (*SIZES, "executed_ntl"), at)
    progress = nw.col("executed_sz") / nw.col("total_sz")
    frame = frame.with_columns(
        elapsed=nw.when(~nw.col("waiting")).then(nw.col("_passed") / nw.col("_lasts")),
        progress=nw.when(nw.col("total_sz") > 0).then(progress),
    )
    frame = frame.with_columns(behind=nw.col("elapsed") - nw.col("progress"))
    active = nw.when(~nw.col("waiting"))
    result = frame.select(
        *ORDER,
        "is_buy",
        *SIZES,
        "elapsed",
        "progress",
        "behind",
        (nw.col("behind") * nw.col("total_sz")).alias("behind_sz"),
        active.then((nw.col("_lasts") - nw.col("_passed")) / SECOND).alias("left_secs"),
        active.then((nw.col("_passed") / SLICE_MS).floor()).alias("slices_due"),
        nw.col("slice_number").cast(nw.Float64()),
        nw.when(nw.col("executed_sz") > 0)
        .then(nw.col("executed_ntl") / nw.col("executed_sz"))
        .alias("avg_px"),
    )
    return columns.result_from_frame(
        result.sort(*ORDER), {"twaps": twaps}, helper="twaps.adherence"
    )


def pressure(
    twaps: Any,
    prices: Any = None,
    by: str | Iterable[str] | None = ("market",),
    *,
    at: Time | None = None,
) -> Any:
    """Sum what running TWAP orders will still buy and sell.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot, as for `adherence`. Rows given twice count once.
    prices : DataFrame, optional
        ``name`` (the market) and ``mark_px``, as `tk.meta_and_asset_ctxs` gives them; of the
        engine of `twaps`. Without it, sums in USD are missing.
    by : str, list of str or None, default ("market",)
        One row for each group: ``market``, ``address``, ``dex``, or any other column.
    at : time, optional
        As for `adherence`.

    Returns
    -------
    DataFrame
        Of the engine of `twaps`, sorted by the groups: the columns of `by`, then

        - ``orders``: running; ``waiting``: registered, not yet triggered, in no sum;
        - ``buy_sz``, ``sell_sz`` (both at least 0), ``net_sz = buy_sz - sell_sz``: outstanding;
        - ``buy_usd``, ``sell_usd``, ``net_usd``: the same at the mark price, missing where no
          running order has one;
        - ``net_usd_per_hour``: what the schedules make of it: each order's rest over the time
          it has left, at least one slice of 30 seconds;
        - ``unpriced``: running orders without a price, in no sum of USD.

        Sizes of different markets add up to nothing: without ``market`` among the groups look
        at the USD alone.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If nothing says when the snapshot was taken.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": "BTC", "address": ["0xa", "0xb"], "twap_id": [1, 2],
    ...     "is_buy": [True, False], "remaining_sz": [6.0, 2.0], "duration_secs": [3600, 3600],
    ...     "start_time_ms": pd.to_datetime([0, 0], unit="ms", utc=True), "waiting": False})
    >>> marks = pd.DataFrame({"name": ["BTC"], "mark_px": [100.0]})
    >>> pressure(snapshot, marks, at=1_800_000)[["market", "net_sz", "net_usd",
    ...                                           "net_usd_per_hour"]]
      market  net_sz  net_usd  net_usd_per_hour
    0    BTC     4.0    400.0             800.0
    """
    taken = ("orders", "waiting", "buy_sz", "sell_sz", "net_sz", "unpriced", "remaining_sz")
    keys = grouping.list_keys(by, taken)
    needed = ("market", "is_buy", "remaining_sz", "duration_secs", "start_time_ms", "waiting")
    made = ("dex",)
    frame = timed(twaps, (*needed, *(k for k in keys if k not in made)), ("remaining_sz",), at)
    if "dex" in keys:
        frame = frame.with_columns(dex=markets.dex_of(nw.col("market")))
    frame = _priced(frame, prices)
    result = _outstanding(frame, keys)
    result = result.sort(*keys, nulls_last=True) if keys else result
    inputs = {"twaps": twaps, "prices": prices}
    return columns.result_from_frame(result, inputs, helper="twaps.pressure", by=keys)


def timed(twaps: Any, needed: Iterable[str], amounts: Iterable[str], at: Time | None) -> Frame:
    """Open a snapshot; add the time passed (`_passed`) and planned (`_lasts`) in milliseconds."""
    twaps = count_once(twaps, "twaps")
    amounts = list(amounts)
    frame = columns.open_as_floats(twaps, "twaps", amounts)
    columns.require_columns(frame, needed, "twaps")
    if at is None and "asked_at" in frame.collect_schema().names():
        frame = grouping.add_ms(frame, "asked_at").rename({"_ms": "_at"})
    else:
        frame = frame.with_columns(_at=nw.lit(timestamps.present_ms(twaps, at, "twaps")))
    frame = grouping.add_ms(frame, "start_time_ms")
    lasts = (nw.col("duration_secs") * SECOND).cast(nw.Float64())
    passed = (nw.col("_at") - nw.col("_ms")).cast(nw.Float64())
    frame = frame.with_columns(_lasts=lasts, _passed=passed)
    early, late = nw.col("_passed") < 0, nw.col("_passed") > nw.col("_lasts")
    kept = nw.when(early).then(nw.lit(0.0)).when(late).then(nw.col("_lasts"))
    return frame.with_columns(_passed=kept.otherwise(nw.col("_passed")))


def _priced(frame: Frame, prices: Any) -> Frame:
    nothing = nw.lit(None).cast(nw.Float64())
    if prices is None:
        return frame.with_columns(_px=nothing)
    marks = columns.open_as_floats(prices, "prices", ["mark_px"])
    columns.require_columns(marks, ["name"], "prices")
    # A market that is listed twice must not double its orders.
    each = marks.group_by("name").agg(nw.col("mark_px").max().alias("_px"))
    each = each.select(_name=nw.col("name").cast(nw.String()), _px=nw.col("_px"))
    frame = frame.with_columns(_name=nw.col("market").cast(nw.String()))
    joined: Frame = frame.join(each, on="_name", how="left")  # type: ignore[arg-type]
    return joined


def _outstanding(frame: Frame, keys: list[str]) -> Frame:
    zero, none = nw.lit(0.0), nw.lit(None).cast(nw.Float64())
    runs, buys = ~nw.col("waiting"), nw.col("is_buy")
    rest = nw.col("remaining_sz")
    priced = ~(nw.col("_px").is_null() | nw.col("_px").is_nan())
    left = nw.col("_lasts") - nw.col("_passed")
    hours = nw.when(left > SLICE_MS).then(left).otherwise(nw.lit(float(SLICE_MS))) / 3_600_000
    frame = frame.with_columns(
        orders=nw.when(runs).then(nw.lit(1)).otherwise(nw.lit(0)),
        _waits=nw.when(runs).then(nw.lit(0)).otherwise(nw.lit(1)),
        buy_sz=nw.when(runs & buys).then(rest).otherwise(zero),
        sell_sz=nw.when(runs & ~buys).then(rest).otherwise(zero),
        unpriced=nw.when(runs & ~priced).then(nw.lit(1)).otherwise(nw.lit(0)),
        _priced=nw.when(runs & priced).then(nw.lit(1)).otherwise(nw.lit(0)),
        _usd=nw.when(runs & priced).then(nw.col("_px")).otherwise(zero),
        _hours=hours,
    )
    frame = frame.with_columns(
        net_sz=nw.col("buy_sz") - nw.col("sell_sz"),
        buy_usd=nw.col("buy_sz") * nw.col("_usd"),
        sell_usd=nw.col("sell_sz") * nw.col("_usd"),
    )
    frame = frame.with_columns(net_usd=nw.col("buy_usd") - nw.col("sell_usd"))
    frame = frame.with_columns(net_usd_per_hour=nw.col("net_usd") / nw.col("_hours"))
    sizes = ("buy_sz", "sell_sz", "net_sz")
    money = ("buy_usd", "sell_usd", "net_usd", "net_usd_per_hour")
    counts = ("orders", "_waits", "unpriced", "_priced")
    sums = [nw.col(name).sum() for name in (*counts, *sizes, *money)]
    grouped = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    known = nw.col("_priced") > 0
    return grouped.select(
        *keys,
        nw.col("orders").fill_null(0).cast(nw.Int64()),
        nw.col("_waits").fill_null(0).cast(nw.Int64()).alias("waiting"),
        *(nw.col(name).fill_null(0.0) for name in sizes),
        *(nw.when(known).then(nw.col(name)).otherwise(none).alias(name) for name in money),
        nw.col("unpriced").fill_null(0).cast(nw.Int64()),
    )
