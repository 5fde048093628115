"""Recorded and hand-made rows in every helper that takes such rows.

A helper returns a result or intentionally raises an error of this package. The hand-made rows are
those of docs/live_service.md, sections 1 to 7. Recordings are used if they exist.
"""

import inspect
import json
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolkit as tk
from tests.scale.case import topics
from toolkit.errors import ToolkitError

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
EXAMPLES = Path(__file__).with_name("examples.json")
PACKAGE = str(Path(tk.__file__).parent)
USER, OTHER = "0x" + "a" * 40, "0x" + "b" * 40

Frames = dict[str, pd.DataFrame]

SIZES = {"BTC": 5, "HYPE": 2, "flx:TSLA": 3}
MARKS = {"HYPE": 38.0, "BTC": 29_000.0}
# helper -> its frames, by the names of its parameters
TAKES: Mapping[str, tuple[str, ...]] = {
    "accounts.concentration": ("snapshot",),
    "accounts.leverage": ("snapshot",),
    "accounts.lorenz": ("snapshot",),
    "accounts.migration": ("start_values", "end_values"),
    "accounts.positioning": ("positions",),
    "accounts.values": ("snapshot",),
    "builders.activity": ("fills",),
    "builders.approval_spans": ("approved", "fills"),
    "builders.attach_rate": ("fills",),
    "builders.cohorts": ("fills",),
    "builders.lifetime_value": ("fills",),
    "builders.revenue": ("fills",),
    "builders.routing": ("fills",),
    "execution.copy_trading": ("fills", "prices"),
    "execution.counterparties": ("fills",),
    "execution.fill_quality": ("fills",),
    "execution.impact": ("fills", "prices"),
    "execution.markout": ("fills",),
    "execution.quotes": ("tape",),
    "execution.shortfall": ("orders", "fills", "prices"),
    "execution.spreads": ("fills",),
    "execution.toxicity": ("fills",),
    "funding.accrual": ("funding",),
    "funding.annualised": ("funding",),
    "funding.implied_oracle": ("funding",),
    "funding.oracle_check": ("funding", "fills"),
    "funding.sums": ("funding",),
    "ledger.flows": ("ledger",),
    "ledger.sums": ("ledger",),
    "ledger.unknown": ("ledger",),
    "liquidations.buffers": ("accounts", "positions"),
    "liquidations.fills": ("fills",),
    "liquidations.levels": ("positions",),
    "orders.fill_ratio": ("orders",),
    "orders.mix": ("orders",),
    "orders.time_to_fill": ("orders",),
    "orders.transitions": ("orders",),
    "orders.trigger_delay": ("orders",),
    "pnl.attribution": ("fills",),
    "pnl.audit": ("fills",),
    "pnl.carried_back": ("accounts", "positions", "fills", "funding", "ledger"),
    "pnl.equity": ("fills",),
    "pnl.lots": ("fills",),
    "pnl.positions": ("fills",),
    "pnl.reconcile": ("start", "end", "fills", "funding", "ledger"),
    "pnl.round_trips": ("fills",),
    "pnl.unrealised": ("fills",),
    "twaps.quality": ("fills", "tape"),
}
# helper -> further arguments
ARGUMENTS: Mapping[str, dict[str, Any]] = {
    "builders.attach_rate": {"builder": OTHER},
    "builders.cohorts": {"builder": OTHER},
    "builders.lifetime_value": {"builder": OTHER},
    "builders.routing": {"builder": OTHER},
    "execution.markout": {"horizons": ["1m"]},
    "funding.annualised": {"draws": 19},
    "pnl.audit": {"sz_decimals": SIZES},
    "pnl.positions": {"sz_decimals": SIZES},
    "pnl.unrealised": {"marks": MARKS, "sz_decimals": SIZES},
}
# helper -> why no such row is recorded
NOT_RECORDED: Mapping[str, str] = {
    "auctions.decay": "deploy auctions",
    "depth.consistency": "depth batches",
    "depth.imbalance": "depth batches",
    "depth.profile": "depth batches",
    "depth.resilience": "depth batches",
    "funding.basis": "contexts with times",
    "funding.carry": "slippage samples",
    "liquidations.cascade": "depth batches",
    "performance.leaderboard": "figures that another helper returns",
    "performance.returns": "a curve that another helper returns",
    "performance.sheet": "returns that another helper returns",
    "performance.skill": "returns that another helper returns",
    "performance.trip_sheet": "trips that another helper returns",
    "pnl.drawdown": "a curve that another helper returns",
    "slippage.asymmetry": "slippage samples",
    "slippage.capacity": "slippage samples",
    "slippage.cost": "slippage samples",
    "slippage.curve": "slippage samples",
    "slippage.fit": "slippage samples",
    "slippage.heatmap": "slippage samples",
    "staking.apy": "validator weeks",
    "staking.implied_fee": "validator weeks",
    "staking.rank_stability": "validator weeks",
    "twaps.adherence": "TWAP snapshots",
    "twaps.linked": "TWAP snapshots",
    "twaps.pressure": "TWAP snapshots",
}


def without_notes(value):
    """Return an answer without the notes in the hand-made rows."""
    if isinstance(value, dict):
        return {name: without_notes(part) for name, part in value.items() if name != "about"}
    return [without_notes(part) for part in value] if isinstance(value, list) else value


def examples():
    """Return the frames of each section of the hand-made rows."""
    rows = without_notes(json.loads(EXAMPLES.read_text()))
    state = [frame.assign(user=USER) for frame in tk.frame("clearinghouseState", rows["1_state"])]
    funding = tk.frame("userFunding", rows["5_funding"]).assign(user=USER)
    liquidation = tk.frame("userFills", rows["2_liquidation_fills"])
    result: dict[str, Frames] = {
        "1 state": {"accounts": state[0], "positions": state[1], "snapshot": state[0]},
        "2 liquidated": {"fills": liquidation.iloc[:2]},
        "2 both sides": {"fills": liquidation.assign(user=[USER, USER, OTHER])},
        "3 spot": {"fills": tk.frame("userFills", rows["3_spot_fills"])},
        "5 funding": {"funding": funding},
        "6 fee token": {"fills": tk.frame("userFills", rows["6_fee_token"])},
        "7 conversions": {"fills": tk.frame("userFills", rows["7_outcome_conversions"])},
    }
    every = pd.concat([frames["fills"] for frames in result.values() if "fills" in frames])
    result["1 to 7"] = {
        **result["1 state"],
        "fills": every.assign(user=every["user"].fillna(USER)),
        "funding": funding,
        "ledger": recorded_ledger(),
    }
    return result


def recorded_ledger():
    """Return a deposit and a send without nonce, as the live service writes them."""
    rows = [
        {"type": "deposit", "usdc": "1000.0"},
        {"type": "send", "user": USER, "destination": OTHER, "sourceDex": "", "destinationDex": "",
         "token": "USDC", "amount": "5.0", "usdcValue": "5.0", "fee": "0.0",
         "nativeTokenFee": "0.0", "nonce": None, "feeToken": ""},
    ]  # fmt: skip
    answer = [
        {"time": 1_754_000_000_000 + n, "hash": f"0x{n + 1:064x}", "delta": row}
        for n, row in enumerate(rows)
    ]
    return tk.frame("userNonFundingLedgerUpdates", answer).assign(account=USER)


def recordings():
    """Return the recorded frames; empty without recordings."""
    if not RECORDINGS.exists():
        return {}
    read = {
        name: json.loads((RECORDINGS / f"{name}.json").read_text())["response"]
        for name in (
            *("userFills", "historicalOrders", "userNonFundingLedgerUpdates"),
            *("clearinghouseState", "userFunding"),
        )
    }
    accounts, positions = tk.frame("clearinghouseState", read["clearinghouseState"])
    fills = tk.frame("userFills", read["userFills"])
    return {
        "recorded": {
            "fills": fills,
            "orders": tk.frame("historicalOrders", read["historicalOrders"]),
            "ledger": tk.frame("userNonFundingLedgerUpdates", read["userNonFundingLedgerUpdates"]),
            "accounts": accounts.assign(user=USER),
            "positions": positions.assign(user=USER),
            "funding": tk.frame("userFunding", read["userFunding"]),
            "snapshot": accounts.assign(user=USER),
        }
    }


@pytest.fixture(scope="module", name="sources")
def _sources():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests of the readers cover missing and unknown fields
        yield {name: add_mids(frames) for name, frames in (examples() | recordings()).items()}


def add_mids(frames):
    """Add invented mids at the times of the fills, for helpers that need prices."""
    if "fills" not in frames:
        return frames
    mids = frames["fills"][["coin", "time"]].assign(mid_px=1.001 * frames["fills"]["px"])
    return {**frames, "prices": mids}


def public_helpers():
    return sorted(
        f"{topic}.{name}"
        for topic in topics()
        for name in getattr(tk, topic).__all__
        if inspect.isfunction(getattr(getattr(tk, topic), name))
    )


def test_input_table_lists_every_helper():
    assert sorted([*TAKES, *NOT_RECORDED]) == public_helpers()


# Parameter -> the frame of a source with another name.
STANDS_FOR = {
    "approved": "fills",
    "tape": "fills",
    "end": "accounts",
    "start_values": "snapshot",
    "end_values": "snapshot",
}
# helper -> frames that may be None
MAY_LACK = {
    "pnl.carried_back": {"funding"},
    "pnl.reconcile": {"start", "funding", "ledger"},
}


def call_helper(helper, frames):
    """Call a helper with the frames of a source; missing frames are None."""
    topic, name = helper.split(".")
    given = {name: frames.get(STANDS_FOR.get(name, name)) for name in TAKES[helper]}
    given = {name.removesuffix("_values"): frame for name, frame in given.items()}
    return getattr(getattr(tk, topic), name)(**given, **ARGUMENTS.get(helper, {}))


def is_own_error(error):
    """Return whether this package raised an error intentionally, with a message."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return isinstance(error, ToolkitError | ValueError) and (
        raised.filename.startswith(PACKAGE) and len(str(error)) > 20
    )


@pytest.mark.parametrize("helper", TAKES)
def test_helpers_return_or_raise_own_error(helper, sources):
    tried = 0
    for source, frames in sources.items():
        needed = set(TAKES[helper]) - MAY_LACK.get(helper, set())
        if not {STANDS_FOR.get(name, name) for name in needed} <= set(frames):
            continue
        tried += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = call_helper(helper, frames)
            except Exception as error:
                if not is_own_error(error):
                    raise AssertionError(f"{helper} of {source}: {error!r}") from error
                continue
        assert result is not None, source
    assert tried or not RECORDINGS.exists()


# Golden figures, computed by hand.


def test_liquidated_trip_has_status_and_net(sources):
    """6.2 are opened at 30 and liquidated at 21.2: -54.56 less 0.142848 of fees."""
    trip = tk.pnl.round_trips(sources["2 liquidated"]["fills"], account=USER).iloc[0]
    assert trip["status"] == "liquidated"
    assert trip["net"] == pytest.approx(-54.56 - 0.0837 - 0.059148)


def test_counterparty_is_not_liquidated(sources):
    fills = sources["2 both sides"]["fills"]
    trips = tk.pnl.round_trips(fills[fills["user"] == OTHER])
    assert "liquidated" not in set(trips["status"])


def test_spot_net_equals_cash(sources):
    """-1000 + 1099.23 - 0.769461 = 98.460539."""
    row = tk.pnl.attribution(sources["3 spot"]["fills"]).iloc[0]
    assert row["net"] == pytest.approx(98.460539)


def test_other_collateral_counts_at_par(sources):
    """The collateral counts at par: -4 of closed PnL less 0.0576 of fees."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = tk.pnl.attribution(sources["6 fee token"]["fills"]).iloc[0]
    assert row["net"] == pytest.approx(-4.0576)


def test_conversions_have_no_volume(sources):
    row = tk.pnl.attribution(sources["7 conversions"]["fills"]).iloc[0]
    assert (row["volume"], row["net"]) == (0.0, 0.0)
