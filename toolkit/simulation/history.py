"""The history of a world: all its events, drawn and applied in the order of time."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from toolkit.simulation.agents.builders import builder_addresses, draw_approvals
from toolkit.simulation.agents.conversions import draw_conversions
from toolkit.simulation.agents.gamblers import draw_gambles
from toolkit.simulation.agents.population import assign_roles, draw_accounts
from toolkit.simulation.agents.rejections import draw_unfilled_orders
from toolkit.simulation.agents.spot_traders import (
    OPENING_MS,
    OUTCOME_HOURS,
    draw_hedges,
    draw_spot_intents,
)
from toolkit.simulation.agents.takers import draw_perp_intents
from toolkit.simulation.agents.tokens import draw_token_gifts, draw_token_transfers
from toolkit.simulation.agents.transfers import draw_dollar_transfers
from toolkit.simulation.agents.twaps import draw_twaps
from toolkit.simulation.agents.vaults import draw_vault_events
from toolkit.simulation.engine.books import OrderBooks
from toolkit.simulation.engine.exchange import ALL_IDS, Exchange, IdSequence
from toolkit.simulation.engine.funding import HourlyFunding
from toolkit.simulation.engine.liquidation import Delisting, FarOrders, MarginCheck
from toolkit.simulation.engine.margin import MARGIN_CHECK_MS
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.engine.spot import DustConversion, OutcomeSettlement
from toolkit.simulation.engine.state import Event, SimulationState
from toolkit.simulation.markets import PAIRS, PERPS, delisting_time
from toolkit.simulation.output.snapshots import (
    SNAPSHOT_MS,
    VALUATION_MS,
    SnapshotEvent,
    ValuationEvent,
)
from toolkit.times import DAY, HOUR, MINUTE, to_ms

NOW_MS = to_ms("2025-10-01")
"""The present of every simulated world: the end of its history."""


@dataclass(frozen=True, slots=True)
class HistorySize:
    """The numbers of days, accounts and events of a world."""

    days: int
    makers: int
    takers: int
    builders: int
    intents: int
    spot_intents: int
    twaps: int
    unfilled: int


SIZES = {
    "tiny": HistorySize(
        days=3, makers=4, takers=36, builders=3, intents=2_400, spot_intents=300, twaps=12,
        unfilled=360,
    ),
    "demo": HistorySize(
        days=30, makers=8, takers=242, builders=5, intents=50_000, spot_intents=6_000, twaps=120,
        unfilled=12_000,
    ),
}  # fmt: skip


def run_history(
    seed: int, size: HistorySize, market: int | None = None, ids: IdSequence = ALL_IDS
) -> SimulationState:
    """Draw all events and apply them in the order of time.

    - ``seed``: the seed of the accounts and of what they do
    - ``size``: the numbers of days, accounts and events
    - ``market``: the seed of prices, books and the chances of outcomes; by default `seed`
    - ``ids``: the ids that it may use

    Returns: the state after all events.
    """
    hours = size.days * 24
    start_ms = NOW_MS - size.days * DAY
    market = seed if market is None else market
    prices = simulate_prices(market, hours)
    accounts = draw_accounts(seed, size.makers, size.takers, size.builders)
    assign_roles(accounts, size.makers)
    gambles = draw_gambles(start_ms, accounts, prices)  # this also funds the gamblers
    exchange = Exchange(seed, start_ms, accounts, prices, ids)
    state = SimulationState(exchange, OrderBooks(exchange), builder_addresses(seed, size.builders))
    # At the same time, the events of an earlier line come first.
    drawn: Iterator[Event] = heapq.merge(
        draw_dollar_transfers(seed, start_ms, size.days, accounts),
        draw_token_transfers(start_ms, size.days, accounts),
        draw_token_gifts(start_ms, hours, accounts),
        draw_vault_events(start_ms, size.days, accounts),
        draw_approvals(seed, start_ms, size.days, accounts, size.builders),
        _clock_events(start_ms, hours),
        draw_perp_intents(seed, start_ms, hours, size.intents, accounts, prices),
        draw_spot_intents(seed, start_ms, hours, size.spot_intents, accounts, market),
        draw_conversions(seed, start_ms, hours, size.spot_intents // 15, accounts),
        draw_hedges(seed, start_ms, hours, accounts),
        draw_twaps(seed, start_ms, hours, size.twaps, accounts, prices),
        draw_unfilled_orders(seed, start_ms, hours, size.unfilled, accounts),
        gambles,
        key=attrgetter("time"),
    )
    state.run_events(drawn, NOW_MS)
    return state


def _clock_events(start_ms: int, hours: int) -> list[Event]:
    """Return events with fixed times: funding, valuations, margin checks, dust, market ends."""
    end_ms = start_ms + hours * HOUR
    events: list[Event] = []
    for hour in range(1, hours + 1):
        time = start_ms + hour * HOUR
        events.append(HourlyFunding(time, hour))
        if time % VALUATION_MS == 0:
            events.append(ValuationEvent(time))
        if hour < hours:
            events.append(MarginCheck(time + MARGIN_CHECK_MS))
        if hour % 24 == 0 and hour < hours:
            events.append(DustConversion(time + MINUTE))
    delisted = delisting_time(start_ms, end_ms)
    for coin, perp in enumerate(PERPS):
        if perp.delisted:
            events += [FarOrders(delisted - 5 * HOUR, coin), Delisting(delisted, coin)]
    outcomes = [place for place, pair in enumerate(PAIRS) if pair.is_outcome]
    settled = start_ms + OPENING_MS + OUTCOME_HOURS * HOUR + 11 * MINUTE
    events += [OutcomeSettlement(settled, place, place % 2 == 0) for place in outcomes[:2]]
    events += [SnapshotEvent(end_ms - number * SNAPSHOT_MS) for number in range(3)]
    return sorted(events, key=attrgetter("time"))
