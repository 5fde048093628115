"""Cases of ``tk.pnl``."""

import numpy as np

from tests.analysis.examples import HOUR, ME, MONDAY, times
from tests.scale.case import Case, table, trades

MINUTE = 60_000


def fills(n):
    """Buy 1 at 100 and sell it at 101, over and over: every second fill closes 1 USD."""
    k = np.arange(n)
    opens = k % 2 == 0
    rows = trades(
        n,
        MONDAY + MINUTE * k,
        user=ME,
        coin="BTC",
        px=np.where(opens, 100.0, 101.0),
        sz=1.0,
        side=np.where(opens, "B", "A"),
        start_position=np.where(opens, 0.0, 1.0),
        closed_pnl=np.where(opens, 0.0, 1.0),
        fee=0.25,
        builder_fee=0.125,
        deployer_fee=np.nan,
        fee_token="USDC",
        crossed=opens,
        tx_index=k % 5,
        oid=k,
    )
    return {"fills": rows}


def stated_trades(n):
    """The trades of `fills` as the service states them; the fees of every other one are wrong."""
    k = np.arange(n // 2)
    rows = table(
        len(k),
        coin="BTC",
        position_type="Long",
        gross_pnl=1.0,
        fees=np.where(k % 2 == 0, 0.5, 0.75),
        funding_pnl=0.0,
        net_pnl=np.where(k % 2 == 0, 0.5, 0.25),
        close_time=times(MONDAY + MINUTE * (2 * k + 1)),
    )
    total = table(
        1,
        total_pnl=rows["net_pnl"].sum(),
        total_fees=rows["fees"].sum(),
        total_funding=0.0,
        total_trades=len(k),
        win_rate=1.0,
    )
    return {**fills(n), "trades": rows, "summary": total}


def compare_at_scale(frames, result):
    n = len(frames["trades"])
    found = result.groupby(["figure", "cause"]).size().to_dict()
    assert found["gross", "equal"] == n
    assert found["fees", "unexplained"] == found["net", "unexplained"] == n // 2
    assert result["difference"][result["figure"] == "net"].sum() == n // 2 / 4


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
    rows = fills(n)["fills"].assign(start_position=1.0 * np.arange(n), closed_pnl=0.0)
    rows.loc[:, "side"] = "B"
    return {"fills": rows}


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


def value_at_scale(frames, result):
    n = len(frames["fills"])
    assert result["value"].iloc[-1] == 100 + n // 2 - 0.25 * n
    assert not result["unmarked"].any()


def curve(n):
    """Up 2, down 1, over and over."""
    k = np.arange(n)
    pnl = 2.0 * ((k + 1) // 2 + (k + 1) % 2) - k // 2
    return {"curve": table(n, time=times(MONDAY + HOUR * k), pnl=pnl, user=ME)}


def drawdown_at_scale(frames, result):
    wanted = frames["curve"]["pnl"].cummax().clip(lower=0)
    assert (result["high"] == wanted).all()
    assert (result["drawdown"] == frames["curve"]["pnl"] - wanted).all()


def moves(n):
    """Return the fills of `fills`, deposits of 1, and no funding row that counts."""
    few = min(n, 1000)
    k = np.arange(few)
    time = times(MONDAY + MINUTE * k)
    hashes = np.char.mod("0x%064x", 1 + k)
    return {
        **fills(n),
        "funding": table(few, user=ME, usdc=0.0, coin="BTC", time=time),
        "ledger": table(few, account=ME, usdc=1.0, hash=hashes, type="deposit", time=time),
    }


def value_after(n):
    """Return what the account of `moves` is worth."""
    return n // 2 - 0.25 * n + min(n, 1000)


def reconciled(n):
    end = table(min(n, 1), user=ME, account_value=value_after(n), account_mode=0)
    return {"end": end.astype({"account_mode": "Int64"}), **moves(n)}


def reconcile_at_scale(frames, result):
    row = result.iloc[0]
    parts = row[["closed_pnl", "trading_fee", "builder_fee", "ledger"]].tolist()
    assert row["change"] == sum(parts)
    assert row["causes"] == "unrealised not known"


def stated(n):
    """The account of `reconciled`, which also holds 2 ETH that gained 50, as the service says."""
    one = min(n, 1)
    time = times([MONDAY + MINUTE * n] * one)
    held = {"szi": 2.0, "position_value": 300.0, "unrealized_pnl": 50.0}
    return {
        "accounts": table(one, user=ME, account_value=value_after(n) + 50.0, time=time),
        "positions": table(one, user=ME, coin="ETH", **held),
        **moves(n),
    }


def carried_back_at_scale(frames, result):
    n = len(frames["fills"])
    assert len(result) == 1 + -(-n // 60)
    first, last = result.iloc[0], result.iloc[-1]
    assert last["equity"] == frames["accounts"]["account_value"].item()
    assert (last["realised"], last["flows"]) == (n // 2 - 0.25 * n, 1000.0)
    assert (first["equity"], first["unrealised"], last["unrealised"]) == (50.0, 50.0, 50.0)
    assert (result["equity"] - 50.0 - result["flows"] == result["pnl"]).all()


LOTS = "coin px sz side time start_position"
WALKED = f"{LOTS} closed_pnl"
PAID = "coin px sz side time closed_pnl fee"
FLOWS = {"fills": PAID, "funding": "coin time usdc", "ledger": "time type"}
DECIMALS = {"sz_decimals": {"BTC": 5}}
CASES = [
    Case(
        "pnl.positions",
        fills,
        {"fills": WALKED},
        DECIMALS,
        keys=("time",),
        at_scale=positions_at_scale,
    ),
    Case(
        "pnl.unrealised",
        growing,
        {"fills": WALKED},
        {**DECIMALS, "marks": {"BTC": 102.0}},
        at_scale=unrealised_at_scale,
    ),
    Case("pnl.lots", fills, {"fills": LOTS}, at_scale=lots_at_scale),
    Case("pnl.round_trips", fills, {"fills": f"{WALKED} fee"}, at_scale=trips_at_scale),
    Case(
        "pnl.compare_with_service",
        stated_trades,
        {
            "fills": f"{WALKED} fee",
            "trades": "coin position_type close_time gross_pnl fees funding_pnl net_pnl",
            "summary": "total_pnl total_fees total_funding total_trades win_rate",
        },
        {"funding": None},
        at_scale=compare_at_scale,
    ),
    Case("pnl.equity", fills, {"fills": PAID}, at_scale=equity_at_scale),
    Case(
        "pnl.value",
        fills,
        {"fills": "coin px sz side time start_position fee"},
        {"start": 100.0},
        at_scale=value_at_scale,
    ),
    Case("pnl.drawdown", curve, {"curve": "time pnl"}, at_scale=drawdown_at_scale),
    Case(
        "pnl.reconcile",
        reconciled,
        {"end": "user account_value", **FLOWS},
        {"start": None},
        at_scale=reconcile_at_scale,
    ),
    Case(
        "pnl.carried_back",
        stated,
        {
            "accounts": "user account_value time",
            "positions": "user coin szi position_value unrealized_pnl",
            **FLOWS,
        },
        at_scale=carried_back_at_scale,
    ),
    Case("pnl.attribution", fills, {"fills": PAID}, at_scale=attribution_at_scale),
    Case("pnl.audit", fills, {"fills": WALKED}, DECIMALS, keys=("time",), at_scale=audit_at_scale),
]
