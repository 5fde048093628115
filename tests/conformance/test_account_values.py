"""Specification, "Account value snapshot", "accountValueSnapshots"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes
from tests.conformance.snapshots import snapshots

ALICE, BOB, CAROL = mini.ALICE, mini.BOB, mini.CAROL
HOLDERS = {"hyperliquid:USDC": {ALICE, BOB, CAROL}, "eqx:USDC": {ALICE}, "pre:USDH": {BOB}}
MAIN, EQX, PRE = HOLDERS


@pytest.fixture(scope="module")
def accounts(tiny):
    """The tuples of the simulated exchange, by the names of their indices."""
    found = snapshots(tiny, "accountValueSnapshots", "ALL").values()
    assert all(shapes.is_kind("address", user) for item in found for user in item[2])
    tuples = [values for item in found for values in item[2].values()]
    return [dict(zip(shapes.ACCOUNT_TUPLE, entry, strict=False)) for entry in tuples]


def test_account_value_tuple__types(accounts):
    shapes.check_rows(accounts, shapes.ACCOUNT_TUPLE)
    for account in accounts:
        assert account["total_long_notional"] >= 0
        assert account["total_short_notional"] >= 0
        for token, margin in account.get("pm_avail_by_branch", []):
            assert shapes.is_kind("string", token)
            assert shapes.is_kind("number", margin)


def test_account_value_tuple__modes(accounts):
    """Only portfolio margin has eight entries, and only mode 2 is unified."""
    assert {
        (account["account_mode"], len(account), account["is_unified"]) for account in accounts
    } == {(0, 5, False), (1, 5, False), (2, 5, True), (3, 8, False)}


def test_account_value_snapshot__array_form(hand):
    [one] = snapshots(hand, "accountValueSnapshots", MAIN).values()
    users = {user: list(values) for user, values in mini.ACCOUNTS["", "USDC"].items()}
    assert one == [mini.SNAPSHOT, MAIN, users]


def test_accountValueSnapshots__collateral_tokens(hand, tiny):
    table = [
        (["USDC"], {MAIN, EQX}),
        (["USDH"], {PRE}),
        ([MAIN], {MAIN}),
        ([EQX], {EQX}),
        ([MAIN, PRE], {MAIN, PRE}),
        ([EQX, "USDH"], {EQX, PRE}),
        (["ALL"], {MAIN, EQX, PRE}),
        (["ALL", "USDC"], {MAIN, EQX, PRE}),
        (["USDC", "USDC"], {MAIN, EQX}),
        (["USDC", EQX], {MAIN, EQX}),
    ]
    wrong = []
    for wanted, found in table:
        by_hand = snapshots(hand, "accountValueSnapshots", *wanted)
        if {name: set(item[2]) for name, item in by_hand.items()} != {n: HOLDERS[n] for n in found}:
            wrong.append(("hand", wanted))
        if snapshots(tiny, "accountValueSnapshots", *wanted).keys() != found:
            wrong.append(("tiny", wanted))
    assert wrong == []
