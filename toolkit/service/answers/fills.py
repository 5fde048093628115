"""Answers about fills. Specification, "userFills" to "builderApprovedFillsByTime"."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical
from toolkit.contract.records import Fill
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.merging import merged
from toolkit.service.store import Store

__all__ = ["builder_approved_fills_by_time", "user_fills", "user_fills_by_time"]

_EVERY: Final = -1  # what SQLite takes as no limit


def user_fills(store: Store, asked: Asked) -> Answer:
    """Give the latest fills, newest first; fills of one transaction in the order of execution."""
    where, values = _where(store, asked)
    # ASSUMED: userFills gives fills of one transaction in the order of execution.
    query = f"SELECT {{}} FROM fill WHERE {where} ORDER BY time DESC, tx DESC, row LIMIT ?"
    if not asked["aggregate_by_time"]:
        return good(store.array(query.format("coalesce(routed, json)"), *values, asked["max_rows"]))
    rows = store.each(query.format("time, tx, coalesce(routed, json)"), *values, _EVERY)
    return good(_merged_page(_by_time(rows), asked["max_rows"], newest=True))


def user_fills_by_time(store: Store, asked: Asked) -> Answer:
    """Give the fills in a range of time, oldest first."""
    where, values = _where(store, asked)
    after, key = asked.from_here
    query = (
        f"SELECT {{}} FROM fill WHERE {where} AND (time, tx) {{}} (?, ?) AND time <= ? "
        "ORDER BY time, tx, row LIMIT ?"
    )
    if not asked["aggregate_by_time"]:
        sql = query.format("json", after)
        return good(store.array(sql, *values, *key, asked.end, asked["page_size"]))
    # An order's fills of one millisecond may lie on both sides of the cursor: begin before them.
    sql = query.format("time, tx, json", ">=")
    rows = store.each(sql, *values, key[0], 0, asked.end, _EVERY)
    return good(_merged_page(_by_time(rows), asked["page_size"], asked.cursor, asked.inclusive))


def builder_approved_fills_by_time(store: Store, asked: Asked) -> Answer:
    """Give the fills of users while they had approved a builder, oldest first."""
    after, key = asked.from_here
    # `user` is added, and `builder` where it is null: a row always says through whom it came.
    shown = (
        "CAST(substr(coalesce(routed, json), 1, length(coalesce(routed, json)) - 1) || "
        """iif(fill.builder IS NULL, ',"builder":null', '') || ',"user":"' || address || '"}' """
        "AS BLOB)"
    )
    return good(
        store.array(
            f"SELECT {shown} FROM approved_fill AS approved "
            "JOIN fill ON row = fill JOIN account ON id = account "
            f"WHERE approved.builder = ? AND (approved.time, approved.tx) {after} (?, ?) "
            "AND approved.time <= ? "
            "ORDER BY approved.time, approved.tx, approved.executed LIMIT ?",
            asked["builder"],
            *key,
            asked.end,
            asked["page_size"],
        )
    )


def _where(store: Store, asked: Asked) -> tuple[str, list[Any]]:
    """Write the conditions that the filters of a request stand for."""
    conditions = ["account = ?"]
    values: list[Any] = [store.account(asked["user"])]
    if asked["dex"] is not None:
        # ASSUMED: main_dex covers every coin without a dex in front, spot and outcomes too.
        conditions.append("dex = ?")
        values.append(canonical(asked["dex"]))
    if asked["builder"] is not None:
        conditions.append("builder = ?")
        values.append(asked["builder"])
    if (venue := asked.parameters.get("venue")) is not None:
        conditions.append("venue = ?")
        values.append(venue.upper())
    return " AND ".join(conditions), values


def _by_time(rows: Iterator[tuple[int, int, bytes]]) -> Iterator[list[tuple[int, Fill]]]:
    """Group rows that share a millisecond, as (transaction, fill)."""
    decode = msgspec.json.Decoder(Fill).decode
    group: list[tuple[int, Fill]] = []
    last = None
    for time, tx, text in rows:
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
