"""Ledger rows of every type: what each moves on the perp account and in the spot wallet."""

from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from toolkit.analysis.common.frame_access import open_frame
from toolkit.analysis.pnl.perp_flows import add_perp_flows
from toolkit.analysis.pnl.wallet_flows import add_wallet_flows

from .examples import ME, OTHER, as_numbers

POOL = "0x" + "c" * 40
SEND = {"type": "send", "token": "USDC", "amount": 10.0, "fee": 1.0, "fee_token": ""}
HYPE = {"type": "send", "token": "HYPE", "amount": 3.0, "usdc_value": 90.0, "fee": 0.5}
MOVE = {"type": "spotTransfer", "token": "HYPE", "amount": 4.0, "usdc_value": 120.0, "fee": 0.25}
CLASS = {"type": "accountClassTransfer", "usdc": 4.0}
DEX = {"type": "perpDexClassTransfer", "token": "USDC", "amount": 6.0}
LEAVE = {"type": "vaultWithdraw", "requested_usd": 9.5, "net_withdrawn_usd": 8.0, "commission": 1.5}
LEND = {"type": "borrowLend", "token": "USDC", "amount": 7.0}
STAKE = {"type": "cStakingTransfer", "token": "HYPE", "amount": 11.0}
IN, OUT = {"user": OTHER, "destination": ME}, {"user": ME, "destination": OTHER}
#                                                                                 perp   spot
ROWS: list[tuple[dict[str, Any], float | None, float | None]] = [
    ({"type": "deposit", "usdc": 100.0}, 100, 0),
    ({"type": "deposit"}, None, 0),
    ({"type": "withdraw", "usdc": 50.0, "fee": 1.0}, -51, 0),
    ({"type": "withdraw", "usdc": 50.0}, None, 0),
    ({"type": "internalTransfer", "usdc": 20.0, "fee": 1.0, **OUT}, -21, 0),
    ({"type": "internalTransfer", "usdc": 20.0, "fee": 1.0, **IN}, 20, 0),
    ({"type": "subAccountTransfer", "usdc": 7.0, **IN}, 7, 0),
    ({"type": "subAccountTransfer", "usdc": 7.0, "user": OTHER, "destination": POOL}, None, 0),
    ({"type": "subAccountTransfer", "usdc": 7.0, "user": ME, "destination": ME}, 0, 0),
    ({**CLASS, "to_perp": True}, 4, -4),
    ({**CLASS, "to_perp": False}, -4, 4),
    (CLASS, None, None),
    ({**DEX, "to_perp": True}, 6, -6),
    ({**DEX, "to_perp": False}, -6, 6),
    ({**DEX, "to_perp": True, "token": "USDH", "usdc_value": 5.5}, 5.5, -6),
    ({"type": "vaultCreate", "usdc": 100.0, "fee": 2.0, "vault": POOL}, -102, 0),
    ({"type": "vaultCreate", "usdc": 100.0, "fee": 2.0, "vault": ME}, 100, 0),
    ({"type": "vaultDeposit", "usdc": 30.0, "vault": POOL}, -30, 0),
    ({"type": "vaultDeposit", "usdc": 30.0, "vault": ME}, 30, 0),
    ({"type": "vaultDistribution", "usdc": 3.0, "vault": POOL}, 3, 0),
    ({"type": "vaultDistribution", "usdc": 3.0, "vault": ME}, -3, 0),
    ({**LEAVE, "vault": POOL}, 8, 0),
    ({**LEAVE, "vault": ME}, -9.5, 0),
    ({**LEAVE, "vault": ME, "commission": None}, None, 0),
    ({"type": "vaultLeaderCommission", "usdc": 1.5, "user": ME}, 1.5, 0),
    ({**SEND, **OUT, "source_dex": "", "destination_dex": "spot"}, -11, 0),
    ({**SEND, **OUT, "source_dex": "spot", "destination_dex": ""}, 0, -11),
    ({**SEND, **OUT, "source_dex": "spot", "destination_dex": "", "fee": None}, 0, None),
    ({**SEND, **IN, "source_dex": "spot", "destination_dex": "flx"}, 10, 0),
    ({**SEND, **IN, "source_dex": "", "destination_dex": "spot"}, 0, 10),
    ({**SEND, "user": ME, "destination": ME, "source_dex": "", "destination_dex": "flx"}, -1, 0),
    ({**SEND, "user": ME, "destination": ME, "source_dex": "spot", "destination_dex": ""}, 10, -11),
    ({**SEND, "user": ME, "destination": ME, "source_dex": "", "destination_dex": "spot"}, -11, 10),
    (
        {**SEND, "user": POOL, "destination": OTHER, "source_dex": "", "destination_dex": ""},
        None,
        None,
    ),
    ({**SEND, **OUT, "source_dex": "", "destination_dex": "", "fee_token": "HYPE"}, -10, 0),
    ({**HYPE, **OUT, "source_dex": "", "destination_dex": "", "fee_token": "USDC"}, -90.5, 0),
    (
        {**HYPE, **OUT, "source_dex": "spot", "destination_dex": "spot", "fee_token": "HYPE"},
        0,
        -3.5,
    ),
    ({**HYPE, **OUT, "source_dex": "spot", "destination_dex": "spot", "fee_token": ""}, 0, -3),
    ({**HYPE, **OUT, "source_dex": "", "destination_dex": "", "usdc_value": None}, None, 0),
    ({**MOVE, **OUT, "fee_token": "HYPE"}, 0, -4.25),
    ({**MOVE, **OUT, "fee_token": "USDC"}, 0, -4),
    ({**MOVE, **OUT, "token": "USDC", "fee_token": "USDC"}, 0, -4.25),
    ({**MOVE, **OUT, "token": "USDC", "fee_token": ""}, 0, -4.25),
    ({**MOVE, **IN, "fee_token": "HYPE"}, 0, 4),
    ({**MOVE, "user": ME, "destination": ME, "fee_token": "HYPE"}, 0, -0.25),
    ({**MOVE, "user": POOL, "destination": OTHER, "fee_token": "HYPE"}, 0, None),
    ({"type": "rewardsClaim", "token": "HYPE", "amount": 2.0}, 0, 2),
    ({"type": "spotGenesis", "token": "PURR", "amount": 9.0}, 0, 9),
    ({"type": "deployGasAuction", "token": "HYPE", "amount": 5.0}, 0, -5),
    ({"type": "accountActivationGas", "token": "USDC", "amount": 1.0}, 0, -1),
    ({**STAKE, "is_deposit": True}, 0, -11),
    ({**STAKE, "is_deposit": False}, 0, 11),
    (STAKE, 0, None),
    ({**LEND, "operation": "supply"}, 0, -7),
    ({**LEND, "operation": "withdraw", "interest_amount": 0.5}, 0, 7.5),
    ({**LEND, "operation": "borrow"}, 0, 7),
    ({**LEND, "operation": "repay", "interest_amount": 0.5}, 0, -7.5),
    (LEND, 0, None),
    ({"type": "activateDexAbstraction", "token": "USDC", "amount": 8.0}, 0, 0),
    ({"type": "liquidation", "liquidated_ntl_pos": 4.0}, 0, 0),
    ({"type": "somethingNew", "usdc": 99.0, "user": ME}, None, None),
]
TEXTS = ["user", "destination", "vault", "source_dex", "destination_dex", "token", "fee_token"]


def all_rows():
    frame = pd.DataFrame([row for row, _, _ in ROWS])
    for name in (*TEXTS, "type", "operation"):
        frame[name] = frame[name].astype("str")
    for name in ("to_perp", "is_deposit"):
        frame[name] = frame[name].astype("boolean")
    return frame


def find_flows(frame, kind, account):
    """Return the perp flows, the marks of unknown ones, and the tokens and spot flows."""
    rows = open_frame(as_numbers(frame, kind), "ledger", kind)
    made: Any = add_wallet_flows(add_perp_flows(rows, kind, account), kind)
    return {name: made[name].to_list() for name in ("flow", "unknown", "token", "spot")}


def both_flows(frame, kind, account):
    """Return the perp flows, the spot flows and the marks of unknown perp flows."""
    found = find_flows(frame, kind, account)
    return [
        [None if value is None or value != value else float(value) for value in found[name]]
        for name in ("flow", "spot", "unknown")
    ]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_flows_of_every_type_by_hand(kind):
    """Seen from ME: fees in addition, the pool's side, and what is not known is not zero."""
    frame = all_rows()
    perp, spot = [perp for _, perp, _ in ROWS], [spot for _, _, spot in ROWS]
    expected = [perp, spot, [float(amount is None) for amount in perp]]
    assert both_flows(frame, kind, ME.upper()) == expected
    assert both_flows(frame.assign(account=ME.upper()), kind, None) == expected
    assert both_flows(frame.assign(account=OTHER), kind, ME) == expected


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_flows_without_amount_column_are_unknown(kind):
    """Without fees there is none; directions and amounts without a column are not known."""
    kinds = [
        "deposit",
        "withdraw",
        "accountClassTransfer",
        "send",
        "cStakingTransfer",
        "borrowLend",
    ]
    frame = pd.DataFrame({"type": kinds, "usdc": [5.0, 3.0, 4.0, 2.0, 1.0, 7.0]})
    for given in (frame, frame.assign(account=pd.array([None] * len(frame), dtype="str"))):
        perp, spot, unknown = both_flows(given, kind, None)
        assert perp == [5, -3, None, None, 0, 0]
        assert spot == [0, 0, None, None, None, None]
        assert unknown == [0, 0, 1, 1, 0, 0]


def test_wallet_flows_are_exact():
    """No amount becomes a float on its way, and a row without a token moves USDC."""
    rows = [
        {**LEND, "operation": "repay", "amount": 0.1, "interest_amount": 0.2},
        {**MOVE, **OUT, "amount": 0.1, "fee": 0.7, "fee_token": "HYPE"},
        {**CLASS, "usdc": 0.3, "to_perp": False},
        {"type": "rewardsClaim", "token": "HYPE", "amount": 0.6},
    ]
    frame = pd.DataFrame(rows)
    frame["token"] = pd.array(["USDC", "HYPE", None, "HYPE"], dtype="str")
    found = find_flows(frame, "exact", ME)
    assert found["spot"] == [Decimal(text) for text in ("-0.3", "-0.8", "0.3", "0.6")]
    assert found["token"] == ["USDC", "HYPE", "USDC", "HYPE"]
    assert found["flow"] == [0, 0, Decimal("-0.3"), 0]
