"""Cases of ``tk.builders``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, same

ME, OTHER = "0x" + "b" * 40, "0x" + "c" * 40
MINUTE = 60_000
USERS = 50
EARNED = ("coin", "px", "sz", "side", "time", "fee", "builder", "builder_fee")


def rows(n):
    """Return fills of 100 USD: fill k of user k % 50 is routed, elsewhere, direct, a TWAP, in turn.

    A routed fill has a fee of 1 cent. There is one fill a minute for four weeks, again and again.
    """
    k = np.arange(n)
    turn = k // USERS % 4
    builder = np.array([ME, OTHER, None, None], dtype=object)[turn]
    fee = np.array([0.01, 0.02, np.nan, np.nan])[turn]
    users = np.char.add("0xU", np.char.zfill((k % USERS).astype(str), 2)) if n else []
    return pd.DataFrame(
        {
            "user": pd.array(users, dtype="str"),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "px": 50.0,
            "sz": 2.0,
            "side": pd.array(["B"] * n, dtype="str"),
            "time": times(MONDAY + MINUTE * (k % (28 * 1440))),
            "dir": pd.array(["Open Long"] * n, dtype="str"),
            "fee": 0.05,
            "fee_token": pd.array(["USDC"] * n, dtype="str"),
            "builder": pd.array(builder, dtype="str"),
            "builder_fee": fee,
            "twap_id": pd.arrays.IntegerArray(np.full(n, 7), turn != 3),
            "oid": k,
            "tid": 1 + k,
        }
    )


def fills(n):
    return {"fills": rows(n)}


def approvals(n):
    """Every user's last fill of the first half has no approval."""
    every = rows(n).drop(columns=["builder", "builder_fee"])
    every["time"] = times(MONDAY + MINUTE * np.arange(n))
    without = np.arange(n) // USERS == n // USERS // 2
    return {"approved": every[~without].reset_index(drop=True), "fills": every}


def case(helper, at_scale, needed, doubled, **more):
    return Case(
        helper=f"builders.{helper}",
        frames=more.pop("frames", fills),
        at_scale=at_scale,
        needed=more.pop("all_needed", {"fills": needed}),
        doubled=doubled,
        arguments=more.pop("arguments", {"builder": ME}),
        rows=200,
        **more,
    )


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


MONEY = ("volume", "revenue")
UNTIL = MONDAY + 28 * DAY


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


CASES = [
    case("revenue", revenue_at_scale, EARNED, same),
    case(
        "revenue",
        lambda *_: None,
        (*EARNED, "user"),
        same,
        note="by builder, week and user",
        arguments={"by": ["builder", "week", "user", "dex"]},
        most=1000,
    ),
    case(
        "routing",
        routing_at_scale,
        ("px", "sz", "builder"),
        same,
    ),
    case("attach_rate", attach_at_scale, ("px", "sz", "builder", "user"), same, gives="pandas"),
    case(
        "attach_rate",
        lambda *_: None,
        ("px", "sz", "builder", "user", "time", "coin"),
        same,
        note="by day and coin",
        arguments={"builder": ME, "by": ["day", "coin"], "weight": "fills"},
        gives="pandas",
        most=1000,
    ),
    case(
        "cohorts",
        cohorts_at_scale,
        ("user", *EARNED),
        same,
        arguments={"builder": ME, "since": MONDAY, "until": UNTIL},
        gives="pandas",
    ),
    case(
        "activity",
        activity_at_scale,
        ("user", *EARNED),
        same,
        arguments={"since": MONDAY, "until": UNTIL},
        gives="pandas",
    ),
    case(
        "lifetime_value",
        value_at_scale,
        ("user", *EARNED),
        same,
        arguments={"builder": ME, "weeks": 3, "until": UNTIL},
        gives="pandas",
        table=lambda result: result.params,
    ),
    case(
        "approval_spans",
        spans_at_scale,
        (),
        same,
        frames=approvals,
        all_needed=dict.fromkeys(("approved", "fills"), ("user", "time", "oid")),
        arguments={},
        gives="pandas",
    ),
]
