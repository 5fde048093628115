"""From flat to flat, cash is closed PnL less fees and funding, exactly and for all accounts."""

from collections import defaultdict
from decimal import Decimal

from tests.simulation.test_dexes import is_perp, ledger_flows
from toolkit.contract.dexes import coin_dex
from toolkit.simulation.markets import COLLATERAL, PERPS

STEP = {perp.coin: Decimal(1).scaleb(-perp.px_decimals) for perp in PERPS}


def test_cash_equals_row_sums(each_world):
    """Cash by account and collateral = flows + closed PnL - fees + funding, over all of history.

    Cash is the account value without the unrealised PnL of open positions.
    """
    cash: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    earned: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for dex, states in each_world.sources.states.items():
        for user, state in states.items():
            gains = [Decimal(row.position.unrealized_pnl) for row in state.asset_positions]
            value = Decimal(state.margin_summary.account_value)
            cash[user, COLLATERAL[dex]] += value - sum(gains, Decimal(0))
    for user, update in each_world.sources.ledger:
        for dex, amount in ledger_flows(user, update.delta):
            if dex in COLLATERAL:
                cash[user, COLLATERAL[dex]] -= amount
    for user, fill in each_world.sources.fills:
        if is_perp(fill):
            earned[user, fill.fee_token] += Decimal(fill.closed_pnl) - Decimal(fill.fee)
    for row in each_world.sources.funding:
        earned[row.user, COLLATERAL[coin_dex(row.delta.coin)]] += Decimal(row.delta.usdc)
    assert {key: value for key, value in cash.items() if value} == {
        key: value for key, value in earned.items() if value
    }
    assert {token for _, token in earned} == {"USDC", "USDH"}


def test_round_trip_cash_equals_pnl(each_world):
    """It holds for every trip from flat to flat, up to one price step in each entry price."""
    spent: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    slack: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    trips = 0
    for user, fill in each_world.sources.fills:
        if not is_perp(fill):
            continue
        key, sign = (user, fill.coin), 1 if fill.side == "B" else -1
        spent[key] += sign * Decimal(fill.px) * Decimal(fill.sz) + Decimal(fill.closed_pnl)
        slack[key] += Decimal(fill.sz) * STEP[fill.coin]
        if not Decimal(fill.start_position) + sign * Decimal(fill.sz):
            assert abs(spent.pop(key)) <= slack.pop(key)
            trips += 1
    assert trips > 100
