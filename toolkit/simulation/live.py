"""The clock runs on: what changes after the end of history, as a function of seed and time."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from msgspec.structs import replace as changed

from toolkit.contract.records import AccountValueRow, Depth, DepthLevel, MarketDepth, TwapRow
from toolkit.contract.sources import AccountSnapshot, TwapSnapshot
from toolkit.simulation.draws import stream
from toolkit.simulation.markets import PERPS
from toolkit.simulation.snapshots import name_snapshot
from toolkit.simulation.twaps import SLICE_MS
from toolkit.simulation.world import World
from toolkit.times import SECOND, iso

__all__ = [
    "DEPTH_HALF_LIFE_SECONDS",
    "LIVE_SNAPSHOT_MS",
    "SHOCK_SECONDS",
    "account_snapshot_at",
    "depth_at",
    "twap_snapshot_at",
]

LIVE_SNAPSHOT_MS = 20 * SECOND
"""Time between snapshots on a running clock."""

DEPTH_HALF_LIFE_SECONDS = 40
"""How long a book needs to win back half of the depth that a shock took from it."""

SHOCK_SECONDS = 600
"""Time between two shocks to the same book."""

_TAKEN = 0.6
_KEPT_A_SECOND = 0.9828205985452511  # 2 to the power of -1 / DEPTH_HALF_LIFE_SECONDS
_MISSING = _TAKEN * np.cumprod(np.full(SHOCK_SECONDS, _KEPT_A_SECOND))
"""Share of the depth that is missing, by seconds since the shock."""

_LOTS = {perp.coin: 10**perp.sz_decimals for perp in PERPS}
"""Market -> lots to one unit of its size."""


def depth_at(world: World, now_ms: int) -> Depth:
    """Give the depth of all markets at a second after the end of history.

    Every market loses more than half of its depth at a time, wins it back by half-lives, and
    trembles by some hundredths, each side and band on its own.

    Examples
    --------
    >>> from toolkit.simulation import simulate
    >>> world = simulate(7, "tiny")
    >>> depth_at(world, world.sources.now_ms + 5_900).timestamp_ms - world.sources.now_ms
    5000
    """
    last = world.sources.depth
    assert last is not None
    second = now_ms // SECOND
    rng = stream(world.seed, "live depth", str(second))
    data = [
        _swung(market, 1.0 - float(_MISSING[(second + 37 * place) % SHOCK_SECONDS]), rng)
        for place, market in enumerate(last.data)
    ]
    return Depth(timestamp_ms=second * SECOND, data=data)


def twap_snapshot_at(world: World, now_ms: int) -> TwapSnapshot:
    """Give the TWAPs of the latest snapshot before a moment after the end of history.

    Running ones have traded one slice every half minute at their average price so far; those
    that are done are gone. Waiting ones wait.
    """
    last = world.sources.twap_snapshots[-1]
    time = _snapshot_time(world, now_ms)
    if time <= last.time:
        return last
    snapshot_id = name_snapshot(time)
    slices = (time - last.time) // SLICE_MS
    markets: dict[str, list[TwapRow]] = {}
    for market, rows in last.twaps.items():
        moved = [_advanced(row, snapshot_id, slices, time) for row in rows]
        running = [row for row in moved if row.waiting or row.remaining_sz > 0]
        if running:
            markets[market] = running
    return replace(last, snapshot_id=snapshot_id, time=time, twaps=markets)


def account_snapshot_at(world: World, now_ms: int) -> AccountSnapshot:
    """Give the account values of the latest snapshot before a moment after history's end.

    Values move by up to a thousandth.
    """
    last = world.sources.account_snapshots[-1]
    time = _snapshot_time(world, now_ms)
    if time <= last.time:
        return last
    snapshot_id = name_snapshot(time)
    rng = stream(world.seed, "live values", str(time))
    values: Mapping[tuple[str, str], list[AccountValueRow]] = {
        key: [_moved(row, snapshot_id, rng) for row in rows] for key, rows in last.values.items()
    }
    return replace(last, snapshot_id=snapshot_id, time=time, values=values)


def _swung(market: MarketDepth, there: float, rng: np.random.Generator) -> MarketDepth:
    bid = ask = bid_before = ask_before = 0.0
    levels = []
    for level in market.levels:
        bid += (level.bid_depth_usd - bid_before) * there * (0.97 + 0.06 * float(rng.random()))
        ask += (level.ask_depth_usd - ask_before) * there * (0.97 + 0.06 * float(rng.random()))
        bid_before, ask_before = level.bid_depth_usd, level.ask_depth_usd
        levels.append(DepthLevel(bps=level.bps, bid_depth_usd=bid, ask_depth_usd=ask))
    return changed(market, levels=levels)


def _advanced(row: TwapRow, snapshot_id: str, slices: int, time: int) -> TwapRow:
    if row.waiting or slices <= 0:
        return changed(row, snapshot_id=snapshot_id)
    whole = max(1, row.duration_secs * SECOND // SLICE_MS)
    lots = _LOTS[row.market]
    total, done = round(row.total_sz * lots), round(row.executed_sz * lots)
    done = min(total, done + -(-total * slices // whole))
    executed = done / lots
    px = row.executed_ntl / row.executed_sz if row.executed_sz else 0.0
    return changed(
        row,
        snapshot_id=snapshot_id,
        executed_sz=executed,
        remaining_sz=(total - done) / lots,
        executed_ntl=row.executed_ntl + (executed - row.executed_sz) * px,
        progress_pct=100.0 * done / total,
        next_slice_time=iso(time + SLICE_MS),
        slice_number=min(whole, row.slice_number + slices),
    )


def _moved(row: AccountValueRow, snapshot_id: str, rng: np.random.Generator) -> AccountValueRow:
    factor = 0.999 + 0.002 * float(rng.random())
    return changed(row, snapshot_id=snapshot_id, account_value=row.account_value * factor)


def _snapshot_time(world: World, now_ms: int) -> int:
    """Give the time of the latest snapshot: they are counted from the end of history."""
    end = world.sources.now_ms
    return end + max(0, now_ms - end) // LIVE_SNAPSHOT_MS * LIVE_SNAPSHOT_MS
