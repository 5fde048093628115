"""The running clock: what moves, and that it moves the same way each time."""

import numpy as np
import pytest

from toolkit.simulation import World
from toolkit.simulation.live import (
    DEPTH_HALF_LIFE_SECONDS,
    LIVE_SNAPSHOT_MS,
    SHOCK_SECONDS,
    account_snapshot_at,
    depth_at,
    twap_snapshot_at,
)
from toolkit.times import HOUR, MINUTE


def test_depth_moves_every_second(world: World) -> None:
    now = world.sources.now_ms
    one, same, next_second = (depth_at(world, now + ms) for ms in (1_000, 1_999, 2_000))
    assert one == same
    assert one.data != next_second.data
    assert next_second.timestamp_ms == now + 2_000
    for market in one.data:
        depths = [level.bid_depth_usd for level in market.levels]
        assert depths == sorted(depths)


def test_depth_recovers_by_half_lives(world: World) -> None:
    """What is missing halves every half-life: measured over one shock of the first market."""
    assert world.sources.depth is not None
    whole = world.sources.depth.data[0].levels[-1].bid_depth_usd
    start = (world.sources.now_ms // 1_000 // SHOCK_SECONDS + 1) * SHOCK_SECONDS
    missing = [
        1 - depth_at(world, (start + age) * 1_000).data[0].levels[-1].bid_depth_usd / whole
        for age in range(100)
    ]
    slope = np.polyfit(np.arange(100), np.log2(missing), 1)[0]
    assert -1 / slope == pytest.approx(DEPTH_HALF_LIFE_SECONDS, rel=0.15)


def test_twaps_advance_until_they_are_done(world: World) -> None:
    sources = world.sources
    last = sources.twap_snapshots[-1]
    assert twap_snapshot_at(world, sources.now_ms) == last
    later = twap_snapshot_at(world, sources.now_ms + 3 * MINUTE)
    assert later == twap_snapshot_at(world, sources.now_ms + 3 * MINUTE)
    assert later.snapshot_id != last.snapshot_id
    before = {(r.address, r.twap_id): r for rows in last.twaps.values() for r in rows}
    moved = 0
    for row in (row for rows in later.twaps.values() for row in rows):
        old = before[row.address, row.twap_id]
        assert row.executed_sz >= old.executed_sz
        assert row.executed_sz + row.remaining_sz == pytest.approx(row.total_sz)
        moved += row.executed_sz > old.executed_sz
    assert moved
    much_later = twap_snapshot_at(world, sources.now_ms + 3 * HOUR)
    assert all(row.waiting for rows in much_later.twaps.values() for row in rows)


def test_snapshot_ids_change_from_time_to_time(world: World) -> None:
    now = world.sources.now_ms
    ids = [account_snapshot_at(world, now + ms).snapshot_id for ms in range(0, 60_000, 1_000)]
    assert len(set(ids)) == 60_000 // LIVE_SNAPSHOT_MS
    assert twap_snapshot_at(world, now + 30_000).snapshot_id == ids[30]
