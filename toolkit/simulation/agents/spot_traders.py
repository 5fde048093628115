"""Spot traders: they trade tokens and outcomes, and hedgers are also short the same perp."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import HEDGER, SPOT_MAKER, Account
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.engine.spot import best_spot_price, fill_spot_order
from toolkit.simulation.markets import FOLLOWED_PERPS, OUTCOMES, PAIRS, PERPS, QUESTION, SPOT_PAIRS
from toolkit.simulation.quantities import ONE_TOKEN
from toolkit.simulation.random_draws import bell_draws, random_stream
from toolkit.times import HOUR

OPENING_MS = 6 * HOUR
"""Time from the start of history to the opening of the outcome markets."""

OUTCOME_HOURS = 30
"""Hours from the opening of outcome markets to their settlement."""

HEDGED_PAIRS = range(len(SPOT_PAIRS))
"""Indices of the pairs whose tokens are hedged."""

_HEDGES = 8
_HEDGE_BUY_SHARE = 0.7


def trade_spot(
    exchange: Exchange,
    time: int,
    number: int,
    place: int,
    is_buy: bool,
    share: float,
    chance: float,
) -> None:
    """Buy or sell on a spot or outcome market, against new quotes of the market maker.

    - ``number``, ``place``: indices of the account and of the pair
    - ``is_buy``: whether the account buys
    - ``share``: share of its money, or of its tokens, to trade; above 0.7 it sells all of them
    - ``chance``: the outcome's probability at this time
    """
    pair, maker, account = PAIRS[place], exchange.spot_maker, exchange.accounts[number]
    if pair.coin in exchange.settled:
        return
    px = best_spot_price(exchange, pair, time, chance, is_buy)
    wallet = exchange.wallets[number]
    if is_buy:  # the market maker cannot sell more tokens than it has
        inventory = exchange.wallets[maker.number][pair.base].balance // pair.unit
        size = min(int(wallet["USDC"].balance * (0.05 + 0.2 * share)) // px, inventory)
    else:
        size = wallet[pair.base].balance // pair.unit
        size = size if share > 0.7 else int(size * share)
    if size * px * (1 if is_buy else 5) < 10 * ONE_TOKEN:
        return
    taker = Ticket(account, pair, exchange.next_oid(), is_buy, px, size, time, tif="Ioc")
    taker.cloid = account.make_cloid(taker.oid)
    tx = exchange.next_transaction(time)
    for part in books.split_size(size, exchange.rng.random(), exchange.rng.random()):
        oid = exchange.next_oid()
        quote = Ticket(maker, pair, oid, not is_buy, px, part, time - 700, tif="Alo")
        exchange.record_status(quote, "open", quote.time, 3)
        tid = exchange.next_tid()
        fill_spot_order(exchange, tx, quote, part * pair.unit, tid, crossed=False)
        fill_spot_order(exchange, tx, taker, part * pair.unit, tid)
        exchange.record_status(quote, "filled", tx.time, tx.index)
    exchange.record_status(taker, "filled", tx.time, tx.index)


def hedge(
    exchange: Exchange, time: int, number: int, place: int, is_buy: bool, share: float
) -> None:
    """Trade tokens, and set a short position to the size of the tokens.

    - ``number``, ``place``, ``is_buy``, ``share``: as in `trade_spot`
    """
    trade_spot(exchange, time, number, place, is_buy, share, 0.0)
    pair = PAIRS[place]
    coin = FOLLOWED_PERPS[pair.base]
    lots = exchange.wallets[number][pair.base].balance // int(10 ** (WEI - PERPS[coin].sz_decimals))
    change = -lots - exchange.position_size(coin, number)
    if change:
        px = exchange.best_price(coin, time, change > 0)
        books.trade_market(exchange, time, exchange.accounts[number], coin, change, px)


def spot_trader_numbers(accounts: list[Account]) -> list[int]:
    """Return the numbers of the accounts that trade spot on a view of their own."""
    return [
        account.number
        for account in accounts
        if account.spot_share and account.strategy not in (SPOT_MAKER, HEDGER)
    ]


def draw_spot_intents(exchange: Exchange, count: int) -> None:
    """Draw who trades spot and when; outcome markets trade from their opening on.

    The chances of outcomes come from the seed of the prices, which several worlds may share.
    """
    traders, hours = spot_trader_numbers(exchange.accounts), exchange.hours
    *columns, chances = _draw_columns(exchange.seed, hours, count, len(traders))
    if exchange.prices.seed != exchange.seed:
        *_, chances = _draw_columns(exchange.prices.seed, hours, count, len(traders))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for time, trader, place, is_buy, share in rows:
        if not PAIRS[place].is_outcome or time > OPENING_MS:
            chance, time = float(chances[place, time // HOUR]), exchange.start_ms + time
            exchange.schedule(time, trade_spot, traders[trader], place, is_buy, share, chance)


def draw_hedges(exchange: Exchange) -> None:
    """Draw when hedgers trade: one pair each, with more buys than sells."""
    rng, hours = random_stream(exchange.seed, "hedges"), exchange.hours
    for account in exchange.accounts:
        if account.strategy != HEDGER:
            continue
        pair = HEDGED_PAIRS[account.number % len(HEDGED_PAIRS)]
        account.coins = [FOLLOWED_PERPS[PAIRS[pair].base]]
        times = rng.integers(3 * HOUR, hours * HOUR, _HEDGES + hours // 24).tolist()
        sides, shares = rng.random(len(times)).tolist(), rng.random(len(times)).tolist()
        for time, side, share in zip(times, sides, shares, strict=True):
            is_buy = side < _HEDGE_BUY_SHARE
            # A share above 0.7 would sell all tokens.
            time += exchange.start_ms
            exchange.schedule(time, hedge, account.number, pair, is_buy, 0.7 * share)


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
