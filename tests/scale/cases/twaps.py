"""Cases of ``tk.twaps``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, table, trades

SECOND = 1000
AT = MONDAY + 1800 * SECOND
MARKETS = np.array(["BTC", "ETH", "flx:TSLA"])


def snapshot(n):
    """Return orders of 10 for an hour from Monday, with 4 executed at 100; every fourth waits."""
    k = np.arange(n)
    waiting = k % 4 == 3
    done = np.where(waiting, 0.0, 4.0)
    return table(
        n,
        market=MARKETS[k % 3],
        address=np.array(["0xA", "0xb"])[k % 2],
        twap_id=k,
        is_buy=k % 2 == 0,
        total_sz=10.0,
        executed_sz=done,
        remaining_sz=10.0 - done,
        executed_ntl=100 * done,
        duration_secs=3600,
        start_time_ms=times(np.full(n, MONDAY)),
        slice_number=50,
        waiting=waiting,
    )


def prices():
    return pd.DataFrame({"name": pd.array(["BTC", "ETH"], dtype="str"), "mark_px": [100.0, 10.0]})


def fills(n):
    """Return one fill of 4 at 100 for each order of `snapshot`."""
    k = np.arange(n)
    return trades(
        n,
        MONDAY + 100 * SECOND + k % 1000,
        user=np.array(["0xa", "0xb"])[k % 2],
        coin=MARKETS[k % 3],
        sz=4.0,
        side=np.where(k % 2 == 0, "B", "A"),
        twap_id=k,
    )


def orders(n):
    """Return fills at 100 to 109, one a second; ten fills are an order, and all are the tape."""
    k = np.arange(n)
    own = {"user": "0xa", "px": 100.0 + k % 10, "side": "A", "twap_id": k // 10}
    frame = trades(n, MONDAY + SECOND * k, **own)
    mids = frame[["coin", "time"]].assign(mid_px=100.0)
    return {"fills": frame, "tape": frame.drop(columns=["user", "side", "twap_id"]), "prices": mids}


def pressure_at_scale(frames, result):
    """Odd orders sell, and half of those wait; half an hour remains."""
    rows = frames["twaps"]
    runs = rows[~rows["waiting"]]
    assert result["orders"].sum() == len(runs)
    assert result["buy_sz"].sum() == 6 * runs["is_buy"].sum()
    frame = result.set_index("market")
    assert np.isclose(frame.loc["BTC", "net_usd"], 100 * frame.loc["BTC", "net_sz"])
    assert np.isclose(frame.loc["BTC", "net_usd_per_hour"], 2 * frame.loc["BTC", "net_usd"])
    assert np.isnan(frame.loc["flx:TSLA", "net_usd"])


def linked_at_scale(frames, result):
    """Waiting orders have nothing executed in the snapshot, but a fill of 4 in the fills."""
    rest = result["missing_sz"]
    assert set(rest) == {0.0, -4.0}
    assert (rest == -4.0).sum() == len(result) // 4


RUNNING = "market duration_secs start_time_ms waiting"
EXECUTED = f"{RUNNING} address twap_id executed_sz executed_ntl"
CASES = [
    Case(
        "twaps.adherence",
        lambda n: {"twaps": snapshot(n)},
        {"twaps": f"{EXECUTED} is_buy total_sz remaining_sz slice_number"},
        {"at": AT},
    ),
    Case(
        "twaps.pressure",
        lambda n: {"twaps": snapshot(n), "prices": prices().iloc[:n]},
        {"twaps": f"{RUNNING} is_buy remaining_sz", "prices": "name mark_px"},
        {"at": AT},
        at_scale=pressure_at_scale,
    ),
    Case(
        "twaps.linked",
        lambda n: {"twaps": snapshot(n), "fills": fills(n)},
        {"twaps": EXECUTED, "fills": "user coin px sz time twap_id"},
        {"at": AT},
        at_scale=linked_at_scale,
    ),
    Case(
        "twaps.quality",
        orders,
        {
            "fills": "coin px sz side time twap_id",
            "tape": "coin px sz time",
            "prices": "coin time mid_px",
        },
    ),
]
