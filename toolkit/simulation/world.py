"""A world: the tables of a simulated exchange, drawn from a seed and a size, and their totals."""

import gc
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import msgspec

from toolkit.contract.seeds import check_seed
from toolkit.contract.source_tables import Sources
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.exact import MICRO, party_address
from toolkit.simulation.history import SIZES, run_history
from toolkit.simulation.markets import COLLATERAL, DEXES, PAIRS, PERPS, VENUES
from toolkit.simulation.output import depth, metadata, profiles, states
from toolkit.simulation.output.examples import STORY_TEXTS, find_examples

_encode: Final = msgspec.msgpack.Encoder().encode
_CHUNK_ROWS: Final = 1_000
_NO_TABLES: Final = ("start_ms", "now_ms", "label", "simulated", "history")
_TABLE_NAMES: Final = {"borrow_lend": "borrow and lend", "sub_accounts": "sub-accounts"}


@dataclass(frozen=True, slots=True)
class ExpectedTokens:
    """The totals of an account's tables in one token of its spot wallet.

    ``balance == ledger + traded - fees - gas``, exactly; at the start everything is 0.
    """

    balance: Decimal
    ledger: Decimal
    traded: Decimal
    fees: Decimal
    gas: Decimal
    staked: Decimal


@dataclass(frozen=True, slots=True)
class ExpectedTotals:
    """The totals of an account's perp tables over all its dexes, in dollars.

    ``equity_end == ledger + closed_pnl + funding - fees + unrealised``, exactly; at the start
    everything is 0. `tokens` has the totals of the spot wallet, by token.
    """

    equity_start: Decimal
    equity_end: Decimal
    closed_pnl: Decimal
    funding: Decimal
    fees: Decimal
    ledger: Decimal
    unrealised: Decimal
    tokens: dict[str, ExpectedTokens]


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
            "validators": profiles.validator_addresses(self.seed),
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
    # The garbage collector pauses, and later skips these objects: each collection would take
    # seconds, because there are millions of records. They contain no cycles, so reference counts
    # free them anyway.
    is_running = gc.isenabled()
    gc.disable()
    try:
        exchange = run_history(seed, size, market, ids)
        addresses = [account.address for account in exchange.accounts]
        sources = Sources(
            start_ms=exchange.start_ms,
            now_ms=exchange.end_ms,
            label=label,
            simulated=True,
            fills=exchange.fills,
            funding=exchange.funding,
            ledger=exchange.ledger,
            orders=exchange.orders,
            approvals=exchange.approvals,
            unavailable=frozenset({party_address(exchange.seed, "unavailable")}),
            account_snapshots=exchange.account_snapshots,
            twap_snapshots=exchange.twap_snapshots,
            valuations=dict(zip(addresses, exchange.valuations, strict=True)),
            **depth.tables(exchange.prices, exchange.start_ms),
            **metadata.tables(exchange),
            **profiles.tables(exchange),
            **states.tables(exchange),
        )
    finally:
        gc.freeze()
        if is_running:
            gc.enable()
    totals = dict(zip(addresses, _expected_totals(exchange), strict=True))
    mixed = {one.address for one in exchange.accounts if not one.trades_only_perps}
    return World(
        seed=seed,
        size=size,
        sources=sources,
        expected={user: row for user, row in totals.items() if user not in mixed},
        expected_mixed={user: row for user, row in totals.items() if user in mixed},
        builders=exchange.builders,
        examples=find_examples(exchange),
    )


def _expected_totals(exchange: Exchange) -> list[ExpectedTotals]:
    """Return the totals of all accounts, as the exchange has counted them."""
    rows = []
    names = [field.name for field in fields(ExpectedTokens)]
    for number, unrealised in enumerate(exchange.unrealised_pnl(exchange.end_ms)):
        totals, equity = exchange.totals[number], sum(exchange.balances[number]) + unrealised
        micro = (equity, totals.closed, totals.funding, totals.fees, totals.ledger, unrealised)
        end, closed, funding, fees, ledger, gain = (Decimal(one).scaleb(-MICRO) for one in micro)
        tokens = {
            token: ExpectedTokens(*(Decimal(getattr(held, name)).scaleb(-WEI) for name in names))
            for token, held in exchange.wallets[number].items()
        }
        row = ExpectedTotals(Decimal(0), end, closed, funding, fees, ledger, gain, tokens)
        rows.append(row)
    return rows


def compute_digest(sources: Sources) -> str:
    """Return a hash of every table, row by row, as its records would be written.

    Mappings are in the order of their keys.

    - ``sources``: the tables

    Returns: SHA-256, 64 hexadecimal digits.
    """
    parts: list[tuple[str, Any]] = [("span", (sources.start_ms, sources.now_ms))]
    for field in fields(Sources):
        name, table = field.name, getattr(sources, field.name)
        if name == "states":
            parts += [(f"states {dex}", states) for dex, states in sorted(table.items())]
        elif name == "account_snapshots":
            parts += [(snapshot.snapshot_id, snapshot.values) for snapshot in table]
        elif name == "twap_snapshots":
            parts += [(snapshot.snapshot_id, snapshot.twaps) for snapshot in table]
        elif name not in _NO_TABLES:
            parts.append((_TABLE_NAMES.get(name, name.replace("_", " ")), table))
    digest = sha256()
    for name, table in parts:
        rows = table.items() if isinstance(table, Mapping) else table
        if isinstance(table, Mapping | frozenset):
            rows = sorted(rows)
        elif table is None or isinstance(table, msgspec.Struct):
            rows = (table,)
        digest.update(name.encode())
        remaining = iter(rows)
        while chunk := list(islice(remaining, _CHUNK_ROWS)):
            # Many rows are encoded at once, for speed. The header of their array is not hashed.
            header = len(_encode([None] * len(chunk))) - len(chunk)
            digest.update(memoryview(_encode(chunk))[header:])
    return digest.hexdigest()
