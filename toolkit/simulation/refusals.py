"""Orders that never fill: refused by the exchange, or cancelled for a reason of their own."""

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.contract.order_states import GROUPS
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import mark_price, on_tick
from toolkit.simulation.draws import stream
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PAIRS, PERPS
from toolkit.simulation.orders import Ticket
from toolkit.times import HOUR

__all__ = ["ENDINGS", "REFUSALS", "Refused", "draw_refusals"]

REFUSALS = GROUPS["rejected"]
"""Specification, "Order status values": the group Rejected."""

ENDINGS = (
    ("canceled",),
    ("scheduledCancel", "canceled"),
    ("marginCanceled",),
    ("openInterestCapCanceled",),
    ("reduceOnlyCanceled",),
)
"""What may follow `open` on an order that rests far from the market."""

_SPOT = "insufficientSpotBalanceRejected"


@dataclass(frozen=True, slots=True)
class Refused:
    """An order that will not fill.

    Parameters
    ----------
    time : int
        When it is placed, in milliseconds.
    account, coin : int
        Whose, and on which perp.
    number : int
        Decides what becomes of it.
    luck : float
        Decides its side and size.
    """

    time: int
    account: int
    coin: int
    number: int
    luck: float

    def happen(self, floor: Floor) -> None:
        """Place it and write down how it ends."""
        if floor.is_delisted(self.coin):
            return
        if self.number % 3:
            self._rest(floor)
        else:
            self._refuse(floor, REFUSALS[self.number // 3 % len(REFUSALS)])

    def _refuse(self, floor: Floor, status: str) -> None:
        exchange = floor.exchange
        ticket = self._ticket(floor, 1002 if self.luck < 0.5 else 998)
        tx = exchange.transaction(self.time)
        ticket.tif = {"badAloPxRejected": "Alo", "iocCancelRejected": "Ioc"}.get(status, "Gtc")
        ticket.reduce_only = status == "reduceOnlyRejected"
        if status == "minTradeNtlRejected":
            ticket.size = ticket.left = max(1, 5_000_000 // ticket.px)
        if status == _SPOT:
            ticket.market = PAIRS[0]
            ticket.px, ticket.size, ticket.left = 17_600_000, 5_000, 5_000
        exchange.journal.record(ticket, status, tx.time, tx.index)

    def _rest(self, floor: Floor) -> None:
        """Rest far from the market until it is cancelled."""
        exchange = floor.exchange
        statuses = ENDINGS[self.number % len(ENDINGS)]
        ticket = self._ticket(floor, 930 if self.luck < 0.5 else 1070)
        ticket.reduce_only = statuses[-1] == "reduceOnlyCanceled"
        tx = exchange.transaction(self.time)
        exchange.journal.record(ticket, "open", tx.time, tx.index)
        later = self.time
        for status in statuses:
            later += 1_000 + int(exchange.luck.random() * 3 * HOUR)
            if later <= exchange.end_ms:
                exchange.journal.record(ticket, status, later, int(exchange.luck.random() * 40))

    def _ticket(self, floor: Floor, thousandths: int) -> Ticket:
        exchange = floor.exchange
        account = exchange.accounts[self.account]
        perp = PERPS[self.coin]
        px = on_tick(mark_price(exchange, self.coin, self.time) * thousandths // 1000, self.coin)
        oid = exchange.next_oid()
        size = max(1, int(min(account.funds, perp.depth_usd * 1e6) * (0.1 + self.luck)) // px)
        return Ticket(
            account=account,
            market=perp,
            oid=oid,
            is_buy=self.luck < 0.5,
            px=px,
            size=size,
            left=size,
            time=self.time,
            cloid=account.cloid(oid),
        )


def draw_refusals(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account]
) -> Iterator[Refused]:
    """Draw orders that will not fill, of every kind in turn."""
    rng = stream(seed, "refusals")
    people = [account for account in accounts if account.activity and not account.is_vault]
    times = sorted((start_ms + rng.integers(HOUR, hours * HOUR, count)).tolist())
    chosen = rng.integers(0, len(people), count).tolist()
    lucks = rng.random(count).tolist()
    for number, (time, who, luck) in enumerate(zip(times, chosen, lucks, strict=True)):
        account = people[who]
        coin = account.coins[number % len(account.coins)]
        yield Refused(time, account.number, coin, number, luck)
