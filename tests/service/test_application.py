import zlib
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import pandas as pd
import pytest

import toolkit as tk
from toolkit.client import open_session
from toolkit.contract.compression import decompress
from toolkit.contract.source_tables import Sources
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, Application, KeyQuotas, ServiceLimits, build_store
from toolkit.times import SECOND

KEY = {"authorization": "Bearer s3cret"}


@pytest.fixture
def application(store):
    return Application(
        store, KeyQuotas([AcceptedKey("all", "s3cret")]), now_ms=lambda: 10**13, at_ms=lambda: 0
    )


def test_health_needs_no_key(application):
    assert application.respond("GET", "/healthz", {}, b"").status == 200


def test_stored_blocks_equal_plain_page(application, store):
    """Pages begin and end anywhere in a block, and some rows lose their builder."""
    sql = "SELECT address, count(*), count(builder) FROM fill JOIN account ON id = account"
    accounts = store.select_rows(f"{sql} GROUP BY account")
    has_builders = [builders > 0 for _, rows, builders in accounts if rows > 600]
    assert {True, False} == set(has_builders)
    finished = 0
    for user, rows, _ in accounts:
        times = store.select_rows(
            "SELECT time FROM fill JOIN account ON id = account WHERE address = ? ORDER BY time",
            user,
        )
        for first, limit in ((0, 2_000), (rows // 7, 777), (rows // 3, 500)):
            start = times[first][0]
            body = msgspec.json.encode(
                {"type": "userFillsByTime", "user": user, "startTime": start, "limit": limit}
            )
            plain = application.respond("POST", "/info", KEY, body).content
            packed = application.respond("POST", "/info", {**KEY, "accept-encoding": "zstd"}, body)
            assert decompress(packed.content, 2**26) == plain
            for _ in range(2):  # the second time, its blocks are in memory
                zipped = application.respond(
                    "POST", "/info", {**KEY, "accept-encoding": "gzip"}, body
                )
                assert _read_first_member(zipped) == plain
            assert b'"builder"' not in plain
            assert len(msgspec.json.decode(plain)) <= limit
            finished += packed.content.count(b"\x28\xb5\x2f\xfd") > 3
    assert finished > 10


def _read_first_member(response):
    """Decompress a response as clients do that stop after the first member, such as httpx."""
    if "content-encoding" not in response.headers:
        return response.content
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    content = reader.decompress(response.content)
    assert reader.eof  # the checksum and the length are right
    assert not reader.unused_data
    return content


def test_long_search_is_502(application, world):
    hurried = replace(application, limits=ServiceLimits(answer_seconds=0))
    for type, fields in [
        ("userTwapSliceFills", {}),
        ("orderStatus", {"oid": 1}),
        ("userFillsByTime", {"startTime": 0, "aggregateByTime": True}),
    ]:
        body = msgspec.json.encode({"type": type, "user": world.examples["WHALE"], **fields})
        assert application.respond("POST", "/info", KEY, body).status == 200
        got = hurried.respond("POST", "/info", KEY, body)
        assert (got.status, got.content) == (502, b'{"error":"Timeout error"}')


# --- the live clock ---

MOVES = (
    {"type": "currentDepth"},
    {"type": "currentDepth", "dex": "eqx"},
    {"type": "accountValueSnapshotTimestamp"},
    {"type": "accountValueSnapshots", "collateral_tokens": ["ALL"]},
    {"type": "perpTwapSnapshotTimestamp"},
    {"type": "perpTwapSnapshots", "market_names": ["ALL:ALL_DEXES"]},
    {"type": "spotPairDeployAuctionStatus"},
)
STANDS = (
    {"type": "meta"},
    {"type": "metaAndAssetCtxs"},
    {"type": "perpDexLimits", "dex": "eqx"},
    {"type": "slippageHistory", "coin": "BTC", "amount": 10_000, "startTime": 0},
)


@dataclass
class Hand:
    """A clock that the test sets."""

    now_ms: int

    def __call__(self):
        return self.now_ms

    def move(self, seconds):
        self.now_ms += round(seconds * SECOND)


class Running(NamedTuple):
    """An application whose clock the test sets, and a session with it."""

    application: Application
    clock: Hand
    session: tk.Session

    def bytes_of(self, request):
        got = self.application.respond("POST", "/info", KEY, msgspec.json.encode(request))
        assert got.status == 200, got.content
        return got.content


def run_on(store, clock="live"):
    hand = Hand(store.about["now_ms"])
    application = application_of(
        store, KeyQuotas([AcceptedKey("all", "s3cret")]), clock=clock, now_ms=hand
    )
    session = open_session(
        "http://local",
        "s3cret",
        transport=InProcessTransport(application),
        now_ms=application.now_ms,
        default=False,
    )
    return Running(application, hand, session)


@pytest.fixture
def running(store):
    return run_on(store)


def test_dex_depth_equals_all_depth(running):
    running.clock.move(3.25)
    every = tk.current_depth(session=running.session)
    one = tk.current_depth(dex="eqx", session=running.session)
    pd.testing.assert_frame_equal(one, every[every["dex"] == "eqx"].reset_index(drop=True))


def test_snapshot_ids_change(running):
    ids = []
    for _ in range(12):  # two minutes
        session = running.session
        values = tk.account_value_snapshots(["ALL"], session=session)
        twaps = tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=session)
        stamps = [
            stamp(session=session)
            for stamp in (tk.account_value_snapshot_timestamp, tk.perp_twap_snapshot_timestamp)
        ]
        pd.testing.assert_frame_equal(*stamps)
        (found,) = stamps[0]["snapshot_id"]
        assert set(values["snapshot_id"]) == set(twaps["snapshot_id"]) == {found}
        age = running.clock.now_ms - stamps[0]["timestamp"].iloc[0].timestamp() * SECOND
        assert 0 <= age < 20 * SECOND
        ids.append(found)
        running.clock.move(10)
    assert ids[::2] == ids[1::2]
    assert ids == sorted(ids)
    assert len(set(ids)) == 6


def test_finished_twaps_are_removed(running):
    def markets():
        return set(tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=running.session)["market"])

    before, gone = markets(), set[str]()
    while not gone:  # accounts with a TWAP begin others, on the same markets
        running.clock.move(3 * 3_600)
        gone = before - markets()
    assert gone
    with pytest.raises(tk.NotReady):
        tk.perp_twap_snapshots(sorted(gone)[:1], session=running.session)


def test_auctions_restart_with_higher_price(running):
    """The price falls from 534 to 100 in 31 hours; the history ends after 12 of them."""
    session = running.session

    def gas(fetch):
        (row,) = fetch(session=session, numbers="text").to_dict("records")
        names = ("start_gas", "current_gas", "end_gas")
        return tuple(row[name] if isinstance(row[name], str) else None for name in names)

    assert gas(tk.spot_pair_deploy_auction_status) == ("534.0", "366.0", None)
    assert gas(tk.perp_deploy_auction_status) == ("534.0", None, "394.0")
    running.clock.move(1)  # 366 - 434 / 111,600
    assert gas(tk.spot_pair_deploy_auction_status) == ("534.0", "365.99611111", None)
    running.clock.move(19 * 3_600)  # a second into the next round: 551 - 451 / 111,600
    assert gas(tk.spot_pair_deploy_auction_status) == ("551.0", "550.99595878", None)
    assert gas(tk.perp_deploy_auction_status) == ("551.0", "550.99595878", None)
    running.clock.move(10 * 3_600)  # the perp auction ends after ten hours: 551 - 451 * 10 / 31
    assert gas(tk.perp_deploy_auction_status) == ("551.0", None, "405.51612903")


def test_live_answers_are_deterministic(store, world, tmp_path):
    """A store in memory and one in a file give the same bytes, in any order of requests."""
    filed = build_store(world.sources, tmp_path / "kept.db", world=store.about["world"])
    one, other = run_on(store), run_on(filed)
    moments = (0, 1, 1.5, 20, 59.999, 3_600)
    found = {}
    for seconds in moments:
        one.clock.now_ms = world.sources.now_ms + round(seconds * SECOND)
        found[seconds] = [one.bytes_of(request) for request in MOVES]
    for seconds in reversed(moments):
        other.clock.now_ms = world.sources.now_ms + round(seconds * SECOND)
        assert [other.bytes_of(request) for request in MOVES] == found[seconds]
    assert len({content for some in found.values() for content in some}) > 20
    filed.close()


def test_history_does_not_change(running, application):
    running.clock.move(3_600)
    for request in STANDS:
        body = msgspec.json.encode(request)
        assert running.bytes_of(request) == application.respond("POST", "/info", KEY, body).content


def test_fixed_clock_changes_nothing(store, running):
    """The first snapshots of the live clock are the last ones of the history."""
    standing = run_on(store, "fixed")
    before = [standing.bytes_of(request) for request in MOVES]
    assert [running.bytes_of(request) for request in MOVES[2:]] == before[2:]
    standing.clock.move(60)
    assert [standing.bytes_of(request) for request in MOVES] == before
    assert standing.session.now_ms() == store.about["now_ms"]


def test_recordings_have_no_live_clock():
    empty = Sources(start_ms=0, now_ms=0, label="", simulated=True)
    recorded = build_store(replace(empty, simulated=False), world={"users": []})
    for store in (recorded, build_store(empty)):
        with pytest.raises(ValueError, match="simulated exchange"):
            run_on(store)
        store.close()
