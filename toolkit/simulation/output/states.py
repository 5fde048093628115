"""States of accounts: clearinghouse states, spot balances, and loans, exact to the last digit."""

from collections import defaultdict
from fractions import Fraction
from itertools import cycle
from math import floor
from typing import Any

from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.rules.margin import exact_liquidation_price, exact_maintenance
from toolkit.rules.spot_cost import WEI
from toolkit.simulation import exact
from toolkit.simulation.engine.accounts import UNIFIED, Account
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.markets import COLLATERAL, DEXES, NATIVE_TOKEN, PAIRS, PERPS, TOKENS
from toolkit.times import HOUR

_PAIRS_BY_BASE = {pair.base: pair for pair in PAIRS}
_OUTCOME_TOKENS = 100_000_000
"""Index of the outcome token +0; the token +<number> has the sum of this and the number."""

_INTEREST_HOURS = 24
_FREE_PLACES = 9
"""Every so many accounts, one pays and gets no interest."""

_LARGEST_RATIO = 1_000
"""A liquidation price above so many times the mark price counts as none."""

_HEALTH = {"healthy": 250, "atRisk": 108, "marketLiquidatable": 97, "backstopLiquidatable": 62}
"""State of health -> a health factor in hundredths."""


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the perp states by dex, the tokens, the loans and the interest of all accounts."""
    return {
        "states": {
            dex: {
                account.address: _perp_state(exchange, account, number)
                for account in exchange.accounts
            }
            for number, dex in enumerate(DEXES)
        },
        "spot_states": _spot_states(exchange),
        **_loans(exchange),
    }


def _spot_states(exchange: Exchange) -> dict[str, r.SpotState]:
    """Return each account's tokens at the end of history, and their cost.

    It contains every account, but no token with an empty balance. The balances of a unified or
    portfolio-margin account contain the collateral of its perps.
    """
    states = {}
    for account in exchange.accounts:
        wallet = exchange.wallets[account.number]
        amounts = defaultdict(int, {token: held.balance for token, held in wallet.items()})
        for dex, name in enumerate(DEXES):
            cash = exchange.balances[account.number][dex] - _perp_cash(exchange, account, dex)
            amounts[COLLATERAL[name]] += cash * exact.WEI_PER_MICRO
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
                total=exact.decimal_text(amount, WEI),
                hold="0.0",  # no spot order rests at the end of history
                entry_ntl=exact.decimal_text(cost, WEI),
            )
            balances.append(balance)
        states[account.address] = r.SpotState(balances=balances)
    return states


def _loans(exchange: Exchange) -> dict[str, Any]:
    """Return the loans of accounts with native tokens, and their interest of the last hours.

    Each account supplies dollars and borrows native tokens; the last one has paid all back.
    """
    # ASSUMED: A health factor is the supplied value divided by the borrowed value.
    users = [account.address for account in exchange.accounts if account.uses_native]
    loans, rows = {}, {}
    none = r.LendPosition(basis="0.0", value="0.0")
    for place, (user, (health, hundredths)) in enumerate(zip(users, cycle(_HEALTH.items()))):
        value = (1_000 + 37 * place) * exact.ONE_TOKEN
        supply, supply_interest = _loan_position(value, place)
        borrow, borrow_interest = _loan_position(value * 100 // hundredths // 45, place)
        loans[user] = r.BorrowLend(
            token_to_state=[
                (0, r.TokenState(borrow=none, supply=supply)),
                (TOKENS[NATIVE_TOKEN], r.TokenState(borrow=borrow, supply=none)),
            ],
            health=health,
            health_factor=exact.decimal_text(hundredths, 2),
        )
        rows[user] = [
            r.LendInterest(
                time=exchange.end_ms - hour * HOUR,
                token=token,
                borrow=borrow_interest[hour] if token == NATIVE_TOKEN else "0.0",
                supply=supply_interest[hour] if token == "USDC" else "0.0",
            )
            for hour in reversed(range(_INTEREST_HOURS))
            for token in (NATIVE_TOKEN, "USDC")
            if place % _FREE_PLACES
        ]
    for user in users[-1:]:
        loans[user] = r.BorrowLend(token_to_state=[], health="healthy", health_factor=None)
        rows[user] = []
    return {"borrow_lend": loans, "lend_interest": rows}


def _loan_position(value: int, place: int) -> tuple[r.LendPosition, list[str]]:
    """Return a position, and the interest in its value by hour, newest first; the sum is exact."""
    interest = value * (place % _FREE_PLACES) // 1_000
    older = [interest * hour // _INTEREST_HOURS**2 for hour in range(1, _INTEREST_HOURS)]
    hours = [exact.decimal_text(part, WEI) for part in (interest - sum(older), *older)]
    basis = exact.decimal_text(value - interest, WEI)
    return r.LendPosition(basis=basis, value=exact.decimal_text(value, WEI)), hours


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
    number, end_ms = account.number, exchange.end_ms
    equity, isolated_equity, required = _perp_cash(exchange, account, dex), 0, 0
    free = max(0, exchange.free_collateral(number, dex, end_ms))
    positions, summed, cross = [], [], []
    for coin, size, entry in exchange.iterate_positions(number, dex):
        perp, mark = PERPS[coin], exchange.mark_price(coin, end_ms)
        leverage = account.perp_leverage(coin)
        value, pnl = size * mark, size * (mark - entry)
        equity += pnl
        if is_isolated := account.is_isolated(coin):
            margin = own = exchange.margins[coin][number] + pnl
            isolated_equity += margin
        else:
            margin = account.initial_margin(coin, abs(value))
            own = exact_maintenance(abs(value), perp.tiers)
            required += own
            cross.append((value, margin))
        summed.append((value, margin))
        largest = exact.decimal_text(free * leverage // mark, perp.sz_decimals)
        roe = exact.rounded_share(pnl, 10**8, margin) if margin > 0 else 0
        funding = exchange.funding_totals[coin][number]
        # ASSUMED: In cumulative funding, paid amounts are positive and received ones negative.
        position = r.Position(
            coin=perp.coin,
            entry_px=exact.decimal_text(entry, perp.px_decimals),
            leverage=r.Leverage(
                type="isolated" if is_isolated else "cross",
                value=leverage,
                raw_usd=exact.money_text(margin - value) if is_isolated else UNSET,
            ),
            liquidation_px=None,
            margin_used=exact.money_text(margin),
            max_trade_szs=[largest, largest],
            position_value=exact.money_text(abs(value)),
            return_on_equity=exact.decimal_text(roe, 8),
            szi=exact.decimal_text(size, perp.sz_decimals),
            unrealized_pnl=exact.money_text(pnl),
            max_leverage=perp.max_leverage,
            cum_funding=r.CumFunding(
                all_time=exact.money_text(-funding.all_time),
                since_open=exact.money_text(-funding.since_open),
                since_change=exact.money_text(-funding.since_change),
            ),
        )
        positions.append((position, perp, mark, size, own, is_isolated))
    cross_equity = equity - isolated_equity
    for position, perp, mark, size, own, is_isolated in positions:
        # ASSUMED: A cross position of a unified or portfolio-margin account has no liquidation
        # price.
        if is_isolated or account.mode < UNIFIED:
            # The maintenance margin of the position itself moves with its price.
            counted = own if is_isolated else cross_equity - required + own
            distance = exact_liquidation_price(mark, size, counted, perp.tiers) - mark
            # To the nearest unit of the price, halves away from the mark price:
            units = floor(abs(distance) + Fraction(1, 2))
            px = mark + units if distance > 0 else mark - units
            if 0 < px < _LARGEST_RATIO * mark:
                position.liquidation_px = exact.decimal_text(px, perp.px_decimals)
    cross_summary = _margin_summary(cross, cross_equity)
    return r.ClearinghouseState(
        margin_summary=_margin_summary(summed, equity),
        cross_margin_summary=cross_summary,
        asset_positions=[
            r.AssetPosition(type="oneWay", position=position) for position, *_ in positions
        ],
        time=end_ms,
        withdrawable=cross_summary.withdrawable,
        cross_maintenance_margin_used=exact.money_text(required),
    )


def _margin_summary(positions: list[tuple[int, int]], equity: int) -> r.MarginSummary:
    """Return the summary of positions, each a signed notional and its margin."""
    margin = sum(margin for _, margin in positions)
    # ASSUMED: The field `totalRawUsd` is exactly the account value minus the signed notionals. It
    # includes the remainders of truncated entry prices.
    return r.MarginSummary(
        account_value=exact.money_text(equity),
        total_margin_used=exact.money_text(margin),
        total_ntl_pos=exact.money_text(sum(abs(value) for value, _ in positions)),
        total_raw_usd=exact.money_text(equity - sum(value for value, _ in positions)),
        withdrawable=exact.money_text(max(0, equity - margin)),
    )
