"""States of accounts: clearinghouse states, spot balances, and loans, exact to the last digit."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET

from toolkit.contract.records import (
    AssetPosition,
    BorrowLend,
    ClearinghouseState,
    CumFunding,
    LendInterest,
    LendPosition,
    Leverage,
    MarginSummary,
    Position,
    SpotBalance,
    SpotState,
    TokenState,
)
from toolkit.rules.margin import exact_maintenance
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import UNIFIED, Account, FundingTotals
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.engine.margin import (
    account_leverage,
    initial_margin,
    is_isolated,
    liquidation_px,
)
from toolkit.simulation.markets import (
    COLLATERAL,
    DEXES,
    NATIVE_TOKEN,
    PAIRS,
    PERPS,
    TOKENS,
    Perp,
)
from toolkit.simulation.quantities import (
    MICRO,
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


def clearinghouse_states(exchange: Exchange) -> dict[str, dict[str, ClearinghouseState]]:
    """Return the perp states of all accounts at the end of history, by dex."""
    return {
        dex: {
            account.address: _perp_state(exchange, account, number) for account in exchange.accounts
        }
        for number, dex in enumerate(DEXES)
    }


def spot_states(exchange: Exchange) -> dict[str, SpotState]:
    """Return each account's tokens at the end of history, and their cost.

    It contains every account, but no token with an empty balance. The balances of a unified or
    portfolio-margin account contain the collateral of its perps.
    """
    states = {}
    for account in exchange.accounts:
        amounts = {
            token: balance.balance for token, balance in exchange.wallets[account.number].items()
        }
        for dex, name in enumerate(DEXES):
            cash = exchange.balances[account.number][dex] - _perp_cash(exchange, account, dex)
            token = COLLATERAL[name]
            amounts[token] = amounts.get(token, 0) + cash * WEI_PER_MICRO
        states[account.address] = SpotState(
            balances=[
                _spot_balance(exchange, account.number, token, amount)
                for token, amount in amounts.items()
                if amount
            ]
        )
    return states


def borrow_lend_states(accounts: list[Account]) -> dict[str, BorrowLend]:
    """Return the loans of accounts with native tokens; one has paid everything back."""
    # ASSUMED: A health factor is the supplied value divided by the borrowed value.
    users = [account for account in accounts if account.uses_native]
    states = {account.address: _loan_state(place) for place, account in enumerate(users)}
    if users:
        repaid = BorrowLend(token_to_state=[], health="healthy", health_factor=None)
        states[users[-1].address] = repaid
    return states


def lend_interest(states: Mapping[str, BorrowLend], now_ms: int) -> dict[str, list[LendInterest]]:
    """Return the interest in the states of accounts, as it came in the last hours."""
    names = {index: name for name, index in TOKENS.items()}
    rows: dict[str, list[LendInterest]] = {}
    for user, state in states.items():
        parts = {
            names[index]: (_interest_parts(token.borrow), _interest_parts(token.supply))
            for index, token in state.token_to_state
        }
        rows[user] = [
            LendInterest(
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


def _interest_parts(position: LendPosition) -> list[int]:
    """Return the interest of each of the last hours, newest first; the sum is exact."""
    interest = parse_units(position.value, WEI) - parse_units(position.basis, WEI)
    whole = _INTEREST_HOURS**2
    older = [interest * hour // whole for hour in range(1, _INTEREST_HOURS)]
    return [interest - sum(older), *older]


@dataclass(frozen=True, slots=True)
class _MarkedPosition:
    """A position at the mark price, in integers; `margin` of an isolated one is its equity."""

    perp: Perp
    size: int
    entry: int
    mark: int
    leverage: int
    is_isolated: bool
    margin: int
    funding: FundingTotals

    @property
    def value(self) -> int:
        """Signed position value."""
        return self.size * self.mark

    @property
    def pnl(self) -> int:
        """Unrealised PnL."""
        return self.size * (self.mark - self.entry)

    @property
    def maintenance(self) -> int:
        """Maintenance margin."""
        return exact_maintenance(abs(self.value), self.perp.tiers)


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


def _perp_state(exchange: Exchange, account: Account, dex: int) -> ClearinghouseState:
    positions = [
        _mark_position(exchange, account, *position)
        for position in exchange.iterate_positions(account.number, dex)
    ]
    cross = [position for position in positions if not position.is_isolated]
    isolated = [position for position in positions if position.is_isolated]
    equity = _perp_cash(exchange, account, dex) + sum(position.pnl for position in positions)
    cross_equity = equity - sum(position.margin for position in isolated)
    maintenance = sum(position.maintenance for position in cross)
    cross_summary = _margin_summary(cross, cross_equity)
    free = max(0, exchange.free_collateral(account.number, dex, exchange.end_ms))
    # ASSUMED: A cross position of a unified or portfolio-margin account has no liquidation price.
    cushion = None if account.mode >= UNIFIED else cross_equity - maintenance
    return ClearinghouseState(
        margin_summary=_margin_summary(positions, equity),
        cross_margin_summary=cross_summary,
        asset_positions=[
            AssetPosition(type="oneWay", position=_position_record(position, cushion, free))
            for position in positions
        ],
        time=exchange.end_ms,
        withdrawable=cross_summary.withdrawable,
        cross_maintenance_margin_used=money_text(maintenance),
    )


def _mark_position(
    exchange: Exchange, account: Account, coin: int, size: int, entry: int
) -> _MarkedPosition:
    mark = exchange.mark_price(coin, exchange.end_ms)
    leverage = account_leverage(account, coin)
    margin = initial_margin(account, coin, abs(size) * mark)
    if isolated := is_isolated(account, coin):
        margin = exchange.margins[coin][account.number] + size * (mark - entry)
    funding = exchange.funding_totals[coin][account.number]
    return _MarkedPosition(PERPS[coin], size, entry, mark, leverage, isolated, margin, funding)


def _margin_summary(positions: list[_MarkedPosition], equity: int) -> MarginSummary:
    margin = sum(position.margin for position in positions)
    values = [position.value for position in positions]
    # ASSUMED: The field `totalRawUsd` is exactly the account value minus the signed notionals. It
    # includes the remainders of truncated entry prices.
    return MarginSummary(
        account_value=decimal_text(equity, MICRO),
        total_margin_used=decimal_text(margin, MICRO),
        total_ntl_pos=decimal_text(sum(abs(value) for value in values), MICRO),
        total_raw_usd=decimal_text(equity - sum(values), MICRO),
        withdrawable=decimal_text(max(0, equity - margin), MICRO),
    )


def _position_record(position: _MarkedPosition, cushion: int | None, free: int) -> Position:
    """Return the record of a position.

    - ``position``: the position
    - ``cushion``: cross equity of the account less its maintenance margin; None if the state does
      not have the collateral
    - ``free``: free collateral of the account
    """
    perp, is_isolated = position.perp, position.is_isolated
    px = None
    if is_isolated:
        px = liquidation_px(position.mark, position.size, position.margin, perp)
    elif cushion is not None:
        px = liquidation_px(position.mark, position.size, cushion + position.maintenance, perp)
    largest = decimal_text(free * position.leverage // position.mark, perp.sz_decimals)
    has_margin = position.margin > 0
    roe = rounded_share(position.pnl, 10**8, position.margin) if has_margin else 0
    funding = position.funding
    # ASSUMED: In cumulative funding, paid amounts are positive and received amounts are negative.
    return Position(
        coin=perp.coin,
        entry_px=decimal_text(position.entry, perp.px_decimals),
        leverage=Leverage(
            type="isolated" if is_isolated else "cross",
            value=position.leverage,
            raw_usd=money_text(position.margin - position.value) if is_isolated else UNSET,
        ),
        liquidation_px=None if px is None else decimal_text(px, perp.px_decimals),
        margin_used=decimal_text(position.margin, MICRO),
        max_trade_szs=[largest, largest],
        position_value=decimal_text(abs(position.value), MICRO),
        return_on_equity=decimal_text(roe, 8),
        szi=decimal_text(position.size, perp.sz_decimals),
        unrealized_pnl=decimal_text(position.pnl, MICRO),
        max_leverage=perp.max_leverage,
        cum_funding=CumFunding(
            all_time=money_text(-funding.all_time),
            since_open=money_text(-funding.since_open),
            since_change=money_text(-funding.since_change),
        ),
    )


def _spot_balance(exchange: Exchange, account: int, token: str, amount: int) -> SpotBalance:
    pair = _PAIRS_BY_BASE.get(token)
    cost = 0
    if pair is not None:
        unit = pair.unit
        cost = exchange.wallets[account][token].current_basis(unit).cost // unit
    is_outcome = token.startswith("+")
    # ASSUMED: The cost of stablecoins, and of tokens that came in without a trade, is 0.
    return SpotBalance(
        coin=token,
        token=_OUTCOME_TOKENS + int(token[1:]) if is_outcome else TOKENS[token],
        total=decimal_text(amount, WEI),
        hold="0.0",  # no spot order rests at the end of history
        entry_ntl=decimal_text(cost, WEI),
    )


def _loan_state(place: int) -> BorrowLend:
    health, hundredths = _HEALTH[place % len(_HEALTH)]
    supplied = (1_000 + 37 * place) * ONE_TOKEN
    borrowed = supplied * 100 // hundredths
    usdc = TokenState(borrow=_loan_position(0, 0), supply=_loan_position(supplied, place))
    native = TokenState(borrow=_loan_position(borrowed // 45, place), supply=_loan_position(0, 0))
    return BorrowLend(
        token_to_state=[(0, usdc), (TOKENS[NATIVE_TOKEN], native)],
        health=health,
        health_factor=decimal_text(hundredths, 2),
    )


def _loan_position(value: int, place: int) -> LendPosition:
    """Return a position whose value contains some interest."""
    basis = value - value * (place % 9) // 1_000
    return LendPosition(basis=decimal_text(basis, WEI), value=decimal_text(value, WEI))
