"""Fields of states and metadata on the simulated exchange: docs/live_service.md, section 1."""

from collections import defaultdict
from decimal import Decimal

import pytest
from msgspec import UNSET

from tests.worlds import world_of
from toolkit.contract.records import Fill
from toolkit.simulation.markets import PERPS


@pytest.fixture(scope="module")
def world():
    return world_of("tiny", 1)


def positions(world):
    return {
        (user, row.position.coin): row.position
        for states in world.sources.states.values()
        for user, state in states.items()
        for row in state.asset_positions
    }


def test_cumulative_funding_equals_rows(world):
    """Paid is positive: sums of all rows, of rows since the opening, and since the last fill."""
    sums = defaultdict(lambda: [Decimal(0)] * 3)
    size = defaultdict(Decimal)
    rows = [(fill.time, 1, user, fill) for user, fill in world.sources.fills]
    rows += [(row.time, 0, row.user, row.delta) for row in world.sources.funding]
    for _, _, user, row in sorted(rows, key=lambda entry: entry[:2]):
        key = (user, row.coin)
        if not isinstance(row, Fill):
            sums[key] = [total - Decimal(row.usdc) for total in sums[key]]
            continue
        before = size[key]
        size[key] += Decimal(row.sz) if row.side == "B" else -Decimal(row.sz)
        all_time, since_open, _ = sums[key]
        stays = before * size[key] > 0
        sums[key] = [all_time, since_open if stays else Decimal(0), Decimal(0)]
    held = positions(world)
    assert any(sums[key][0] != sums[key][1] for key in held)
    for key, position in held.items():
        funding = position.cum_funding
        said = [funding.all_time, funding.since_open, funding.since_change]
        assert [Decimal(number) for number in said] == sums[key]


def test_isolated_margin_is_value_plus_cash(world):
    """Margin in use is the sum of signed value and cash of an isolated position, as in 1_state."""
    most = {perp.coin: perp.max_leverage for perp in PERPS}
    kinds = set()
    for (_, coin), position in positions(world).items():
        assert position.max_leverage == most[coin]
        kinds.add(position.leverage.type)
        if position.leverage.type == "cross":
            assert position.leverage.raw_usd is UNSET
            continue
        sign = 1 if Decimal(position.szi) > 0 else -1
        cash = Decimal(str(position.leverage.raw_usd))
        assert Decimal(position.margin_used) == sign * Decimal(position.position_value) + cash
    assert kinds == {"cross", "isolated"}


def test_state_and_summary_have_same_withdrawable(world):
    for states in world.sources.states.values():
        for state in states.values():
            assert state.withdrawable == state.cross_margin_summary.withdrawable
            assert state.time == world.sources.now_ms


def test_delisted_perp_has_older_samples(world):
    sources = world.sources
    assets = [asset for meta in sources.metas.values() for asset in meta.universe]
    (gone,) = [asset for asset in assets if asset.is_delisted is True]
    assert (gone.name, gone.margin_mode) == ("MYRO", "strictIsolated")
    assert gone.name not in {market.coin for market in sources.depth.data}
    ended = max(fill.time for _, fill in sources.fills if fill.coin == gone.name)
    sampled = [row.timestamp for row in sources.slippage if row.coin == gone.name]
    assert min(sampled) == sources.start_ms
    assert 0 < ended - max(sampled) < 15 * 60_000


def test_fee_is_at_least_its_escrow(world):
    fills = [f for _, f in world.sources.fills if isinstance(f.fee_trial_escrow, str)]
    assert 0 < len(fills) < 0.1 * len(world.sources.fills)
    assert all(0 <= Decimal(str(f.fee_trial_escrow)) <= Decimal(f.fee) for f in fills)
