"""Spot and outcome markets: prices, fills of spot wallets, dust, and settlement of outcomes.

A spot balance is counted in units of 1e-8, a cost in 1e-8 USD. A buyer of a spot pair pays the
fee in the bought token. A seller, and everybody on outcome markets, pays it in USDC. The closed
PnL of a sell follows `toolkit.rules.spot_cost` (docs/live_service.md, section 3).
"""

from msgspec import UNSET

from toolkit.contract.records import Fill
from toolkit.rules.directions import SETTLEMENT, SPOT_DUST
from toolkit.rules.spot_cost import WEI, apply_spot_fill
from toolkit.simulation.engine.accounts import Ticket
from toolkit.simulation.engine.exchange import Exchange, Transaction
from toolkit.simulation.exact import ONE_TOKEN, decimal_text, rounded_share
from toolkit.simulation.markets import COINS, PERPS, SPOT_PAIRS, Pair

SPOT_TAKER_MICRO, SPOT_MAKER_MICRO = 700, 400
"""Spot fees in millionths."""

_DUST_LIMIT = ONE_TOKEN  # a dollar


def convert_dust(exchange: Exchange, time: int) -> None:
    """Sell balances below one dollar at the best bid, without fees; the trade id is 0."""
    for pair in SPOT_PAIRS:
        px = best_spot_price(exchange, pair, time, 0.0, False)
        for account in exchange.accounts:
            if not account.spot_share:
                continue
            amount = exchange.wallets[account.number][pair.base].balance
            if 0 < amount * px < _DUST_LIMIT * pair.unit:
                oid = exchange.next_oid()
                ticket = Ticket(account, pair, oid, False, px, 0, time, SPOT_DUST)
                ticket.direction = SPOT_DUST
                tx = exchange.next_transaction(time)
                fill_spot_order(exchange, tx, ticket, amount, 0)
                exchange.record_status(ticket, "filled", time, tx.index)


def settle_outcome(exchange: Exchange, time: int, pair: Pair, has_happened: bool) -> None:
    """End an outcome market: remove the tokens of every account, and pay a dollar or nothing."""
    exchange.settled.add(pair.coin)
    tx = exchange.next_transaction(time)
    px = pair.unit if has_happened else 0
    for account in exchange.accounts:
        size = exchange.wallets[account.number][pair.base].balance // ONE_TOKEN
        if size > 0:
            ticket = Ticket(account, pair, exchange.next_oid(), False, px, size, time)
            ticket.direction = SETTLEMENT
            fill_spot_order(exchange, tx, ticket, size * pair.unit, exchange.next_tid())


def best_spot_price(exchange: Exchange, pair: Pair, time: int, chance: float, is_buy: bool) -> int:
    """Return the best price: that of the perp with the same token, or the outcome's chance."""
    if pair.is_outcome:
        spread = 200_000
        px = int(chance * 1_000.0) * 100_000 + (spread if is_buy else -spread)
        return px // spread * spread
    coin = COINS.index(pair.follows)
    px = exchange.best_price(coin, time, is_buy)
    return px * int(10 ** (pair.px_decimals - PERPS[coin].px_decimals))


def fill_spot_order(
    exchange: Exchange, tx: Transaction, ticket: Ticket, tokens: int, tid: int, crossed: bool = True
) -> None:
    """Exchange tokens for dollars in a wallet at the price of an order, and write the row.

    An order with a `direction` is no trade and pays no fee.

    - ``exchange``: wallets and tables
    - ``tx``: the transaction
    - ``ticket``: the order; its open size shrinks
    - ``tokens``: the size, in units of 1e-8
    - ``tid``: the trade id; 0 if there is no other side
    - ``crossed``: whether the order is the taker's
    """
    pair = ticket.market
    assert isinstance(pair, Pair)
    wallet = exchange.wallets[ticket.account.number]
    base, cash = wallet[pair.base], wallet["USDC"]
    before, dollars = base.balance, tokens * ticket.px // pair.unit
    micro = SPOT_TAKER_MICRO if crossed else SPOT_MAKER_MICRO
    pays_in_tokens = ticket.is_buy and not pair.is_outcome
    paid = tokens if pays_in_tokens else dollars
    fee = 0 if ticket.direction else rounded_share(paid, micro, 10**6)
    closed, base.basis = apply_spot_fill(
        base.current_basis(pair.unit),
        ticket.sign * tokens,
        ticket.px,
        fee if pays_in_tokens else 0,
        pair.unit,
    )
    base.traded += ticket.sign * tokens
    cash.traded -= ticket.sign * dollars
    (base if pays_in_tokens else cash).fees += fee
    ticket.left = max(0, ticket.left - tokens // pair.unit)
    # ASSUMED: If an account sells tokens that it did not buy, the closed PnL is 0.
    fill = write_spot_fill(exchange, tx, ticket, before, tokens, closed or 0)
    fill.crossed, fill.tid = crossed, tid
    fill.fee = decimal_text(fee, WEI)
    fill.fee_token = pair.base if pays_in_tokens else "USDC"


def write_spot_fill(
    exchange: Exchange, tx: Transaction, ticket: Ticket, before: int, tokens: int, closed: int
) -> Fill:
    """Write the row of a taker without fees and without another side, and return it.

    - ``exchange``, ``tx``, ``ticket``, ``tokens``: as in `fill_spot_order`
    - ``before``: the balance before the fill, in units of 1e-8
    - ``closed``: the closed PnL, in prices of the pair times 1e-8
    """
    pair = ticket.market
    assert isinstance(pair, Pair)
    fill = Fill(
        coin=pair.coin,
        px=decimal_text(ticket.px, pair.px_decimals),
        sz=decimal_text(tokens, WEI),
        side="B" if ticket.is_buy else "A",
        time=tx.time,
        start_position=decimal_text(before, WEI),
        dir=ticket.direction or ("Buy" if ticket.is_buy else "Sell"),
        closed_pnl=decimal_text(closed, WEI + pair.px_decimals),
        hash=tx.hash,
        oid=ticket.oid,
        crossed=True,
        fee="0.0",
        tid=0,
        cloid=ticket.cloid or UNSET,
        fee_token="USDC",
        twap_id=None,
        tx_index=tx.index,
        venue=pair.venue or UNSET,
    )
    exchange.fills.append((ticket.account.address, fill))
    return fill
