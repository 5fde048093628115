"""Cases of ``tk.twaps``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, same

SECOND = 1000
AT = MONDAY + 1800 * SECOND
SNAPSHOT = ("market", "address", "twap_id", "duration_secs", "start_time_ms", "waiting")


def snapshot(n):
    """Return orders of 10 for an hour from Monday, with 4 executed at 100; every fourth waits."""
    k = np.arange(n)
    waiting = k % 4 == 3
    done = np.where(waiting, 0.0, 4.0)
    return pd.DataFrame(
        {
            "market": pd.array(np.array(["BTC", "ETH", "flx:TSLA"])[k % 3], dtype="str"),
            "address": pd.array(np.array(["0xA", "0xb"])[k % 2], dtype="str"),
            "twap_id": k,
            "is_buy": k % 2 == 0,
            "total_sz": 10.0,
            "executed_sz": done,
            "remaining_sz": 10.0 - done,
            "executed_ntl": 100 * done,
            "duration_secs": np.full(n, 3600),
            "start_time_ms": times(np.full(n, MONDAY)),
            "slice_number": np.full(n, 50),
            "waiting": waiting,
        }
    )


def prices():
    names = pd.array(["BTC", "ETH"], dtype="str")
    return pd.DataFrame({"name": names, "mark_px": [100.0, 10.0]})


def fills(n):
    """Return one fill of 4 at 100 for each order of `snapshot`."""
    k = np.arange(n)
    return pd.DataFrame(
        {
            "user": pd.array(np.array(["0xa", "0xb"])[k % 2], dtype="str"),
            "coin": pd.array(np.array(["BTC", "ETH", "flx:TSLA"])[k % 3], dtype="str"),
            "px": 100.0,
            "sz": 4.0,
            "side": pd.array(np.where(k % 2 == 0, "B", "A"), dtype="str"),
            "time": times(MONDAY + 100 * SECOND + k % 1000),
            "twap_id": k,
            "tid": 1 + k,
        }
    )


def orders(n):
    """Return fills at 100 to 109, one a second; ten fills are an order, and all are the tape."""
    k = np.arange(n)
    frame = pd.DataFrame(
        {
            "user": pd.array(["0xa"] * n, dtype="str"),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "px": 100.0 + k % 10,
            "sz": 2.0,
            "side": pd.array(["A"] * n, dtype="str"),
            "time": times(MONDAY + SECOND * k),
            "twap_id": k // 10,
            "tid": 1 + k,
        }
    )
    return {"fills": frame, "tape": frame.drop(columns=["user", "side", "twap_id"])}


def adherence_at_scale(frames, result):
    """Half of the hour has passed, and 4 of 10 are executed."""
    n = len(frames["twaps"])
    assert len(result) == n
    runs = result[result["elapsed"].notna()]
    assert len(runs) == n - n // 4
    assert np.allclose(runs["behind_sz"], 1.0)
    assert (runs["slices_due"] == 60).all()


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


def quality_at_scale(frames, result):
    """Each order pays its own mean, 104.5; the price over nine seconds is 104 on average."""
    assert np.allclose(result["vs_vwap_bps"], 0.0)
    assert np.allclose(result["twap"], 104.0)
    assert np.allclose(result["share"], 1.0)
    assert (result["arrival_px"].iloc[1:] == 109.0).all()


CASES = [
    Case(
        helper="twaps.adherence",
        frames=lambda n: {"twaps": snapshot(n)},
        arguments={"at": AT},
        at_scale=adherence_at_scale,
        needed={
            "twaps": (
                *SNAPSHOT,
                "is_buy",
                "total_sz",
                "executed_sz",
                "remaining_sz",
                "executed_ntl",
                "slice_number",
            )
        },
        doubled=same,
    ),
    Case(
        helper="twaps.pressure",
        frames=lambda n: {"twaps": snapshot(n), "prices": prices().iloc[:n]},
        arguments={"at": AT},
        at_scale=pressure_at_scale,
        needed={
            "twaps": (
                "market",
                "is_buy",
                "remaining_sz",
                "duration_secs",
                "start_time_ms",
                "waiting",
            ),
            "prices": ("name", "mark_px"),
        },
        doubled=same,
    ),
    Case(
        helper="twaps.linked",
        frames=lambda n: {"twaps": snapshot(n), "fills": fills(n)},
        arguments={"at": AT},
        at_scale=linked_at_scale,
        needed={
            "twaps": (*SNAPSHOT, "executed_sz", "executed_ntl"),
            "fills": ("user", "coin", "px", "sz", "time", "twap_id"),
        },
        doubled=same,
    ),
    Case(
        helper="twaps.quality",
        frames=orders,
        at_scale=quality_at_scale,
        needed={
            "fills": ("coin", "px", "sz", "side", "time", "twap_id"),
            "tape": ("coin", "px", "sz", "time"),
        },
        doubled=same,
        gives="pandas",
    ),
]
