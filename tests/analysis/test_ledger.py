"""The ledger: each type by hand, sums, identities, and both pockets of simulated accounts."""

import numpy as np
import pandas as pd
import pytest

import toolkit.ledger as topic
from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.ledger import flows, sums, unknown
from toolkit.prepare.door import Names, Table
from toolkit.prepare.ledger import Movements

from .examples import DAY, HOUR, ME, MONDAY, OTHER, ledger, times

POOL = "0x" + "c" * 40
IN, OUT, OWN = (
    {"user": user, "destination": to} for user, to in ((OTHER, ME), (ME, OTHER), (ME, ME))
)
STRANGERS = {"user": POOL, "destination": OTHER}
SEND = {"type": "send", "token": "USDC", "amount": 10.0, "fee": 1.0, "fee_token": ""}
HYPE = {"type": "send", "token": "HYPE", "amount": 3.0, "usdc_value": 90.0, "fee": 0.5}
MOVE = {"type": "spotTransfer", "token": "HYPE", "amount": 4.0, "usdc_value": 120.0, "fee": 0.25}
CLASS = {"type": "accountClassTransfer", "usdc": 4.0}
DEX = {"type": "perpDexClassTransfer", "token": "USDC", "amount": 6.0}
LEAVE = {"type": "vaultWithdraw", "requested_usd": 9.5, "net_withdrawn_usd": 8.0, "commission": 1.5}
LEND = {"type": "borrowLend", "token": "USDC", "amount": 7.0}
STAKE = {"type": "cStakingTransfer", "token": "HYPE", "amount": 11.0}
INTERNAL = {"type": "internalTransfer", "usdc": 20.0, "fee": 1.0}
SUB = {"type": "subAccountTransfer", "usdc": 7.0}
PERP = {"source_dex": "", "destination_dex": ""}
TO_SPOT, OF_SPOT = PERP | {"destination_dex": "spot"}, PERP | {"source_dex": "spot"}
IN_SPOT = {"source_dex": "spot", "destination_dex": "spot"}
# Seen from ME: fees in addition, the pool's side; None is not known, and not zero.
ROWS = [  # row, perp in USD, spot in tokens, the entire account in USD
    ({"type": "deposit", "usdc": 100.0}, 100, 0, 100),
    ({"type": "deposit"}, None, 0, None),
    ({"type": "withdraw", "usdc": 50.0, "fee": 1.0}, -51, 0, -51),
    ({"type": "withdraw", "usdc": 50.0}, None, 0, None),
    (INTERNAL | OUT, -21, 0, -21),
    (INTERNAL | IN, 20, 0, 20),
    (SUB | IN, 7, 0, 7),
    (SUB | STRANGERS, None, 0, None),
    (SUB | OWN, 0, 0, 0),
    (CLASS | {"to_perp": True}, 4, -4, 0),
    (CLASS | {"to_perp": False}, -4, 4, 0),
    (CLASS, None, None, None),
    (DEX | {"to_perp": True}, 6, -6, 0),
    (DEX | {"to_perp": False}, -6, 6, 0),
    (DEX | {"to_perp": True, "token": "USDH", "usdc_value": 5.5}, 5.5, -6, 0),
    ({"type": "vaultCreate", "usdc": 100.0, "fee": 2.0, "vault": POOL}, -102, 0, -102),
    ({"type": "vaultCreate", "usdc": 100.0, "fee": 2.0, "vault": ME}, 100, 0, 100),
    ({"type": "vaultDeposit", "usdc": 30.0, "vault": POOL}, -30, 0, -30),
    ({"type": "vaultDeposit", "usdc": 30.0, "vault": ME}, 30, 0, 30),
    ({"type": "vaultDistribution", "usdc": 3.0, "vault": POOL}, 3, 0, 3),
    ({"type": "vaultDistribution", "usdc": 3.0, "vault": ME}, -3, 0, -3),
    (LEAVE | {"vault": POOL}, 8, 0, 8),
    (LEAVE | {"vault": ME}, -9.5, 0, -9.5),
    (LEAVE | {"vault": POOL, "commission": None}, 8, 0, 8),
    (LEAVE | {"vault": ME, "commission": None}, None, 0, None),
    ({"type": "vaultLeaderCommission", "usdc": 1.5, "user": ME}, 1.5, 0, 1.5),
    ({"type": "vaultLeaderCommission", "usdc": 1.5, "user": OTHER}, 0, 0, 0),
    (DEX | {"to_perp": True, "token": "USDE"}, 6, -6, 0),
    (HYPE | OUT | IN_SPOT | {"token": "PURR", "fee": 0.0, "native_token_fee": 0.1}, 0, -3, None),
    (SEND | OUT | TO_SPOT, -11, 0, -11),
    (SEND | OUT | OF_SPOT, 0, -11, -11),
    (SEND | OUT | IN_SPOT, 0, -11, -11),
    (SEND | OUT | OF_SPOT | {"fee": None}, 0, None, None),
    (SEND | OUT | TO_SPOT | {"fee": None}, None, 0, None),
    (SEND | IN | {"source_dex": "spot", "destination_dex": "flx"}, 10, 0, 10),
    (SEND | IN | TO_SPOT, 0, 10, 10),
    (SEND | OWN | {"source_dex": "", "destination_dex": "flx"}, -1, 0, -1),
    (SEND | OWN | OF_SPOT, 10, -11, -1),
    (SEND | OWN | TO_SPOT, -11, 10, -1),
    (SEND | STRANGERS | PERP, None, None, None),
    (SEND | OUT | PERP | {"fee_token": "HYPE"}, -10, 0, -10),
    (HYPE | OUT | PERP | {"fee_token": "USDC"}, -90.5, 0, -90.5),
    (HYPE | OUT | IN_SPOT | {"fee_token": "HYPE"}, 0, -3.5, -105),
    (HYPE | OUT | IN_SPOT | {"fee_token": ""}, 0, -3, -90),
    (HYPE | OUT | PERP | {"usdc_value": None}, None, 0, None),
    (HYPE | OUT | PERP | {"fee_token": "HYPE"}, -105, 0, -105),
    (MOVE | OUT | {"fee_token": "HYPE"}, 0, -4.25, -127.5),
    (MOVE | OUT | {"fee_token": "USDC"}, 0, -4, -120.25),
    (MOVE | OUT | {"fee": 0.0, "native_token_fee": 0.5}, 0, -4.5, -135),
    (MOVE | OUT | {"token": "USDC", "fee_token": "USDC"}, 0, -4.25, -4.25),
    (MOVE | OUT | {"token": "USDC", "fee_token": ""}, 0, -4.25, -4.25),
    (MOVE | OUT | {"fee": None, "fee_token": "HYPE"}, 0, None, None),
    (MOVE | IN | {"fee": None, "fee_token": "HYPE"}, 0, 4, 120),
    (MOVE | OWN | {"fee_token": "HYPE"}, 0, -0.25, -7.5),
    (MOVE | STRANGERS | {"fee_token": "HYPE"}, 0, None, None),
    ({"type": "rewardsClaim", "token": "HYPE", "amount": 2.0}, 0, 2, None),
    ({"type": "rewardsClaim", "token": "USDC", "amount": 3.0}, 0, 3, 3),
    ({"type": "spotGenesis", "token": "PURR", "amount": -3.0, "usdc_value": -6.0}, 0, -3, 6),
    ({"type": "deployGasAuction", "token": "HYPE", "amount": 5.0}, 0, -5, None),
    ({"type": "accountActivationGas", "token": "USDC", "amount": 1.0}, 0, -1, -1),
    (STAKE | {"is_deposit": True}, 0, -11, None),
    (STAKE | {"is_deposit": False}, 0, 11, None),
    (STAKE, 0, None, None),
    (LEND | {"operation": "supply"}, 0, -7, -7),
    (LEND | {"operation": "withdraw", "interest_amount": 0.5}, 0, 7.5, 7.5),
    (LEND | {"operation": "borrow"}, 0, 7, 7),
    (LEND | {"operation": "supply", "interest_amount": 0.5}, 0, -7, -7),  # it had accrued before
    (LEND | {"operation": "borrow", "interest_amount": 0.5}, 0, 7, 7),
    (LEND | {"operation": "repay", "interest_amount": 0.5}, 0, -7.5, -7.5),
    (LEND | {"operation": "odd"}, 0, None, None),
    (LEND, 0, None, None),
    ({"type": "activateDexAbstraction", "token": "USDC", "amount": 8.0}, 0, 0, 0),
    ({"type": "liquidation", "liquidated_ntl_pos": 4.0, "usdc": 500.0}, 0, 0, 0),
    ({"type": "somethingNew", "usdc": 99.0, "user": ME}, None, None, None),
    ({"type": "borrowLendBackstopLiquidation"}, None, None, None),
]
TEXTS = ["type", "operation", "user", "destination", "vault", "source_dex", "destination_dex"]
TEXTS += ["token", "fee_token"]


def listed(frame, *names):
    """Return rows of numbers, with None for a missing one."""
    rows = frame[list(names)].to_numpy("float64", na_value=float("nan")).tolist()
    return [tuple(None if value != value else value for value in row) for row in rows]


def parts_of(frame, account):
    """Return the flows of perp account and spot wallet, before either hides the other."""
    table = Table(frame, "ledger")
    owner = Names(np.zeros(len(table), dtype=np.int64), [account or ""])
    if account is None and table.has("account"):
        owner = table.text("account")
    made = Movements(table, owner)
    rows = pd.DataFrame({"perp": made.perp, "spot": made.spot, "unknown": np.isnan(made.perp)})
    return listed(rows, "perp", "spot", "unknown")


def test_flows_of_every_type_by_hand():
    frame = pd.DataFrame([row for row, *_ in ROWS])
    frame = frame.astype(dict.fromkeys(TEXTS, "str") | {"to_perp": "boolean"})
    frame = frame.astype({"is_deposit": "boolean"}).assign(time=times([MONDAY] * len(ROWS)))
    parts = [(perp, spot, perp is None) for _, perp, spot, _ in ROWS]
    for given, account in (
        (frame, ME.upper()),
        (frame.assign(account=ME.upper()), None),
        (frame.assign(account=OTHER), ME),
    ):
        assert parts_of(given, account) == parts
    result = flows(frame, account=ME)
    assert result["account"].unique().tolist() == [ME.lower()]
    known = [None not in row[1:3] for row in ROWS]
    assert result["known"].tolist() == known
    assert listed(result, "perp", "spot", "usd") == [
        tuple(amounts) if shown else (None,) * 3
        for (_, *amounts), shown in zip(ROWS, known, strict=True)
    ]


def test_flows_without_amount_column_are_unknown():
    """Without fees there is none; directions and amounts without a column are not known."""
    frame = pd.DataFrame(
        [("deposit", 5.0), ("withdraw", 3.0), ("accountClassTransfer", 4.0), ("send", 2.0),
         ("cStakingTransfer", 1.0), ("borrowLend", 7.0)], columns=["type", "usdc"],
    )  # fmt: skip
    nobody = pd.array([None] * len(frame), dtype="str")
    wanted = [(5, 0, 0), (-3, 0, 0), (None, None, 1), (None, None, 1), (0, None, 0), (0, None, 0)]
    assert parts_of(frame, None) == parts_of(frame.assign(account=nobody), None) == wanted
    bare = ledger().drop(columns="user").assign(destination=None)
    assert "internalTransfer" in unknown(bare, account=ME)["type"].tolist()


#   account hours type            amounts
MOVES = [
    (ME, 0, "deposit", {"usdc": 100.0}),
    (OTHER, 0, "deposit", {"usdc": 7.0}),
    (ME, 1, "withdraw", {"usdc": 50.0, "fee": 1.0}),
    (ME, 2, "rewardsClaim", {"token": "HYPE", "amount": 3.0}),  # without a price
    (OTHER, 2, "rewardsClaim", {"token": "HYPE", "amount": 0.5, "usdc_value": 90.0}),
    (ME, 3, "deployGasAuction", {"token": "HYPE", "amount": 0.5, "usdc_value": 20.0}),
    (ME, 3, "rewardsClaim", {"token": "USDC", "amount": 4.0}),
    (ME, 3, "accountClassTransfer", {"usdc": 5.0, "to_perp": False}),
    (OTHER, 4, "accountClassTransfer", {"usdc": 3.0, "to_perp": True}),
    (ME, 5, "deposit", {"usdc": 0.5}),
    (ME, 5, "withdraw", {"usdc": 0.25, "fee": 0.25}),
    (OTHER, 26, "withdraw", {"usdc": 2.0, "fee": 0.25}),
    (OTHER, 26, "deployGasAuction", {"token": "HYPE", "amount": 1.0}),  # without a price
    (OTHER, 27, "rewardsClaim", {"token": "PURR", "amount": 8.0}),  # without a price
    (ME, 27, "new", {"usdc": 64.0}),
    (OTHER, 27, "new", {"usdc": 32.0}),
    (OTHER, 28, "newer", {"usdc": 16.0}),
    (OTHER, 29, "deposit", {}),
    (OTHER, 30, "deposit", {}),
]
FIRST, SECOND = times([MONDAY, MONDAY + DAY])
#                   updates perp spot_usdc in    out     net  income unpriced unknown
TOTALS = {ME.lower(): (9, 44, 9, 100.5, -51.5, 49, -16, 1, 1),
          OTHER.lower(): (10, 7.75, -3, 7, -2.25, 4.75, 90, 2, 4)}  # fmt: skip
BY_TOKEN = {"HYPE": (4, 0, 0, 0, 0, 0, 70, 2, 0), "PURR": (1, 0, 0, 0, 0, 0, 0, 1, 0),
            "USDC": (14, 51.75, 6, 107.5, -53.75, 53.75, 4, 0, 5)}  # fmt: skip
BY_DAY = {FIRST: (11, 54, 6, 107.5, -51.5, 56, 74, 1, 0),
          SECOND: (8, -2.25, 0, 0, -2.25, -2.25, 0, 2, 5)}  # fmt: skip
SUMS = ["updates", "perp", "spot_usdc", "deposits", "withdrawals", "net_deposits", "income"]
SUMS += ["unpriced", "unknown"]


def moves():
    frame = pd.DataFrame([amounts for *_, amounts in MOVES])
    frame = frame.astype({"token": "str", "to_perp": "boolean"})
    frame.insert(0, "type", [row[2] for row in MOVES])
    frame.insert(0, "time", times(MONDAY + row[1] * HOUR for row in MOVES))
    return frame.assign(account=[row[0] for row in MOVES])


def test_sums_of_two_accounts():
    """Prices are those of the rows; rows without a price or a known amount are counted only."""
    for key, wanted in (("account", TOTALS), ("token", BY_TOKEN), ("day", BY_DAY)):
        rows = sums(moves(), by=key)
        assert dict(zip(rows[key], listed(rows, *SUMS), strict=True)) == wanted
    assert {str(rows[name].dtype) for name in ("updates", "unpriced", "unknown")} == {"int64"}
    assert {str(rows[name].dtype) for name in SUMS[1:7]} == {"float64"}
    assert rows.attrs["toolkit"]["by"] == ["day"]
    for name, total in TOTALS.items():
        assert listed(sums(moves(), by=None, account=name), *SUMS) == [total]
    assert listed(sums(moves()[:0], by=None), *SUMS) == [(0,) * len(SUMS)]
    # 1000 - 51 - 21 + 7 came in; 5 only changed the pocket; nobody knows one type.
    row = sums(ledger(), by=None, account=ME)
    assert listed(row, *SUMS) == [(7, 930, 5, 1007, -72, 935, 0, 0, 1)]


def test_unknown_updates_of_two_accounts_by_hand():
    def found(**named):
        rows = unknown(moves(), **named)
        assert str(rows["updates"].dtype) == "int64"
        hours = [(rows[name] - FIRST) // pd.Timedelta("1h") for name in ("first", "last")]
        return list(zip(rows["type"], rows["reason"], rows["updates"], *hours, strict=True))

    lost, new = "amount or direction missing", "unknown type"
    assert found() == [
        ("deposit", lost, 2, 29, 30), ("new", new, 2, 27, 27), ("newer", new, 1, 28, 28),
    ]  # fmt: skip
    assert found(account=ME.upper()) == [("new", new, 1, 27, 27)]


def test_token_without_price_is_the_reason():
    """The amount and the direction of the row are there."""
    row = DEX | {"to_perp": True, "token": "FLX", "time": FIRST}
    assert unknown(pd.DataFrame([row]))["reason"].tolist() == ["price of the token missing"]
    lost = unknown(pd.DataFrame([row | {"to_perp": None}]))
    assert lost["reason"].tolist() == ["amount or direction missing"]
    assert unknown(pd.DataFrame([INTERNAL | IN | {"time": FIRST}]))["reason"].tolist() == [
        "account not known"
    ]


def test_vaults_loans_and_income_are_no_deposits():
    """200 and 300 go into two vaults; 150 come back from the first, of which 120 were put in.

    The second pays out 310, the rest of a loan of 90 is repaid with 2 of interest, and 40 of 60
    that come back from a third vault were put in before the rows begin.
    """
    into, back = {"type": "vaultDeposit"}, LEAVE | {"user": ME}
    rows = [
        {"type": "deposit", "usdc": 1000.0}, into | {"usdc": 200.0, "vault": POOL},
        into | {"usdc": 300.0, "vault": OTHER}, LEND | {"operation": "borrow", "amount": 90.0},
        back | {"vault": POOL, "net_withdrawn_usd": 150.0, "basis": 120.0},
        {"type": "vaultDistribution", "usdc": 310.0, "vault": OTHER},
        LEND | {"operation": "repay", "amount": 92.0},
        back | {"vault": ME[:-1] + "0", "net_withdrawn_usd": 60.0, "basis": 40.0},
        {"type": "vaultLeaderCommission", "usdc": 7.0, "user": OTHER},
    ]  # fmt: skip
    frame = pd.DataFrame(rows).assign(time=times(range(len(rows))))
    made = sums(frame, by=None, account=ME)
    names = ["perp", "spot_usdc", "deposits", "withdrawals", "income", "kept"]
    assert listed(made, *names) == [(1020, -2, 1040, 0, 30 + 10 + 20 - 2, 80)]


def test_fee_in_cash_leaves_the_wallet():
    """A fee in USDC for another token is part of the sums of cash."""
    move = MOVE | OUT | {"fee_token": "USDC", "time": FIRST}
    made = sums(pd.DataFrame([move]), by=None, account=ME)
    assert listed(made, "spot_usdc", "net_deposits") == [(-0.25, -120.25)]


def test_account_of_flows_is_stated():
    """A named account has its own rows only; without a name the column or the request counts."""
    rows, owners = flows(moves()), [name.lower() for name, *_ in MOVES]
    assert rows["account"].tolist() == owners
    assert set(map(str, rows[["perp", "spot", "usd"]].dtypes)) == {"float64"}
    mine = flows(moves(), account=OTHER)
    assert mine["account"].tolist() == [OTHER.lower()] * 10
    some = moves().assign(account=moves()["account"].where(moves()["account"] == ME))
    assert sums(some, by="account")["account"].isna().tolist() == [False, True]
    bare = moves().drop(columns="account")
    assert flows(bare)["account"].isna().all()
    assert flows(bare, account=OTHER)["account"].tolist() == [OTHER.lower()] * len(MOVES)
    bare.attrs["toolkit"] = {"parameters": {"user": OTHER}}
    assert flows(bare)["account"].tolist() == [OTHER.lower()] * len(MOVES)
    bare.attrs["toolkit"] = {"parameters": {"users": [ME, OTHER]}, "rows": len(bare)}
    assert flows(bare)["account"].isna().all()
    # The account that a frame was fetched for does not replace its column.
    whole = moves()
    whole.attrs["toolkit"] = {"parameters": {"user": OTHER}}
    assert flows(whole)["account"].tolist() == owners


def test_wrong_ledgers_are_named():
    for function in (flows, sums, unknown):
        with pytest.warns(RepeatedRows, match=r"^ledger: 1 of 2 rows"):
            function(pd.concat([moves().assign(hash="0x1", time=times([1])[0])[:1]] * 2))
    with pytest.raises(MissingColumns, match=r"^ledger: .*nonsense"):
        sums(moves(), by=["account", "nonsense"])
    for name in ("perp", "spot", "usd", "known", "time", *SUMS):
        with pytest.raises(ValueError, match=f"'{name}'"):
            sums(moves(), by=name)
    assert dir(topic) == ["flows", "sums", "unknown"]


def test_flows_equal_simulated_balances(world, tables):
    """Perp account in USD, and every token of the wallet."""
    rows = flows(tables.ledger)
    assert rows["known"].sum() == len(rows) - 1
    assert unknown(tables.ledger)["type"].tolist() == ["borrowLendBackstopLiquidation"]
    known = rows[rows["known"]].astype(dict.fromkeys(["perp", "spot", "usd"], "float64"))
    by_token = known.groupby(["account", "token"])["spot"].sum()
    perp = known.groupby("account")["perp"].sum()
    for user, truth in (world.expected | world.expected_mixed).items():
        assert perp.get(user, 0) == pytest.approx(float(truth.ledger), abs=1e-9)
        for token, kept in truth.tokens.items():
            found = by_token.get((user, token), 0)
            assert found == pytest.approx(float(kept.ledger), abs=1e-9)
    liquidations = known[known["type"] == "liquidation"]
    assert len(liquidations) > 0
    assert (liquidations[["perp", "spot", "usd"]] == 0).all().all()
