"""What a fill does to a spot wallet, and the row it leaves.

A spot balance is counted in units of 1e-8, a cost in 1e-8 USD. The closed PnL of a sell follows
`toolkit.rules.spot_cost` (docs/live_service.md, section 3).
"""

from msgspec import UNSET

from toolkit.contract.records import Fill
from toolkit.rules.spot_cost import step
from toolkit.simulation.accounts import Account
from toolkit.simulation.exchange import Exchange, Transaction
from toolkit.simulation.markets import Pair
from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import WEI, rounded_share, text

__all__ = ["cost_unit", "move_tokens", "spot_ticket", "write_spot_fill"]


def cost_unit(pair: Pair) -> int:
    """Return 1e-8 USD in the units of costs: prices of the pair times 1e-8 of a token."""
    return int(10**pair.px_decimals)


def spot_ticket(
    exchange: Exchange, account: Account, pair: Pair, buys: bool, px: int, size: int, time: int
) -> Ticket:
    """Return a limit order on a spot or outcome market."""
    return Ticket(
        account=account,
        market=pair,
        oid=exchange.next_oid(),
        is_buy=buys,
        px=px,
        size=size,
        left=size,
        time=time,
    )


def move_tokens(
    exchange: Exchange,
    tx: Transaction,
    ticket: Ticket,
    tokens: int,
    dollars: int,
    tid: int,
    crossed: bool,
    word: str,
    micro: int,
) -> None:
    """Move tokens one way and dollars the other, and write the row.

    Parameters
    ----------
    exchange : Exchange
        Wallets and tables.
    tx : Transaction
        Where it happens.
    ticket : Ticket
        The order; its price is the price of the fill.
    tokens, dollars : int
        What changes hands, in units of 1e-8.
    tid : int
        The trade id; 0 where nobody is on the other side.
    crossed : bool
        Whether the order took.
    word : str
        The `dir`; empty for a plain trade.
    micro : int
        The fee in millionths: of the tokens for a buy on a spot pair, else of the dollars.
    """
    pair = ticket.market
    assert isinstance(pair, Pair)
    wallet = exchange.wallets[ticket.account.number]
    base, cash = wallet[pair.base], wallet["USDC"]
    before = base.balance
    sign = ticket.sign
    in_tokens = ticket.is_buy and not pair.is_outcome
    fee = rounded_share(tokens if in_tokens else dollars, micro, 10**6)
    closed, basis = step(
        base.basis_now(cost_unit(pair)),
        sign * tokens,
        ticket.px,
        fee if in_tokens else 0,
        cost_unit(pair),
    )
    base.basis = basis
    base.traded += sign * tokens
    cash.traded -= sign * dollars
    (base if in_tokens else cash).fees += fee
    # ASSUMED: a sell of tokens of which none was bought closes 0.
    fill = write_spot_fill(exchange, tx, ticket, before, tokens, closed or 0, tid, word)
    fill.crossed = crossed
    fill.fee = text(fee, WEI)
    fill.fee_token = pair.base if in_tokens else "USDC"


def write_spot_fill(
    exchange: Exchange,
    tx: Transaction,
    ticket: Ticket,
    before: int,
    tokens: int,
    closed: int,
    tid: int,
    word: str,
) -> Fill:
    """Write a row that takes and is free of fees, and return it.

    Parameters
    ----------
    exchange, tx, ticket, tokens, tid, word
        As `move_tokens` takes them.
    before : int
        The balance before it, in units of 1e-8.
    closed : int
        The closed PnL, in prices of the pair times 1e-8.
    """
    pair = ticket.market
    assert isinstance(pair, Pair)
    fill = Fill(
        coin=pair.coin,
        px=text(ticket.px, pair.px_decimals),
        sz=text(tokens, WEI),
        side="B" if ticket.is_buy else "A",
        time=tx.time,
        start_position=text(before, WEI),
        dir=word or ("Buy" if ticket.is_buy else "Sell"),
        closed_pnl=text(closed, WEI + pair.px_decimals),
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
