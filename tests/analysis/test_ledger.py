"""The ledger: by type, as identities, and both pockets of every simulated account."""

import pandas as pd
import pytest

import toolkit.ledger as topic
from toolkit.analysis.pnl.ledger import flows, sums, unknown
from toolkit.simulation import World

from .examples import DAY, ME, MONDAY, OTHER, as_numbers, ledger, times
from .simulated import everybody

NAN = float("nan")
KINDS = ("float", "exact")
#      row                                                            perp, spot, usd
TYPED = [
    ({"type": "deposit", "usdc": 10.0}, 10, 0, 10),
    ({"type": "withdraw", "usdc": 10.0, "fee": 1.0}, -11, 0, -11),
    ({"type": "withdraw", "usdc": 10.0, "fee": NAN}, None, None, None),
    ({"type": "deposit", "usdc": 10.0, "fee": NAN}, 10, 0, 10),
    ({"type": "vaultWithdraw", "net_withdrawn_usd": 4.0, "vault": ME, "commission": NAN},
     None, None, None),
    ({"type": "vaultWithdraw", "net_withdrawn_usd": 4.0, "vault": OTHER, "commission": NAN},
     4, 0, 4),
    ({"type": "accountClassTransfer", "usdc": 4.0, "to_perp": True}, 4, -4, 0),
    ({"type": "accountClassTransfer", "usdc": 4.0, "to_perp": False}, -4, 4, 0),
    ({"type": "accountClassTransfer", "usdc": 4.0}, None, None, None),
    ({"type": "perpDexClassTransfer", "token": "USDC", "amount": 4.0, "to_perp": True}, 4, -4, 0),
    ({"type": "liquidation", "liquidated_ntl_pos": 500.0, "usdc": 500.0}, 0, 0, 0),
    ({"type": "rewardsClaim", "token": "USDC", "amount": 3.0}, 0, 3, 3),
    ({"type": "rewardsClaim", "token": "HYPE", "amount": 3.0}, 0, 3, None),
    ({"type": "spotGenesis", "token": "PURR", "amount": -3.0, "usdc_value": -6.0}, 0, -3, 6),
    ({"type": "deployGasAuction", "token": "HYPE", "amount": 3.0}, 0, -3, None),
    ({"type": "accountActivationGas", "token": "USDC", "amount": 1.0}, 0, -1, -1),
    ({"type": "cStakingTransfer", "token": "HYPE", "amount": 2.0, "is_deposit": True}, 0, -2, None),
    ({"type": "cStakingTransfer", "token": "HYPE", "amount": 2.0, "is_deposit": False}, 0, 2, None),
    ({"type": "borrowLend", "token": "USDC", "amount": 2.0, "operation": "supply"}, 0, -2, -2),
    (
        {"type": "borrowLend", "token": "USDC", "amount": 2.0, "operation": "withdraw"}
        | {"interest_amount": 0.5},
        0, 2.5, 2.5,
    ),
    ({"type": "borrowLend", "token": "USDC", "amount": 2.0, "operation": "odd"}, None, None, None),
    ({"type": "vaultDeposit", "usdc": 5.0, "vault": OTHER}, -5, 0, -5),
    ({"type": "somethingNew", "usdc": 5.0}, None, None, None),
    ({"type": "borrowLendBackstopLiquidation"}, None, None, None),
]  # fmt: skip
SPOT = {"type": "spotTransfer", "token": "HYPE", "amount": 2.0, "usdc_value": 90.0, "fee": 0.5}
SEND = {"type": "send", "token": "USDC", "amount": 10.0, "fee": 1.0, "fee_token": ""}
SENT = [
    (SPOT | {"user": ME, "destination": OTHER, "fee_token": "HYPE"}, 0, -2.5, -90),
    (SPOT | {"user": OTHER, "destination": ME, "fee_token": "HYPE"}, 0, 2, 90),
    (SPOT | {"user": OTHER, "destination": "0xc"}, None, None, None),
    (SEND | {"user": ME, "destination": OTHER, "source_dex": "spot", "destination_dex": "spot"},
     0, -11, -11),
    (SPOT | {"user": ME, "destination": OTHER, "fee_token": "HYPE", "fee": NAN}, None, None, None),
    (SPOT | {"user": OTHER, "destination": ME, "fee_token": "HYPE", "fee": NAN}, 0, 2, 90),
    (SEND | {"user": ME, "destination": OTHER, "source_dex": "", "destination_dex": "spot"}
     | {"fee": NAN}, None, None, None),
    (SEND | {"user": OTHER, "destination": ME, "source_dex": "", "destination_dex": "spot"},
     0, 10, 10),
    (SEND | {"user": ME, "destination": OTHER, "source_dex": "", "destination_dex": "spot"},
     -11, 0, -11),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("row", "perp", "spot", "usd"), [*TYPED, *SENT])
def test_each_type_of_update(
    kind: str, row: dict, perp: float | None, spot: float | None, usd: float | None
) -> None:
    frame = as_numbers(pd.DataFrame([{"time": times([MONDAY])[0], **row}]), kind)
    result = flows(frame, account=ME).iloc[0]
    found = [
        None if pd.isna(result[name]) else float(result[name]) for name in ("perp", "spot", "usd")
    ]
    assert found == [perp, spot, usd]
    assert result["known"] == (perp is not None)
    assert result["account"] == ME.lower()


@pytest.mark.parametrize("kind", KINDS)
def test_net_deposits_by_hand(kind: str) -> None:
    """1000 - 51 - 21 + 7 came in; 5 only changed the pocket; one type nobody knows."""
    row = sums(as_numbers(ledger(), kind), by=None, account=ME).iloc[0]
    wanted = {"updates": 7, "perp": 930, "spot_usdc": 5, "deposits": 1007, "withdrawals": -72}
    wanted |= {"net_deposits": 935, "unpriced": 0, "unknown": 1}
    assert {name: float(row[name]) for name in wanted} == wanted
    days = sums(as_numbers(ledger(), kind), by="day", account=ME)
    assert list(days["day"]) == list(times([MONDAY]))
    assert days["net_deposits"].sum() == row["net_deposits"]


def test_unknown_types_are_named() -> None:
    rows = pd.concat([ledger(), ledger().assign(time=lambda one: one["time"] + pd.Timedelta("1D"))])
    result = unknown(rows, account=ME)
    assert result["type"].tolist() == ["somethingNew"]
    assert result["reason"].tolist() == ["unknown type"]
    assert result["updates"].tolist() == [2]
    assert (result["last"] - result["first"]).iloc[0].total_seconds() * 1000 == DAY
    assert (
        "internalTransfer"
        in unknown(rows.drop(columns="user").assign(destination=None))["type"].tolist()
    )


def test_several_accounts_in_one_frame() -> None:
    both = pd.concat([ledger().assign(account=ME), ledger().assign(account=OTHER)])
    frame = sums(both, by="account").set_index("account")
    assert frame.loc[ME, "perp"] == 930
    assert frame.loc[OTHER.lower(), "perp"] == 1000 - 51 + 20 - 5 - 7


def test_public_names() -> None:
    assert dir(topic) == ["flows", "sums", "unknown"]


def test_flows_of_simulated_accounts(world: World) -> None:
    """Perp account in USD, and every token of the wallet, to the last digit."""
    tables = everybody(world)
    rows = flows(tables.ledger)
    assert rows["known"].sum() == len(rows) - 1
    assert unknown(tables.ledger)["type"].tolist() == ["borrowLendBackstopLiquidation"]
    known = rows[rows["known"]]
    by_token = known.groupby(["account", "token"])["spot"].sum()
    perp = known.groupby("account")["perp"].sum()
    for user, truth in (world.expected | world.expected_mixed).items():
        assert perp.get(user, 0) == truth.ledger
        for token, kept in truth.tokens.items():
            assert by_token.get((user, token), 0) == kept.ledger
    liquidations = known[known["type"] == "liquidation"]
    assert len(liquidations) > 0
    assert (liquidations[["perp", "spot", "usd"]] == 0).all().all()
