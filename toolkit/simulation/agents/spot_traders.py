"""Spot traders: they trade tokens and outcomes, and hedgers are also short the same perp."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import HEDGER, SPOT_MAKER, Account
from toolkit.simulation.engine.books import market_ticket, split_size
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.spot import best_spot_price, fill_spot_order, spot_lot, spot_ticket
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import FOLLOWED_PERPS, OUTCOMES, PAIRS, PERPS, QUESTION, Pair
from toolkit.simulation.quantities import ONE_TOKEN
from toolkit.simulation.random_draws import bell_draws, random_stream
from toolkit.times import HOUR

OPENING_MS = 6 * HOUR
"""Time from the start of history to the opening of the outcome markets."""

OUTCOME_HOURS = 30
"""Hours from the opening of outcome markets to their settlement."""

HEDGED_PAIRS = [place for place, pair in enumerate(PAIRS) if pair.follows]
"""Indices of the pairs whose tokens are hedged."""

_HEDGES = 8
_HEDGE_BUY_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class SpotIntent:
    """An account buys or sells on a spot or outcome market.

    - ``time``: in milliseconds
    - ``account``, ``pair``: the account and the market
    - ``is_buy``: whether it buys
    - ``share``: share of its money, or of its tokens, to trade; above 0.7 it sells all of them
    - ``chance``: the outcome's probability at this time
    """

    time: int
    account: int
    pair: int
    is_buy: bool
    share: float
    chance: float

    def apply(self, state: SimulationState) -> None:
        """Trade against new quotes of the market maker."""
        exchange = state.exchange
        pair = PAIRS[self.pair]
        if pair.coin in state.settled:
            return
        px = best_spot_price(exchange, pair, self.time, self.chance, self.is_buy)
        size = self._largest_size(exchange, pair, px)
        inventory = exchange.wallets[state.spot_maker.number][pair.base].balance
        if self.is_buy:  # the market maker cannot sell more tokens than it has
            size = min(size, inventory // spot_lot(pair))
        if size * px * (1 if self.is_buy else 5) < 10 * ONE_TOKEN:
            return
        account = exchange.accounts[self.account]
        taker = spot_ticket(exchange, account, pair, self.is_buy, px, size, self.time)
        taker.tif = "Ioc"
        taker.cloid = account.make_cloid(taker.oid)
        tx = exchange.next_transaction(self.time)
        for part in split_size(size, exchange.rng.random(), exchange.rng.random()):
            quote = spot_ticket(
                exchange, state.spot_maker, pair, not self.is_buy, px, part, self.time - 700
            )
            quote.tif = "Alo"
            exchange.journal.record_status(quote, "open", quote.time, 3)
            tid = exchange.next_tid()
            fill_spot_order(exchange, tx, quote, part, tid, crossed=False)
            fill_spot_order(exchange, tx, taker, part, tid, crossed=True)
            exchange.journal.record_status(quote, "filled", tx.time, tx.index)
        exchange.journal.record_status(taker, "filled", tx.time, tx.index)

    def _largest_size(self, exchange: Exchange, pair: Pair, px: int) -> int:
        """Return the size in lots that the account's money or tokens allow."""
        wallet = exchange.wallets[self.account]
        if self.is_buy:
            return int(wallet["USDC"].balance * (0.05 + 0.2 * self.share)) // px
        lots = wallet[pair.base].balance // spot_lot(pair)
        return lots if self.share > 0.7 else int(lots * self.share)


@dataclass(frozen=True, slots=True)
class Hedge:
    """A hedger trades tokens and sets its short position to the size of its tokens."""

    time: int
    account: int
    pair: int
    is_buy: bool
    share: float

    def apply(self, state: SimulationState) -> None:
        """Trade spot first, then the perp."""
        SpotIntent(self.time, self.account, self.pair, self.is_buy, self.share, 0.0).apply(state)
        exchange, token = state.exchange, PAIRS[self.pair].base
        coin = FOLLOWED_PERPS[token]
        balance = exchange.wallets[self.account][token].balance
        lots = balance // int(10 ** (WEI - PERPS[coin].sz_decimals))
        change = -lots - exchange.position_size(coin, self.account)
        if not change:
            return
        account = exchange.accounts[self.account]
        px = exchange.best_price(coin, self.time, change > 0)
        ticket = market_ticket(exchange, account, coin, change, px, self.time)
        state.books.execute_order(exchange.next_transaction(self.time), coin, ticket)


def spot_trader_numbers(accounts: list[Account]) -> list[int]:
    """Return the numbers of the accounts that trade spot on a view of their own."""
    return [
        account.number
        for account in accounts
        if account.spot_share and account.strategy not in (SPOT_MAKER, HEDGER)
    ]


def draw_spot_intents(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], market: int
) -> Iterator[SpotIntent]:
    """Draw who trades spot and when; outcome markets trade from their opening on.

    The chances of outcomes come from the seed of the `market`, which several worlds may share.
    """
    traders = spot_trader_numbers(accounts)
    *columns, chances = _draw_columns(seed, hours, count, len(traders))
    if market != seed:
        *_, chances = _draw_columns(market, hours, count, len(traders))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for time, trader, place, is_buy, share in rows:
        if not PAIRS[place].is_outcome or time > OPENING_MS:
            chance = float(chances[place, time // HOUR])
            yield SpotIntent(start_ms + time, traders[trader], place, is_buy, share, chance)


def draw_hedges(seed: int, start_ms: int, hours: int, accounts: list[Account]) -> list[Hedge]:
    """Draw when hedgers trade, by time: one pair each, with more buys than sells."""
    rng = random_stream(seed, "hedges")
    hedges = []
    for account in accounts:
        if account.strategy != HEDGER:
            continue
        pair = HEDGED_PAIRS[account.number % len(HEDGED_PAIRS)]
        account.coins = [FOLLOWED_PERPS[PAIRS[pair].base]]
        times = rng.integers(3 * HOUR, hours * HOUR, _HEDGES + hours // 24)
        sides, shares = rng.random(len(times)), rng.random(len(times))
        for time, side, share in zip(times.tolist(), sides, shares, strict=True):
            is_buy = bool(side < _HEDGE_BUY_SHARE)
            share = 0.7 * float(share)  # a larger share would sell all tokens
            hedges.append(Hedge(start_ms + time, account.number, pair, is_buy, share))
    return sorted(hedges, key=attrgetter("time"))


def _draw_columns(seed: int, hours: int, count: int, traders: int) -> list[NDArray[Any]]:
    """Draw times, traders, pairs, sides and shares, and each hour's chances of every outcome."""
    rng = random_stream(seed, "spot")
    times = np.sort(rng.integers(2 * HOUR, hours * HOUR, count))
    places = [place for place, pair in enumerate(PAIRS) for _ in range(1 if pair.is_outcome else 3)]
    return [
        times,
        rng.integers(0, traders, count),
        np.array(places)[rng.integers(0, len(places), count)],
        rng.random(count) < 0.55,
        rng.random(count),
        _draw_chances(rng, hours),
    ]


def _draw_chances(rng: np.random.Generator, hours: int) -> NDArray[Any]:
    """Draw each hour's price of every pair; prices of exclusive outcomes add up to 1."""
    walks = np.cumsum(bell_draws(rng, len(OUTCOMES), hours), axis=1) * 0.03
    chances = np.clip(0.5 + walks, 0.03, 0.97)
    answers = [place for place, outcome in enumerate(OUTCOMES) if outcome in QUESTION]
    weights = np.exp2(4 * walks[answers])
    chances[answers] = np.clip(weights / weights.sum(axis=0), 0.03, 0.97)
    sides = np.stack([chances, 1 - chances], axis=1).reshape(-1, hours)
    others = np.zeros((len(PAIRS) - len(sides), hours))
    return np.concatenate([others, sides])
