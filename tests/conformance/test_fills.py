"""Specification, "Fill record", "userFills", "userFillsByTime"."""

# A check is named after its clause, an operation by its name on the wire.
# ruff: noqa: N802

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.conformance import mini, shapes
from tests.conformance.conftest import Caller
from toolkit.simulation import World

ALICE, B1, B2, T, NOW = mini.ALICE, mini.B1, mini.B2, mini.T, mini.NOW
Row = dict[str, Any]


def cursor(row: Row) -> str:
    return f"{row['time']}_{row['txIndex']}"


def tids(rows: list[Row]) -> list[int]:
    return [row["tid"] for row in rows]


def key(row: Row) -> tuple[int, int]:
    return row["time"], row["txIndex"]


@pytest.fixture(scope="module")
def traders(world: World) -> list[str]:
    """Every account of the simulated exchange that has fills."""
    return list(dict.fromkeys(user for user, _ in world.sources.fills))


@pytest.fixture(scope="module")
def latest_of(tiny: Caller, traders: list[str]) -> dict[str, list[Row]]:
    """The latest fills of each of them."""
    return {user: tiny.ask("userFills", user=user) for user in traders}


@pytest.fixture(scope="module")
def latest(latest_of: dict[str, list[Row]]) -> list[Row]:
    return [row for rows in latest_of.values() for row in rows]


@pytest.fixture(scope="module")
def by_time_of(tiny: Caller, traders: list[str]) -> dict[str, list[Row]]:
    """The first page of the fills of each of them."""
    return {user: tiny.ask("userFillsByTime", user=user, startTime=0) for user in traders}


@pytest.fixture(scope="module")
def by_time(by_time_of: dict[str, list[Row]]) -> list[Row]:
    return [row for rows in by_time_of.values() for row in rows]


# The record.


@shapes.fields(shapes.LATEST_FILL)
def test_fill_record__userFills(latest: list[Row], field: str, words: str) -> None:
    shapes.judge(latest, field, words)


@shapes.fields(shapes.FILL_BY_TIME)
def test_fill_record__userFillsByTime(by_time: list[Row], field: str, words: str) -> None:
    shapes.judge(by_time, field, words)


def test_fill_record__no_other_fields(latest: list[Row], by_time: list[Row]) -> None:
    shapes.no_other_fields(latest, shapes.LATEST_FILL)
    shapes.no_other_fields(by_time, shapes.FILL_BY_TIME)


def test_fill_record__builder_stands_in_userFills_where_routed(hand: Caller) -> None:
    rows = {row["tid"]: row for row in hand.ask("userFills", user=ALICE)}
    assert rows[1]["builder"] == B1
    assert rows[8]["builder"] == B2
    assert rows[13].get("builder") is None


def test_fill_record__coin_of_a_deployed_dex_is_prefixed(by_time: list[Row], summary: Any) -> None:
    coins = {row["coin"] for row in by_time}
    for dex in filter(None, summary["dexes"]):
        assert any(coin.startswith(f"{dex}:") for coin in coins)


def test_fill_record__deployerFee_only_on_deployed_dexes(by_time: list[Row]) -> None:
    deployed = [row for row in by_time if "deployerFee" in row]
    assert deployed
    assert all(":" in row["coin"] for row in deployed)


def test_fill_record__venue_only_on_outcome_markets(by_time: list[Row]) -> None:
    on_a_venue = [row for row in by_time if "venue" in row]
    assert on_a_venue
    assert all(row["coin"].startswith("#") for row in on_a_venue)
    assert all(2 <= len(row["venue"]) <= 4 for row in on_a_venue)


def test_fill_record__venue_is_omitted_for_validator_deployed_outcomes(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0)
    venues = {row["coin"]: row.get("venue", "absent") for row in rows}
    assert (venues["#1230"], venues["#90"], venues["#2070"]) == ("PMX", "absent", "KX")
    assert venues["BTC"] == "absent"


def test_fill_record__every_value_as_it_is(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0)
    assert rows == [
        {name: value for name, value in row.items() if name != "builder"} for row in mini.ALICES
    ]


# userFills.


def test_userFills__the_latest_newest_first(latest_of: dict[str, list[Row]], world: World) -> None:
    newest = {user: (one.time, one.tx_index) for user, one in world.sources.fills}
    for user, rows in latest_of.items():
        keys = [key(row) for row in rows]
        assert keys == sorted(keys, reverse=True)
        assert keys[0] == newest[user]


def test_userFills__equal_keys_keep_the_order_of_execution(hand: Caller) -> None:
    rows = hand.ask("userFills", user=ALICE)
    assert tids(rows) == [13, 12, 11, 10, 9, 8, 7, 6, 4, 5, 3, 1, 2]


def test_userFills__the_latest_when_there_are_more(hand: Caller) -> None:
    rows = hand.ask("userFills", user=mini.ERIN)
    times = sorted({row["time"] for row in mini.ERINS})
    assert len(rows) == 2000
    assert rows[0]["time"] == times[-1]


def test_userFills__limit(hand: Caller) -> None:
    assert tids(hand.ask("userFills", user=ALICE, limit=3)) == [13, 12, 11]


def test_userFills__includes_twap_fills(hand: Caller, latest: list[Row]) -> None:
    assert hand.ask("userFills", user=ALICE)[0]["twapId"] == 77
    assert any(row["twapId"] is not None for row in latest)


# userFillsByTime: range, order, paging.


def test_userFillsByTime__oldest_first(by_time_of: dict[str, list[Row]]) -> None:
    for rows in by_time_of.values():
        assert [key(row) for row in rows] == sorted(map(key, rows)) != []


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (T, T, [1, 2, 3, 4, 5, 6]),
        (T + 10, T + 10, [7]),
        (T + 1, T + 9, []),
        (T + 10, T + 20, [7, 8]),
        (T + 11, T + 19, []),
        (T + 50, NOW, [12, 13]),
        (0, T - 1, []),
    ],
)
def test_userFillsByTime__both_bounds_are_inclusive(
    hand: Caller, start: int, end: int, found: list[int]
) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=start, endTime=end)
    assert tids(rows) == found


def test_userFillsByTime__endTime_defaults_to_now(hand: Caller) -> None:
    asked = {"user": ALICE, "startTime": 0}
    assert hand.ask("userFillsByTime", **asked) == hand.ask("userFillsByTime", **asked, endTime=NOW)


def test_userFillsByTime__startTime_is_required_without_a_cursor(hand: Caller) -> None:
    assert hand.refuse("userFillsByTime", user=ALICE)[0] == 400
    assert hand.ask("userFillsByTime", user=ALICE, cursor=f"{T}_0")


@pytest.mark.parametrize("start", [0, T + 50, NOW + 1])
def test_userFillsByTime__startTime_is_ignored_with_a_cursor(hand: Caller, start: int) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=start, cursor=f"{T + 10}_0")
    assert tids(rows) == [8, 9, 10, 11, 12, 13]


def test_userFillsByTime__endTime_holds_with_a_cursor(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, cursor=f"{T + 10}_0", endTime=T + 30)
    assert tids(rows) == [8, 9, 10]


def test_userFillsByTime__a_cursor_is_exclusive(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, cursor=f"{T}_1", limit=3)
    assert tids(rows) == [3, 4, 5]


def test_userFillsByTime__a_cursor_need_not_be_a_row(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, cursor=f"{T + 5}_99")
    assert tids(rows) == [7, 8, 9, 10, 11, 12, 13]


def test_userFillsByTime__a_switch_makes_the_cursor_inclusive(inclusive: Caller) -> None:
    rows = inclusive.ask("userFillsByTime", user=ALICE, cursor=f"{T}_1", limit=3)
    assert tids(rows) == [1, 2, 3]


def test_userFillsByTime__a_page_can_end_inside_a_transaction(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, limit=5)
    assert tids(rows) == [1, 2, 3, 4, 5]
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, limit=4)
    assert (
        tids(hand.ask("userFillsByTime", user=ALICE, cursor=cursor(rows[-1])))
        == tids(mini.ALICES)[5:]
    )


@pytest.mark.parametrize("limit", [300, 1998])
def test_userFillsByTime__paging_to_the_end(hand: Caller, limit: int) -> None:
    """Erin's transactions hold three fills: pages of multiples of three never end inside one."""
    pages = hand.pages("userFillsByTime", limit, cursor, user=mini.ERIN)
    assert [row["tid"] for page in pages for row in page] == tids(mini.ERINS)
    assert all(len(page) == limit for page in pages[:-1])
    assert len(pages[-1]) < limit


def test_userFillsByTime__paging_passes_over_nothing_but_the_rest_of_a_transaction(
    tiny: Caller, by_time_of: dict[str, list[Row]], world: World
) -> None:
    """A cursor names a transaction, and a page may end inside one."""
    user, rows = next((u, rows) for u, rows in by_time_of.items() if 300 < len(rows) < 2000)
    assert tids(rows) == [one.tid for whose, one in world.sources.fills if whose == user]
    limit = max(Counter(map(key, rows)).values()) + 3
    pages = tiny.pages("userFillsByTime", limit, cursor, user=user)
    for page in pages:
        assert page == rows[:limit]
        rows = [row for row in rows if key(row) > key(page[-1])] if page else rows
    assert rows == []


def test_userFillsByTime__paging_to_the_end_with_inclusive_cursors(inclusive: Caller) -> None:
    pages = inclusive.pages("userFillsByTime", 400, cursor, user=mini.ERIN)
    assert list(dict.fromkeys(row["tid"] for page in pages for row in page)) == tids(mini.ERINS)


@pytest.mark.parametrize(
    "malformed",
    [
        *("", "_", "1", "1_", "_1", "1_2_3", "a_1", "1_b", "1.5_1", "-1_1", "1_-1", "1 _1"),
        *("1_1 ", 5, []),
    ],
)
def test_userFillsByTime__a_malformed_cursor_is_400(hand: Caller, malformed: Any) -> None:
    assert hand.refuse("userFillsByTime", user=ALICE, cursor=malformed)[0] == 400


# The filters.

BOTH = pytest.mark.parametrize("type", ["userFills", "userFillsByTime"])


def _some(hand: Caller, type: str, **fields: Any) -> list[int]:
    start = {"startTime": 0} if type == "userFillsByTime" else {}
    return sorted(tids(hand.ask(type, user=ALICE, **start, **fields)))


@BOTH
def test_builder_filter__fills_routed_through_it(hand: Caller, type: str) -> None:
    assert _some(hand, type, builder=B1) == [1, 2, 3]
    assert _some(hand, type, builder=B2) == [8]
    assert _some(hand, type, builder=B2.upper().replace("X", "x")) == [8]


@BOTH
def test_builder_filter__null_is_no_filter(hand: Caller, type: str) -> None:
    assert _some(hand, type, builder=None) == list(range(1, 14))


@BOTH
def test_builder_filter__an_unknown_builder_has_routed_nothing(hand: Caller, type: str) -> None:
    assert _some(hand, type, builder=mini.NOBODY) == []


@BOTH
def test_builder_filter__of_every_account_and_builder(
    tiny: Caller,
    latest_of: dict[str, list[Row]],
    by_time_of: dict[str, list[Row]],
    summary: Any,
    type: str,
) -> None:
    """`userFillsByTime` does not say through whom a fill was routed, `userFills` does."""
    start = {"startTime": 0} if type == "userFillsByTime" else {}
    whole = {user: rows for user, rows in latest_of.items() if len(rows) < 2000}
    for user, rows in whole.items():
        for builder in summary["builders"]:
            routed = {row["tid"] for row in rows if row.get("builder") == builder}
            every = (by_time_of if start else latest_of)[user]
            assert tiny.ask(type, user=user, builder=builder, **start) == [
                row for row in every if row["tid"] in routed
            ]


MALFORMED_FILTERS = ["", " ", "0x12", "B1", B1 + "0", 0, 7, True, False, [], [B1], {}]


@BOTH
@pytest.mark.parametrize("builder", MALFORMED_FILTERS)
def test_builder_filter__malformed_empty_or_no_string_is_400(
    hand: Caller, type: str, builder: Any
) -> None:
    body = {"user": ALICE, "startTime": 0, "builder": builder}
    assert hand.refuse(type, **body)[0] == 400


@BOTH
def test_dex_filter__main_dex(hand: Caller, type: str) -> None:
    assert set(_some(hand, type, dex="main_dex")) >= {1, 2, 3, 4, 5, 6, 7, 13}
    assert 8 not in _some(hand, type, dex="main_dex")


@BOTH
def test_dex_filter__a_deployed_dex(hand: Caller, type: str) -> None:
    assert _some(hand, type, dex="eqx") == [8]


@BOTH
def test_dex_filter__an_unknown_dex_has_no_fills(hand: Caller, type: str) -> None:
    assert _some(hand, type, dex="nowhere") == []


@pytest.mark.parametrize("dex", ["main_dex", "eqx", "pre"])
def test_dex_filter__of_every_account(
    tiny: Caller, by_time_of: dict[str, list[Row]], dex: str
) -> None:
    found = [
        row["coin"].partition(":")[0] if ":" in row["coin"] else "main_dex"
        for user in by_time_of
        for row in tiny.ask("userFillsByTime", user=user, startTime=0, dex=dex)
    ]
    assert set(found) == {dex}


@pytest.mark.parametrize("venue", ["PMX", "pmx", "pMx"])
def test_venue__any_case(hand: Caller, venue: str) -> None:
    assert _some(hand, "userFillsByTime", venue=venue) == [9]


def test_venue__only_fills_of_that_venue(hand: Caller) -> None:
    assert _some(hand, "userFillsByTime", venue="KX") == [11]


@pytest.mark.parametrize("venue", ["ZZ", "abcd"])
def test_venue__an_unknown_one_is_an_empty_list(hand: Caller, venue: str) -> None:
    assert _some(hand, "userFillsByTime", venue=venue) == []


@pytest.mark.parametrize("written", [str.upper, str.lower, str.title])
def test_venue__of_every_account_on_one(
    tiny: Caller, by_time_of: dict[str, list[Row]], written: Callable[[str], str]
) -> None:
    venues = {user: {row.get("venue") for row in rows} for user, rows in by_time_of.items()}
    traded = [(user, venue) for user, found in venues.items() for venue in found - {None}]
    assert traded
    for user, venue in traded:
        rows = tiny.ask("userFillsByTime", user=user, startTime=0, venue=written(venue))
        assert {row["venue"] for row in rows} == {venue}
        assert tiny.ask("userFillsByTime", user=user, startTime=0, venue="zz") == []


@pytest.mark.parametrize("venue", ["", "P", "PMXPM", "P1", "P-X", "ÄÖ", 12, True, [], ["PMX"]])
def test_venue__not_2_to_4_ascii_letters_is_400(hand: Caller, venue: Any) -> None:
    assert hand.refuse("userFillsByTime", user=ALICE, startTime=0, venue=venue)[0] == 400


def test_filters__together(hand: Caller) -> None:
    assert _some(hand, "userFillsByTime", builder=B2, dex="eqx") == [8]
    assert _some(hand, "userFillsByTime", builder=B1, dex="eqx") == []
    assert _some(hand, "userFillsByTime", builder=B1, limit=2, endTime=T) == [1, 2]


# aggregateByTime.


def _merged(hand: Caller, type: str) -> dict[int, Row]:
    start = {"startTime": 0} if type == "userFillsByTime" else {}
    return {row["tid"]: row for row in hand.ask(type, user=ALICE, aggregateByTime=True, **start)}


@BOTH
def test_aggregateByTime__false_by_default(hand: Caller, type: str) -> None:
    asked = {"user": ALICE, "startTime": 0}
    plain = hand.ask(type, **asked)
    assert sorted(tids(plain)) == list(range(1, 14))
    assert hand.ask(type, **asked, aggregateByTime=False) == plain


@BOTH
def test_aggregateByTime__partial_fills_of_a_crossing_order_become_one(
    hand: Caller, type: str
) -> None:
    assert sorted(_merged(hand, type)) == [1, 4, 6, 7, 8, 9, 10, 11, 12, 13]


@BOTH
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sz", "5.0"),
        ("px", "103.4"),
        ("fee", "0.6"),
        ("builderFee", "0.03"),
        ("closedPnl", "0.3"),
        ("startPosition", "0.0"),
        ("tid", 1),
        ("txIndex", 1),
        ("oid", 10),
    ],
)
def test_aggregateByTime__sums_are_exact_and_the_price_a_mean(
    hand: Caller, type: str, field: str, value: Any
) -> None:
    assert _merged(hand, type)[1][field] == value


@BOTH
def test_aggregateByTime__a_resting_order_merges_within_one_transaction(
    hand: Caller, type: str
) -> None:
    merged = _merged(hand, type)
    assert (merged[4]["sz"], merged[4]["fee"]) == ("3.0", "-0.3")
    assert (merged[6]["sz"], merged[6]["fee"]) == ("5.0", "-0.5")


@BOTH
def test_aggregateByTime__another_time_is_another_row(hand: Caller, type: str) -> None:
    assert _merged(hand, type)[7]["sz"] == "1.0"


@pytest.fixture(scope="module")
def merged_of(tiny: Caller, traders: list[str]) -> dict[str, dict[str, list[Row]]]:
    """The merged fills of every account, by operation."""
    how = {"startTime": 0, "aggregateByTime": True}
    return {
        type: {user: tiny.ask(type, user=user, **how) for user in traders}
        for type in ("userFills", "userFillsByTime")
    }


@BOTH
def test_aggregateByTime__nothing_is_lost(
    merged_of: dict[str, dict[str, list[Row]]], latest_of: dict[str, list[Row]], type: str
) -> None:
    fewer = 0
    for user, plain in latest_of.items():
        merged = merged_of[type][user]
        if len(plain) < 2000:
            fewer += len(plain) - len(merged)
            assert len(merged) <= len(plain)
            assert sum(Decimal(row["sz"]) for row in merged) == sum(
                Decimal(row["sz"]) for row in plain
            )
    assert fewer > 0


@pytest.mark.parametrize(
    ("type", "shape"),
    [("userFills", shapes.LATEST_FILL), ("userFillsByTime", shapes.FILL_BY_TIME)],
)
def test_aggregateByTime__rows_are_fill_records(
    merged_of: dict[str, dict[str, list[Row]]], type: str, shape: shapes.Shape
) -> None:
    rows = [row for rows in merged_of[type].values() for row in rows]
    shapes.no_other_fields(rows, shape)
    for field, words in shape.items():
        shapes.judge(rows, field, words)


def test_aggregateByTime__limit_counts_merged_rows(hand: Caller) -> None:
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, aggregateByTime=True, limit=2)
    assert tids(rows) == [1, 4]


def test_aggregateByTime__pages_go_on_after_the_merged_row(hand: Caller) -> None:
    asked = {"user": ALICE, "aggregateByTime": True}
    page = hand.ask("userFillsByTime", **asked, startTime=0, limit=2)
    rest = hand.ask("userFillsByTime", **asked, cursor=cursor(page[-1]))
    assert tids(page) + tids(rest) == [1, 4, 6, 7, 8, 9, 10, 11, 12, 13]
