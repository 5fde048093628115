"""Tokens that move without a trade: genesis, transfers, staking, rewards, lending, gas."""

from msgspec import UNSET

from toolkit.contract.records import LedgerDelta
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.agents.spot_traders import spot_trader_numbers
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import FOLLOWED_PERPS, NATIVE_TOKEN, PERPS
from toolkit.simulation.quantities import ONE_TOKEN, decimal_text
from toolkit.times import HOUR, MINUTE


def move_tokens(
    exchange: Exchange,
    time: int,
    kind: str,
    number: int,
    token: str,
    amount: int,
    sign: int,
    other: int = -1,
    operation: str = "",
    interest: int = 0,
) -> None:
    """Move tokens, and write the update.

    - ``kind``: type of the ledger delta
    - ``number``: the owner
    - ``token``: the token; empty if the delta has only its type
    - ``amount``: the amount in the delta, in units of 1e-8
    - ``sign``: 1 if the account receives the amount and the interest, -1 if it pays them
    - ``other``: the receiver, or -1 if there is none
    - ``operation``, ``interest``: operation and interest of a `borrowLend`
    """
    tx = exchange.next_transaction(time)
    delta, change = LedgerDelta(type=kind), sign * (amount + interest)
    # ASSUMED: The ledger row of a backstop liquidation has only its type.
    if token:
        exchange.wallets[number][token].ledger += change
        delta.token, delta.amount = token, decimal_text(amount, WEI)
    if other >= 0:
        exchange.wallets[other][token].ledger -= change
        delta.user = exchange.accounts[number].address
        delta.destination = exchange.accounts[other].address
        # The value in 1e-8 USD at the mark price, rounded down:
        coin = FOLLOWED_PERPS[token]
        px = exchange.mark_price(coin, time)
        delta.usdc_value = decimal_text(amount * px // 10 ** PERPS[coin].px_decimals, WEI)
        delta.fee = "0.0"
        delta.native_token_fee = "0.0"
        delta.nonce = None if other % 2 else time - 700
        delta.fee_token = ""
        delta.source_dex = delta.destination_dex = "spot" if kind == "send" else UNSET
    if kind == "cStakingTransfer":
        delta.is_deposit = change < 0
        exchange.wallets[number][token].staked -= change
    if operation:
        delta.operation = operation
        delta.interest_amount = decimal_text(interest, WEI)
    exchange.write_ledger(tx, delta, dict.fromkeys((number, other) if other >= 0 else (number,), 0))


def give_tokens(
    exchange: Exchange, time: int, number: int, other: int, token: str, percent: int
) -> None:
    """Send a share of the balance of a token to another account; an empty one sends nothing.

    People do this when they move to a new wallet.
    """
    amount = exchange.wallets[number][token].balance * percent // 100
    if amount:
        move_tokens(exchange, time, "spotTransfer", number, token, amount, -1, other)


def draw_token_gifts(exchange: Exchange) -> None:
    """Schedule gifts between spot traders: each sends one token, twice."""
    traders, tokens = spot_trader_numbers(exchange.accounts), list(FOLLOWED_PERPS)
    for place, trader in enumerate(traders):
        other, token = traders[(place + 1) % len(traders)], tokens[place % len(tokens)]
        for part in (5, 8):  # tenths of the history
            time = exchange.start_ms + exchange.hours * HOUR * part // 10 + 7 * place * MINUTE
            exchange.schedule(time, give_tokens, trader, other, token, 13 + 4 * part)


def draw_token_transfers(exchange: Exchange) -> None:
    """Schedule all token transfers.

    The spot maker receives all tokens at genesis, and other accounts receive native tokens from
    it: to stake, to lend, and to pay gas. Accounts with an odd number supply and withdraw;
    accounts with an even number borrow, and repay a part with interest.
    """
    start_ms, end_ms, bank = exchange.start_ms, exchange.end_ms, exchange.spot_maker.number
    schedule, native = exchange.schedule, NATIVE_TOKEN
    for number, token in enumerate(FOLLOWED_PERPS):
        amount = 5_000 * ONE_TOKEN if token == "UBTC" else 20_000_000 * ONE_TOKEN
        schedule(start_ms + number, move_tokens, "spotGenesis", bank, token, amount, 1)
    schedule(start_ms + HOUR, move_tokens, "spotGenesis", bank, "PURR", -5 * ONE_TOKEN, 1)
    schedule(
        start_ms + 2 * HOUR, move_tokens, "deployGasAuction", bank, native, 512 * ONE_TOKEN, -1
    )
    schedule(end_ms - HOUR, move_tokens, "borrowLendBackstopLiquidation", bank, "", 0, 1)
    schedule(start_ms + 3 * HOUR, move_tokens, "accountActivationGas", bank, "USDC", ONE_TOKEN, -1)
    for account in exchange.accounts:
        if not account.uses_native:
            continue
        number = account.number
        amount = (100 + account.funds // 10**8) * ONE_TOKEN
        time = start_ms + 35 * MINUTE + number * 1_021
        later = time + (end_ms - time) * 3 // 5
        kind = "spotTransfer" if number % 3 else "send"
        schedule(time, move_tokens, kind, bank, native, amount, -1, number)
        staked = amount // 2
        schedule(time + 10 * MINUTE, move_tokens, "cStakingTransfer", number, native, staked, -1)
        schedule(later, move_tokens, "cStakingTransfer", number, native, staked // 5, 1)
        schedule(later + HOUR, move_tokens, "rewardsClaim", number, native, staked // 4_000 + 1, 1)
        loan, sign = amount // 8, -1 if number % 2 else 1
        first, last = ("supply", "withdraw") if number % 2 else ("borrow", "repay")
        part, interest = loan // 3, loan // 3_000
        lend = number, native, loan, sign, -1, first
        back = number, native, part, -sign, -1, last, interest
        schedule(time + 20 * MINUTE, move_tokens, "borrowLend", *lend)
        schedule(later, move_tokens, "borrowLend", *back)
