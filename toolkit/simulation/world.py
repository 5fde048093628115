"""A world: the tables of a simulated exchange, drawn from a seed and a size."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolkit.contract.seeds import check_seed
from toolkit.contract.source_tables import Sources
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.history import SIZES, run_history
from toolkit.simulation.markets import COLLATERAL, DEXES, PAIRS, PERPS, VENUES
from toolkit.simulation.output import contexts, depth, metadata, profiles, staking, states
from toolkit.simulation.output.examples import STORY_TEXTS, find_examples
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
            "validators": staking.validator_addresses(self.seed),
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
    seed: int, size: str, label: str, market: int | None = None, ids: tuple[int, int] = (0, 1)
) -> World:
    """Draw a world, or one of several that share a market.

    - ``seed``: the seed of the accounts and of what they do
    - ``size``: one of `SIZES`
    - ``label``: its name below a figure
    - ``market``: the seed of prices and books; by default `seed`
    - ``ids``: the ids that it may use, as in `Exchange`

    Raise ValueError if the size is unknown.
    """
    if size not in SIZES:
        raise ValueError(f"unknown size {size!r}; choose one of {', '.join(SIZES)}")
    with _without_collection():
        exchange = run_history(seed, SIZES[size], market, ids)
        sources = _build_sources(exchange, label)
    expected: dict[str, ExpectedTotals] = {}
    expected_mixed: dict[str, ExpectedTotals] = {}
    for account, totals in zip(exchange.accounts, expected_totals(exchange), strict=True):
        group = expected if account.trades_only_perps else expected_mixed
        group[account.address] = totals
    return World(
        seed=seed,
        size=size,
        sources=sources,
        expected=expected,
        expected_mixed=expected_mixed,
        builders=exchange.builders,
        examples=find_examples(exchange),
    )


def _build_sources(exchange: Exchange, label: str) -> Sources:
    start_ms, end_ms = exchange.start_ms, exchange.end_ms
    rewards, loans = staking.daily_rewards(exchange), states.borrow_lend_states(exchange.accounts)
    books = depth.final_books(exchange)
    return Sources(
        start_ms=start_ms,
        now_ms=end_ms,
        label=label,
        simulated=True,
        fills=exchange.fills,
        funding=exchange.funding,
        ledger=exchange.ledger,
        orders=exchange.sorted_orders(),
        approvals=exchange.approvals,
        slippage=depth.slippage_samples(exchange.prices.seed, exchange.prices, start_ms),
        metas=metadata.perp_metas(),
        contexts=contexts.asset_contexts(exchange),
        depth=depth.sum_depth(end_ms, books),
        states=states.clearinghouse_states(exchange),
        unavailable=frozenset({party_address(exchange.seed, "unavailable")}),
        limits=metadata.dex_limits(),
        auctions=metadata.deploy_auctions(start_ms, end_ms),
        account_snapshots=exchange.account_snapshots,
        twap_snapshots=exchange.twap_snapshots,
        borrow_lend=loans,
        lend_interest=states.lend_interest(loans, end_ms),
        delegations=staking.delegations(exchange),
        rewards=rewards,
        spot_meta=metadata.spot_meta(),
        spot_contexts=contexts.spot_contexts(exchange),
        spot_states=states.spot_states(exchange),
        outcome_meta=metadata.outcome_meta(exchange.settled),
        perp_dexes=metadata.perp_dexes(exchange.seed),
        funding_rates=contexts.funding_rates(exchange),
        books=depth.wire_books(exchange, books),
        stakes=staking.delegator_summaries(exchange),
        stake_events=staking.delegator_events(exchange),
        stake_rewards=staking.delegator_rewards(exchange, rewards),
        vault_equities=profiles.vault_equities(exchange),
        sub_accounts=profiles.sub_accounts(exchange),
        roles=profiles.user_roles(exchange),
        fees=profiles.user_fees(exchange),
        valuations={
            account.address: exchange.valuations[account.number] for account in exchange.accounts
        },
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
