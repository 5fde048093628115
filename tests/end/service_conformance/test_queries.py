"""Market data; user and history queries."""

import itertools
from typing import Any

import pytest

from tests.end.service_conformance.asking import Client
from tests.end.service_conformance.fields import (
    LATEST_FILL,
    NOBODY,
    SLIPPAGE,
    TIMED_FILL,
    conforms,
)
from toolkit.simulation import World

# --- Market data ------------------------------------------------------------------------------


def test_current_depth_by_dex(client: Client) -> None:
    got = client.ask(type="currentDepth", dex="eqx")
    assert {market["dex"] for market in got["data"]} == {"eqx"}
    assert client.ask(type="currentDepth", dex="nowhere")["data"] == []


AMOUNTS = (1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6)


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("coin", ["BTC", "eqx:TSLA"])
def test_slippage_history(client: Client, coin: str, amount: float) -> None:
    rows = client.ask(type="slippageHistory", coin=coin, amount=amount, startTime=0, limit=2000)
    conforms(rows, SLIPPAGE)
    times = [row["timestamp"] for row in rows]
    assert times == sorted(set(times))
    assert all(time % 900_000 == 0 for time in times)
    assert {row["amountUsd"] for row in rows} == {amount}
    for row in rows:
        for name in ("halfSpreadBps", "buySlippageBps", "sellSlippageBps"):
            assert row[name] is None or round(row[name], 2) == row[name]


SLIPPAGE_ERRORS = [
    ({"coin": None}, "coin parameter is required"),
    ({"coin": ""}, "coin parameter is required"),
    ({"amount": None}, "amount parameter is required (positive USD notional)"),
    ({"amount": 0}, "amount parameter is required (positive USD notional)"),
    ({"amount": -5}, "amount parameter is required (positive USD notional)"),
    ({"startTime": None}, "startTime parameter is required"),
]


@pytest.mark.parametrize(("change", "message"), SLIPPAGE_ERRORS)
def test_slippage_history_errors(client: Client, change: dict[str, Any], message: str) -> None:
    body = {"coin": "BTC", "amount": 1000, "startTime": 0, **change}
    body = {name: value for name, value in body.items() if value is not None}
    assert client.refuse(type="slippageHistory", **body) == (400, message)


def test_slippage_history_is_500_rows_unless_asked_for_more(client: Client, world: World) -> None:
    ask = {"type": "slippageHistory", "coin": "BTC", "amount": 1000}
    rows = client.ask(**ask, startTime=0)
    assert len(rows) == min(500, len(client.ask(**ask, startTime=0, limit=2000)))
    first, last = rows[3]["timestamp"], rows[7]["timestamp"]
    assert client.ask(**ask, startTime=first, endTime=last) == rows[3:8]


# --- User and history queries -----------------------------------------------------------------


def key(row: Any) -> tuple[int, int]:
    return row["time"], row["txIndex"]


def test_user_fills_are_the_latest(client: Client, users: list[str], world: World) -> None:
    for user in users:
        rows = client.ask(type="userFills", user=user)
        keys = [key(row) for row in rows]
        assert keys == sorted(keys, reverse=True)
        newest = max((f.time, f.tx_index) for u, f in world.sources.fills if u == user)
        assert keys[0] == newest


@pytest.mark.parametrize("type", ["userFills", "userFillsByTime"])
@pytest.mark.parametrize("wrong", ["", "0x12", 5, True, [], {}, NOBODY + "0", " "])
def test_a_builder_filter_that_is_malformed_is_refused(
    client: Client, type: str, wrong: Any
) -> None:
    refused = client.refuse(type=type, user=NOBODY, startTime=0, builder=wrong)
    assert refused[0] == 400


def test_the_builder_filter(client: Client, users: list[str], world: World) -> None:
    for user in users:
        every = client.ask(type="userFills", user=user, builder=None)
        assert every == client.ask(type="userFills", user=user)
        for builder in world.builders:
            got = client.ask(type="userFills", user=user, builder=builder)
            if len(every) < 2000:
                assert got == [row for row in every if row.get("builder") == builder]


def test_user_fills_by_time_needs_a_start_unless_there_is_a_cursor(client: Client) -> None:
    assert client.refuse(type="userFillsByTime", user=NOBODY)[0] == 400
    ask = {"type": "userFillsByTime", "user": NOBODY, "cursor": "5_0"}
    assert client.ask(**ask) == []
    assert client.ask(**ask, startTime=10**12) == []


CURSORS = [
    ("userFillsByTime", "user", ["", "5", "5_", "_5", "a_5", "5_a", "5_-1", "5_1_2", "5 _1"]),
    ("builderApprovedFillsByTime", "builder", ["", "5", "5_", "_5", "5_a", "5_1_2"]),
    ("builderOrdersByTime", "builder", ["", "5", "5_", "_5", "5_a", "5_1_2"]),
    (
        "builderApprovedFundingByTime",
        "builder",
        ["", "5", "5_6", f"5_{NOBODY}", f"5_{NOBODY}_", f"a_{NOBODY}_BTC", "5_0x12_BTC"],
    ),
]


@pytest.mark.parametrize(
    ("type", "field", "cursor"),
    [(type, field, cursor) for type, field, cursors in CURSORS for cursor in (*cursors, 5, [])],
)
def test_a_malformed_cursor_is_refused(client: Client, type: str, field: str, cursor: Any) -> None:
    assert client.refuse(type=type, **{field: NOBODY}, cursor=cursor)[0] == 400


def test_paging_to_the_end(client: Client, users: list[str], world: World) -> None:
    user = users[len(users) // 2]
    expected = [f.tid for u, f in world.sources.fills if u == user]
    largest = max(
        len(list(g))
        for _, g in itertools.groupby(
            key(r) for r in client.ask(type="userFillsByTime", user=user, startTime=0)
        )
    )
    ask: dict[str, Any] = {"type": "userFillsByTime", "user": user, "limit": largest + 3}
    every = client.ask(**ask | {"limit": 2000}, startTime=0)
    page = client.ask(**ask, startTime=0)
    seen = [row["tid"] for row in page]
    last = key(page[-1])
    ends = {last}
    while len(page) == ask["limit"]:
        page = client.ask(**ask, cursor=f"{last[0]}_{last[1]}", startTime=0)
        assert all(key(row) > last for row in page)
        seen += [row["tid"] for row in page]
        last = key(page[-1]) if page else last
        ends.add(last)
    # An exclusive cursor may pass over the rest of a transaction, and nothing else.
    assert len(seen) == len(set(seen))
    assert set(seen) <= set(expected)
    assert len(every) == len(expected) < 2000
    passed_over = [key(row) for row in every if row["tid"] not in set(seen)]
    assert set(passed_over) <= ends


def test_times_are_inclusive(client: Client, users: list[str]) -> None:
    ask = {"type": "userFillsByTime", "user": users[-1]}
    rows = client.ask(**ask, startTime=0)
    first, last = rows[0]["time"], rows[-1]["time"]
    assert client.ask(**ask, startTime=first, endTime=last) == rows
    inner = [row for row in rows if first < row["time"] < last]
    assert client.ask(**ask, startTime=first + 1, endTime=last - 1) == inner


@pytest.mark.parametrize("wrong", [1.5, "0", True, [], {}, 1e300, "2025-09-01"])
@pytest.mark.parametrize("field", ["startTime", "endTime"])
def test_times_are_whole_numbers(client: Client, field: str, wrong: Any) -> None:
    body = {"user": NOBODY, "startTime": 0, field: wrong}
    assert client.refuse(type="userFillsByTime", **body)[0] == 400


@pytest.mark.parametrize("good", [0, 1753660800000, 1753660800000.0, 1.7e12])
def test_whole_numbers_may_be_written_as_floats(client: Client, good: float) -> None:
    assert client.ask(type="userFillsByTime", user=NOBODY, startTime=good) == []


@pytest.mark.parametrize("dex", ["eqx", "pre", "main_dex"])
def test_the_dex_filter(client: Client, users: list[str], dex: str) -> None:
    for user in users:
        rows = client.ask(type="userFillsByTime", user=user, startTime=0, dex=dex)
        for row in rows:
            prefix = row["coin"].partition(":")[0] if ":" in row["coin"] else "main_dex"
            assert prefix == dex


def test_the_venue_filter(client: Client, users: list[str]) -> None:
    found: dict[str, list[Any]] = {}
    for user in users:
        for row in client.ask(type="userFillsByTime", user=user, startTime=0):
            if "venue" in row:
                found.setdefault(user, []).append(row)
    assert found
    for user, rows in list(found.items())[:3]:
        ask = {"type": "userFillsByTime", "user": user, "startTime": 0}
        for venue in {row["venue"] for row in rows}:
            assert 2 <= len(venue) <= 4
            for written in (venue.lower(), venue.upper(), venue.title()):
                got = client.ask(**ask, venue=written)
                assert got
                assert {row["venue"] for row in got} == {venue}
        assert client.ask(**ask, venue="zz") == []


@pytest.mark.parametrize("wrong", ["", "a", "abcde", "a1", "ä" * 2, 5, []])
def test_a_malformed_venue_is_refused(client: Client, wrong: Any) -> None:
    body = {"type": "userFillsByTime", "user": NOBODY, "startTime": 0}
    assert client.refuse(**body, venue=wrong)[0] == 400


@pytest.mark.parametrize("type", ["userFills", "userFillsByTime"])
def test_aggregation_is_a_flag(client: Client, type: str, users: list[str]) -> None:
    body = {"type": type, "user": users[-1], "startTime": 0}
    plain = client.ask(**body)
    assert client.ask(**body, aggregateByTime=False) == plain
    merged = client.ask(**body, aggregateByTime=True)
    assert len(merged) <= len(plain)
    conforms(merged, LATEST_FILL if type == "userFills" else TIMED_FILL)
    for wrong in (1, "true", []):
        assert client.refuse(**body, aggregateByTime=wrong)[0] == 400


def test_approved_fills_are_ordered(client: Client, builder: str) -> None:
    rows = client.ask(type="builderApprovedFillsByTime", builder=builder, startTime=0)
    assert [key(row) for row in rows] == sorted(key(row) for row in rows)
    assert len({row["user"] for row in rows}) > 1


def test_approved_funding_is_ordered(client: Client, builder: str) -> None:
    rows = client.ask(type="builderApprovedFundingByTime", builder=builder, startTime=0)
    keys = [(row["time"], row["user"], row["delta"]["coin"]) for row in rows]
    assert keys == sorted(set(keys))
    time, user, coin = keys[4]
    after = client.ask(
        type="builderApprovedFundingByTime", builder=builder, cursor=f"{time}_{user}_{coin}"
    )
    assert after[0] == rows[5]


def test_builder_orders_are_ordered_by_time(client: Client, builder: str) -> None:
    rows = client.ask(type="builderOrdersByTime", builder=builder, startTime=0)
    keys = [(row["statusTimestamp"], row["txIndex"]) for row in rows]
    assert keys == sorted(keys)
    after = client.ask(
        type="builderOrdersByTime", builder=builder, cursor=f"{keys[0][0]}_{keys[0][1]}"
    )
    assert all((row["statusTimestamp"], row["txIndex"]) > keys[0] for row in after)


def test_the_ledger_needs_no_start(client: Client, users: list[str]) -> None:
    ask = {"type": "userNonFundingLedgerUpdates", "user": users[0]}
    assert client.ask(**ask) == client.ask(**ask, startTime=0)


def test_states_of_all_dexes(client: Client, users: list[str]) -> None:
    got = client.ask(type="batchClearinghouseStates", users=users[:100], dex="ALL_DEXES")
    for _, states in got["successful_states"]:
        assert next(iter(states)) == "native"
        assert set(states) == {"native", "eqx", "pre"}
    many = [f"0x{n:040x}" for n in range(1001)]
    assert client.refuse(type="batchClearinghouseStates", users=many)[0] == 400
    ask = {"type": "batchClearinghouseStates", "dex": "ALL_DEXES"}
    assert client.refuse(**ask, users=many[:101])[0] == 400
    for wrong in (None, "x", ["0x12"], [5], {}):
        assert client.refuse(type="batchClearinghouseStates", users=wrong)[0] == 400


@pytest.mark.parametrize(
    ("type", "body"),
    [
        ("userFillsByTime", {"user": NOBODY}),
        ("builderApprovedFillsByTime", {"builder": NOBODY}),
        ("builderApprovedFundingByTime", {"builder": NOBODY}),
        ("builderOrdersByTime", {"builder": NOBODY}),
        ("userNonFundingLedgerUpdates", {"user": NOBODY}),
        ("slippageHistory", {"coin": "BTC", "amount": 1000}),
    ],
)
def test_a_start_after_the_end_is_empty(client: Client, type: str, body: dict[str, Any]) -> None:
    assert client.ask(type=type, startTime=2, endTime=1, **body) == []


def test_validator_weeks_with_a_start_after_the_end_are_refused(client: Client) -> None:
    body = {"type": "validatorAprHistory", "validator": NOBODY}
    assert client.refuse(**body, startTime=2, endTime=1)[0] == 400
