"""Recorded answers as `Sources`. The handlers that serve a simulated exchange also serve them.

A recording is a JSON file with ``request``, ``status`` and ``response``. It contains an answer of
the mirrored exchange API, including userFunding and l2Book, which are not in the specification.
"""

import json
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from toolkit.contract.extra_operations import find_operation
from toolkit.contract.recorded_rows import build_record, check_values
from toolkit.contract.records import (
    ClearinghouseState,
    Fill,
    FundingRow,
    L2Book,
    LedgerUpdate,
    Meta,
    OrderStatus,
    Record,
)
from toolkit.contract.requests import check_request
from toolkit.contract.source_tables import Approval, Sources
from toolkit.errors import BadRequest

__all__ = ["RECORDED_BUILDER", "NoRecordings", "Recordings", "read_recordings", "request_key"]

R = TypeVar("R", bound=Record)

# ASSUMED: One invented builder stands in for all real ones. Every recorded account has approved it
# since time 0, so that `builderApprovedFundingByTime` returns the recorded funding.
RECORDED_BUILDER: Final = "0x" + "0" * 39 + "1"


_NOT_ALL: Final = (
    "this source has only recorded answers, so other rows are missing; an archive that ingests "
    "them shows which ranges are complete"
)


_REFUSALS: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    OSError,
    BadRequest,
)


class NoRecordings(ValueError):
    """A folder contains no recording that can be served."""


@dataclass(slots=True)
class Recordings:
    """The recordings of a folder.

    Parameters
    ----------
    sources : Sources
        The tables of the recordings that can be served.
    world : dict
        A summary of the tables: users, builders, coins, first and last time.
    answers : dict
        `request_key` -> the recorded answer, for answers that no table shows.
    not_served : list of str
        Files with answers of unknown operations, and with other statuses than 200.
    damaged : list of str
        Files that are not recordings, each with the reason.
    """

    sources: Sources
    world: dict[str, Any]
    answers: dict[str, bytes]
    not_served: list[str]
    damaged: list[str]


def request_key(type: str, parameters: Mapping[str, Any]) -> str:
    """Return what equal requests have in common."""
    return json.dumps([type, parameters], sort_keys=True)


@dataclass(slots=True)
class _RecordedTables:
    """The tables that are filled while the recordings are read."""

    fills: dict[str, list[Fill]] = field(default_factory=dict)
    funding: dict[tuple[int, str, str], FundingRow] = field(default_factory=dict)
    ledger: dict[str, list[LedgerUpdate]] = field(default_factory=dict)
    orders: dict[str, list[OrderStatus]] = field(default_factory=dict)
    metas: dict[str, Meta] = field(default_factory=dict)
    states: dict[str, dict[str, ClearinghouseState]] = field(default_factory=dict)
    books: dict[str, L2Book] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)


def read_recordings(folder: Path) -> Recordings:
    """Read all recordings of a folder.

    Raises
    ------
    NoRecordings
        If the folder does not exist, or has no recording to serve. The message gives the reason
        for each file.
    """
    if not folder.is_dir():
        raise NoRecordings(
            f"the folder {folder} does not exist. Pass the folder with the recorded answers"
        )
    tables, not_served, damaged = _RecordedTables(), [], []
    paths = sorted(folder.glob("*.json"))
    for path in paths:
        try:
            if not _add_recording(tables, path):
                not_served.append(path.name)
        except _REFUSALS as error:
            damaged.append(f"{path.name}: {_describe_error(error)}")
    if len(not_served) + len(damaged) == len(paths):
        reasons = [
            *damaged,
            *(f"{name}: no operation of the service returns these rows" for name in not_served),
        ]
        why = f": {'; '.join(reasons)}" if reasons else ": no file name ends in .json"
        raise NoRecordings(f"There is no recording to serve in {folder}{why}")
    sources = _make_sources(tables, folder)
    world = {**_summarize(tables, sources), "not_served": not_served}
    return Recordings(sources, world, tables.answers, not_served, damaged)


def _describe_error(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) or type(error).__name__


def _read_record(record: type[R], row: Any) -> R:
    """Return a record with all key fields; its numbers are checked."""
    result = build_record(record, row)
    check_values(result)
    return result


def _read_rows(record: type[R], rows: list[Any], **defaults: Any) -> list[R]:
    """Return the records of rows; `defaults` replace fields that are absent or null."""
    records = []
    for number, row in enumerate(rows):
        try:
            filled = {name: value for name, value in defaults.items() if row.get(name) is None}
            records.append(_read_record(record, {**row, **filled}))
        except _REFUSALS as error:
            raise ValueError(f"row {number}: {_describe_error(error)}") from error
    return records


def _request_text(request: Mapping[str, Any], field: str, *default: str) -> str:
    name = request.get(field, *default) if default else request[field]
    if not isinstance(name, str):
        raise ValueError(f"request: {field}: {name!r} is not text")
    return name


def _add_recording(tables: _RecordedTables, path: Path) -> bool:
    """Add a recording to the tables, and return whether the service shows such answers."""
    recording = json.loads(path.read_bytes())
    request, status = recording["request"], recording.get("status", 200)
    operation = find_operation(request["type"])
    if operation is None or status != 200:
        return False
    add = _READERS.get(operation.type)
    is_rounded = request.get("nSigFigs") is not None  # such a book does not have the exact prices
    if add is None or is_rounded:
        key = request_key(operation.type, check_request(operation, request))
        tables.answers[key] = json.dumps(recording["response"]).encode()
    else:
        add(tables, request, recording["response"])
    return True


def _add_fills(tables: _RecordedTables, request: Mapping[str, Any], rows: list[Any]) -> None:
    # ASSUMED: If a recorded fill has no `txIndex`, the value is 0. All fills of one millisecond
    # therefore count as one transaction, and their recorded order is the order of execution.
    fills = _read_rows(Fill, rows, txIndex=0)
    # Recordings are newest first, but in the order of execution within a millisecond. Sorting is
    # stable.
    fills = _merge_recordings(tables.fills.get(request["user"].lower(), []), fills)
    fills.sort(key=operator.attrgetter("time", "tx_index"))
    tables.fills[request["user"].lower()] = fills


def _add_funding(tables: _RecordedTables, request: Mapping[str, Any], rows: list[Any]) -> None:
    user = request["user"].lower()
    for row in _read_rows(FundingRow, rows, user=user):
        tables.funding[row.time, user, row.delta.coin] = row


def _add_ledger(tables: _RecordedTables, request: Mapping[str, Any], rows: list[Any]) -> None:
    updates = _read_rows(LedgerUpdate, rows)
    updates = _merge_recordings(tables.ledger.get(request["user"].lower(), []), updates)
    tables.ledger[request["user"].lower()] = sorted(updates, key=operator.attrgetter("time"))


def _add_orders(tables: _RecordedTables, request: Mapping[str, Any], rows: list[Any]) -> None:
    # ASSUMED: If a recorded status event has no `txIndex`, the value is 0, the same as for recorded
    # fills.
    events = _read_rows(OrderStatus, rows, txIndex=0)
    events = _merge_recordings(tables.orders.get(request["user"].lower(), []), events)
    events.sort(key=operator.attrgetter("status_timestamp", "tx_index"))
    tables.orders[request["user"].lower()] = events


def _merge_recordings(before: list[R], more: list[R]) -> list[R]:
    """Return the rows of two recordings that may overlap.

    If both have a row, the result has it as often as the recording that has it more often.
    """
    counted = Counter(map(msgspec.json.encode, before))
    joined = list(before)
    for row in more:
        text = msgspec.json.encode(row)
        if counted[text]:
            counted[text] -= 1
        else:
            joined.append(row)
    return joined


def _add_meta(tables: _RecordedTables, request: Mapping[str, Any], answer: Any) -> None:
    tables.metas[_request_text(request, "dex", "")] = _read_record(Meta, answer)


def _add_state(tables: _RecordedTables, request: Mapping[str, Any], answer: Any) -> None:
    state = _read_record(ClearinghouseState, answer)
    tables.states.setdefault(_request_text(request, "dex", ""), {})[request["user"].lower()] = state


def _add_book(tables: _RecordedTables, request: Mapping[str, Any], answer: Any) -> None:
    if answer is not None:
        tables.books[_request_text(request, "coin")] = _read_record(L2Book, answer)


_READERS: Final[dict[str, Callable[[_RecordedTables, Mapping[str, Any], Any], None]]] = {
    "userFills": _add_fills,
    "userFillsByTime": _add_fills,
    "userFunding": _add_funding,
    "userNonFundingLedgerUpdates": _add_ledger,
    "historicalOrders": _add_orders,
    "meta": _add_meta,
    "clearinghouseState": _add_state,
    "l2Book": _add_book,
}


def _make_sources(tables: _RecordedTables, folder: Path) -> Sources:
    times = [
        *(fill.time for fills in tables.fills.values() for fill in fills),
        *(key[0] for key in tables.funding),
        *(update.time for updates in tables.ledger.values() for update in updates),
        *(event.status_timestamp for events in tables.orders.values() for event in events),
        *(
            state.time
            for states in tables.states.values()
            for state in states.values()
            if state.time
        ),
    ]
    return Sources(
        start_ms=min(times, default=0),
        now_ms=max(times, default=0),
        label=f"recordings, {folder.name}",
        simulated=False,
        fills=[(user, fill) for user, fills in tables.fills.items() for fill in fills],
        funding=[tables.funding[key] for key in sorted(tables.funding)],
        ledger=[(user, update) for user, updates in tables.ledger.items() for update in updates],
        orders=[(user, event) for user, events in tables.orders.items() for event in events],
        approvals=[Approval(user, RECORDED_BUILDER, 0, 0, True) for user in _list_users(tables)],
        metas=tables.metas,
        states=tables.states,
        books=tables.books,
        history=_NOT_ALL,
    )


def _list_users(tables: _RecordedTables) -> list[str]:
    funded = {user for _, user, _ in tables.funding}
    states = {user for states in tables.states.values() for user in states}
    return sorted({*tables.fills, *tables.ledger, *tables.orders, *funded, *states})


def _summarize(tables: _RecordedTables, sources: Sources) -> dict[str, Any]:
    """Return a summary with the same names as `World.summary` of a simulation."""
    return {
        "start_ms": sources.start_ms,
        "now_ms": sources.now_ms,
        "users": _list_users(tables),
        "builders": [RECORDED_BUILDER],
        "validators": [],
        "perp_coins": [asset.name for meta in tables.metas.values() for asset in meta.universe],
        "spot_coins": [],
        "dexes": sorted(dex for dex in tables.metas if dex),
        "venues": [],
        "collateral_tokens": [],
    }
