"""Answers about fills. Specification, "userFills" to "builderApprovedFillsByTime"."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.records import Fill
from toolkit.service.aggregation import StoredFill, aggregate_fills
from toolkit.service.handler_messages import CheckedRequest, Response, json_response
from toolkit.service.store import Store, json_array

__all__ = [
    "builder_approved_fills_by_time",
    "user_fills",
    "user_fills_by_time",
    "user_twap_slice_fills",
]

_UNFILTERED: Final = "account = ?"
_EVERY: Final = -1  # no limit in SQLite
_KEY: Final = ", time, tx"
_FEWEST_FINISHED: Final = 500  # rows of a page that is sent in compressed blocks as they are stored
_MOST_SLICES: Final = 2_000
_TWAP: Final = re.compile(rb'"twapId":(\d+)')


def user_fills(store: Store, request: CheckedRequest) -> Response:
    """Return the latest fills, newest first; within a transaction in the order of execution."""
    where, values = _filter_conditions(store, request)
    # ASSUMED: `userFills` returns the fills of one transaction in the order of execution.
    query = (
        f"SELECT row, venue{{}} FROM fill WHERE {where} ORDER BY time DESC, tx DESC, row LIMIT ?"
    )
    if not request["aggregate_by_time"]:
        rows = store.select_rows(query.format(""), *values, request["max_rows"])
        return json_response(json_array(_texts_without("venue", store, rows)))
    all_rows = store.iterate_rows(query.format(_KEY), *values, _EVERY)
    groups = _group_by_time(request.read_batches(all_rows), "venue", store)
    return json_response(_aggregated_page(groups, request["max_rows"], is_newest_first=True))


def user_fills_by_time(store: Store, request: CheckedRequest) -> Response:
    """Return the fills in a time range, oldest first."""
    where, values = _filter_conditions(store, request)
    comparison, key = request.page_start
    query = (
        "SELECT row, builder{} FROM fill "
        f"WHERE {where} AND (time, tx) {{}} (?, ?) AND time <= ? ORDER BY time, tx, row LIMIT ?"
    )
    if not request["aggregate_by_time"]:
        if where == _UNFILTERED:
            return _unfiltered_page(store, request, values[0])
        page = (*key, request.end, request["page_size"])
        rows = store.select_rows(query.format("", comparison), *values, *page)
        return json_response(json_array(_texts_without("builder", store, rows)))
    # The cursor may divide the fills of an order in one millisecond, so begin before all of them.
    page = (key[0], 0, request.end, _EVERY)
    all_rows = store.iterate_rows(query.format(_KEY, ">="), *values, *page)
    groups = _group_by_time(request.read_batches(all_rows), "builder", store)
    return json_response(
        _aggregated_page(groups, request["page_size"], request.cursor, request.inclusive)
    )


def _unfiltered_page(store: Store, request: CheckedRequest, account: int | None) -> Response:
    """Return a page without filters: one range of rows, because row numbers follow the time.

    This is the usual request. Reading a range is three times as fast as comparing every key.
    """
    comparison, key = request.page_start
    sql = f"SELECT row FROM fill WHERE account = ? AND (time, tx) {comparison} (?, ?)"
    first = store.select_value(f"{sql} ORDER BY time, tx, row LIMIT 1", account, *key)
    sql = "SELECT row FROM fill WHERE account = ? AND time <= ?"
    last = store.select_value(
        f"{sql} ORDER BY time DESC, tx DESC, row DESC LIMIT 1", account, request.end
    )
    if first is None or last is None or first > last:
        return json_response(b"[]")
    rows = range(first, min(last + 1, first + request["page_size"]))
    sql = "SELECT row, builder FROM fill WHERE builder IS NOT NULL AND row BETWEEN ? AND ?"
    routed: dict[int, str] = dict(store.select_rows(sql, first, first + len(rows) - 1))

    def remove_builders(first: int, texts: list[bytes]) -> list[bytes]:
        places = (
            (row - first, routed[row]) for row in range(first, first + len(texts)) if row in routed
        )
        return _remove_field("builder", texts, places)

    encoding = request.encoding if len(rows) >= _FEWEST_FINISHED else "identity"
    response = json_response(store.page("fill", rows, routed, remove_builders, encoding))
    if encoding == "identity":
        return response
    headers = {**response.headers, "content-encoding": encoding}
    return Response(200, headers, response.content)


def builder_approved_fills_by_time(store: Store, request: CheckedRequest) -> Response:
    """Return the fills of users while they had approved a builder, oldest first."""
    comparison, key = request.page_start
    rows = store.select_rows(
        "SELECT row, venue, routed, address FROM approved_fill JOIN account ON id = user "
        f"WHERE builder = ? AND (time, tx) {comparison} (?, ?) AND time <= ? "
        "ORDER BY time, tx, executed LIMIT ?",
        request["builder"],
        *key,
        request.end,
        request["page_size"],
    )
    texts = _texts_without("venue", store, rows)
    # Every row of this operation has the fields builder and user.
    return json_response(
        json_array(
            b'%b%b,"user":"%b"}'
            % (text[:-1], b',"builder":null' if routed is None else b"", user.encode())
            for (_, _, routed, user), text in zip(rows, texts, strict=True)
        )
    )


def user_twap_slice_fills(store: Store, request: CheckedRequest) -> Response:
    """Return the latest fills of a user's TWAP orders, newest first."""
    # ASSUMED: A fill in `userTwapSliceFills` has the same fields as in `userFills`.
    rows = store.iterate_rows(
        "SELECT row, venue FROM fill WHERE account = ? ORDER BY time DESC, tx DESC, row",
        store.account_number(request["user"]),
    )
    slices: list[bytes] = []
    for batch in request.read_batches(rows):
        for text in _texts_without("venue", store, batch):
            if number := _TWAP.search(text):
                slices.append(b'{"fill":%b,"twapId":%b}' % (text, number[1]))
        if len(slices) >= _MOST_SLICES:
            break
    return json_response(json_array(slices[:_MOST_SLICES]))


def _texts_without(field: str, store: Store, rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """Return the texts of rows without a field that the operation omits.

    A row begins with its number and the value of the field: ``""`` for null, None if the text has
    no such field.
    """
    texts = store.row_texts("fill", [row[0] for row in rows])
    values = [(place, row[1]) for place, row in enumerate(rows) if row[1] is not None]
    return _remove_field(field, texts, values)


def _remove_field(field: str, texts: list[bytes], values: Iterable[tuple[int, str]]) -> list[bytes]:
    """Remove a field from texts; `values` are the places of those that have it, with its value."""
    # No value contains this sequence: its quotes would be escaped there.
    name = b',"%b":' % field.encode()
    for place, text in values:
        value = encode(text) if text else b"null"
        texts[place] = texts[place].replace(name + value, b"", 1)
    return texts


def _filter_conditions(store: Store, request: CheckedRequest) -> tuple[str, list[Any]]:
    """Return the SQL conditions for the filters of a request, and their values."""
    conditions = [_UNFILTERED]
    values: list[Any] = [store.account_number(request["user"])]
    if request["dex"] is not None:
        # ASSUMED: The dex `main_dex` selects every coin without a dex prefix, including spot and
        # outcome tokens.
        conditions.append("dex = ?")
        values.append(canonical_dex(request["dex"]))
    if request["builder"] is not None:
        conditions.append("builder = ?")
        values.append(request["builder"])
    if (venue := request.parameters.get("venue")) is not None:
        conditions.append("upper(venue) = ?")
        values.append(venue.upper())
    return " AND ".join(conditions), values


def _group_by_time(
    batches: Iterable[list[tuple[Any, ...]]], omitted: str, store: Store
) -> Iterator[list[tuple[int, Fill]]]:
    """Yield the fills of each millisecond, as (transaction, fill)."""
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(StoredFill).decode
    group: list[tuple[int, Fill]] = []
    last = None
    for batch in batches:
        texts = _texts_without(omitted, store, batch)
        for (_, _, time, tx), text in zip(batch, texts, strict=True):
            if time != last and group:
                yield group
                group = []
            last = time
            try:
                fill = decode(text)
            except msgspec.ValidationError:  # a recorded fill with unknown fields
                fill = read_record(Fill, text)
            group.append((tx, fill))
    if group:
        yield group


def _aggregated_page(
    groups: Iterator[list[tuple[int, Fill]]],
    limit: int,
    cursor: tuple[int, int] | None = None,
    inclusive: bool = False,
    is_newest_first: bool = False,
) -> bytes:
    """Return the first rows after a cursor, out of the aggregated fills of each millisecond."""
    page: list[Fill] = []
    for group in groups:
        # Sorting is stable: fills of one transaction remain in the order of execution.
        group.sort(key=lambda fill: fill[0])
        fills = aggregate_fills([fill for _, fill in group])
        if is_newest_first:
            fills.sort(key=lambda fill: -fill.tx_index)
        for fill in fills:
            key = (fill.time, fill.tx_index)
            if cursor is None or key > cursor or (inclusive and key == cursor):
                page.append(fill)
        if len(page) >= limit:
            break
    return encode(page[:limit])
