"""Accounts follow their strategies, as their fills, wallets and positions show."""

from collections import Counter, defaultdict
from decimal import Decimal
from statistics import mean

import pytest

from toolkit.contract.records import Liquidation
from toolkit.simulation.agents.population import assign_roles, draw_accounts
from toolkit.simulation.agents.spot_traders import HEDGED_PAIRS
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.history import SIZES
from toolkit.simulation.markets import PAIRS, PERPS
from toolkit.times import HOUR, MINUTE

COINS = {perp.coin: (number, perp) for number, perp in enumerate(PERPS)}
FORCED = ("Liquidated", "Auto-Deleveraging", "Settlement")


def is_forced(user, fill):
    """Return whether the exchange forced a fill (docs/live_service.md, section 2)."""
    liquidation = fill.liquidation
    named = isinstance(liquidation, Liquidation) and liquidation.liquidated_user == user
    return named or fill.dir.startswith(FORCED)


@pytest.fixture(scope="module")
def drawn_accounts(each_world):
    """Return all accounts as drawn, by address."""
    scale = SIZES[each_world.size]
    accounts = draw_accounts(each_world.seed, scale["makers"], scale["takers"], scale["builders"])
    assign_roles(accounts, scale["makers"])
    return {account.address: account for account in accounts}


@pytest.fixture(scope="module")
def fills(each_world):
    rows = defaultdict(list)
    for user, fill in each_world.sources.fills:
        rows[user].append(fill)
    return rows


def users_with_strategy(drawn_accounts, strategy):
    return [address for address, account in drawn_accounts.items() if account.strategy == strategy]


def test_every_strategy_occurs(each_world, drawn_accounts):
    assert set(drawn_accounts) == {*each_world.expected, *each_world.expected_mixed}
    there = Counter(account.strategy for account in drawn_accounts.values())
    assert set(there) == {
        "maker", "spot maker", "trend", "reversion", "noise", "gambler", "hedger", "dormant",
    }  # fmt: skip
    assert there["dormant"] >= 2
    assert there["hedger"] >= 2


def test_every_mode_trades():
    """It holds for every seed: in seed 46 the portfolio-margin account was once dormant."""
    scale = SIZES["tiny"]
    for seed in (46, 250, 282, *range(20)):
        accounts = draw_accounts(seed, scale["makers"], scale["takers"], scale["builders"])
        assign_roles(accounts, scale["makers"])
        assert {
            account.mode for account in accounts if account.activity and not account.spot_share
        } == {0, 1, 2, 3}, seed


def test_dormant_accounts_stop_after_12_hours(each_world, drawn_accounts, fills):
    """Later fills of these accounts are forced."""
    early = each_world.sources.start_ms + 12 * HOUR
    mine = [
        (user, fill)
        for user in users_with_strategy(drawn_accounts, "dormant")
        for fill in fills[user]
    ]
    assert any(fill.time <= early for _, fill in mine)
    assert all(is_forced(user, fill) for user, fill in mine if fill.time > early)
    others = [
        (u, f)
        for u in users_with_strategy(drawn_accounts, "trend")
        for f in fills[u]
        if f.time > early
    ]
    assert not all(is_forced(user, fill) for user, fill in others)


def test_hedgers_are_short_their_tokens(each_world, drawn_accounts):
    """Tokens in the wallet and the perp's short position differ by less than a lot.

    At most a fifth of the hedgers were liquidated or deleveraged and differ by more.
    """
    hedged = []
    for user in users_with_strategy(drawn_accounts, "hedger"):
        pair = PAIRS[HEDGED_PAIRS[drawn_accounts[user].number % len(HEDGED_PAIRS)]]
        lot = Decimal(1).scaleb(-COINS[pair.follows][1].sz_decimals)
        tokens = each_world.expected_mixed[user].tokens[pair.base].balance
        state = each_world.sources.states[""][user]
        sizes = {row.position.coin: Decimal(row.position.szi) for row in state.asset_positions}
        assert tokens > lot
        hedged.append(0 <= tokens + sizes.get(pair.follows, Decimal(0)) < lot)
        assert set(sizes) <= {pair.follows}
    assert mean(hedged) >= 0.8


def trend_signs(user, fills, prices, start_ms):
    """Return for each market order 1 with the move of the last four hours, -1 against it."""
    seen, signs = set(), []
    for fill in fills:
        if not fill.crossed or fill.coin not in COINS or fill.oid in seen:
            continue
        if fill.twap_id is not None or is_forced(user, fill):
            continue
        seen.add(fill.oid)
        coin, minute = COINS[fill.coin][0], (fill.time - start_ms) // MINUTE
        move = prices.mid[coin, minute] - prices.mid[coin, max(0, minute - 240)]
        signs.append(
            int(move > 0) - int(move < 0) if fill.side == "B" else int(move < 0) - int(move > 0)
        )
    return signs


def test_strategies_follow_their_trend(each_world, drawn_accounts, fills):
    """Trend followers buy after a rise, reversion traders sell, and noise does neither."""
    start, end = each_world.sources.start_ms, each_world.sources.now_ms
    prices = simulate_prices(each_world.seed, (end - start) // HOUR)
    for strategy, low, high in [
        ("trend", 0.1, 0.9), ("reversion", -0.9, -0.1), ("noise", -0.2, 0.2),
    ]:  # fmt: skip
        signs = [
            sign
            for user in users_with_strategy(drawn_accounts, strategy)
            for sign in trend_signs(user, fills[user], prices, start)
        ]
        assert len(signs) > 50
        assert low < mean(signs) < high, strategy
