"""Recorded answers as `Sources`: facts served through the same handlers as simulated ones.

A recording is a JSON file with ``request``, ``status`` and ``response``. Answers of the mirrored
exchange API are taken, also userFunding and l2Book, which the specification does not have.
"""

import json
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

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
from toolkit.contract.sources import Approval, Sources

__all__ = ["RECORDED_BUILDER", "NoRecordings", "Recordings", "read_recordings"]

R = TypeVar("R", bound=Record)

# ASSUMED: every recorded account has approved this stand-in builder since time 0, so that its
# recorded funding can be asked for as builderApprovedFundingByTime.
RECORDED_BUILDER: Final = "0x" + "0" * 39 + "1"


_NOT_ALL: Final = (
    "these are recorded answers: what was not recorded is missing; an archive that ingests them "
    "says what they prove"
)


_REFUSALS: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    OSError,
)


class NoRecordings(ValueError):
    """A folder without a single recording that can be served."""


@dataclass(slots=True)
class Recordings:
    """What was found in a folder.

    Parameters
    ----------
    sources : Sources
        What can be served.
    world : dict
        A summary of it: users, builders, coins, first and last time.
    not_served : list of str
        Files with answers that no operation here shows.
    damaged : list of str
        Files that are no recordings, each with the reason.
    """

    sources: Sources
    world: dict[str, Any]
    not_served: list[str]
    damaged: list[str]


@dataclass(slots=True)
class _Found:
    fills: dict[str, list[Fill]] = field(default_factory=dict)
    funding: dict[tuple[int, str, str], FundingRow] = field(default_factory=dict)
    ledger: dict[str, list[LedgerUpdate]] = field(default_factory=dict)
    orders: dict[str, list[OrderStatus]] = field(default_factory=dict)
    metas: dict[str, Meta] = field(default_factory=dict)
    states: dict[str, dict[str, ClearinghouseState]] = field(default_factory=dict)
    books: dict[str, L2Book] = field(default_factory=dict)


def read_recordings(folder: Path) -> Recordings:
    """Read every recording of a folder.

    Raises
    ------
    NoRecordings
        If there is no such folder, or nothing to serve in it; the message says why of each file.
    """
    if not folder.is_dir():
        raise NoRecordings(f"There is no folder {folder}")
    found, not_served, damaged = _Found(), [], []
    paths = sorted(folder.glob("*.json"))
    for path in paths:
        try:
            if not _take(found, path):
                not_served.append(path.name)
        except _REFUSALS as error:
            damaged.append(f"{path.name}: {_words(error)}")
    if len(not_served) + len(damaged) == len(paths):
        reasons = [*damaged, *(f"{name}: no operation here serves it" for name in not_served)]
        why = f": {'; '.join(reasons)}" if reasons else ": it has no file whose name ends in .json"
        raise NoRecordings(f"There is no recording to serve in {folder}{why}")
    sources = _sources(found, folder)
    world = {**_world(found, sources), "not_served": not_served}
    return Recordings(sources, world, not_served, damaged)


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) or type(error).__name__


def _read_record(record: type[R], row: Any) -> R:
    """Return a record, whose numbers are numbers and whose key fields are there."""
    made = build_record(record, row)
    check_values(made)
    return made


def _read_rows(record: type[R], rows: list[Any], **otherwise: Any) -> list[R]:
    """Return records of rows; `otherwise` stands for what a row lacks."""
    records = []
    for at, row in enumerate(rows):
        try:
            records.append(_read_record(record, {**otherwise, **row}))
        except _REFUSALS as error:
            raise ValueError(f"row {at}: {_words(error)}") from error
    return records


def _name(request: Mapping[str, Any], field: str, *otherwise: str) -> str:
    name = request.get(field, *otherwise) if otherwise else request[field]
    if not isinstance(name, str):
        raise ValueError(f"request: {field}: {name!r} is no text")
    return name


def _take(found: _Found, path: Path) -> bool:
    """Take a recording, and say whether it is of a kind that is served."""
    recording = json.loads(path.read_bytes())
    request, status = recording["request"], recording.get("status", 200)
    take = _TAKERS.get(request["type"])
    is_rounded = request.get("nSigFigs") is not None  # a book without its exact prices
    if take is None or status != 200 or is_rounded:
        return False
    take(found, request, recording["response"])
    return True


def _take_fills(found: _Found, request: Mapping[str, Any], rows: list[Any]) -> None:
    # ASSUMED: recorded fills without txIndex have 0: a millisecond counts as one transaction,
    # whose fills stand in the order of execution, as they are recorded.
    fills = _read_rows(Fill, rows, txIndex=0)
    # Recorded newest first, but within a millisecond in the order of execution; sorting is stable.
    fills = _together(found.fills.get(request["user"].lower(), []), fills)
    fills.sort(key=operator.attrgetter("time", "tx_index"))
    found.fills[request["user"].lower()] = fills


def _take_funding(found: _Found, request: Mapping[str, Any], rows: list[Any]) -> None:
    user = request["user"].lower()
    for one in _read_rows(FundingRow, rows, user=user):
        found.funding[one.time, user, one.delta.coin] = one


def _take_ledger(found: _Found, request: Mapping[str, Any], rows: list[Any]) -> None:
    updates = _read_rows(LedgerUpdate, rows)
    updates = _together(found.ledger.get(request["user"].lower(), []), updates)
    found.ledger[request["user"].lower()] = sorted(updates, key=operator.attrgetter("time"))


def _take_orders(found: _Found, request: Mapping[str, Any], rows: list[Any]) -> None:
    # ASSUMED: recorded status events without txIndex have 0 (as recorded fills).
    events = _read_rows(OrderStatus, rows, txIndex=0)
    events = _together(found.orders.get(request["user"].lower(), []), events)
    events.sort(key=operator.attrgetter("status_timestamp", "tx_index"))
    found.orders[request["user"].lower()] = events


def _together(before: list[R], more: list[R]) -> list[R]:
    """Join two recordings of one account that may overlap: a row stands as often as in either."""
    counted = Counter(map(msgspec.json.encode, before))
    joined = list(before)
    for row in more:
        text = msgspec.json.encode(row)
        if counted[text]:
            counted[text] -= 1
        else:
            joined.append(row)
    return joined


def _take_meta(found: _Found, request: Mapping[str, Any], answer: Any) -> None:
    found.metas[_name(request, "dex", "")] = _read_record(Meta, answer)


def _take_state(found: _Found, request: Mapping[str, Any], answer: Any) -> None:
    state = _read_record(ClearinghouseState, answer)
    found.states.setdefault(_name(request, "dex", ""), {})[request["user"].lower()] = state


def _take_book(found: _Found, request: Mapping[str, Any], answer: Any) -> None:
    if answer is not None:
        found.books[_name(request, "coin")] = _read_record(L2Book, answer)


_TAKERS: Final[dict[str, Callable[[_Found, Mapping[str, Any], Any], None]]] = {
    "userFills": _take_fills,
    "userFillsByTime": _take_fills,
    "userFunding": _take_funding,
    "userNonFundingLedgerUpdates": _take_ledger,
    "historicalOrders": _take_orders,
    "meta": _take_meta,
    "clearinghouseState": _take_state,
    "l2Book": _take_book,
}


def _sources(found: _Found, folder: Path) -> Sources:
    times = [
        *(fill.time for fills in found.fills.values() for fill in fills),
        *(key[0] for key in found.funding),
        *(update.time for updates in found.ledger.values() for update in updates),
        *(event.status_timestamp for events in found.orders.values() for event in events),
    ]
    return Sources(
        start_ms=min(times, default=0),
        now_ms=max(times, default=0),
        label=f"recordings, {folder.name}",
        simulated=False,
        fills=[(user, fill) for user, fills in found.fills.items() for fill in fills],
        funding=[found.funding[key] for key in sorted(found.funding)],
        ledger=[(user, update) for user, updates in found.ledger.items() for update in updates],
        orders=[(user, event) for user, events in found.orders.items() for event in events],
        approvals=[Approval(user, RECORDED_BUILDER, 0, 0, True) for user in _users(found)],
        metas=found.metas,
        states=found.states,
        books=found.books,
        history=_NOT_ALL,
    )


def _users(found: _Found) -> list[str]:
    funded = {user for _, user, _ in found.funding}
    states = {user for states in found.states.values() for user in states}
    return sorted({*found.fills, *found.ledger, *found.orders, *funded, *states})


def _world(found: _Found, sources: Sources) -> dict[str, Any]:
    """Summarise, with the names that `World.summary` of a simulation has."""
    return {
        "start_ms": sources.start_ms,
        "now_ms": sources.now_ms,
        "users": _users(found),
        "builders": [RECORDED_BUILDER],
        "validators": [],
        "perp_coins": [asset.name for meta in found.metas.values() for asset in meta.universe],
        "spot_coins": [],
        "dexes": sorted(dex for dex in found.metas if dex),
        "venues": [],
        "collateral_tokens": [],
    }
