"""The whole world: from a seed and a size to tables and their truth."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolkit.contract.sources import Sources
from toolkit.contract.worlds import checked_seed
from toolkit.simulation.contexts import asset_contexts, books_now, depth_now, funding_rates
from toolkit.simulation.delegators import (
    delegator_events,
    delegator_rewards,
    delegator_summaries,
)
from toolkit.simulation.deploys import deploy_auctions, dex_limits, perp_dexes
from toolkit.simulation.digest import digest_of
from toolkit.simulation.draws import address
from toolkit.simulation.examples import LINES, find_examples, trades_more_than_perps
from toolkit.simulation.exchange import EVERY_ID, Ids
from toolkit.simulation.floor import Floor
from toolkit.simulation.history import SIZES, run_history
from toolkit.simulation.lending import borrow_lend_states
from toolkit.simulation.markets import COLLATERAL, DEXES, PAIRS, PERPS, VENUES, metas
from toolkit.simulation.profiles import sub_accounts, user_fees, user_roles, vault_equities
from toolkit.simulation.sampling import slippage_samples
from toolkit.simulation.spot_tables import outcome_meta, spot_contexts, spot_meta, spot_states
from toolkit.simulation.staking import daily_rewards, delegations, validator_addresses
from toolkit.simulation.states import clearinghouse_states
from toolkit.simulation.truth import Truth, truth_of
from toolkit.simulation.valuations import valuations

__all__ = ["VERSION", "World", "draw_world", "simulate"]

VERSION = 7
"""Rises whenever the same seed and size give another world."""


@dataclass(frozen=True, slots=True)
class World:
    """A simulated exchange at the end of its history.

    Parameters
    ----------
    seed : int
        What it was drawn from.
    size : str
        One of `SIZES`.
    sources : Sources
        What a service can serve of it.
    truth : dict of str to Truth
        Address -> what the account's tables must add up to, for those who trade perps alone.
    mixed_truth : dict of str to Truth
        The same for those who trade spot, too, and for vaults, whose ledgers show their
        followers' rows.
    builders : list of str
        Addresses of the builders.
    examples : dict of str to str
        Name -> address of an account worth looking at.
    """

    seed: int
    size: str
    sources: Sources
    truth: dict[str, Truth]
    mixed_truth: dict[str, Truth]
    builders: list[str]
    examples: dict[str, str]

    def summary(self) -> dict[str, Any]:
        """Say what is in it, as ``toolkit world`` prints it."""
        return {
            "seed": self.seed,
            "size": self.size,
            "start_ms": self.sources.start_ms,
            "now_ms": self.sources.now_ms,
            "users": [*self.truth, *self.mixed_truth],
            "builders": self.builders,
            "validators": validator_addresses(self.seed),
            "perp_coins": [perp.coin for perp in PERPS],
            "spot_coins": [pair.coin for pair in PAIRS],
            "dexes": list(DEXES),
            "venues": list(VENUES),
            "collateral_tokens": list(dict.fromkeys(COLLATERAL.values())),
            "digest": self.digest(),
        }

    def about(self) -> dict[str, Any]:
        """Give the summary and the accounts worth looking at: what a session knows of its world."""
        stories = {name: LINES[name] for name in self.examples}
        return {**self.summary(), "examples": self.examples, "stories": stories}

    def digest(self) -> str:
        """Give a hash of every table, the same wherever the world is made."""
        return digest_of(self.sources)


def simulate(seed: int = 7, size: str = "demo") -> World:
    """Draw a world.

    Parameters
    ----------
    seed : int, default 7
        The same seed and size give the same world, to the byte, on every machine.
    size : str, default "demo"
        ``tiny`` (40 accounts, 3 days) or ``demo`` (250 accounts, 30 days).

    Returns
    -------
    World

    Raises
    ------
    ValueError
        If there is no such size, or the seed is negative or has more than 63 bits.
    TypeError
        If the seed is no whole number.

    Examples
    --------
    >>> world = simulate(7, "tiny")
    >>> len(world.summary()["users"]), world.sources.label
    (40, 'simulated, seed 7, size tiny')
    """
    seed = checked_seed(seed)
    return draw_world(seed, size, f"simulated, seed {seed}, size {size}")


def draw_world(
    seed: int, size: str, label: str, market: int | None = None, ids: Ids = EVERY_ID
) -> World:
    """Draw a world, or one of several that share a market.

    Parameters
    ----------
    seed : int
        What people, and what they do, are drawn from.
    size : str
        One of `SIZES`.
    label : str
        What it is called below a figure.
    market : int, optional
        What prices and books are drawn from; by default `seed`.
    ids : Ids
        Which ids are its own.

    Returns
    -------
    World

    Raises
    ------
    ValueError
        If there is no such size.
    """
    if size not in SIZES:
        raise ValueError(f"there is no size {size!r}: choose one of {', '.join(SIZES)}")
    with _no_collection():
        floor = run_history(seed, SIZES[size], market, ids)
        sources = _sources(floor, label)
    plain: dict[str, Truth] = {}
    mixed: dict[str, Truth] = {}
    for account in floor.exchange.accounts:
        kept = mixed if trades_more_than_perps(account) else plain
        kept[account.address] = truth_of(floor.exchange, account.number)
    return World(
        seed=seed,
        size=size,
        sources=sources,
        truth=plain,
        mixed_truth=mixed,
        builders=floor.builders,
        examples=find_examples(floor),
    )


def _sources(floor: Floor, label: str) -> Sources:
    exchange = floor.exchange
    start_ms, end_ms = exchange.start_ms, exchange.end_ms
    rewards = daily_rewards(exchange)
    return Sources(
        start_ms=start_ms,
        now_ms=end_ms,
        label=label,
        simulated=True,
        fills=exchange.fills,
        funding=exchange.funding,
        ledger=exchange.ledger,
        orders=exchange.journal.events(),
        approvals=exchange.approvals,
        slippage=slippage_samples(exchange.prices.seed, exchange.prices, start_ms),
        metas=metas(),
        contexts=asset_contexts(exchange),
        depth=depth_now(exchange),
        states=clearinghouse_states(exchange),
        unavailable=frozenset({address(exchange.seed, "unavailable")}),
        limits=dex_limits(),
        auctions=deploy_auctions(start_ms, end_ms),
        account_snapshots=floor.account_snapshots,
        twap_snapshots=floor.twap_snapshots,
        borrow_lend=borrow_lend_states(exchange.accounts),
        delegations=delegations(exchange),
        rewards=rewards,
        spot_meta=spot_meta(),
        spot_contexts=spot_contexts(exchange),
        spot_states=spot_states(exchange),
        outcome_meta=outcome_meta(floor.settled),
        perp_dexes=perp_dexes(exchange.seed),
        funding_rates=funding_rates(exchange),
        books=books_now(exchange),
        stakes=delegator_summaries(exchange),
        stake_events=delegator_events(exchange),
        stake_rewards=delegator_rewards(exchange, rewards),
        vault_equities=vault_equities(exchange),
        sub_accounts=sub_accounts(exchange),
        roles=user_roles(exchange, floor.builders),
        fees=user_fees(exchange),
        valuations=valuations(floor),
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the collector of cycles, and keep it from ever looking at what was made meanwhile.

    Millions of records without a cycle cost it seconds each time; they are freed by their
    reference counts as ever.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if running:
            gc.enable()
