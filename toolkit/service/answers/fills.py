"""Answers about fills. Specification, "userFills" to "builderApprovedFillsByTime".

The other operations: docs/live_service.md, sections 9 and 13.
"""

import itertools
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, strip_native_dex
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.records import Fill
from toolkit.service.aggregation import StoredFill, aggregate_fills
from toolkit.service.handler_messages import CheckedRequest, Response
from toolkit.service.row_blocks import BLOCK_ROWS, read_page
from toolkit.service.store import ACCOUNT, Store, json_array

_EVERY: Final = -1  # no limit in SQLite
_FEWEST_FINISHED: Final = 500  # rows of a page that is sent in compressed blocks as they are stored
_MOST_SLICES: Final = 2_000
# ASSUMED: A page of `builderOrdersByTime` has at most 2,000 rows.
_MOST_ORDERS: Final = 2_000
_TWAP: Final = re.compile(rb'"twapId":(\d+)')


def user_fills(store: Store, request: CheckedRequest) -> bytes:
    """Return the latest fills, newest first; within a transaction in the order of execution."""
    where, values = _filter_conditions(store, request)
    # ASSUMED: `userFills` returns the fills of one transaction in the order of execution.
    sql = (
        f"SELECT row, venue, time, tx FROM fill WHERE {where} "
        "ORDER BY time DESC, tx DESC, row LIMIT ?"
    )
    if not request["aggregate_by_time"]:
        rows = store.select_rows(sql, *values, request["max_rows"])
        return json_array(_texts_without("venue", store, rows))
    all_rows = store.iterate_rows(sql, *values, _EVERY)
    return _aggregated_page(store, request, all_rows, "venue", request["max_rows"])


def user_fills_by_time(store: Store, request: CheckedRequest) -> bytes | Response:
    """Return the fills in a time range, oldest first."""
    where, values = _filter_conditions(store, request)
    comparison, key = request.page_start
    if request["aggregate_by_time"]:
        # The cursor may divide the fills of an order in one millisecond, so begin before all of
        # them.
        comparison, key, limit = ">=", (key[0], 0), _EVERY
    elif where == ACCOUNT:
        return _unfiltered_page(store, request)
    else:
        limit = request["page_size"]
    rows = store.iterate_rows(
        f"SELECT row, builder, time, tx FROM fill WHERE {where} "
        f"AND (time, tx) {comparison} (?, ?) AND time <= ? ORDER BY time, tx, row LIMIT ?",
        *(*values, *key, request.end, limit),
    )
    if request["aggregate_by_time"]:
        return _aggregated_page(store, request, rows, "builder", request["page_size"])
    return json_array(_texts_without("builder", store, [*rows]))


def _unfiltered_page(store: Store, request: CheckedRequest) -> bytes | Response:
    """Return a page without filters: one range of rows, because row numbers follow the time.

    This is the usual request. Reading a range is three times as fast as comparing every key.
    """
    comparison, key = request.page_start
    select = f"SELECT row FROM fill WHERE {ACCOUNT} AND"
    ((first, last),) = store.select_rows(
        f"SELECT ({select} (time, tx) {comparison} (?, ?) ORDER BY time, tx, row LIMIT 1), "
        f"({select} time <= ? ORDER BY time DESC, tx DESC, row DESC LIMIT 1)",
        *(request["user"], *key, request["user"], request.end),
    )
    if first is None or last is None or first > last:
        return b"[]"
    rows = range(first, min(last + 1, first + request["page_size"]))
    sql = "SELECT row, builder FROM fill WHERE builder IS NOT NULL AND row BETWEEN ? AND ?"
    routed = store.select_rows(sql, first, first + len(rows) - 1)
    omitted = {row: _field_text("builder", builder) for row, builder in routed}
    is_finished = request.encoding == "zstd" and len(rows) >= _FEWEST_FINISHED
    sql = "SELECT block, data FROM fill_text WHERE block BETWEEN ? AND ? ORDER BY block"
    blocks = store.select_rows(sql, rows[0] // BLOCK_ROWS, rows[-1] // BLOCK_ROWS)
    content = read_page(blocks, rows, omitted, is_finished)
    if not is_finished:
        return content
    headers = {"content-type": "application/json", "content-encoding": "zstd"}
    return Response(200, headers, content)


def builder_approved_fills_by_time(store: Store, request: CheckedRequest) -> bytes:
    """Return the fills of users while they had approved a builder, oldest first."""
    columns = "row, venue, routed, address"
    return _with_user(store, builder_page(store, request, "approved_fill", columns))


def builder_fills_by_time(store: Store, request: CheckedRequest) -> bytes:
    """Return the fills routed through a builder, oldest first."""
    columns = "row, venue, builder, address"
    return _with_user(store, builder_page(store, request, "routed_fill", columns))


def builder_page(
    store: Store, request: CheckedRequest, table: str, columns: str
) -> list[tuple[Any, ...]]:
    """Return a page of the rows that a builder sees, oldest first, with the users' addresses."""
    comparison, key = request.page_start
    limit = request.parameters.get("page_size", _MOST_ORDERS)
    return store.select_rows(
        f"SELECT {columns} FROM {table} JOIN account ON id = user "
        f"WHERE builder = ? AND (time, tx) {comparison} (?, ?) AND time <= ? "
        "ORDER BY time, tx, executed LIMIT ?",
        *(request["builder"], *key, request.end, limit),
    )


def liquidation_history_by_time(store: Store, request: CheckedRequest) -> bytes:
    """Return the fills of liquidated accounts, newest first."""
    coin = request["coin"] and strip_native_dex(request["coin"])
    rows = store.select_rows(
        "SELECT row, venue, routed, address FROM liquidation JOIN account ON id = user "
        "WHERE coin = coalesce(?, coin) AND time BETWEEN ? AND ? "
        "ORDER BY time DESC, tx DESC, executed LIMIT ?",
        *(coin, request["start"] or 0, request.end, request["page_size"]),
    )
    return _with_user(store, rows)


def _with_user(store: Store, rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Return rows (number, venue, builder, address) without venue, with builder and user."""
    texts = _texts_without("venue", store, rows)
    return json_array(
        b'%b%b,"user":"%b"}'
        % (text[:-1], b',"builder":null' if routed is None else b"", user.encode())
        for (_, _, routed, user), text in zip(rows, texts, strict=True)
    )


def user_twap_slice_fills(store: Store, request: CheckedRequest) -> bytes:
    """Return the latest fills of a user's TWAP orders, newest first."""
    # ASSUMED: A fill in `userTwapSliceFills` has the same fields as in `userFills`.
    rows = store.iterate_rows(
        f"SELECT row, venue FROM fill WHERE {ACCOUNT} ORDER BY time DESC, tx DESC, row",
        request["user"],
    )
    slices: list[bytes] = []
    for batch in request.read_batches(rows):
        for text in _texts_without("venue", store, batch):
            if number := _TWAP.search(text):
                slices.append(b'{"fill":%b,"twapId":%b}' % (text, number[1]))
        if len(slices) >= _MOST_SLICES:
            break
    return json_array(slices[:_MOST_SLICES])


def _texts_without(field: str, store: Store, rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Return the texts of rows without a field that the operation omits.

    A row begins with its number and the value of the field: ``""`` for null, None if the text has
    no such field.
    """
    texts = store.row_texts("fill", [row[0] for row in rows])
    return [
        text if row[1] is None else text.replace(_field_text(field, row[1]), b"", 1)
        for row, text in zip(rows, texts, strict=True)
    ]


def _field_text(field: str, value: str) -> bytes:
    """Return a field in the text of a row; an empty value means null."""
    # No value contains this sequence: its quotes would be escaped there.
    return b',"%b":%b' % (field.encode(), encode(value) if value else b"null")


def _filter_conditions(store: Store, request: CheckedRequest) -> tuple[str, list[Any]]:
    """Return the SQL conditions for the filters of a request, and their values."""
    values: dict[str, Any] = {ACCOUNT: request["user"]}
    if reach := request.operation.reach:
        sql = f"SELECT row FROM fill WHERE {ACCOUNT} ORDER BY time DESC, tx DESC, row DESC"
        oldest = store.select_value(f"{sql} LIMIT 1 OFFSET ?", request["user"], reach - 1)
        values["row >= ?"] = oldest or 0  # row numbers follow the time
    if request["dex"] is not None:
        # ASSUMED: The dex `main_dex` selects every coin without a dex prefix, including spot and
        # outcome tokens.
        values["dex = ?"] = canonical_dex(request["dex"])
    if request["builder"] is not None:
        values["builder = ?"] = request["builder"]
    if (venue := request.parameters.get("venue")) is not None:
        values["upper(venue) = ?"] = venue.upper()
    return " AND ".join(values), [*values.values()]


def _aggregated_page(
    store: Store, request: CheckedRequest, rows: Iterator[tuple[Any, ...]], omitted: str, limit: int
) -> bytes:
    """Return the first rows after the cursor, out of the aggregated fills of each millisecond."""
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(StoredFill).decode

    def read_fills() -> Iterator[tuple[int, int, Fill]]:
        for batch in request.read_batches(rows):
            texts = _texts_without(omitted, store, batch)
            for (_, _, time, tx), text in zip(batch, texts, strict=True):
                try:
                    yield time, tx, decode(text)
                except msgspec.ValidationError:  # a recorded fill with unknown fields
                    yield time, tx, read_record(Fill, text)

    is_newest_first = request.operation.latest
    comparison, after = ("", None) if is_newest_first else request.page_start
    page: list[Fill] = []
    for _, group in itertools.groupby(read_fills(), key=operator.itemgetter(0)):
        # Sorting is stable: fills of one transaction remain in the order of execution.
        ordered = sorted(group, key=operator.itemgetter(1))
        fills = aggregate_fills([fill for _, _, fill in ordered])
        if is_newest_first:
            fills.sort(key=lambda fill: -fill.tx_index)
        for fill in fills:
            key = (fill.time, fill.tx_index)
            if after is None or key > after or (comparison == ">=" and key == after):
                page.append(fill)
        if len(page) >= limit:
            break
    return encode(page[:limit])
