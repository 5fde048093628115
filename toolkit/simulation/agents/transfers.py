"""Transfers: what moves without a trade, and vaults, whose leader trades the money of followers.

Dollars, in positive micro-dollars: deposits, withdrawals, and moves between accounts, dexes and
wallets. Tokens, in units of 1e-8: genesis, transfers, staking, rewards, lending, gas.
"""

from operator import attrgetter

from msgspec import UNSET

from toolkit.contract.records import LedgerDelta
from toolkit.rules.directions import NET_CHILD_VAULTS
from toolkit.rules.spot_cost import WEI
from toolkit.simulation import exact
from toolkit.simulation.agents.spot_traders import spot_trader_numbers
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import COLLATERAL, DEXES, FOLLOWED_PERPS, NATIVE_TOKEN, PERPS
from toolkit.times import DAY, HOUR, MINUTE

_CREATION_FEE = 100_000_000
"""The fee of the creation of a vault."""

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
    delta = LedgerDelta(type=kind, usdc=exact.money_text(usdc))
    changes = {number: usdc if kind == "deposit" else -usdc}
    if kind in ("withdraw", "internalTransfer"):
        changes[number] -= _FEE
        delta.fee = exact.money_text(_FEE)
    if kind == "withdraw":
        delta.nonce = time - 900
    if kind == "accountClassTransfer":
        delta.to_perp = False
        exchange.wallets[number]["USDC"].ledger += usdc * exact.WEI_PER_MICRO
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
    account, place, text = exchange.accounts[number], DEXES.index(dex), exact.money_text(usdc)
    token, changes = COLLATERAL[dex], {number: usdc}
    delta = LedgerDelta(type="send", token=token, amount=text)
    if is_from_spot:
        exchange.wallets[number][token].ledger -= usdc * exact.WEI_PER_MICRO
        delta.type, delta.dex, delta.to_perp = "perpDexClassTransfer", dex, True
    elif token == "USDC":
        exchange.balances[number][0] -= usdc
        exchange.totals[number].ledger -= usdc
    if not is_from_spot and token == "USDC" and account.mode == 1:
        delta.type, delta.dex = "activateDexAbstraction", dex
    elif not is_from_spot:
        is_inside = token == "USDC"
        delta.user = account.address if is_inside else exact.party_address(exchange.seed, "issuer")
        delta.source_dex, delta.destination_dex = "" if is_inside else "spot", dex
        delta.destination, delta.usdc_value = account.address, text
        delta.fee, delta.native_token_fee, delta.fee_token = "0.0", "0.0", ""
        delta.nonce = time - 800
    exchange.write_ledger(exchange.next_transaction(time), delta, changes, place)


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
        delta.token, delta.amount = token, exact.decimal_text(amount, WEI)
    if other >= 0:
        exchange.wallets[other][token].ledger -= change
        delta.user = exchange.accounts[number].address
        delta.destination = exchange.accounts[other].address
        # The value in 1e-8 USD at the mark price, rounded down:
        coin = FOLLOWED_PERPS[token]
        px = exchange.mark_price(coin, time)
        delta.usdc_value = exact.decimal_text(amount * px // 10 ** PERPS[coin].px_decimals, WEI)
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
        delta.interest_amount = exact.decimal_text(interest, WEI)
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


def pay_vault(
    exchange: Exchange, time: int, kind: str, vault: int, account: int, usdc: int
) -> None:
    """Move micro-dollars from an account into a vault, or out of it in a distribution.

    - ``kind``: type of the ledger delta
    """
    delta = LedgerDelta(
        type=kind, vault=exchange.accounts[vault].address, usdc=exact.money_text(usdc)
    )
    paid, fee = -usdc if kind == "vaultDistribution" else usdc, 0
    if kind == "vaultCreate":
        fee = _CREATION_FEE
        delta.fee = exact.money_text(fee)
    changes = {vault: paid, account: -paid - fee}
    exchange.write_ledger(exchange.next_transaction(time), delta, changes)


def withdraw_from_vault(
    exchange: Exchange, time: int, number: int, follower: int, usdc: int, leader: int
) -> None:
    """Pay a follower out. The leader keeps a tenth of the gain as commission.

    A withdrawal cancels the vault's orders and closes a tenth of its first position.
    """
    # ASSUMED: The field `requestedUsd` of a vault withdrawal is the sum of `netWithdrawnUsd`,
    # `commission` and `closingCost`.
    # ASSUMED: The vault keeps the closing cost of a withdrawal.
    tx = exchange.next_transaction(time)
    vault = exchange.accounts[number]
    books.cancel_orders(exchange, tx, "vaultWithdrawalCanceled", vault)
    for coin in range(len(PERPS)):
        size = exchange.position_size(coin, number)
        if abs(size) >= 10 and coin not in exchange.delisted:
            px = exchange.mark_price(coin, time)
            change = -(size // 10) if size > 0 else -size // 10
            fields = {"kind": "Vault Close", "reduce_only": True}
            books.trade_market(exchange, time, vault, coin, change, px, **fields)
            break
    basis = usdc * 9 // 10
    commission = (usdc - basis) // 10
    closing_cost = usdc // 1_000
    net = usdc - commission - closing_cost
    withdrawal = LedgerDelta(
        type="vaultWithdraw",
        vault=vault.address,
        user=exchange.accounts[follower].address,
        requested_usd=exact.money_text(usdc),
        commission=exact.money_text(commission),
        closing_cost=exact.money_text(closing_cost),
        basis=exact.money_text(basis),
        net_withdrawn_usd=exact.money_text(net),
    )
    exchange.write_ledger(tx, withdrawal, {number: -net - commission, follower: net})
    payment = LedgerDelta(
        type="vaultLeaderCommission",
        user=exchange.accounts[leader].address,
        usdc=exact.money_text(commission),
    )
    exchange.write_ledger(tx, payment, {leader: commission})


def net_vaults(exchange: Exchange, time: int, coin: int, parent: Account, child: Account) -> None:
    """Let two vaults of one leader trade with each other at the mark price, outside the book."""
    px = exchange.mark_price(coin, time)
    size = max(1, 50_000_000 // px)
    sale = books.market_ticket(exchange, parent, coin, -size, px, time)
    purchase = books.market_ticket(exchange, child, coin, size, px, time)
    purchase.px = px
    sale.direction = purchase.direction = NET_CHILD_VAULTS
    tx = exchange.next_transaction(time)
    exchange.match_orders(tx, coin, sale, purchase, size)
    exchange.record_status(sale, "filled", tx.time, tx.index)


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
        for dex in sorted({PERPS[coin].dex for coin in account.coins} - {""}):
            time = start_ms + 40 * MINUTE + number * 1_013 + DEXES.index(dex)
            schedule(time, fund_dex, number, funds // 4, dex, False)
        if account.spot_share:
            usdc = funds // 100 * account.spot_share
            time = start_ms + 28 * MINUTE + number * 1_019
            schedule(time, move_dollars, "accountClassTransfer", number, usdc)
            schedule(time + 9 * MINUTE, fund_dex, number, usdc // 8, "eqx", True)
    rng = exact.random_stream(exchange.seed, "moves")
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
        amount = 5_000 * exact.ONE_TOKEN if token == "UBTC" else 20_000_000 * exact.ONE_TOKEN
        schedule(start_ms + number, move_tokens, "spotGenesis", bank, token, amount, 1)
    schedule(start_ms + HOUR, move_tokens, "spotGenesis", bank, "PURR", -5 * exact.ONE_TOKEN, 1)
    schedule(
        start_ms + 2 * HOUR,
        move_tokens,
        "deployGasAuction",
        bank,
        native,
        512 * exact.ONE_TOKEN,
        -1,
    )
    schedule(end_ms - HOUR, move_tokens, "borrowLendBackstopLiquidation", bank, "", 0, 1)
    schedule(
        start_ms + 3 * HOUR, move_tokens, "accountActivationGas", bank, "USDC", exact.ONE_TOKEN, -1
    )
    for account in exchange.accounts:
        if not account.uses_native:
            continue
        number = account.number
        amount = (100 + account.funds // 10**8) * exact.ONE_TOKEN
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


def draw_vault_events(exchange: Exchange) -> None:
    """Schedule the events of all vaults.

    Each vault is created, receives deposits, pays withdrawals and makes distributions.
    """
    accounts, start_ms = exchange.accounts, exchange.start_ms
    vaults = [account for account in accounts if account.is_vault]
    investors = [account for account in accounts if account.activity and not account.is_vault]
    investors.sort(key=attrgetter("funds"), reverse=True)
    leader, followers = investors[0].number, investors[1:5]
    span = exchange.end_ms - start_ms
    for vault in vaults:
        number = vault.number
        created = start_ms + 30 * MINUTE + number * 1_000
        usdc = vault.funds // 2
        exchange.schedule(created, pay_vault, "vaultCreate", number, leader, usdc)
        for place, follower in enumerate(followers):
            usdc = min(vault.funds // 8, follower.funds // 20)
            time = created + (place + 1) * 3 * MINUTE
            exchange.schedule(time, pay_vault, "vaultDeposit", number, follower.number, usdc)
            later = start_ms + span * (5 + place) // 10 + number * 1_000
            paid = number, follower.number, usdc // 3
            if place % 2:
                exchange.schedule(later, withdraw_from_vault, *paid, leader)
            else:
                exchange.schedule(later, pay_vault, "vaultDistribution", *paid)
    if len(vaults) > 1:
        time = start_ms + span // 2 + 7 * MINUTE
        exchange.schedule(time, net_vaults, 0, vaults[0], vaults[1])
