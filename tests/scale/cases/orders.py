"""Cases of ``tk.orders``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, table

SECOND = 1000


def events(n):
    """Return events: order k / 2 ends after k % 4 + 1 s, filled or half of it canceled."""
    k = np.arange(n)
    oid, first = k // 2, k % 2 == 0
    filled = oid % 2 == 0
    placed = MONDAY + SECOND * oid
    orders = table(
        n,
        user=np.array(["0xa", "0xb"])[oid % 2],
        tx_index=3,
        status=np.where(first, "open", np.where(filled, "filled", "canceled")),
        status_timestamp=times(placed + np.where(first, 0, SECOND * (oid % 4 + 1))),
        coin="BTC",
        limit_px=10.0,
        sz=np.where(first, 10.0, np.where(filled, 0.0, 5.0)),
        oid=oid,
        timestamp=times(placed),
        is_trigger=oid % 4 == 0,
        orig_sz=10.0,
        order_type="Limit",
    )
    return {"orders": orders}


def case(helper, needed="", **more):
    needed = {"orders": f"oid status status_timestamp {needed}"}
    return Case(f"orders.{helper}", events, needed, **more)


def transitions_at_scale(frames, result):
    half = len(frames["orders"]) // 2
    ways = result.set_index(["before", "after"])
    assert ways.loc[("(placed)", "open"), "orders"] == half
    assert ways.loc[("open", "filled"), "orders"] == half // 2
    assert ways.loc[("open", "filled"), "share"] == 0.5


def ratio_at_scale(frames, result):
    """Half of the orders are filled, and half of the size of the others: three quarters."""
    row = result.iloc[0]
    assert row["ratio"] == 0.75
    assert row["partly"] == row["canceled"] == len(frames["orders"]) // 4


def priced(n):
    """Return the events with a mid of 10.01 before each order."""
    orders = events(n)["orders"].assign(side="B")
    begin = orders[["coin", "timestamp"]].drop_duplicates()
    mids = begin.rename(columns={"timestamp": "time"}).assign(mid_px=10.01)
    return {"orders": orders, "prices": mids.assign(time=mids["time"] - pd.Timedelta("1ms"))}


CASES = [
    Case(
        "orders.fill_probability",
        priced,
        {
            "orders": "oid status status_timestamp timestamp coin side limit_px",
            "prices": "coin time mid_px",
        },
        {"horizons": (1, 3)},
    ),
    case("transitions", at_scale=transitions_at_scale),
    case("transitions", note="by day and dex", most=1000, arguments={"by": ["day", "dex"]}),
    case("mix"),
    case("mix", "user", note="by user", most=1000, arguments={"by": "user"}),
    case("fill_ratio", "sz orig_sz limit_px", at_scale=ratio_at_scale),
    case("time_to_fill", "timestamp", arguments={"horizons": (1, 3, 4)}),
    case(
        "time_to_fill",
        "timestamp limit_px orig_sz order_type",
        note="by type, size and day",
        most=1000,
        arguments={"horizons": (1, 3), "by": ["type", "size", "day"]},
    ),
    case("trigger_delay", "timestamp is_trigger order_type"),
]
