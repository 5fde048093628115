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


def move_dollars(
    exchange: Exchange, time: int, kind: str, number: int, usdc: int, other: int = -1
) -> None:
    """Move an account's dollars: in from outside, out, to its spot wallet, or to another account.

    - ``kind``: type of the ledger delta
    - ``number``, ``other``: the account, and the receiver, or -1 if there is none
    """
    # ASSUMED: The field `usdc` of a withdrawal is the amount that arrives. It does not include the
    # fee.
    delta = LedgerDelta(type=kind, usdc=money_text(usdc))
    changes = {number: usdc if kind == "deposit" else -usdc}
    if kind in ("withdraw", "internalTransfer"):
        changes[number] -= _FEE
        delta.fee = money_text(_FEE)
    if kind == "withdraw":
        delta.nonce = time - 900
    if kind == "accountClassTransfer":
        delta.to_perp = False
        exchange.wallets[number]["USDC"].ledger += usdc * WEI_PER_MICRO
    if other >= 0:
        changes[other] = usdc
        delta.user = exchange.accounts[number].address
        delta.destination = exchange.accounts[other].address
    exchange.write_ledger(exchange.next_transaction(time), delta, changes)


def fund_dex(
    exchange: Exchange, time: int, number: int, usdc: int, dex: str, is_from_spot: bool
) -> None:
    """Move an account's dollars to another dex, from its spot wallet or its native perps.

    A dex with another collateral gets it from the issuer, who is outside the world.
    """
    account, place, text = exchange.accounts[number], DEXES.index(dex), money_text(usdc)
    token, changes = COLLATERAL[dex], {number: usdc}
    delta = LedgerDelta(type="send", token=token, amount=text)
    if is_from_spot:
        exchange.wallets[number][token].ledger -= usdc * WEI_PER_MICRO
        delta.type, delta.dex, delta.to_perp = "perpDexClassTransfer", dex, True
    elif token == "USDC":
        exchange.balances[number][0] -= usdc
        exchange.totals[number].ledger -= usdc
    if not is_from_spot and token == "USDC" and account.mode == 1:
        delta.type, delta.dex = "activateDexAbstraction", dex
    elif not is_from_spot:
        is_inside = token == "USDC"
        delta.user = account.address if is_inside else party_address(exchange.seed, "issuer")
        delta.source_dex, delta.destination_dex = "" if is_inside else "spot", dex
        delta.destination, delta.usdc_value = account.address, text
        delta.fee, delta.native_token_fee, delta.fee_token = "0.0", "0.0", ""
        delta.nonce = time - 800
    exchange.write_ledger(exchange.next_transaction(time), delta, changes, place)


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
        schedule(time, move_dollars, "deposit", number if main is None else main, funds)
        if main is not None:
            time = start_ms + 25 * MINUTE + number * 997
            schedule(time, move_dollars, "subAccountTransfer", main, funds, number)
        for dex in filter(None, account.dexes):
            time = start_ms + 40 * MINUTE + number * 1_013 + DEXES.index(dex)
            schedule(time, fund_dex, number, funds // 4, dex, False)
        if account.spot_share:
            usdc = funds // 100 * account.spot_share
            time = start_ms + 28 * MINUTE + number * 1_019
            schedule(time, move_dollars, "accountClassTransfer", number, usdc)
            schedule(time + 9 * MINUTE, fund_dex, number, usdc // 8, "eqx", True)
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
            schedule(time, move_dollars, "deposit", number, usdc * 5)
        elif kind < 0.65:
            schedule(time, move_dollars, "withdraw", number, usdc)
        elif kind < 0.8 and second != number and not other.has_story:
            schedule(time, move_dollars, "internalTransfer", number, usdc, second)
        elif kind < 0.9 and account.spot_share:
            schedule(time, fund_dex, number, usdc // 10, "eqx", True)
        else:
            schedule(time, move_dollars, "accountClassTransfer", number, usdc)
