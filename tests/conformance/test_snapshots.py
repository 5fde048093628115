"""Specification, "Snapshot endpoints (compressed binary)"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes
from tests.conformance.snapshots import TYPES, snapshots, split_blobs, unpack

METADATA = pytest.mark.parametrize(
    "type", ["accountValueSnapshotTimestamp", "perpTwapSnapshotTimestamp"]
)
BOTH = pytest.mark.parametrize("type", TYPES)


ONE = {"accountValueSnapshots": ["pre:USDH"], "perpTwapSnapshots": ["BTC"]}
SEVERAL = {"accountValueSnapshots": ["ALL"], "perpTwapSnapshots": ["ALL"]}


# Metadata.


@METADATA
@shapes.fields(shapes.SNAPSHOT_METADATA)
def test_snapshot_metadata__types(tiny, type, field, words):
    rows = [tiny.ask(type)]
    shapes.check_values(rows, field, words)
    shapes.no_other_fields(rows, shapes.SNAPSHOT_METADATA)


@METADATA
def test_snapshot_metadata__timestamp_in_seconds(hand, type):
    assert hand.ask(type) == {"snapshot_id": mini.SNAPSHOT, "timestamp": mini.NOW // 1000}


def test_accountValueSnapshotTimestamp__equals_perp_snapshot(tiny, hand):
    for item in (tiny, hand):
        values = item.ask("accountValueSnapshotTimestamp")
        assert values == item.ask("perpTwapSnapshotTimestamp")


@BOTH
def test_snapshots__match_metadata(tiny, type):
    named = tiny.ask(type.replace("Snapshots", "SnapshotTimestamp"))["snapshot_id"]
    found = snapshots(tiny, type, *SEVERAL[type])
    assert {item[0] for item in found.values()} == {named}


# The two formats.


@BOTH
def test_binary__one_snapshot_is_msgpack(hand, type):
    status, headers, content = hand.raw({"type": type, TYPES[type]: ONE[type]})
    assert status == 200
    assert headers["x-payload-format"] == "msgpack"
    assert headers["content-encoding"] == "zstd"
    assert "x-compression" not in headers
    assert content[:4] == bytes.fromhex("28b52ffd")
    assert unpack(content)[0] == mini.SNAPSHOT


@BOTH
def test_binary__several_snapshots_are_multi_zstd(hand, type):
    status, headers, content = hand.raw({"type": type, TYPES[type]: SEVERAL[type]})
    assert status == 200
    assert headers["x-payload-format"] == "multi-zstd"
    assert headers["x-compression"] == "inner-zstd"
    assert "content-encoding" not in headers
    found = split_blobs(content)
    assert len(found) > 1
    assert all(item[:4] == bytes.fromhex("28b52ffd") for item in found)
    assert all(unpack(item)[0] == mini.SNAPSHOT for item in found)


@BOTH
def test_binary__little_endian_count(hand, type):
    _, _, content = hand.raw({"type": type, TYPES[type]: SEVERAL[type]})
    assert content[1:4] == b"\0\0\0"
    assert content[0] == len(split_blobs(content))


@BOTH
@pytest.mark.parametrize("accepts", ["identity", "gzip", "zstd", "*"])
def test_binary__ignores_accepted_encoding(hand, type, accepts):
    for wanted in (ONE, SEVERAL):
        _, headers, content = hand.raw(
            {"type": type, TYPES[type]: wanted[type]}, **{"Accept-Encoding": accepts}
        )
        several = headers["x-payload-format"] == "multi-zstd"
        assert unpack(split_blobs(content)[0] if several else content)[0] == mini.SNAPSHOT


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
def test_binary__number_of_matches_decides_format(hand, type, wanted, form):
    _, headers, _ = hand.raw({"type": type, TYPES[type]: wanted})
    assert headers["x-payload-format"] == form
