"""Totals that the tables of a world must add up to, and one hash of all tables."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import msgspec

from toolkit.contract.source_tables import Sources
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.exact import MICRO

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
