"""Spot traders: they trade tokens and convert outcomes; hedgers are also short the same perp.

Source of conversions: docs/live_service.md, section 7. A split turns a dollar into one Yes and one
No of an outcome; a merge turns them back. A negation turns one No of an outcome into one Yes of
every other outcome of its question: before and after it, the tokens pay a dollar if one of the
others happens. To merge a question turns one Yes of each of its outcomes into a dollar. Each token
of a conversion has a fill.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.rules.directions import CONVERSIONS
from toolkit.rules.spot_cost import SWAPS, WEI, swap_tokens
from toolkit.simulation import markets
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Account, Ticket
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.spot import best_spot_price, fill_spot_order, write_spot_fill
from toolkit.simulation.exact import ONE_TOKEN, bell_draws, random_stream
from toolkit.times import HOUR, MINUTE

OPENING_MS = 6 * HOUR
"""Time from the start of history to the opening of the outcome markets."""

OUTCOME_HOURS = 30
"""Hours from the opening of outcome markets to their settlement."""

HEDGED_PAIRS = range(len(markets.SPOT_PAIRS))
"""Indices of the pairs whose tokens are hedged."""

_HEDGES = 8
_HEDGE_BUY_SHARE = 0.7


_MARKETS = {pair.coin: pair for pair in markets.PAIRS}
_SPLIT, _MERGE, _NEGATE, _MERGE_QUESTION = CONVERSIONS
_DRAWN_DIRECTIONS = 4 * (_SPLIT,) + 2 * (_MERGE,) + 2 * (_NEGATE,) + (_MERGE_QUESTION,)


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
    pair, maker, account = markets.PAIRS[place], exchange.spot_maker, exchange.accounts[number]
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
    pair = markets.PAIRS[place]
    coin = markets.FOLLOWED_PERPS[pair.base]
    lots = exchange.wallets[number][pair.base].balance // int(
        10 ** (WEI - markets.PERPS[coin].sz_decimals)
    )
    change = -lots - exchange.position_size(coin, number)
    if change:
        px = exchange.best_price(coin, time, change > 0)
        books.trade_market(exchange, time, exchange.accounts[number], coin, change, px)


def convert_outcome(
    exchange: Exchange,
    time: int,
    number: int,
    direction: str,
    outcome: markets.OutcomeMarket,
    share: float,
) -> None:
    """Convert outcome tokens of an account in integer tokens, unless the outcome is settled.

    - ``number``: the account
    - ``direction``: one of `toolkit.rules.directions.CONVERSIONS`
    - ``outcome``: the outcome; to merge a question, any of its outcomes
    - ``share``: share of the account's balance to convert: of its USDC to split, else of its tokens
    """
    answers = [(answer, answer.sides[0]) for answer in markets.QUESTION]
    leaving, coming = {
        _SPLIT: ([], list(outcome.sides)),
        _MERGE: (list(outcome.sides), []),
        _NEGATE: ([outcome.sides[1]], [coin for answer, coin in answers if answer != outcome]),
        _MERGE_QUESTION: ([coin for _, coin in answers], []),
    }[direction]
    if not exchange.settled.isdisjoint([*leaving, *coming]):
        return
    wallet, account = exchange.wallets[number], exchange.accounts[number]
    paid = [_MARKETS[coin].base for coin in leaving] or ["USDC"]
    size = int(min(wallet[token].balance for token in paid) // ONE_TOKEN * share)
    if not size:
        return
    tx = exchange.next_transaction(time)
    # ASSUMED: The price of each leg of a conversion is 1 / number of legs. The legs of a split
    # or a merge therefore add up to one dollar. The quote token of outcome markets is USDC.
    px, oid = ONE_TOKEN // len(leaving + coming), exchange.next_oid()
    tickets = []
    for coin in (*leaving, *coming):
        is_buy = coin in coming
        ticket = Ticket(account, _MARKETS[coin], exchange.next_oid(), is_buy, px, size, time)
        ticket.oid, ticket.direction = oid, direction
        tickets.append(ticket)
    tokens, unit = size * ONE_TOKEN, _MARKETS[markets.OUTCOMES[0].sides[0]].unit
    if direction not in SWAPS:
        # ASSUMED: A merge gives its legs the same closed PnL as sells at a price of 1 / number of
        # legs.
        for ticket in tickets:
            fill_spot_order(exchange, tx, ticket, tokens, 0)
        return
    # A swap closes nothing, and the cost moves along.
    balances = [wallet[_MARKETS[coin].base] for coin in (*leaving, *coming)]
    for ticket, balance in zip(tickets, balances, strict=True):
        write_spot_fill(exchange, tx, ticket, balance.balance, tokens, 0)
    bases = [(balance.current_basis(unit), tokens) for balance in balances]
    left, came = swap_tokens(bases[: len(leaving)], bases[len(leaving) :], unit)
    for ticket, balance, basis in zip(tickets, balances, (*left, *came), strict=True):
        balance.traded += ticket.sign * tokens
        balance.basis = basis


def spot_trader_numbers(accounts: list[Account]) -> list[int]:
    """Return the numbers of the accounts that trade spot on a view of their own."""
    return [
        account.number
        for account in accounts
        if account.spot_share and account.strategy not in ("spot maker", "hedger")
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
        if not markets.PAIRS[place].is_outcome or time > OPENING_MS:
            chance, time = float(chances[place, time // HOUR]), exchange.start_ms + time
            exchange.schedule(time, trade_spot, traders[trader], place, is_buy, share, chance)


def draw_conversions(exchange: Exchange, count: int) -> None:
    """Draw all conversions.

    The market maker splits what it sells later. Each trader makes every kind of conversion once,
    and keeps tokens of a split until the settlement. The rest is random.
    """
    traders = spot_trader_numbers(exchange.accounts)
    opening, maker = exchange.start_ms + OPENING_MS, exchange.spot_maker.number
    first, second = markets.QUESTION[:2]
    for outcome in markets.OUTCOMES:
        exchange.schedule(opening - HOUR, convert_outcome, maker, _SPLIT, outcome, 0.03)
    for place, trader in enumerate(traders):
        time = opening + place * 7 * MINUTE
        for number, outcome in enumerate((markets.OUTCOMES[0], *markets.QUESTION)):
            exchange.schedule(time + number, convert_outcome, trader, _SPLIT, outcome, 0.02)
        exchange.schedule(time + 10_000, convert_outcome, trader, _NEGATE, first, 0.7)
        exchange.schedule(time + 20_000, convert_outcome, trader, _MERGE_QUESTION, first, 0.4)
        exchange.schedule(time + 30_000, convert_outcome, trader, _MERGE, second, 0.6)
    rng = random_stream(exchange.seed, "conversions")
    times = rng.integers(OPENING_MS + HOUR, exchange.end_ms - exchange.start_ms, count).tolist()
    kinds = rng.integers(0, len(_DRAWN_DIRECTIONS), count).tolist()
    draws = rng.integers(0, 10**9, (count, 2)).tolist()
    shares = rng.random(count).tolist()
    for time, kind, (who, what), share in zip(times, kinds, draws, shares, strict=True):
        direction = _DRAWN_DIRECTIONS[kind]
        outcomes = markets.QUESTION if direction in (_NEGATE, _MERGE_QUESTION) else markets.OUTCOMES
        exchange.schedule(
            exchange.start_ms + time,
            convert_outcome,
            traders[who % len(traders)],
            direction,
            outcomes[what % len(outcomes)],
            share * (0.05 if direction == _SPLIT else 1.0),
        )


def draw_hedges(exchange: Exchange) -> None:
    """Draw when hedgers trade: one pair each, with more buys than sells."""
    rng, hours = random_stream(exchange.seed, "hedges"), exchange.hours
    for account in exchange.accounts:
        if account.strategy != "hedger":
            continue
        pair = HEDGED_PAIRS[account.number % len(HEDGED_PAIRS)]
        account.coins = [markets.FOLLOWED_PERPS[markets.PAIRS[pair].base]]
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
    places = [
        place
        for place, pair in enumerate(markets.PAIRS)
        for _ in range(1 if pair.is_outcome else 3)
    ]
    columns: list[NDArray[Any]] = [
        times,
        rng.integers(0, traders, count),
        np.array(places)[rng.integers(0, len(places), count)],
        rng.random(count) < 0.55,
        rng.random(count),
    ]
    # Prices of exclusive outcomes add up to 1.
    walks = np.cumsum(bell_draws(rng, len(markets.OUTCOMES), hours), axis=1) * 0.03
    chances = np.clip(0.5 + walks, 0.03, 0.97)
    answers = [
        place for place, outcome in enumerate(markets.OUTCOMES) if outcome in markets.QUESTION
    ]
    weights = np.exp2(4 * walks[answers])
    chances[answers] = np.clip(weights / weights.sum(axis=0), 0.03, 0.97)
    sides = np.stack([chances, 1 - chances], axis=1).reshape(-1, hours)
    others = np.zeros((len(markets.PAIRS) - len(sides), hours))
    return [*columns, np.concatenate([others, sides])]
