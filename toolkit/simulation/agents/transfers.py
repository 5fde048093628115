"""Transfers of dollars: deposits, withdrawals, and moves between accounts, dexes and wallets.

All amounts are positive micro-dollars.
"""

from toolkit.contract.records import LedgerDelta
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import COLLATERAL, DEXES
from toolkit.simulation.quantities import WEI_PER_MICRO, money_text
from toolkit.simulation.random_draws import party_address, random_stream
from toolkit.times import DAY, MINUTE

_FEE = 1_000_000
"""The fee of a withdrawal, and of a transfer to another account."""


def deposit(exchange: Exchange, time: int, number: int, usdc: int) -> None:
    """Add dollars from outside to an account."""
    exchange.add_dollars(number, usdc)
    delta = LedgerDelta(type="deposit", usdc=money_text(usdc))
    exchange.write_ledger(exchange.next_transaction(time), delta, number)


def withdraw(exchange: Exchange, time: int, number: int, usdc: int) -> None:
    """Pay dollars out to an account's owner."""
    # ASSUMED: The field `usdc` of a withdrawal is the amount that arrives. It does not include the
    # fee.
    exchange.add_dollars(number, -usdc - _FEE)
    delta = LedgerDelta(
        type="withdraw", usdc=money_text(usdc), nonce=time - 900, fee=money_text(_FEE)
    )
    exchange.write_ledger(exchange.next_transaction(time), delta, number)


def change_class(exchange: Exchange, time: int, number: int, usdc: int, dex: str) -> None:
    """Move an account's dollars from its native perps to spot, or from spot to another dex."""
    moved, text = usdc if dex else -usdc, money_text(usdc)
    exchange.add_dollars(number, moved, DEXES.index(dex))
    exchange.wallets[number]["USDC"].ledger -= moved * WEI_PER_MICRO
    delta = LedgerDelta(type="accountClassTransfer", usdc=text, to_perp=False)
    if dex:
        kind = "perpDexClassTransfer"
        delta = LedgerDelta(type=kind, token="USDC", amount=text, dex=dex, to_perp=True)
    exchange.write_ledger(exchange.next_transaction(time), delta, number)


def pay_account(
    exchange: Exchange, time: int, number: int, usdc: int, other: int, is_internal: bool
) -> None:
    """Move dollars to another account: an internal transfer for a fee, or to a sub-account."""
    exchange.add_dollars(number, -usdc)
    exchange.add_dollars(other, usdc)
    delta = LedgerDelta(
        type="internalTransfer" if is_internal else "subAccountTransfer",
        usdc=money_text(usdc),
        user=exchange.accounts[number].address,
        destination=exchange.accounts[other].address,
    )
    if is_internal:
        exchange.add_dollars(number, -_FEE)
        delta.fee = money_text(_FEE)
    exchange.write_ledger(exchange.next_transaction(time), delta, number, other)


def fund_dex(exchange: Exchange, time: int, number: int, usdc: int, dex: str) -> None:
    """Move an account's dollars from its native perps to another dex.

    A dex with another collateral gets it from the issuer, who is outside the world.
    """
    account, place, text = exchange.accounts[number], DEXES.index(dex), money_text(usdc)
    token, sender, source_dex = COLLATERAL[dex], account.address, ""
    if token == "USDC":
        exchange.balances[number][0] -= usdc
        exchange.balances[number][place] += usdc
    else:
        exchange.add_dollars(number, usdc, place)
        sender, source_dex = party_address(exchange.seed, "issuer"), "spot"
    if token == "USDC" and account.mode == 1:
        delta = LedgerDelta(type="activateDexAbstraction", dex=dex, token=token, amount=text)
    else:
        delta = LedgerDelta(
            type="send",
            user=sender,
            destination=account.address,
            source_dex=source_dex,
            destination_dex=dex,
            token=token,
            amount=text,
            usdc_value=text,
            fee="0.0",
            native_token_fee="0.0",
            nonce=time - 800,
            fee_token="",
        )
    exchange.write_ledger(exchange.next_transaction(time), delta, number)


def draw_dollar_transfers(exchange: Exchange) -> None:
    """Draw all transfers: first deposits in the first hour, the others later.

    The first ones fund an account, its dexes and its spot wallet; the main account funds a
    sub-account. Later ones are at most some percent of the funds, so that no account runs dry.
    Accounts with a story receive nothing then, because money could change how the story ends.
    """
    accounts, start_ms, schedule = exchange.accounts, exchange.start_ms, exchange.schedule
    for account in accounts:
        if account.is_vault:
            continue
        number, funds, main = account.number, account.funds, account.sub_account_of
        time = start_ms + MINUTE + number * 1_009 % (20 * MINUTE)
        schedule(time, deposit, number if main is None else main, funds)
        if main is not None:
            time = start_ms + 25 * MINUTE + number * 997
            schedule(time, pay_account, main, funds, number, False)
        for dex in filter(None, account.dexes):
            time = start_ms + 40 * MINUTE + number * 1_013 + DEXES.index(dex)
            schedule(time, fund_dex, number, funds // 4, dex)
        if account.spot_share:
            usdc = funds // 100 * account.spot_share
            time = start_ms + 28 * MINUTE + number * 1_019
            schedule(time, change_class, number, usdc, "")
            schedule(time + 9 * MINUTE, change_class, number, usdc // 8, "eqx")
    rng = random_stream(exchange.seed, "moves")
    days = exchange.hours // 24
    count = len(accounts) * days // 5
    times = (start_ms + DAY // 8 + rng.integers(0, days * DAY - DAY // 8, count)).tolist()
    numbers = rng.integers(0, len(accounts), (count, 2)).tolist()
    draws = rng.random((count, 2)).tolist()
    for time, (number, second), (kind, share) in zip(times, numbers, draws, strict=True):
        account, other = accounts[number], accounts[second]
        if account.is_vault or other.is_vault or account.has_story:
            continue
        usdc = max(account.funds // 10_000 * (20 + int(share * 200.0)), 5_000_000)
        if kind < 0.4:
            schedule(time, deposit, number, usdc * 5)
        elif kind < 0.65:
            schedule(time, withdraw, number, usdc)
        elif kind < 0.8 and second != number and not other.has_story:
            schedule(time, pay_account, number, usdc, second, True)
        elif kind < 0.9 and account.spot_share:
            schedule(time, change_class, number, usdc // 10, "eqx")
        else:
            schedule(time, change_class, number, usdc, "")
