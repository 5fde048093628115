"""A seeded exchange that fills every table a service can serve.

::

    markets, exact                      facts about markets, exact numbers and seeded draws
    engine/                             accounts, orders, prices, books, positions (funding,
                                        liquidation), spot, and the exchange, which holds all state
    agents/                             the population and everything that it does
    history                             all events in the order of time
    output/                             the tables at the end of history, and the live exchange
                                        after this end
    world, large_exchange               the result with its checks, and many worlds as one exchange

An event is a function of the exchange, a time and more arguments, which `Exchange.schedule`
keeps until this time. To add a new kind of activity, write a module in `agents` with such functions
and one that schedules them, and call the latter in `history`.
"""

from toolkit.simulation.large_exchange import TILES, TiledExchange, draw_tiles
from toolkit.simulation.world import ExpectedTokens, ExpectedTotals, World, simulate

__all__ = [
    "TILES",
    "ExpectedTokens",
    "ExpectedTotals",
    "TiledExchange",
    "World",
    "draw_tiles",
    "simulate",
]
