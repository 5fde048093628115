"""Cases of ``tk.orders``."""

import numpy as np

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


def case(helper, at_scale, needed="", **more):
    needed = {"orders": f"oid status status_timestamp {needed}"}
    return Case(f"orders.{helper}", events, at_scale, needed, **more)


def transitions_at_scale(frames, result):
    half = len(frames["orders"]) // 2
    ways = result.set_index(["before", "after"])
    assert ways.loc[("(placed)", "open"), "orders"] == half
    assert ways.loc[("open", "filled"), "orders"] == half // 2
    assert ways.loc[("open", "filled"), "share"] == 0.5


def mix_at_scale(frames, result):
    assert result["status"].tolist() == ["canceled", "filled"]
    assert (result["orders"] == len(frames["orders"]) // 4).all()
    assert (result["low"] < 0.5).all()
    assert (result["high"] > 0.5).all()


def ratio_at_scale(frames, result):
    """Half of the orders are filled, and half of the size of the others: three quarters."""
    row = result.iloc[0]
    assert row["ratio"] == 0.75
    assert row["partly"] == row["canceled"] == len(frames["orders"]) // 4


SHARES = {
    "filled within 1 s": 0.25,
    "filled within 3 s": 0.5,
    "canceled within 3 s": 0.25,
    "canceled within 4 s": 0.5,
    "rejected within 4 s": 0.0,
}


def times_at_scale(frames, result):
    """Orders are filled after 1 or 3 s, a quarter each, and canceled after 2 or 4 s."""
    found = result.set_index("name")["estimate"]
    assert np.allclose(found[list(SHARES)], list(SHARES.values()))


def delay_at_scale(frames, result):
    """Every fourth order is a trigger order; none was triggered."""
    row = result.iloc[0]
    assert row["orders"] == len(frames["orders"]) // 8
    assert row["triggered"] == 0
    assert np.isnan(row["delay_q50_secs"])


def only_runs(frames, result):
    """For groups whose figures other cases check."""


CASES = [
    case("transitions", transitions_at_scale),
    case(
        "transitions", only_runs, note="by day and dex", most=1000, arguments={"by": ["day", "dex"]}
    ),
    case("mix", mix_at_scale),
    case("mix", only_runs, "user", note="by user", most=1000, arguments={"by": "user"}),
    case("fill_ratio", ratio_at_scale, "sz orig_sz limit_px"),
    case("time_to_fill", times_at_scale, "timestamp", arguments={"horizons": (1, 3, 4)}),
    case(
        "time_to_fill",
        only_runs,
        "timestamp limit_px orig_sz order_type",
        note="by type, size and day",
        most=1000,
        arguments={"horizons": (1, 3), "by": ["type", "size", "day"]},
    ),
    case("trigger_delay", delay_at_scale, "timestamp is_trigger order_type"),
]
