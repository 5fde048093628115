"""Recorded and hand-made rows in every helper that takes such rows.

A helper returns a result or intentionally raises an error of this package. The hand-made rows are
those of docs/live_service.md, sections 1 to 7. Recordings are used if they exist.
"""

import inspect
import json
import traceback
import warnings
from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from tests.reality.conftest import read_examples
from tests.scale.case import topics
from toolkit import pnl
from toolkit.errors import ToolkitError

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
PACKAGE = str(Path(tk.__file__).parent)
USER, OTHER = "0x" + "a" * 40, "0x" + "b" * 40

SIZES = {"BTC": 5, "HYPE": 2, "flx:TSLA": 3}
MARKS = {"HYPE": 38.0, "BTC": 29_000.0}
# helper -> further arguments
ARGUMENTS = {
    **{
        f"builders.{name}": {"builder": OTHER}
        for name in ("attach_rate", "cohorts", "lifetime_value", "routing")
    },
    "execution.markout": {"horizons": ["1m"]},
    "funding.annualised": {"draws": 19},
    "pnl.audit": {"sz_decimals": SIZES},
    "pnl.positions": {"sz_decimals": SIZES},
    "pnl.unrealised": {"marks": MARKS, "sz_decimals": SIZES},
}
# parameters whose frames no recording has
NOT_RECORDED = {"contexts", "depth", "history", "impact", "samples", "status", "trades", "twaps"}
NOT_RECORDED |= {"followers", "portfolio", "vault"}
NOT_RECORDED |= {"curve", "figures", "returns", "trips"}  # the figures of another helper


def list_inputs():
    """Return the names of the frames of each helper that needs only recorded ones."""
    found = {
        "accounts.migration": ["start_values", "end_values"],
        "builders.approval_spans": ["approved", "fills"],
    }
    for topic in topics():
        for name, helper in inspect.getmembers(getattr(tk, topic), inspect.isfunction):
            given = ARGUMENTS.get(f"{topic}.{name}", {})
            parameters = inspect.signature(helper).parameters.values()
            takes = [each.name for each in parameters if each.default is each.empty]
            if name in getattr(tk, topic).__all__ and not NOT_RECORDED & set(takes):
                found.setdefault(f"{topic}.{name}", [each for each in takes if each not in given])
    return found


TAKES = list_inputs()


def examples():
    """Return the frames of each section of the hand-made rows."""
    rows = read_examples()
    state = [frame.assign(user=USER) for frame in tk.frame("clearinghouseState", rows["1_state"])]
    funding = tk.frame("userFunding", rows["5_funding"]).assign(user=USER)
    liquidation = tk.frame("userFills", rows["2_liquidation_fills"])
    fills = {
        "2 both sides": liquidation.assign(user=[USER, USER, OTHER]),
        "3 spot": tk.frame("userFills", rows["3_spot_fills"]),
        "6 fee token": tk.frame("userFills", rows["6_fee_token"]),
        "7 conversions": tk.frame("userFills", rows["7_outcome_conversions"]),
    }
    every = pd.concat(fills.values())
    whole = {"accounts": state[0], "positions": state[1], "snapshot": state[0], "funding": funding}
    whole |= {"fills": every.assign(user=every["user"].fillna(USER)), "ledger": recorded_ledger()}
    return {name: {"fills": frame} for name, frame in fills.items()} | {"1 to 7": whole}


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


def recorded(operation):
    """Return a recorded frame; skip if there are no recordings."""
    path = RECORDINGS / f"{operation}.json"
    if not path.exists():
        pytest.skip(f"no recording {operation}")
    return tk.frame(operation, json.loads(path.read_text())["response"])


def recordings():
    """Return the recorded frames; empty without recordings."""
    if not RECORDINGS.exists():
        return {}
    accounts, positions = (frame.assign(user=USER) for frame in recorded("clearinghouseState"))
    frames = {
        "fills": recorded("userFills"),
        "orders": recorded("historicalOrders"),
        "ledger": recorded("userNonFundingLedgerUpdates"),
        "funding": recorded("userFunding"),
    }
    states = {"accounts": accounts, "positions": positions, "snapshot": accounts}
    return {"recorded": frames | states}


def add_mids(frames):
    """Add invented mids at the times of the fills, for helpers that need prices."""
    if "fills" not in frames:
        return frames
    mids = frames["fills"][["coin", "time"]].assign(mid_px=1.001 * frames["fills"]["px"])
    return {**frames, "prices": mids}


# Parameter -> the frame of a source with another name.
STANDS_FOR = {
    "approved": "fills",
    "tape": "fills",
    "end": "accounts",
    "start_values": "snapshot",
    "end_values": "snapshot",
}
# helper -> frames that may be None
MAY_LACK = {"pnl.carried_back": {"funding"}, "pnl.reconcile": {"start", "funding", "ledger"}}


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


def outcome(helper, frames):
    """Return what is wrong with the helper's result, or None."""
    try:
        return "no result" if call_helper(helper, frames) is None else None
    except Exception as error:
        return None if is_own_error(error) else repr(error)


def test_helpers_return_or_raise_own_error():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests of the readers cover missing and unknown fields
        sources = {name: add_mids(frames) for name, frames in (examples() | recordings()).items()}
        found = {
            (helper, source): outcome(helper, frames)
            for helper, takes in TAKES.items()
            for source, frames in sources.items()
            if {STANDS_FOR.get(name, name) for name in set(takes) - MAY_LACK.get(helper, set())}
            <= set(frames)
        }
    assert {key: wrong for key, wrong in found.items() if wrong} == {}
    assert {helper for helper, _ in found} == set(TAKES) or not RECORDINGS.exists()


PNL = {
    "attribution": lambda fills: pnl.attribution(fills, by=["coin", "dir"]),
    "audit": lambda fills: pnl.audit(fills, SIZES),
    "positions": lambda fills: pnl.positions(fills, SIZES),
    "unrealised": lambda fills: pnl.unrealised(fills, {"HYPE": 25.0, "flx:TSLA": 245.0}, SIZES),
    "fifo": lambda fills: pnl.lots(fills, "fifo"),
    "lifo": lambda fills: pnl.lots(fills, "lifo"),
    "average": lambda fills: pnl.lots(fills, "average"),
    "round_trips": pnl.round_trips,
    "equity": pnl.equity,
}
SECTIONS = ("2_liquidation_fills", "3_spot_fills", "6_fee_token", "7_outcome_conversions")
GAINS = ("closed_pnl", "expected_closed_pnl", "gross", "realised")


@pytest.mark.parametrize("section", SECTIONS)
def test_helpers_keep_closed_pnl_of_rows(section):
    """The gains of helpers equal those of the rows, and the audit confirms them."""
    rows = read_examples()[section]
    fills = tk.frame("userFills", rows[:2] if section.startswith("2") else rows)  # no counterparty
    results = {name: helper(fills) for name, helper in PNL.items()}
    assert (results["audit"]["difference"] == 0).all()
    sums = {
        (helper, name): result[name].sum()
        for helper, result in results.items()
        for name in GAINS
        if name in result and helper != "equity" and len(result)
    }
    assert len(sums) > 3
    assert sums == pytest.approx(dict.fromkeys(sums, fills["closed_pnl"].sum()))


def test_recorded_fills_of_2023_have_known_pnl():
    """500 fills of five minutes lack trade ids, fee tokens and transaction indexes."""
    fills = recorded("userFills")
    row = pnl.attribution(fills).iloc[0]
    assert (row["fills"], row["missing_amounts"], row["unpriced_fees"]) == (500, 0, 0)
    assert row["net"] == pytest.approx(-152.586132)
    trips = pnl.round_trips(fills)
    assert trips["gross"].sum() == pytest.approx(-152.586132)
    unknown = trips["status"].isin(["late", "broken"])
    assert unknown.sum() == 193
    assert trips.loc[unknown, ["entry_px", "return_"]].isna().all(axis=None)
    assert trips.loc[~unknown, "return_"].notna().all()
    assert pnl.positions(fills, {})["chain_break"].sum() == 167
    assert pnl.lots(fills).loc[lambda lots: lots["opened"].isna(), "realised"].isna().all()
