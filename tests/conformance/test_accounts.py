"""Specification, "userNonFundingLedgerUpdates", "batchClearinghouseStates", "borrowLend..."."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes

ALICE, BOB, FAILED, NOBODY, T = mini.ALICE, mini.BOB, mini.FAILED, mini.NOBODY, mini.T
LEDGER, BATCH = "userNonFundingLedgerUpdates", "batchClearinghouseStates"


# The ledger.


@pytest.fixture(scope="module")
def updates_of(tiny, summary):
    """The ledger of each account of the simulated exchange."""
    return {user: tiny.ask(LEDGER, user=user, startTime=0) for user in summary["users"]}


@pytest.fixture(scope="module")
def updates(updates_of):
    return [row for rows in updates_of.values() for row in rows]


def test_ledger_update__types(updates):
    shapes.check_rows(updates, shapes.UPDATE)
    shapes.check_values([row["delta"] for row in updates], shapes.DELTA)


def test_ledger_update__fields_of_each_type(updates):
    """Funding is no part of the ledger; an unspecified type has other fields."""
    deltas = [row["delta"] for row in updates]
    found = {(delta["type"], frozenset(delta)) for delta in deltas}
    wanted = {(type, frozenset(["type", *n.split()])) for type, n in shapes.DELTA_FIELDS.items()}
    assert found - {("borrowLendBackstopLiquidation", frozenset(["type"]))} == wanted
    wrong = [
        (delta["type"], name, delta[name])
        for delta in deltas
        for name, kind in shapes.DELTA_VALUES.get(delta["type"], {}).items()
        if not shapes.is_kind(kind, delta[name])
    ]
    assert wrong == []


def test_ledger_update__liquidated_positions(updates):
    deltas = [row["delta"] for row in updates]
    taken = [p for d in deltas for p in d.get("liquidatedPositions", ())]
    assert {frozenset(names) for names in taken} == {frozenset(("coin", "szi"))}
    assert all(shapes.is_kind("decimal", names["szi"]) for names in taken)


def test_userNonFundingLedgerUpdates__time_order(updates_of):
    for rows in updates_of.values():
        times = [row["time"] for row in rows]
        assert times == sorted(times) != []


def test_userNonFundingLedgerUpdates__inclusive_bounds(hand):
    """`startTime` is optional."""
    table = [
        ({}, [0, 1, 2, 3]),
        ({"startTime": 0}, [0, 1, 2, 3]),
        ({"startTime": T, "endTime": T}, [0]),
        ({"startTime": T + 1, "endTime": T + 10}, [1, 2]),
        ({"startTime": T + 10, "endTime": T + 20}, [1, 2, 3]),
        ({"startTime": T + 11, "endTime": T + 19}, []),
        ({"startTime": T + 20}, [3]),
    ]
    for span, rows in table:
        assert hand.ask(LEDGER, user=ALICE, **span) == [mini.LEDGER[i] for i in rows]


# Clearinghouse states.


@pytest.fixture(scope="module")
def states(tiny, summary):
    """The states of all accounts on all dexes."""
    answer = tiny.ask(BATCH, users=summary["users"], dex="ALL_DEXES")
    for _, by_dex in answer["successful_states"]:
        assert next(iter(by_dex)) == "native"
        assert set(by_dex) == {"native", "eqx", "pre"}
    return [state for _, by_dex in answer["successful_states"] for state in by_dex.values()]


def test_clearinghouse_state__types(states):
    shapes.check_rows(states, shapes.STATE)
    for name in ("marginSummary", "crossMarginSummary"):
        shapes.check_rows([state[name] for state in states], shapes.MARGIN)


def test_clearinghouse_state__positions(states):
    held = [position for state in states for position in state["assetPositions"]]
    assert {tuple(key) for key in held} == {("type", "position")}
    assert {key["type"] for key in held} == {"oneWay"}
    positions = [item["position"] for item in held]
    shapes.check_rows(positions, shapes.POSITION)
    leverages = [position["leverage"] for position in positions]
    shapes.check_rows(leverages, {"type": "cross|isolated", "value": "int"})
    assert {leverage["type"] for leverage in leverages} == {"cross", "isolated"}
    for position in positions:
        assert len(position["maxTradeSzs"]) == 2
        assert all(shapes.is_kind("decimal", size) for size in position["maxTradeSzs"])


def test_batchClearinghouseStates__request_order(hand):
    for users in ([ALICE, BOB], [BOB, ALICE]):
        answer = hand.ask(BATCH, users=users)
        assert list(answer) == ["successful_states", "failed_wallets"]
        assert answer["successful_states"] == [[user, mini.STATES[""][user]] for user in users]
        assert answer["failed_wallets"] == []


def test_batchClearinghouseStates__states_of_one_dex(hand):
    """The default is the native dex."""
    assert hand.ask(BATCH, users=[ALICE]) == hand.ask(BATCH, users=[ALICE], dex="")
    answer = hand.ask(BATCH, users=[ALICE], dex="eqx")
    assert answer["successful_states"] == [[ALICE, mini.STATES["eqx"][ALICE]]]


def test_batchClearinghouseStates__keyed_by_dex(hand):
    answer = hand.ask(BATCH, users=[ALICE, BOB], dex="ALL_DEXES")
    assert answer["successful_states"] == [
        [user, {"native": mini.STATES[""][user], "eqx": mini.STATES["eqx"][user]}]
        for user in (ALICE, BOB)
    ]


def test_batchClearinghouseStates__failed_wallets_are_listed(hand):
    for dex in ("", "eqx", "ALL_DEXES"):
        answer = hand.ask(BATCH, users=[ALICE, FAILED, BOB], dex=dex)
        assert [user for user, _ in answer["successful_states"]] == [ALICE, BOB]
        assert answer["failed_wallets"] == [FAILED]


def test_batchClearinghouseStates__unknown_account_has_empty_state(hand):
    [[user, state]] = hand.ask(BATCH, users=[NOBODY])["successful_states"]
    assert user == NOBODY
    assert state["assetPositions"] == []
    assert float(state["marginSummary"]["accountValue"]) == 0
    assert hand.ask(BATCH, users=[]) == {"successful_states": [], "failed_wallets": []}


def test_batchClearinghouseStates__malformed_address_is_400(hand):
    wrong = ["", "0x12", ALICE[2:], None]
    assert {hand.refuse(BATCH, users=[ALICE, user])[0] for user in wrong} == {400}


# Borrowing and lending.


@pytest.fixture(scope="module")
def lending(tiny, summary):
    return [tiny.ask("borrowLendUserState", user=user) for user in summary["users"]]


def test_borrow_lend_user_state__types(lending):
    shapes.check_rows(lending, shapes.LENDING)
    assert {item["health"] for item in lending} == set(shapes.LENDING["health"].split("|"))
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
    """An unknown account is healthy."""
    assert hand.ask("borrowLendUserState", user=ALICE) == mini.LENT
    nothing = {"tokenToState": [], "health": "healthy", "healthFactor": None}
    assert hand.ask("borrowLendUserState", user=NOBODY) == nothing
