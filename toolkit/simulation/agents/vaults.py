"""Vaults: a leader trades the money of followers."""

from dataclasses import dataclass
from operator import attrgetter

from toolkit.contract.records import LedgerDelta
from toolkit.rules.directions import NET_CHILD_VAULTS
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.books import market_ticket
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import money_text
from toolkit.times import DAY, MINUTE

_CREATION_FEE = 100_000_000


@dataclass(frozen=True, slots=True)
class VaultTransfer:
    """A transfer into or out of a vault.

    - ``time``: in milliseconds
    - ``kind``: type of its ledger delta
    - ``vault``, ``account``, ``leader``: the vault, the account that pays in or is paid out, and
      the leader of the vault
    - ``usdc``: micro-dollars
    """

    time: int
    kind: str
    vault: int
    account: int
    leader: int
    usdc: int

    def apply(self, state: SimulationState) -> None:
        """Move the money, and write the update."""
        exchange = state.exchange
        if self.kind == "vaultWithdraw":
            self._withdraw(state)
            return
        vault = exchange.accounts[self.vault].address
        delta = LedgerDelta(type=self.kind, vault=vault, usdc=money_text(self.usdc))
        usdc = -self.usdc if self.kind == "vaultDistribution" else self.usdc
        exchange.add_dollars(self.vault, usdc)
        exchange.add_dollars(self.account, -usdc)
        if self.kind == "vaultCreate":
            delta.fee = money_text(_CREATION_FEE)
            exchange.add_dollars(self.account, -_CREATION_FEE)
        tx = exchange.next_transaction(self.time)
        exchange.write_ledger(tx, delta, self.vault, self.account)

    def _withdraw(self, state: SimulationState) -> None:
        """Pay a follower out. The leader keeps a tenth of the gain as commission.

        A withdrawal cancels the vault's orders and closes a part of a position.
        """
        # ASSUMED: The field `requestedUsd` of a vault withdrawal is the sum of `netWithdrawnUsd`,
        # `commission` and `closingCost`.
        # ASSUMED: The vault keeps the closing cost of a withdrawal.
        exchange = state.exchange
        tx = exchange.next_transaction(self.time)
        vault = exchange.accounts[self.vault]
        state.books.cancel_orders(tx, "vaultWithdrawalCanceled", account=vault)
        _close_tenth(state, vault, self.time)
        basis = self.usdc * 9 // 10
        commission = (self.usdc - basis) // 10
        closing_cost = self.usdc // 1_000
        net = self.usdc - commission - closing_cost
        exchange.add_dollars(self.vault, -net - commission)
        exchange.add_dollars(self.account, net)
        exchange.add_dollars(self.leader, commission)
        withdrawal = LedgerDelta(
            type="vaultWithdraw",
            vault=vault.address,
            user=exchange.accounts[self.account].address,
            requested_usd=money_text(self.usdc),
            commission=money_text(commission),
            closing_cost=money_text(closing_cost),
            basis=money_text(basis),
            net_withdrawn_usd=money_text(net),
        )
        exchange.write_ledger(tx, withdrawal, self.vault, self.account)
        payment = LedgerDelta(
            type="vaultLeaderCommission",
            user=exchange.accounts[self.leader].address,
            usdc=money_text(commission),
        )
        exchange.write_ledger(tx, payment, self.leader)


@dataclass(frozen=True, slots=True)
class VaultNetting:
    """Two vaults of one leader trade with each other, outside the book."""

    time: int
    coin: int
    parent: int
    child: int

    def apply(self, state: SimulationState) -> None:
        """Move a small position from the parent to the child at the mark price."""
        exchange = state.exchange
        px = exchange.mark_price(self.coin, self.time)
        size = max(1, 50_000_000 // px)
        parent, child = exchange.accounts[self.parent], exchange.accounts[self.child]
        sale = market_ticket(exchange, parent, self.coin, -size, px, self.time)
        purchase = market_ticket(exchange, child, self.coin, size, px, self.time)
        purchase.px = px
        tx = exchange.next_transaction(self.time)
        directions = (NET_CHILD_VAULTS, NET_CHILD_VAULTS)
        exchange.match_orders(tx, self.coin, sale, purchase, size, directions)
        exchange.journal.record_status(sale, "filled", tx.time, tx.index)


def draw_vault_events(
    start_ms: int, days: int, accounts: list[Account]
) -> list[VaultTransfer | VaultNetting]:
    """Return the events of all vaults, by time.

    Each vault is created, receives deposits, pays withdrawals and makes distributions.
    """
    vaults = [account for account in accounts if account.is_vault]
    investors = [account for account in accounts if account.activity and not account.is_vault]
    investors.sort(key=attrgetter("funds"), reverse=True)
    leader, followers = investors[0].number, investors[1:5]
    span = days * DAY
    events: list[VaultTransfer | VaultNetting] = []
    for vault in vaults:
        number = vault.number
        created = start_ms + 30 * MINUTE + number * 1_000
        usdc = vault.funds // 2
        events.append(VaultTransfer(created, "vaultCreate", number, leader, leader, usdc))
        for place, follower in enumerate(followers):
            usdc = min(vault.funds // 8, follower.funds // 20)
            time = created + (place + 1) * 3 * MINUTE
            deposit = VaultTransfer(time, "vaultDeposit", number, follower.number, leader, usdc)
            later = start_ms + span * (5 + place) // 10 + number * 1_000
            kind = "vaultWithdraw" if place % 2 else "vaultDistribution"
            payout = VaultTransfer(later, kind, number, follower.number, leader, usdc // 3)
            events += [deposit, payout]
    if len(vaults) > 1:
        time = start_ms + span // 2 + 7 * MINUTE
        events.append(VaultNetting(time, 0, vaults[0].number, vaults[1].number))
    return sorted(events, key=attrgetter("time"))


def _close_tenth(state: SimulationState, vault: Account, time: int) -> None:
    """Close a tenth of the vault's first position."""
    exchange: Exchange = state.exchange
    for coin in range(len(PERPS)):
        size = exchange.position_size(coin, vault.number)
        if abs(size) >= 10 and not state.is_delisted(coin):
            px = exchange.mark_price(coin, time)
            change = -(size // 10) if size > 0 else -size // 10
            ticket = market_ticket(exchange, vault, coin, change, px, time)
            ticket.kind, ticket.reduce_only = "Vault Close", True
            state.books.execute_order(exchange.next_transaction(time), coin, ticket)
            return
