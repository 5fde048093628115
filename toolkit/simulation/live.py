"""The clock runs on: what changes after the end of history, as a function of seed and time."""

from collections import defaultdict
from functools import lru_cache, partial

import numpy as np
from msgspec.structs import replace as changed

from toolkit.contract.records import AccountValueRow, Depth, DepthLevel, MarketDepth, TwapRow
from toolkit.contract.sources import AccountSnapshot, Auction, Sources, TwapSnapshot
from toolkit.simulation.beginning import LOTS, begun_twaps
from toolkit.simulation.deploys import next_rounds, rounds_begun
from toolkit.simulation.draws import stream
from toolkit.simulation.quantities import MICRO
from toolkit.simulation.snapshots import available_by_branch, margin_ratio, name_snapshot
from toolkit.simulation.twaps import SLICE_MS
from toolkit.times import SECOND, to_iso, to_ms

__all__ = ["DEPTH_HALF_LIFE_SECONDS", "LIVE_SNAPSHOT_MS", "SHOCK_SECONDS", "LiveExchange"]

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

_USD = 10**MICRO
_KEPT = 4  # moments, for those who ask at the same time


class LiveExchange:
    """A simulated exchange whose clock runs on: depth, account values, TWAPs and auctions.

    What there is at a moment depends on the seed, the end of history and the moment alone: it is
    the same in every process, whoever has asked for what before.

    Parameters
    ----------
    seed : int
        What moves is drawn from it.
    last : Sources
        Depth, snapshots and auctions as they are at the end of history; its other tables are not
        looked at.

    Examples
    --------
    >>> from toolkit.simulation import simulate
    >>> world = simulate(7, "tiny")
    >>> end = world.sources.now_ms
    >>> exchange = LiveExchange(world.seed, world.sources)
    >>> exchange.depth(end + 5_900).timestamp_ms - end
    5000
    >>> exchange.twaps(end + 65_000).time - end
    60000
    """

    def __init__(self, seed: int, last: Sources) -> None:
        if last.depth is None or not last.account_snapshots or not last.twap_snapshots:
            raise ValueError("a clock runs on from a depth and from snapshots: one is missing")
        self._end = last.now_ms
        kept = lru_cache(maxsize=_KEPT)
        self._depth = kept(partial(_depth, seed, last.depth))
        self._values = kept(partial(_account_values, seed, last.account_snapshots[-1]))
        self._twaps = kept(partial(_twaps, seed, last.now_ms, last.twap_snapshots[-1]))
        self._rounds = list(last.auctions)
        self._auctions = kept(partial(next_rounds, self._rounds))

    def depth(self, now_ms: int) -> Depth:
        """Give the depth of all markets, another one every second.

        A market loses more than half of its depth every ten minutes, wins it back by half-lives,
        and trembles by some hundredths, each side and band on its own.
        """
        return self._depth(now_ms // SECOND)

    def account_values(self, now_ms: int) -> AccountSnapshot:
        """Give the latest account values, which move by up to a thousandth of the last history's.

        The total of a portfolio-margin account stays the sum of its values.
        """
        return self._values(self._latest(now_ms))

    def twaps(self, now_ms: int) -> TwapSnapshot:
        """Give the latest TWAPs: the running ones have traded a slice every half minute.

        They trade at their average price so far, and are gone when they are done. Those that
        wait go on waiting. A new one begins every few minutes; some are cancelled half-way.
        """
        return self._twaps(self._latest(now_ms))

    def auctions(self, now_ms: int) -> list[Auction]:
        """Give the auctions that have started: one round follows the other."""
        begun = rounds_begun(self._rounds, now_ms)
        return [*self._rounds, *self._auctions(begun)] if begun else self._rounds

    def _latest(self, now_ms: int) -> int:
        """Give the time of the latest snapshot: they are counted from the end of history."""
        return self._end + max(0, now_ms - self._end) // LIVE_SNAPSHOT_MS * LIVE_SNAPSHOT_MS


def _depth(seed: int, last: Depth, second: int) -> Depth:
    rng = stream(seed, "live depth", str(second))
    data = [
        _swung(market, 1.0 - float(_MISSING[(second + 37 * place) % SHOCK_SECONDS]), rng)
        for place, market in enumerate(last.data)
    ]
    return Depth(timestamp_ms=second * SECOND, data=data)


def _swung(market: MarketDepth, there: float, rng: np.random.Generator) -> MarketDepth:
    bid = ask = bid_before = ask_before = 0.0
    levels = []
    for level in market.levels:
        bid += (level.bid_depth_usd - bid_before) * there * (0.97 + 0.06 * float(rng.random()))
        ask += (level.ask_depth_usd - ask_before) * there * (0.97 + 0.06 * float(rng.random()))
        bid_before, ask_before = level.bid_depth_usd, level.ask_depth_usd
        levels.append(DepthLevel(bps=level.bps, bid_depth_usd=bid, ask_depth_usd=ask))
    return changed(market, levels=levels)


def _account_values(seed: int, last: AccountSnapshot, time: int) -> AccountSnapshot:
    """Move every value; in whole micro-dollars, so that what is a sum of them stays one."""
    if time <= last.time:
        return last
    rng = stream(seed, "live values", str(time))
    moves = {
        key: [_move(row, int(rng.integers(-1_000, 1_001))) for row in rows]
        for key, rows in last.values.items()
    }
    gains: defaultdict[str, int] = defaultdict(int)
    for key, rows in last.values.items():
        for row, move in zip(rows, moves[key], strict=True):
            gains[row.user] += move
    snapshot_id = name_snapshot(time)
    values = {
        key: [
            _moved(changed(row, snapshot_id=snapshot_id), move, gains[row.user])
            for row, move in zip(rows, moves[key], strict=True)
        ]
        for key, rows in last.values.items()
    }
    return AccountSnapshot(snapshot_id, time, values)


def _move(row: AccountValueRow, millionths: int) -> int:
    units: int = round(row.account_value * _USD)
    return units * millionths // 10**6


def _moved(row: AccountValueRow, move: int, gain: int) -> AccountValueRow:
    """Give a row whose value has moved, and whose owner has gained so much on all dexes."""
    value = round(row.account_value * _USD) + move
    row = changed(row, account_value=value / _USD)
    if row.pm_total_account_value is None:
        return row
    notional = round((row.total_long_notional + row.total_short_notional) * _USD)
    return changed(
        row,
        pm_ratio=margin_ratio(notional, value),
        pm_avail_by_branch=available_by_branch(value, notional),
        pm_total_account_value=(round(row.pm_total_account_value * _USD) + gain) / _USD,
    )


def _twaps(seed: int, end: int, last: TwapSnapshot, time: int) -> TwapSnapshot:
    if time <= last.time:
        return last
    snapshot_id = name_snapshot(time)
    markets: dict[str, list[TwapRow]] = {}
    for market, rows in last.twaps.items():
        moved = [_advanced(changed(row, snapshot_id=snapshot_id), time) for row in rows]
        if running := [row for row in moved if row.waiting or row.remaining_sz > 0]:
            markets[market] = running
    for row in begun_twaps(seed, end, last.twaps, time, snapshot_id):
        markets.setdefault(row.market, []).append(row)
    return TwapSnapshot(snapshot_id, time, markets)


def _advanced(row: TwapRow, time: int) -> TwapRow:
    """Give a TWAP after the slices that it has had the time for."""
    assert row.next_slice_time is not None
    planned = to_ms(row.next_slice_time)
    slices = max(0, (time - planned) // SLICE_MS + 1)
    row = changed(row, next_slice_time=to_iso(planned + slices * SLICE_MS))
    lots = LOTS[row.market]
    total, done = round(row.total_sz * lots), round(row.executed_sz * lots)
    if row.waiting or not slices or not done:  # without a fill there is no price to go on at
        return row
    whole = max(1, row.duration_secs * SECOND // SLICE_MS)
    traded = min(total - done, -(-total * slices // whole))
    spent = round(row.executed_ntl * _USD)
    return changed(
        row,
        executed_sz=(done + traded) / lots,
        remaining_sz=(total - done - traded) / lots,
        executed_ntl=(spent + traded * spent // done) / _USD,
        progress_pct=100.0 * (done + traded) / total,
        slice_number=min(whole, row.slice_number + slices),
    )
