"""Fills, orders, funding and ledger of the service, compared with the simulation's tables."""

from collections import defaultdict
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from toolkit.contract.records import Fill
from toolkit.service.aggregation import aggregate_fills

NOBODY = "0x" + "0" * 40
TIMED = ("builder", "user")
LATEST = ("venue", "user")


def sent_fill(fill, omits):
    """Return a fill as an operation sends it."""
    fields: dict[str, Any] = msgspec.to_builtins(fill)
    return {name: value for name, value in fields.items() if name not in omits}


@pytest.fixture(scope="module")
def fills(world):
    by_user = defaultdict(list)
    for user, fill in world.sources.fills:
        by_user[user].append(fill)
    return by_user


@pytest.fixture(scope="module")
def busy_user(fills):
    return max(fills, key=lambda user: len(fills[user]))


def test_fills_by_time_are_complete(asker, fills):
    for user, rows in fills.items():
        expected = [sent_fill(row, TIMED) for row in rows]
        assert asker.ask("userFillsByTime", user=user, startTime=0) == expected[:2000]


def test_user_fills_newest_first(asker, fills, busy_user):
    newest = sorted(fills[busy_user], key=lambda row: (row.time, row.tx_index), reverse=True)
    expected = [sent_fill(row, LATEST) for row in newest]
    assert asker.ask("userFills", user=busy_user) == expected[:2000]
    assert (
        asker.ask("userFills", user=busy_user.upper().replace("0X", "0x"), limit=7) == expected[:7]
    )


def test_filtered_page_has_full_size(asker, fills):
    user = next(u for u, rows in fills.items() if any(row.coin.startswith("eqx:") for row in rows))
    expected = [sent_fill(row, TIMED) for row in fills[user] if row.coin.startswith("eqx:")]
    for limit in (7, 2000):
        page = asker.ask("userFillsByTime", user=user, startTime=0, dex="eqx", limit=limit)
        assert page == expected[:limit]
    native = asker.ask("userFillsByTime", user=user, startTime=0, dex="main_dex")
    assert len(native) == min(2000, sum(":" not in row.coin for row in fills[user]))


def test_aggregation_keeps_sums(asker, fills, busy_user):
    rows = fills[busy_user][:1500]
    ask = {"user": busy_user, "startTime": 0, "endTime": rows[-1].time - 1}
    plain = asker.ask("userFillsByTime", **ask)
    merged_rows = asker.ask("userFillsByTime", aggregateByTime=True, **ask)
    assert 0 < len(merged_rows) < len(plain)
    for name in ("sz", "fee", "closedPnl", "builderFee", "deployerFee"):
        sums = [
            sum(Decimal(row[name]) for row in some if name in row) for some in (plain, merged_rows)
        ]
        assert sums[0] == sums[1], name
    crossing = [(row["oid"], row["coin"], row["time"]) for row in merged_rows if row["crossed"]]
    assert len(crossing) == len(set(crossing))


def test_aggregated_pages_equal_all_rows(asker, fills, world):
    user = next(user for user, rows in fills.items() if 100 < len(rows) < 1500)
    whole = asker.ask("userFillsByTime", user=user, startTime=0, aggregateByTime=True)
    assert (
        asker.ask("userFills", user=user, aggregateByTime=True, limit=20)[0]["time"]
        == (whole[-1]["time"])
    )
    seen = []
    for row in asker.pages("userFillsByTime", 7, inclusive=True, user=user, aggregateByTime=True):
        if row not in seen:
            seen.append(row)
    assert seen == whole


def fill(**fields):
    row = {"coin": "BTC", "px": "100.0", "sz": "1.0", "side": "B", "time": 5}
    row |= {"start_position": "0.0", "dir": "Open Long", "closed_pnl": "0.0", "hash": "0x1"}
    row |= {"oid": 1, "crossed": True, "fee": "0.1", "tid": 1, "fee_token": "USDC"}
    return Fill(**{**row, "twap_id": None, "tx_index": 0, **fields})


def test_partial_fills_are_merged():
    one = aggregate_fills(
        [
            fill(tid=1, builder_fee="0.01"),
            fill(tid=2, px="103.0", sz="2.0", start_position="1.0", closed_pnl="-1.25", fee="0.20"),
        ]
    )
    assert one == [
        fill(px="102.0", sz="3.0", fee="0.3", builder_fee="0.01", closed_pnl="-1.25", tid=1)
    ]


def test_fills_of_different_orders_stay_separate():
    rows = [
        fill(oid=1),
        fill(oid=2),
        fill(oid=1, side="A"),
        fill(oid=1, coin="ETH"),
        fill(oid=3, crossed=False, tx_index=1),
        fill(oid=3, crossed=False, tx_index=2),
    ]
    assert aggregate_fills(rows) == rows
    assert len(aggregate_fills([fill(oid=3, crossed=False), fill(oid=3, crossed=False)])) == 1
    assert len(aggregate_fills([fill(oid=3, tx_index=1), fill(oid=3, tx_index=2)])) == 1


def test_conversions_stay_separate():
    """A trade and conversions with the same order id are not merged."""
    leg = fill(coin="#1230", px="0.5", dir="Split Outcome", tid=0, fee="0.0")
    rows = [leg, fill(coin="#1230", px="0.4", dir="Buy"), fill(coin="#1231", px="0.5", tid=0)]
    assert aggregate_fills(rows) == rows
    other = fill(coin="#1230", px="0.25", dir="Negate Outcome", tid=0, tx_index=7, hash="0x2")
    assert aggregate_fills([leg, other]) == [leg, other]


def had_approved(world, user, builder, time):
    """Return whether a user had approved a builder in the block at `time`."""
    said = sorted(
        (approval.time, approval.tx_index, approval.approved)
        for approval in world.sources.approvals
        if (approval.user, approval.builder) == (user, builder) and approval.time <= time
    )
    return bool(said) and said[-1][-1]


def test_builder_funding_is_of_approving_users(asker, world):
    for builder in world.builders:
        expected = [
            msgspec.to_builtins(row)
            for row in world.sources.funding
            if had_approved(world, row.user, builder, row.time)
        ]
        assert expected
        assert asker.pages("builderApprovedFundingByTime", 2000, builder=builder) == expected
        assert asker.pages("builderApprovedFundingByTime", 7, builder=builder) == expected


def test_inclusive_funding_cursor_repeats_last_row(asker, world):
    """The address in a cursor may have any case."""
    builder = world.builders[0]
    first = asker.ask("builderApprovedFundingByTime", builder=builder, startTime=0, limit=5)
    last = first[-1]
    for user in (last["user"], "0x" + last["user"][2:].upper()):
        cursor = f"{last['time']}_{user}_{last['delta']['coin']}"
        asked = {"builder": builder, "cursor": cursor, "limit": 3}
        again = asker.ask("builderApprovedFundingByTime", inclusive=True, **asked)
        assert again[0] == last
        assert asker.ask("builderApprovedFundingByTime", **asked)[:2] == again[1:]


def test_ledger_is_complete_and_ascending(asker, world):
    user = world.sources.ledger[0][0]
    expected = [msgspec.to_builtins(row) for who, row in world.sources.ledger if who == user]
    assert asker.ask("userNonFundingLedgerUpdates", user=user) == expected
    middle = expected[-1]["time"]
    later = asker.ask("userNonFundingLedgerUpdates", user=user, startTime=middle, endTime=middle)
    assert later == [row for row in expected if row["time"] == middle]


def test_slippage_is_of_coin_and_amount(asker, world):
    for coin, stored in (("BTC", "BTC"), ("main:BTC", "BTC"), ("eqx:TSLA", "eqx:TSLA")):
        expected = [
            msgspec.to_builtins(row)
            for row in world.sources.slippage
            if row.coin == stored and row.amount_usd == 50_000
        ]
        assert expected
        asked = {"coin": coin, "amount": 50_000, "startTime": 0}
        assert asker.ask("slippageHistory", **asked) == expected
        assert asker.ask("slippageHistory", limit=3, **asked) == expected[:3]
    assert asker.ask("slippageHistory", coin="NOPE", amount=1000, startTime=0) == []


def test_builder_fills_are_of_approving_users(asker, world):
    for builder in world.builders:
        expected = [
            {**{"builder": None}, **sent_fill(row, ("venue", "user")), "user": user}
            for user, row in world.sources.fills
            if had_approved(world, user, builder, row.time)
        ]
        assert expected
        whole = asker.ask("builderApprovedFillsByTime", builder=builder, startTime=0)
        assert whole == expected[:2000]
        assert {row["builder"] for row in whole} > {None}
        seen = []
        asked = {"builder": builder, "endTime": expected[100]["time"]}
        for row in asker.pages("builderApprovedFillsByTime", 60, inclusive=True, **asked):
            if row not in seen:
                seen.append(row)
        assert seen == [row for row in expected if row["time"] <= expected[100]["time"]]
        key = (expected[50]["time"], expected[50]["txIndex"])
        after = asker.ask(
            "builderApprovedFillsByTime", builder=builder, cursor=f"{key[0]}_{key[1]}", limit=5
        )
        assert after == [r for r in expected if (r["time"], r["txIndex"]) > key][:5]


def test_historical_orders_are_newest_first(asker, world):
    by_user = defaultdict(list)
    for user, event in world.sources.orders:
        by_user[user].append(event)
    user = max(by_user, key=lambda one: len(by_user[one]))
    newest = sorted(
        by_user[user], key=lambda one: (one.status_timestamp, one.tx_index), reverse=True
    )
    expected = [msgspec.to_builtins(item) for item in newest]
    assert asker.ask("historicalOrders", user=user) == expected[:2000]
    assert asker.ask("historicalOrders", user=user, limit=3) == expected[:3]
    assert not any("user" in row for row in expected)


def test_builder_orders_name_user_not_builder(asker, world):
    for builder in world.builders:
        expected = [
            {"user": user, **msgspec.to_builtins(event)}
            for user, event in world.sources.orders
            if event.builder == builder
        ]
        expected = [
            {name: value for name, value in row.items() if name != "builder"} for row in expected
        ]
        assert expected
        got = asker.ask("builderOrdersByTime", builder=builder, startTime=0)
        assert got == expected[:2000]
        key = (expected[0]["statusTimestamp"], expected[0]["txIndex"])
        ask = {"builder": builder, "cursor": f"{key[0]}_{key[1]}"}
        later = [r for r in expected if (r["statusTimestamp"], r["txIndex"]) > key]
        assert asker.ask("builderOrdersByTime", **ask) == later[:2000]
        again = [r for r in expected if (r["statusTimestamp"], r["txIndex"]) >= key]
        assert asker.ask("builderOrdersByTime", inclusive=True, **ask) == again[:2000]
