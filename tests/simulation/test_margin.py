"""Isolated margin: added, charged and released in integer micro-dollars."""

from collections import defaultdict
from decimal import Decimal

import pytest
from msgspec import UNSET

from toolkit.rules.margin import exact_maintenance
from toolkit.simulation.agents.population import draw_accounts
from toolkit.simulation.engine.accounts import Ticket
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.exact import rounded_share
from toolkit.simulation.history import run_history
from toolkit.simulation.markets import PERPS

MICRO = 10**6
TIERS = {perp.coin: perp.tiers for perp in PERPS}
ALONE = {perp.coin for perp in PERPS if perp.only_isolated}
PURR = [perp.coin for perp in PERPS].index("PURR")


@pytest.fixture
def exchange():
    """Return an exchange with two market makers and a taker, each with a thousand dollars."""
    result = Exchange(7, 0, draw_accounts(7, 2, 1, 1), simulate_prices(7, 1))
    for balance in result.balances:
        balance[0] = 1_000 * MICRO
    return result


def trade_purr(exchange, change, px):
    """Trade PURR between the taker and a market maker."""
    tickets = [
        Ticket(
            account=exchange.accounts[who], market=PERPS[PURR], oid=exchange.next_oid(),
            is_buy=change * sign > 0, px=px, size=abs(change), time=0,
        )
        for who, sign in ((2, 1), (0, -1))
    ]  # fmt: skip
    exchange.match_orders(exchange.next_transaction(0), PURR, *tickets, abs(change))


def test_isolated_margin_of_position_by_hand(exchange):
    """Opening adds notional over leverage, closing releases its share, a flip starts again."""
    times = exchange.accounts[2].perp_leverage(PURR)
    margins = exchange.margins[PURR]
    trade_purr(exchange, 300, 170_000)
    assert margins[2] == rounded_share(300 * 170_000, 1, times)
    trade_purr(exchange, 100, 180_000)
    whole = rounded_share(300 * 170_000, 1, times) + rounded_share(100 * 180_000, 1, times)
    assert margins[2] == whole
    trade_purr(exchange, -150, 175_000)
    left = whole - rounded_share(whole, 150, 400)
    assert margins[2] == left
    trade_purr(exchange, -350, 165_000)
    assert margins[2] == rounded_share(100 * 165_000, 1, times)
    trade_purr(exchange, 100, 160_000)
    assert 2 not in margins
    assert exchange.free_collateral(2, 0, 0) == exchange.balances[2][0]


def test_margin_is_limited_to_cash(exchange):
    exchange.balances[2][0] = 5 * MICRO
    trade_purr(exchange, 10_000, 176_350)
    assert 0 < exchange.margins[PURR][2] == exchange.balances[2][0] < 5 * MICRO
    assert exchange.free_collateral(2, 0, 0) == 0
    trade_purr(exchange, 10_000, 176_350)
    assert exchange.free_collateral(2, 0, 0) <= 0


def test_only_isolated_positions_have_margin():
    exchange = run_history(7, "tiny")
    for coin, book in enumerate(exchange.positions):
        isolated = {who for who in book if exchange.accounts[who].is_isolated(coin)}
        assert set(exchange.margins[coin]) == isolated
    assert any(exchange.margins)


def test_margin_equals_replayed_rows(each_world):
    """The test repeats the rule from wire records, for accounts that never added margin."""
    sources = each_world.sources
    held = {
        (user, row.position.coin): row.position
        for states in sources.states.values()
        for user, state in states.items()
        for row in state.asset_positions
        if row.position.leverage.type == "isolated"
    }
    events = defaultdict(list)
    for user, fill in sources.fills:
        events[user, fill.coin].append((fill.time, fill))
    for row in sources.funding:
        events[row.user, row.delta.coin].append((row.time, Decimal(row.delta.usdc)))
    same = [
        replay_margin(sorted(events[key], key=lambda event: event[0]), position.leverage.value)
        == own_margin(position)
        for key, position in held.items()
    ]
    assert len(same) > 10
    assert sum(same) > 0.7 * len(same)


def own_margin(position):
    """Return the margin of a position: the equity less the unrealised PnL."""
    return int((Decimal(position.margin_used) - Decimal(position.unrealized_pnl)) * MICRO)


def replay_margin(events, times):
    margin, size = 0, Decimal(0)
    for _, event in events:
        if isinstance(event, Decimal):
            margin += int(event * MICRO)
            continue
        change = Decimal(event.sz) if event.side == "B" else -Decimal(event.sz)
        closed = min(abs(size), abs(change)) if size * change < 0 else Decimal(0)
        if closed:
            scale = 10**8
            margin -= rounded_share(margin, int(closed * scale), int(abs(size) * scale))
        opened = int((abs(change) - closed) * Decimal(event.px) * MICRO)
        margin += rounded_share(opened, 1, times)
        size += change
        if not size:
            margin = 0
    return margin


def test_liquidations_are_cross_or_isolated(each_world):
    """The ledger and the fills of the same transaction agree on the kind."""
    fills = defaultdict(list)
    for user, fill in each_world.sources.fills:
        fills[user, fill.hash].append(fill)
    seen = set()
    for user, update in each_world.sources.ledger:
        delta = update.delta
        if delta.type != "liquidation":
            continue
        assert delta.liquidated_positions is not UNSET
        coins = [row.coin for row in delta.liquidated_positions]
        mine = fills[user, update.hash]
        assert {fill.coin for fill in mine} == set(coins)
        for fill in mine:
            seen.add((delta.leverage_type, liquidation_method(fill, str(delta.leverage_type))))
        if delta.leverage_type == "Isolated":
            (coin,) = coins
            notional = int(Decimal(str(delta.liquidated_ntl_pos)) * MICRO)
            needed = exact_maintenance(notional, TIERS[coin])
            assert Decimal(str(delta.account_value)) * MICRO < needed
        else:
            assert not set(coins) & ALONE
    assert seen >= {("Cross", "market"), ("Cross", "backstop"), ("Isolated", "backstop")}


def liquidation_method(fill, mode):
    """Return the method of a liquidated account's own fill, and check its direction."""
    side = "Long" if fill.side == "A" else "Short"
    if fill.liquidation is UNSET:
        assert fill.dir == "Auto-Deleveraging"
        return "deleveraged"
    method = fill.liquidation.method
    assert fill.dir == (f"Close {side}" if method == "market" else f"Liquidated {mode} {side}")
    return method


def test_cross_margin_excludes_isolated_positions(each_world):
    """The two summaries differ by the values, margins and notionals of isolated positions."""
    both = 0
    for states in each_world.sources.states.values():
        for state in states.values():
            rows = [row.position for row in state.asset_positions]
            alone = [row for row in rows if row.leverage.type == "isolated"]
            margin = sum((Decimal(row.margin_used) for row in alone), Decimal(0))
            value = sum((Decimal(row.position_value) for row in alone), Decimal(0))
            whole, cross = state.margin_summary, state.cross_margin_summary
            for name, amount in (
                ("account_value", margin), ("total_margin_used", margin), ("total_ntl_pos", value),
            ):  # fmt: skip
                assert Decimal(getattr(whole, name)) == Decimal(getattr(cross, name)) + amount
            assert whole.withdrawable == cross.withdrawable
            assert {row.coin for row in rows} & ALONE <= {row.coin for row in alone}
            both += 0 < len(alone) < len(rows)
    assert both
