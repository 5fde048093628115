"""Tiles: worlds that share a market and together form one exchange larger than memory.

Each tile has its own accounts, builders, validators and ids. All tiles have the same prices. The
market data of each tile is therefore that of all; only open interest and volumes are added up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

from toolkit.contract.records import AssetContext, SpotContext
from toolkit.contract.seeds import check_seed
from toolkit.contract.source_tables import Sources
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.exact import decimal_text, parse_units
from toolkit.simulation.world import World, draw_world

TILES: Final = 23
"""The number of demo worlds with ten million fills."""

_JOINED_ENTRIES: Final = ("users", "builders", "validators")
_MARKET_TABLES: Final = (
    "slippage", "metas", "contexts", "depth", "limits", "auctions", "account_snapshots",
    "twap_snapshots", "spot_meta", "spot_contexts", "outcome_meta", "perp_dexes", "funding_rates",
    "books",
)  # fmt: skip
"""The tables that belong to no single account."""
_SPAN: Final = ("start_ms", "now_ms", "label", "simulated")

_SUMMED_FIELDS: Final = (
    "open_interest", "day_ntl_vlm", "day_base_vlm", "circulating_supply", "total_supply",
)  # fmt: skip

_Context = TypeVar("_Context", AssetContext, SpotContext)
_Key = TypeVar("_Key")
_Row = TypeVar("_Row")


def draw_tiles(seed: int, count: int, size: str = "demo") -> Iterator[World]:
    """Draw worlds one after the other, for work that needs more rows than memory allows.

    - ``seed``: the seed of the market that they share; with a tile's number, also of its accounts
    - ``count``: the number of tiles; 23 demo worlds have ten million fills
    - ``size``: size of each: ``tiny`` or ``demo``

    Yields: worlds of the same days and prices, with different accounts and ids.

    Raise ValueError if the size is unknown, or the seed is negative or has more than 63 bits. Raise
    TypeError if the seed is not an integer.

    >>> [len(world.expected) + len(world.expected_mixed) for world in draw_tiles(7, 2, "tiny")]
    [40, 40]
    """
    seed = check_seed(seed)
    for number in range(count):
        yield draw_world(
            seed * 1_000_003 + number,
            size,
            f"simulated, seed {seed}, size {size}, tile {number}",
            market=seed,
            ids=(number, count),
        )


class TiledExchange:
    """An exchange of many tiles, to be iterated once, part by part.

    Every part but the last has the rows and the accounts of one tile. The last part has the data
    that all tiles share: the market and the snapshots.

    - ``seed``: its seed
    - ``count``: number of tiles
    - ``size``: size of each

    >>> exchange = TiledExchange(7, 2, "tiny")
    >>> [len(part.states.get("", ())) for part in exchange]
    [40, 40, 0]
    >>> len(exchange.summary()["users"])
    80
    """

    def __init__(self, seed: int, count: int = TILES, size: str = "demo") -> None:
        self.seed = check_seed(seed)
        self.count = count
        self._size = size
        self._market: Sources | None = None
        self._summary: dict[str, Any] = {}
        self._digest = sha256()

    def __iter__(self) -> Iterator[Sources]:
        """Yield one part after the other; only the shared data of earlier parts stays in memory.

        A tile that is no longer used is freed before the next one is drawn.
        """
        drawn = draw_tiles(self.seed, self.count, self._size)
        for _ in range(self.count):
            yield self._separate_accounts(next(drawn))
        assert self._market is not None
        yield self._market

    def summary(self) -> dict[str, Any]:
        """Return the contents of the parts so far, with the entries of `World.session_facts`.

        Its digest is the hash of the tiles' digests.
        """
        return {**self._summary, "digest": self._digest.hexdigest()}

    def _separate_accounts(self, world: World) -> Sources:
        """Return the rows and accounts of a tile, and add the rest to the shared data."""
        tables = replace(world.sources, label=f"simulated, seed {self.seed}, size large")
        columns = {field.name: getattr(tables, field.name) for field in fields(tables)}
        span = {name: columns.pop(name) for name in _SPAN}
        market = Sources(**span, **{name: columns.pop(name) for name in _MARKET_TABLES})
        self._market = market if self._market is None else _join_markets(self._market, market)
        facts = world.session_facts()
        self._digest.update(facts["digest"].encode())
        if self._summary:
            self._summary |= {name: self._summary[name] + facts[name] for name in _JOINED_ENTRIES}
        else:
            self._summary = facts | {"seed": self.seed, "size": "large"}
        return Sources(**span, **columns)


def _join_markets(first: Sources, second: Sources) -> Sources:
    """Return market tables with the contributions of another tile added; the prices are the same.

    These are open interest, volumes and supplies, and the rows of snapshots.
    """
    return replace(
        first,
        contexts={
            dex: list(map(_add_fields, contexts, second.contexts[dex]))
            for dex, contexts in first.contexts.items()
        },
        spot_contexts=list(map(_add_fields, first.spot_contexts, second.spot_contexts)),
        account_snapshots=[
            replace(one, values=_join_rows(one.values, other.values))
            for one, other in zip(first.account_snapshots, second.account_snapshots, strict=True)
        ],
        twap_snapshots=[
            replace(one, twaps=_join_rows(one.twaps, other.twaps))
            for one, other in zip(first.twap_snapshots, second.twap_snapshots, strict=True)
        ],
    )


def _add_fields(first: _Context, second: _Context) -> _Context:
    """Return a context with the sums of some fields, which are decimal texts."""
    sums = {}
    for name in _SUMMED_FIELDS:
        if hasattr(first, name):
            amounts = (parse_units(getattr(context, name), WEI) for context in (first, second))
            sums[name] = decimal_text(sum(amounts), WEI)
    return msgspec.structs.replace(first, **sums)


def _join_rows(
    first: Mapping[_Key, Sequence[_Row]], second: Mapping[_Key, Sequence[_Row]]
) -> dict[_Key, list[_Row]]:
    keys = dict.fromkeys([*first, *second])
    return {key: [*first.get(key, ()), *second.get(key, ())] for key in keys}
