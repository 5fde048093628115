"""Orders that never fill: the exchange rejects them, or they are cancelled."""

from toolkit.contract.order_states import GROUPS
from toolkit.simulation.engine.books import round_to_tick
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Ticket
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


def place_unfilled_order(
    exchange: Exchange, time: int, number: int, account: int, draw: float
) -> None:
    """Place an order that will not fill, and record how it ends.

    - ``number``: determines its perp and how it ends
    - ``account``: its owner
    - ``draw``: determines its side and size
    """
    owner = exchange.accounts[account]
    coin = owner.coins[number % len(owner.coins)]
    if coin in exchange.delisted:
        return
    perp, is_buy, is_rejected = PERPS[coin], draw < 0.5, number % 3 == 0
    distance = 2 if is_rejected else -70  # in thousandths; it may rest far from the market
    thousandths = 1000 + (distance if is_buy else -distance)
    px = round_to_tick(exchange.mark_price(coin, time) * thousandths // 1000, coin)
    notional = min(owner.funds, perp.depth_usd * 1e6) * (0.1 + draw)
    size = max(1, int(notional) // px)
    ticket = Ticket(owner, perp, exchange.next_oid(), is_buy, px, size, time)
    ticket.cloid = owner.make_cloid(ticket.oid)
    tx = exchange.next_transaction(time)
    if is_rejected:
        status = _REJECTIONS[number // 3 % len(_REJECTIONS)]
        ticket.tif = {"badAloPxRejected": "Alo", "iocCancelRejected": "Ioc"}.get(status, "Gtc")
        ticket.reduce_only = status == "reduceOnlyRejected"
        if status == "minTradeNtlRejected":
            ticket.size = ticket.left = max(1, 5_000_000 // px)
        if status == _SPOT_REJECTION:
            ticket.market, ticket.px, ticket.size, ticket.left = PAIRS[0], 17_600_000, 5_000, 5_000
        exchange.record_status(ticket, status, time, tx.index)
        return
    statuses = _ENDINGS[number % len(_ENDINGS)]
    ticket.reduce_only = statuses[-1] == "reduceOnlyCanceled"
    exchange.record_status(ticket, "open", time, tx.index)
    for status in statuses:
        time += 1_000 + int(exchange.rng.random() * 3 * HOUR)
        if time <= exchange.end_ms:
            exchange.record_status(ticket, status, time, int(exchange.rng.random() * 40))


def draw_unfilled_orders(exchange: Exchange, count: int) -> None:
    """Draw orders that will not fill, of every kind in turn."""
    rng = random_stream(exchange.seed, "refusals")
    owners = [account for account in exchange.accounts if account.activity and not account.is_vault]
    times = sorted(rng.integers(HOUR, exchange.end_ms - exchange.start_ms, count).tolist())
    places = rng.integers(0, len(owners), count).tolist()
    draws = rng.random(count).tolist()
    for number, (time, place, draw) in enumerate(zip(times, places, draws, strict=True)):
        owner = owners[place].number
        exchange.schedule(exchange.start_ms + time, place_unfilled_order, number, owner, draw)
