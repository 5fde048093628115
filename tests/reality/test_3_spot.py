"""Section 3: closed PnL of spot sells, the token fee in the cost, gaps, cash from flat to flat."""

from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest

from tests.reality.spot_chains import MONEY, PRICE, TOKEN, Row, chains
from tests.worlds import ON_DEMO, world_of
from toolkit.contract.records import Fill
from toolkit.rules.spot_cost import FLAT

Chains = dict[tuple[str, str], list[Row]]


@pytest.fixture(
    scope="module", params=["tiny 1", "tiny 2", "tiny 7", pytest.param("demo 7", marks=ON_DEMO)]
)
def world(request):
    size, seed = request.param.split()
    return world_of(size, int(seed))


@pytest.fixture(scope="module")
def rows(world):
    return chains(world.sources.fills)


def flat_spans(chain):
    """Return the parts of a chain between flat balances, without the open rest."""
    found: list[list[Row]] = [[]]
    for row in chain:
        found[-1].append(row)
        if row.after == FLAT:
            found.append([])
    return found[:-1]


def is_plain(span):
    """Return whether only fills with cash changed the balance."""
    return not any(row.gap or not (row.cash or row.fill.px == "0.0") for row in span)


def test_example_closed_pnl_uses_average_cost(examples):
    """99.93 * (11 - 1000 / 99.93) = 99.23, to the last digit."""
    fills = [msgspec.convert(row, Fill) for row in examples["3_spot_fills"]]
    (chain,) = chains(("0x1", fill) for fill in fills).values()
    assert [row.closed for row in chain] == [0, 9923 * TOKEN * PRICE // 100]
    assert [row.closed for row in chain] == [row.stated for row in chain]


def test_example_cash_is_closed_pnl(examples):
    """-1000 + 1099.23 - 0.769461 = 98.460539 = 99.23 - 0.769461."""
    buy, sell = examples["3_spot_fills"]
    cash = sum(
        (1 if row["side"] == "A" else -1) * Decimal(row["px"]) * Decimal(row["sz"])
        for row in (buy, sell)
    )
    fees = sum(Decimal(row["fee"]) for row in (buy, sell) if row["feeToken"] == "USDC")
    assert cash - fees == Decimal("98.460539")
    assert Decimal(sell["closedPnl"]) - Decimal(sell["fee"]) == cash - fees


def test_sells_close_average_cost_exactly(rows):
    """The closed PnL is exact, also with gaps between the fills."""
    stated = 0
    for chain in rows.values():
        for row in chain:
            assert row.stated == (row.closed or 0), row.fill
            stated += bool(row.stated)
    assert stated > 100


def test_spot_pnl_uses_unrounded_cost(rows):
    """The test repeats section 3 in fractions, for chains without incoming gaps."""
    judged = 0
    for chain in rows.values():
        if any(row.after.unknown or row.fill.dir == "Negate Outcome" for row in chain):
            continue
        held, cost = Fraction(0), Fraction(0)
        for number, row in enumerate(chain, 1):
            start, change = Fraction(row.fill.start_position), Fraction(row.change, TOKEN)
            if start != held:
                held, cost = start, cost * start / held
            if change < 0:
                closed = -change * (Fraction(row.fill.px) - cost / held)
                cost -= cost * -change / held
                assert abs(Fraction(row.fill.closed_pnl) - closed) <= Fraction(number, 10**8)
                judged += 1
            else:
                cost += change * Fraction(row.fill.px)
            held += change - Fraction(row.fee, TOKEN)
    assert judged > 50


def test_closed_pnl_equals_cash_between_flats(rows):
    """It holds exactly, less the fees in USDC; the cost contains the token fees."""
    judged = 0
    for chain in rows.values():
        for span in filter(is_plain, flat_spans(chain)):
            fills = [row.fill for row in span]
            cash = sum(
                (1 if fill.side == "A" else -1) * Decimal(fill.px) * Decimal(fill.sz)
                for fill in fills
            )
            assert cash == sum(Decimal(fill.closed_pnl) for fill in fills)
            judged += 1
    assert judged > 5


def test_some_flat_spans_have_token_fees():
    """Small worlds together have some flat spans on spot pairs, with fees in tokens."""
    worlds = [chains(world_of("tiny", seed).sources.fills) for seed in (1, 2, 7)]
    found = [
        row.fee
        for result in worlds
        for (_, coin), chain in result.items()
        for span in filter(is_plain, flat_spans(chain))
        for row in span
        if not coin.startswith("#")
    ]
    assert sum(found) > 0


def test_cash_equals_pnl_less_cost_moves(world, rows):
    """For every account and coin: cash = closed PnL - disposed cost + moved cost.

    Buys add cost, and sells, gaps and swaps remove it; the rest is the cost basis. Tokens of
    unknown cost count at the average, so they increase what leaves.
    """
    disposed = moved = 0
    for chain in rows.values():
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


def test_cost_includes_token_fee(rows):
    """A buy of a spot pair pays its fee in the token; sells and outcomes pay in USDC."""
    for (_, coin), chain in rows.items():
        for row in chain:
            in_token = row.change > 0 and not coin.startswith("#")
            assert (row.fill.fee_token != "USDC") == in_token
            assert row.after.size == row.start + row.change - row.fee


def test_gaps_keep_remaining_cost(rows):
    """Gas, staking and transfers change the balance; the rest keeps its basis."""
    gaps = [row for chain in rows.values() for row in chain if row.gap]
    out = [row for row in gaps if row.gap < 0 and row.disposed]
    assert out
    assert all(row.before.cost > 0 for row in out if row.before.size > row.before.unknown)
    assert any(row.gap > 0 and row.before.unknown for row in gaps)
    assert all(row.before.size == row.start for row in gaps)


def test_entry_notional_of_balance_is_cost_basis(world, rows):
    """`entryNtl` is the exact cost basis after the last fill and later gaps."""
    bases = {"PURR/USDC": "PURR", "@107": "HYPE", "@142": "UBTC"}
    costs: dict[tuple[str, str], int] = {}
    for (user, coin), chain in rows.items():
        costs[user, bases.get(coin, "+" + coin[1:])] = chain[-1].after.cost
    truths = {**world.expected, **world.expected_mixed}
    known = 0
    for user, state in world.sources.spot_states.items():
        totals = {balance.coin: Decimal(balance.total) for balance in state.balances}
        balances = {token: row.balance for token, row in truths[user].tokens.items()}
        assert totals == {token: balance for token, balance in balances.items() if balance}
        for balance in state.balances:
            chain = rows.get((user, next((c for c, b in bases.items() if b == balance.coin), "")))
            cost = costs.get((user, balance.coin), 0)
            if chain is None or chain[-1].after.size == Decimal(balance.total) * TOKEN:
                assert Decimal(balance.entry_ntl) * TOKEN * PRICE == cost
                known += bool(cost)
            else:
                assert Decimal(balance.entry_ntl) * TOKEN * PRICE <= cost
    assert known > 10
    assert MONEY * TOKEN == TOKEN * PRICE
