"""The ledger: by type, as identities, and both pockets of every simulated account."""

import pandas as pd
import pytest

import toolkit.ledger as topic
from toolkit.analysis.pnl.ledger import flows, sums, unknown
from toolkit.errors import MissingColumns, RepeatedRows

from .examples import DAY, HOUR, ME, MONDAY, OTHER, as_numbers, ledger, times
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
    # HYPE from perp to perp, at the value of the row.
    (SEND | {"user": ME, "destination": OTHER, "source_dex": "", "destination_dex": ""}
     | {"token": "HYPE", "usdc_value": 90.0, "fee": 0.5, "fee_token": "USDC"}, -90.5, 0, -90.5),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("row", "perp", "spot", "usd"), [*TYPED, *SENT])
def test_each_type_has_its_flows(kind, row, perp, spot, usd):
    frame = as_numbers(pd.DataFrame([{"time": times([MONDAY])[0], **row}]), kind)
    result = flows(frame, account=ME).iloc[0]
    found = [
        None if pd.isna(result[name]) else float(result[name]) for name in ("perp", "spot", "usd")
    ]
    assert found == [perp, spot, usd]
    assert result["known"] == (perp is not None)
    assert result["account"] == ME.lower()


@pytest.mark.parametrize("kind", KINDS)
def test_net_deposits_by_hand(kind):
    """1000 - 51 - 21 + 7 came in; 5 only changed the pocket; one type nobody knows."""
    row = sums(as_numbers(ledger(), kind), by=None, account=ME).iloc[0]
    wanted = {"updates": 7, "perp": 930, "spot_usdc": 5, "deposits": 1007, "withdrawals": -72}
    wanted |= {"net_deposits": 935, "unpriced": 0, "unknown": 1}
    assert {name: float(row[name]) for name in wanted} == wanted
    days = sums(as_numbers(ledger(), kind), by="day", account=ME)
    assert list(days["day"]) == list(times([MONDAY]))
    assert days["net_deposits"].sum() == row["net_deposits"]


def test_unknown_types_are_named():
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


def test_sums_separate_accounts():
    both = pd.concat([ledger().assign(account=ME), ledger().assign(account=OTHER)])
    frame = sums(both, by="account").set_index("account")
    assert frame.loc[ME, "perp"] == 930
    assert frame.loc[OTHER.lower(), "perp"] == 1000 - 51 + 20 - 5 - 7


#   account hours type            amounts
MOVES: list[tuple[str, int, str, dict[str, object]]] = [
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
#                  updates perp spot_usdc in    out     net     unpriced unknown
TOTALS = {
    (ME,): (9, 44, 9, 104.5, -71.5, 33, 1, 1),
    (OTHER,): (10, 7.75, -3, 97, -2.25, 94.75, 2, 4),
}
BY_TOKEN = {
    ("HYPE",): (4, 0, 0, 90, -20, 70, 2, 0),
    ("PURR",): (1, 0, 0, 0, 0, 0, 1, 0),
    ("USDC",): (14, 51.75, 6, 111.5, -53.75, 57.75, 0, 5),
}
BY_DAY = {
    (0,): (11, 54, 6, 201.5, -71.5, 130, 1, 0),
    (1,): (8, -2.25, 0, 0, -2.25, -2.25, 2, 5),
}
SUMS = ["updates", "perp", "spot_usdc", "deposits", "withdrawals", "net_deposits"]
SUMS += ["unpriced", "unknown"]


def moves(kind="float"):
    frame = pd.DataFrame([amounts for *_, amounts in MOVES])
    frame["token"] = frame["token"].astype("str")
    frame["to_perp"] = frame["to_perp"].astype("boolean")
    frame.insert(0, "type", [row[2] for row in MOVES])
    frame.insert(0, "time", times(MONDAY + row[1] * HOUR for row in MOVES))
    return as_numbers(frame.assign(account=[row[0] for row in MOVES]), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_two_accounts(kind):
    """Prices are those of the rows; rows without a price or a known amount are counted only."""
    for key, wanted in (("account", TOTALS), ("token", BY_TOKEN)):
        rows = sums(moves(kind), by=key)
        assert rows[key].tolist() == [
            name.lower() if key == "account" else name for (name,) in wanted
        ]
        assert rows[SUMS].astype("float64").to_numpy().tolist() == [
            list(r) for r in wanted.values()
        ]
    days = sums(moves(kind), by="day")
    assert days["day"].tolist() == times([MONDAY, MONDAY + DAY]).tolist()
    assert days[SUMS].astype("float64").to_numpy().tolist() == [list(r) for r in BY_DAY.values()]
    assert {str(days[name].dtype) for name in ("updates", "unpriced", "unknown")} == {"int64"}
    assert {str(days[name].dtype) for name in SUMS[1:6]} == {str(moves(kind)["usdc"].dtype)}
    facts = days.attrs["toolkit"]
    assert (facts["helper"], *facts["inputs"], *facts["by"]) == ("ledger.sums", "ledger", "day")
    for name, wanted in ((ME, TOTALS[ME,]), (OTHER, TOTALS[OTHER,])):
        row = sums(moves(kind), by=None, account=name)
        assert row[SUMS].astype("float64").to_numpy().tolist() == [list(wanted)]


def test_sums_equal_on_each_engine(engine):
    """PURR has no amount in USD: its sums are 0 on all engines."""
    rows = engine.take(sums(engine.give(moves()), by="token"))
    assert [tuple(row[name] for name in ("token", *SUMS)) for row in rows] == [
        (*key, *values) for key, values in BY_TOKEN.items()
    ]
    (empty,) = engine.take(sums(engine.give(moves()[:0]), by=None))
    assert [empty[name] for name in SUMS] == [0] * len(SUMS)


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_updates_of_two_accounts_by_hand(kind):
    def listed(**named):
        rows = unknown(moves(kind), **named)
        facts = rows.attrs["toolkit"]
        assert (facts["helper"], *facts["inputs"]) == ("ledger.unknown", "ledger")
        assert str(rows["updates"].dtype) == "int64"
        hours = [
            (rows[name] - times([MONDAY])[0]) // pd.Timedelta("1h") for name in ("first", "last")
        ]
        return list(zip(rows["type"], rows["reason"], rows["updates"], *hours, strict=True))

    lost, new = "amount or direction missing", "unknown type"
    assert listed() == [
        ("deposit", lost, 2, 29, 30), ("new", new, 2, 27, 27), ("newer", new, 1, 28, 28),
    ]  # fmt: skip
    assert listed(account=ME.upper()) == [("new", new, 1, 27, 27)]


def test_account_of_flows_is_stated():
    """A named account has its own rows only; without a name the column or the request counts."""
    rows = flows(moves())
    assert rows["account"].tolist() == [name.lower() for name, *_ in MOVES]
    assert rows.attrs["toolkit"]["helper"] == "ledger.flows"
    assert list(rows.attrs["toolkit"]["inputs"]) == ["ledger"]
    mine = flows(moves(), account=OTHER)
    assert mine["account"].unique().tolist() == [OTHER.lower()]
    assert len(mine) == 10
    for kind in KINDS:
        money = flows(moves(kind))[["perp", "spot", "usd"]]
        assert set(map(str, money.dtypes)) == {str(moves(kind)["usdc"].dtype)}
    assert flows(ledger(), account=ME)["known"].tolist() == [True] * 6 + [False]
    some = moves().assign(account=moves()["account"].where(moves()["account"] == ME))
    assert sums(some, by="account")["account"].isna().tolist() == [False, True]
    bare = moves().drop(columns="account")
    assert flows(bare)["account"].isna().all()
    assert flows(bare, account=OTHER)["account"].unique().tolist() == [OTHER.lower()]
    assert len(flows(bare, account=OTHER)) == len(MOVES)
    bare.attrs["toolkit"] = {"parameters": {"user": OTHER}}
    assert flows(bare)["account"].unique().tolist() == [OTHER.lower()]
    bare.attrs["toolkit"] = {"parameters": {"users": [ME, OTHER]}, "rows": len(bare)}
    assert flows(bare)["account"].isna().all()
    # The account that a frame was fetched for does not replace its column.
    whole = moves()
    whole.attrs["toolkit"] = {"parameters": {"user": OTHER}}
    assert flows(whole)["account"].tolist() == rows["account"].tolist()


def test_errors_of_ledger():
    for function in (flows, sums, unknown):
        for column in ("time", "type"):
            with pytest.raises(MissingColumns, match=f"^ledger: .* lacks the column {column}"):
                function(moves().drop(columns=column))
        with pytest.raises(MissingColumns, match=r"^ledger: .*usdc"):
            function(moves().assign(usdc="1"))
        with pytest.raises(MissingColumns, match=r"^ledger: the frame has no columns"):
            function(pd.DataFrame())
        with pytest.warns(RepeatedRows, match=r"^ledger: 1 of 2 rows"):
            function(pd.concat([moves().assign(hash="0x1", time=times([1])[0])[:1]] * 2))
    with pytest.raises(MissingColumns, match=r"^ledger: the frame lacks the column nonsense"):
        sums(moves(), by=["account", "nonsense"])
    for name in ("perp", "spot", "usd", "known", "time", *SUMS):
        with pytest.raises(ValueError, match=f"'{name}'"):
            sums(moves(), by=name)


def test_dir_lists_public_names():
    assert dir(topic) == ["flows", "sums", "unknown"]


def test_flows_equal_simulated_balances(world):
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
