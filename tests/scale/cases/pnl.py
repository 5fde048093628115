"""Cases of ``tk.pnl``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import ME, MONDAY, times
from tests.scale.case import Case, same

MINUTE = 60_000
WALKED = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")


def fills(n):
    """Buy 1 at 100 and sell it at 101, over and over: every second fill closes 1 USD."""
    k = np.arange(n)
    opens = k % 2 == 0
    return pd.DataFrame(
        {
            "user": pd.array([ME] * n, dtype="str"),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "px": np.where(opens, 100.0, 101.0),
            "sz": 1.0,
            "side": pd.array(np.where(opens, "B", "A"), dtype="str"),
            "time": times(MONDAY + MINUTE * k),
            "start_position": np.where(opens, 0.0, 1.0),
            "closed_pnl": np.where(opens, 0.0, 1.0),
            "fee": 0.25,
            "builder_fee": 0.125,
            "deployer_fee": np.nan,
            "fee_token": pd.array(["USDC"] * n, dtype="str"),
            "crossed": opens,
            "tx_index": k % 5,
            "oid": k,
            "tid": 1 + k,
        }
    )


def attribution_at_scale(frames, result):
    n = len(frames["fills"])
    row = result.iloc[0]
    assert row["fills"] == n
    assert row["closed_pnl"] == n // 2
    assert row["trading_fee"] == row["builder_fee"] == -0.125 * n
    assert row["net"] == n // 2 - 0.25 * n


def audit_at_scale(frames, result):
    assert (result["difference"] == 0).all()
    assert not result["chain_break"].any()


def positions_at_scale(frames, result):
    assert (result["position"] == np.where(np.arange(len(result)) % 2 == 0, 1, 0)).all()
    assert (result["entry_px"].dropna() == 100.0).all()
    assert (result["closed_pnl"] == result["expected_closed_pnl"]).all()
    assert not result["chain_break"].any()


def growing(n):
    """Buy 1 at 100 and 1 at 101, over and over, and keep it all."""
    result = fills(n)
    return result.assign(side="B", start_position=1.0 * np.arange(n), closed_pnl=0.0).astype(
        {"side": "str"}
    )


def unrealised_at_scale(frames, result):
    n = len(frames["fills"])
    assert result["szi"].item() == n
    assert result["entry_px"].item() == 100.5
    assert result["unrealized_pnl"].item() == 1.5 * n


def lots_at_scale(frames, result):
    n = len(frames["fills"])
    assert len(result) == n // 2
    assert (result["realised"] == 1.0).all()
    assert (result["entry_px"] == 100.0).all()


def trips_at_scale(frames, result):
    n = len(frames["fills"])
    assert len(result) == n // 2
    assert (result["status"] == "closed").all()
    assert (result["net"] == 0.5).all()
    assert (result["duration_hours"] == 1 / 60).all()


def equity_at_scale(frames, result):
    n = len(frames["fills"])
    assert len(result) == -(-n // 60)
    assert result["realised"].iloc[-1] == n // 2 - 0.25 * n
    assert result["covers"].eq("fills").all()


def curve(n):
    """Up 2, down 1, over and over."""
    k = np.arange(n)
    return pd.DataFrame(
        {
            "time": times(MONDAY + 60 * MINUTE * k),
            "pnl": 2.0 * ((k + 1) // 2 + (k + 1) % 2) - k // 2,
        }
        | {"user": pd.array([ME] * n, dtype="str")}
    )


def drawdown_at_scale(frames, result):
    wanted = frames["curve"]["pnl"].cummax().clip(lower=0)
    assert (result["high"] == wanted).all()
    assert (result["drawdown"] == frames["curve"]["pnl"] - wanted).all()


def reconciled(n):
    """The account of `fills`, its deposits of 1, and no funding row that counts."""
    few = min(n, 1000)
    worth = n // 2 - 0.25 * n + few
    end = {"user": [ME], "account_value": [worth], "account_mode": pd.array([0], dtype="Int64")}
    flows = {"account": pd.array([ME] * few, dtype="str"), "usdc": np.ones(few)}
    flows["hash"] = pd.array([f"0x{number + 1:064x}" for number in range(few)], dtype="str")
    paid = {"user": pd.array([ME] * few, dtype="str"), "usdc": np.zeros(few)}
    time = times(MONDAY + MINUTE * np.arange(few))
    return {
        "end": pd.DataFrame(end).astype({"user": "str"}).head(min(n, 1)),
        "fills": fills(n),
        "funding": pd.DataFrame(
            {**paid, "coin": pd.array(["BTC"] * few, dtype="str"), "time": time}
        ),
        "ledger": pd.DataFrame(
            {**flows, "type": pd.array(["deposit"] * few, dtype="str"), "time": time}
        ),
    }


def reconcile_at_scale(frames, result):
    row = result.iloc[0]
    assert (
        row["change"] == row["closed_pnl"] + row["trading_fee"] + row["builder_fee"] + row["ledger"]
    )
    assert row["causes"] == "unrealised not known"


def stated(n):
    """The account of `reconciled`, which also holds 2 ETH that gained 50, as the service says."""
    known = reconciled(n)
    end = pd.DataFrame({"user": [ME], "account_value": [n // 2 - 0.25 * n + min(n, 1000) + 50.0]})
    held = {"szi": [2.0], "position_value": [300.0], "unrealized_pnl": [50.0]}
    eth = pd.DataFrame({"user": [ME], "coin": ["ETH"], **held}).astype(
        {"user": "str", "coin": "str"}
    )
    return {
        "accounts": end.assign(time=times(MONDAY + MINUTE * np.array([n])))
        .astype({"user": "str"})
        .head(min(n, 1)),
        "positions": eth.head(min(n, 1)),
        **{name: known[name] for name in ("fills", "funding", "ledger")},
    }


def carried_back_at_scale(frames, result):
    n = len(frames["fills"])
    assert len(result) == 1 + -(-n // 60)
    first, last = result.iloc[0], result.iloc[-1]
    assert last["equity"] == frames["accounts"]["account_value"].item()
    assert (last["realised"], last["flows"]) == (n // 2 - 0.25 * n, 1000.0)
    assert (first["equity"], first["unrealised"], last["unrealised"]) == (50.0, 50.0, 50.0)
    assert (result["equity"] - 50.0 - result["flows"] == result["pnl"]).all()


CASES = [
    Case(
        helper="pnl.positions",
        frames=lambda n: {"fills": fills(n)},
        arguments={"sz_decimals": {"BTC": 5}},
        at_scale=positions_at_scale,
        needed={"fills": WALKED},
        doubled=same,
        keys=("time",),
    ),
    Case(
        helper="pnl.unrealised",
        frames=lambda n: {"fills": growing(n)},
        arguments={"sz_decimals": {"BTC": 5}, "marks": {"BTC": 102.0}},
        at_scale=unrealised_at_scale,
        needed={"fills": WALKED},
        doubled=same,
    ),
    Case(
        helper="pnl.lots",
        frames=lambda n: {"fills": fills(n)},
        at_scale=lots_at_scale,
        needed={"fills": WALKED[:-1]},
        doubled=same,
    ),
    Case(
        helper="pnl.round_trips",
        frames=lambda n: {"fills": fills(n)},
        at_scale=trips_at_scale,
        needed={"fills": (*WALKED, "fee")},
        doubled=same,
    ),
    Case(
        helper="pnl.equity",
        frames=lambda n: {"fills": fills(n)},
        at_scale=equity_at_scale,
        needed={"fills": ("coin", "px", "sz", "side", "time", "closed_pnl", "fee")},
        doubled=same,
    ),
    Case(
        helper="pnl.drawdown",
        frames=lambda n: {"curve": curve(n)},
        at_scale=drawdown_at_scale,
        needed={"curve": ("time", "pnl")},
        doubled=same,
    ),
    Case(
        helper="pnl.reconcile",
        frames=reconciled,
        arguments={"start": None},
        at_scale=reconcile_at_scale,
        needed={
            "end": ("user", "account_value"),
            "fills": ("coin", "px", "sz", "side", "time", "closed_pnl", "fee"),
            "funding": ("coin", "time", "usdc"),
            "ledger": ("time", "type"),
        },
        doubled=same,
    ),
    Case(
        helper="pnl.carried_back",
        frames=stated,
        at_scale=carried_back_at_scale,
        needed={
            "accounts": ("user", "account_value", "time"),
            "positions": ("user", "coin", "szi", "position_value", "unrealized_pnl"),
            "fills": ("coin", "px", "sz", "side", "time", "closed_pnl", "fee"),
            "funding": ("coin", "time", "usdc"),
            "ledger": ("time", "type"),
        },
        doubled=same,
    ),
    Case(
        helper="pnl.attribution",
        frames=lambda n: {"fills": fills(n)},
        at_scale=attribution_at_scale,
        needed={"fills": ("coin", "px", "sz", "side", "time", "closed_pnl", "fee")},
        doubled=same,
    ),
    Case(
        helper="pnl.audit",
        frames=lambda n: {"fills": fills(n)},
        arguments={"sz_decimals": {"BTC": 5}},
        at_scale=audit_at_scale,
        needed={
            "fills": ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl"),
        },
        doubled=same,
        keys=("time",),
    ),
]
