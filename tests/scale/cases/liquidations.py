"""Cases of ``tk.liquidations``."""

import numpy as np

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, addresses, table, trades


def positions(n):
    """Return positions of 1 long at 100, liquidated at 99, 98, ..., 90 in turn."""
    k = np.arange(n)
    return table(
        n,
        user=addresses(k),
        dex="native",
        coin="BTC",
        szi=1.0,
        position_value=100.0,
        liquidation_px=99.0 - k % 10,
        leverage_type=np.where(k % 2 == 0, "cross", "isolated"),
        margin_used=20.0,
    )


def accounts(n):
    return positions(n)[["user", "dex"]].assign(cross_account_value=11.0)


def contexts(n):
    return table(min(n, 1), name="BTC", open_interest=2.0 * n)


def levels_at_scale(frames, result):
    n = len(frames["positions"])
    assert result["notional"].eq(100 * n / 10).all()
    assert len(result) == 10
    assert result["known"].eq(0.5).all()
    assert result["covered"].eq(0.5).all()


WORDS = np.array(["Close Long", "Open Long", "Auto-Deleveraging", "Open Long", "Close Short"])
USERS = addresses(np.array([1, 2, 1, 2, 1]))
LIQUIDATED = np.array([USERS[0], USERS[0], None, None, None], dtype=object)


def forced(n):
    """Return fills in turn: liquidated, its counterparty, deleveraged, and two ordinary ones."""
    k = np.arange(n)
    given = {"user": USERS[k % 5], "dir": WORDS[k % 5], "liquidated_user": LIQUIDATED[k % 5]}
    return {"fills": trades(n, MONDAY + k, **given)}


def books(n):
    """Return batches of a book that a sale of n times 1,000 USD moves by 1 %: a linear law."""
    few = min(n, 20)
    k = np.arange(few)
    usd = 1e3 * n * np.array([0.1, 1.0])[k % 2]
    return table(
        few,
        timestamp_ms=times(MONDAY + DAY * (k // 2)),
        coin="BTC",
        dex="hyperliquid",
        bps=np.array([10, 100])[k % 2],
        bid_depth_usd=usd,
        ask_depth_usd=usd,
    )


HELD = "user coin szi position_value leverage_type"
MARGINS = {"accounts": "user cross_account_value", "positions": f"{HELD} margin_used"}
CASES = [
    Case("liquidations.fills", forced, {"fills": ""}, keys=("time",)),
    Case("liquidations.history", forced, {"fills": "time coin px sz side"}),
    Case(
        "liquidations.levels",
        lambda n: {"positions": positions(n), "contexts": contexts(n)},
        {"positions": f"{HELD} liquidation_px", "contexts": "name open_interest"},
        at_scale=levels_at_scale,
    ),
    Case(
        "liquidations.buffers",
        lambda n: {"accounts": accounts(n), "positions": positions(n)},
        MARGINS,
        arguments={"max_leverage": {"BTC": 10}},
    ),
    Case(
        "liquidations.cascade",
        lambda n: {
            "positions": positions(n).assign(margin_used=40.0),
            "accounts": accounts(n),
            "impact": books(n),
        },
        {**MARGINS, "impact": "coin timestamp_ms bps bid_depth_usd ask_depth_usd"},
        arguments={"coin": "BTC", "shocks": [-0.1], "max_leverage": {"BTC": 10}, "draws": 9},
        most=100_000,
    ),
]
