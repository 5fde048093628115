"""Section 3: closed PnL of spot sells, the token fee in the cost, gaps, cash from flat to flat."""

from decimal import Decimal

import msgspec
import pytest

from tests.reality.spot_chains import PRICE, TOKEN, chains
from tests.worlds import world_of
from toolkit.contract.records import Fill
from toolkit.rules.spot_cost import FLAT

SEEDS = (1, 2, 7)
BASES = {"PURR/USDC": "PURR", "@107": "HYPE", "@142": "UBTC"}


@pytest.fixture(scope="module")
def found():
    """Return the chains of several worlds, by seed, account and coin."""
    return {
        (seed, user, coin): chain
        for seed in SEEDS
        for (user, coin), chain in chains(world_of("tiny", seed).sources.fills).items()
    }


def cash_of(fill):
    return (1 if fill.side == "A" else -1) * Decimal(fill.px) * Decimal(fill.sz)


def test_example_closed_pnl_uses_average_cost(examples):
    """99.93 * (11 - 1000 / 99.93) = 99.23, to the last digit.

    The cash is -1000 + 1099.23 - 0.769461 = 98.460539 = 99.23 - 0.769461.
    """
    fills = [msgspec.convert(row, Fill) for row in examples["3_spot_fills"]]
    (chain,) = chains(("0x1", fill) for fill in fills).values()
    assert [row.closed for row in chain] == [0, 9923 * TOKEN * PRICE // 100]
    assert [row.closed for row in chain] == [row.stated for row in chain]
    net = sum(map(cash_of, fills)) - Decimal(fills[1].fee)
    assert net == Decimal(fills[1].closed_pnl) - Decimal(fills[1].fee) == Decimal("98.460539")


def test_sells_close_average_cost_exactly(found):
    """The closed PnL is exact, also with gaps between the fills."""
    rows = [row for chain in found.values() for row in chain]
    assert [row.fill for row in rows if row.stated != (row.closed or 0)] == []
    assert sum(bool(row.stated) for row in rows) > 300


def test_cash_equals_pnl_less_cost_moves(found):
    """For every account and coin: cash = closed PnL - disposed cost + moved cost.

    Buys add cost, and sells, gaps and swaps remove it; the rest is the cost basis. Tokens of
    unknown cost count at the average, so they increase what leaves.
    """
    disposed = moved = 0
    for chain in found.values():
        cash = sum(row.cash for row in chain)
        closed = sum(row.closed or 0 for row in chain)
        gone = sum(row.disposed for row in chain)
        swapped = sum(row.after.cost - row.before.cost for row in chain if not row.cash)
        priced = sum(
            -row.change * row.px - (row.closed or 0) - (row.before.cost - row.after.cost)
            for row in chain
            if row.change < 0 and row.cash
        )
        # A settlement at 0 closes exactly the cost that it removes.
        worthless = sum(row.before.cost - row.after.cost for row in chain if row.fill.px == "0.0")
        left = chain[-1].after.cost
        assert cash == closed + priced - gone - left + swapped + worthless
        disposed += gone
        moved += abs(swapped)
    assert disposed > 0
    assert moved > 0


def test_cost_includes_token_fee(found):
    """A buy of a spot pair pays its fee in the token; sells and outcomes pay in USDC."""
    for (_, _, coin), chain in found.items():
        for row in chain:
            in_token = row.change > 0 and not coin.startswith("#")
            assert (row.fill.fee_token != "USDC") == in_token
            assert row.after.size == row.start + row.change - row.fee


def test_gaps_keep_remaining_cost(found):
    """Gas, staking and transfers change the balance; the rest keeps its basis."""
    gaps = [row for chain in found.values() for row in chain if row.gap]
    out = [row for row in gaps if row.gap < 0 and row.disposed]
    assert out
    assert all(row.before.cost > 0 for row in out if row.before.size > row.before.unknown)
    assert any(row.gap > 0 and row.before.unknown for row in gaps)
    assert all(row.before.size == row.start for row in gaps)


@pytest.mark.parametrize("seed", SEEDS)
def test_entry_notional_of_balance_is_cost_basis(seed, found):
    """`entryNtl` is the exact cost basis after the last fill and later gaps."""
    world = world_of("tiny", seed)
    last = {
        (user, BASES.get(coin, "+" + coin[1:])): chain[-1].after
        for (made, user, coin), chain in found.items()
        if made == seed
    }
    truths = {**world.expected, **world.expected_mixed}
    known = 0
    for user, state in world.sources.spot_states.items():
        totals = {balance.coin: Decimal(balance.total) for balance in state.balances}
        balances = {token: row.balance for token, row in truths[user].tokens.items()}
        # The wallet of a unified account also holds the collateral of its perps.
        apart = {"USDC", "USDH", "USDE"}
        assert {token: total for token, total in totals.items() if token not in apart} == {
            token: total for token, total in balances.items() if total and token not in apart
        }
        for balance in state.balances:
            after = last.get((user, balance.coin), FLAT)
            stated = Decimal(balance.entry_ntl) * TOKEN * PRICE
            is_bought = balance.coin in BASES.values() and (user, balance.coin) in last
            if not is_bought or after.size == Decimal(balance.total) * TOKEN:
                assert stated == after.cost
                known += bool(after.cost)
            else:
                assert stated <= after.cost
    assert known > 10
