"""Snapshot endpoints (compressed binary)."""

import struct
from typing import Any

import httpx
import msgpack
import pytest
import zstandard

from tests.end.service_conformance.asking import Client
from tests.end.service_conformance.fields import (
    address,
    boolean,
    integer,
    number,
    string,
)

# --- Snapshots: binary formats ----------------------------------------------------------------


def snapshots(got: httpx.Response) -> list[Any]:
    """Read either format by the words of the specification alone."""
    assert got.status_code == 200
    if got.headers["x-payload-format"] == "msgpack":
        assert got.headers["content-encoding"] == "zstd"
        return [msgpack.unpackb(got.content)]  # httpx has undone the content encoding
    assert got.headers["x-payload-format"] == "multi-zstd"
    assert got.headers["x-compression"] == "inner-zstd"
    (count,) = struct.unpack_from("<I", got.content)
    at, found = 4, []
    for _ in range(count):
        (length,) = struct.unpack_from("<I", got.content, at)
        blob = got.content[at + 4 : at + 4 + length]
        found.append(msgpack.unpackb(zstandard.ZstdDecompressor().decompress(blob)))
        at += 4 + length
    assert at == len(got.content)
    assert count > 1
    return found


def test_account_value_snapshots_all(client: Client) -> None:
    found = snapshots(client.post(type="accountValueSnapshots", collateral_tokens=["ALL"]))
    latest = client.ask(type="accountValueSnapshotTimestamp")["snapshot_id"]
    lengths = set()
    for snapshot_id, token, accounts in found:
        assert snapshot_id == latest
        assert string(token)
        for user, values in accounts.items():
            assert address(user)
            value, long, short, unified, mode = values[:5]
            assert all(map(number, (value, long, short)))
            assert long >= 0 <= short
            assert boolean(unified)
            assert mode in (0, 1, 2, 3)
            assert unified == (mode == 2)
            assert len(values) == (8 if mode == 3 else 5)
            lengths.add(len(values))
    assert lengths == {5, 8}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["ALL"], {"main:USDC", "eqx:USDC", "pre:USDH"}),
        (["ALL", "pre:USDH"], {"main:USDC", "eqx:USDC", "pre:USDH"}),
        (["USDC"], {"main:USDC", "eqx:USDC"}),
        (["USDH"], {"pre:USDH"}),
        (["main:USDC"], {"main:USDC"}),
        (["eqx:USDC", "USDH"], {"eqx:USDC", "pre:USDH"}),
        (["eqx:USDC", "USDC", "eqx:USDC"], {"main:USDC", "eqx:USDC"}),
    ],
)
def test_account_value_snapshots_by_token(
    client: Client, asked: list[str], found: set[str]
) -> None:
    got = snapshots(client.post(type="accountValueSnapshots", collateral_tokens=asked))
    assert {token for _, token, _ in got} == found
    assert len(got) == len(found)


def test_perp_twap_snapshots(client: Client) -> None:
    found = snapshots(client.post(type="perpTwapSnapshots", market_names=["ALL:ALL_DEXES"]))
    waiting = set()
    for _, market, twaps in found:
        assert string(market)
        for twap in twaps:
            assert len(twap) == 21
            assert address(twap[0])
            assert integer(twap[1])
            assert all(map(boolean, (twap[3], twap[11], twap[12], twap[20])))
            assert 0 <= float(twap[8]) <= 100
            assert float(twap[6]) == pytest.approx(float(twap[4]) - float(twap[5]))
            assert (twap[15], twap[16]) == (None, None)
            assert (twap[18] is None) == (twap[19] is None)
            waiting.add(twap[20])
    assert waiting == {True, False}


@pytest.mark.parametrize(
    ("asked", "same_as"),
    [
        (["ALL", "ALL"], ["ALL"]),
        (["ALL", "BTC"], ["ALL"]),
        (["BTC", "BTC"], ["BTC"]),
        (["ALL:ALL_DEXES", "BTC", "ALL:pre", "ALL"], ["ALL:ALL_DEXES"]),
        (["ALL", "ALL:pre", "ALL:eqx"], ["ALL:ALL_DEXES"]),
        (["ALL:pre", "pre:SPACEX"], ["ALL:pre"]),
    ],
)
def test_perp_twap_patterns(client: Client, asked: list[str], same_as: list[str]) -> None:
    one, other = (
        snapshots(client.post(type="perpTwapSnapshots", market_names=names))
        for names in (asked, same_as)
    )
    assert sorted(one) == sorted(other)


@pytest.mark.parametrize(
    ("type", "field"),
    [("accountValueSnapshots", "collateral_tokens"), ("perpTwapSnapshots", "market_names")],
)
def test_snapshot_requests_need_an_array_of_strings(client: Client, type: str, field: str) -> None:
    for wrong in (None, "ALL", [], [5], [""], {"a": 1}):
        assert client.refuse(type=type, **{field: wrong})[0] == 400
    assert client.refuse(type=type)[0] == 400
