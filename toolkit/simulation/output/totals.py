"""Totals that the tables of a world must add up to, and one hash of all tables."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import msgspec

from toolkit.contract.source_tables import Sources
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.quantities import MICRO

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


def expected_totals(exchange: Exchange) -> list[ExpectedTotals]:
    """Return the totals of all accounts, as the exchange has counted them."""
    rows = []
    names = [field.name for field in fields(ExpectedTokens)]
    for number, unrealised in enumerate(exchange.unrealised_pnl(exchange.end_ms)):
        totals, equity = exchange.totals[number], sum(exchange.balances[number]) + unrealised
        tokens = {
            token: ExpectedTokens(*(_to_decimal(getattr(balance, name), WEI) for name in names))
            for token, balance in exchange.wallets[number].items()
        }
        rows.append(
            ExpectedTotals(
                equity_start=Decimal(0),
                equity_end=_to_decimal(equity, MICRO),
                closed_pnl=_to_decimal(totals.closed, MICRO),
                funding=_to_decimal(totals.funding, MICRO),
                fees=_to_decimal(totals.fees, MICRO),
                ledger=_to_decimal(totals.ledger, MICRO),
                unrealised=_to_decimal(unrealised, MICRO),
                tokens=tokens,
            )
        )
    return rows


def compute_digest(sources: Sources) -> str:
    """Return a hash of every table, row by row, as its records would be written.

    - ``sources``: the tables

    Returns: SHA-256, 64 hexadecimal digits.
    """
    digest = sha256()
    for name, rows in _iterate_tables(sources):
        digest.update(name.encode())
        remaining = iter(rows)
        while chunk := list(islice(remaining, _CHUNK_ROWS)):
            # Many rows are encoded at once, for speed. The header of their array is not hashed.
            header = len(_encode([None] * len(chunk))) - len(chunk)
            digest.update(memoryview(_encode(chunk))[header:])
    return digest.hexdigest()


def _to_decimal(units: int, decimals: int) -> Decimal:
    return Decimal(units).scaleb(-decimals)


def _iterate_tables(sources: Sources) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield every table with its name; mappings in the order of their keys."""
    yield "span", (sources.start_ms, sources.now_ms)
    for field in fields(Sources):
        name, table = field.name, getattr(sources, field.name)
        if name in _NO_TABLES:
            continue
        if name == "states":
            for dex, states in sorted(table.items()):
                yield f"states {dex}", sorted(states.items())
        elif name in ("account_snapshots", "twap_snapshots"):
            for snapshot in table:
                rows = snapshot.values if name == "account_snapshots" else snapshot.twaps
                yield snapshot.snapshot_id, sorted(rows.items())
        elif isinstance(table, Mapping):
            yield _TABLE_NAMES.get(name, name.replace("_", " ")), sorted(table.items())
        elif isinstance(table, frozenset):
            yield name, sorted(table)
        else:
            is_record = table is None or isinstance(table, msgspec.Struct)
            yield name.replace("_", " "), (table,) if is_record else table
