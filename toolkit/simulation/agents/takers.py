"""Takers of perps: the builders that they approve, when they look at a market, what they trade.

A bracket is a take-profit and a stop-loss order that are placed with their parent order. When
the price reaches one of them, the other is cancelled. Unfilled orders are rejected by the
exchange, or cancelled.
"""

import numpy as np

from toolkit.contract.order_states import GROUPS
from toolkit.contract.source_tables import Approval
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Ticket
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import MINUTES_AN_HOUR
from toolkit.simulation.exact import decimal_text, random_stream
from toolkit.simulation.markets import NATIVE_TOKEN, PAIRS, PERPS
from toolkit.times import HOUR, MINUTE

FEES_BPS = (1, 2, 3, 5, 10)
"""The fees of the builders, in turn."""

_TREND_MINUTES = 4 * MINUTES_AN_HOUR
_SMALLEST_ORDER = 10_000_000  # ten dollars, the exchange's smallest order
_SAME_BLOCK_SHARE = 0.04
_BRACKET_SHARE = 0.05
_FAR_ORDER_SHARE = 0.2
_DORMANT_VISITS = 4
_LARGEST_GAS = 90_000  # units of 1e-8 of the native token
_BUSY_HOURS = (2, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5, 7, 8, 8, 7, 6, 5, 4, 4, 3, 3, 2)

_BRACKET_CANCEL_SHARE = 0.2
_LIMIT_SHARE = 0.4
_WHOLE_POSITION_SHARE = 0.3

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


def change_approval(
    exchange: Exchange, time: int, account: int, builder: int, approved: bool
) -> None:
    """Record that an account approves a builder, or revokes this; it is valid from now on."""
    builders = exchange.approved[account]
    (builders.add if approved else builders.discard)(builder)
    exchange.approvals.append(
        Approval(
            user=exchange.accounts[account].address,
            builder=exchange.builders[builder],
            time=time,
            tx_index=int(exchange.rng.random() * 40),
            approved=approved,
        )
    )


def trade_perp(exchange: Exchange, time: int, number: int, coin: int) -> None:
    """Trade a perp towards the position that a taker's strategy targets.

    - ``number``, ``coin``: indices of the account and of the perp
    """
    account, rng = exchange.accounts[number], exchange.rng
    if coin in exchange.delisted:
        return
    mid, minute = exchange.prices.mid[coin], exchange.minute_of(time)
    bid, depth_usd = exchange.best_price(coin, time, False), PERPS[coin].depth_usd
    trend = int(np.sign(mid[minute] - mid[max(minute - _TREND_MINUTES, 0)]))
    usual = account.funds * account.leverage / len(account.coins)
    largest_position = min(usual, depth_usd * 40e6)
    # The target is a share of the largest position, from -1 to 1, and often 0:
    is_flat, strength = rng.random() < 0.3, rng.random()
    signs = {"trend": trend, "reversion": -trend}
    signal = signs[account.strategy] * strength if account.strategy in signs else 2.0 * strength - 1
    change = 0 if is_flat else int(largest_position * signal) // bid
    change -= exchange.position_size(coin, number)
    notional = min(largest_position * (0.05 + rng.random()), depth_usd * 6e6)
    largest = int(notional) // bid
    change = max(-largest, min(largest, change))
    px = exchange.best_price(coin, time, change > 0)
    if abs(change) * px < _SMALLEST_ORDER:
        return
    ticket = books.market_ticket(exchange, account, coin, change, px, time)
    if rng.random() < 0.8:
        ticket.cloid = account.make_cloid(ticket.oid)
    if rng.random() < 0.3:
        ticket.kind, ticket.tif = "Limit", "Ioc"
    if account.builder in exchange.approved[number] and rng.random() < 0.9:
        ticket.builder = exchange.builders[account.builder]
        ticket.builder_bps = FEES_BPS[account.builder % len(FEES_BPS)]
    native = exchange.wallets[number][NATIVE_TOKEN].balance
    if account.pays_priority and native > _LARGEST_GAS and rng.random() < 0.5:
        ticket.priority_gas = 100 + int(rng.random() * (_LARGEST_GAS - 100))
    is_bracketed = rng.random() < _BRACKET_SHARE and account.activity
    if is_bracketed and exchange.has_margin(coin, ticket, px, time):
        _add_bracket(exchange, coin, ticket)
    books.execute_order(exchange, exchange.next_transaction(time), coin, ticket)
    if account.is_vault and rng.random() < _FAR_ORDER_SHARE:
        books.place_far_order(exchange, time, account, coin)


def advance_bracket(
    exchange: Exchange, time: int, coin: int, reached: Ticket, sibling: Ticket, status: str
) -> None:
    """Trigger one of two child orders, fill it a moment later, or cancel both.

    - ``status``: ``triggered``, ``filled``, or ``canceled`` if their owner cancels them; if there
      is no position to close, they are cancelled anyway
    """
    tx = exchange.next_transaction(time)
    position = exchange.position_size(coin, reached.account.number)
    if position * reached.sign >= 0 and status != "canceled":
        status = "reduceOnlyCanceled"
    if status == "triggered":
        exchange.record_status(reached, status, time, tx.index)
        time += 1 + int(exchange.rng.random() * 900)
        exchange.schedule(time, advance_bracket, coin, reached, sibling, "filled")
    elif status == "filled":
        # ASSUMED: If a reduce-only order is larger than the position, it shrinks to the size of
        # the position before it fills.
        reached.size = reached.left = min(reached.left, abs(position))
        books.execute_order(exchange, tx, coin, reached)
        exchange.record_status(sibling, "siblingFilledCanceled", time, tx.index)
    else:
        for child in (reached, sibling):
            exchange.record_status(child, status, time, tx.index)


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
    px = books.round_to_tick(exchange.mark_price(coin, time) * thousandths // 1000, coin)
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
        if status == "insufficientSpotBalanceRejected":
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


def draw_approvals(exchange: Exchange) -> None:
    """Draw approvals in the first sixth of the time; some are revoked, and some of those repeated.

    Accounts that route orders through a builder approve it. A few approve a second one, which they
    never use. A few approve one without ever routing an order. Accounts with a story
    approve one before they trade and never revoke it, so that all their funding rows can be
    requested and their tables explain their value.
    """
    rng = random_stream(exchange.seed, "consents")
    span, builders = exchange.end_ms - exchange.start_ms, len(exchange.builders)
    kept: dict[int, int] = {}  # account -> its builder, if it revokes nothing

    for account in exchange.accounts:
        preferred, time = account.builder, exchange.start_ms + 50 * MINUTE
        draws = rng.random(6).tolist()
        if account.has_story:
            builder = account.number % builders
            exchange.schedule(time, change_approval, account.number, builder, True)
            continue
        if preferred is None:
            preferred = int(draws[5] * builders) if draws[0] < 0.1 else None
        if preferred is None:
            continue
        time += int(draws[1] * span / 6)
        exchange.schedule(time, change_approval, account.number, preferred, True)
        if draws[2] < 0.35:
            revoked = time + int(span * (0.2 + 0.3 * draws[3]))
            exchange.schedule(revoked, change_approval, account.number, preferred, False)
            if draws[4] < 0.5:
                repeated = revoked + int(span * 0.15)
                exchange.schedule(repeated, change_approval, account.number, preferred, True)
        else:
            kept[account.number] = preferred
        if draws[5] < 0.25 and builders > 1:
            second = (preferred + 1) % builders
            exchange.schedule(time + 7 * MINUTE, change_approval, account.number, second, True)
    # One account ends without a builder.
    last, builder = next(iter(kept.items()))
    exchange.schedule(exchange.end_ms - 2 * HOUR, change_approval, last, builder, False)


def draw_perp_intents(exchange: Exchange, count: int) -> None:
    """Draw who looks at which perp and when; the first hour is reserved for deposits."""
    rng, accounts = random_stream(exchange.seed, "intents"), exchange.accounts
    # There are more in the busy hours, and some are together in one block.
    busy = np.array([h for h in range(1, exchange.hours) for _ in range(_BUSY_HOURS[h % 24])])
    hour = busy[rng.integers(0, len(busy), count)]
    times = np.sort(hour * HOUR + rng.integers(1, HOUR, count))
    is_same_block = rng.random(count) < _SAME_BLOCK_SHARE
    is_same_block[0] = False
    times = times[np.maximum.accumulate(np.where(is_same_block, 0, np.arange(count)))]
    weights = np.cumsum(np.array([account.activity for account in accounts]))
    takers = np.searchsorted(weights, rng.random(count) * weights[-1], side="right")
    takers = np.minimum(takers, len(accounts) - 1)
    # Accounts that are dormant afterwards have a few early visits.
    dormant = [account.number for account in accounts if account.strategy == "dormant"]
    dormant *= _DORMANT_VISITS
    early = random_stream(exchange.seed, "visits").integers(HOUR, 12 * HOUR, len(dormant))
    times = np.concatenate([times, early])
    takers = np.concatenate([takers, np.array(dormant, dtype=np.int64)])
    order = np.argsort(times, kind="stable")
    # Each takes one of its perps, the first ones (the most liquid) more often.
    draws = rng.random(len(times))
    draws = draws * (0.5 + 0.5 * draws)
    rows = zip(times[order].tolist(), takers[order].tolist(), draws.tolist(), strict=True)
    for time, taker, draw in rows:
        coins = accounts[taker].coins
        coin = coins[int(draw * len(coins))]
        exchange.schedule(exchange.start_ms + time, trade_perp, taker, coin)


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


def _add_bracket(exchange: Exchange, coin: int, parent: Ticket) -> None:
    """Add a take-profit and a stop-loss child to an order, and schedule their trigger.

    The child that will be reached gets the mark price of that moment, so that orders and prices
    agree.
    """
    rng = exchange.rng
    time = parent.time + 10 * MINUTE + int(rng.random() * 20 * HOUR)
    if time >= exchange.end_ms - MINUTE:
        return
    now = exchange.best_price(coin, parent.time, parent.is_buy)
    then = exchange.mark_price(coin, time)
    is_profit = (then - now) * parent.sign > 0
    distance = max(abs(then - now), now // 200)
    opposite = now - distance * (1 if then > now else -1)
    reached = _make_child(exchange, coin, parent, then, is_profit)
    sibling = _make_child(exchange, coin, parent, opposite, not is_profit)
    parent.children = [reached, sibling] if is_profit else [sibling, reached]
    for child in parent.children:
        exchange.record_status(child, "open", parent.time, 60)
    status = "canceled" if rng.random() < _BRACKET_CANCEL_SHARE else "triggered"
    exchange.schedule(time, advance_bracket, coin, reached, sibling, status)


def _make_child(exchange: Exchange, coin: int, parent: Ticket, px: int, is_profit: bool) -> Ticket:
    perp, trigger_px = PERPS[coin], books.round_to_tick(px, coin)
    is_limit = exchange.rng.random() < _LIMIT_SHARE
    percent = 99 if parent.is_buy else 101 if is_limit else 103
    limit = books.round_to_tick(trigger_px * percent // 100, coin)
    kind = f"{'Take Profit' if is_profit else 'Stop'} {'Limit' if is_limit else 'Market'}"
    tif = "Gtc" if is_limit else None
    is_buy, size, time = not parent.is_buy, parent.size, parent.time
    oid = exchange.next_oid()
    child = Ticket(parent.account, perp, oid, is_buy, limit, size, time, kind, tif)
    child.reduce_only, child.trigger_px = True, trigger_px
    child.is_position_tpsl = exchange.rng.random() < _WHOLE_POSITION_SHARE
    side = "above" if is_profit == parent.is_buy else "below"
    child.trigger_condition = f"Price {side} {decimal_text(trigger_px, perp.px_decimals)}"
    child.cloid = parent.cloid and f"{parent.cloid[:-1]}{'a' if is_profit else 'b'}"
    return child
