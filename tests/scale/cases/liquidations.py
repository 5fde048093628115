"""Cases of ``tk.liquidations``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, same


def positions(n):
    """Return positions of 1 long at 100, liquidated at 99, 98, ..., 90 in turn."""
    k = np.arange(n)
    return pd.DataFrame(
        {
            "user": pd.array([f"0x{item:040x}" for item in k], dtype="str"),
            "dex": pd.array(["native"] * n, dtype="str"),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "szi": 1.0,
            "position_value": 100.0,
            "liquidation_px": 99.0 - k % 10,
            "leverage_type": pd.array(np.where(k % 2 == 0, "cross", "isolated"), dtype="str"),
            "margin_used": 20.0,
        }
    )


def accounts(n):
    rows = positions(n)[["user", "dex"]]
    return rows.assign(cross_account_value=11.0)


def contexts(n):
    rows = pd.DataFrame({"name": ["BTC"], "open_interest": [2.0 * n]})
    return rows.astype({"name": "str"}).head(min(n, 1))


def levels_at_scale(frames, result):
    n = len(frames["positions"])
    assert result["notional"].eq(100 * n / 10).all()
    assert len(result) == 10
    assert result["known"].eq(0.5).all()
    assert result["covered"].eq(0.5).all()


def buffers_at_scale(frames, result):
    """The maintenance margin is 100 / 20 each: 11 - 5 and 20 - 5 remain, over 95."""
    cross = result["margin"] == "cross"
    assert result.loc[cross, "buffer"].eq(6.0).all()
    assert result.loc[~cross, "buffer"].eq(15.0).all()
    assert np.allclose(result["distance"], result["buffer"] / 95)


def forced(n):
    """Return fills in turn: liquidated, its counterparty, deleveraged, and two ordinary ones."""
    k = np.arange(n)
    words = ["Close Long", "Open Long", "Auto-Deleveraging", "Open Long", "Close Short"]
    liquidated = [f"0x{1:040x}", f"0x{1:040x}", None, None, None]
    users = [f"0x{1:040x}", f"0x{2:040x}"]
    rows = pd.DataFrame(
        {
            "user": pd.array([users[item % 5 % 2] for item in k], dtype="str"),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "px": 100.0,
            "sz": 2.0,
            "side": pd.array(["A"] * n, dtype="str"),
            "time": times(MONDAY + k),
            "dir": pd.array([words[item % 5] for item in k], dtype="str"),
            "liquidated_user": pd.array([liquidated[item % 5] for item in k], dtype="str"),
            "tid": 1 + k,
        }
    )
    return {"fills": rows}


def forced_at_scale(frames, result):
    count = len(frames["fills"]) // 5
    assert result["liquidation_side"].value_counts().to_dict() == {
        "liquidated": count,
        "counterparty": count,
    }


def books(n):
    """Return batches of a book that a sale of n times 1,000 USD moves by 1 %: a linear law."""
    usd = 1e3 * n * np.array([0.1, 1.0])
    n = min(n, 20)
    k = np.arange(n)
    usd = usd[k % 2]
    return pd.DataFrame(
        {
            "timestamp_ms": times(MONDAY + DAY * (k // 2)),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "dex": pd.array(["hyperliquid"] * n, dtype="str"),
            "bps": np.array([10, 100])[k % 2],
            "bid_depth_usd": usd,
            "ask_depth_usd": usd,
        }
    )


def cascade_at_scale(frames, result):
    """A fall of 10 % takes the cross half: 11 - 10 < 4.5. They sell 45 each."""
    count = len(frames["positions"]) // 2
    assert result["accounts"].eq(count).all()
    assert np.allclose(result["forced_usd"], 90.0 * count)
    assert np.allclose(result["estimate"], -0.1 - 0.9 * 0.01 * 45 / 1000)


HELD = ("user", "coin", "szi", "position_value", "leverage_type")
CASES = [
    Case(
        helper="liquidations.fills",
        frames=forced,
        at_scale=forced_at_scale,
        needed={"fills": ()},
        doubled=same,
        keys=("time",),
    ),
    Case(
        helper="liquidations.levels",
        frames=lambda n: {"positions": positions(n), "contexts": contexts(n)},
        at_scale=levels_at_scale,
        needed={
            "positions": (*HELD, "liquidation_px"),
            "contexts": ("name", "open_interest"),
        },
        doubled=same,
    ),
    Case(
        helper="liquidations.buffers",
        frames=lambda n: {"accounts": accounts(n), "positions": positions(n)},
        arguments={"max_leverage": {"BTC": 10}},
        at_scale=buffers_at_scale,
        needed={
            "accounts": ("user", "cross_account_value"),
            "positions": (*HELD, "margin_used"),
        },
        doubled=same,
    ),
    Case(
        helper="liquidations.cascade",
        frames=lambda n: {
            "positions": positions(n).assign(margin_used=40.0),
            "accounts": accounts(n),
            "impact": books(n),
        },
        arguments={"coin": "BTC", "shocks": [-0.1], "max_leverage": {"BTC": 10}, "draws": 9},
        at_scale=cascade_at_scale,
        needed={
            "positions": (*HELD, "margin_used"),
            "accounts": ("user", "cross_account_value"),
            "impact": ("coin", "timestamp_ms", "bps", "bid_depth_usd", "ask_depth_usd"),
        },
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
        most=100_000,
    ),
]
