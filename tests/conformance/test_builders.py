"""Specification, "builderApproved..." and "Builder approval"; "Funding row"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import cursor, key, tids

A, B1, B2, BOB, CAROL, NOW = mini.A, mini.B1, mini.B2, mini.BOB, mini.CAROL, mini.NOW
FILLS, FUNDING = "builderApprovedFillsByTime", "builderApprovedFundingByTime"
BOTH = pytest.mark.parametrize("type", [FILLS, FUNDING])


@pytest.fixture(scope="module")
def rows_of(tiny, summary):
    """The first page of each builder, by operation."""
    return {
        type: [tiny.ask(type, builder=builder, startTime=0) for builder in summary["builders"]]
        for type in (FILLS, FUNDING)
    }


@pytest.fixture(scope="module")
def fills(rows_of):
    return [row for rows in rows_of[FILLS] for row in rows]


@pytest.fixture(scope="module")
def payments(rows_of):
    return [row for rows in rows_of[FUNDING] for row in rows]


# The records.


def test_fill_record__builderApprovedFillsByTime_types(fills):
    shapes.check_rows(fills, shapes.APPROVED_FILL)


def test_funding_row__types(payments):
    shapes.check_rows(payments, shapes.FUNDING)
    shapes.check_rows([row["delta"] for row in payments], shapes.FUNDING_DELTA)
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


def test_builderApprovedFills__approval_by_blocks(hand):
    """The block of an approval is included, that of a revocation is not; earlier fills stay."""
    table = [
        (A - 1, A, [mini.SAME_BLOCK_EARLIER, mini.SAME_BLOCK_LATER]),
        (A + 999, A + 1_999, [mini.LAST_MOMENT]),
        (A + 2_000, NOW, [mini.AGAIN]),
    ]
    for start, end, there in table:
        rows = hand.ask(FILLS, builder=B1, startTime=start, endTime=end)
        assert tids(rows) == tids(there)
    rows = hand.ask(FILLS, builder=B1, startTime=A, endTime=A + 999)
    assert {row["user"] for row in rows} == {BOB, CAROL}


def test_builderApprovedFills__several_builders_share_fills(hand):
    first = hand.ask(FILLS, builder=B1, startTime=A + 500, endTime=A + 999)
    second = hand.ask(FILLS, builder=B2, startTime=A + 500, endTime=A + 999)
    assert first == second
    assert tids(first) == tids([mini.BOTH, mini.LAST_MOMENT])


def test_builderApprovedFills__names_routing_builder(hand, fills):
    rows = {row["tid"]: row["builder"] for row in hand.ask(FILLS, builder=B1, startTime=0)}
    some = [mini.SAME_BLOCK_LATER, mini.ELSEWHERE, mini.LIQUIDATION, mini.SUB_FILL]
    assert [rows[item["tid"]] for item in some] == [B1, B2, None, None]
    assert sum(row["builder"] is None for row in fills) > len(fills) / 2
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
    assert [row for row in rows if row["user"] == mini.DAVE] == mini.DAVES
    hour = {"startTime": mini.HOURS[0], "endTime": mini.HOURS[1] - 1}
    assert hand.ask(FUNDING, builder=B1, **hour) == [
        row for row in mini.APPROVED_PAYMENTS if row["time"] == mini.HOURS[0]
    ]


def test_builderApprovedFunding__row_per_position_hour(rows_of):
    for rows in rows_of[FUNDING]:
        assert len({key(row) for row in rows}) == len(rows) > 0
        assert {row["time"] % mini.HOUR for row in rows} == {0}


# Range, order and paging of both operations.


@BOTH
def test_builderApproved__cursor_order(rows_of, type):
    """Fills by (time, txIndex), funding by (time, user, coin)."""
    for rows in rows_of[type]:
        assert [key(row) for row in rows] == sorted(map(key, rows)) != []


@BOTH
def test_builderApproved__inclusive_bounds(hand, type):
    rows = hand.ask(type, builder=B1, startTime=0, limit=50)
    time = rows[-1]["time"] if type == FILLS else mini.HOURS[0]
    there = hand.ask(type, builder=B1, startTime=time, endTime=time)
    assert there
    assert {row["time"] for row in there} == {time}
    assert hand.ask(type, builder=B1, startTime=time + 1, endTime=time + 1) == []


@BOTH
def test_builderApproved__startTime_required_but_not_endTime(hand, type):
    assert hand.refuse(type, builder=B1)[0] == 400
    assert hand.refuse(type, builder=B1, endTime=NOW)[0] == 400
    asked = {"builder": B1, "startTime": 0}
    assert hand.ask(type, **asked) == hand.ask(type, **asked, endTime=NOW)


@BOTH
def test_builderApproved__cursor_replaces_startTime(hand, inclusive, type):
    rows = hand.ask(type, builder=B1, startTime=0, limit=6)
    asked = {"builder": B1, "cursor": cursor(rows[2])}
    for start in (0, NOW):
        assert hand.ask(type, **asked, startTime=start, limit=3) == rows[3:6]
    assert inclusive.ask(type, **asked, limit=4) == rows[2:]


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


def test_builderApproved__malformed_cursor_is_400(hand):
    names = [f"1_{BOB}", f"1_{BOB}_", f"_{BOB}_BTC", f"x_{BOB}_BTC", "1_0x12_BTC", "1_2", "1"]
    table = {
        FILLS: ["", "1", "1_", "_1", "x_1", "1_x", "1_2_3", 7, [], ["1_2"]],
        FUNDING: ["", *names, 7, []],
    }
    got = [
        (type, c, hand.refuse(type, builder=B1, cursor=c)[0]) for type in table for c in table[type]
    ]
    assert [row for row in got if row[2] != 400] == []
