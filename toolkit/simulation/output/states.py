"""States of accounts: clearinghouse states, spot balances, and loans, exact to the last digit."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.rules.margin import exact_maintenance
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine import margin as margins
from toolkit.simulation.engine.accounts import UNIFIED, Account
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.markets import COLLATERAL, DEXES, NATIVE_TOKEN, PAIRS, PERPS, TOKENS
from toolkit.simulation.quantities import (
    ONE_TOKEN,
    WEI_PER_MICRO,
    decimal_text,
    money_text,
    parse_units,
    rounded_share,
)
from toolkit.times import HOUR

_PAIRS_BY_BASE = {pair.base: pair for pair in PAIRS}
_OUTCOME_TOKENS = 100_000_000
"""Index of the outcome token +0; the token +<number> has the sum of this and the number."""

_INTEREST_HOURS = 24

_HEALTH = (
    ("healthy", 250),
    ("atRisk", 108),
    ("marketLiquidatable", 97),
    ("backstopLiquidatable", 62),
)
"""States of health, each with a health factor in hundredths."""


def clearinghouse_states(exchange: Exchange) -> dict[str, dict[str, r.ClearinghouseState]]:
    """Return the perp states of all accounts at the end of history, by dex."""
    return {
        dex: {
            account.address: _perp_state(exchange, account, number) for account in exchange.accounts
        }
        for number, dex in enumerate(DEXES)
    }


def spot_states(exchange: Exchange) -> dict[str, r.SpotState]:
    """Return each account's tokens at the end of history, and their cost.

    It contains every account, but no token with an empty balance. The balances of a unified or
    portfolio-margin account contain the collateral of its perps.
    """
    states = {}
    for account in exchange.accounts:
        wallet = exchange.wallets[account.number]
        amounts = {token: balance.balance for token, balance in wallet.items()}
        for dex, name in enumerate(DEXES):
            cash = exchange.balances[account.number][dex] - _perp_cash(exchange, account, dex)
            token = COLLATERAL[name]
            amounts[token] = amounts.get(token, 0) + cash * WEI_PER_MICRO
        balances = []
        for token, amount in amounts.items():
            if not amount:
                continue
            pair = _PAIRS_BY_BASE.get(token)
            cost = wallet[token].current_basis(pair.unit).cost // pair.unit if pair else 0
            is_outcome = token.startswith("+")
            # ASSUMED: The cost of stablecoins, and of tokens that came in without a trade, is 0.
            balance = r.SpotBalance(
                coin=token,
                token=_OUTCOME_TOKENS + int(token[1:]) if is_outcome else TOKENS[token],
                total=decimal_text(amount, WEI),
                hold="0.0",  # no spot order rests at the end of history
                entry_ntl=decimal_text(cost, WEI),
            )
            balances.append(balance)
        states[account.address] = r.SpotState(balances=balances)
    return states


def borrow_lend_states(accounts: list[Account]) -> dict[str, r.BorrowLend]:
    """Return the loans of accounts with native tokens; one has paid everything back."""
    # ASSUMED: A health factor is the supplied value divided by the borrowed value.
    users = [account.address for account in accounts if account.uses_native]
    states = {}
    for place, user in enumerate(users):
        health, hundredths = _HEALTH[place % len(_HEALTH)]
        supplied = (1_000 + 37 * place) * ONE_TOKEN
        borrowed = supplied * 100 // hundredths // 45
        none, supply, borrow = (_loan_position(value, place) for value in (0, supplied, borrowed))
        states[user] = r.BorrowLend(
            token_to_state=[
                (0, r.TokenState(borrow=none, supply=supply)),
                (TOKENS[NATIVE_TOKEN], r.TokenState(borrow=borrow, supply=none)),
            ],
            health=health,
            health_factor=decimal_text(hundredths, 2),
        )
    for user in users[-1:]:
        states[user] = r.BorrowLend(token_to_state=[], health="healthy", health_factor=None)
    return states


def lend_interest(
    states: Mapping[str, r.BorrowLend], now_ms: int
) -> dict[str, list[r.LendInterest]]:
    """Return the interest in the states of accounts, as it came in the last hours."""
    names = {index: name for name, index in TOKENS.items()}
    rows: dict[str, list[r.LendInterest]] = {}
    for user, state in states.items():
        parts = {
            names[index]: (_interest_parts(token.borrow), _interest_parts(token.supply))
            for index, token in state.token_to_state
        }
        rows[user] = [
            r.LendInterest(
                time=now_ms - hour * HOUR,
                token=token,
                borrow=decimal_text(borrow[hour], WEI),
                supply=decimal_text(supply[hour], WEI),
            )
            for hour in reversed(range(_INTEREST_HOURS))
            for token, (borrow, supply) in sorted(parts.items())
            if any(borrow + supply)
        ]
    return rows


def _interest_parts(position: r.LendPosition) -> list[int]:
    """Return the interest of each of the last hours, newest first; the sum is exact."""
    interest = parse_units(position.value, WEI) - parse_units(position.basis, WEI)
    whole = _INTEREST_HOURS**2
    older = [interest * hour // whole for hour in range(1, _INTEREST_HOURS)]
    return [interest - sum(older), *older]


class _MarkedPosition(NamedTuple):
    """A position at the mark price, in integers; `margin` of an isolated one is its equity."""

    coin: int
    size: int
    entry: int
    mark: int
    value: int
    pnl: int
    maintenance: int
    margin: int
    is_isolated: bool


def _perp_cash(exchange: Exchange, account: Account, dex: int) -> int:
    """Return the cash that a state of an account on a dex contains, in micro-dollars."""
    # ASSUMED: The account value in a state of a unified or portfolio-margin account is its
    # unrealised PnL and the margin of its isolated positions. Its other cash is in its spot wallet.
    if account.mode < UNIFIED:
        return exchange.balances[account.number][dex]
    return sum(
        margins.get(account.number, 0)
        for coin, margins in enumerate(exchange.margins)
        if DEX_INDEX[coin] == dex
    )


def _perp_state(exchange: Exchange, account: Account, dex: int) -> r.ClearinghouseState:
    positions = []
    for coin, size, entry in exchange.iterate_positions(account.number, dex):
        mark = exchange.mark_price(coin, exchange.end_ms)
        value, pnl = size * mark, size * (mark - entry)
        maintenance = exact_maintenance(abs(value), PERPS[coin].tiers)
        margin = margins.initial_margin(account, coin, abs(value))
        if isolated := margins.is_isolated(account, coin):
            margin = exchange.margins[coin][account.number] + pnl
        positions.append(
            _MarkedPosition(coin, size, entry, mark, value, pnl, maintenance, margin, isolated)
        )
    cross = [position for position in positions if not position.is_isolated]
    equity = _perp_cash(exchange, account, dex) + sum(position.pnl for position in positions)
    cross_equity = equity - sum(position.margin for position in positions if position.is_isolated)
    maintenance = sum(position.maintenance for position in cross)
    cross_summary = _margin_summary(cross, cross_equity)
    free = max(0, exchange.free_collateral(account.number, dex, exchange.end_ms))
    # ASSUMED: A cross position of a unified or portfolio-margin account has no liquidation price.
    cushion = None if account.mode >= UNIFIED else cross_equity - maintenance
    return r.ClearinghouseState(
        margin_summary=_margin_summary(positions, equity),
        cross_margin_summary=cross_summary,
        asset_positions=[
            r.AssetPosition(
                type="oneWay", position=_position_record(exchange, account, position, cushion, free)
            )
            for position in positions
        ],
        time=exchange.end_ms,
        withdrawable=cross_summary.withdrawable,
        cross_maintenance_margin_used=money_text(maintenance),
    )


def _margin_summary(positions: list[_MarkedPosition], equity: int) -> r.MarginSummary:
    margin = sum(position.margin for position in positions)
    values = [position.value for position in positions]
    # ASSUMED: The field `totalRawUsd` is exactly the account value minus the signed notionals. It
    # includes the remainders of truncated entry prices.
    return r.MarginSummary(
        account_value=money_text(equity),
        total_margin_used=money_text(margin),
        total_ntl_pos=money_text(sum(map(abs, values))),
        total_raw_usd=money_text(equity - sum(values)),
        withdrawable=money_text(max(0, equity - margin)),
    )


def _position_record(
    exchange: Exchange, account: Account, position: _MarkedPosition, cushion: int | None, free: int
) -> r.Position:
    """Return the record of a position.

    - ``cushion``: cross equity of the account less its maintenance margin; None if the state does
      not have the collateral
    - ``free``: free collateral of the account
    """
    coin, size, entry, mark, value, pnl, maintenance, margin, is_isolated = position
    perp, leverage = PERPS[coin], margins.account_leverage(account, coin)
    px = None
    if is_isolated:
        px = margins.liquidation_px(mark, size, margin, perp)
    elif cushion is not None:
        px = margins.liquidation_px(mark, size, cushion + maintenance, perp)
    largest = decimal_text(free * leverage // mark, perp.sz_decimals)
    roe = rounded_share(pnl, 10**8, margin) if margin > 0 else 0
    funding = exchange.funding_totals[coin][account.number]
    # ASSUMED: In cumulative funding, paid amounts are positive and received amounts are negative.
    return r.Position(
        coin=perp.coin,
        entry_px=decimal_text(entry, perp.px_decimals),
        leverage=r.Leverage(
            type="isolated" if is_isolated else "cross",
            value=leverage,
            raw_usd=money_text(margin - value) if is_isolated else UNSET,
        ),
        liquidation_px=None if px is None else decimal_text(px, perp.px_decimals),
        margin_used=money_text(margin),
        max_trade_szs=[largest, largest],
        position_value=money_text(abs(value)),
        return_on_equity=decimal_text(roe, 8),
        szi=decimal_text(size, perp.sz_decimals),
        unrealized_pnl=money_text(pnl),
        max_leverage=perp.max_leverage,
        cum_funding=r.CumFunding(
            all_time=money_text(-funding.all_time),
            since_open=money_text(-funding.since_open),
            since_change=money_text(-funding.since_change),
        ),
    )


def _loan_position(value: int, place: int) -> r.LendPosition:
    """Return a position whose value contains some interest."""
    basis = value - value * (place % 9) // 1_000
    return r.LendPosition(basis=decimal_text(basis, WEI), value=decimal_text(value, WEI))
