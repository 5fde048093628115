"""Tiles: worlds that share a market, put together to one exchange that no memory has to hold.

Every tile has people, builders and validators of its own, and ids that no other tile gives. All
trade at the same prices, so that what everybody is shown of the market is that of each tile; only
open interest and volumes add up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import msgspec

from toolkit.contract.records import AccountValueRow, AssetContext, Meta, TwapRow
from toolkit.contract.sources import AccountSnapshot, Sources, TwapSnapshot
from toolkit.contract.worlds import checked_seed
from toolkit.simulation.exchange import Ids
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import MICRO, text, units
from toolkit.simulation.spot_tables import add_spot_contexts
from toolkit.simulation.world import World, draw_world

__all__ = ["TILES", "Tiled", "tiles"]

TILES: Final = 23
"""So many demo worlds hold ten million fills."""

_SZ_DECIMALS: Final = {perp.coin: perp.sz_decimals for perp in PERPS}
_JOINED: Final = ("users", "builders", "validators")


def tiles(seed: int, count: int, size: str = "demo") -> Iterator[World]:
    """Draw worlds one after the other, for work that needs more rows than memory holds.

    Parameters
    ----------
    seed : int
        What the market that they share is drawn from; with a tile's number, also its people.
    count : int
        How many; 23 demo worlds hold ten million fills.
    size : str, default "demo"
        Size of each: ``tiny`` or ``demo``.

    Yields
    ------
    World
        Worlds of the same days and prices, with different accounts and ids.

    Raises
    ------
    ValueError
        If there is no such size, or the seed is negative or has more than 63 bits.
    TypeError
        If the seed is no whole number.

    Examples
    --------
    >>> [len(world.truth) + len(world.mixed_truth) for world in tiles(7, 2, "tiny")]
    [40, 40]
    """
    seed = checked_seed(seed)
    for number in range(count):
        yield draw_world(
            seed * 1_000_003 + number,
            size,
            f"simulated, seed {seed}, size {size}, tile {number}",
            market=seed,
            ids=Ids(number, count),
        )


class Tiled:
    """An exchange of many tiles, to be gone through once, part by part.

    Every part but the last holds the rows and the accounts of one tile; the last one holds what
    is shown of all: the market, and the snapshots.

    Parameters
    ----------
    seed : int
        What it is drawn from.
    count : int, default 23
        Number of tiles.
    size : str, default "demo"
        Size of each.

    Examples
    --------
    >>> exchange = Tiled(7, 2, "tiny")
    >>> [len(part.states.get("", ())) for part in exchange]
    [40, 40, 0]
    >>> len(exchange.summary()["users"])
    80
    """

    def __init__(self, seed: int, count: int = TILES, size: str = "demo") -> None:
        self.seed = checked_seed(seed)
        self.count = count
        self._size = size
        self._market: Sources | None = None
        self._summary: dict[str, Any] = {}
        self._digest = sha256()

    def __iter__(self) -> Iterator[Sources]:
        """Give one part after the other; nothing of those before is kept but what is shown of all.

        A tile that nobody holds any longer is freed before the next one is drawn.
        """
        drawn = tiles(self.seed, self.count, self._size)
        for _ in range(self.count):
            yield self._own(next(drawn))
        assert self._market is not None
        yield self._market

    def summary(self) -> dict[str, Any]:
        """Say what is in the parts that were given so far; `World.summary` has the same entries.

        Its digest is the hash of the tiles' digests.
        """
        return {**self._summary, "digest": self._digest.hexdigest()}

    def _own(self, world: World) -> Sources:
        """Give the rows and accounts of a tile, and keep what all tiles are shown as one."""
        whole = replace(world.sources, label=f"simulated, seed {self.seed}, size large")
        market = _market(whole)
        self._market = market if self._market is None else _joined(self._market, market)
        found = world.about()
        self._digest.update(found["digest"].encode())
        if self._summary:
            joined = {name: self._summary[name] + found[name] for name in _JOINED}
            self._summary |= joined
        else:
            self._summary = found | {"seed": self.seed, "size": "large"}
        return replace(
            whole,
            slippage=(), metas={}, contexts={}, depth=None, limits={}, auctions=(),
            account_snapshots=(), twap_snapshots=(),
            spot_meta=None, spot_contexts=(), outcome_meta=None,
            perp_dexes=(), funding_rates={}, books={},
        )  # fmt: skip


def _market(sources: Sources) -> Sources:
    """Give what belongs to no account alone."""
    return replace(
        sources,
        fills=(), funding=(), ledger=(), orders=(), approvals=(), states={},
        unavailable=frozenset(), borrow_lend={}, delegations={}, rewards=(), spot_states={},
        stakes={}, stake_events={}, stake_rewards={}, vault_equities={}, sub_accounts={},
        roles={}, fees={}, valuations={},
    )  # fmt: skip


def _joined(first: Sources, other: Sources) -> Sources:
    """Add the people of another tile to what is shown of all."""
    return replace(
        first,
        contexts={
            dex: _sums(meta, first.contexts[dex], other.contexts[dex])
            for dex, meta in first.metas.items()
        },
        spot_contexts=[
            add_spot_contexts(*pair)
            for pair in zip(first.spot_contexts, other.spot_contexts, strict=True)
        ],
        account_snapshots=[
            _accounts(*pair)
            for pair in zip(first.account_snapshots, other.account_snapshots, strict=True)
        ],
        twap_snapshots=[
            _twaps(*pair) for pair in zip(first.twap_snapshots, other.twap_snapshots, strict=True)
        ],
    )


def _sums(
    meta: Meta, some: Sequence[AssetContext], others: Sequence[AssetContext]
) -> list[AssetContext]:
    """Add up open interest and volumes; prices are those of all."""
    summed = []
    for asset, one, other in zip(meta.universe, some, others, strict=True):
        lots = _SZ_DECIMALS[asset.name]
        # The type lets a context lack its volume in coins; here each has one.
        assert isinstance(one.day_base_vlm, str)
        assert isinstance(other.day_base_vlm, str)
        summed.append(
            msgspec.structs.replace(
                one,
                open_interest=_sum(one.open_interest, other.open_interest, lots),
                day_ntl_vlm=_sum(one.day_ntl_vlm, other.day_ntl_vlm, MICRO),
                day_base_vlm=_sum(one.day_base_vlm, other.day_base_vlm, lots),
            )
        )
    return summed


def _sum(one: str, other: str, decimals: int) -> str:
    return text(units(one, decimals) + units(other, decimals), decimals)


def _accounts(one: AccountSnapshot, other: AccountSnapshot) -> AccountSnapshot:
    values: dict[tuple[str, str], Sequence[AccountValueRow]] = {
        token: [*rows, *other.values[token]] for token, rows in one.values.items()
    }
    return replace(one, values=values)


def _twaps(one: TwapSnapshot, other: TwapSnapshot) -> TwapSnapshot:
    markets = dict.fromkeys([*one.twaps, *other.twaps])
    twaps: dict[str, Sequence[TwapRow]] = {
        market: [*one.twaps.get(market, ()), *other.twaps.get(market, ())] for market in markets
    }
    return replace(one, twaps=twaps)
