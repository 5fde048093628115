"""Specification, "Account value snapshot", "accountValueSnapshots"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes
from tests.conformance.snapshots import case_name, snapshots

ALICE, BOB, CAROL = mini.ALICE, mini.BOB, mini.CAROL


def holders(caller, *wanted):
    """Return the accounts of each snapshot, by dex and token."""
    found = snapshots(caller, "accountValueSnapshots", *wanted)
    return {name: set(item[2]) for name, item in found.items()}


HOLDERS = {"hyperliquid:USDC": {ALICE, BOB, CAROL}, "eqx:USDC": {ALICE}, "pre:USDH": {BOB}}
USDC = {"hyperliquid:USDC", "eqx:USDC"}


@pytest.fixture(scope="module")
def accounts(tiny):
    """The tuples of the simulated exchange, by the names of their indices."""
    found = snapshots(tiny, "accountValueSnapshots", "ALL").values()
    assert all(shapes.is_kind("address", user) for item in found for user in item[2])
    tuples = [values for item in found for values in item[2].values()]
    return [dict(zip(shapes.ACCOUNT_TUPLE, entry, strict=False)) for entry in tuples]


@shapes.fields(shapes.ACCOUNT_TUPLE)
def test_account_value_tuple__types(accounts, field, words):
    shapes.check_values(accounts, field, words)


def test_account_value_tuple__length_by_mode(accounts):
    assert {(len(account), account["account_mode"] == 3) for account in accounts} == {
        (5, False),
        (8, True),
    }


def test_account_value_tuple__modes_0_to_3(accounts):
    assert {account["account_mode"] for account in accounts} == {0, 1, 2, 3}


def test_account_value_tuple__mode_2_is_unified(accounts):
    assert all(account["is_unified"] == (account["account_mode"] == 2) for account in accounts)


def test_account_value_tuple__notionals_not_negative(accounts):
    assert all(account["total_long_notional"] >= 0 for account in accounts)
    assert all(account["total_short_notional"] >= 0 for account in accounts)


def test_account_value_tuple__branch_pairs(accounts):
    for account in accounts:
        for token, margin in account.get("pm_avail_by_branch", []):
            assert shapes.is_kind("string", token)
            assert shapes.is_kind("number", margin)


def test_account_value_snapshot__array_form(hand):
    [one] = snapshots(hand, "accountValueSnapshots", "hyperliquid:USDC").values()
    users = {user: list(values) for user, values in mini.ACCOUNTS["", "USDC"].items()}
    assert one == [mini.SNAPSHOT, "hyperliquid:USDC", users]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["USDC"], USDC),
        (["USDH"], {"pre:USDH"}),
        (["hyperliquid:USDC"], {"hyperliquid:USDC"}),
        (["eqx:USDC"], {"eqx:USDC"}),
        (["pre:USDH"], {"pre:USDH"}),
        (["hyperliquid:USDC", "pre:USDH"], {"hyperliquid:USDC", "pre:USDH"}),
        (["eqx:USDC", "USDH"], {"eqx:USDC", "pre:USDH"}),
        (["USDC", "pre:USDH"], USDC | {"pre:USDH"}),
        (["ALL"], USDC | {"pre:USDH"}),
        (["ALL", "USDC"], USDC | {"pre:USDH"}),
        (["ALL", "pre:USDH"], USDC | {"pre:USDH"}),
        (["USDC", "USDC"], USDC),
        (["USDC", "eqx:USDC"], USDC),
        (["eqx:USDC", "USDC", "eqx:USDC"], USDC),
    ],
    ids=case_name,
)
def test_accountValueSnapshots__collateral_tokens(hand, tiny, wanted, found):
    assert holders(hand, *wanted) == {name: HOLDERS[name] for name in found}
    assert holders(tiny, *wanted).keys() == found
