"""Specification, "Fill record", "userFills", "userFillsByTime"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

from collections import Counter

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import cursor, key, tids

ALICE, B1, B2, T, NOW = mini.ALICE, mini.B1, mini.B2, mini.T, mini.NOW


@pytest.fixture(scope="module")
def latest(latest_of):
    return [row for rows in latest_of.values() for row in rows]


@pytest.fixture(scope="module")
def by_time(by_time_of):
    return [row for rows in by_time_of.values() for row in rows]


# The record.


def test_fill_record__types(latest, by_time):
    shapes.check_rows(latest, shapes.LATEST_FILL)
    shapes.check_rows(by_time, shapes.FILL_BY_TIME)


def test_fill_record__builder_in_userFills(hand):
    rows = {row["tid"]: row for row in hand.ask("userFills", user=ALICE)}
    assert rows[1]["builder"] == B1
    assert rows[8]["builder"] == B2
    assert rows[13].get("builder") is None


def test_fill_record__deployed_dex_prefix(by_time, summary):
    coins = {row["coin"] for row in by_time}
    for dex in filter(None, summary["dexes"]):
        assert any(coin.startswith(f"{dex}:") for coin in coins)


def test_fill_record__deployerFee_on_deployed_dexes_only(by_time):
    deployed = [row for row in by_time if "deployerFee" in row]
    assert deployed
    assert all(":" in row["coin"] for row in deployed)


def test_fill_record__venue_on_outcomes_only(by_time):
    on_a_venue = [row for row in by_time if "venue" in row]
    assert on_a_venue
    assert all(row["coin"].startswith("#") for row in on_a_venue)
    assert all(2 <= len(row["venue"]) <= 4 for row in on_a_venue)


def test_fill_record__no_venue_on_validator_outcomes(hand):
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0)
    venues = {row["coin"]: row.get("venue", "absent") for row in rows}
    assert (venues["#1230"], venues["#90"], venues["#2070"]) == ("PMX", "absent", "KX")
    assert venues["BTC"] == "absent"


def test_fill_record__exact_values(hand):
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0)
    assert rows == [
        {name: value for name, value in row.items() if name != "builder"} for row in mini.ALICES
    ]


# userFills.


def test_userFills__newest_first(latest_of, world):
    newest = {user: (fill.time, fill.tx_index) for user, fill in world.sources.fills}
    for user, rows in latest_of.items():
        keys = [key(row) for row in rows]
        assert keys == sorted(keys, reverse=True)
        assert keys[0] == newest[user]


def test_userFills__execution_order(hand):
    rows = hand.ask("userFills", user=ALICE)
    assert tids(rows) == [13, 12, 11, 10, 9, 8, 7, 6, 4, 5, 3, 1, 2]
    assert tids(hand.ask("userFills", user=ALICE, limit=3)) == [13, 12, 11]


def test_userFills__only_latest_2000_rows(hand):
    rows = hand.ask("userFills", user=mini.ERIN)
    times = sorted({row["time"] for row in mini.ERINS})
    assert len(rows) == 2000
    assert rows[0]["time"] == times[-1]


def test_userFills__includes_twap_fills(hand, latest):
    assert hand.ask("userFills", user=ALICE)[0]["twapId"] == 77
    assert any(row["twapId"] is not None for row in latest)


# userFillsByTime: range, order, paging.


def test_userFillsByTime__oldest_first(by_time_of):
    for rows in by_time_of.values():
        assert [key(row) for row in rows] == sorted(map(key, rows)) != []


def test_userFillsByTime__inclusive_bounds(hand):
    """The default of `endTime` is now."""
    table = [
        (T, T, [1, 2, 3, 4, 5, 6]),
        (T + 10, T + 10, [7]),
        (T + 1, T + 9, []),
        (T + 10, T + 20, [7, 8]),
        (T + 11, T + 19, []),
        (T + 50, NOW, [12, 13]),
        (0, T - 1, []),
    ]
    for start, end, found in table:
        rows = hand.ask("userFillsByTime", user=ALICE, startTime=start, endTime=end)
        assert tids(rows) == found
    asked = {"user": ALICE, "startTime": 0}
    assert hand.ask("userFillsByTime", **asked) == hand.ask("userFillsByTime", **asked, endTime=NOW)


def test_userFillsByTime__startTime_required(hand):
    assert hand.refuse("userFillsByTime", user=ALICE)[0] == 400
    assert hand.ask("userFillsByTime", user=ALICE, cursor=f"{T}_0")


def test_userFillsByTime__exclusive_cursor(hand, inclusive):
    """A cursor replaces `startTime`; it need not be the key of a row."""
    table = [
        ({"cursor": f"{T + 10}_0", "startTime": 0}, [8, 9, 10, 11, 12, 13]),
        ({"cursor": f"{T + 10}_0", "startTime": T + 50}, [8, 9, 10, 11, 12, 13]),
        ({"cursor": f"{T + 10}_0", "startTime": NOW + 1}, [8, 9, 10, 11, 12, 13]),
        ({"cursor": f"{T + 10}_0", "endTime": T + 30}, [8, 9, 10]),
        ({"cursor": f"{T + 5}_99"}, [7, 8, 9, 10, 11, 12, 13]),
        ({"cursor": f"{T}_1", "limit": 3}, [3, 4, 5]),
    ]
    for fields, found in table:
        assert tids(hand.ask("userFillsByTime", user=ALICE, **fields)) == found
    rows = inclusive.ask("userFillsByTime", user=ALICE, cursor=f"{T}_1", limit=3)
    assert tids(rows) == [1, 2, 3]


def test_userFillsByTime__page_ends_inside_transaction(hand):
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, limit=5)
    assert tids(rows) == [1, 2, 3, 4, 5]
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, limit=4)
    assert (
        tids(hand.ask("userFillsByTime", user=ALICE, cursor=cursor(rows[-1])))
        == tids(mini.ALICES)[5:]
    )


def test_userFillsByTime__all_pages(hand):
    """Erin's transactions have three fills, so pages of 3, 6, ... rows never end inside one."""
    for limit in (300, 1998):
        pages = hand.pages("userFillsByTime", limit, user=mini.ERIN)
        assert [row["tid"] for page in pages for row in page] == tids(mini.ERINS)
        assert {len(page) for page in pages[:-1]} == {limit}
        assert len(pages[-1]) < limit


def test_userFillsByTime__cursor_skips_rest_of_transaction(tiny, by_time_of, world):
    """A cursor names a transaction, and a page may end inside one."""
    user, rows = next((u, rows) for u, rows in by_time_of.items() if 300 < len(rows) < 2000)
    assert tids(rows) == [fill.tid for whose, fill in world.sources.fills if whose == user]
    limit = max(Counter(map(key, rows)).values()) + 3
    pages = tiny.pages("userFillsByTime", limit, user=user)
    for page in pages:
        assert page == rows[:limit]
        rows = [row for row in rows if key(row) > key(page[-1])] if page else rows
    assert rows == []


def test_userFillsByTime__all_pages_inclusive(inclusive):
    pages = inclusive.pages("userFillsByTime", 400, user=mini.ERIN)
    assert list(dict.fromkeys(row["tid"] for page in pages for row in page)) == tids(mini.ERINS)


def test_userFillsByTime__malformed_cursor_is_400(hand):
    wrong = ["", "_", "1", "1_", "_1", "1_2_3", "a_1", "1_b", "1.5_1", "-1_1", "1_-1", "1 _1"]
    for malformed in [*wrong, "1_1 ", 5, []]:
        got = hand.refuse("userFillsByTime", user=ALICE, cursor=malformed)
        assert got[0] == 400, malformed
