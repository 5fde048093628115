"""The tables of a store: written once from `Sources`, and never changed afterwards.

A table has the key columns of its record and a row number. The row number leads to the finished
JSON text of the row. Rows of an account are neighbours in the order of execution, so a page is one
range of rows.

Neighbouring texts share a compressed block; see `toolkit.service.row_blocks`.

`Sources` may come in parts, so that only one part is in memory. All rows of an account are in one
part. If several parts have the same document, the last one counts.
"""

import functools
import itertools
import operator
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
import zstandard

from toolkit.contract.dexes import coin_dex
from toolkit.contract.records import Fill
from toolkit.contract.source_tables import Approval, Sources
from toolkit.service.answer_documents import extra_documents, usual_documents
from toolkit.service.open_orders import OrderTracker
from toolkit.service.row_blocks import write_texts
from toolkit.service.trade_totals import TradeTotals, is_liquidated

_BUILDER_KEY: Final = "builder, time, tx, executed"
_SORTED: Final = {
    "about": ("name", "json"),
    # One finished text for each (kind, key), for example meta by dex.
    "document": ("kind, key", "json"),
    # `builder` and `venue` are those of the text: '' for null, and NULL if it has no such field.
    "fill": ("account, time, tx, row", "dex, builder, venue"),
    "status": ("account, time, tx, row", ""),
    "ledger": ("account, time, row", ""),
    "slippage": ("coin, amount, time", "row"),
    # The rows that each builder sees: of users who had approved it, and orders placed via it.
    "approved_fill": (_BUILDER_KEY, "row, user, routed, venue"),
    "approved_funding": ("builder, time, user, coin, row", ""),
    "routed_status": (_BUILDER_KEY, "row, user"),
    # Beyond the specification: the fills that each builder routed; the funding of each account;
    # trades and changes of open interest by the minute, for each part of the sources; volumes in
    # USD by account and day.
    "routed_fill": (_BUILDER_KEY, "row, user, venue"),
    "user_funding": ("account, time, row", ""),
    "minutes": ("coin, part", "data"),
    "interest": ("coin, part", "data"),
    "volume": ("user, day", "taker, maker"),
}
"""Table -> the columns by which its rows are sorted, and the others."""

_WHOLE: Final = ("account", "time", "tx", "row", "executed", "part", "day")
# Without their types, SQLite would not find an account's rows by their key.
_TYPES: Final = {**dict.fromkeys(_WHOLE, "INTEGER"), "amount": "REAL"}

CREATE: Final = "".join(
    [
        "CREATE TABLE account (id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE);",
        # The fills of liquidated accounts.
        "CREATE TABLE liquidation (time, tx, executed, row, user, routed, venue, coin);",
        *(
            f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID;"
            for name, (key, others) in _SORTED.items()
            for names in [f"{key}, {others}".strip(", ").split(", ")]
            for columns in [", ".join(f"{each} {_TYPES.get(each, '')}" for each in names)]
        ),
        *(
            f"CREATE TABLE {kind}_text (block INTEGER PRIMARY KEY, data BLOB NOT NULL);"
            for kind in ("fill", "funding", "status", "ledger", "slippage")
        ),
    ]
)
"""The tables, empty."""

INDEX: Final = """
CREATE INDEX fill_builder ON fill (row, builder) WHERE builder IS NOT NULL;
ANALYZE;
"""
"""The indexes, after the last part of the sources."""


def fill_tables(connection: sqlite3.Connection, sources: Sources, *, strict: bool = False) -> None:
    """Append one part of the sources to the tables.

    Raises
    ------
    ValueError
        If an account has rows in an earlier part, too, or fills are not in the order of
        execution.
    """
    highest = connection.execute("SELECT coalesce(max(id), 0) FROM account").fetchone()[0]
    accounts = defaultdict[str, int](itertools.count(highest + 1).__next__)
    approvals = approval_intervals(sources.approvals)
    totals, open_orders = TradeTotals(), OrderTracker()
    events, fills = sources.orders, sources.fills
    if not strict:
        events = open_orders.track_events(events)
        fills = totals.count_fills(open_orders.track_fills(fills))
    # Orders come first: the fills then reduce the sizes of the orders that are open.
    statuses, routed = [], []
    for row, place, user, event in _write_account_rows(connection, "status", events):
        account, time, tx = accounts[user], event.status_timestamp, event.tx_index or 0
        statuses.append((account, time, tx, row))
        if isinstance(event.builder, str):
            routed.append((event.builder, time, tx, place, row, account))
    _insert(connection, "status", statuses)
    _insert(connection, "routed_status", sorted(routed))
    _insert_fills(connection, fills, accounts, approvals)
    # Neighbours of one account share blocks, so a page of a builder's few users reads few blocks.
    payments = sorted(sources.funding, key=operator.attrgetter("user"))
    numbered = list(enumerate(payments, write_texts(connection, "funding", payments)))
    approved = [
        (builder, paid.time, paid.user, paid.delta.coin, row)
        for row, paid in numbered
        for builder in _builders_at(approvals, paid.user, paid.time)
    ]
    _insert(connection, "approved_funding", sorted(approved))
    ledger = _write_account_rows(connection, "ledger", sources.ledger)
    updates = ((accounts[user], update.time, row) for row, _, user, update in ledger)
    _insert(connection, "ledger", updates)
    samples = list(sources.slippage)
    first = write_texts(connection, "slippage", samples)
    keys = ((s.coin, s.amount_usd, s.timestamp, row) for row, s in enumerate(samples, first))
    _insert(connection, "slippage", keys, "REPLACE")
    if not strict:
        own = sorted((accounts[paid.user], paid.time, row) for row, paid in numbered)
        _insert(connection, "user_funding", own)
    try:
        _insert(connection, "account", ((number, user) for user, number in accounts.items()))
    except sqlite3.IntegrityError:
        # The rows of such an account would not be neighbours, so no page would be one range.
        select = "SELECT address FROM account WHERE id <= ?"
        earlier = {address for (address,) in connection.execute(select, (highest,))}
        raise ValueError(
            f"account {min(earlier & accounts.keys())} has rows in two parts of the sources; it "
            "may be in one only"
        ) from None
    documents = usual_documents(sources)
    if not strict:
        _insert_totals(connection, totals)
        documents = itertools.chain(documents, extra_documents(sources, totals, open_orders))
    _insert(connection, "document", documents, "REPLACE")


def _insert(
    connection: sqlite3.Connection,
    table: str,
    rows: Iterable[tuple[Any, ...]],
    verb: Literal["INSERT", "REPLACE"] = "INSERT",
) -> None:
    """Insert rows into a table; with REPLACE, the last row with a key counts."""
    width = len(connection.execute(f"SELECT * FROM {table} LIMIT 0").description)
    connection.executemany(f"{verb} INTO {table} VALUES ({','.join('?' * width)})", rows)


_Intervals = dict[str, list[tuple[str, int, int | None]]]
"""User -> builder, first millisecond, first one after the approval (None: it has no end)."""


def approval_intervals(approvals: Iterable[Approval]) -> _Intervals:
    """Return the approvals of each user as intervals.

    An approval is valid from its own block on, and ends before the block of its revocation. A
    block is a millisecond.

    Examples
    --------
    >>> approval = Approval("0xuser", "0xbuilder", 5, 0, True)
    >>> approval_intervals([approval, Approval("0xuser", "0xbuilder", 9, 2, False)])
    {'0xuser': [('0xbuilder', 5, 9)]}
    """
    since: dict[tuple[str, str], int] = {}
    intervals: _Intervals = defaultdict(list)
    for approval in sorted(approvals, key=operator.attrgetter("time", "tx_index")):
        pair = (approval.user, approval.builder)
        if approval.approved:
            since.setdefault(pair, approval.time)
        elif (first := since.pop(pair, None)) is not None and first < approval.time:
            intervals[approval.user].append((approval.builder, first, approval.time))
    for (user, builder), first in since.items():
        intervals[user].append((builder, first, None))
    return dict(intervals)


def _builders_at(intervals: _Intervals, user: str, time: int) -> Iterator[str]:
    """Yield the builders that a user had approved in the block at a time."""
    for builder, first, end in intervals.get(user, ()):
        if first <= time and (end is None or time < end):
            yield builder


def _write_account_rows(
    connection: sqlite3.Connection, kind: str, rows: Iterable[tuple[str, Any]]
) -> Iterator[tuple[int, int, str, Any]]:
    """Write the texts of rows, and yield row number, place in the order of execution, user, record.

    Row numbers make the rows of an account neighbours. Places continue after those of earlier
    parts.
    """
    by_user: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
    for place, (user, record) in enumerate(rows):
        by_user[user].append((place, record))
    users = sorted(by_user)
    records = (record for user in users for _, record in by_user[user])
    row = first = write_texts(connection, kind, records)
    for user in users:
        for place, record in by_user[user]:
            yield row, first + place, user, record
            row += 1


def _insert_fills(
    connection: sqlite3.Connection,
    fills: Iterable[tuple[str, Fill]],
    accounts: dict[str, int],
    approvals: _Intervals,
) -> None:
    approved: list[tuple[Any, ...]] = []
    through: list[tuple[Any, ...]] = []
    liquidations: list[tuple[Any, ...]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        before = ("", 0, 0)
        dex_of = functools.cache(coin_dex)
        for row, place, user, fill in _write_account_rows(connection, "fill", fills):
            account, time, tx = accounts[user], fill.time, fill.tx_index or 0
            if (user, time, tx) < before:
                raise ValueError(f"fills of {user} are not in the order of execution: {fill.hash}")
            before = (user, time, tx)
            routed, venue = (
                None if value is msgspec.UNSET else value or ""
                for value in (fill.builder, fill.venue)
            )
            for builder in _builders_at(approvals, user, time):
                approved.append((builder, time, tx, place, row, account, routed, venue))
            if routed:
                through.append((routed, time, tx, place, row, account, venue))
            if is_liquidated(user, fill):
                liquidations.append((time, tx, place, row, account, routed, venue, fill.coin))
            yield account, time, tx, row, dex_of(fill.coin), routed, venue

    _insert(connection, "fill", rows())
    _insert(connection, "approved_fill", sorted(approved, key=lambda row: row[:4]))
    _insert(connection, "routed_fill", sorted(through))
    _insert(connection, "liquidation", liquidations)


def _insert_totals(connection: sqlite3.Connection, totals: TradeTotals) -> None:
    last = connection.execute("SELECT coalesce(max(part), 0) FROM minutes").fetchone()[0]
    compress = zstandard.ZstdCompressor(level=1).compress
    minutes = {coin: list(minutes.values()) for coin, minutes in totals.minutes.items()}
    by_table: dict[str, Any] = {"minutes": minutes, "interest": totals.interest}
    for table, coins in by_table.items():
        texts = ((coin, compress(msgspec.msgpack.encode(part))) for coin, part in coins.items())
        _insert(connection, table, ((coin, last + 1, text) for coin, text in texts))
    volumes = ((*key, *map(str, both)) for key, both in totals.volumes.items())
    _insert(connection, "volume", volumes)
