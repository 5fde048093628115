"""Cases of ``tk.orders``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, same

SECOND = 1000
EVENT = ("oid", "status", "status_timestamp")


def events(n):
    """Return events: order k / 2 ends after k % 4 + 1 s, filled or half of it canceled."""
    k = np.arange(n)
    oid, first = k // 2, k % 2 == 0
    filled = oid % 2 == 0
    end = np.where(filled, "filled", "canceled")
    placed = MONDAY + SECOND * oid
    age = np.where(first, 0, SECOND * (oid % 4 + 1))
    half = np.where(filled, 0.0, 5.0)
    return {
        "orders": pd.DataFrame(
            {
                "user": pd.array(np.array(["0xa", "0xb"])[oid % 2], dtype="str"),
                "tx_index": np.full(n, 3),
                "status": pd.array(np.where(first, "open", end), dtype="str"),
                "status_timestamp": times(placed + age),
                "coin": pd.array(["BTC"] * n, dtype="str"),
                "limit_px": 10.0,
                "sz": np.where(first, 10.0, half),
                "oid": oid,
                "timestamp": times(placed),
                "is_trigger": oid % 4 == 0,
                "orig_sz": 10.0,
                "order_type": pd.array(["Limit"] * n, dtype="str"),
            }
        )
    }


def case(helper, at_scale, needed=(), **more):
    return Case(
        helper=f"orders.{helper}",
        frames=events,
        at_scale=at_scale,
        needed={"orders": (*EVENT, *needed)},
        doubled=same,
        **more,
    )


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


def times_at_scale(frames, result):
    """Orders are filled after 1 or 3 s, a quarter each, and canceled after 2 or 4 s."""
    found = result.set_index("name")["estimate"]
    for name, share in (
        ("filled within 1 s", 0.25),
        ("filled within 3 s", 0.5),
        ("canceled within 3 s", 0.25),
        ("canceled within 4 s", 0.5),
        ("rejected within 4 s", 0.0),
    ):
        assert np.isclose(found[name], share)


def delay_at_scale(frames, result):
    """Every fourth order is a trigger order; none was triggered."""
    row = result.iloc[0]
    assert row["orders"] == len(frames["orders"]) // 8
    assert row["triggered"] == 0
    assert np.isnan(row["delay_q50_secs"])


CASES = [
    case("transitions", transitions_at_scale),
    case(
        "transitions",
        lambda *_: None,
        note="by day and dex",
        most=1000,
        arguments={"by": ["day", "dex"]},
    ),
    case("mix", mix_at_scale),
    case(
        "mix",
        lambda *_: None,
        note="by user",
        most=1000,
        arguments={"by": "user"},
        needed=("user",),
    ),
    case("fill_ratio", ratio_at_scale, needed=("sz", "orig_sz", "limit_px")),
    case(
        "time_to_fill",
        times_at_scale,
        needed=("timestamp",),
        arguments={"horizons": (1, 3, 4)},
        gives="pandas",
        table=lambda result: result.params,
    ),
    case(
        "time_to_fill",
        lambda *_: None,
        note="by type, size and day",
        most=1000,
        needed=("timestamp", "limit_px", "orig_sz", "order_type"),
        arguments={"horizons": (1, 3), "by": ["type", "size", "day"]},
        gives="pandas",
        table=lambda result: result.params,
    ),
    case(
        "trigger_delay",
        delay_at_scale,
        needed=("timestamp", "is_trigger", "order_type"),
        gives="pandas",
    ),
]
