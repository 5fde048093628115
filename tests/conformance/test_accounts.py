"""Specification, "userNonFundingLedgerUpdates", "batchClearinghouseStates", "borrowLend..."."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes

ALICE, BOB, FAILED, NOBODY, T = mini.ALICE, mini.BOB, mini.FAILED, mini.NOBODY, mini.T
LEDGER, BATCH = "userNonFundingLedgerUpdates", "batchClearinghouseStates"


# The ledger.


@pytest.fixture(scope="module")
def updates(tiny, summary):
    """The ledgers of all accounts of the simulated exchange."""
    return [row for user in summary["users"] for row in tiny.ask(LEDGER, user=user, startTime=0)]


@shapes.fields(shapes.UPDATE)
def test_ledger_update__types(updates, field, words):
    shapes.check_values(updates, field, words)
    shapes.no_other_fields(updates, shapes.UPDATE)


@shapes.fields(shapes.DELTA)
def test_ledger_update__delta_types(updates, field, words):
    shapes.check_values([row["delta"] for row in updates], field, words)


@pytest.mark.parametrize("type", shapes.DELTA_FIELDS)
def test_ledger_update__fields_of_a_type(updates, type):
    found = [row["delta"] for row in updates if row["delta"]["type"] == type]
    assert found
    wanted = {"type", *shapes.DELTA_FIELDS[type].split()}
    assert {frozenset(item) for item in found} == {frozenset(wanted)}


@pytest.mark.parametrize(
    ("type", "field", "kind"),
    [
        ("accountClassTransfer", "toPerp", "boolean"),
        ("perpDexClassTransfer", "toPerp", "boolean"),
        ("cStakingTransfer", "isDeposit", "boolean"),
        ("liquidation", "liquidatedNtlPos", "decimal"),
        ("liquidation", "accountValue", "decimal"),
        ("liquidation", "leverageType", "Cross|Isolated"),
        ("liquidation", "liquidatedPositions", "array"),
        ("vaultCreate", "vault", "address"),
        ("vaultWithdraw", "requestedUsd", "decimal"),
        ("vaultWithdraw", "commission", "decimal"),
        ("vaultWithdraw", "closingCost", "decimal"),
        ("vaultWithdraw", "basis", "decimal"),
        ("vaultWithdraw", "netWithdrawnUsd", "decimal"),
        ("borrowLend", "operation", "supply|withdraw|repay|borrow"),
        ("borrowLend", "interestAmount", "decimal"),
        ("activateDexAbstraction", "dex", "string"),
        ("perpDexClassTransfer", "dex", "string"),
    ],
)
def test_ledger_update__values_of_a_type(updates, type, field, kind):
    values = [row["delta"][field] for row in updates if row["delta"]["type"] == type]
    assert values
    assert all(shapes.is_kind(kind, value) for value in values)


def test_ledger_update__liquidated_positions(updates):
    taken = [
        position
        for row in updates
        if row["delta"]["type"] == "liquidation"
        for position in row["delta"]["liquidatedPositions"]
    ]
    assert {frozenset(names) for names in taken} == {frozenset(("coin", "szi"))}
    assert all(shapes.is_kind("decimal", names["szi"]) for names in taken)


def test_userNonFundingLedgerUpdates__no_funding(updates):
    assert "funding" not in {row["delta"]["type"] for row in updates}


def test_userNonFundingLedgerUpdates__time_order(tiny, summary):
    for user in summary["users"]:
        times = [row["time"] for row in tiny.ask(LEDGER, user=user, startTime=0)]
        assert times == sorted(times) != []


def test_userNonFundingLedgerUpdates__exact_values(hand):
    assert hand.ask(LEDGER, user=ALICE, startTime=0) == mini.LEDGER


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        (T, T, [0]),
        (T + 1, T + 10, [1, 2]),
        (T + 10, T + 20, [1, 2, 3]),
        (T + 11, T + 19, []),
        (T + 20, None, [3]),
    ],
)
def test_userNonFundingLedgerUpdates__inclusive_bounds(hand, start, end, rows):
    span = {"startTime": start} if end is None else {"startTime": start, "endTime": end}
    assert hand.ask(LEDGER, user=ALICE, **span) == [mini.LEDGER[i] for i in rows]


def test_userNonFundingLedgerUpdates__startTime_optional(hand):
    assert hand.ask(LEDGER, user=ALICE) == mini.LEDGER


# Clearinghouse states.


@pytest.fixture(scope="module")
def states(tiny, summary):
    """The states of all accounts on all dexes."""
    answer = tiny.ask(BATCH, users=summary["users"], dex="ALL_DEXES")
    return [state for _, by_dex in answer["successful_states"] for state in by_dex.values()]


@pytest.fixture(scope="module")
def positions(states):
    return [position["position"] for state in states for position in state["assetPositions"]]


@shapes.fields(shapes.STATE)
def test_clearinghouse_state__types(states, field, words):
    shapes.check_values(states, field, words)
    shapes.no_other_fields(states, shapes.STATE)


@pytest.mark.parametrize("summary_of", ["marginSummary", "crossMarginSummary"])
@shapes.fields(shapes.MARGIN)
def test_clearinghouse_state__margin_types(states, summary_of, field, words):
    rows = [state[summary_of] for state in states]
    shapes.check_values(rows, field, words)
    shapes.no_other_fields(rows, shapes.MARGIN)


@shapes.fields(shapes.POSITION)
def test_clearinghouse_state__position_types(positions, field, words):
    shapes.check_values(positions, field, words)
    shapes.no_other_fields(positions, shapes.POSITION)


def test_clearinghouse_state__positions_are_oneWay(states):
    held = [position for state in states for position in state["assetPositions"]]
    assert {tuple(key) for key in held} == {("type", "position")}
    assert {key["type"] for key in held} == {"oneWay"}


def test_clearinghouse_state__leverage_cross_or_isolated(positions):
    leverages = [position["leverage"] for position in positions]
    assert {frozenset(leverage.keys() - shapes.BEYOND) for leverage in leverages} == {
        frozenset(("type", "value"))
    }
    assert {leverage["type"] for leverage in leverages} == {"cross", "isolated"}
    assert all(shapes.is_kind("int", leverage["value"]) for leverage in leverages)


def test_clearinghouse_state__two_maxTradeSzs(positions):
    for position in positions:
        assert len(position["maxTradeSzs"]) == 2
        assert all(shapes.is_kind("decimal", size) for size in position["maxTradeSzs"])


def test_batchClearinghouseStates__request_order(hand):
    for users in ([ALICE, BOB], [BOB, ALICE]):
        answer = hand.ask(BATCH, users=users)
        assert list(answer) == ["successful_states", "failed_wallets"]
        assert answer["successful_states"] == [[user, mini.STATES[""][user]] for user in users]
        assert answer["failed_wallets"] == []


def test_batchClearinghouseStates__default_dex_is_native(hand):
    assert hand.ask(BATCH, users=[ALICE]) == hand.ask(BATCH, users=[ALICE], dex="")


def test_batchClearinghouseStates__states_of_one_dex(hand):
    answer = hand.ask(BATCH, users=[ALICE], dex="eqx")
    assert answer["successful_states"] == [[ALICE, mini.STATES["eqx"][ALICE]]]


def test_batchClearinghouseStates__keyed_by_dex(hand):
    answer = hand.ask(BATCH, users=[ALICE, BOB], dex="ALL_DEXES")
    assert answer["successful_states"] == [
        [user, {"native": mini.STATES[""][user], "eqx": mini.STATES["eqx"][user]}]
        for user in (ALICE, BOB)
    ]


def test_batchClearinghouseStates__contains_all_dexes(tiny, summary):
    answer = tiny.ask(BATCH, users=summary["users"][:100], dex="ALL_DEXES")
    for _, by_dex in answer["successful_states"]:
        assert next(iter(by_dex)) == "native"
        assert set(by_dex) == {"native", "eqx", "pre"}


@pytest.mark.parametrize("dex", ["", "eqx", "ALL_DEXES"])
def test_batchClearinghouseStates__failed_wallets_are_listed(hand, dex):
    answer = hand.ask(BATCH, users=[ALICE, FAILED, BOB], dex=dex)
    assert [user for user, _ in answer["successful_states"]] == [ALICE, BOB]
    assert answer["failed_wallets"] == [FAILED]


def test_batchClearinghouseStates__unknown_account_has_empty_state(hand):
    [[user, state]] = hand.ask(BATCH, users=[NOBODY])["successful_states"]
    assert user == NOBODY
    assert state["assetPositions"] == []
    assert float(state["marginSummary"]["accountValue"]) == 0


def test_batchClearinghouseStates__empty_without_users(hand):
    assert hand.ask(BATCH, users=[]) == {"successful_states": [], "failed_wallets": []}


@pytest.mark.parametrize("user", ["", "0x12", ALICE[2:], None])
def test_batchClearinghouseStates__malformed_address_is_400(hand, user):
    assert hand.refuse(BATCH, users=[ALICE, user])[0] == 400


# Borrowing and lending.


@pytest.fixture(scope="module")
def lending(tiny, summary):
    return [tiny.ask("borrowLendUserState", user=user) for user in summary["users"]]


@shapes.fields(shapes.LENDING)
def test_borrow_lend_user_state__types(lending, field, words):
    shapes.check_values(lending, field, words)
    shapes.no_other_fields(lending, shapes.LENDING)


@pytest.mark.parametrize(
    "word", ["healthy", "atRisk", "marketLiquidatable", "backstopLiquidatable"]
)
def test_borrow_lend_user_state__health_words(lending, word):
    assert any(item["health"] == word for item in lending)


def test_borrow_lend_user_state__tokenToState_types(lending):
    pairs = [pair for item in lending for pair in item["tokenToState"]]
    assert pairs
    for index, state in pairs:
        assert shapes.is_kind("int", index)
        assert set(state) == {"borrow", "supply"}
        for side in state.values():
            assert set(side) == {"basis", "value"}
            assert all(shapes.is_kind("decimal", amount) for amount in side.values())


def test_borrow_lend_user_state__empty_without_healthFactor(lending):
    for item in lending:
        assert (item["healthFactor"] is None) == (item["tokenToState"] == [])


def test_borrowLendUserState__exact_values(hand):
    assert hand.ask("borrowLendUserState", user=ALICE) == mini.LENT


def test_borrowLendUserState__unknown_account_is_healthy(hand):
    answer = hand.ask("borrowLendUserState", user=NOBODY)
    assert answer == {"tokenToState": [], "health": "healthy", "healthFactor": None}
