"""The store's tables: built once from `Sources`, never changed afterwards.

A table has the key columns of its record, by which rows are found, and a row number, by which
their texts are (`texts`). Rows of an account are neighbours, in the order of execution, so that
a page is one range of rows.

`Sources` may come in parts, so that no more than one has to be in memory. An account's rows are
all in the same part; of what is served whole, the last part that has it counts.
"""

import functools
import itertools
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
import zstandard

from toolkit.contract.dexes import coin_dex
from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, OrderStatus, SlippageSample
from toolkit.contract.sources import Sources
from toolkit.service.approvals import Approvals
from toolkit.service.documents import documents
from toolkit.service.extra_documents import extra_documents
from toolkit.service.open_orders import OpenOrders
from toolkit.service.tape import Tape
from toolkit.service.texts import KINDS, Texts

__all__ = ["create_tables", "fill_tables", "index_tables", "is_current"]

_SCHEMA: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
-- One text for each (kind, key): meta by dex, and whatever else is served whole.
CREATE TABLE document (kind TEXT, key TEXT, json BLOB NOT NULL, PRIMARY KEY (kind, key))
    WITHOUT ROWID;
CREATE TABLE account (id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE);
-- `builder` and `venue` hold what the text has there, '' for null, and NULL where it has none.
CREATE TABLE fill (account INTEGER, time INTEGER, tx INTEGER, row INTEGER,
    dex TEXT NOT NULL, builder TEXT, venue TEXT,
    PRIMARY KEY (account, time, tx, row)) WITHOUT ROWID;
CREATE TABLE status (account INTEGER, time INTEGER, tx INTEGER, row INTEGER,
    PRIMARY KEY (account, time, tx, row)) WITHOUT ROWID;
CREATE TABLE ledger (account INTEGER, time INTEGER, row INTEGER,
    PRIMARY KEY (account, time, row)) WITHOUT ROWID;
CREATE TABLE slippage (coin TEXT, amount REAL, time INTEGER, row INTEGER,
    PRIMARY KEY (coin, amount, time)) WITHOUT ROWID;
-- What each builder is shown: rows of users who had approved it, orders placed via it.
CREATE TABLE approved_fill (builder TEXT, time INTEGER, tx INTEGER, executed INTEGER,
    row INTEGER, user INTEGER, routed TEXT, venue TEXT,
    PRIMARY KEY (builder, time, tx, executed)) WITHOUT ROWID;
CREATE TABLE approved_funding (builder TEXT, time INTEGER, user TEXT, coin TEXT, row INTEGER,
    PRIMARY KEY (builder, time, user, coin, row)) WITHOUT ROWID;
CREATE TABLE routed_status (builder TEXT, time INTEGER, tx INTEGER, executed INTEGER,
    row INTEGER, user INTEGER, PRIMARY KEY (builder, time, tx, executed)) WITHOUT ROWID;
-- Beyond the specification: funding of each account; trades by the minute, a part of the sources
-- each; volumes in USD by account and day.
CREATE TABLE user_funding (account INTEGER, time INTEGER, row INTEGER,
    PRIMARY KEY (account, time, row)) WITHOUT ROWID;
CREATE TABLE minutes (coin TEXT, part INTEGER, data BLOB NOT NULL, PRIMARY KEY (coin, part))
    WITHOUT ROWID;
CREATE TABLE volume (user TEXT, day INTEGER, taker TEXT NOT NULL, maker TEXT NOT NULL,
    PRIMARY KEY (user, day)) WITHOUT ROWID;
"""
_INDEX: Final = "CREATE INDEX routed_fill ON fill (row, builder) WHERE builder IS NOT NULL"
_TEXTS: Final = "CREATE TABLE {}_text (block INTEGER PRIMARY KEY, data BLOB NOT NULL);"
_CREATE: Final = _SCHEMA + "".join(map(_TEXTS.format, KINDS))
_VERSION: Final = zlib.crc32((_CREATE + _INDEX).encode()) & 0x7FFF_FFFF


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, empty."""
    connection.executescript(_CREATE)
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def is_current(connection: sqlite3.Connection) -> bool:
    """Say whether a file's tables are those that this code creates."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION)


def fill_tables(connection: sqlite3.Connection, sources: Sources, *, strict: bool = False) -> None:
    """Put everything of one part into the tables, behind what is there.

    Raises
    ------
    ValueError
        If an account has rows in an earlier part, too, or fills that are not in the order of
        execution.
    """
    accounts, approvals = _Accounts(connection), Approvals(sources.approvals)
    tape, open_orders = Tape(), OpenOrders()
    events, fills = sources.orders, sources.fills
    if not strict:
        events = open_orders.watch_events(events)
        fills = tape.watch(open_orders.watch_fills(fills))
    # Orders first: then it is known which ones are open, and the fills say what is left of them.
    _insert_statuses(connection, events, accounts)
    _insert_fills(connection, fills, accounts, approvals)
    funded = _insert_funding(connection, sources.funding, approvals)
    _insert_ledger(connection, sources.ledger, accounts)
    _insert_slippage(connection, sources.slippage)
    found = documents(sources)
    if not strict:
        _insert_user_funding(connection, funded, accounts)
    accounts.insert(connection)  # it refuses an account that has rows in an earlier part
    if not strict:
        _insert_tape(connection, tape)
        found = itertools.chain(found, extra_documents(sources, tape, open_orders))
    connection.executemany("INSERT OR REPLACE INTO document VALUES (?,?,?)", found)


def index_tables(connection: sqlite3.Connection) -> None:
    """Finish the tables once all parts are in them."""
    connection.execute(_INDEX)
    connection.execute("ANALYZE")


class _Accounts(dict[str, int]):
    """Address -> small number, given at first sight; numbers go on from those of earlier parts."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        found = connection.execute("SELECT coalesce(max(id), 0) FROM account").fetchone()
        self._last: int = found[0]

    def __missing__(self, address: str) -> int:
        self._last += 1
        self[address] = self._last
        return self._last

    def insert(self, connection: sqlite3.Connection) -> None:
        """Keep the numbers."""
        numbered = ((number, address) for address, number in self.items())
        try:
            connection.executemany("INSERT INTO account VALUES (?,?)", numbered)
        except sqlite3.IntegrityError:
            # Its rows would not be neighbours, and a page of them not one range.
            raise ValueError("an account has rows in two parts of the sources") from None


def _written(
    connection: sqlite3.Connection, kind: str, rows: Iterable[tuple[str, Any]]
) -> Iterator[tuple[int, tuple[int, tuple[str, Any]]]]:
    """Write rows' texts, those of an account as neighbours; give row number, place, row.

    A place is that in the order of execution, above those of earlier parts, which had a row
    number for each.
    """
    texts = Texts(connection, kind)
    of_account: defaultdict[str, list[tuple[int, tuple[str, Any]]]] = defaultdict(list)
    for executed, row in enumerate(rows, texts.next_row):
        of_account[row[0]].append((executed, row))
    ordered = [one for account in sorted(of_account) for one in of_account[account]]
    return enumerate(ordered, texts.add(record for _, (_, record) in ordered))


def _insert_fills(
    connection: sqlite3.Connection,
    fills: Iterable[tuple[str, Fill]],
    accounts: _Accounts,
    approvals: Approvals,
) -> None:
    approved: list[tuple[Any, ...]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        before = ("", 0, 0)
        dex_of = functools.cache(coin_dex)
        for row, (executed, (user, fill)) in _written(connection, "fill", fills):
            account, time, tx = accounts[user], fill.time, fill.tx_index
            if (user, time, tx) < before:
                raise ValueError(f"fills of {user} are not in the order of execution: {fill.hash}")
            before = (user, time, tx)
            routed, venue = _mark(fill.builder), _mark(fill.venue)
            for builder in approvals.of(user, time):
                approved.append((builder, time, tx, executed, row, account, routed, venue))
            yield account, time, tx, row, dex_of(fill.coin), routed, venue

    connection.executemany("INSERT INTO fill VALUES (?,?,?,?,?,?,?)", rows())
    approved.sort(key=lambda one: one[:4])
    connection.executemany("INSERT INTO approved_fill VALUES (?,?,?,?,?,?,?,?)", approved)


def _mark(value: str | msgspec.UnsetType | None) -> str | None:
    return None if value is msgspec.UNSET else value or ""


def _insert_funding(
    connection: sqlite3.Connection, funding: Iterable[FundingRow], approvals: Approvals
) -> list[tuple[str, int, int]]:
    """Insert funding rows, and return user, time and row number of each."""
    approved: list[tuple[Any, ...]] = []
    rows, written = list(funding), []
    for row, one in enumerate(rows, Texts(connection, "funding").add(rows)):
        written.append((one.user, one.time, row))
        for builder in approvals.of(one.user, one.time):
            approved.append((builder, one.time, one.user, one.delta.coin, row))
    approved.sort()
    connection.executemany("INSERT INTO approved_funding VALUES (?,?,?,?,?)", approved)
    return written


def _insert_user_funding(
    connection: sqlite3.Connection, funded: list[tuple[str, int, int]], accounts: _Accounts
) -> None:
    rows = sorted((accounts[user], time, row) for user, time, row in funded)
    connection.executemany("INSERT INTO user_funding VALUES (?,?,?)", rows)


def _insert_tape(connection: sqlite3.Connection, tape: Tape) -> None:
    last = connection.execute("SELECT coalesce(max(part), 0) FROM minutes").fetchone()
    compress = zstandard.ZstdCompressor(level=1).compress
    connection.executemany(
        "INSERT INTO minutes VALUES (?,?,?)",
        (
            (coin, last[0] + 1, compress(msgspec.msgpack.encode(list(minutes.values()))))
            for coin, minutes in tape.minutes.items()
        ),
    )
    connection.executemany(
        "INSERT INTO volume VALUES (?,?,?,?)",
        (
            (user, day, str(taker), str(maker))
            for (user, day), (taker, maker) in tape.volumes.items()
        ),
    )


def _insert_statuses(
    connection: sqlite3.Connection,
    orders: Iterable[tuple[str, OrderStatus]],
    accounts: _Accounts,
) -> None:
    routed: list[tuple[Any, ...]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        for row, (executed, (user, event)) in _written(connection, "status", orders):
            account = accounts[user]
            time, tx = event.status_timestamp, event.tx_index
            if event.builder is not msgspec.UNSET:
                routed.append((event.builder, time, tx, executed, row, account))
            yield account, time, tx, row

    connection.executemany("INSERT INTO status VALUES (?,?,?,?)", rows())
    routed.sort()
    connection.executemany("INSERT INTO routed_status VALUES (?,?,?,?,?,?)", routed)


def _insert_ledger(
    connection: sqlite3.Connection,
    ledger: Iterable[tuple[str, LedgerUpdate]],
    accounts: _Accounts,
) -> None:
    connection.executemany(
        "INSERT INTO ledger VALUES (?,?,?)",
        (
            (accounts[user], update.time, row)
            for row, (_, (user, update)) in _written(connection, "ledger", ledger)
        ),
    )


def _insert_slippage(connection: sqlite3.Connection, samples: Iterable[SlippageSample]) -> None:
    rows = list(samples)
    connection.executemany(
        "INSERT OR REPLACE INTO slippage VALUES (?,?,?,?)",
        (
            (one.coin, one.amount_usd, one.timestamp, row)
            for row, one in enumerate(rows, Texts(connection, "slippage").add(rows))
        ),
    )
