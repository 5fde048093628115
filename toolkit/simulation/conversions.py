"""Conversions of outcome tokens: split, merge, negate, and merge a question.

Source: docs/live_service.md, section 7. A dollar splits into one Yes and one No of an outcome,
and both merge back. One No of an outcome becomes one Yes of every other outcome of its question:
both pay a dollar if one of the others happens. One Yes of every outcome of a question merges
into a dollar. Each leg leaves a fill.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolkit.rules.directions import CONVERSIONS
from toolkit.rules.spot_cost import SWAPS, Basis, convert
from toolkit.simulation.accounts import Account
from toolkit.simulation.draws import stream
from toolkit.simulation.exchange import Exchange, Transaction
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import OUTCOMES, PAIRS, QUESTION, OutcomeMarket
from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import WEI
from toolkit.simulation.roles import HEDGER, SPOT_MAKER
from toolkit.simulation.spot_fills import cost_unit, move_tokens, spot_ticket, write_spot_fill
from toolkit.times import HOUR, MINUTE

__all__ = ["Conversion", "draw_conversions"]

ONE = 10**WEI
_OPENING = 6 * HOUR  # outcome markets open
_MARKETS = {pair.coin: pair for pair in PAIRS}
_SPLIT, _MERGE, _NEGATE, _MERGE_QUESTION = CONVERSIONS
_WORDS = 4 * (_SPLIT,) + 2 * (_MERGE,) + 2 * (_NEGATE,) + (_MERGE_QUESTION,)

Leg = tuple[str, bool]
"""A market, and whether its token comes in."""


def _split(outcome: OutcomeMarket) -> list[Leg]:
    return [(coin, True) for coin in outcome.sides]


def _merge(outcome: OutcomeMarket) -> list[Leg]:
    return [(coin, False) for coin in outcome.sides]


def _negate(outcome: OutcomeMarket) -> list[Leg]:
    others = [other.sides[0] for other in QUESTION if other != outcome]
    return [(outcome.sides[1], False), *((coin, True) for coin in others)]


def _merge_question(outcome: OutcomeMarket) -> list[Leg]:
    return [(answer.sides[0], False) for answer in QUESTION]


_LEGS: dict[str, Callable[[OutcomeMarket], list[Leg]]] = {
    _SPLIT: _split,
    _MERGE: _merge,
    _NEGATE: _negate,
    _MERGE_QUESTION: _merge_question,
}
_OF_QUESTIONS = (_NEGATE, _MERGE_QUESTION)


@dataclass(frozen=True, slots=True)
class Conversion:
    """An account converts outcome tokens.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    account : int
        Who.
    word : str
        One of `toolkit.rules.directions.CONVERSIONS`.
    outcome : OutcomeMarket
        Of which outcome; to merge a question any of its outcomes.
    share : float
        How much of what the account has: of its USDC to split, else of its tokens.
    """

    time: int
    account: int
    word: str
    outcome: OutcomeMarket
    share: float

    def happen(self, floor: Floor) -> None:
        """Convert as many whole tokens as the share allows; settled outcomes stay as they are."""
        exchange = floor.exchange
        legs = _LEGS[self.word](self.outcome)
        if any(coin in floor.settled for coin, _ in legs):
            return
        wallet = exchange.wallets[self.account]
        given = [_MARKETS[coin].base for coin, comes in legs if not comes] or ["USDC"]
        size = int(min(wallet[token].balance for token in given) // ONE * self.share)
        if not size:
            return
        tx = exchange.transaction(self.time)
        # ASSUMED: the price of every leg is 1 over the number of legs, so that the legs of a
        # split or a merge add up to a dollar. The quote token of outcomes is USDC.
        px = ONE // len(legs)
        oid = exchange.next_oid()
        tickets = [
            spot_ticket(
                exchange,
                exchange.accounts[self.account],
                _MARKETS[coin],
                comes,
                px,
                size,
                self.time,
            )
            for coin, comes in legs
        ]
        for ticket in tickets:
            ticket.oid = oid
        if self.word in SWAPS:
            _swap(exchange, tx, tickets, self.word)
            return
        # ASSUMED: legs that merge state a closed PnL like sells at this price.
        for ticket in tickets:
            move_tokens(exchange, tx, ticket, size * ONE, size * px, 0, True, self.word, 0)


def draw_conversions(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account]
) -> list[Conversion]:
    """Return all conversions, by time.

    The market maker splits what it sells later. Each trader runs through every kind once, and
    keeps tokens of a split to the settlement. The rest is drawn.
    """
    maker = next(account.number for account in accounts if account.manner == SPOT_MAKER)
    people = [a.number for a in accounts if a.spot_share and a.manner not in (SPOT_MAKER, HEDGER)]
    conversions = [
        Conversion(start_ms + _OPENING - HOUR, maker, _SPLIT, outcome, 0.03) for outcome in OUTCOMES
    ]
    for place, person in enumerate(people):
        time = start_ms + _OPENING + place * 7 * MINUTE
        conversions += _tour(time, person)
    rng = stream(seed, "conversions")
    times = rng.integers(_OPENING + HOUR, hours * HOUR, count).tolist()
    words = rng.integers(0, len(_WORDS), count).tolist()
    lucks = rng.integers(0, 10**9, (count, 2)).tolist()
    for time, word, (who, what), share in zip(times, words, lucks, rng.random(count), strict=True):
        kind = _WORDS[word]
        outcomes = QUESTION if kind in _OF_QUESTIONS else OUTCOMES
        part = float(share) * (0.05 if kind == _SPLIT else 1.0)
        conversions.append(
            Conversion(
                start_ms + time,
                people[who % len(people)],
                kind,
                outcomes[what % len(outcomes)],
                part,
            )
        )
    return sorted(conversions, key=_time)


def _tour(time: int, who: int) -> Iterator[Conversion]:
    """Yield every kind of conversion of one account, within a minute."""
    first, second = QUESTION[:2]
    for place, outcome in enumerate((OUTCOMES[0], *QUESTION)):
        yield Conversion(time + place, who, _SPLIT, outcome, 0.02)
    yield Conversion(time + 10_000, who, _NEGATE, first, 0.7)
    yield Conversion(time + 20_000, who, _MERGE_QUESTION, first, 0.4)
    yield Conversion(time + 30_000, who, _MERGE, second, 0.6)


def _swap(exchange: Exchange, tx: Transaction, tickets: list[Ticket], word: str) -> None:
    """Swap tokens for others without cash: nothing is closed, and the cost moves along."""
    wallet = exchange.wallets[tickets[0].account.number]
    holdings = [wallet[_MARKETS[ticket.market.coin].base] for ticket in tickets]
    unit = cost_unit(_MARKETS[tickets[0].market.coin])
    leaving: list[tuple[Basis, int]] = []
    coming: list[tuple[Basis, int]] = []
    for ticket, holding in zip(tickets, holdings, strict=True):
        size = ticket.size * ONE
        write_spot_fill(exchange, tx, ticket, holding.balance, size, 0, 0, word)
        (coming if ticket.is_buy else leaving).append((holding.basis_now(unit), size))
    left, came = map(iter, convert(leaving, coming, unit))
    for ticket, holding in zip(tickets, holdings, strict=True):
        holding.traded += ticket.sign * ticket.size * ONE
        holding.basis = next(came if ticket.is_buy else left)


def _time(conversion: Conversion) -> int:
    return conversion.time
