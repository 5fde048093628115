"""Vaults: a leader trades what followers have put in."""

from dataclasses import dataclass

from toolkit.contract.records import LedgerDelta
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import deal, mark_price, perp_ticket
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.ledger import credit, usd, write
from toolkit.simulation.markets import PERPS
from toolkit.times import DAY, MINUTE

__all__ = ["Netting", "VaultMove", "draw_vault_moves"]

CREATION_FEE = 100_000_000


@dataclass(frozen=True, slots=True)
class VaultMove:
    """Money into or out of a vault.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    kind : str
        Type of its ledger delta.
    vault, account, leader : int
        The vault, who puts in or takes out, and who leads it.
    usdc : int
        How much, micro-dollars.
    """

    time: int
    kind: str
    vault: int
    account: int
    leader: int
    usdc: int

    def happen(self, floor: Floor) -> None:
        """Move it; a withdrawal cancels the vault's orders and closes a part of a position."""
        exchange = floor.exchange
        vault = exchange.accounts[self.vault].address
        if self.kind == "vaultWithdraw":
            _withdraw(floor, self)
            return
        delta = LedgerDelta(type=self.kind, vault=vault, usdc=usd(self.usdc))
        signed = -self.usdc if self.kind == "vaultDistribution" else self.usdc
        credit(exchange, self.vault, signed)
        credit(exchange, self.account, -signed)
        if self.kind == "vaultCreate":
            delta.fee = usd(CREATION_FEE)
            credit(exchange, self.account, -CREATION_FEE)
        write(exchange, exchange.transaction(self.time), delta, self.vault, self.account)


@dataclass(frozen=True, slots=True)
class Netting:
    """Two vaults of one leader trade with each other, outside the book."""

    time: int
    coin: int
    parent: int
    child: int

    def happen(self, floor: Floor) -> None:
        """Hand a small position from the one to the other at the mark price."""
        exchange = floor.exchange
        px = mark_price(exchange, self.coin, self.time)
        size = max(1, 50_000_000 // px)
        one = perp_ticket(exchange, exchange.accounts[self.parent], self.coin, -size, px, self.time)
        two = perp_ticket(exchange, exchange.accounts[self.child], self.coin, size, px, self.time)
        two.px = px
        words = "Net Child Vaults"
        tx = exchange.transaction(self.time)
        exchange.trade(tx, self.coin, one, two, size, (words, words))
        exchange.journal.record(one, "filled", tx.time, tx.index)


def draw_vault_moves(
    start_ms: int, days: int, accounts: list[Account]
) -> list[VaultMove | Netting]:
    """Give the life of the vaults, by time: creation, deposits, a withdrawal, a distribution."""
    vaults = [account for account in accounts if account.is_vault]
    people = sorted(
        (a for a in accounts if a.activity and not a.is_vault), key=_funds, reverse=True
    )
    leader, followers = people[0].number, people[1:5]
    span = days * DAY
    moves: list[VaultMove | Netting] = []
    for vault in vaults:
        who = vault.number
        first = start_ms + 30 * MINUTE + who * 1_000
        moves.append(VaultMove(first, "vaultCreate", who, leader, leader, vault.funds // 2))
        for place, follower in enumerate(followers):
            usdc = min(vault.funds // 8, follower.funds // 20)
            time = first + (place + 1) * 3 * MINUTE
            moves.append(VaultMove(time, "vaultDeposit", who, follower.number, leader, usdc))
            later = start_ms + span * (5 + place) // 10 + who * 1_000
            kind = "vaultWithdraw" if place % 2 else "vaultDistribution"
            moves.append(VaultMove(later, kind, who, follower.number, leader, usdc // 3))
    if len(vaults) > 1:
        parent, child = vaults[0].number, vaults[1].number
        moves.append(Netting(start_ms + span // 2 + 7 * MINUTE, 0, parent, child))
    return sorted(moves, key=_time)


def _withdraw(floor: Floor, move: VaultMove) -> None:
    """Pay a follower out: the leader keeps a commission of a tenth of the gain."""
    # ASSUMED: requestedUsd of a vault is netWithdrawnUsd, commission and closingCost together.
    # ASSUMED: the closing cost of a withdrawal stays with the vault.
    exchange = floor.exchange
    tx = exchange.transaction(move.time)
    vault = exchange.accounts[move.vault]
    floor.books.cancel_all(tx, "vaultWithdrawalCanceled", account=vault)
    _close_some(floor, vault, move.time)
    basis = move.usdc * 9 // 10
    commission = (move.usdc - basis) // 10
    closing_cost = move.usdc // 1_000
    net = move.usdc - commission - closing_cost
    credit(exchange, move.vault, -net - commission)
    credit(exchange, move.account, net)
    credit(exchange, move.leader, commission)
    delta = LedgerDelta(
        type="vaultWithdraw",
        vault=vault.address,
        user=exchange.accounts[move.account].address,
        requested_usd=usd(move.usdc),
        commission=usd(commission),
        closing_cost=usd(closing_cost),
        basis=usd(basis),
        net_withdrawn_usd=usd(net),
    )
    write(exchange, tx, delta, move.vault, move.account)
    leader = exchange.accounts[move.leader].address
    paid = LedgerDelta(type="vaultLeaderCommission", user=leader, usdc=usd(commission))
    write(exchange, tx, paid, move.leader)


def _close_some(floor: Floor, vault: Account, time: int) -> None:
    """Close a tenth of the vault's first position, as its withdrawals do."""
    exchange: Exchange = floor.exchange
    for coin in range(len(PERPS)):
        size = exchange.position(coin, vault.number)
        if abs(size) >= 10 and not floor.is_delisted(coin):
            px = mark_price(exchange, coin, time)
            change = -(size // 10) if size > 0 else -size // 10
            ticket = perp_ticket(exchange, vault, coin, change, px, time)
            ticket.kind, ticket.reduce_only = "Vault Close", True
            deal(floor, exchange.transaction(time), coin, ticket)
            return


def _funds(account: Account) -> int:
    return account.funds


def _time(move: VaultMove | Netting) -> int:
    return move.time
