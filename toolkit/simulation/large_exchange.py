"""Tiles: worlds that share a market and together form one exchange larger than memory.

Each tile has its own accounts, builders, validators and ids. All tiles have the same prices. The
market data of each tile is therefore that of all; only open interest and volumes are added up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import msgspec

from toolkit.contract.records import AccountValueRow, AssetContext, Meta, TwapRow
from toolkit.contract.seeds import check_seed
from toolkit.contract.source_tables import AccountSnapshot, Sources, TwapSnapshot
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output.contexts import add_spot_contexts
from toolkit.simulation.quantities import MICRO, decimal_text, parse_units
from toolkit.simulation.world import World, draw_world

TILES: Final = 23
"""The number of demo worlds with ten million fills."""

_SZ_DECIMALS: Final = {perp.coin: perp.sz_decimals for perp in PERPS}
_JOINED_ENTRIES: Final = ("users", "builders", "validators")


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
        market = _market_tables(tables)
        self._market = market if self._market is None else _join_markets(self._market, market)
        facts = world.session_facts()
        self._digest.update(facts["digest"].encode())
        if self._summary:
            self._summary |= {name: self._summary[name] + facts[name] for name in _JOINED_ENTRIES}
        else:
            self._summary = facts | {"seed": self.seed, "size": "large"}
        return replace(
            tables,
            slippage=(), metas={}, contexts={}, depth=None, limits={}, auctions=(),
            account_snapshots=(), twap_snapshots=(),
            spot_meta=None, spot_contexts=(), outcome_meta=None,
            perp_dexes=(), funding_rates={}, books={},
        )  # fmt: skip


def _market_tables(sources: Sources) -> Sources:
    """Return the tables that belong to no single account."""
    return replace(
        sources,
        fills=(), funding=(), ledger=(), orders=(), approvals=(), states={},
        unavailable=frozenset(), borrow_lend={}, delegations={}, rewards=(), spot_states={},
        stakes={}, stake_events={}, stake_rewards={}, vault_equities={}, sub_accounts={},
        roles={}, fees={}, valuations={},
    )  # fmt: skip


def _join_markets(first: Sources, second: Sources) -> Sources:
    """Return market tables with the contributions of another tile added."""
    return replace(
        first,
        contexts={
            dex: _add_contexts(meta, first.contexts[dex], second.contexts[dex])
            for dex, meta in first.metas.items()
        },
        spot_contexts=[
            add_spot_contexts(*pair)
            for pair in zip(first.spot_contexts, second.spot_contexts, strict=True)
        ],
        account_snapshots=[
            _join_accounts(*pair)
            for pair in zip(first.account_snapshots, second.account_snapshots, strict=True)
        ],
        twap_snapshots=[
            _join_twaps(*pair)
            for pair in zip(first.twap_snapshots, second.twap_snapshots, strict=True)
        ],
    )


def _add_contexts(
    meta: Meta, first: Sequence[AssetContext], second: Sequence[AssetContext]
) -> list[AssetContext]:
    """Return contexts with the sums of open interest and volumes; the prices are the same."""
    sums = []
    for asset, context, other in zip(meta.universe, first, second, strict=True):
        decimals = _SZ_DECIMALS[asset.name]
        # The type allows a context without its volume in coins, but here each has one.
        assert isinstance(context.day_base_vlm, str)
        assert isinstance(other.day_base_vlm, str)
        sums.append(
            msgspec.structs.replace(
                context,
                open_interest=_add_texts(context.open_interest, other.open_interest, decimals),
                day_ntl_vlm=_add_texts(context.day_ntl_vlm, other.day_ntl_vlm, MICRO),
                day_base_vlm=_add_texts(context.day_base_vlm, other.day_base_vlm, decimals),
            )
        )
    return sums


def _add_texts(first: str, second: str, decimals: int) -> str:
    return decimal_text(parse_units(first, decimals) + parse_units(second, decimals), decimals)


def _join_accounts(first: AccountSnapshot, second: AccountSnapshot) -> AccountSnapshot:
    values: dict[tuple[str, str], Sequence[AccountValueRow]] = {
        token: [*rows, *second.values[token]] for token, rows in first.values.items()
    }
    return replace(first, values=values)


def _join_twaps(first: TwapSnapshot, second: TwapSnapshot) -> TwapSnapshot:
    markets = dict.fromkeys([*first.twaps, *second.twaps])
    twaps: dict[str, Sequence[TwapRow]] = {
        market: [*first.twaps.get(market, ()), *second.twaps.get(market, ())] for market in markets
    }
    return replace(first, twaps=twaps)
