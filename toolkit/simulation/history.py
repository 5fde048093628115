"""Everything that happens, in the order of time."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.simulation.accounts import draw_accounts
from toolkit.simulation.books import Books
from toolkit.simulation.builders import builder_addresses, draw_consents
from toolkit.simulation.conversions import draw_conversions
from toolkit.simulation.exchange import EVERY_ID, Exchange, Ids
from toolkit.simulation.floor import Floor, Happening
from toolkit.simulation.funding import FundingHour
from toolkit.simulation.hedging import draw_hedges
from toolkit.simulation.liquidation import Delisting, LastOrders, MarginCheck
from toolkit.simulation.margins import MARGIN_CHECK_MS
from toolkit.simulation.markets import PAIRS, PERPS, delisting_time
from toolkit.simulation.prices import simulate_prices
from toolkit.simulation.refusals import draw_refusals
from toolkit.simulation.roles import give_roles
from toolkit.simulation.slicing import draw_twaps
from toolkit.simulation.snapshots import SNAPSHOT_MS, Snapping
from toolkit.simulation.spotting import OUTCOME_HOURS, Dusting, Outcome, draw_spot_intents
from toolkit.simulation.stories import draw_gambles
from toolkit.simulation.tokens import draw_token_gifts, draw_token_moves
from toolkit.simulation.trading import draw_intents
from toolkit.simulation.transfers import draw_moves
from toolkit.simulation.valuations import VALUED_MS, Valuing
from toolkit.simulation.vaults import draw_vault_moves
from toolkit.times import DAY, HOUR, MINUTE, to_ms

__all__ = ["NOW_MS", "SIZES", "Size", "run_history"]

NOW_MS = to_ms("2025-10-01")
"""The present of every simulated world: the end of its history."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much happens in a world."""

    days: int
    makers: int
    takers: int
    builders: int
    intents: int
    spot_intents: int
    twaps: int
    refusals: int


SIZES = {
    "tiny": Size(
        days=3, makers=4, takers=36, builders=3, intents=2_400, spot_intents=300, twaps=12,
        refusals=360,
    ),
    "demo": Size(
        days=30, makers=8, takers=242, builders=5, intents=50_000, spot_intents=6_000, twaps=120,
        refusals=12_000,
    ),
}  # fmt: skip


def run_history(seed: int, scale: Size, market: int | None = None, ids: Ids = EVERY_ID) -> Floor:
    """Let everything happen, in the order of time.

    Parameters
    ----------
    seed : int
        What people, and what they do, are drawn from.
    scale : Size
        How much happens.
    market : int, optional
        What prices, books and the chances of outcomes are drawn from; by default `seed`.
    ids : Ids
        Which ids it may give.

    Returns
    -------
    Floor
        After everything has happened.
    """
    hours = scale.days * 24
    start_ms = NOW_MS - scale.days * DAY
    market = seed if market is None else market
    prices = simulate_prices(market, hours)
    accounts = draw_accounts(seed, scale.makers, scale.takers, scale.builders)
    give_roles(accounts, scale.makers)
    gambles = draw_gambles(start_ms, accounts, prices)  # they set their accounts' funds
    exchange = Exchange(seed, start_ms, accounts, prices, ids)
    floor = Floor(exchange, Books(exchange), builder_addresses(seed, scale.builders))
    drawn: Iterator[Happening] = heapq.merge(
        draw_moves(seed, start_ms, scale.days, accounts),
        draw_token_moves(start_ms, scale.days, accounts),
        draw_token_gifts(start_ms, hours, accounts),
        draw_vault_moves(start_ms, scale.days, accounts),
        draw_consents(seed, start_ms, scale.days, accounts, scale.builders),
        _clockwork(start_ms, hours),
        draw_intents(seed, start_ms, hours, scale.intents, accounts, prices),
        draw_spot_intents(seed, start_ms, hours, scale.spot_intents, accounts, market),
        draw_conversions(seed, start_ms, hours, scale.spot_intents // 15, accounts),
        draw_hedges(seed, start_ms, hours, accounts),
        draw_twaps(seed, start_ms, hours, scale.twaps, accounts, prices),
        draw_refusals(seed, start_ms, hours, scale.refusals, accounts),
        gambles,
        key=_time,
    )
    floor.run(drawn, NOW_MS)
    return floor


def _clockwork(start_ms: int, hours: int) -> list[Happening]:
    """Return what happens by the clock: funding, valuations, margin checks, dust, endings."""
    end_ms = start_ms + hours * HOUR
    happenings: list[Happening] = []
    for hour in range(1, hours + 1):
        time = start_ms + hour * HOUR
        happenings.append(FundingHour(time, hour))
        if time % VALUED_MS == 0:
            happenings.append(Valuing(time))
        if hour < hours:
            happenings.append(MarginCheck(time + MARGIN_CHECK_MS))
        if hour % 24 == 0 and hour < hours:
            happenings.append(Dusting(time + MINUTE))
    delisted = delisting_time(start_ms, end_ms)
    for coin, perp in enumerate(PERPS):
        if perp.delisted:
            happenings += [LastOrders(delisted - 5 * HOUR, coin), Delisting(delisted, coin)]
    outcomes = [place for place, pair in enumerate(PAIRS) if pair.is_outcome]
    settled = start_ms + (6 + OUTCOME_HOURS) * HOUR + 11 * MINUTE
    happenings += [Outcome(settled, place, place % 2 == 0) for place in outcomes[:2]]
    happenings += [Snapping(end_ms - number * SNAPSHOT_MS) for number in range(3)]
    return sorted(happenings, key=_time)


def _time(happening: Happening) -> int:
    return happening.time
