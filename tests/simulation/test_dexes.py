"""Account values by dex equal the sums of the tables, for every account and mode.

Perps pay their fees from a balance on each dex, in its collateral. The state of a standard account
shows this balance. That of a unified or portfolio-margin account shows only unrealised PnL and the
margin of isolated positions: the balance is in the spot wallet. Its value in the snapshots is the
sum of balance, unrealised PnL and, on the native dex, the other USDC of the wallet; of a
portfolio-margin account that of all dexes with the token.
"""

from collections import defaultdict
from decimal import Decimal

import pytest

from toolkit.contract.dexes import coin_dex
from toolkit.simulation.markets import COLLATERAL, DEXES

Sums = dict[tuple[str, str], Decimal]
NATIVE = {"deposit", "withdraw", "accountClassTransfer", "internalTransfer", "subAccountTransfer"}
WALLET_ONLY = {
    "spotTransfer", "spotGenesis", "rewardsClaim", "deployGasAuction", "accountActivationGas",
    "cStakingTransfer", "borrowLend", "borrowLendBackstopLiquidation", "liquidation",
}  # fmt: skip


def number(value):
    return Decimal(value) if isinstance(value, str) else Decimal(0)


def native_flow(user, delta):
    """Return what an update adds to the native dex."""
    usdc, fee = number(delta.usdc), number(delta.fee)
    if delta.type == "accountClassTransfer":
        return usdc if delta.to_perp else -usdc
    if delta.type == "deposit" or delta.destination == user:
        return usdc
    return -usdc - fee


def vault_flow(user, delta):
    """Return what a vault update adds to the vault, a follower, or the leader."""
    usdc, owns = number(delta.usdc), delta.vault == user
    if delta.type == "vaultLeaderCommission":
        return usdc
    if delta.type == "vaultWithdraw":
        net = number(delta.net_withdrawn_usd)
        return -net - number(delta.commission) if owns else net
    into = usdc if owns else -usdc - number(delta.fee)
    return -into if delta.type == "vaultDistribution" else into


def ledger_flows(user, delta):
    """Return what an update adds to each dex; `spot` is the wallet."""
    amount = number(delta.amount)
    if delta.type in NATIVE:
        yield "", native_flow(user, delta)
    elif delta.type.startswith("vault"):
        yield "", vault_flow(user, delta)
    elif delta.type == "perpDexClassTransfer":
        yield str(delta.dex), amount if delta.to_perp else -amount
    elif delta.type == "activateDexAbstraction":
        yield "", -amount
        yield str(delta.dex), amount
    elif delta.type == "send":
        if delta.user == user:
            yield str(delta.source_dex), -amount
        if delta.destination == user:
            yield str(delta.destination_dex), amount
    else:
        assert delta.type in WALLET_ONLY


def is_perp(fill):
    return not set(fill.coin) & set("/@#")


def sum_cash_by_dex(world):
    """Return flows + closed PnL + funding - fees by account and dex, only from the tables."""
    sums: Sums = defaultdict(Decimal)
    for user, update in world.sources.ledger:
        for dex, amount in ledger_flows(user, update.delta):
            sums[user, dex] += amount
    for user, fill in world.sources.fills:
        if is_perp(fill):
            assert fill.fee_token == COLLATERAL[coin_dex(fill.coin)]
            sums[user, coin_dex(fill.coin)] += Decimal(fill.closed_pnl) - Decimal(fill.fee)
    for row in world.sources.funding:
        sums[row.user, coin_dex(row.delta.coin)] += Decimal(row.delta.usdc)
    return sums


@pytest.fixture(scope="module")
def cash_by_dex(each_world):
    return sum_cash_by_dex(each_world)


def unrealised(state):
    return sum((Decimal(row.position.unrealized_pnl) for row in state.asset_positions), Decimal(0))


def account_modes(world):
    rows = world.sources.account_snapshots[-1].values["", "USDC"]
    return {row.user: row.account_mode for row in rows}


def check_dex_values(world, cash):
    """Flows + closed PnL + funding - fees are in the state or, if unified, in the spot wallet."""
    traded, modes = set(), account_modes(world)
    truths = {**world.expected, **world.expected_mixed}
    in_wallet: Sums = defaultdict(Decimal)
    for dex, states in world.sources.states.items():
        assert len(states) == len(truths)
        for user, state in states.items():
            shown = Decimal(state.margin_summary.account_value) - unrealised(state)
            held = [row.position for row in state.asset_positions]
            isolated = [row for row in held if row.leverage.type == "isolated"]
            margin = sum(Decimal(row.margin_used) for row in isolated)
            gains = sum(Decimal(row.unrealized_pnl) for row in isolated)
            assert shown == (cash[user, dex] if modes[user] < 2 else margin - gains)
            cross = {row.liquidation_px for row in held if row not in isolated}
            assert modes[user] < 2 or cross <= {None}
            in_wallet[user, COLLATERAL[dex]] += cash[user, dex] - shown
            traded |= {dex} if held else set()
    assert traded == set(DEXES)
    for user, truth in truths.items():
        expected = {token: kept.balance for token, kept in truth.tokens.items()}
        for token in set(COLLATERAL.values()):
            expected[token] = expected.get(token, Decimal(0)) + in_wallet[user, token]
        rows = world.sources.spot_states[user].balances
        found = {row.coin: Decimal(row.total) for row in rows}
        assert found == {token: amount for token, amount in expected.items() if amount}


def test_dex_value_equals_table_sums(each_world, cash_by_dex):
    check_dex_values(each_world, cash_by_dex)


def test_snapshots_include_unified_wallets(each_world, cash_by_dex):
    """The last snapshot has the time of the states: the end of history."""
    snapshot = each_world.sources.account_snapshots[-1]
    assert snapshot.time == each_world.sources.now_ms
    truths = {**each_world.expected, **each_world.expected_mixed}
    seen, totals, tokens = set(), dict[str, Decimal](), dict[tuple[str, str], Decimal]()
    for (dex, token), rows in snapshot.values.items():
        assert token == COLLATERAL[dex]
        for row in rows:
            state = each_world.sources.states[dex][row.user]
            value = cash_by_dex[row.user, dex] + unrealised(state)
            wallet = truths[row.user].tokens.get("USDC")
            if row.account_mode >= 2 and not dex and wallet is not None:
                value += wallet.balance
            totals[row.user] = totals.get(row.user, Decimal(0)) + value
            tokens[row.user, token] = tokens.get((row.user, token), Decimal(0)) + value
            assert row.account_mode == 3 or row.account_value == float(value)
            seen.add((row.account_mode, dex))
    assert seen >= {(mode, "") for mode in range(4)}
    assert {mode for mode, dex in seen if dex} >= {0, 1}
    for (_, token), rows in snapshot.values.items():
        for row in rows:
            if row.pm_total_account_value is not None:
                assert row.pm_total_account_value == float(totals[row.user])
                assert row.account_value == float(tokens[row.user, token])
