"""The live exchange: what changes with time, and that the changes are reproducible."""

from dataclasses import replace

import numpy as np
import pytest

from tests.worlds import world_of
from toolkit.contract.records import TwapRow
from toolkit.contract.source_tables import TwapSnapshot
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output import live_state
from toolkit.times import HOUR, MINUTE, SECOND, to_ms

LOTS = {perp.coin: 10**perp.sz_decimals for perp in PERPS}


@pytest.fixture(scope="module")
def live(world):
    return live_state.LiveExchange(world.seed, world.sources)


def test_depth_changes_every_second(world, live):
    now = world.sources.now_ms
    one, same, next_second = (live.depth(now + ms) for ms in (1_000, 1_999, 2_000))
    assert one is same
    assert all(a != b for a, b in zip(one.data, next_second.data, strict=True))
    assert next_second.timestamp_ms == now + 2_000
    for market in one.data:
        depths = [level.bid_depth_usd for level in market.levels]
        assert depths == sorted(depths)


def test_depth_recovers_by_half_lives(world, live):
    """The missing depth halves with every half-life, over one shock of the first market."""
    assert world.sources.depth is not None
    whole = world.sources.depth.data[0].levels[-1].bid_depth_usd
    start = (
        world.sources.now_ms // 1_000 // live_state.SHOCK_SECONDS + 1
    ) * live_state.SHOCK_SECONDS
    missing = [
        1 - live.depth((start + age) * 1_000).data[0].levels[-1].bid_depth_usd / whole
        for age in range(100)
    ]
    slope = np.polyfit(np.arange(100), np.log2(missing), 1)[0]
    assert -1 / slope == pytest.approx(live_state.DEPTH_HALF_LIFE_SECONDS, rel=0.15)


def whole_lots(row, size):
    """Return a size in lots; it must be an integer number of lots."""
    found = round(size * LOTS[row.market])
    assert found / LOTS[row.market] == size
    return found


def rows_of(snapshot):
    return {(row.address, row.twap_id): row for rows in snapshot.twaps.values() for row in rows}


def test_twaps_advance_by_slices(world, live):
    now = world.sources.now_ms
    assert live.twaps(now) == world.sources.twap_snapshots[-1]
    before, moved = rows_of(live.twaps(now)), 0
    for later in range(20 * SECOND, 10 * MINUTE, 20 * SECOND):
        snapshot = live.twaps(now + later)
        after = rows_of(snapshot)
        assert set(after) - set(before) <= new_twap_rows(world, snapshot)
        for key, row in after.items():
            executed, remaining, total = (
                whole_lots(row, size) for size in (row.executed_sz, row.remaining_sz, row.total_sz)
            )
            assert executed + remaining == total
            assert row.progress_pct == pytest.approx(100 * executed / total)
            assert row.next_slice_time is not None
            assert 0 < to_ms(row.next_slice_time) - snapshot.time <= 30 * SECOND
            old = before.get(key, row)
            px = row.executed_ntl / row.executed_sz if row.executed_sz else 0.0
            if row.executed_sz > old.executed_sz > 0:
                assert px == pytest.approx(old.executed_ntl / old.executed_sz, rel=1e-6)
            assert row.executed_sz >= old.executed_sz
            assert not (row.waiting and executed)
            moved += row.executed_sz > old.executed_sz
        before = after
    assert moved > 20
    much_later = live.twaps(now + 3 * HOUR)
    kept = set(rows_of(much_later)) - new_twap_rows(world, much_later)
    assert all(rows_of(much_later)[key].waiting for key in kept)


def new_twap_rows(world, snapshot):
    """Return the TWAPs that have begun since the end of history."""
    rows = rows_of(snapshot).items()
    return {key for key, row in rows if row.start_time_ms >= world.sources.now_ms}


@pytest.mark.parametrize("seed", [7, 1])
def test_new_twaps_run_until_their_end(seed):
    """During a day, and after a week, some new TWAPs run, each until its end."""
    sources = world_of("tiny", seed).sources
    live, again = live_state.LiveExchange(seed, sources), live_state.LiveExchange(seed, sources)
    now = sources.now_ms
    users = {row.address for rows in sources.twap_snapshots[-1].twaps.values() for row in rows}
    for later in (*range(HOUR, 24 * HOUR, 97 * MINUTE), 7 * 24 * HOUR):
        snapshot = live.twaps(now + later)
        rows = rows_of(snapshot)
        assert len(rows) == sum(map(len, snapshot.twaps.values()))  # no id twice
        fresh = [row for row in rows.values() if row.start_time_ms >= now]
        assert len(fresh) >= 2
        assert {row.address for row in fresh} <= users
        for row in fresh:
            assert not row.waiting
            assert row.start_time_ms <= snapshot.time
            assert snapshot.time < row.start_time_ms + row.duration_secs * SECOND
            total = whole_lots(row, row.total_sz)
            assert whole_lots(row, row.executed_sz) + whole_lots(row, row.remaining_sz) == total
            percent = 100 * row.slice_number * 30 / row.duration_secs
            assert row.progress_pct == pytest.approx(percent, abs=100 / total)
    assert again.twaps(now + 24 * HOUR) == live.twaps(now + 24 * HOUR)


def exchange_with_one_twap(sources, **changes):
    """Return an exchange with one TWAP of 60 slices, simple enough for mental arithmetic."""
    values = {
        "snapshot_id": "last", "market": "BTC", "address": "0x" + "a" * 40, "twap_id": 1,
        "asset": "BTC", "is_buy": True, "total_sz": 6.0, "executed_sz": 1.0, "remaining_sz": 5.0,
        "executed_ntl": 50_000.0, "progress_pct": 100 / 6, "duration_secs": 1_800,
        "start_time_ms": sources.now_ms - 5 * MINUTE, "reduce_only": False, "randomize": False,
        "next_slice_time": "2025-10-01T00:00:10.000Z", "slice_number": 10, "market_name": None,
        "market_readable": None,
    }  # fmt: skip
    row = TwapRow(**{**values, **changes})
    snapshot = TwapSnapshot("last", sources.now_ms, {"BTC": [row]})
    return live_state.LiveExchange(7, replace(sources, twap_snapshots=[snapshot])), row


def test_twap_slices_by_hand(world):
    """6 BTC in 60 slices of 0.1: the next slice is 10 s after the end, then every 30 s."""
    live, _ = exchange_with_one_twap(world.sources)
    now = world.sources.now_ms
    for later, slices in ((20, 1), (39, 1), (40, 2), (60, 2), (80, 3), (1_480, 50)):
        twaps = live.twaps(now + later * SECOND).twaps
        mine = [row for row in twaps.get("BTC", []) if row.twap_id == 1]
        if slices == 50:
            assert mine == []
            continue
        (row,) = mine
        assert row.executed_sz == round(1 + 0.1 * slices, 1)
        assert row.executed_ntl == pytest.approx(50_000 * row.executed_sz, abs=1e-6)
        assert row.slice_number == 10 + slices


def test_twap_without_price_executes_nothing(world):
    live, old = exchange_with_one_twap(
        world.sources, executed_sz=0.0, remaining_sz=6.0, executed_ntl=0.0, progress_pct=0.0
    )
    (row,) = live.twaps(world.sources.now_ms + MINUTE).twaps["BTC"]
    assert (row.executed_sz, row.executed_ntl) == (0.0, 0.0)
    assert row.next_slice_time == "2025-10-01T00:01:10.000Z"
    assert row.total_sz == old.total_sz


def test_snapshot_ids_change_with_time(world, live):
    now = world.sources.now_ms
    ids = [live.account_values(now + ms).snapshot_id for ms in range(0, 60_000, 1_000)]
    assert len(set(ids)) == 60_000 // live_state.LIVE_SNAPSHOT_MS
    assert ids[0] == world.sources.account_snapshots[-1].snapshot_id
    assert ids == sorted(ids)
    assert [live.twaps(now + ms).snapshot_id for ms in range(0, 60_000, 1_000)] == ids


def test_live_account_values_add_up(world, live):
    sources = world.sources
    old, new = (live.account_values(sources.now_ms + late) for late in (0, MINUTE))
    assert list(new.values) == list(old.values)
    totals: dict[str, dict[str, float]] = {}
    for key, rows in new.values.items():
        for row, before in zip(rows, old.values[key], strict=True):
            assert row.user == before.user
            assert row.account_value == pytest.approx(before.account_value, rel=0.001, abs=1e-6)
            totals.setdefault(row.user, {})[key[1]] = row.account_value
            assert row.pm_ratio is None or row.pm_ratio == pytest.approx(before.pm_ratio, rel=0.01)
    portfolios = [r for rows in new.values.values() for r in rows if r.account_mode == 3]
    assert portfolios
    for row in portfolios:
        total = sum(totals[row.user].values())
        assert row.pm_total_account_value == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("kind", ["spot", "perp"])
def test_auctions_start_every_31_hours(world, live, kind):
    def rounds(now_ms):
        return [auction for auction in live.auctions(now_ms) if auction.kind == kind]

    now = world.sources.now_ms
    history = [auction for auction in world.sources.auctions if auction.kind == kind]
    assert rounds(now) == history
    later = rounds(now + 100 * HOUR)
    assert later[: len(history)] == history
    starts = [auction.start_seconds * SECOND for auction in later]
    assert set(np.diff(starts)) == {31 * HOUR}
    assert starts[-1] <= now + 100 * HOUR < starts[-1] + 31 * HOUR
    assert {auction.end_gas is None for auction in later[len(history) :]} == {True, False}


def test_call_order_does_not_matter(world):
    now = world.sources.now_ms
    moments = [now + ms for ms in (0, 1_000, 21_000, 600_000)]
    one, other = (live_state.LiveExchange(world.seed, world.sources) for _ in range(2))
    forth = [(one.depth(t), one.account_values(t), one.twaps(t)) for t in moments]
    back = [(other.depth(t), other.account_values(t), other.twaps(t)) for t in moments[::-1]]
    assert forth == back[::-1]
