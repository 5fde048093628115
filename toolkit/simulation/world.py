"""The whole world: from a seed and a size to tables and their truth."""

import gc
import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from toolkit.contract.sources import Sources
from toolkit.simulation.accounts import Account, draw_accounts
from toolkit.simulation.books import Books
from toolkit.simulation.builders import builder_addresses, draw_consents
from toolkit.simulation.contexts import asset_contexts, depth_now
from toolkit.simulation.deploys import deploy_auctions, dex_limits
from toolkit.simulation.exchange import Exchange, Holding
from toolkit.simulation.floor import Floor, Happening
from toolkit.simulation.funding import FundingHour
from toolkit.simulation.lending import borrow_lend_states
from toolkit.simulation.liquidation import Delisting, LastOrders, MarginCheck
from toolkit.simulation.markets import COLLATERAL, DEXES, PAIRS, PERPS, VENUES, metas
from toolkit.simulation.prices import simulate_prices
from toolkit.simulation.quantities import MICRO, WEI
from toolkit.simulation.refusals import draw_refusals
from toolkit.simulation.roles import give_roles
from toolkit.simulation.sampling import slippage_samples
from toolkit.simulation.slicing import draw_twaps
from toolkit.simulation.snapshots import SNAPSHOT_MS, Snapping
from toolkit.simulation.spotting import OUTCOME_HOURS, Dusting, Outcome, draw_spot_intents
from toolkit.simulation.staking import daily_rewards, delegations, validator_addresses
from toolkit.simulation.states import clearinghouse_states
from toolkit.simulation.stories import STORIES, draw_gambles
from toolkit.simulation.tokens import draw_token_moves
from toolkit.simulation.trading import draw_intents
from toolkit.simulation.transfers import draw_moves
from toolkit.simulation.vaults import draw_vault_moves
from toolkit.times import DAY, HOUR, MINUTE, to_ms

__all__ = ["SIZES", "Size", "TokenTruth", "Truth", "World", "simulate"]

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


@dataclass(frozen=True, slots=True)
class TokenTruth:
    """What an account's tables must add up to in one token of its spot wallet.

    ``balance == ledger + traded - fees - gas``, exactly; at the start everything is 0.
    """

    balance: Decimal
    ledger: Decimal
    traded: Decimal
    fees: Decimal
    gas: Decimal
    staked: Decimal


@dataclass(frozen=True, slots=True)
class Truth:
    """What the tables of a perp account, over all its dexes, must add up to, in dollars.

    ``equity_end == ledger + closed_pnl + funding - fees + unrealised``, exactly; at the start
    everything is 0. `tokens` is the same for the spot wallet, by token.
    """

    equity_start: Decimal
    equity_end: Decimal
    closed_pnl: Decimal
    funding: Decimal
    fees: Decimal
    ledger: Decimal
    unrealised: Decimal
    tokens: dict[str, TokenTruth]


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
    examples: dict[str, str] = field(default_factory=dict)

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
        }


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
        If there is no such size.

    Examples
    --------
    >>> world = simulate(7, "tiny")
    >>> len(world.summary()["users"]), world.sources.label
    (40, 'simulated, seed 7, size tiny')
    """
    if size not in SIZES:
        raise ValueError(f"there is no size {size!r}: choose one of {', '.join(SIZES)}")
    with _no_collection():
        floor = _run(seed, SIZES[size])
        sources = _sources(floor, f"simulated, seed {seed}, size {size}")
    exchange = floor.exchange
    accounts = exchange.accounts
    return World(
        seed=seed,
        size=size,
        sources=sources,
        truth={a.address: _truth(exchange, a.number) for a in accounts if not _is_mixed(a)},
        mixed_truth={a.address: _truth(exchange, a.number) for a in accounts if _is_mixed(a)},
        builders=floor.builders,
        examples=_examples(floor),
    )


def _sources(floor: Floor, label: str) -> Sources:
    exchange = floor.exchange
    start_ms, end_ms = exchange.start_ms, exchange.end_ms
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
        slippage=slippage_samples(exchange.seed, exchange.prices, start_ms),
        metas=metas(),
        contexts=asset_contexts(exchange),
        depth=depth_now(exchange),
        states=clearinghouse_states(exchange),
        limits=dex_limits(),
        auctions=deploy_auctions(start_ms, end_ms),
        account_snapshots=floor.account_snapshots,
        twap_snapshots=floor.twap_snapshots,
        borrow_lend=borrow_lend_states(exchange.accounts),
        delegations=delegations(exchange),
        rewards=daily_rewards(exchange),
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the collector of cycles: a million new records hold none, and it looks at all."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _run(seed: int, scale: Size) -> Floor:
    """Let everything happen, in the order of time."""
    hours = scale.days * 24
    start_ms = NOW_MS - scale.days * DAY
    prices = simulate_prices(seed, hours)
    accounts = draw_accounts(seed, scale.makers, scale.takers, scale.builders)
    give_roles(accounts, scale.makers)
    gambles = draw_gambles(start_ms, accounts, prices)  # they set their accounts' funds
    exchange = Exchange(seed, start_ms, accounts, prices)
    floor = Floor(exchange, Books(exchange), builder_addresses(seed, scale.builders))
    drawn: Iterator[Happening] = heapq.merge(
        draw_moves(seed, start_ms, scale.days, accounts),
        draw_token_moves(start_ms, scale.days, accounts),
        draw_vault_moves(start_ms, scale.days, accounts),
        draw_consents(seed, start_ms, scale.days, accounts, scale.builders),
        _clockwork(start_ms, hours),
        draw_intents(seed, start_ms, hours, scale.intents, accounts, prices),
        draw_spot_intents(seed, start_ms, hours, scale.spot_intents, accounts),
        draw_twaps(seed, start_ms, hours, scale.twaps, accounts, prices),
        draw_refusals(seed, start_ms, hours, scale.refusals, accounts),
        gambles,
        key=_time,
    )
    floor.run(drawn, NOW_MS)
    return floor


def _clockwork(start_ms: int, hours: int) -> list[Happening]:
    """Give what happens by the clock: funding, margin checks, dust, endings, snapshots."""
    end_ms = start_ms + hours * HOUR
    happenings: list[Happening] = []
    for hour in range(1, hours + 1):
        time = start_ms + hour * HOUR
        happenings.append(FundingHour(time, hour))
        if hour < hours:
            happenings.append(MarginCheck(time + 90_000))
        if hour % 24 == 0 and hour < hours:
            happenings.append(Dusting(time + MINUTE))
    delisted = start_ms + hours * HOUR * 3 // 4 + 7 * MINUTE
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


def _truth(exchange: Exchange, who: int) -> Truth:
    totals = exchange.totals[who]
    unrealised = sum(exchange.unrealised(who, dex) for dex in range(len(DEXES)))
    return Truth(
        equity_start=Decimal(0),
        equity_end=_scaled(sum(exchange.balances[who]) + unrealised, MICRO),
        closed_pnl=_scaled(totals.closed, MICRO),
        funding=_scaled(totals.funding, MICRO),
        fees=_scaled(totals.fees, MICRO),
        ledger=_scaled(totals.ledger, MICRO),
        unrealised=_scaled(unrealised, MICRO),
        tokens={token: _token_truth(kept) for token, kept in exchange.wallets[who].items()},
    )


def _is_mixed(account: Account) -> bool:
    return account.is_vault or account.spot_share > 0


def _token_truth(kept: Holding) -> TokenTruth:
    return TokenTruth(
        balance=_scaled(kept.balance, WEI),
        ledger=_scaled(kept.ledger, WEI),
        traded=_scaled(kept.traded, WEI),
        fees=_scaled(kept.fees, WEI),
        gas=_scaled(kept.gas, WEI),
        staked=_scaled(kept.staked, WEI),
    )


def _scaled(units: int, decimals: int) -> Decimal:
    return Decimal(units).scaleb(-decimals)


def _examples(floor: Floor) -> dict[str, str]:
    """Name accounts worth looking at."""
    accounts = floor.exchange.accounts
    people = [account for account in accounts if account.activity and not _is_mixed(account)]
    spot = [account for account in accounts if account.activity and account.spot_share]
    named = {
        "WHALE": max(people, key=_funds),
        "MARKET_MAKER": accounts[0],
        "TWAP_USER": floor.twaps[-1].account,
        "PORTFOLIO_MARGIN": next(account for account in people if account.mode == 3),
        "UNIFIED": next(account for account in people if account.mode == 2),
        "SPOT_TRADER": spot[0],
        "VAULT": next(account for account in accounts if account.is_vault),
    }
    gamblers = (account for account in accounts if account.story)
    named |= {story.name: account for story, account in zip(STORIES, gamblers, strict=True)}
    found = {name: account.address for name, account in named.items()}
    validator = validator_addresses(floor.exchange.seed)[2]
    return found | {"BUILDER": floor.builders[0], "VALIDATOR": validator}


def _funds(account: Account) -> int:
    return account.funds
