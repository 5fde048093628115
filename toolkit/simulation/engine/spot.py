"""Spot and outcome markets: prices, fills of spot wallets, dust, and settlement of outcomes.

A spot balance is counted in units of 1e-8, a cost in 1e-8 USD. A buyer of a spot pair pays the
fee in the bought token. A seller, and everybody on outcome markets, pays it in USDC. The closed
PnL of a sell follows `toolkit.rules.spot_cost` (docs/live_service.md, section 3).
"""

from dataclasses import dataclass

from msgspec import UNSET

from toolkit.contract.records import Fill
from toolkit.rules.directions import SETTLEMENT
from toolkit.rules.spot_cost import WEI, apply_spot_fill
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import Exchange, Transaction
from toolkit.simulation.engine.orders import DUST, Ticket
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import COINS, PAIRS, PERPS, Pair
from toolkit.simulation.quantities import ONE_TOKEN, decimal_text, rounded_share

SPOT_TAKER_MICRO, SPOT_MAKER_MICRO = 700, 400
"""Spot fees in millionths."""

_DUST_LIMIT = ONE_TOKEN  # a dollar


@dataclass(frozen=True, slots=True)
class DustConversion:
    """Midnight: balances below one dollar become USDC."""

    time: int

    def apply(self, state: SimulationState) -> None:
        """Sell the dust of every account at the best bid, without fees."""
        exchange = state.exchange
        for pair in PAIRS:
            if pair.is_outcome:
                continue
            px = best_spot_price(exchange, pair, self.time, 0.0, False)
            for account in exchange.accounts:
                if not account.spot_share:
                    continue
                amount = exchange.wallets[account.number][pair.base].balance
                if 0 < amount * px < _DUST_LIMIT * 10**pair.px_decimals:
                    self._sell_dust(exchange, account, pair, px, amount)

    def _sell_dust(
        self, exchange: Exchange, account: Account, pair: Pair, px: int, amount: int
    ) -> None:
        """Convert dust to USDC; such fills have the trade id 0."""
        ticket = spot_ticket(exchange, account, pair, False, px, 0, self.time)
        ticket.kind = DUST
        tx = exchange.next_transaction(self.time)
        dollars = amount * px // int(10**pair.px_decimals)
        move_tokens(exchange, tx, ticket, amount, dollars, 0, True, DUST, 0)
        exchange.journal.record_status(ticket, "filled", self.time, tx.index)


@dataclass(frozen=True, slots=True)
class OutcomeSettlement:
    """The end of an outcome market: its tokens pay a dollar, or nothing."""

    time: int
    pair: int
    has_happened: bool

    def apply(self, state: SimulationState) -> None:
        """Remove the tokens of every account and pay for them."""
        exchange = state.exchange
        pair = PAIRS[self.pair]
        state.settled.add(pair.coin)
        tx = exchange.next_transaction(self.time)
        px = 10**pair.px_decimals if self.has_happened else 0
        for account in exchange.accounts:
            size = exchange.wallets[account.number][pair.base].balance // ONE_TOKEN
            if size > 0:
                ticket = spot_ticket(exchange, account, pair, False, px, size, self.time)
                tid = exchange.next_tid()
                fill_spot_order(
                    exchange, tx, ticket, size, tid, crossed=True, direction=SETTLEMENT, micro=0
                )


def cost_unit(pair: Pair) -> int:
    """Return 1e-8 USD in the units of costs: prices of the pair times 1e-8 of a token."""
    return int(10**pair.px_decimals)


def spot_lot(pair: Pair) -> int:
    """Return the smallest size of a pair in units of 1e-8 of its token."""
    return int(10 ** (WEI - pair.sz_decimals))


def best_spot_price(exchange: Exchange, pair: Pair, time: int, chance: float, is_buy: bool) -> int:
    """Return the best price: that of the perp with the same token, or the outcome's chance."""
    if pair.is_outcome:
        spread = 200_000
        px = int(chance * 1_000.0) * 100_000 + (spread if is_buy else -spread)
        return px // spread * spread
    coin = COINS.index(pair.follows)
    px = exchange.best_price(coin, time, is_buy)
    return px * int(10 ** (pair.px_decimals - PERPS[coin].px_decimals))


def spot_ticket(
    exchange: Exchange, account: Account, pair: Pair, is_buy: bool, px: int, size: int, time: int
) -> Ticket:
    """Return a new limit order on a spot or outcome market."""
    return Ticket(
        account=account,
        market=pair,
        oid=exchange.next_oid(),
        is_buy=is_buy,
        px=px,
        size=size,
        left=size,
        time=time,
    )


def fill_spot_order(
    exchange: Exchange,
    tx: Transaction,
    ticket: Ticket,
    size: int,
    tid: int,
    *,
    crossed: bool,
    direction: str = "",
    micro: int | None = None,
) -> None:
    """Fill an order at its price with a size in lots.

    - ``exchange``, ``tx``, ``ticket``, ``tid``, ``crossed``, ``direction``: as in `move_tokens`
    - ``size``: size, in lots
    - ``micro``: the fee in millionths; by default that of a taker or a maker
    """
    pair = ticket.market
    assert isinstance(pair, Pair)
    if micro is None:
        micro = SPOT_TAKER_MICRO if crossed else SPOT_MAKER_MICRO
    tokens, dollars = size * spot_lot(pair), size * ticket.px
    move_tokens(exchange, tx, ticket, tokens, dollars, tid, crossed, direction, micro)
    ticket.left -= size


def move_tokens(
    exchange: Exchange,
    tx: Transaction,
    ticket: Ticket,
    tokens: int,
    dollars: int,
    tid: int,
    crossed: bool,
    direction: str,
    micro: int,
) -> None:
    """Exchange tokens for dollars in a wallet, and write the row.

    - ``exchange``: wallets and tables
    - ``tx``: the transaction
    - ``ticket``: the order; its price is the price of the fill
    - ``tokens``, ``dollars``: the amounts, in units of 1e-8
    - ``tid``: the trade id; 0 if there is no other side
    - ``crossed``: whether the order is the taker's
    - ``direction``: the `dir`; empty for a plain trade
    - ``micro``: the fee in millionths: of the tokens for a buy on a spot pair, else of the dollars
    """
    pair = ticket.market
    assert isinstance(pair, Pair)
    wallet = exchange.wallets[ticket.account.number]
    base, cash = wallet[pair.base], wallet["USDC"]
    before = base.balance
    sign = ticket.sign
    pays_in_tokens = ticket.is_buy and not pair.is_outcome
    fee = rounded_share(tokens if pays_in_tokens else dollars, micro, 10**6)
    closed, basis = apply_spot_fill(
        base.current_basis(cost_unit(pair)),
        sign * tokens,
        ticket.px,
        fee if pays_in_tokens else 0,
        cost_unit(pair),
    )
    base.basis = basis
    base.traded += sign * tokens
    cash.traded -= sign * dollars
    (base if pays_in_tokens else cash).fees += fee
    # ASSUMED: If an account sells tokens that it did not buy, the closed PnL is 0.
    fill = write_spot_fill(exchange, tx, ticket, before, tokens, closed or 0, tid, direction)
    fill.crossed = crossed
    fill.fee = decimal_text(fee, WEI)
    fill.fee_token = pair.base if pays_in_tokens else "USDC"


def write_spot_fill(
    exchange: Exchange,
    tx: Transaction,
    ticket: Ticket,
    before: int,
    tokens: int,
    closed: int,
    tid: int,
    direction: str,
) -> Fill:
    """Write the row of a taker without fees, and return it.

    - ``exchange``, ``tx``, ``ticket``, ``tokens``, ``tid``, ``direction``: as in `move_tokens`
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
        dir=direction or ("Buy" if ticket.is_buy else "Sell"),
        closed_pnl=decimal_text(closed, WEI + pair.px_decimals),
        hash=tx.hash,
        oid=ticket.oid,
        crossed=True,
        fee="0.0",
        tid=tid,
        cloid=ticket.cloid or UNSET,
        fee_token="USDC",
        twap_id=None,
        tx_index=tx.index,
        venue=pair.venue or UNSET,
    )
    exchange.fills.append((ticket.account.address, fill))
    return fill
