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


def case(helper, at_scale, needed, **more):
    arguments = {"builder": ME} | more.pop("arguments", {})
    return Case(
        f"builders.{helper}", fills, at_scale, {"fills": needed}, arguments, rows=200, **more
    )


def revenue_at_scale(frames, result):
    row, routed = result.iloc[0], len(frames["fills"]) // 4
    assert row["fills"] == routed
    assert np.isclose(row["revenue"], 0.01 * routed)
    assert np.isclose(row["fee_bps"], 1.0)


def groups_at_scale(frames, result):
    """Both builders have fills of the first minutes, in one week and on one dex, of each user."""
    assert result["fills"].sum() == frames["fills"]["builder"].notna().sum()


def routing_at_scale(frames, result):
    row, routed = result.iloc[0], len(frames["fills"]) // 4
    assert (row[["routed", "elsewhere", "direct", "unroutable"]] == routed).all()
    assert row["volume"] == 400 * routed
    assert row["routed_usd"] == row["unroutable_usd"] == 100 * routed


def attach_at_scale(frames, result):
    row = result.iloc[0]
    assert row["n"] == len(frames["fills"]) * 3 // 4
    assert row["users"] == USERS
    assert np.isclose(row["rate"], 1 / 3)


def cohorts_at_scale(frames, result):
    """All users start in the first week; the fourth week ends with its last minute."""
    assert result["age"].tolist() == [0, 1, 2, 3]
    assert (result["users"] == USERS).all()
    assert result["retention"].tolist() == [1.0] * 4
    assert np.isclose(result["revenue"].sum(), 0.01 * len(frames["fills"]) / 4)


def value_at_scale(frames, result):
    """Each user brings a fiftieth of the revenue of each week."""
    k = np.arange(len(frames["fills"]))
    week = k[k // USERS % 4 == 0] % (28 * 1440) // (7 * 1440)
    revenue = 0.01 * np.bincount(week) / USERS
    assert np.allclose(result["estimate"], np.cumsum(revenue)[:3], rtol=0.01)


def spans_at_scale(frames, result):
    assert len(result) == 2 * USERS
    assert result["seen"].sum() == len(frames["approved"])


def activity_at_scale(frames, result):
    """All 50 users are active in each of the four weeks, and a quarter of the fills is routed."""
    mine = result[result["builder"] == ME]
    assert (mine["active"] == USERS).all()
    assert mine["new"].tolist() == [USERS, 0, 0, 0]
    assert (mine["retention"].iloc[1:] == 1).all()
    routed = frames["fills"]["builder"] == ME
    assert mine["fills"].sum() == routed.sum()
    assert np.isclose(mine["revenue"].sum(), 0.01 * routed.sum())
    assert np.allclose(mine["revenue_share"], 1 / 3, atol=0.01)


EARNED = "coin px sz side time fee builder builder_fee"
ROUTED = "px sz builder"
WEEKLY = {"many": 100_000}  # four weeks have 40,320 minutes
CASES = [
    case("revenue", revenue_at_scale, EARNED),
    Case(
        "builders.revenue",
        fills,
        groups_at_scale,
        {"fills": f"{EARNED} user"},
        {"by": ["builder", "week", "user", "dex"]},
        note="by builder, week and user",
        rows=200,
        most=1000,
    ),
    case("routing", routing_at_scale, ROUTED),
    case("attach_rate", attach_at_scale, f"{ROUTED} user"),
    case(
        "attach_rate",
        lambda *_: None,
        f"{ROUTED} user time coin",
        note="by day and coin",
        arguments={"by": ["day", "coin"], "weight": "fills"},
        most=1000,
    ),
    case(
        "cohorts",
        cohorts_at_scale,
        f"{EARNED} user",
        arguments={"since": MONDAY, "until": UNTIL},
        **WEEKLY,
    ),
    Case(
        "builders.activity",
        fills,
        activity_at_scale,
        {"fills": f"{EARNED} user"},
        {"since": MONDAY, "until": UNTIL},
        rows=200,
        **WEEKLY,
    ),
    case(
        "lifetime_value",
        value_at_scale,
        f"{EARNED} user",
        arguments={"weeks": 3, "until": UNTIL},
        **WEEKLY,
    ),
    Case(
        "builders.approval_spans",
        approvals,
        spans_at_scale,
        dict.fromkeys(("approved", "fills"), "user time oid"),
        rows=200,
    ),
]
