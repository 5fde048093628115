"""What one side pays, the other receives; and the simulation agrees with the rules."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from msgspec import UNSET

from tests.rules.reference import exact_oracle_range, half_spread_bps, slippage_bps
from tests.simulation.test_dexes import is_perp
from toolkit.contract.requests import AMOUNTS
from toolkit.rules.depth import slippage_bounds
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output.depth import draw_books, tables
from toolkit.times import DAY, HOUR, MINUTE


def test_total_pnl_is_at_most_rounding(any_world):
    """Closed and unrealised PnL of all accounts cancel, except for truncated entry prices.

    A close of size c reports up to a price step times c too much or too little, and so does
    an open position. Nothing else may remain.
    """
    decimals = {perp.coin: perp.px_decimals for perp in PERPS}
    gains, slack = Fraction(0), Fraction(0)
    for _, fill in any_world.sources.fills:
        if is_perp(fill):
            gains += Fraction(fill.closed_pnl)
            slack += Fraction(fill.sz) / 10 ** decimals[fill.coin]
    for truth in (*any_world.expected.values(), *any_world.expected_mixed.values()):
        gains += Fraction(truth.unrealised)
    assert abs(gains) <= slack


def test_open_interest_has_two_sides(any_world):
    sizes: dict[str, Decimal] = defaultdict(Decimal)
    longs: dict[str, Decimal] = defaultdict(Decimal)
    for states in any_world.sources.states.values():
        for state in states.values():
            for row in state.asset_positions:
                size = Decimal(row.position.szi)
                sizes[row.position.coin] += size
                longs[row.position.coin] += max(size, Decimal(0))
    assert set(sizes.values()) == {Decimal(0)}
    names = [asset.name for meta in any_world.sources.metas.values() for asset in meta.universe]
    contexts = [c for rows in any_world.sources.contexts.values() for c in rows]
    for name, context in zip(names, contexts, strict=True):
        assert Decimal(context.open_interest) == longs[name]


def test_transfers_are_in_both_ledgers(any_world):
    between = defaultdict(list)
    for user, update in any_world.sources.ledger:
        if update.delta.destination is not UNSET and update.delta.user != update.delta.destination:
            between[update.hash].append((user, update.delta))
    users = {*any_world.expected, *any_world.expected_mixed}
    for rows in between.values():
        delta = rows[0][1]
        parties = {delta.user, delta.destination} & users
        assert {user for user, _ in rows} == parties


def test_payments_allow_one_oracle_price(any_world):
    """The method of largest remainders moves no payment by a full micro-dollar."""
    low: dict[tuple[str, int], Fraction] = {}
    high: dict[tuple[str, int], Fraction] = {}
    for row in any_world.sources.funding:
        size, rate = Fraction(row.delta.szi), Fraction(row.delta.funding_rate)
        if not rate:
            continue
        ends = exact_oracle_range(Fraction(row.delta.usdc), size, rate)
        key = (row.delta.coin, row.time)
        low[key] = max(low.get(key, ends[0]), ends[0])
        high[key] = min(high.get(key, ends[1]), ends[1])
    assert all(low[key] <= high[key] for key in low)


def test_samples_follow_drawn_books():
    prices = simulate_prices(7, 3)
    samples = tables(prices, 0)["slippage"]
    by_key = {(s.coin, s.amount_usd, s.timestamp): s for s in samples}
    minutes = np.arange(0, 3 * 60 + 1, 15)
    for coin in (0, 10, 13):
        books = draw_books(7, prices, coin, minutes)
        for moment, minute in enumerate(minutes.tolist()):
            book = books.book_at(moment)
            for usd in AMOUNTS:
                sample = by_key[PERPS[coin].coin, usd, minute * 60_000]
                expected = slippage_bps(book, usd)
                parts = (sample.buy_slippage_bps, sample.sell_slippage_bps)
                assert parts == pytest.approx(expected, abs=0.0101)
                assert sample.half_spread_bps == pytest.approx(half_spread_bps(book), abs=0.0101)


def test_depth_grows_with_distance(world):
    assert world.sources.depth is not None
    markets = world.sources.depth.data
    assert len(markets) == sum(not perp.delisted for perp in PERPS)
    for market in markets:
        for side in ("bid_depth_usd", "ask_depth_usd"):
            depths = [getattr(level, side) for level in market.levels]
            assert depths == sorted(depths)
            assert depths[-1] > 0


def test_commission_share_is_that_of_validator(world):
    """Rewards and commission add up, and the share is the validator's commission."""
    shares = defaultdict(set)
    days = defaultdict(list)
    for reward in world.sources.rewards:
        kept, rest = Decimal(reward.commission), Decimal(reward.delegator_rewards)
        shares[reward.validator].add(round(kept / (kept + rest), 6))
        days[reward.validator].append(reward.time)
        assert 0 < (kept + rest) / Decimal(reward.staked) * 365 < Decimal("0.05")
    assert {min(share) for share in shares.values() if len(share) == 1} == {
        Decimal("0"), Decimal("0.03"), Decimal("0.04"), Decimal("0.05"), Decimal("0.1"), Decimal(1),
    }  # fmt: skip
    for times in days.values():
        assert times[-1] == world.sources.now_ms
        assert {after - before for before, after in pairwise(times)} == {DAY}


def test_slippage_samples_every_quarter_hour(world):
    """A delisted perp has samples until its end: the last one is 7 minutes older.

    In the tiny world of three days, this is after 54 hours.
    """
    times = defaultdict(list)
    for sample in world.sources.slippage:
        times[sample.coin, sample.amount_usd].append(sample.timestamp)
    start = world.sources.start_ms
    grid = list(range(start, world.sources.now_ms + 1, HOUR // 4))
    ended = grid[: 54 * 4 + 1]
    gone = {perp.coin for perp in PERPS if perp.delisted}
    assert all(stamps == (ended if key[0] in gone else grid) for key, stamps in times.items())
    assert len(times) == 9 * len(PERPS)
    settled = max(fill.time for _, fill in world.sources.fills if fill.coin in gone)
    assert settled == ended[-1] + 7 * MINUTE


def test_auction_price_falls_in_straight_line(any_world):
    """A sale after 10 of 31 hours costs start - (start - floor) * 10 / 31, to eight decimals."""
    sold = [auction for auction in any_world.sources.auctions if auction.end_gas is not None]
    assert {auction.kind for auction in sold} == {"spot", "perp"}
    for auction in sold:
        assert auction.end_seconds is not None
        start, floor = Fraction(auction.start_gas), Fraction(auction.floor_gas)
        over = Fraction(auction.end_seconds - auction.start_seconds, auction.duration_seconds)
        assert abs(Fraction(auction.end_gas) - (start - (start - floor) * over)) <= Fraction(
            1, 2 * 10**8
        )


def test_depth_agrees_with_samples(world):
    """The cost of a size is within the bounds that the depth of the same moment allows."""
    assert world.sources.depth is not None
    depth = {market.coin: market for market in world.sources.depth.data}
    last = [sample for sample in world.sources.slippage if sample.timestamp == world.sources.now_ms]
    assert len(last) == len(AMOUNTS) * len(depth)
    for sample in last:
        levels = depth[sample.coin.rpartition(":")[2]].levels
        widths = np.array([float(level.bps) for level in levels])
        usd, half = np.array([sample.amount_usd]), np.array([sample.half_spread_bps])
        sides = (
            (sample.buy_slippage_bps, [level.ask_depth_usd for level in levels], 1),
            (sample.sell_slippage_bps, [level.bid_depth_usd for level in levels], -1),
        )
        for result, held, sign in sides:
            least, most = slippage_bounds(usd, np.array([held]), widths, half, sign)
            if result is None:
                assert np.isinf(most[0])
            else:
                assert least[0] - 0.02 <= result <= most[0] + 0.02
