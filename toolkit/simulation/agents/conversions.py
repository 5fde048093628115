"""Conversions of outcome tokens: split, merge, negate, and merge a question.

Source: docs/live_service.md, section 7. A split turns a dollar into one Yes and one No of an
outcome; a merge turns them back. A negation turns one No of an outcome into one Yes of
every other outcome of its question: before and after it, the tokens pay a dollar if one of the
others happens. To merge a question
turns one Yes of each of its outcomes into a dollar. Each token of a conversion has a fill.
"""

from toolkit.rules.directions import CONVERSIONS
from toolkit.rules.spot_cost import SWAPS, swap_tokens
from toolkit.simulation.agents.spot_traders import OPENING_MS, spot_trader_numbers
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.engine.spot import fill_spot_order, write_spot_fill
from toolkit.simulation.markets import OUTCOMES, PAIRS, QUESTION, OutcomeMarket
from toolkit.simulation.quantities import ONE_TOKEN
from toolkit.simulation.random_draws import random_stream
from toolkit.times import HOUR, MINUTE

_MARKETS = {pair.coin: pair for pair in PAIRS}
_SPLIT, _MERGE, _NEGATE, _MERGE_QUESTION = CONVERSIONS
_DRAWN_DIRECTIONS = 4 * (_SPLIT,) + 2 * (_MERGE,) + 2 * (_NEGATE,) + (_MERGE_QUESTION,)


def convert_outcome(
    exchange: Exchange, time: int, number: int, direction: str, outcome: OutcomeMarket, share: float
) -> None:
    """Convert outcome tokens of an account in integer tokens, unless the outcome is settled.

    - ``number``: the account
    - ``direction``: one of `toolkit.rules.directions.CONVERSIONS`
    - ``outcome``: the outcome; to merge a question, any of its outcomes
    - ``share``: share of the account's balance to convert: of its USDC to split, else of its tokens
    """
    answers = [(answer, answer.sides[0]) for answer in QUESTION]
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
    tokens, unit = size * ONE_TOKEN, _MARKETS[OUTCOMES[0].sides[0]].unit
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


def draw_conversions(exchange: Exchange, count: int) -> None:
    """Draw all conversions.

    The market maker splits what it sells later. Each trader makes every kind of conversion once,
    and keeps tokens of a split until the settlement. The rest is random.
    """
    traders = spot_trader_numbers(exchange.accounts)
    opening, maker = exchange.start_ms + OPENING_MS, exchange.spot_maker.number
    first, second = QUESTION[:2]
    for outcome in OUTCOMES:
        exchange.schedule(opening - HOUR, convert_outcome, maker, _SPLIT, outcome, 0.03)
    for place, trader in enumerate(traders):
        time = opening + place * 7 * MINUTE
        for number, outcome in enumerate((OUTCOMES[0], *QUESTION)):
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
        outcomes = QUESTION if direction in (_NEGATE, _MERGE_QUESTION) else OUTCOMES
        exchange.schedule(
            exchange.start_ms + time,
            convert_outcome,
            traders[who % len(traders)],
            direction,
            outcomes[what % len(outcomes)],
            share * (0.05 if direction == _SPLIT else 1.0),
        )
