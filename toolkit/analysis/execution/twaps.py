"""Snapshots of TWAP orders: schedules, outstanding volume, and the fills behind the orders.

The frames come from `tk.perp_twap_snapshots`. A snapshot's numbers are floats on the wire, so
results are float64 for any kind of numbers.
"""

from collections.abc import Iterable

import narwhals as nw
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import frame_access, grouping, markets, timestamps
from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.row_owners import account_names, lower_address
from toolkit.rules.twaps import SLICE_MS
from toolkit.times import SECOND, Time

SIZES = ("total_sz", "executed_sz", "remaining_sz")
ORDER = ("market", "address", "twap_id")
SCHEDULE = ("duration_secs", "start_time_ms", "slice_number", "waiting")


def adherence(twaps: IntoFrameT, *, at: Time | None = None) -> IntoFrameT:
    """Compute the progress of each TWAP order, and how far it is behind its schedule.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot (pandas, Polars, DuckDB, PySpark). Repeated rows count
        once.
    at : time, optional
        Time of the snapshot. By default, the column ``asked_at``. If it is missing, the time
        at which the frame was fetched.

    Returns
    -------
    DataFrame
        The engine of `twaps`, sorted by market, address and order:

        - ``market``: market of the order.
        - ``address``: account of the order.
        - ``twap_id``: id of the order.
        - ``is_buy``: whether the order buys.
        - ``total_sz``: total size of the order.
        - ``executed_sz``: executed size.
        - ``remaining_sz``: remaining size.
        - ``elapsed``: share of the duration that has passed, 0 to 1; missing while the order waits
          for its trigger, as are the columns that follow from it.
        - ``progress``: share of the size that is executed, ``executed_sz / total_sz``.
        - ``behind``: share of the size that the order is behind its schedule, ``elapsed -
          progress``; negative if it is ahead.
        - ``behind_sz``: size by which the order is behind its schedule.
        - ``left_secs``: seconds until the end of the order.
        - ``slices_due``: number of slices in the schedule until now, one every 30 seconds.
        - ``slice_number``: number of executed slices.
        - ``avg_px``: mean price, ``executed_ntl / executed_sz``, in USD; missing if nothing is
          executed.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the time of the snapshot is not known.

    Notes
    -----
    A TWAP order spreads its size evenly over its duration (specification, "TWAP snapshot"). The
    start of an order that waited for its trigger is the time of its registration, so the order
    looks behind.

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
    frame = _read_snapshot(twaps, needed, (*SIZES, "executed_ntl"), at)
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
    return frame_access.result_from_frame(
        result.sort(*ORDER), {"twaps": twaps}, helper="twaps.adherence"
    )


def pressure(
    twaps: IntoFrameT,
    prices: IntoFrameT | None = None,
    by: str | Iterable[str] | None = ("market",),
    *,
    at: Time | None = None,
) -> IntoFrameT:
    """Sum the volume that running TWAP orders still have to buy and sell.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot, as for `adherence`. Repeated rows count once.
    prices : DataFrame, optional
        ``name`` (the market) and ``mark_px``, from `tk.meta_and_asset_ctxs`, with the engine of
        `twaps`. Without it, sums in USD are missing.
    by : str, list of str or None, default ("market",)
        One row for each group: ``market``, ``address``, ``dex``, or any other column.
    at : time, optional
        As for `adherence`.

    Returns
    -------
    DataFrame
        The engine of `twaps`, sorted by the groups: the columns of `by`, then

        - ``orders``: number of running orders.
        - ``waiting``: number of registered orders that are not triggered yet. They are in no
          sum.
        - ``buy_sz``: size still to buy, at least 0. Sizes of different markets cannot be compared:
          without ``market`` among the groups, use the columns in USD.
        - ``sell_sz``: size still to sell, at least 0.
        - ``net_sz``: ``buy_sz - sell_sz``.
        - ``buy_usd``: size still to buy at the mark price, in USD; missing if no running order has
          a price.
        - ``sell_usd``: size still to sell at the mark price, in USD; missing if no running order
          has a price.
        - ``net_usd``: ``buy_usd - sell_usd``, in USD.
        - ``net_usd_per_hour``: net volume an hour that the schedules imply, in USD: the rest of
          each order over its remaining time, at least one slice of 30 seconds.
        - ``unpriced``: number of running orders without a price. They are in no sum of USD.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the time of the snapshot is not known.

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
    derived = ("dex",)
    frame = _read_snapshot(
        twaps, (*needed, *(k for k in keys if k not in derived)), ("remaining_sz",), at
    )
    if "dex" in keys:
        frame = frame.with_columns(dex=markets.dex_of(nw.col("market")))
    frame = _with_prices(frame, prices)
    result = _sum_outstanding(frame, keys)
    result = result.sort(*keys, nulls_last=True) if keys else result
    inputs = {"twaps": twaps, "prices": prices}
    return frame_access.result_from_frame(result, inputs, helper="twaps.pressure", by=keys)


def linked(
    twaps: IntoFrameT, fills: IntoFrameT, *, at: Time | None = None, account: str | None = None
) -> IntoFrameT:
    """Find the fills of each TWAP order, and the executed size for which no fill is found.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot, as for `adherence`.
    fills : DataFrame
        Fills of its accounts: ``coin, px, sz, time, twap_id`` and ``user``, with the engine of
        `twaps`. Repeated rows count once.
    at : time, optional
        As for `adherence`. Later fills do not count.
    account : str, optional
        Account of the fills, if they have no ``user``. Without it, the account that they were
        fetched for.

    Returns
    -------
    DataFrame
        The engine of `twaps`, sorted by market, address and order:

        - ``market``: market of the order.
        - ``address``: account of the order.
        - ``twap_id``: id of the order.
        - ``executed_sz``: executed size.
        - ``executed_ntl``: executed notional, in USD.
        - ``fills``: number of fills of the order.
        - ``filled_sz``: size of the fills in the frame.
        - ``filled_ntl``: notional of the fills in the frame, in USD.
        - ``missing_sz``: executed size without a fill: 0, up to the precision of floats, if every
          fill is in the frame.
        - ``missing_ntl``: executed notional without a fill, in USD.
        - ``whole``: whether every fill is in the frame, to a relative precision of 1e-9.

    Raises
    ------
    MissingColumns
        If a column is missing, also if the account of the fills is not known.
    ValueError
        If the time of the snapshot is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": ["BTC"], "address": ["0xa"], "twap_id": [1], "executed_sz": [3.0],
    ...     "executed_ntl": [301.0], "duration_secs": [600],
    ...     "start_time_ms": pd.to_datetime([0], unit="ms", utc=True), "waiting": [False]})
    >>> fills = pd.DataFrame({
    ...     "user": "0xA", "coin": "BTC", "twap_id": 1, "px": [100.0, 101.0], "sz": [2.0, 1.0],
    ...     "time": pd.to_datetime([30_000, 60_000], unit="ms", utc=True)})
    >>> linked(snapshot, fills, at=60_000)[["fills", "filled_ntl", "missing_sz", "whole"]]
       fills  filled_ntl  missing_sz  whole
    0      2       301.0         0.0   True
    """
    fills = drop_repeated_rows(fills, "fills")
    sums = ("executed_sz", "executed_ntl")
    frame = _read_snapshot(
        twaps, (*ORDER, *sums, "duration_secs", "start_time_ms", "waiting"), sums, at
    )
    frame = frame.with_columns(_who=lower_address("address"), _row=nw.lit(1))
    found = _fills_by_order(frame, fills, account)
    keys = ["_who", "_coin", "_twap"]
    frame = frame.with_columns(_coin=nw.col("market").cast(nw.String()), _twap=nw.col("twap_id"))
    both = frame_access.join_frames(frame, found, keys)
    filled = {name: nw.col(name).fill_null(0.0) for name in ("filled_sz", "filled_ntl")}
    both = both.with_columns(**filled, fills=nw.col("fills").fill_null(0).cast(nw.Int64()))
    both = both.with_columns(
        missing_sz=nw.col("executed_sz") - nw.col("filled_sz"),
        missing_ntl=nw.col("executed_ntl") - nw.col("filled_ntl"),
    )
    result = both.select(
        *ORDER,
        *sums,
        "fills",
        "filled_sz",
        "filled_ntl",
        "missing_sz",
        "missing_ntl",
        (nw.col("missing_sz").abs() <= 1e-9 * nw.col("executed_sz")).alias("whole"),
    )
    inputs = {"twaps": twaps, "fills": fills}
    return frame_access.result_from_frame(result.sort(*ORDER), inputs, helper="twaps.linked")


def _read_snapshot(
    twaps: IntoFrame, needed: Iterable[str], amounts: Iterable[str], at: Time | None
) -> Frame:
    """Return a snapshot with the time passed (`_passed`) and planned (`_lasts`) in milliseconds."""
    twaps = drop_repeated_rows(twaps, "twaps")
    amounts = list(amounts)
    frame = frame_access.open_as_floats(twaps, "twaps", amounts)
    frame_access.require_columns(frame, needed, "twaps")
    if at is None and "asked_at" in frame.columns:
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


def _fills_by_order(twaps: Frame, fills: IntoFrame, account: str | None) -> Frame:
    """Sum the fills of each TWAP order up to the time of its snapshot."""
    frame = frame_access.open_as_floats(fills, "fills", ["px", "sz"])
    frame_access.require_columns(frame, ("coin", "time", "twap_id"), "fills")
    if "user" not in frame.columns:
        accounts = account_names(fills, account)
        if len(accounts) != 1:
            frame_access.require_columns(frame, ["user"], "fills", "Add it, or pass account=")
        frame = frame.with_columns(user=nw.lit(accounts[0]))
    frame = grouping.add_ms(frame).filter(~nw.col("twap_id").is_null())
    frame = frame.select(
        _who=lower_address("user"),
        _coin=nw.col("coin").cast(nw.String()),
        _twap=nw.col("twap_id").cast(nw.Int64()),
        _time=nw.col("_ms"),
        _sz=nw.col("sz"),
        _ntl=nw.col("px") * nw.col("sz"),
    )
    orders = twaps.select(
        "_who",
        "_at",
        _coin=nw.col("market").cast(nw.String()),
        _twap=nw.col("twap_id").cast(nw.Int64()),
    )
    keys = ["_who", "_coin", "_twap"]
    orders = orders.group_by(*keys).agg(nw.col("_at").max())
    both = frame_access.join_frames(frame, orders, keys, keep_left=False)
    both = both.filter(nw.col("_time") <= nw.col("_at"))
    return both.group_by(*keys).agg(
        nw.col("_sz").count().alias("fills"),
        nw.col("_sz").sum().alias("filled_sz"),
        nw.col("_ntl").sum().alias("filled_ntl"),
    )


def _with_prices(frame: Frame, prices: IntoFrame | None) -> Frame:
    """Add the mark price of each order's market."""
    unknown_price = nw.lit(None).cast(nw.Float64())
    if prices is None:
        return frame.with_columns(_px=unknown_price)
    marks = frame_access.open_as_floats(prices, "prices", ["mark_px"])
    frame_access.require_columns(marks, ["name"], "prices")
    # A market that is listed twice must not double its orders.
    prices_by_market = marks.group_by("name").agg(nw.col("mark_px").max().alias("_px"))
    prices_by_market = prices_by_market.select(
        _name=nw.col("name").cast(nw.String()), _px=nw.col("_px")
    )
    frame = frame.with_columns(_name=nw.col("market").cast(nw.String()))
    return frame_access.join_frames(frame, prices_by_market, ["_name"])


def _sum_outstanding(frame: Frame, keys: list[str]) -> Frame:
    """Sum what is outstanding in each group."""
    zero, missing = nw.lit(0.0), nw.lit(None).cast(nw.Float64())
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
        *(nw.when(known).then(nw.col(name)).otherwise(missing).alias(name) for name in money),
        nw.col("unpriced").fill_null(0).cast(nw.Int64()),
    )
