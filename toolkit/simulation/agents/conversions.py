"""Conversions of outcome tokens: split, merge, negate, and merge a question.

Source: docs/live_service.md, section 7. A split turns a dollar into one Yes and one No of an
outcome; a merge turns them back. A negation turns one No of an outcome into one Yes of
every other outcome of its question: before and after it, the tokens pay a dollar if one of the
others happens. To merge a question
turns one Yes of each of its outcomes into a dollar. Each token of a conversion has a fill.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from toolkit.rules.directions import CONVERSIONS
from toolkit.rules.spot_cost import SWAPS, CostBasis, swap_tokens
from toolkit.simulation.agents.spot_traders import OPENING_MS, spot_trader_numbers
from toolkit.simulation.engine.accounts import SPOT_MAKER, Account
from toolkit.simulation.engine.exchange import Exchange, Transaction
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.engine.spot import cost_unit, move_tokens, spot_ticket, write_spot_fill
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import OUTCOMES, PAIRS, QUESTION, OutcomeMarket
from toolkit.simulation.quantities import ONE_TOKEN
from toolkit.simulation.random_draws import random_stream
from toolkit.times import HOUR, MINUTE

_MARKETS = {pair.coin: pair for pair in PAIRS}
_SPLIT, _MERGE, _NEGATE, _MERGE_QUESTION = CONVERSIONS
_DRAWN_DIRECTIONS = 4 * (_SPLIT,) + 2 * (_MERGE,) + 2 * (_NEGATE,) + (_MERGE_QUESTION,)

Leg = tuple[str, bool]
"""A market, and whether its token comes in."""


def _conversion_legs(direction: str, outcome: OutcomeMarket) -> list[Leg]:
    if direction == _SPLIT:
        return [(coin, True) for coin in outcome.sides]
    if direction == _MERGE:
        return [(coin, False) for coin in outcome.sides]
    if direction == _NEGATE:
        others = [other.sides[0] for other in QUESTION if other != outcome]
        return [(outcome.sides[1], False), *((coin, True) for coin in others)]
    return [(answer.sides[0], False) for answer in QUESTION]


@dataclass(frozen=True, slots=True)
class OutcomeConversion:
    """An account converts outcome tokens.

    - ``time``: in milliseconds
    - ``account``: the account
    - ``direction``: one of `toolkit.rules.directions.CONVERSIONS`
    - ``outcome``: the outcome; to merge a question, any of its outcomes
    - ``share``: share of the account's balance to convert: of its USDC to split, else of its tokens
    """

    time: int
    account: int
    direction: str
    outcome: OutcomeMarket
    share: float

    def apply(self, state: SimulationState) -> None:
        """Convert the share of the balance in integer tokens, unless the outcome is settled."""
        exchange = state.exchange
        legs = _conversion_legs(self.direction, self.outcome)
        if any(coin in state.settled for coin, _ in legs):
            return
        wallet = exchange.wallets[self.account]
        paid = [_MARKETS[coin].base for coin, comes_in in legs if not comes_in] or ["USDC"]
        size = int(min(wallet[token].balance for token in paid) // ONE_TOKEN * self.share)
        if not size:
            return
        tx = exchange.next_transaction(self.time)
        # ASSUMED: The price of each leg of a conversion is 1 / number of legs. The legs of a split
        # or a merge therefore add up to one dollar. The quote token of outcome markets is USDC.
        px = ONE_TOKEN // len(legs)
        oid = exchange.next_oid()
        account = exchange.accounts[self.account]
        tickets = [
            spot_ticket(exchange, account, _MARKETS[coin], comes_in, px, size, self.time)
            for coin, comes_in in legs
        ]
        for ticket in tickets:
            ticket.oid = oid
        if self.direction in SWAPS:
            _swap_legs(exchange, tx, tickets, self.direction)
            return
        # ASSUMED: A merge gives its legs the same closed PnL as sells at a price of 1 / number of
        # legs.
        tokens, dollars = size * ONE_TOKEN, size * px
        for ticket in tickets:
            move_tokens(exchange, tx, ticket, tokens, dollars, 0, True, self.direction, 0)


def draw_conversions(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account]
) -> list[OutcomeConversion]:
    """Draw all conversions, by time.

    The market maker splits what it sells later. Each trader makes every kind of conversion once,
    and keeps tokens of a split until the settlement. The rest is random.
    """
    maker = next(account.number for account in accounts if account.strategy == SPOT_MAKER)
    traders = spot_trader_numbers(accounts)
    before = start_ms + OPENING_MS - HOUR
    conversions = [OutcomeConversion(before, maker, _SPLIT, outcome, 0.03) for outcome in OUTCOMES]
    for place, trader in enumerate(traders):
        time = start_ms + OPENING_MS + place * 7 * MINUTE
        conversions += _every_conversion(time, trader)
    rng = random_stream(seed, "conversions")
    times = rng.integers(OPENING_MS + HOUR, hours * HOUR, count).tolist()
    kinds = rng.integers(0, len(_DRAWN_DIRECTIONS), count).tolist()
    draws = rng.integers(0, 10**9, (count, 2)).tolist()
    shares = rng.random(count)
    for time, kind, (who, what), share in zip(times, kinds, draws, shares, strict=True):
        direction = _DRAWN_DIRECTIONS[kind]
        outcomes = QUESTION if direction in (_NEGATE, _MERGE_QUESTION) else OUTCOMES
        conversions.append(
            OutcomeConversion(
                start_ms + time,
                traders[who % len(traders)],
                direction,
                outcomes[what % len(outcomes)],
                float(share) * (0.05 if direction == _SPLIT else 1.0),
            )
        )
    return sorted(conversions, key=attrgetter("time"))


def _every_conversion(time: int, account: int) -> Iterator[OutcomeConversion]:
    """Yield every kind of conversion of one account, within a minute."""
    first, second = QUESTION[:2]
    for place, outcome in enumerate((OUTCOMES[0], *QUESTION)):
        yield OutcomeConversion(time + place, account, _SPLIT, outcome, 0.02)
    yield OutcomeConversion(time + 10_000, account, _NEGATE, first, 0.7)
    yield OutcomeConversion(time + 20_000, account, _MERGE_QUESTION, first, 0.4)
    yield OutcomeConversion(time + 30_000, account, _MERGE, second, 0.6)


def _swap_legs(exchange: Exchange, tx: Transaction, tickets: list[Ticket], direction: str) -> None:
    """Swap tokens for others without cash: nothing is closed, and the cost moves along."""
    wallet = exchange.wallets[tickets[0].account.number]
    balances = [wallet[_MARKETS[ticket.market.coin].base] for ticket in tickets]
    unit = cost_unit(_MARKETS[tickets[0].market.coin])
    leaving: list[tuple[CostBasis, int]] = []
    coming: list[tuple[CostBasis, int]] = []
    for ticket, balance in zip(tickets, balances, strict=True):
        size = ticket.size * ONE_TOKEN
        write_spot_fill(exchange, tx, ticket, balance.balance, size, 0, 0, direction)
        (coming if ticket.is_buy else leaving).append((balance.current_basis(unit), size))
    after_leaving, after_coming = map(iter, swap_tokens(leaving, coming, unit))
    for ticket, balance in zip(tickets, balances, strict=True):
        balance.traded += ticket.sign * ticket.size * ONE_TOKEN
        balance.basis = next(after_coming if ticket.is_buy else after_leaving)
