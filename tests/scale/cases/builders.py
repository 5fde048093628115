"""Cases of ``tk.builders``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, trades

ME, OTHER = "0x" + "b" * 40, "0x" + "c" * 40
MINUTE = 60_000
USERS = 50
UNTIL = MONDAY + 28 * DAY


def rows(n):
    """Return fills of 100 USD: fill k of user k % 50 is routed, elsewhere, direct, a TWAP, in turn.

    A routed fill has a fee of 1 cent. There is one fill a minute for four weeks, again and again.
    """
    k = np.arange(n)
    turn = k // USERS % 4
    return trades(
        n,
        MONDAY + MINUTE * (k % (28 * 1440)),
        user=np.char.mod("0xU%02d", k % USERS),
        px=50.0,
        dir="Open Long",
        fee=0.05,
        fee_token="USDC",
        builder=np.array([ME, OTHER, None, None], dtype=object)[turn],
        builder_fee=np.array([0.01, 0.02, np.nan, np.nan])[turn],
        twap_id=pd.arrays.IntegerArray(np.full(n, 7), turn != 3),
        oid=k,
    )


def fills(n):
    return {"fills": rows(n)}


def approvals(n):
    """Every user's last fill of the first half has no approval."""
    every = rows(n).drop(columns=["builder", "builder_fee"])
    every["time"] = times(MONDAY + MINUTE * np.arange(n))
    without = np.arange(n) // USERS == n // USERS // 2
    return {"approved": every[~without].reset_index(drop=True), "fills": every}


def case(helper, needed, **more):
    arguments = {"builder": ME} | more.pop("arguments", {})
    return Case(f"builders.{helper}", fills, {"fills": needed}, arguments, rows=200, **more)


def revenue_at_scale(frames, result):
    row, routed = result.iloc[0], len(frames["fills"]) // 4
    assert row["fills"] == routed
    assert np.isclose(row["revenue"], 0.01 * routed)
    assert np.isclose(row["fee_bps"], 1.0)


def routing_at_scale(frames, result):
    row, routed = result.iloc[0], len(frames["fills"]) // 4
    assert (row[["routed", "elsewhere", "direct", "unroutable"]] == routed).all()
    assert row["volume"] == 400 * routed
    assert row["routed_usd"] == row["unroutable_usd"] == 100 * routed


EARNED = "coin px sz side time fee builder builder_fee"
ROUTED = "px sz builder"
CASES = [
    case("revenue", EARNED, at_scale=revenue_at_scale),
    Case(
        "builders.revenue",
        fills,
        {"fills": f"{EARNED} user"},
        {"by": ["builder", "week", "user", "dex"]},
        note="by builder, week and user",
        rows=200,
        most=1000,
    ),
    case("routing", ROUTED, at_scale=routing_at_scale),
    case("attach_rate", f"{ROUTED} user"),
    case(
        "attach_rate",
        f"{ROUTED} user time coin",
        note="by day and coin",
        arguments={"by": ["day", "coin"], "weight": "fills"},
        most=1000,
    ),
    case("cohorts", f"{EARNED} user", arguments={"since": MONDAY, "until": UNTIL}),
    Case(
        "builders.activity",
        fills,
        {"fills": f"{EARNED} user"},
        {"since": MONDAY, "until": UNTIL},
        rows=200,
    ),
    case("lifetime_value", f"{EARNED} user", arguments={"weeks": 3, "until": UNTIL}),
    Case(
        "builders.approval_spans",
        approvals,
        dict.fromkeys(("approved", "fills"), "user time oid"),
        rows=200,
    ),
]
