"""Spot trading: pairs and outcome markets, dust, and how outcomes are settled.

A spot balance is counted in units of 1e-8. Whoever buys a token of a pair pays the fee in that
token; who sells, and everybody on outcome markets, pays it in USDC.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.simulation.accounts import Account
from toolkit.simulation.books import parts_of
from toolkit.simulation.draws import bell, stream
from toolkit.simulation.exchange import Exchange, Transaction
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import OUTCOMES, PAIRS, PERPS, QUESTION, Pair
from toolkit.simulation.orders import DUST, Ticket
from toolkit.simulation.quantities import WEI
from toolkit.simulation.roles import HEDGER, SPOT_MAKER
from toolkit.simulation.spot_fills import move_tokens, spot_ticket
from toolkit.times import HOUR

__all__ = ["OUTCOME_HOURS", "Dusting", "Outcome", "SpotIntent", "draw_spot_intents"]

TAKER_MICRO, MAKER_MICRO = 700, 400
"""Spot fees in millionths."""

OUTCOME_HOURS = 30
"""Outcome markets open six hours after the start, and this much later they are settled."""

ONE = 10**WEI
_DUST = ONE  # a dollar
_COINS = [perp.coin for perp in PERPS]


@dataclass(frozen=True, slots=True)
class SpotIntent:
    """Somebody buys or sells on a spot or outcome market.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    account, pair : int
        Who, and where.
    buys : bool
        Whether it wants to buy.
    share : float
        Share of its money, or of its tokens, to trade; above 0.7 it sells all it has.
    chance : float
        An outcome's probability then.
    """

    time: int
    account: int
    pair: int
    buys: bool
    share: float
    chance: float

    def happen(self, floor: Floor) -> None:
        """Trade with market makers who have just quoted."""
        exchange = floor.exchange
        pair = PAIRS[self.pair]
        if pair.coin in floor.settled:
            return
        px = _best(exchange, pair, self.time, self.chance, self.buys)
        size = min(_size(exchange, self, pair, px), _offered(floor, pair, self.buys))
        if size * px * (1 if self.buys else 5) < 10 * ONE:
            return
        account = exchange.accounts[self.account]
        taker = spot_ticket(exchange, account, pair, self.buys, px, size, self.time)
        taker.tif = "Ioc"
        taker.cloid = account.cloid(taker.oid)
        tx = exchange.transaction(self.time)
        for part in parts_of(size, exchange.luck.random(), exchange.luck.random()):
            quote = spot_ticket(
                exchange, floor.spot_maker, pair, not self.buys, px, part, self.time - 700
            )
            quote.tif = "Alo"
            exchange.journal.record(quote, "open", quote.time, 3)
            tid = exchange.next_tid()
            _fill(exchange, tx, quote, part, tid, crossed=False)
            _fill(exchange, tx, taker, part, tid, crossed=True)
            exchange.journal.record(quote, "filled", tx.time, tx.index)
        exchange.journal.record(taker, "filled", tx.time, tx.index)


@dataclass(frozen=True, slots=True)
class Dusting:
    """Midnight: what is worth less than a dollar is turned into USDC."""

    time: int

    def happen(self, floor: Floor) -> None:
        """Sell everybody's dust at the best bid, free of fees."""
        exchange = floor.exchange
        for pair in PAIRS:
            if pair.is_outcome:
                continue
            px = _best(exchange, pair, self.time, 0.0, False)
            for account in exchange.accounts:
                if not account.spot_share:
                    continue
                amount = exchange.wallets[account.number][pair.base].balance
                if 0 < amount * px < _DUST * 10**pair.px_decimals:
                    _convert(exchange, account, pair, px, amount, self.time)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an outcome market: its tokens pay a dollar, or nothing."""

    time: int
    pair: int
    happened: bool

    def happen(self, floor: Floor) -> None:
        """Take everybody's tokens and pay for them."""
        exchange = floor.exchange
        pair = PAIRS[self.pair]
        floor.settled.add(pair.coin)
        tx = exchange.transaction(self.time)
        px = 10**pair.px_decimals if self.happened else 0
        for account in exchange.accounts:
            size = exchange.wallets[account.number][pair.base].balance // ONE
            if size > 0:
                ticket = spot_ticket(exchange, account, pair, False, px, size, self.time)
                _fill(
                    exchange, tx, ticket, size, exchange.next_tid(), crossed=True,
                    word="Settlement", micro=0,
                )  # fmt: skip


def draw_spot_intents(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], market: int
) -> Iterator[SpotIntent]:
    """Draw who trades spot when; outcome markets trade until they are settled.

    Their chances are drawn from the seed of the `market`, which several worlds may share.
    """
    others = (SPOT_MAKER, HEDGER)  # they trade spot for reasons of their own
    people = [a.number for a in accounts if a.spot_share and a.manner not in others]
    times, who, pair, buys, share, chances = _draws(seed, hours, count, len(people))
    if market != seed:
        *_, chances = _draws(market, hours, count, len(people))
    for time, person, place, buying, part in zip(
        times.tolist(), who.tolist(), pair.tolist(), buys.tolist(), share.tolist(), strict=True
    ):
        outcome = PAIRS[place].is_outcome
        if not outcome or time > 6 * HOUR:
            chance = float(chances[place, time // HOUR])
            yield SpotIntent(start_ms + time, people[person], place, buying, part, chance)


def _draws(seed: int, hours: int, count: int, people: int) -> tuple[NDArray[Any], ...]:
    """Draw times, people, pairs, sides and shares, and each hour's chances of every outcome."""
    rng = stream(seed, "spot")
    times = np.sort(rng.integers(2 * HOUR, hours * HOUR, count))
    who = rng.integers(0, people, count)
    places = [place for place, pair in enumerate(PAIRS) for _ in range(1 if pair.is_outcome else 3)]
    pair = np.array(places)[rng.integers(0, len(places), count)]
    buys = rng.random(count) < 0.55
    share = rng.random(count)
    return times, who, pair, buys, share, _chances(rng, hours)


def _chances(rng: np.random.Generator, hours: int) -> NDArray[Any]:
    """Draw each hour's price of every pair: those of what excludes each other add up to 1."""
    walks = np.cumsum(bell(rng, len(OUTCOMES), hours), axis=1) * 0.03
    chances = np.clip(0.5 + walks, 0.03, 0.97)
    answers = [place for place, outcome in enumerate(OUTCOMES) if outcome in QUESTION]
    weights = np.exp2(4 * walks[answers])
    chances[answers] = np.clip(weights / weights.sum(axis=0), 0.03, 0.97)
    sides = np.stack([chances, 1 - chances], axis=1).reshape(-1, hours)
    others = np.zeros((len(PAIRS) - len(sides), hours))
    return np.concatenate([others, sides])


def _offered(floor: Floor, pair: Pair, buys: bool) -> int:
    """Return how many lots the market maker can sell to a buyer; outcomes have no genesis."""
    wallet = floor.exchange.wallets[floor.spot_maker.number]
    lots = wallet[pair.base].balance // int(10 ** (WEI - pair.sz_decimals))
    return lots if buys else lots + 10**15


def _best(exchange: Exchange, pair: Pair, time: int, chance: float, is_buy: bool) -> int:
    """Give the best price: that of the perp it follows, or the outcome's chance."""
    if pair.is_outcome:
        spread = 200_000
        px = int(chance * 1_000.0) * 100_000 + (spread if is_buy else -spread)
        return px // spread * spread
    coin = _COINS.index(pair.follows)
    side = exchange.prices.ask if is_buy else exchange.prices.bid
    px = int(side[coin, exchange.minute(time)])
    return px * int(10 ** (pair.px_decimals - PERPS[coin].px_decimals))


def _size(exchange: Exchange, intent: SpotIntent, pair: Pair, px: int) -> int:
    """Give the size in lots: what the money or the tokens allow."""
    wallet = exchange.wallets[intent.account]
    if intent.buys:
        return int(wallet["USDC"].balance * (0.05 + 0.2 * intent.share)) // px
    lots = wallet[pair.base].balance // int(10 ** (WEI - pair.sz_decimals))
    return lots if intent.share > 0.7 else int(lots * intent.share)


def _fill(
    exchange: Exchange,
    tx: Transaction,
    ticket: Ticket,
    size: int,
    tid: int,
    *,
    crossed: bool,
    word: str = "",
    micro: int | None = None,
) -> None:
    """Move tokens one way and dollars the other."""
    pair = ticket.market
    assert isinstance(pair, Pair)
    tokens = size * int(10 ** (WEI - pair.sz_decimals))
    move_tokens(
        exchange, tx, ticket, tokens, size * ticket.px, tid, crossed, word,
        (TAKER_MICRO if crossed else MAKER_MICRO) if micro is None else micro,
    )  # fmt: skip
    ticket.left -= size


def _convert(
    exchange: Exchange, account: Account, pair: Pair, px: int, amount: int, time: int
) -> None:
    """Turn dust into USDC; such fills have the trade id 0."""
    ticket = spot_ticket(exchange, account, pair, False, px, 0, time)
    ticket.kind = DUST
    tx = exchange.transaction(time)
    dollars = amount * px // int(10**pair.px_decimals)
    move_tokens(exchange, tx, ticket, amount, dollars, 0, True, DUST, 0)
    exchange.journal.record(ticket, "filled", time, tx.index)
