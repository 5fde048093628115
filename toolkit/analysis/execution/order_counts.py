"""What becomes of orders, counted: from status to status, by outcome, how much was filled."""

from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, grouping
from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.execution import order_events
from toolkit.analysis.execution.order_events import LAST, PLACED

__all__ = ["fill_ratio", "mix", "transitions"]


def transitions(orders: Any, by: str | Iterable[str] | None = None) -> Any:
    """Count how orders go from status to status: the matrix, in long form.

    Parameters
    ----------
    orders : DataFrame
        Status events: ``oid, status, status_timestamp``, and ``tx_index`` where there are ties
        (pandas, Polars eager or lazy, DuckDB relation), as `tk.historical_orders` and
        `tk.builder_orders_by_time` give them, in any order. An event given twice is one event.
    by : str or list of str, optional
        One matrix for each group: ``coin``, ``dex``, ``order_type``, ``tif``, ``user``, ... or
        the ``hour``, ``day``, ``week`` (UTC) of the event that is left.

    Returns
    -------
    DataFrame
        Of the engine of `orders`, sorted: the columns of `by`, then

        - ``before``: a status, or ``(placed)`` in front of the first event;
        - ``after``: a status, or ``(last)`` behind the last event;
        - ``orders`` int64: how many went this way;
        - ``share`` float64: of those in `before`.

        As many orders come into a status as leave it, ``(last)`` included.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Notes
    -----
    `tk.historical_orders` gives the latest events only: an order whose earlier events are not
    among them starts with the first one that is.

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
        order_events.read(orders, _plain(keys)), keys, time="status_timestamp"
    )
    moved = events.with_columns(
        _before=order_events.neighbour("status", 1), _after=order_events.neighbour("status", -1)
    )
    first = moved.filter(nw.col("_before").is_null())
    entered = first.select(*keys, before=nw.lit(PLACED), after=nw.col("status"))
    left = moved.select(*keys, before=nw.col("status"), after=nw.col("_after").fill_null(LAST))
    text = [nw.col(name).cast(nw.String()) for name in ("before", "after")]
    rows = columns.stack_frames([part.select(*keys, *text) for part in (entered, left)])
    ways = [*keys, "before", "after"]
    counted = rows.with_columns(_one=nw.lit(1)).group_by(*ways)
    result = counted.agg(nw.col("_one").sum().alias("orders"))
    result = result.with_columns(orders=nw.col("orders").cast(nw.Int64()))
    whole = nw.col("orders").sum().over(*keys, "before")
    result = result.with_columns(share=(nw.col("orders") / whole).cast(nw.Float64()))
    result = result.sort(*ways, nulls_last=True)
    return columns.result_from_frame(
        result, {"orders": orders}, helper="orders.transitions", by=keys
    )


def mix(orders: Any, by: str | Iterable[str] | None = None, *, level: float = 0.95) -> Any:
    """Count how orders ended, by status: filled, and every way to be cancelled or rejected.

    Parameters
    ----------
    orders : DataFrame
        As for `transitions`; an event given twice is one event.
    by : str or list of str, optional
        Groups, as for `transitions`; times are those of the last event.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    DataFrame
        Of the engine of `orders`, sorted: the columns of `by`, then

        - ``group``: filled, canceled, rejected, active (not ended) or unknown, a status that
          is not in the specification;
        - ``status``: the last status of the orders;
        - ``orders``, ``n`` int64: orders that ended so, and all of the group of `by`;
        - ``share = orders / n``; ``low``, ``high``: Wilson's interval (1927), which takes
          orders for independent.

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
    events = order_events.last(order_events.read(orders, _plain(keys)))
    rows = grouping.add_groups(events, keys, time="status_timestamp").with_columns(_one=nw.lit(1))
    counted = rows.group_by(*keys, "_group", "status").agg(nw.col("_one").sum().alias("orders"))
    counts = nw.col("orders").cast(nw.Int64())
    counted = counted.with_columns(orders=counts, _all=nw.lit(0))
    whole = nw.col("orders").sum().over(*(keys or ["_all"]))
    counted = counted.with_columns(n=whole.cast(nw.Int64()))
    counted = counted.with_columns(share=(nw.col("orders") / nw.col("n")).cast(nw.Float64()))
    result = counted.select(
        *keys,
        nw.col("_group").cast(nw.String()).alias("group"),
        "status",
        "orders",
        "n",
        "share",
        **_wilson(nw.col("share"), nw.col("n").cast(nw.Float64()), z),
    )
    result = result.sort(*keys, "group", "status", nulls_last=True)
    return columns.result_from_frame(
        result, {"orders": orders}, helper="orders.mix", by=keys, level=level
    )


def fill_ratio(orders: Any, by: str | Iterable[str] | None = None) -> Any:
    """Say how much of what was asked for was filled.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``sz, orig_sz, limit_px``; an event given twice
        is one event.
    by : str or list of str, optional
        Groups, as for `transitions`; times are those of the last event.

    Returns
    -------
    DataFrame
        Of the engine of `orders`, sorted by the groups: the columns of `by`, then

        - ``orders``; of these by their last status ``filled``, ``canceled``, ``rejected``,
          ``active``, ``unknown``: int64;
        - ``partly``: orders that were filled in part;
        - ``asked_usd``, ``filled_usd``: original size, and what of it was filled, at the limit
          price, of all that were not rejected;
        - ``ratio``: ``filled_usd / asked_usd``, missing where nothing was asked;
        - ``unsized``: orders without an original size (closing a whole position), or whose
          limit price or open size is missing; in no sum.

    Raises
    ------
    MissingColumns
        If a column is missing, in every row too, or holds text.

    Notes
    -----
    What was filled is the original size less what was open at the last event; an order still
    open may have been filled since. `asked_usd` is at the limit, which a fill may better.

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
    every = order_events.read(orders, _plain(keys), amounts)
    for name, meaning in zip(amounts, _AMOUNTS, strict=True):
        columns.require_some_values(every, name, "orders", meaning)
    events = order_events.last(every)
    rows = _sized(grouping.add_groups(events, keys, time="status_timestamp"))
    counts = ("orders", *order_events.GROUPS, "partly", "unsized")
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
    order = ("orders", *order_events.GROUPS, "partly", *money, "ratio", "unsized")
    result = result.select(*keys, *order)
    result = result.sort(*keys, nulls_last=True) if keys else result
    return columns.result_from_frame(
        result, {"orders": orders}, helper="orders.fill_ratio", by=keys
    )


_AMOUNTS = ("says what is still open", "says what was asked for", "says at which price")


def _sized(rows: Frame) -> Frame:
    """Add what each order asked for and got; what lacks an amount is in no sum."""
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
        **{name: _one(nw.col("_group") == name) for name in order_events.GROUPS},
        partly=_one(part),
        unsized=_one(unsized),
        asked_usd=nw.when(counts).then(original * nw.col("limit_px")).otherwise(zero),
        filled_usd=nw.when(counts).then(nw.col("_filled") * nw.col("limit_px")).otherwise(zero),
    )


def _one(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def _plain(keys: Sequence[str]) -> list[str]:
    """Give the columns that the groups are made of."""
    return [*grouping.own_columns(keys), *(["coin"] if "dex" in keys else [])]


def _wilson(share: nw.Expr, n: nw.Expr, z: float) -> dict[str, nw.Expr]:
    middle = share + z * z / (2 * n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)).sqrt()
    below = 1 + z * z / n
    return {"low": (middle - half) / below, "high": (middle + half) / below}
