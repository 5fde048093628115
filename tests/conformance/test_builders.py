"""Specification, "builderApproved..." and "Builder approval"; "Funding row"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import cursor, key

A, B1, B2, BOB, CAROL, DAVE, NOW = (
    mini.A,
    mini.B1,
    mini.B2,
    mini.BOB,
    mini.CAROL,
    mini.DAVE,
    mini.NOW,
)
FILLS, FUNDING = "builderApprovedFillsByTime", "builderApprovedFundingByTime"
BOTH = pytest.mark.parametrize("type", [FILLS, FUNDING])


@pytest.fixture(scope="module")
def fills(tiny, summary):
    return [
        row
        for builder in summary["builders"]
        for row in tiny.ask(FILLS, builder=builder, startTime=0)
    ]


@pytest.fixture(scope="module")
def payments(tiny, summary):
    return [
        row
        for builder in summary["builders"]
        for row in tiny.ask(FUNDING, builder=builder, startTime=0)
    ]


# The records.


@shapes.fields(shapes.APPROVED_FILL)
def test_fill_record__builderApprovedFillsByTime_types(fills, field, words):
    shapes.check_values(fills, field, words)


def test_fill_record__no_other_fields(fills):
    shapes.no_other_fields(fills, shapes.APPROVED_FILL)


@shapes.fields(shapes.FUNDING)
def test_funding_row__types(payments, field, words):
    shapes.check_values(payments, field, words)
    shapes.no_other_fields(payments, shapes.FUNDING)


@shapes.fields(shapes.FUNDING_DELTA)
def test_funding_row__delta_types(payments, field, words):
    deltas = [row["delta"] for row in payments]
    shapes.check_values(deltas, field, words)
    shapes.no_other_fields(deltas, shapes.FUNDING_DELTA)


def test_funding_row__zero_hash(payments):
    assert {row["hash"] for row in payments} == {"0x" + 64 * "0"}


def test_funding_row__negative_when_paid(payments):
    """usdc = -szi · price · rate."""
    for row in payments:
        delta = {name: float(row["delta"][name]) for name in ("usdc", "szi", "fundingRate")}
        assert delta["usdc"] * delta["szi"] * delta["fundingRate"] <= 0


# Approval by blocks.


def test_builderApprovedFills__during_approval(hand):
    rows = hand.ask(FILLS, builder=B1, startTime=0)
    assert [(row["user"], row["tid"]) for row in rows] == [
        (user, item["tid"]) for user, item in mini.APPROVED_B1
    ]


def test_builderApprovedFills__approval_block_is_included(hand):
    tids = [row["tid"] for row in hand.ask(FILLS, builder=B1, startTime=A - 1, endTime=A)]
    assert tids == [mini.SAME_BLOCK_EARLIER["tid"], mini.SAME_BLOCK_LATER["tid"]]


def test_builderApprovedFills__revocation_block_is_excluded(hand):
    rows = hand.ask(FILLS, builder=B1, startTime=A + 999, endTime=A + 1_999)
    assert [row["tid"] for row in rows] == [mini.LAST_MOMENT["tid"]]


def test_builderApprovedFills__earlier_fills_stay_after_revocation(hand):
    """The approval of A is revoked; its fills remain."""
    rows = hand.ask(FILLS, builder=B1, startTime=A, endTime=A + 999)
    assert {row["user"] for row in rows} == {BOB, CAROL}


def test_builderApprovedFills__second_approval(hand):
    rows = hand.ask(FILLS, builder=B1, startTime=A + 2_000)
    assert [row["tid"] for row in rows] == [mini.AGAIN["tid"]]


def test_builderApprovedFills__several_builders_share_fills(hand):
    first = hand.ask(FILLS, builder=B1, startTime=A + 500, endTime=A + 999)
    second = hand.ask(FILLS, builder=B2, startTime=A + 500, endTime=A + 999)
    assert first == second
    assert [row["tid"] for row in first] == [mini.BOTH["tid"], mini.LAST_MOMENT["tid"]]


@pytest.mark.parametrize(
    ("one", "builder"),
    [
        (mini.SAME_BLOCK_LATER, B1),
        (mini.ELSEWHERE, B2),
        (mini.LIQUIDATION, None),
        (mini.SUB_FILL, None),
    ],
    ids=["this one", "another", "liquidation", "twap"],
)
def test_builderApprovedFills__names_routing_builder(hand, one, builder):
    rows = {row["tid"]: row for row in hand.ask(FILLS, builder=B1, startTime=0)}
    assert rows[one["tid"]]["builder"] == builder


def test_builderApprovedFills__builder_null_if_not_routed(fills):
    null = sum(row["builder"] is None for row in fills)
    assert null > len(fills) / 2
    assert all(row["builder"] is None for row in fills if row["twapId"] is not None)


def test_builderApprovedFills__complete_approved_hour(tiny, world):
    """Between an approval and its revocation, the fills equal those of userFillsByTime."""
    open_since: dict[tuple[str, str], int] = {}
    checked = 0
    for approval in world.sources.approvals:
        pair = (approval.user, approval.builder)
        if approval.approved:
            open_since[pair] = approval.time
            continue
        start, end = open_since.pop(pair), approval.time - 1
        span = {"startTime": start, "endTime": end}
        own = tiny.ask("userFillsByTime", user=approval.user, **span)
        approved = tiny.ask(FILLS, builder=approval.builder, **span)
        assert [row["tid"] for row in approved if row["user"] == approval.user] == [
            row["tid"] for row in own
        ]
        checked += len(own)
    assert checked > 0


def test_builderApprovedFunding__during_approval(hand):
    rows = hand.ask(FUNDING, builder=B2, startTime=0, endTime=NOW)
    assert [row for row in rows if row["user"] == DAVE] == mini.DAVES


def test_builderApprovedFunding__exact_values(hand):
    hour = {"startTime": mini.HOURS[0], "endTime": mini.HOURS[1] - 1}
    assert hand.ask(FUNDING, builder=B1, **hour) == [
        row for row in mini.APPROVED_PAYMENTS if row["time"] == mini.HOURS[0]
    ]


def test_builderApprovedFunding__row_per_position_hour(tiny, summary):
    for builder in summary["builders"]:
        rows = tiny.ask(FUNDING, builder=builder, startTime=0)
        keys = [key(row) for row in rows]
        assert len(set(keys)) == len(keys) > 0


def test_builderApprovedFunding__full_hours_only(payments):
    assert {row["time"] % mini.HOUR for row in payments} == {0}


# Range, order and paging of both operations.


@BOTH
@pytest.mark.parametrize("builder", [0, 1, 2])
def test_builderApproved__cursor_order(tiny, summary, type, builder):
    """Fills by (time, txIndex), funding by (time, user, coin)."""
    rows = tiny.ask(type, builder=summary["builders"][builder], startTime=0)
    keys = [key(row) for row in rows]
    assert keys == sorted(keys) != []


@BOTH
def test_builderApproved__inclusive_bounds(hand, type):
    rows = hand.ask(type, builder=B1, startTime=0, limit=50)
    time = rows[-1]["time"] if type == FILLS else mini.HOURS[0]
    there = hand.ask(type, builder=B1, startTime=time, endTime=time)
    assert there
    assert {row["time"] for row in there} == {time}
    assert hand.ask(type, builder=B1, startTime=time + 1, endTime=time + 1) == []


@BOTH
def test_builderApproved__startTime_required(hand, type):
    assert hand.refuse(type, builder=B1)[0] == 400
    assert hand.refuse(type, builder=B1, endTime=NOW)[0] == 400


@BOTH
def test_builderApproved__endTime_default_is_now(hand, type):
    asked = {"builder": B1, "startTime": 0}
    assert hand.ask(type, **asked) == hand.ask(type, **asked, endTime=NOW)


@BOTH
@pytest.mark.parametrize("start", [0, NOW])
def test_builderApproved__cursor_replaces_startTime(hand, type, start):
    rows = hand.ask(type, builder=B1, startTime=0, limit=6)
    got = hand.ask(type, builder=B1, startTime=start, cursor=cursor(rows[2]), limit=3)
    assert got == rows[3:6]


FILL_ROWS = [item | {"user": user} for user, item in mini.APPROVED_B2]


@pytest.mark.parametrize("limit", [500, 1999])
@pytest.mark.parametrize(
    ("type", "builder", "there"),
    [(FILLS, B2, FILL_ROWS), (FUNDING, B1, mini.APPROVED_PAYMENTS)],
    ids=[FILLS, FUNDING],
)
def test_builderApproved__all_pages(hand, type, builder, there, limit):
    """Each page contains the rows strictly after the cursor; a short page is the last one."""
    pages = hand.pages(type, limit, builder=builder)
    assert len(pages) > 1
    assert len(pages[-1]) < limit
    rest = there
    for page in pages:
        assert list(map(key, page)) == list(map(key, rest[:limit]))
        rest = [row for row in rest if key(row) > key(page[-1])] if page else []
    assert rest == []


def test_builderApprovedFunding__page_ends_inside_hour(hand):
    page = hand.ask(FUNDING, builder=B1, startTime=0, limit=7)
    rest = hand.ask(FUNDING, builder=B1, cursor=cursor(page[-1]), limit=7)
    assert page + rest == mini.APPROVED_PAYMENTS[:14]


@BOTH
def test_builderApproved__inclusive_cursor(inclusive, type):
    rows = inclusive.ask(type, builder=B1, startTime=0, limit=6)
    assert inclusive.ask(type, builder=B1, cursor=cursor(rows[2]), limit=4) == rows[2:]


@pytest.mark.parametrize("malformed", ["", "1", "1_", "_1", "x_1", "1_x", "1_2_3", 7, [], ["1_2"]])
def test_builderApprovedFills__malformed_cursor_is_400(hand, malformed):
    assert hand.refuse(FILLS, builder=B1, cursor=malformed)[0] == 400


@pytest.mark.parametrize(
    "malformed",
    ["", "1", "1_2", f"1_{BOB}", f"1_{BOB}_", f"_{BOB}_BTC", f"x_{BOB}_BTC", "1_0x12_BTC", 7, []],
)
def test_builderApprovedFunding__malformed_cursor_is_400(hand, malformed):
    assert hand.refuse(FUNDING, builder=B1, cursor=malformed)[0] == 400
