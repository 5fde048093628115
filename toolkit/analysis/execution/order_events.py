"""Status events of orders: in which order they happened, and which is the last of each order.

An order id names one order of the whole exchange. It may appear once for each status
(clarifications, "order fields"); pages and latest-rows answers repeat events, so an event given
twice is one event. Events that share a millisecond and a transaction are put in the order in
which an order lives: placed, triggered, ended.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import columns, grouping, timestamps
from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.contract.order_states import STATES

PLACED = "(placed)"
LAST = "(last)"
EVENT = ("oid", "status", "status_timestamp")
GROUPS = ("filled", "canceled", "rejected", "active", "unknown")

_SEQUENCE = ("_ms", "_tx", "_stage", "status")


def read(
    orders: Any, needed: Sequence[str], amounts: Sequence[str] = (), optional: Iterable[str] = ()
) -> Frame:
    """Give each event once, with `_ms`, `_tx`, `_stage` and its status's `_group`."""
    orders = count_once(orders, "orders")
    wanted = (*EVENT, *needed)
    # Only what is asked for: exact numbers and nested children would slow the rest down.
    if amounts:
        frame = columns.open_as_floats(orders, "orders", list(amounts))
    else:
        frame = nw.from_native(columns.normalise_frame(orders))
    columns.require_columns(frame, wanted, "orders")
    have = frame.collect_schema().names()
    extra = [name for name in ("tx_index", *optional) if name in have]
    frame = frame.select(*dict.fromkeys((*wanted, *amounts, *extra)))
    frame = grouping.add_ms(frame, "status_timestamp")
    tx = nw.col("tx_index").fill_null(0) if "tx_index" in extra else nw.lit(0)
    frame = frame.with_columns(_tx=tx.cast(nw.Int64()), _group=group())
    frame = frame.with_columns(_stage=_stage())
    unique: Frame = frame.unique(["oid", "status", "_ms", "_tx"], keep="any")
    return unique


def group() -> nw.Expr:
    """Give the group of a status: filled, canceled, rejected, active, or unknown."""
    status = nw.col("status")
    made = nw.when(status.is_in(_states("filled"))).then(nw.lit("filled"))
    for name in ("canceled", "rejected"):
        made = made.when(status.is_in(_states(name))).then(nw.lit(name))
    active = made.when(status.is_in(_states("active"))).then(nw.lit("active"))
    return active.otherwise(nw.lit("unknown"))


def neighbour(name: str, step: int) -> nw.Expr:
    """Give a column's value at the event before (1) or after (-1) of the same order."""
    return nw.col(name).shift(step).over("oid", order_by=list(_SEQUENCE))


def last(frame: Frame) -> Frame:
    """Keep the last event of each order."""
    marked = frame.with_columns(_after=neighbour("status", -1))
    return marked.filter(nw.col("_after").is_null())


def in_order(
    orders: Any,
    needed: Sequence[str],
    optional: Iterable[str] = (),
    amounts: Sequence[str] = (),
) -> pd.DataFrame:
    """Return each event once in its order, with `ms` of the event and `placed`.

    Columns that are `needed` or among the `amounts` must be there; `optional` ones are kept if
    they are.
    """
    frame = read(orders, needed, amounts, optional)
    have = frame.collect_schema().names()
    kept = (name for name in optional if name in have)
    names = tuple(
        dict.fromkeys((*EVENT, *needed, *amounts, *kept, "_ms", "_tx", "_stage", "_group"))
    )
    rows = columns.pandas_columns(nw.to_native(frame), "orders", names)
    rows = rows.assign(
        ms=rows["_ms"].astype("float64"), placed=timestamps.ms_from_times(rows["timestamp"])
    )
    order = ["oid", "_ms", "_tx", "_stage", "status"]
    return rows.sort_values(order, kind="stable", ignore_index=True)


def _states(name: str) -> list[str]:
    return [state for state, its in STATES.items() if its == name]


def _stage() -> nw.Expr:
    """Give the stage of an order's life: 0 placed, 1 on its way, 2 ended."""
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
