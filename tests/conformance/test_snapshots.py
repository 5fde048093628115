"""Specification, "Snapshot endpoints (compressed binary)"."""

# A check is named after its clause, an operation by its name on the wire.
# ruff: noqa: N802

import datetime
import io
import struct
from typing import Any

import msgpack
import pytest
import zstandard

from tests.conformance import mini, shapes
from tests.conformance.conftest import Caller

ALICE, BOB, CAROL = mini.ALICE, mini.BOB, mini.CAROL
TYPES = {"accountValueSnapshots": "collateral_tokens", "perpTwapSnapshots": "market_names"}
METADATA = pytest.mark.parametrize(
    "type", ["accountValueSnapshotTimestamp", "perpTwapSnapshotTimestamp"]
)
BOTH = pytest.mark.parametrize("type", TYPES)


def named(value: object) -> str:
    """Name a case alike in every process: by what is asked for, since sets have no order."""
    asked = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return str(value) if asked else "found"


ONE = {"accountValueSnapshots": ["pre:USDH"], "perpTwapSnapshots": ["BTC"]}
SEVERAL = {"accountValueSnapshots": ["ALL"], "perpTwapSnapshots": ["ALL"]}


def unpack(blob: bytes) -> Any:
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(blob)).read()
    return msgpack.unpackb(plain)


def blobs(content: bytes) -> list[bytes]:
    """Take the body of several snapshots apart, to its last byte."""
    (count,) = struct.unpack_from("<I", content)
    found, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("<I", content, at)
        found.append(content[at + 4 : at + 4 + length])
        assert len(found[-1]) == length
        at += 4 + length
    assert at == len(content)
    return found


def snapshots(caller: Caller, type: str, *wanted: str) -> dict[str, Any]:
    """Ask, and give what came by the name of its token or market."""
    status, headers, content = caller.raw({"type": type, TYPES[type]: list(wanted)})
    assert status == 200, content
    if headers["x-payload-format"] == "msgpack":
        found = [unpack(content)]
    else:
        found = [unpack(one) for one in blobs(content)]
    named = {one[1]: one for one in found}
    assert len(named) == len(found), "one came twice"
    return named


def markets(caller: Caller, *wanted: str) -> set[str]:
    return set(snapshots(caller, "perpTwapSnapshots", *wanted))


def holders(caller: Caller, *wanted: str) -> dict[str, set[str]]:
    """Give the accounts of each snapshot, by dex and token."""
    found = snapshots(caller, "accountValueSnapshots", *wanted)
    return {name: set(one[2]) for name, one in found.items()}


HOLDERS = {"main:USDC": {ALICE, BOB, CAROL}, "eqx:USDC": {ALICE}, "pre:USDH": {BOB}}
USDC = {"main:USDC", "eqx:USDC"}
EVERY_TWAP = set(mini.TWAPS)
MAIN_TWAPS = {"BTC", "ETH"}


# Metadata.


@METADATA
@shapes.fields(shapes.SNAPSHOT_METADATA)
def test_snapshot_metadata(tiny: Caller, type: str, field: str, words: str) -> None:
    rows = [tiny.ask(type)]
    shapes.judge(rows, field, words)
    shapes.no_other_fields(rows, shapes.SNAPSHOT_METADATA)


@METADATA
def test_snapshot_metadata__is_in_seconds(hand: Caller, type: str) -> None:
    assert hand.ask(type) == {"snapshot_id": mini.SNAPSHOT, "timestamp": mini.NOW // 1000}


def test_accountValueSnapshotTimestamp__is_that_of_the_perp_snapshot(
    tiny: Caller, hand: Caller
) -> None:
    for one in (tiny, hand):
        values = one.ask("accountValueSnapshotTimestamp")
        assert values == one.ask("perpTwapSnapshotTimestamp")


@BOTH
def test_snapshots__are_those_that_the_metadata_names(tiny: Caller, type: str) -> None:
    named = tiny.ask(type.replace("Snapshots", "SnapshotTimestamp"))["snapshot_id"]
    found = snapshots(tiny, type, *SEVERAL[type])
    assert {one[0] for one in found.values()} == {named}


# The two formats.


@BOTH
def test_binary__one_snapshot(hand: Caller, type: str) -> None:
    status, headers, content = hand.raw({"type": type, TYPES[type]: ONE[type]})
    assert status == 200
    assert headers["x-payload-format"] == "msgpack"
    assert headers["content-encoding"] == "zstd"
    assert "x-compression" not in headers
    assert content[:4] == bytes.fromhex("28b52ffd")
    assert unpack(content)[0] == mini.SNAPSHOT


@BOTH
def test_binary__several_snapshots(hand: Caller, type: str) -> None:
    status, headers, content = hand.raw({"type": type, TYPES[type]: SEVERAL[type]})
    assert status == 200
    assert headers["x-payload-format"] == "multi-zstd"
    assert headers["x-compression"] == "inner-zstd"
    assert "content-encoding" not in headers
    found = blobs(content)
    assert len(found) > 1
    assert all(one[:4] == bytes.fromhex("28b52ffd") for one in found)
    assert all(unpack(one)[0] == mini.SNAPSHOT for one in found)


@BOTH
def test_binary__integers_are_little_endian(hand: Caller, type: str) -> None:
    _, _, content = hand.raw({"type": type, TYPES[type]: SEVERAL[type]})
    assert content[1:4] == b"\0\0\0"
    assert content[0] == len(blobs(content))


@BOTH
@pytest.mark.parametrize("accepts", ["identity", "gzip", "zstd", "*"])
def test_binary__whatever_the_client_accepts(hand: Caller, type: str, accepts: str) -> None:
    for wanted in (ONE, SEVERAL):
        _, headers, content = hand.raw(
            {"type": type, TYPES[type]: wanted[type]}, **{"Accept-Encoding": accepts}
        )
        several = headers["x-payload-format"] == "multi-zstd"
        assert unpack(blobs(content)[0] if several else content)[0] == mini.SNAPSHOT


@pytest.mark.parametrize(
    ("type", "wanted", "form"),
    [
        ("accountValueSnapshots", ["USDH"], "msgpack"),
        ("accountValueSnapshots", ["USDH", "pre:USDH"], "msgpack"),
        ("accountValueSnapshots", ["USDH", "NOTHING"], "msgpack"),
        ("accountValueSnapshots", ["USDC"], "multi-zstd"),
        ("perpTwapSnapshots", ["BTC", "BTC"], "msgpack"),
        ("perpTwapSnapshots", ["BTC", "NOTHING"], "msgpack"),
        ("perpTwapSnapshots", ["ALL:pre"], "msgpack"),
        ("perpTwapSnapshots", ["ALL:eqx"], "multi-zstd"),
        ("perpTwapSnapshots", ["BTC", "ETH"], "multi-zstd"),
    ],
)
def test_binary__the_format_depends_on_what_was_found(
    hand: Caller, type: str, wanted: list[str], form: str
) -> None:
    _, headers, _ = hand.raw({"type": type, TYPES[type]: wanted})
    assert headers["x-payload-format"] == form


# Account values.


@pytest.fixture(scope="module")
def accounts(tiny: Caller) -> list[dict[str, Any]]:
    """The tuples of the simulated exchange, by the names of their indices."""
    found = snapshots(tiny, "accountValueSnapshots", "ALL").values()
    assert all(shapes.fits("address", user) for one in found for user in one[2])
    tuples = [values for one in found for values in one[2].values()]
    return [dict(zip(shapes.ACCOUNT_TUPLE, one, strict=False)) for one in tuples]


@shapes.fields(shapes.ACCOUNT_TUPLE)
def test_account_value_tuple(accounts: list[dict[str, Any]], field: str, words: str) -> None:
    shapes.judge(accounts, field, words)


def test_account_value_tuple__5_values_or_8_for_portfolio_margin(
    accounts: list[dict[str, Any]],
) -> None:
    assert {(len(one), one["account_mode"] == 3) for one in accounts} == {(5, False), (8, True)}


def test_account_value_tuple__account_mode(accounts: list[dict[str, Any]]) -> None:
    assert {one["account_mode"] for one in accounts} == {0, 1, 2, 3}


def test_account_value_tuple__is_unified_is_false_for_portfolio_margin(
    accounts: list[dict[str, Any]],
) -> None:
    assert all(one["is_unified"] == (one["account_mode"] == 2) for one in accounts)


def test_account_value_tuple__notionals_are_absolute(accounts: list[dict[str, Any]]) -> None:
    assert all(one["total_long_notional"] >= 0 for one in accounts)
    assert all(one["total_short_notional"] >= 0 for one in accounts)


def test_account_value_tuple__branches_are_pairs(accounts: list[dict[str, Any]]) -> None:
    for one in accounts:
        for token, margin in one.get("pm_avail_by_branch", []):
            assert shapes.fits("string", token)
            assert shapes.fits("number", margin)


def test_account_value_snapshot__array_form(hand: Caller) -> None:
    [one] = snapshots(hand, "accountValueSnapshots", "main:USDC").values()
    users = {user: list(values) for user, values in mini.ACCOUNTS["", "USDC"].items()}
    assert one == [mini.SNAPSHOT, "main:USDC", users]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["USDC"], USDC),
        (["USDH"], {"pre:USDH"}),
        (["main:USDC"], {"main:USDC"}),
        (["eqx:USDC"], {"eqx:USDC"}),
        (["pre:USDH"], {"pre:USDH"}),
        (["main:USDC", "pre:USDH"], {"main:USDC", "pre:USDH"}),
        (["eqx:USDC", "USDH"], {"eqx:USDC", "pre:USDH"}),
        (["USDC", "pre:USDH"], USDC | {"pre:USDH"}),
        (["ALL"], USDC | {"pre:USDH"}),
        (["ALL", "USDC"], USDC | {"pre:USDH"}),
        (["ALL", "pre:USDH"], USDC | {"pre:USDH"}),
        (["USDC", "USDC"], USDC),
        (["USDC", "eqx:USDC"], USDC),
        (["eqx:USDC", "USDC", "eqx:USDC"], USDC),
    ],
    ids=named,
)
def test_accountValueSnapshots__collateral_tokens(
    hand: Caller, tiny: Caller, wanted: list[str], found: set[str]
) -> None:
    assert holders(hand, *wanted) == {name: HOLDERS[name] for name in found}
    assert holders(tiny, *wanted).keys() == found


# TWAPs.


@pytest.fixture(scope="module")
def twaps(tiny: Caller, hand: Caller) -> list[dict[str, Any]]:
    """The tuples of both exchanges, by the names of their indices."""
    tuples = [
        values
        for caller in (tiny, hand)
        for one in snapshots(caller, "perpTwapSnapshots", "ALL:ALL_DEXES").values()
        for values in one[2]
    ]
    assert {len(one) for one in tuples} == {21}
    return [dict(zip(shapes.TWAP_TUPLE, one, strict=True)) for one in tuples]


@shapes.fields(shapes.TWAP_TUPLE)
def test_twap_tuple(twaps: list[dict[str, Any]], field: str, words: str) -> None:
    kind, *more = words.split(", ")
    values = [one[field] for one in twaps]
    assert all(shapes.fits(kind, one) or (one is None and "null" in more) for one in values)
    if "seen" in more:
        assert {one is None for one in values} == {True, False}


def test_twap_tuple__remaining_is_total_less_executed(twaps: list[dict[str, Any]]) -> None:
    for one in twaps:
        assert one["remaining_sz"] == pytest.approx(one["total_sz"] - one["executed_sz"])


def test_twap_tuple__progress_is_0_to_100(twaps: list[dict[str, Any]]) -> None:
    assert all(0 <= one["progress_pct"] <= 100 for one in twaps)


def test_twap_tuple__next_slice_time_is_iso(twaps: list[dict[str, Any]]) -> None:
    assert all(datetime.datetime.fromisoformat(one["next_slice_time"]) for one in twaps)


@pytest.mark.parametrize("field", ["is_buy", "reduce_only", "randomize", "waiting"])
def test_twap_tuple__flags_are_seen_both_ways(twaps: list[dict[str, Any]], field: str) -> None:
    assert {one[field] for one in twaps} == {True, False}


def test_twap_tuple__waiting_for_a_trigger(twaps: list[dict[str, Any]]) -> None:
    for one in twaps:
        assert one["waiting"] == (one["trigger_px"] is not None)
        assert (one["trigger_above"] is None) == (one["trigger_px"] is None)


def test_twap_snapshot__array_form(hand: Caller) -> None:
    found = snapshots(hand, "perpTwapSnapshots", "ALL:ALL_DEXES")
    assert found == {
        market: [mini.SNAPSHOT, market, [list(one.values()) for one in rows]]
        for market, rows in mini.TWAPS.items()
    }


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["BTC"], {"BTC"}),
        (["eqx:TSLA"], {"eqx:TSLA"}),
        (["BTC", "eqx:TSLA"], {"BTC", "eqx:TSLA"}),
        (["BTC", "TSLA"], {"BTC"}),
        (["BTC", "eqx:BTC"], {"BTC"}),
        (["ALL"], MAIN_TWAPS),
        (["ALL:eqx"], {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL:ALL_DEXES"], EVERY_TWAP),
        (["ALL", "ALL:eqx"], MAIN_TWAPS | {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL", "ALL:pre", "ALL:eqx"], EVERY_TWAP),
        (["ALL", "pre:OPENAI"], MAIN_TWAPS | {"pre:OPENAI"}),
    ],
    ids=named,
)
def test_perpTwapSnapshots__market_names(hand: Caller, wanted: list[str], found: set[str]) -> None:
    assert markets(hand, *wanted) == found


@pytest.mark.parametrize(
    "others", [["BTC"], ["ALL"], ["ALL:eqx", "NOTHING"], ["pre:OPENAI", "ALL", "ALL:pre"]]
)
def test_perpTwapSnapshots__all_dexes_takes_precedence(hand: Caller, others: list[str]) -> None:
    assert markets(hand, *others, "ALL:ALL_DEXES") == EVERY_TWAP
    assert markets(hand, "ALL:ALL_DEXES", *others) == EVERY_TWAP


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["ALL", "BTC", "ETH"], MAIN_TWAPS),
        (["ALL", "NOTHING"], MAIN_TWAPS),
        (["eqx:TSLA", "ALL:eqx"], {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL:pre", "pre:OPENAI"], {"pre:OPENAI"}),
        (["ALL:eqx", "eqx:TSLA", "BTC"], {"eqx:TSLA", "eqx:NVDA", "BTC"}),
    ],
    ids=named,
)
def test_perpTwapSnapshots__markets_that_a_pattern_covers_are_ignored(
    hand: Caller, wanted: list[str], found: set[str]
) -> None:
    assert markets(hand, *wanted) == found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["BTC", "BTC"], {"BTC"}),
        (["ALL", "ALL"], MAIN_TWAPS),
        (["ALL:eqx", "ALL:eqx"], {"eqx:TSLA", "eqx:NVDA"}),
        (["ALL:ALL_DEXES", "ALL:ALL_DEXES"], EVERY_TWAP),
    ],
    ids=named,
)
def test_perpTwapSnapshots__duplicates_are_removed(
    hand: Caller, wanted: list[str], found: set[str]
) -> None:
    assert markets(hand, *wanted) == found
