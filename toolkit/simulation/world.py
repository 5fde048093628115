"""The whole world: from a seed and a size to tables and their truth."""

import gc
import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from toolkit.contract.sources import Sources
from toolkit.simulation.accounts import draw_accounts
from toolkit.simulation.books import Books
from toolkit.simulation.builders import (
    Consent,
    builder_addresses,
    draw_consents,
    give_consent,
)
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.funding import pay_funding
from toolkit.simulation.markets import DEXES, PERPS, metas
from toolkit.simulation.prices import simulate_prices
from toolkit.simulation.quantities import MICRO
from toolkit.simulation.sampling import slippage_samples
from toolkit.simulation.trading import Intent, draw_intents, pursue
from toolkit.simulation.transfers import Move, draw_moves, make_move
from toolkit.times import DAY, HOUR, to_ms

__all__ = ["SIZES", "Size", "Truth", "World", "simulate"]

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


SIZES = {
    "tiny": Size(days=3, makers=4, takers=36, builders=3, intents=2_600),
    "demo": Size(days=30, makers=8, takers=242, builders=5, intents=56_000),
}


@dataclass(frozen=True, slots=True)
class Truth:
    """What the tables of a perp account, over all its dexes, must add up to, in dollars.

    ``equity_end == ledger + closed_pnl + funding - fees + unrealised``, exactly; at the start
    everything is 0.
    """

    equity_start: Decimal
    equity_end: Decimal
    closed_pnl: Decimal
    funding: Decimal
    fees: Decimal
    ledger: Decimal
    unrealised: Decimal


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
        Address -> what the account's tables must add up to.
    builders : list of str
        Addresses of the builders.
    examples : dict of str to str
        Name -> address of an account worth looking at.
    """

    seed: int
    size: str
    sources: Sources
    truth: dict[str, Truth]
    builders: list[str]
    examples: dict[str, str] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Say what is in it, as ``toolkit world`` prints it."""
        return {
            "seed": self.seed,
            "size": self.size,
            "start_ms": self.sources.start_ms,
            "now_ms": self.sources.now_ms,
            "users": list(self.truth),
            "builders": self.builders,
            "validators": [],
            "perp_coins": [perp.coin for perp in PERPS],
            "spot_coins": [],
            "dexes": list(DEXES),
            "venues": [],
            "collateral_tokens": ["USDC"],
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
    >>> len(world.truth), world.sources.label
    (40, 'simulated, seed 7, size tiny')
    """
    if size not in SIZES:
        raise ValueError(f"there is no size {size!r}: choose one of {', '.join(SIZES)}")
    scale = SIZES[size]
    start_ms = NOW_MS - scale.days * DAY
    with _no_collection():
        exchange = _run(seed, scale, start_ms)
    return World(
        seed=seed,
        size=size,
        sources=Sources(
            start_ms=start_ms,
            now_ms=NOW_MS,
            label=f"simulated, seed {seed}, size {size}",
            simulated=True,
            fills=exchange.fills,
            funding=exchange.funding,
            ledger=exchange.ledger,
            approvals=exchange.approvals,
            slippage=slippage_samples(seed, exchange.prices, start_ms),
            metas=metas(),
        ),
        truth={account.address: _truth(exchange, account.number) for account in exchange.accounts},
        builders=builder_addresses(seed, scale.builders),
        examples=_examples(exchange),
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


def _run(seed: int, scale: Size, start_ms: int) -> Exchange:
    """Let everything happen, in the order of time."""
    hours = scale.days * 24
    prices = simulate_prices(seed, hours)
    accounts = draw_accounts(seed, scale.makers, scale.takers, scale.builders)
    exchange = Exchange(seed, start_ms, accounts, prices)
    books = Books(exchange)
    builders = builder_addresses(seed, scale.builders)
    happenings: Iterator[Move | Consent | Hour | Intent] = heapq.merge(
        draw_moves(seed, start_ms, scale.days, accounts),
        draw_consents(seed, start_ms, scale.days, accounts, scale.builders),
        (Hour(start_ms + hour * HOUR, hour) for hour in range(1, hours + 1)),
        draw_intents(seed, start_ms, hours, scale.intents, accounts, prices),
        key=_time,
    )
    for happening in happenings:
        match happening:
            case Intent():
                pursue(exchange, books, builders, happening)
            case Hour():
                pay_funding(exchange, happening.number, happening.time)
            case Move():
                make_move(exchange, happening)
            case Consent():
                give_consent(exchange, happening, builders)
    return exchange


@dataclass(frozen=True, slots=True)
class Hour:
    """The end of an hour, when funding is paid."""

    time: int
    number: int


def _time(happening: Move | Consent | Hour | Intent) -> int:
    return happening.time


def _truth(exchange: Exchange, who: int) -> Truth:
    totals = exchange.totals[who]
    unrealised = sum(exchange.unrealised(who, dex) for dex in range(len(DEXES)))
    equity = sum(exchange.balances[who]) + unrealised
    return Truth(
        equity_start=Decimal(0),
        equity_end=_usd(equity),
        closed_pnl=_usd(totals.closed),
        funding=_usd(totals.funding),
        fees=_usd(totals.fees),
        ledger=_usd(totals.ledger),
        unrealised=_usd(unrealised),
    )


def _usd(micro: int) -> Decimal:
    return Decimal(micro).scaleb(-MICRO)


def _examples(exchange: Exchange) -> dict[str, str]:
    """Name accounts worth looking at."""
    takers = [account for account in exchange.accounts if account.activity]
    richest = max(takers, key=lambda account: account.funds)
    return {"WHALE": richest.address, "MARKET_MAKER": exchange.accounts[0].address}
