"""The exchange after the end of history: what changes as a function of seed and time."""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import chain

import numpy as np
from msgspec.structs import replace

from toolkit.contract.records import AccountValueRow, Depth, DepthLevel, TwapRow
from toolkit.contract.source_tables import AccountSnapshot, Auction, Sources, TwapSnapshot
from toolkit.rules.twaps import SLICE_MS
from toolkit.simulation.engine.accounts import PORTFOLIO_MARGIN
from toolkit.simulation.exact import MICRO, random_stream
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output import snapshots
from toolkit.simulation.output.metadata import ROUND_MS, auction_rounds
from toolkit.times import MINUTE, SECOND, to_iso, to_ms

LIVE_SNAPSHOT_MS = 20 * SECOND
"""Time between two snapshots of a live exchange."""

DEPTH_HALF_LIFE_SECONDS = 40
"""Time in which a book recovers half of the depth that a shock removed."""

SHOCK_SECONDS = 600
"""Time between two shocks to the same book."""

NEW_TWAP_MS = 4 * MINUTE
"""Time in which one new TWAP begins."""

_SHOCK_SHARE = 0.6
_DECAY_A_SECOND = 0.9828205985452511  # 2 to the power of -1 / DEPTH_HALF_LIFE_SECONDS
_MISSING_SHARES = _SHOCK_SHARE * np.cumprod(np.full(SHOCK_SECONDS, _DECAY_A_SECOND))
"""Share of the depth that is missing, by seconds since the shock."""

_LOTS = {perp.coin: 10**perp.sz_decimals for perp in PERPS}
"""Market -> lots in one unit of its size."""

_USD = 10**MICRO
_CACHED_MOMENTS = 4  # for users who request at the same time
_LONGEST_TWAP_MINUTES = 60
_CANCELLED_SHARE = 0.15


class LiveExchange:
    """A simulated exchange whose clock runs on: depth, account values, TWAPs and auctions.

    The values at a moment depend only on the seed, the end of history and the moment. They are
    the same in every process, whatever was requested before.

    - ``seed``: the seed of all changes
    - ``last``: depth, snapshots and auctions at the end of history; its other tables are not used

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
        assert last.depth is not None
        self._end = last.now_ms
        cache = lru_cache(maxsize=_CACHED_MOMENTS)
        self._depth = cache(partial(_depth_at, seed, last.depth))
        self._values = cache(partial(_account_values_at, seed, last.account_snapshots[-1]))
        self._twaps = cache(partial(_twaps_at, seed, last.twap_snapshots[-1]))
        self._last_round = last.auctions[-1].start_seconds * SECOND
        self._auctions = cache(partial(auction_rounds, last.start_ms, last.now_ms))

    def depth(self, now_ms: int) -> Depth:
        """Return the depth of all markets, which changes every second.

        A market loses more than half of its depth every ten minutes and recovers it by
        half-lives. Each side and band also varies by some percent on its own.
        """
        return self._depth(now_ms // SECOND)

    def account_values(self, now_ms: int) -> AccountSnapshot:
        """Return the latest account values: those at the end of history with random changes.

        A value changes by up to 0.1 %. The total of a portfolio-margin account stays the sum of the
        values of its tokens.
        """
        return self._values(self._snapshot_time(now_ms))

    def twaps(self, now_ms: int) -> TwapSnapshot:
        """Return the latest TWAPs: running ones have traded a slice every half minute.

        They trade at their average price so far, and disappear when they are complete. Waiting
        TWAPs continue to wait. A new one begins every few minutes; some are cancelled half-way.
        """
        return self._twaps(self._snapshot_time(now_ms))

    def auctions(self, now_ms: int) -> list[Auction]:
        """Return the auctions that have started: one round follows the other."""
        now_ms = max(now_ms, self._end)
        return self._auctions(now_ms - (now_ms - self._last_round) % ROUND_MS)

    def _snapshot_time(self, now_ms: int) -> int:
        """Return the time of the latest snapshot, counted from the end of history."""
        return self._end + max(0, now_ms - self._end) // LIVE_SNAPSHOT_MS * LIVE_SNAPSHOT_MS


def _depth_at(seed: int, last: Depth, second: int) -> Depth:
    rng = random_stream(seed, "live depth", str(second))
    data = []
    for place, market in enumerate(last.data):
        share = 1.0 - float(_MISSING_SHARES[(second + 37 * place) % SHOCK_SECONDS])
        usd = np.array([(level.bid_depth_usd, level.ask_depth_usd) for level in market.levels])
        noise = 0.97 + 0.06 * rng.random(usd.shape)
        moved = np.cumsum(np.diff(usd, axis=0, prepend=0.0) * share * noise, axis=0).tolist()
        levels = [
            DepthLevel(bps=level.bps, bid_depth_usd=bid, ask_depth_usd=ask)
            for level, (bid, ask) in zip(market.levels, moved, strict=True)
        ]
        data.append(replace(market, levels=levels))
    return Depth(timestamp_ms=second * SECOND, data=data)


def _account_values_at(seed: int, last: AccountSnapshot, time: int) -> AccountSnapshot:
    """Return moved values, in whole micro-dollars, so that sums of them stay exact."""
    if time <= last.time:
        return last
    rng = random_stream(seed, "live values", str(time))
    # Rows of a portfolio-margin account repeat the value of their token.
    repeated: dict[tuple[str, str], int] = {}
    totals: defaultdict[str, int] = defaultdict(int)  # the sum of an account's moves on all dexes
    snapshot_id = snapshots.snapshot_name(time)
    values: dict[tuple[str, str], list[AccountValueRow]] = {key: [] for key in last.values}
    for key, rows in last.values.items():
        for row in rows:
            before = round(row.account_value * _USD)
            move, place = before * int(rng.integers(-1_000, 1_001)) // 10**6, (row.user, key[1])
            if row.account_mode != PORTFOLIO_MARGIN or place not in repeated:
                totals[row.user] += move
            if row.account_mode == PORTFOLIO_MARGIN:
                move = repeated.setdefault(place, move)
            value = (before + move) / _USD
            values[key].append(replace(row, snapshot_id=snapshot_id, account_value=value))
    for moved in chain.from_iterable(values.values()):
        if moved.pm_total_account_value is not None and moved.pm_ratio is not None:
            before = round(moved.pm_total_account_value * _USD)
            total = before + totals[moved.user]
            notional = round((moved.total_long_notional + moved.total_short_notional) * _USD)
            moved.pm_ratio = snapshots.portfolio_margin_ratio(moved.pm_ratio * before, total)
            moved.pm_avail_by_branch = snapshots.branch_margins(
                round(moved.account_value * _USD), notional
            )
            moved.pm_total_account_value = total / _USD
    return AccountSnapshot(snapshot_id, time, values)


def _twaps_at(seed: int, last: TwapSnapshot, time: int) -> TwapSnapshot:
    if time <= last.time:
        return last
    snapshot_id = snapshots.snapshot_name(time)
    markets: dict[str, list[TwapRow]] = {}
    for market, rows in last.twaps.items():
        moved = [_advance_twap(replace(row, snapshot_id=snapshot_id), time) for row in rows]
        if running := [row for row in moved if row.waiting or row.remaining_sz > 0]:
            markets[market] = running
    for row in _new_twaps(seed, last, time):
        markets.setdefault(row.market, []).append(replace(row, snapshot_id=snapshot_id))
    return TwapSnapshot(snapshot_id, time, markets)


def _advance_twap(row: TwapRow, time: int) -> TwapRow:
    """Return a TWAP after the slices that were due until a time."""
    assert row.next_slice_time is not None
    planned = to_ms(row.next_slice_time)
    slices = max(0, (time - planned) // SLICE_MS + 1)
    row = replace(row, next_slice_time=to_iso(planned + slices * SLICE_MS))
    lots = _LOTS[row.market]
    total, executed = round(row.total_sz * lots), round(row.executed_sz * lots)
    if row.waiting or not slices or not executed:  # without a fill there is no price
        return row
    slice_count = max(1, row.duration_secs * SECOND // SLICE_MS)
    traded = min(total - executed, -(-total * slices // slice_count))
    notional = round(row.executed_ntl * _USD)
    return replace(
        row,
        executed_sz=(executed + traded) / lots,
        remaining_sz=(total - executed - traded) / lots,
        executed_ntl=(notional + traded * notional // executed) / _USD,
        progress_pct=100.0 * (executed + traded) / total,
        slice_number=min(slice_count, row.slice_number + slices),
    )


def _new_twaps(seed: int, last: TwapSnapshot, time: int) -> Iterator[TwapRow]:
    """Yield the TWAPs that have begun since the end of history and still run, by start.

    Each new TWAP has the account, the market and roughly the price of a TWAP that ran at the end of
    history. If none of the TWAPs at the end of history had a fill, there is none. All values are a
    function of the seed and the number of the TWAP.

    - ``last``: the TWAPs at the end of history
    - ``time``: the present
    """
    rows = [row for _, rows in sorted(last.twaps.items()) for row in rows]
    models = [row for row in rows if round(row.executed_sz * _LOTS[row.market])]
    if not models:
        return
    highest = max(row.twap_id for row in rows)
    newest = (time - last.time) // NEW_TWAP_MS
    oldest = max(0, newest - _LONGEST_TWAP_MINUTES * MINUTE // NEW_TWAP_MS - 1)
    for number in range(oldest, newest + 1):
        rng = random_stream(seed, "begun twaps", str(number))
        model = models[int(rng.integers(0, len(models)))]
        lots = _LOTS[model.market]
        start = last.time + number * NEW_TWAP_MS + int(rng.integers(0, NEW_TWAP_MS))
        minutes = int(rng.integers(10, _LONGEST_TWAP_MINUTES + 1))
        slice_count = minutes * MINUTE // SLICE_MS
        last_slice = slice_count // 2 if rng.random() < _CANCELLED_SHARE else slice_count
        model_lots = round(model.total_sz * lots)
        total = max(slice_count, model_lots * int(rng.integers(20, 101)) // 100)
        # Micro-dollars a lot:
        model_px = max(1, round(model.executed_ntl * _USD) // round(model.executed_sz * lots))
        px = max(1, model_px * int(rng.integers(990, 1_011)) // 1_000)
        is_buy, randomize = (bool(flag) for flag in rng.integers(0, 2, 2))
        slices = (time - start) // SLICE_MS
        executed = -(-total * slices // slice_count)
        if time < start or slices >= last_slice or executed >= total:
            continue
        yield replace(
            model,
            twap_id=highest + 1 + number,
            is_buy=is_buy,
            total_sz=total / lots,
            executed_sz=executed / lots,
            remaining_sz=(total - executed) / lots,
            executed_ntl=executed * px / _USD,
            progress_pct=100.0 * executed / total,
            duration_secs=minutes * MINUTE // SECOND,
            start_time_ms=start,
            reduce_only=False,
            randomize=randomize,
            next_slice_time=to_iso(start + (slices + 1) * SLICE_MS),
            slice_number=slices,
            stop_px=None,
            trigger_px=None,
            trigger_above=None,
            waiting=False,
        )
