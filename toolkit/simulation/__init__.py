"""A seeded exchange that fills every table a service can serve.

::

    markets, draws, quantities   facts about markets, seeded randomness, exact numbers
    engine/                      accounts, orders, prices, books, margin, liquidation, funding,
                                 spot, the exchange, and the state with its events
    agents/                      the population and everything that it does
    history                      all events in the order of time
    output/                      the tables at the end of history, their checks, and the live
                                 exchange after this end
    world, tiles                 the result, and many worlds as one exchange

An event is a small frozen dataclass with a `time` and a method `apply(state)`. To add a new kind
of activity, write a module of such events in `agents` and add one line to `history`.
"""

from toolkit.simulation.large_exchange import TILES, TiledExchange, draw_tiles
from toolkit.simulation.output.totals import ExpectedTokens, ExpectedTotals
from toolkit.simulation.world import World, simulate

__all__ = [
    "TILES",
    "ExpectedTokens",
    "ExpectedTotals",
    "TiledExchange",
    "World",
    "draw_tiles",
    "simulate",
]
