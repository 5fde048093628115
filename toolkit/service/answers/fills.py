"""Answers about fills. Specification, "userFills" to "builderApprovedFillsByTime"."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex
from toolkit.contract.records import Fill
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.merging import StoredFill, merged
from toolkit.service.store import Store, array

__all__ = [
    "builder_approved_fills_by_time",
    "user_fills",
    "user_fills_by_time",
    "user_twap_slice_fills",
]

_UNFILTERED: Final = "account = ?"
_EVERY: Final = -1  # what SQLite takes as no limit
_KEY: Final = ", time, tx"
_READ_AT_ONCE: Final = 2_000  # rows
_MOST_SLICES: Final = 2_000
_TWAP: Final = re.compile(rb'"twapId":(\d+)')


def user_fills(store: Store, asked: Asked) -> Answer:
    """Give the latest fills, newest first; fills of one transaction in the order of execution."""
    where, values = _where(store, asked)
    # ASSUMED: userFills gives fills of one transaction in the order of execution.
    query = (
        f"SELECT row, venue{{}} FROM fill WHERE {where} ORDER BY time DESC, tx DESC, row LIMIT ?"
    )
    if not asked["aggregate_by_time"]:
        found = store.rows(query.format(""), *values, asked["max_rows"])
        return good(array(_without("venue", store, found)))
    rows = store.each(query.format(_KEY), *values, _EVERY)
    fills = _by_time(rows, "venue", store)
    return good(_merged_page(fills, asked["max_rows"], newest=True))


def user_fills_by_time(store: Store, asked: Asked) -> Answer:
    """Give the fills in a range of time, oldest first."""
    where, values = _where(store, asked)
    after, key = asked.from_here
    query = (
        "SELECT row, builder{} FROM fill "
        f"WHERE {where} AND (time, tx) {{}} (?, ?) AND time <= ? ORDER BY time, tx, row LIMIT ?"
    )
    if not asked["aggregate_by_time"]:
        if where == _UNFILTERED:
            return good(array(_range(store, asked, values[0])))
        found = store.rows(query.format("", after), *values, *key, asked.end, asked["page_size"])
        return good(array(_without("builder", store, found)))
    # An order's fills of one millisecond may lie on both sides of the cursor: begin before them.
    rows = store.each(query.format(_KEY, ">="), *values, key[0], 0, asked.end, _EVERY)
    fills = _by_time(rows, "builder", store)
    return good(_merged_page(fills, asked["page_size"], asked.cursor, asked.inclusive))


def _range(store: Store, asked: Asked, account: int | None) -> list[bytes]:
    """Give a page without filters: a range of rows, since an account's rows are numbered in order.

    This is the usual request, and three times as fast as to look at every row's key.
    """
    after, key = asked.from_here
    sql = f"SELECT row FROM fill WHERE account = ? AND (time, tx) {after} (?, ?)"
    first = store.value(f"{sql} ORDER BY time, tx, row LIMIT 1", account, *key)
    sql = "SELECT row FROM fill WHERE account = ? AND time <= ?"
    last = store.value(f"{sql} ORDER BY time DESC, tx DESC, row DESC LIMIT 1", account, asked.end)
    if first is None or last is None:
        return []
    rows = range(first, min(last + 1, first + asked["page_size"]))
    sql = "SELECT row, builder FROM fill WHERE builder IS NOT NULL AND row BETWEEN ? AND ?"
    routed = store.rows(sql, first, first + len(rows) - 1)
    texts = store.texts("fill", rows)
    return _cut("builder", texts, [(row - first, builder) for row, builder in routed])


def builder_approved_fills_by_time(store: Store, asked: Asked) -> Answer:
    """Give the fills of users while they had approved a builder, oldest first."""
    after, key = asked.from_here
    found = store.rows(
        "SELECT row, venue, routed, address FROM approved_fill JOIN account ON id = user "
        f"WHERE builder = ? AND (time, tx) {after} (?, ?) AND time <= ? "
        "ORDER BY time, tx, executed LIMIT ?",
        asked["builder"],
        *key,
        asked.end,
        asked["page_size"],
    )
    texts = _without("venue", store, found)
    # A row always says through whom it came, and who made it.
    return good(
        array(
            b'%b%b,"user":"%b"}'
            % (text[:-1], b',"builder":null' if routed is None else b"", user.encode())
            for (_, _, routed, user), text in zip(found, texts, strict=True)
        )
    )


def user_twap_slice_fills(store: Store, asked: Asked) -> Answer:
    """Return the latest fills of a user's TWAP orders, newest first."""
    # ASSUMED: a fill in userTwapSliceFills has the fields that it has in userFills.
    rows = store.each(
        "SELECT row, venue FROM fill WHERE account = ? ORDER BY time DESC, tx DESC, row",
        store.account(asked["user"]),
    )
    slices: list[bytes] = []
    while len(slices) < _MOST_SLICES and (found := list(itertools.islice(rows, _READ_AT_ONCE))):
        for text in _without("venue", store, found):
            if number := _TWAP.search(text):
                slices.append(b'{"fill":%b,"twapId":%b}' % (text, number[1]))
    return good(array(slices[:_MOST_SLICES]))


def _without(field: str, store: Store, found: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Give the texts of rows, less a field that the operation does not show.

    `found` has the row's number and what its text has in the field: ``""`` for null, None if it
    has none.
    """
    texts = store.texts("fill", [one[0] for one in found])
    return _cut(field, texts, [(i, one[1]) for i, one in enumerate(found) if one[1] is not None])


def _cut(field: str, texts: list[bytes], places: Iterable[tuple[int, str]]) -> list[bytes]:
    """Cut a field out of the texts at some places, where it has the value that is said."""
    # No value holds such a sequence: inside of one, the quotes would be escaped.
    name = b',"%b":' % field.encode()
    for place, shown in places:
        value = encode(shown) if shown else b"null"
        texts[place] = texts[place].replace(name + value, b"", 1)
    return texts


def _where(store: Store, asked: Asked) -> tuple[str, list[Any]]:
    """Write the conditions that the filters of a request stand for."""
    conditions = [_UNFILTERED]
    values: list[Any] = [store.account(asked["user"])]
    if asked["dex"] is not None:
        # ASSUMED: main_dex covers every coin without a dex in front, spot and outcomes too.
        conditions.append("dex = ?")
        values.append(canonical_dex(asked["dex"]))
    if asked["builder"] is not None:
        conditions.append("builder = ?")
        values.append(asked["builder"])
    if (venue := asked.parameters.get("venue")) is not None:
        conditions.append("upper(venue) = ?")
        values.append(venue.upper())
    return " AND ".join(conditions), values


def _by_time(
    rows: Iterator[tuple[Any, ...]], hidden: str, store: Store
) -> Iterator[list[tuple[int, Fill]]]:
    """Group rows that share a millisecond, as (transaction, fill)."""
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(StoredFill).decode
    group: list[tuple[int, Fill]] = []
    last = None
    while found := list(itertools.islice(rows, _READ_AT_ONCE)):
        for (_, _, time, tx), text in zip(found, _without(hidden, store, found), strict=True):
            if time != last and group:
                yield group
                group = []
            last = time
            group.append((tx, decode(text)))
    if group:
        yield group


def _merged_page(
    groups: Iterator[list[tuple[int, Fill]]],
    limit: int,
    least: tuple[int, int] | None = None,
    inclusive: bool = False,
    newest: bool = False,
) -> bytes:
    """Merge each millisecond's fills, and cut a page of what comes out."""
    page: list[Fill] = []
    for group in groups:
        # Sorting is stable: fills of one transaction are in the order of execution.
        group.sort(key=lambda one: one[0])
        fills = merged([fill for _, fill in group])
        if newest:
            fills.sort(key=lambda fill: -fill.tx_index)
        for fill in fills:
            key = (fill.time, fill.tx_index)
            if least is None or key > least or (inclusive and key == least):
                page.append(fill)
        if len(page) >= limit:
            break
    return encode(page[:limit])
