"""An exchange of tiles gives the same bytes as each of its tiles."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest

from tests.service.conftest import asker_of
from tests.worlds import tiles_of_two
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.snapshots import decode_snapshots
from toolkit.rules.directions import NOT_TRADED
from toolkit.service import build_store
from toolkit.simulation import TiledExchange, draw_tiles, simulate

OF_ALL: list[tuple[str, dict[str, Any]]] = [
    ("currentDepth", {}),
    ("currentDepth", {"dex": "eqx"}),
    ("spotPairDeployAuctionStatus", {}),
    ("perpDeployAuctionStatus", {}),
    ("accountValueSnapshotTimestamp", {}),
    ("perpTwapSnapshotTimestamp", {}),
    *(("meta", {"dex": dex}) for dex in ("", "eqx", "pre")),
    *(("perpDexLimits", {"dex": dex}) for dex in ("", "eqx", "pre")),
    *(
        ("slippageHistory", {"coin": coin, "amount": amount, "startTime": 0})
        for coin in ("BTC", "HPOS", "eqx:TSLA")
        for amount in (1000, 1_000_000)
    ),
]
"""Operations whose answer is the same for every account."""


@pytest.fixture(scope="module")
def worlds():
    return tiles_of_two()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    tiled = TiledExchange(7, 2, "tiny")
    path = tmp_path_factory.mktemp("tiles") / "tiled.db"
    store = build_store(tiled, path, world=tiled.summary)
    yield store
    store.close()


@pytest.fixture(scope="module")
def tiled_asker(store):
    return asker_of(store)


@pytest.fixture(scope="module")
def tile_askers(worlds):
    return [asker_of(build_store(world.sources)) for world in worlds]


def assert_same_bytes(tiled_asker, tile_asker, type, **fields):
    """Check that both answers have the same bytes."""
    body = json.dumps({"type": type, **fields}).encode()
    got, expected = tiled_asker.send(body), tile_asker.send(body)
    assert (got.status, got.content) == (expected.status, expected.content), (type, fields)
    assert got.status == 200, got.content
    return got.content


def test_accounts_answer_as_in_tile(tiled_asker, worlds, tile_askers):
    seen: Counter[str] = Counter()
    for world, tile_asker in zip(worlds, tile_askers, strict=True):
        both = tiled_asker, tile_asker
        for user in world.summary()["users"]:
            for type in ("userFills", "historicalOrders", "userNonFundingLedgerUpdates"):
                seen[type] += len(json.loads(assert_same_bytes(*both, type, user=user)))
            for type in ("delegations", "borrowLendUserState"):
                seen[type] += len(assert_same_bytes(*both, type, user=user)) > 60
            merged = {"startTime": 0, "aggregateByTime": True}
            assert_same_bytes(*both, "userFillsByTime", user=user, **merged)
            got, expected = (asker.pages("userFillsByTime", 499, user=user) for asker in both)
            assert got == expected
            seen["userFillsByTime"] += len(got)
    assert min(seen.values()) > 10
    assert seen["userFillsByTime"] > 40_000


def test_states_join_all_tiles(tiled_asker, worlds, tile_askers):
    for world, tile_asker in zip(worlds, tile_askers, strict=True):
        users = [*world.summary()["users"], *sorted(world.sources.unavailable)]
        for dex in ("", "eqx", "ALL_DEXES"):
            got = assert_same_bytes(
                tiled_asker, tile_asker, "batchClearinghouseStates", users=users, dex=dex
            )
            assert json.loads(got)["failed_wallets"] == sorted(world.sources.unavailable)


@pytest.mark.parametrize(
    "type", ["builderApprovedFillsByTime", "builderApprovedFundingByTime", "builderOrdersByTime"]
)
def test_builders_answer_as_in_tile(tiled_asker, worlds, tile_askers, type):
    page = 2_000 if type == "builderOrdersByTime" else 251
    for world, tile_asker in zip(worlds, tile_askers, strict=True):
        both, seen = (tiled_asker, tile_asker), 0
        middle = world.sources.now_ms - 86_400_000
        hours = {"startTime": middle, "endTime": middle + 7_200_000}
        for builder in world.builders:
            assert_same_bytes(*both, type, builder=builder, **hours)
            got, expected = (asker.pages(type, page, builder=builder) for asker in both)
            assert got == expected
            seen += len(got)
        assert seen > 200


def test_market_answers_are_equal_in_tiles(tiled_asker, worlds, tile_askers):
    for tile_asker in tile_askers:
        for type, fields in OF_ALL:
            assert_same_bytes(tiled_asker, tile_asker, type, **fields)
    for world, tile_asker in zip(worlds, tile_askers, strict=True):
        for validator in world.summary()["validators"]:
            asked = {"validator": validator}
            got = assert_same_bytes(tiled_asker, tile_asker, "validatorAprHistory", **asked)
            assert got != b"[]"


def test_open_interest_and_volumes_add_up(tiled_asker, tile_askers):
    summed = ("openInterest", "dayNtlVlm", "dayBaseVlm")
    for dex in ("", "eqx", "pre"):
        universe, contexts = tiled_asker.ask("metaAndAssetCtxs", dex=dex)
        others = [tile_asker.ask("metaAndAssetCtxs", dex=dex) for tile_asker in tile_askers]
        assert all(other[0] == universe for other in others)
        for place, got in enumerate(contexts):
            parts = [other[1][place] for other in others]
            for name in summed:
                amounts = [Decimal(part[name]) for part in parts]
                assert Decimal(got.pop(name)) == sum(amounts)
                for part in parts:
                    del part[name]
            assert all(part == got for part in parts)
    assert len(contexts) == 2


@pytest.mark.parametrize(
    ("type", "names"),
    [
        ("accountValueSnapshots", {"collateral_tokens": ["ALL"]}),
        ("perpTwapSnapshots", {"market_names": ["ALL:ALL_DEXES"]}),
    ],
)
def test_snapshots_join_all_tiles(tiled_asker, tile_askers, type, names):
    def rows(asker):
        got = asker.send(json.dumps({"type": type, **names}).encode())
        assert got.status == 200, got.content
        columns = decode_snapshots(OPERATIONS[type], got.headers, got.content)
        lists = [column.to_pylist() for column in columns.values()]
        return sorted(map(repr, zip(*lists, strict=True)))

    found = rows(tiled_asker)
    assert found == sorted(row for tile_asker in tile_askers for row in rows(tile_asker))
    assert len(found) > 10


def test_ids_are_unique(worlds):
    fills = [fill for world in worlds for _, fill in world.sources.fills]
    sides = Counter(fill.tid for fill in fills)
    assert max(count for tid, count in sides.items() if tid) == 2
    for name in ("oid", "hash"):
        first, second = ({getattr(f, name) for _, f in world.sources.fills} for world in worlds)
        assert not first & second
    hashes = {((fill.time, fill.tx_index), fill.hash) for fill in fills}
    assert len({key for key, _ in hashes}) == len(hashes)
    orders = [{event.order.oid for _, event in world.sources.orders} for world in worlds]
    assert not orders[0] & orders[1]


def test_tiles_have_similar_prices(worlds):
    """In one minute, prices of one market lie within the spread and depth of one book."""
    first, second = (_minutes(world) for world in worlds)
    both = first.keys() & second.keys()
    assert len(both) > 100
    far = [key for key in both if not 0.97 < float(first[key]) / float(second[key]) < 1 / 0.97]
    assert not far


def _minutes(world):
    return {
        (fill.coin, fill.time // 60_000): fill.px
        for _, fill in world.sources.fills
        if fill.dir not in NOT_TRADED
    }


def test_summary_joins_all_tiles(store, worlds):
    found = store.about["world"]
    assert found["size"] == "large"
    assert found["seed"] == 7
    for name in ("users", "builders", "validators"):
        assert found[name] == [entry for world in worlds for entry in world.summary()[name]]
    assert set(found["examples"].values()) <= {
        entry for name in ("users", "builders", "validators") for entry in found[name]
    }
    digests = "".join(world.digest() for world in worlds)
    assert found["digest"] == sha256(digests.encode()).hexdigest()
    assert store.about["label"] == "simulated, seed 7, size large"


DRAWS_TILES = """
import gc
from toolkit.simulation import TiledExchange
gc.disable()
for part in TiledExchange(7, 2, "tiny"):
    print("ledger", len(part.ledger))
    del part
    gc.unfreeze()  # what was drawn was taken out of the collector's sight
    print("left", sum(type(entry).__name__ == "LedgerUpdate" for entry in gc.get_objects()))
"""


def test_tiles_are_freed_early():
    """Its rows must not accumulate, also without the garbage collector."""
    done = subprocess.run(
        [sys.executable, "-c", DRAWS_TILES], capture_output=True, text=True, check=True
    )
    said = [line.split() for line in done.stdout.splitlines()]
    assert [int(number) > 100 for word, number in said if word == "ledger"] == [True] * 2 + [False]
    assert [int(number) for word, number in said if word == "left"] == [0] * 3


def test_funding_order_is_independent_of_parts(worlds):
    sources = worlds[0].sources
    users = worlds[0].summary()["users"][::2]

    def part(wanted):
        def mine(user):
            return (user in users) == wanted

        return replace(
            sources,
            fills=[row for row in sources.fills if mine(row[0])],
            funding=[row for row in sources.funding if mine(row.user)],
            ledger=[row for row in sources.ledger if mine(row[0])],
            orders=[row for row in sources.orders if mine(row[0])],
            approvals=[row for row in sources.approvals if mine(row.user)],
        )

    halves, tile_asker = (
        asker_of(build_store([part(True), part(False)])),
        asker_of(build_store(sources)),
    )
    type = "builderApprovedFundingByTime"
    for builder in worlds[0].builders:
        for page in (97, 500):
            got = halves.pages(type, page, builder=builder)
            assert got == tile_asker.pages(type, page, builder=builder)
            assert got


def test_invalid_parts_and_seeds_raise(worlds):
    sources = replace(worlds[0].sources, orders=[], funding=[])
    for parts, named in (([sources, sources], "rows in two parts"), ([], "no sources")):
        with pytest.raises(ValueError, match=named):
            build_store(parts)
    wrong = {-1: ValueError, 10**40: ValueError, "x": TypeError, 1.5: TypeError, True: TypeError}
    for seed, error in wrong.items():
        for draw in (simulate, TiledExchange, lambda seed: next(draw_tiles(seed, 1))):
            with pytest.raises(error, match="seed"):
                draw(seed)
