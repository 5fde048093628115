"""The store's tables: built once from `Sources`, never changed afterwards.

Every table has the key columns of its record and the record's finished JSON text. Rows of an
account are neighbours, in the order of execution, so that a page is one range of rows.
"""

import operator
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import coin_dex
from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, SlippageSample
from toolkit.contract.sources import Approval, Sources

__all__ = ["fill_tables"]

_SCHEMA: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
-- One text for each (kind, key): meta by dex, and whatever else is served whole.
CREATE TABLE document (kind TEXT, key TEXT, json BLOB NOT NULL, PRIMARY KEY (kind, key))
    WITHOUT ROWID;
CREATE TABLE account (id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE);
-- By account; `json` as userFillsByTime shows it, `routed` as userFills where that differs.
CREATE TABLE fill (row INTEGER PRIMARY KEY, account INTEGER NOT NULL, time INTEGER NOT NULL,
    tx INTEGER NOT NULL, dex TEXT NOT NULL, builder TEXT, venue TEXT, executed INTEGER NOT NULL,
    routed BLOB, json BLOB NOT NULL);
-- By time, user, coin.
CREATE TABLE funding (row INTEGER PRIMARY KEY, time INTEGER NOT NULL, user TEXT NOT NULL,
    coin TEXT NOT NULL, json BLOB NOT NULL);
CREATE TABLE approved_funding (builder TEXT, funding INTEGER, PRIMARY KEY (builder, funding))
    WITHOUT ROWID;
CREATE TABLE ledger (row INTEGER PRIMARY KEY, account INTEGER NOT NULL, time INTEGER NOT NULL,
    json BLOB NOT NULL);
CREATE TABLE slippage (coin TEXT, amount REAL, time INTEGER, json BLOB NOT NULL,
    PRIMARY KEY (coin, amount, time)) WITHOUT ROWID;
"""

_INDEXES: Final = """
CREATE INDEX fill_key ON fill (account, time, tx, row, dex, builder, venue);
CREATE INDEX funding_key ON funding (time, user, coin);
CREATE INDEX ledger_key ON ledger (account, time, row);
ANALYZE;
"""

Interval = tuple[str, int, int | None]
"""Builder, first millisecond, and the millisecond at which the approval no longer holds."""


def fill_tables(connection: sqlite3.Connection, sources: Sources) -> None:
    """Create the tables and put everything of `sources` into them."""
    connection.executescript(_SCHEMA)
    accounts = _Accounts()
    approved = approval_intervals(sources.approvals)
    insert = connection.executemany
    insert("INSERT INTO fill VALUES (?,?,?,?,?,?,?,?,?,?)", _fills(sources.fills, accounts))
    _insert_funding(connection, sources.funding, approved)
    insert("INSERT INTO ledger VALUES (?,?,?,?)", _ledger(sources.ledger, accounts))
    insert("INSERT OR REPLACE INTO slippage VALUES (?,?,?,?)", _slippage(sources.slippage))
    insert("INSERT INTO account VALUES (?,?)", ((id, one) for one, id in accounts.items()))
    insert("INSERT INTO document VALUES (?,?,?)", _documents(sources))
    connection.executescript(_INDEXES)


def approval_intervals(approvals: Iterable[Approval]) -> dict[str, list[Interval]]:
    """Give, for each user, when which builders were approved.

    An approval holds from the block it lands in, and no longer from the block that a revocation
    lands in. Specification, "Builder approval". A block is a millisecond.

    Examples
    --------
    >>> one = Approval("0xuser", "0xbuilder", 5, 0, True)
    >>> approval_intervals([one, Approval("0xuser", "0xbuilder", 9, 2, False)])
    {'0xuser': [('0xbuilder', 5, 9)]}
    """
    since: dict[tuple[str, str], int] = {}
    intervals: dict[str, list[Interval]] = defaultdict(list)
    for one in sorted(approvals, key=operator.attrgetter("time", "tx_index")):
        pair = (one.user, one.builder)
        if one.approved:
            since.setdefault(pair, one.time)
        elif (first := since.pop(pair, None)) is not None and first < one.time:
            intervals[one.user].append((one.builder, first, one.time))
    for (user, builder), first in since.items():
        intervals[user].append((builder, first, None))
    return dict(intervals)


class _Accounts(dict[str, int]):
    """Address -> small number, given at first sight."""

    def __missing__(self, address: str) -> int:
        self[address] = number = len(self) + 1
        return number


def _fills(fills: Iterable[tuple[str, Fill]], accounts: _Accounts) -> Iterator[tuple[Any, ...]]:
    # Sorting is stable: an account's fills keep the order of execution.
    by_account = sorted(enumerate(fills), key=lambda one: one[1][0])
    for row, (executed, (user, fill)) in enumerate(by_account, 1):
        json, routed = _fill_texts(fill)
        builder, venue = fill.builder or None, fill.venue or None
        yield (
            row,
            accounts[user],
            fill.time,
            fill.tx_index,
            coin_dex(fill.coin),
            builder,
            venue.upper() if venue else None,
            executed,
            routed,
            json,
        )


def _fill_texts(fill: Fill) -> tuple[bytes, bytes | None]:
    unset = msgspec.UNSET
    if fill.builder is unset and fill.venue is unset:
        return encode(fill), None
    replace = msgspec.structs.replace
    return encode(replace(fill, builder=unset)), encode(replace(fill, venue=unset))


def _insert_funding(
    connection: sqlite3.Connection,
    funding: Iterable[FundingRow],
    approved: dict[str, list[Interval]],
) -> None:
    pairs: list[tuple[str, int]] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        for row, one in enumerate(funding, 1):
            pairs.extend(
                (builder, row)
                for builder, first, end in approved.get(one.user, ())
                if first <= one.time and (end is None or one.time < end)
            )
            yield row, one.time, one.user, one.delta.coin, encode(one)

    connection.executemany("INSERT INTO funding VALUES (?,?,?,?,?)", rows())
    connection.executemany("INSERT INTO approved_funding VALUES (?,?)", sorted(pairs))


def _ledger(
    ledger: Iterable[tuple[str, LedgerUpdate]], accounts: _Accounts
) -> Iterator[tuple[Any, ...]]:
    for row, (user, update) in enumerate(sorted(ledger, key=lambda one: one[0]), 1):
        yield row, accounts[user], update.time, encode(update)


def _slippage(samples: Iterable[SlippageSample]) -> Iterator[tuple[Any, ...]]:
    for one in samples:
        yield one.coin, one.amount_usd, one.timestamp, encode(one)


def _documents(sources: Sources) -> Iterator[tuple[str, str, bytes]]:
    for dex, meta in sources.metas.items():
        yield "meta", dex, encode(meta)
