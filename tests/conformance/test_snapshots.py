"""Specification, "Snapshot endpoints (compressed binary)"."""

import pytest

from tests.conformance import mini, shapes
from tests.conformance.snapshots import TYPES, snapshots, split_blobs, unpack

BOTH = pytest.mark.parametrize("type", TYPES)


ONE = {"accountValueSnapshots": ["pre:USDH"], "perpTwapSnapshots": ["BTC"]}
SEVERAL = {"accountValueSnapshots": ["ALL"], "perpTwapSnapshots": ["ALL"]}


# Metadata.


def test_snapshot_metadata__timestamp_in_seconds(tiny, hand):
    """Both kinds of snapshots are taken together."""
    values, twaps = "accountValueSnapshotTimestamp", "perpTwapSnapshotTimestamp"
    shapes.check_rows([tiny.ask(values)], shapes.SNAPSHOT_METADATA)
    assert tiny.ask(values) == tiny.ask(twaps)
    taken = {"snapshot_id": mini.SNAPSHOT, "timestamp": mini.NOW // 1000}
    assert hand.ask(values) == hand.ask(twaps) == taken


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
    assert content[:4] == bytes([len(found), 0, 0, 0])  # little-endian
    assert len(found) > 1
    assert all(item[:4] == bytes.fromhex("28b52ffd") for item in found)
    assert all(unpack(item)[0] == mini.SNAPSHOT for item in found)


@BOTH
def test_binary__ignores_accepted_encoding(hand, type):
    for accepts in ("identity", "gzip", "zstd", "*"):
        for wanted in (ONE, SEVERAL):
            _, headers, content = hand.raw(
                {"type": type, TYPES[type]: wanted[type]}, **{"Accept-Encoding": accepts}
            )
            several = headers["x-payload-format"] == "multi-zstd"
            assert unpack(split_blobs(content)[0] if several else content)[0] == mini.SNAPSHOT


def test_binary__number_of_matches_decides_format(hand):
    table = [
        ("accountValueSnapshots", ["USDH"], "msgpack"),
        ("accountValueSnapshots", ["USDH", "pre:USDH"], "msgpack"),
        ("accountValueSnapshots", ["USDH", "NOTHING"], "msgpack"),
        ("accountValueSnapshots", ["USDC"], "multi-zstd"),
        ("perpTwapSnapshots", ["BTC", "BTC"], "msgpack"),
        ("perpTwapSnapshots", ["BTC", "NOTHING"], "msgpack"),
        ("perpTwapSnapshots", ["ALL:pre"], "msgpack"),
        ("perpTwapSnapshots", ["ALL:eqx"], "multi-zstd"),
        ("perpTwapSnapshots", ["BTC", "ETH"], "multi-zstd"),
    ]
    for type, wanted, form in table:
        assert hand.raw({"type": type, TYPES[type]: wanted})[1]["x-payload-format"] == form
