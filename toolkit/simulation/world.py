"""A world: the tables of a simulated exchange, drawn from a seed and a size."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolkit.contract.seeds import check_seed
from toolkit.contract.source_tables import Sources
from toolkit.simulation.engine.exchange import ALL_IDS, IdSequence
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.history import SIZES, run_history
from toolkit.simulation.markets import COLLATERAL, DEXES, PAIRS, PERPS, VENUES
from toolkit.simulation.output.contexts import asset_contexts, funding_rates, spot_contexts
from toolkit.simulation.output.depth import final_books, final_depth, slippage_samples
from toolkit.simulation.output.examples import STORY_TEXTS, find_examples
from toolkit.simulation.output.metadata import (
    deploy_auctions,
    dex_limits,
    outcome_meta,
    perp_dexes,
    perp_metas,
    spot_meta,
)
from toolkit.simulation.output.profiles import sub_accounts, user_fees, user_roles, vault_equities
from toolkit.simulation.output.snapshots import valuations_by_user
from toolkit.simulation.output.staking import (
    daily_rewards,
    delegations,
    delegator_events,
    delegator_rewards,
    delegator_summaries,
    validator_addresses,
)
from toolkit.simulation.output.states import (
    borrow_lend_states,
    clearinghouse_states,
    lend_interest,
    spot_states,
)
from toolkit.simulation.output.totals import ExpectedTotals, compute_digest, expected_totals
from toolkit.simulation.random_draws import party_address


@dataclass(frozen=True, slots=True)
class World:
    """A simulated exchange at the end of its history.

    - ``seed``: its seed
    - ``size``: one of `SIZES`
    - ``sources``: the tables that a service can serve
    - ``expected``: address -> totals of the account's tables, for accounts that trade only perps
    - ``expected_mixed``: the same for accounts that also trade spot, and for vaults, whose ledgers
      contain rows of their followers
    - ``builders``: addresses of the builders
    - ``examples``: name -> address of an example account
    """

    seed: int
    size: str
    sources: Sources
    expected: dict[str, ExpectedTotals]
    expected_mixed: dict[str, ExpectedTotals]
    builders: list[str]
    examples: dict[str, str]

    def summary(self) -> dict[str, Any]:
        """Return the contents that ``toolkit world`` prints."""
        return {
            "seed": self.seed,
            "size": self.size,
            "start_ms": self.sources.start_ms,
            "now_ms": self.sources.now_ms,
            "users": [*self.expected, *self.expected_mixed],
            "builders": self.builders,
            "validators": validator_addresses(self.seed),
            "perp_coins": [perp.coin for perp in PERPS],
            "spot_coins": [pair.coin for pair in PAIRS],
            "dexes": list(DEXES),
            "venues": list(VENUES),
            "collateral_tokens": list(dict.fromkeys(COLLATERAL.values())),
            "digest": self.digest(),
        }

    def session_facts(self) -> dict[str, Any]:
        """Return the summary and the example accounts: what a session knows of its world."""
        stories = {name: STORY_TEXTS[name] for name in self.examples}
        return {**self.summary(), "examples": self.examples, "stories": stories}

    def digest(self) -> str:
        """Return a hash of all tables, which is the same on every machine."""
        return compute_digest(self.sources)


def simulate(seed: int = 7, size: str = "demo") -> World:
    """Draw a world.

    - ``seed``: the same seed and size give the same world, to the byte, on every machine
    - ``size``: ``tiny`` (40 accounts, 3 days) or ``demo`` (250 accounts, 30 days)

    Raise ValueError if the size is unknown, or the seed is negative or has more than 63 bits. Raise
    TypeError if the seed is not an integer.

    >>> world = simulate(7, "tiny")
    >>> len(world.summary()["users"]), world.sources.label
    (40, 'simulated, seed 7, size tiny')
    """
    seed = check_seed(seed)
    return draw_world(seed, size, f"simulated, seed {seed}, size {size}")


def draw_world(
    seed: int, size: str, label: str, market: int | None = None, ids: IdSequence = ALL_IDS
) -> World:
    """Draw a world, or one of several that share a market.

    - ``seed``: the seed of the accounts and of what they do
    - ``size``: one of `SIZES`
    - ``label``: its name below a figure
    - ``market``: the seed of prices and books; by default `seed`
    - ``ids``: the ids that it may use

    Raise ValueError if the size is unknown.
    """
    if size not in SIZES:
        raise ValueError(f"unknown size {size!r}; choose one of {', '.join(SIZES)}")
    with _without_collection():
        state = run_history(seed, SIZES[size], market, ids)
        sources = _build_sources(state, label)
    expected: dict[str, ExpectedTotals] = {}
    expected_mixed: dict[str, ExpectedTotals] = {}
    for account in state.exchange.accounts:
        totals = expected if account.trades_only_perps else expected_mixed
        totals[account.address] = expected_totals(state.exchange, account.number)
    return World(
        seed=seed,
        size=size,
        sources=sources,
        expected=expected,
        expected_mixed=expected_mixed,
        builders=state.builders,
        examples=find_examples(state),
    )


def _build_sources(state: SimulationState, label: str) -> Sources:
    exchange = state.exchange
    start_ms, end_ms = exchange.start_ms, exchange.end_ms
    rewards, loans = daily_rewards(exchange), borrow_lend_states(exchange.accounts)
    return Sources(
        start_ms=start_ms,
        now_ms=end_ms,
        label=label,
        simulated=True,
        fills=exchange.fills,
        funding=exchange.funding,
        ledger=exchange.ledger,
        orders=exchange.journal.sorted_events(),
        approvals=exchange.approvals,
        slippage=slippage_samples(exchange.prices.seed, exchange.prices, start_ms),
        metas=perp_metas(),
        contexts=asset_contexts(exchange),
        depth=final_depth(exchange),
        states=clearinghouse_states(exchange),
        unavailable=frozenset({party_address(exchange.seed, "unavailable")}),
        limits=dex_limits(),
        auctions=deploy_auctions(start_ms, end_ms),
        account_snapshots=state.account_snapshots,
        twap_snapshots=state.twap_snapshots,
        borrow_lend=loans,
        lend_interest=lend_interest(loans, end_ms),
        delegations=delegations(exchange),
        rewards=rewards,
        spot_meta=spot_meta(),
        spot_contexts=spot_contexts(exchange),
        spot_states=spot_states(exchange),
        outcome_meta=outcome_meta(state.settled),
        perp_dexes=perp_dexes(exchange.seed),
        funding_rates=funding_rates(exchange),
        books=final_books(exchange),
        stakes=delegator_summaries(exchange),
        stake_events=delegator_events(exchange),
        stake_rewards=delegator_rewards(exchange, rewards),
        vault_equities=vault_equities(exchange),
        sub_accounts=sub_accounts(exchange),
        roles=user_roles(exchange, state.builders),
        fees=user_fees(exchange),
        valuations=valuations_by_user(state),
    )


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the garbage collector, and exclude the objects created meanwhile from collection.

    Each collection would take seconds, because there are millions of records. They contain no
    cycles, so reference counts free them anyway.
    """
    is_running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_running:
            gc.enable()
