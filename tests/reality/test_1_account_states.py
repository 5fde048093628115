"""Fields of states and metadata on the simulated exchange: docs/live_service.md, section 1."""

import warnings
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal

import pytest
from msgspec import UNSET, structs

import toolkit as tk
from tests.worlds import world_of
from toolkit.contract.records import Fill
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, KeyQuotas, build_store
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


def test_order_events_have_id_or_null(world):
    """The id is null if an order has none, and never absent."""
    ids = [event.order.cloid for _, event in world.sources.orders]
    assert {type(cloid) for cloid in ids} == {str, type(None)}


def test_fee_is_at_least_its_escrow(world):
    fills = [f for _, f in world.sources.fills if isinstance(f.fee_trial_escrow, str)]
    assert 0 < len(fills) < 0.1 * len(world.sources.fills)
    assert all(0 <= Decimal(str(f.fee_trial_escrow)) <= Decimal(f.fee) for f in fills)


def drop_trade_sizes(sources):
    """Return the tables with positions without `maxTradeSzs`.

    The live service has left this field out since 2025 (docs/live_service.md, section 1), and the
    specification shows it. A service of these tables answers as the live one does today.
    """

    def without(row):
        return structs.replace(row, position=structs.replace(row.position, max_trade_szs=UNSET))

    states = {
        dex: {
            user: structs.replace(state, asset_positions=list(map(without, state.asset_positions)))
            for user, state in states.items()
        }
        for dex, states in sources.states.items()
    }
    return replace(sources, states=states)


def test_states_without_trade_sizes_keep_others(world):
    """All other columns are equal, and there is at most one warning."""
    sources = replace(world.sources, orders=[], slippage=[])
    users = list(sources.states[""])[:30]

    def fetched(tables):
        application = application_of(build_store(tables), KeyQuotas([AcceptedKey("k", "secret")]))
        transport = InProcessTransport(application)
        session = tk.connect("http://local", "secret", transport=transport, default=False)
        return tk.batch_clearinghouse_states(users, session=session).positions

    before = fetched(sources)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        after = fetched(drop_trade_sizes(sources))
    assert len(caught) <= 1
    assert len(before) == len(after) > 20
    assert before["max_trade_szs"].notna().all()
    assert after["max_trade_szs"].isna().all()
    assert after.drop(columns="max_trade_szs").equals(before.drop(columns="max_trade_szs"))
