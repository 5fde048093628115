"""A seeded exchange that fills every table a service can serve.

::

    markets, accounts, roles     who and what there is, as facts and draws
    prices, ladders, sampling    prices by the minute, books, slippage samples
    exchange, orders, margins, fees, holdings, quantities
                                 state, accounting in whole numbers, the journal of orders
    floor, history               the trading floor, and everything on it in the order of time
    books, dealing               resting orders, and orders that take
    trading, hedging, brackets, slicing, twaps, refusals, stories, liquidation, spotting,
    spot_fills, conversions
                                 what drives it: happenings with a time
    transfers, tokens, vaults, ledger, funding, builders
                                 what moves without a trade
    states, contexts, snapshots, staking, lending, deploys, spot_tables
                                 what a service shows of the end
    world, tiling, variants, truth, digest, examples, live, beginning
                                 the result: tables, what they must add up to, and its hash

A happening is a small frozen dataclass with a `time` and a method `happen(floor)`; a new kind
of activity is a new module of them and one line in `history`.
"""

from toolkit.simulation.tiling import TILES, Tiled, tiles
from toolkit.simulation.truth import TokenTruth, Truth
from toolkit.simulation.variants import without_trade_sizes
from toolkit.simulation.world import VERSION, World, simulate

__all__ = [
    "TILES",
    "VERSION",
    "Tiled",
    "TokenTruth",
    "Truth",
    "World",
    "simulate",
    "tiles",
    "without_trade_sizes",
]
