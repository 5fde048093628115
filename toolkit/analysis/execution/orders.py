"""Status events of orders: their order in time, transitions, outcomes, and how much was filled.

An order id names one order of the whole exchange. The rows are status events, so an order may have
one row for each status. Several answers may contain the same event, which then counts once. Events
that share a millisecond and a transaction are sorted in the order of an order's life: placed,
triggered, ended.
"""

from collections.abc import Iterable, Sequence
from statistics import NormalDist

import narwhals as nw
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import frame_access, grouping, timestamps
from toolkit.analysis.common.estimate import check_level, wilson_interval
from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.contract.order_states import STATES

PLACED = "(placed)"
LAST = "(last)"
EVENT = ("oid", "status", "status_timestamp")
GROUPS = ("filled", "canceled", "rejected", "active", "unknown")
_SEQUENCE = ("_ms", "_tx", "_stage", "status")
_AMOUNTS = ("says what is still open", "says what was asked for", "says at which price")


def transitions(orders: IntoFrameT, by: str | Iterable[str] | None = None) -> IntoFrameT:
    """Count the status changes of orders, as a transition matrix in long form.

    Parameters
    ----------
    orders : DataFrame
        Status events: ``oid, status, status_timestamp``, and ``tx_index`` for ties (pandas, Polars,
        DuckDB, PySpark), from `tk.historical_orders` or `tk.builder_orders_by_time`, in any order.
        Repeated events count once.
    by : str or list of str, optional
        One matrix for each group: ``coin``, ``dex``, ``order_type``, ``tif``, ``user``, ... or the
        ``hour``, ``day``, ``week`` (UTC) of the earlier event.

    Returns
    -------
    DataFrame
        The engine of `orders`, sorted: the columns of `by`, then

        - ``before``: the earlier status, or ``(placed)`` in front of the first event.
        - ``after``: the later status, or ``(last)`` behind the last event.
        - ``orders``: number of orders with this transition. As many orders enter a status as
          leave it, ``(last)`` included.
        - ``share``: share of the orders in `before`.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Notes
    -----
    `tk.historical_orders` returns the latest events only. If the earlier events of an order are not
    among them, the order starts with its first event in the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 1, 2], "status": ["open", "filled", "open"],
    ...     "status_timestamp": pd.to_datetime([0, 9, 5], unit="ms", utc=True)})
    >>> transitions(orders)
         before   after  orders  share
    0  (placed)    open       2    1.0
    1    filled  (last)       1    1.0
    2      open  (last)       1    0.5
    3      open  filled       1    0.5
    """
    keys = grouping.list_keys(by, ("oid", "status", "status_timestamp", "before", "after"))
    events = grouping.add_groups(
        read_events(orders, _group_columns(keys)), keys, time="status_timestamp"
    )
    moved = events.with_columns(_before=_neighbour("status", 1), _after=_neighbour("status", -1))
    first = moved.filter(nw.col("_before").is_null())
    entered = first.select(*keys, before=nw.lit(PLACED), after=nw.col("status"))
    left = moved.select(*keys, before=nw.col("status"), after=nw.col("_after").fill_null(LAST))
    text = [nw.col(name).cast(nw.String()) for name in ("before", "after")]
    rows = frame_access.stack_frames([part.select(*keys, *text) for part in (entered, left)])
    steps = [*keys, "before", "after"]
    counted = rows.with_columns(_one=nw.lit(1)).group_by(*steps)
    result = counted.agg(nw.col("_one").sum().alias("orders"))
    result = result.with_columns(orders=nw.col("orders").cast(nw.Int64()))
    whole = nw.col("orders").sum().over(*keys, "before")
    result = result.with_columns(share=(nw.col("orders") / whole).cast(nw.Float64()))
    result = result.sort(*steps, nulls_last=True)
    return frame_access.result_from_frame(
        result, {"orders": orders}, helper="orders.transitions", by=keys
    )


def mix(
    orders: IntoFrameT, by: str | Iterable[str] | None = None, *, level: float = 0.95
) -> IntoFrameT:
    """Count how orders ended, by status: filled, and each kind of cancellation and rejection.

    Parameters
    ----------
    orders : DataFrame
        As for `transitions`. Repeated events count once.
    by : str or list of str, optional
        Groups, as for `transitions`; times are those of the last event.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    DataFrame
        The engine of `orders`, sorted: the columns of `by`, then

        - ``group``: filled, canceled, rejected, active (not ended) or unknown, a status that is not
          in the specification.
        - ``status``: last status of the orders.
        - ``orders``: number of orders with this last status.
        - ``n``: number of all orders of the group of `by`.
        - ``share``: ``orders / n``.
        - ``low``: lower end of Wilson's interval (1927) of the share, which assumes independent
          orders.
        - ``high``: upper end of Wilson's interval (1927) of the share.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 1, 2], "status": ["open", "filled", "oracleRejected"],
    ...     "status_timestamp": pd.to_datetime([0, 9, 5], unit="ms", utc=True)})
    >>> mix(orders)[["group", "status", "orders", "n", "share"]]
          group          status  orders  n  share
    0    filled          filled       1  2    0.5
    1  rejected  oracleRejected       1  2    0.5
    """
    z = NormalDist().inv_cdf((1 + check_level(level)) / 2)
    keys = grouping.list_keys(by, ("oid", "status", "status_timestamp", "group"))
    events = _last_events(read_events(orders, _group_columns(keys)))
    rows = grouping.add_groups(events, keys, time="status_timestamp").with_columns(_one=nw.lit(1))
    counted = rows.group_by(*keys, "_group", "status").agg(nw.col("_one").sum().alias("orders"))
    counts = nw.col("orders").cast(nw.Int64())
    counted = counted.with_columns(orders=counts, _all=nw.lit(0))
    whole = nw.col("orders").sum().over(*(keys or ["_all"]))
    counted = counted.with_columns(n=whole.cast(nw.Int64()))
    counted = counted.with_columns(share=(nw.col("orders") / nw.col("n")).cast(nw.Float64()))
    low, high = wilson_interval(nw.col("share"), nw.col("n").cast(nw.Float64()), z)
    result = counted.select(
        *keys,
        nw.col("_group").cast(nw.String()).alias("group"),
        "status",
        "orders",
        "n",
        "share",
        low=low,
        high=high,
    )
    result = result.sort(*keys, "group", "status", nulls_last=True)
    return frame_access.result_from_frame(
        result, {"orders": orders}, helper="orders.mix", by=keys, level=level
    )


def fill_ratio(orders: IntoFrameT, by: str | Iterable[str] | None = None) -> IntoFrameT:
    """Compute the filled share of the ordered size.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``sz, orig_sz, limit_px``. Repeated events count
        once.
    by : str or list of str, optional
        Groups, as for `transitions`; times are those of the last event.

    Returns
    -------
    DataFrame
        The engine of `orders`, sorted by the groups: the columns of `by`, then

        - ``orders``: number of orders.
        - ``filled``: number of orders that are filled, by their last status.
        - ``canceled``: number of orders that are canceled.
        - ``rejected``: number of orders that are rejected.
        - ``active``: number of orders that have not ended.
        - ``unknown``: number of orders with a status that is not in the specification.
        - ``partly``: number of orders that are filled in part.
        - ``asked_usd``: original size at the limit price, in USD, of all orders that were not
          rejected.
        - ``filled_usd``: filled size at the limit price, in USD, of all orders that were not
          rejected.
        - ``ratio``: ``filled_usd / asked_usd``; missing if ``asked_usd`` is 0.
        - ``unsized``: number of orders without an original size (to close a whole position), limit
          price or open size. They are in no sum.

    Raises
    ------
    MissingColumns
        If a column is missing, also if every value of it is missing, or holds text.

    Notes
    -----
    The filled size is the original size less the open size at the last event. An order that is
    still open may have been filled since. `asked_usd` is at the limit price; a fill can be at a
    better price.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 2], "status": ["filled", "canceled"], "limit_px": 10.0,
    ...     "sz": [0.0, 6.0], "orig_sz": [5.0, 10.0],
    ...     "status_timestamp": pd.to_datetime([0, 9], unit="ms", utc=True)})
    >>> fill_ratio(orders)[["orders", "partly", "asked_usd", "filled_usd", "ratio"]]
       orders  partly  asked_usd  filled_usd  ratio
    0       2       1      150.0        90.0    0.6
    """
    keys = grouping.list_keys(
        by, ("oid", "status", "status_timestamp", "sz", "orig_sz", "limit_px")
    )
    amounts = ("sz", "orig_sz", "limit_px")
    events_read = read_events(orders, _group_columns(keys), amounts)
    for name, meaning in zip(amounts, _AMOUNTS, strict=True):
        frame_access.require_some_values(events_read, name, "orders", meaning)
    events = _last_events(events_read)
    rows = _with_sizes(grouping.add_groups(events, keys, time="status_timestamp"))
    counts = ("orders", *GROUPS, "partly", "unsized")
    money = ("asked_usd", "filled_usd")
    sums = [nw.col(name).sum() for name in (*counts, *money)]
    grouped = rows.group_by(*keys).agg(*sums) if keys else rows.select(*sums)
    asked = nw.col("asked_usd")
    result = grouped.select(
        *keys,
        *(nw.col(name).fill_null(0).cast(nw.Int64()) for name in counts),
        *(nw.col(name).fill_null(0.0) for name in money),
        nw.when(asked > 0).then(nw.col("filled_usd") / asked).alias("ratio"),
    )
    order = ("orders", *GROUPS, "partly", *money, "ratio", "unsized")
    result = result.select(*keys, *order)
    result = result.sort(*keys, nulls_last=True) if keys else result
    return frame_access.result_from_frame(
        result, {"orders": orders}, helper="orders.fill_ratio", by=keys
    )


def _with_sizes(rows: Frame) -> Frame:
    """Add what each order asked for and what was filled; orders without an amount are in no sum."""
    zero = nw.lit(0.0)
    original = nw.col("orig_sz").fill_null(0.0)
    filled = nw.when(nw.col("_group") == "filled").then(original)
    filled = filled.when(nw.col("_group") == "rejected").then(zero)
    rows = rows.with_columns(_filled=filled.otherwise(original - nw.col("sz")))
    unsized = (original == 0) | nw.col("limit_px").is_null() | nw.col("_filled").is_null()
    counts = (nw.col("_group") != "rejected") & ~unsized
    part = (nw.col("_filled") > 0) & (nw.col("_filled") < original)
    return rows.with_columns(
        orders=nw.lit(1),
        **{name: frame_access.flag(nw.col("_group") == name) for name in GROUPS},
        partly=frame_access.flag(part),
        unsized=frame_access.flag(unsized),
        asked_usd=nw.when(counts).then(original * nw.col("limit_px")).otherwise(zero),
        filled_usd=nw.when(counts).then(nw.col("_filled") * nw.col("limit_px")).otherwise(zero),
    )


def _group_columns(keys: Sequence[str]) -> list[str]:
    """Return the columns that the groups are made of."""
    return [*grouping.own_columns(keys), *(["coin"] if "dex" in keys else [])]


def read_events(
    orders: IntoFrame,
    needed: Sequence[str],
    amounts: Sequence[str] = (),
    optional: Iterable[str] = (),
) -> Frame:
    """Return each event once, with `_ms`, `_tx`, `_stage` and the `_group` of its status."""
    orders = drop_repeated_rows(orders, "orders")
    wanted = (*EVENT, *needed)
    # Select only the needed columns: exact numbers and nested children would be slow.
    if amounts:
        frame = frame_access.open_as_floats(orders, "orders", list(amounts))
    else:
        frame = nw.from_native(frame_access.normalise_frame(orders))
    frame_access.require_columns(frame, wanted, "orders")
    column_names = frame.columns
    extra = [name for name in ("tx_index", *optional) if name in column_names]
    frame = frame.select(*dict.fromkeys((*wanted, *amounts, *extra)))
    frame = grouping.add_ms(frame, "status_timestamp")
    tx = nw.col("tx_index").fill_null(0) if "tx_index" in extra else nw.lit(0)
    frame = frame.with_columns(_tx=tx.cast(nw.Int64()), _group=_status_group())
    frame = frame.with_columns(_stage=_order_stage())
    unique: Frame = frame.unique(["oid", "status", "_ms", "_tx"], keep="any")
    return unique


def sort_events(
    orders: IntoFrame,
    needed: Sequence[str],
    optional: Iterable[str] = (),
    amounts: Sequence[str] = (),
) -> pd.DataFrame:
    """Return each event once and in order, with `ms` of the event and `placed`.

    The columns of `needed` and `amounts` must exist; those of `optional` are kept if they exist.
    """
    frame = read_events(orders, needed, amounts, optional)
    column_names = frame.columns
    kept = (name for name in optional if name in column_names)
    names = tuple(
        dict.fromkeys((*EVENT, *needed, *amounts, *kept, "_ms", "_tx", "_stage", "_group"))
    )
    rows = frame_access.pandas_columns(nw.to_native(frame), "orders", names)
    rows = rows.assign(
        ms=rows["_ms"].astype("float64"), placed=timestamps.ms_from_times(rows["timestamp"])
    )
    order = ["oid", "_ms", "_tx", "_stage", "status"]
    return rows.sort_values(order, kind="stable", ignore_index=True)


def _status_group() -> nw.Expr:
    """Return the group of a status: filled, canceled, rejected, active, or unknown."""
    status = nw.col("status")
    group = nw.when(status.is_in(_states_of("filled"))).then(nw.lit("filled"))
    for name in ("canceled", "rejected"):
        group = group.when(status.is_in(_states_of(name))).then(nw.lit(name))
    active = group.when(status.is_in(_states_of("active"))).then(nw.lit("active"))
    return active.otherwise(nw.lit("unknown"))


def _neighbour(name: str, step: int) -> nw.Expr:
    """Return a column's value at the event before (1) or after (-1) of the same order."""
    return nw.col(name).shift(step).over("oid", order_by=list(_SEQUENCE))


def _last_events(frame: Frame) -> Frame:
    """Return the last event of each order."""
    marked = frame.with_columns(_after=_neighbour("status", -1))
    return marked.filter(nw.col("_after").is_null())


def _states_of(name: str) -> list[str]:
    return [state for state, its in STATES.items() if its == name]


def _order_stage() -> nw.Expr:
    """Return the stage of an order's life: 0 placed, 1 in progress, 2 ended."""
    fresh = nw.col("status") == "open"
    on_the_way = nw.col("_group").is_in(["active", "unknown"])
    return (
        nw.when(fresh)
        .then(nw.lit(0))
        .when(on_the_way)
        .then(nw.lit(1))
        .otherwise(nw.lit(2))
        .cast(nw.Int64())
    )
