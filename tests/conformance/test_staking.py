"""Specification, "Delegation", "Validator weekly APR entry", "validatorAprHistory"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes

MONDAY, WEEK, V1, V2 = mini.MONDAY, mini.WEEK, mini.V1, mini.V2
HISTORY = "validatorAprHistory"


@pytest.fixture(scope="module")
def delegations(tiny, summary):
    return [row for user in summary["users"] for row in tiny.ask("delegations", user=user)]


@pytest.fixture(scope="module")
def weeks(tiny, summary):
    pages = [
        tiny.ask(HISTORY, validator=validator, limit=100) for validator in summary["validators"]
    ]
    assert all(pages)
    return [row for rows in pages for row in rows]


def test_delegation__types(delegations):
    shapes.check_rows(delegations, shapes.DELEGATION)


def test_delegations__every_delegator_has_rows(tiny, world):
    assert all(tiny.ask("delegations", user=user) for user in world.sources.delegations)


def test_delegations__exact_values(hand):
    assert hand.ask("delegations", user=mini.ALICE) == mini.DELEGATED
    assert hand.ask("delegations", user=mini.BOB) == []


def test_validator_week__types(weeks):
    shapes.check_rows(weeks, shapes.WEEK)
    assert all(0 <= row["netApr"] <= row["grossApr"] < 1 for row in weeks)


def test_validatorAprHistory__newest_first(hand, tiny, summary):
    """Weeks begin on Monday."""
    theirs = [tiny.ask(HISTORY, validator=validator) for validator in summary["validators"]]
    for rows in (hand.ask(HISTORY, validator=V1), *theirs):
        starts = [row["week"] for row in rows]
        assert starts == sorted(set(starts), reverse=True) != []
        assert {(start - MONDAY) % WEEK for start in starts} == {0}


def test_validatorAprHistory__includes_present_week(hand):
    now, before = hand.ask(HISTORY, validator=V1, limit=2)
    assert now["week"] == MONDAY <= mini.NOW < MONDAY + WEEK
    assert 0 < float(now["totalDelegatorRewards"]) < float(before["totalDelegatorRewards"])


def test_validatorAprHistory__limit_is_12_or_at_most_100(hand):
    for limit, count in (({}, 12), ({"limit": 100}, 100)):
        rows = hand.ask(HISTORY, validator=V1, **limit)
        assert [row["week"] for row in rows] == [MONDAY - i * WEEK for i in range(count)]


def test_validator_week__apr_by_hand(hand):
    """36,500 staked, 9 per day for delegators: 9 / 36,500 · 365."""
    row = hand.ask(HISTORY, validator=V1)[5]
    assert row["netApr"] == pytest.approx(0.09)
    assert row["grossApr"] == pytest.approx(0.1)
    assert float(row["totalDelegatorRewards"]) == 63


def test_validator_week__apr_of_known_days(hand):
    """Days with 0.1 and with 0.3 on a stake of 73; the total is exact."""
    rows = hand.ask(HISTORY, validator=V2)
    assert [row["totalDelegatorRewards"] for row in rows] == ["0.4", "1.2"]
    assert [row["netApr"] for row in rows] == pytest.approx([0.5, 1.5])
    assert [row["netApr"] for row in rows] == [row["grossApr"] for row in rows]


def test_validatorAprHistory__inclusive_bounds(hand):
    table = [
        (MONDAY, MONDAY, [0]),
        (MONDAY - WEEK, MONDAY, [0, 1]),
        (MONDAY - WEEK + 1, MONDAY, [0]),
        (MONDAY - 2 * WEEK, MONDAY - 1, [1, 2]),
        (None, MONDAY - 99 * WEEK, list(range(99, 110))),
        (MONDAY - 2 * WEEK, None, [0, 1, 2]),
        (MONDAY + 1, MONDAY + 2, []),
    ]
    for start, end, weeks in table:
        span = {name: at for name, at in (("startTime", start), ("endTime", end)) if at is not None}
        rows = hand.ask(HISTORY, validator=V1, **span, limit=100)
        assert [row["week"] for row in rows] == [MONDAY - i * WEEK for i in weeks]
    assert hand.refuse(HISTORY, validator=V1, startTime=MONDAY, endTime=MONDAY - 1)[0] == 400
