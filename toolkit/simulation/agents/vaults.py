"""Vaults: a leader trades the money of followers."""

from operator import attrgetter

from toolkit.contract.records import LedgerDelta
from toolkit.rules.directions import NET_CHILD_VAULTS
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.exact import money_text
from toolkit.simulation.markets import PERPS
from toolkit.times import MINUTE

_CREATION_FEE = 100_000_000


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


def pay_vault(
    exchange: Exchange, time: int, kind: str, vault: int, account: int, usdc: int
) -> None:
    """Move micro-dollars from an account into a vault, or out of it in a distribution.

    - ``kind``: type of the ledger delta
    """
    delta = LedgerDelta(type=kind, vault=exchange.accounts[vault].address, usdc=money_text(usdc))
    paid, fee = -usdc if kind == "vaultDistribution" else usdc, 0
    if kind == "vaultCreate":
        fee = _CREATION_FEE
        delta.fee = money_text(fee)
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
        requested_usd=money_text(usdc),
        commission=money_text(commission),
        closing_cost=money_text(closing_cost),
        basis=money_text(basis),
        net_withdrawn_usd=money_text(net),
    )
    exchange.write_ledger(tx, withdrawal, {number: -net - commission, follower: net})
    payment = LedgerDelta(
        type="vaultLeaderCommission",
        user=exchange.accounts[leader].address,
        usdc=money_text(commission),
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
