"""The store's tables: built once from `Sources`, never changed afterwards.

Every table has the key columns of its record and the record's finished JSON text. Rows of an
account are neighbours, in the order of execution, so that a page is one range of rows.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import coin_dex
from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, OrderStatus, SlippageSample
from toolkit.contract.sources import Sources
from toolkit.service.approvals import Approvals
from toolkit.service.documents import documents

__all__ = ["fill_tables"]

_SCHEMA: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
-- One text for each (kind, key): meta by dex, and whatever else is served whole.
CREATE TABLE document (kind TEXT, key TEXT, json BLOB NOT NULL, PRIMARY KEY (kind, key))
    WITHOUT ROWID;
CREATE TABLE account (id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE);
-- By account; `json` as userFillsByTime shows it, `routed` as userFills where that differs.
CREATE TABLE fill (row INTEGER PRIMARY KEY, account INTEGER NOT NULL, time INTEGER NOT NULL,
    tx INTEGER NOT NULL, dex TEXT NOT NULL, builder TEXT, venue TEXT, routed BLOB,
    json BLOB NOT NULL);
-- By time, user, coin.
CREATE TABLE funding (row INTEGER PRIMARY KEY, time INTEGER NOT NULL, user TEXT NOT NULL,
    coin TEXT NOT NULL, json BLOB NOT NULL);
CREATE TABLE approved_funding (builder TEXT, funding INTEGER, PRIMARY KEY (builder, funding))
    WITHOUT ROWID;
-- Which builder was approved by the user of a fill when it happened.
CREATE TABLE approved_fill (builder TEXT, time INTEGER, tx INTEGER, executed INTEGER, fill INTEGER,
    PRIMARY KEY (builder, time, tx, executed)) WITHOUT ROWID;
-- By account; `json` as historicalOrders shows it, `routed` as builderOrdersByTime.
CREATE TABLE status (row INTEGER PRIMARY KEY, account INTEGER NOT NULL, time INTEGER NOT NULL,
    tx INTEGER NOT NULL, executed INTEGER NOT NULL, builder TEXT, routed BLOB, json BLOB NOT NULL);
CREATE TABLE ledger (row INTEGER PRIMARY KEY, account INTEGER NOT NULL, time INTEGER NOT NULL,
    json BLOB NOT NULL);
CREATE TABLE slippage (coin TEXT, amount REAL, time INTEGER, json BLOB NOT NULL,
    PRIMARY KEY (coin, amount, time)) WITHOUT ROWID;
"""

_INDEXES: Final = """
CREATE INDEX fill_key ON fill (account, time, tx, row, dex, builder, venue);
CREATE INDEX funding_key ON funding (time, user, coin);
CREATE INDEX status_key ON status (account, time, tx, row);
CREATE INDEX status_builder ON status (builder, time, tx, executed) WHERE builder IS NOT NULL;
CREATE INDEX ledger_key ON ledger (account, time, row);
ANALYZE;
"""


def fill_tables(connection: sqlite3.Connection, sources: Sources) -> None:
    """Create the tables and put everything of `sources` into them."""
    connection.executescript(_SCHEMA)
    accounts, approvals = _Accounts(), Approvals(sources.approvals)
    insert = connection.executemany
    _insert_fills(connection, sources.fills, accounts, approvals)
    _insert_funding(connection, sources.funding, approvals)
    insert("INSERT INTO status VALUES (?,?,?,?,?,?,?,?)", _statuses(sources.orders, accounts))
    insert("INSERT INTO ledger VALUES (?,?,?,?)", _ledger(sources.ledger, accounts))
    insert("INSERT OR REPLACE INTO slippage VALUES (?,?,?,?)", _slippage(sources.slippage))
    insert("INSERT INTO account VALUES (?,?)", ((id, one) for one, id in accounts.items()))
    insert("INSERT INTO document VALUES (?,?,?)", documents(sources))
    connection.executescript(_INDEXES)


class _Accounts(dict[str, int]):
    """Address -> small number, given at first sight."""

    def __missing__(self, address: str) -> int:
        self[address] = number = len(self) + 1
        return number


def _insert_fills(
    connection: sqlite3.Connection,
    fills: Iterable[tuple[str, Fill]],
    accounts: _Accounts,
    approvals: Approvals,
) -> None:
    approved: list[tuple[str, int, int, int, int]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        # Sorting is stable: an account's fills keep the order of execution.
        by_account = sorted(enumerate(fills), key=lambda one: one[1][0])
        for row, (executed, (user, fill)) in enumerate(by_account, 1):
            for builder in approvals.of(user, fill.time):
                approved.append((builder, fill.time, fill.tx_index, executed, row))
            yield row, accounts[user], fill.time, fill.tx_index, *_fill_values(fill)

    connection.executemany("INSERT INTO fill VALUES (?,?,?,?,?,?,?,?,?)", rows())
    approved.sort()
    connection.executemany("INSERT INTO approved_fill VALUES (?,?,?,?,?)", approved)


def _fill_values(fill: Fill) -> tuple[str, str | None, str | None, bytes | None, bytes]:
    unset = msgspec.UNSET
    dex = coin_dex(fill.coin)
    if fill.builder is unset and fill.venue is unset:
        return dex, None, None, None, encode(fill)
    replace = msgspec.structs.replace
    timed, latest = encode(replace(fill, builder=unset)), encode(replace(fill, venue=unset))
    return dex, fill.builder or None, (fill.venue or "").upper() or None, latest, timed


def _insert_funding(
    connection: sqlite3.Connection, funding: Iterable[FundingRow], approvals: Approvals
) -> None:
    approved: list[tuple[str, int]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        for row, one in enumerate(funding, 1):
            for builder in approvals.of(one.user, one.time):
                approved.append((builder, row))
            yield row, one.time, one.user, one.delta.coin, encode(one)

    connection.executemany("INSERT INTO funding VALUES (?,?,?,?,?)", rows())
    approved.sort()
    connection.executemany("INSERT INTO approved_funding VALUES (?,?)", approved)


def _statuses(
    orders: Iterable[tuple[str, OrderStatus]], accounts: _Accounts
) -> Iterator[tuple[Any, ...]]:
    replace, unset = msgspec.structs.replace, msgspec.UNSET
    by_account = sorted(enumerate(orders), key=lambda one: one[1][0])
    for row, (executed, (user, event)) in enumerate(by_account, 1):
        key = (row, accounts[user], event.status_timestamp, event.tx_index, executed)
        if event.builder is unset:
            yield *key, None, None, encode(event)
        else:
            routed = encode(replace(event, user=user, builder=unset))
            yield *key, event.builder, routed, encode(event)


def _ledger(
    ledger: Iterable[tuple[str, LedgerUpdate]], accounts: _Accounts
) -> Iterator[tuple[Any, ...]]:
    for row, (user, update) in enumerate(sorted(ledger, key=lambda one: one[0]), 1):
        yield row, accounts[user], update.time, encode(update)


def _slippage(samples: Iterable[SlippageSample]) -> Iterator[tuple[Any, ...]]:
    for one in samples:
        yield one.coin, one.amount_usd, one.timestamp, encode(one)
