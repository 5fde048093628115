"""Orders that never fill: the exchange rejects them, or they are cancelled."""

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.contract.order_states import GROUPS
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.books import round_to_tick
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import PAIRS, PERPS
from toolkit.simulation.random_draws import random_stream
from toolkit.times import HOUR

_REJECTIONS = GROUPS["rejected"]
"""Specification, "Order status values": the group Rejected."""

_ENDINGS = (
    ("canceled",),
    ("scheduledCancel", "canceled"),
    ("marginCanceled",),
    ("openInterestCapCanceled",),
    ("reduceOnlyCanceled",),
)
"""Statuses that may follow `open` on an order that rests far from the market."""

_SPOT_REJECTION = "insufficientSpotBalanceRejected"


@dataclass(frozen=True, slots=True)
class UnfilledOrder:
    """An order that will not fill.

    - ``time``: when it is placed, in milliseconds
    - ``account``, ``coin``: its owner, and its perp
    - ``number``: determines how it ends
    - ``draw``: determines its side and size
    """

    time: int
    account: int
    coin: int
    number: int
    draw: float

    def apply(self, state: SimulationState) -> None:
        """Place the order and record how it ends."""
        if state.is_delisted(self.coin):
            return
        if self.number % 3:
            self._cancel_later(state.exchange)
        else:
            self._reject(state.exchange, _REJECTIONS[self.number // 3 % len(_REJECTIONS)])

    def _reject(self, exchange: Exchange, status: str) -> None:
        ticket = self._make_ticket(exchange, 1002 if self.draw < 0.5 else 998)
        tx = exchange.next_transaction(self.time)
        ticket.tif = {"badAloPxRejected": "Alo", "iocCancelRejected": "Ioc"}.get(status, "Gtc")
        ticket.reduce_only = status == "reduceOnlyRejected"
        if status == "minTradeNtlRejected":
            ticket.size = ticket.left = max(1, 5_000_000 // ticket.px)
        if status == _SPOT_REJECTION:
            ticket.market = PAIRS[0]
            ticket.px, ticket.size, ticket.left = 17_600_000, 5_000, 5_000
        exchange.journal.record_status(ticket, status, tx.time, tx.index)

    def _cancel_later(self, exchange: Exchange) -> None:
        """Rest far from the market until a cancellation."""
        statuses = _ENDINGS[self.number % len(_ENDINGS)]
        ticket = self._make_ticket(exchange, 930 if self.draw < 0.5 else 1070)
        ticket.reduce_only = statuses[-1] == "reduceOnlyCanceled"
        tx = exchange.next_transaction(self.time)
        exchange.journal.record_status(ticket, "open", tx.time, tx.index)
        time = self.time
        for status in statuses:
            time += 1_000 + int(exchange.rng.random() * 3 * HOUR)
            if time <= exchange.end_ms:
                tx_index = int(exchange.rng.random() * 40)
                exchange.journal.record_status(ticket, status, time, tx_index)

    def _make_ticket(self, exchange: Exchange, thousandths: int) -> Ticket:
        account = exchange.accounts[self.account]
        perp = PERPS[self.coin]
        px = exchange.mark_price(self.coin, self.time) * thousandths // 1000
        px = round_to_tick(px, self.coin)
        oid = exchange.next_oid()
        notional = min(account.funds, perp.depth_usd * 1e6) * (0.1 + self.draw)
        size = max(1, int(notional) // px)
        return Ticket(
            account=account,
            market=perp,
            oid=oid,
            is_buy=self.draw < 0.5,
            px=px,
            size=size,
            left=size,
            time=self.time,
            cloid=account.make_cloid(oid),
        )


def draw_unfilled_orders(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account]
) -> Iterator[UnfilledOrder]:
    """Draw orders that will not fill, of every kind in turn."""
    rng = random_stream(seed, "refusals")
    owners = [account for account in accounts if account.activity and not account.is_vault]
    times = sorted((start_ms + rng.integers(HOUR, hours * HOUR, count)).tolist())
    places = rng.integers(0, len(owners), count).tolist()
    draws = rng.random(count).tolist()
    for number, (time, place, draw) in enumerate(zip(times, places, draws, strict=True)):
        account = owners[place]
        coin = account.coins[number % len(account.coins)]
        yield UnfilledOrder(time, account.number, coin, number, draw)
