"""Recorded answers as `Sources`. The handlers that serve a simulated exchange also serve them.

A recording is a JSON file with ``request``, ``status`` and ``response``. It contains an answer of
the mirrored exchange API, including userFunding and l2Book, which are not in the specification.
"""

import json
import operator
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from toolkit.contract import records
from toolkit.contract.operations import find_operation
from toolkit.contract.recorded_rows import build_record, check_values
from toolkit.contract.requests import check_request
from toolkit.contract.source_tables import Approval, Sources

R = TypeVar("R", bound=records.Record)

# ASSUMED: One invented builder stands in for all real ones. Every recorded account has approved it
# since time 0, so that `builderApprovedFundingByTime` returns the recorded funding.
RECORDED_BUILDER: Final = "0x" + "0" * 39 + "1"


_NOT_ALL: Final = (
    "this source has only recorded answers, so other rows are missing; an archive that ingests "
    "them shows which ranges are complete"
)


# ASSUMED: If a recorded fill or status event has no `txIndex`, the value is 0. All fills of one
# millisecond therefore count as one transaction, and their recorded order is the order of
# execution.
_HISTORIES: Final[dict[str, tuple[str, type[Any], tuple[str, ...]]]] = {
    "userFills": ("fills", records.Fill, ("time", "tx_index")),
    "userFillsByTime": ("fills", records.Fill, ("time", "tx_index")),
    "userNonFundingLedgerUpdates": ("ledger", records.LedgerUpdate, ("time",)),
    "historicalOrders": ("orders", records.OrderStatus, ("status_timestamp", "tx_index")),
}
"""Operation with the rows of an account -> table of `Sources`, record, and order of the rows."""

_Tables = defaultdict[str, dict[Any, Any]]
"""Name of a table -> its rows by user, funding by (time, user, coin), or answers by what they
describe."""


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
    tables: _Tables = defaultdict(dict)
    not_served, damaged = [], []
    paths = sorted(folder.glob("*.json"))
    for path in paths:
        try:
            if not _add_recording(tables, path):
                not_served.append(path.name)
        except Exception as error:  # whatever is wrong with one file, the others are served
            damaged.append(f"{path.name}: {_describe_error(error)}")
    if len(not_served) + len(damaged) == len(paths):
        words = ": no operation of the service returns these rows"
        reasons = [*damaged, *(name + words for name in not_served)]
        why = "; ".join(reasons) or "no file name ends in .json"
        raise NoRecordings(f"There is no recording to serve in {folder}: {why}")
    states = [state for by_user in tables["states"].values() for state in by_user.values()]
    histories: dict[str, Any] = {
        table: [(user, row) for user, rows in tables[table].items() for row in rows]
        for table, _, _ in _HISTORIES.values()
    }
    times = [time for time, _, _ in tables["funding"]]
    times += [state.time for state in states if state.time]
    for table, _, (time, *_) in _HISTORIES.values():
        times += [getattr(row, time) for _, row in histories[table]]
    users = {user for _, user, _ in tables["funding"]}.union(
        tables["fills"], tables["ledger"], tables["orders"], *tables["states"].values()
    )
    sources = Sources(
        start_ms=min(times, default=0),
        now_ms=max(times, default=0),
        label=f"recordings, {folder.name}",
        simulated=False,
        funding=[tables["funding"][key] for key in sorted(tables["funding"])],
        approvals=[Approval(user, RECORDED_BUILDER, 0, 0, True) for user in sorted(users)],
        metas=tables["metas"],
        states=tables["states"],
        books=tables["books"],
        history=_NOT_ALL,
        **histories,
    )
    world = {  # the same names as in `World.summary` of a simulation
        "start_ms": sources.start_ms,
        "now_ms": sources.now_ms,
        "users": sorted(users),
        "builders": [RECORDED_BUILDER],
        "validators": [],
        "perp_coins": [asset.name for meta in sources.metas.values() for asset in meta.universe],
        "spot_coins": [],
        "dexes": sorted(filter(None, sources.metas)),
        "venues": [],
        "collateral_tokens": [],
        "not_served": not_served,
    }
    return Recordings(sources, world, tables["answers"], not_served, damaged)


def _describe_error(error: Exception) -> str:
    words = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return words or type(error).__name__


def _add_recording(tables: _Tables, path: Path) -> bool:
    """Add a recording to the tables, and return whether the service shows such answers."""
    recording = json.loads(path.read_bytes())
    request, status = recording["request"], recording.get("status", 200)
    operation = find_operation(request["type"])
    if operation is None or status != 200:
        return False
    type, answer = operation.type, recording["response"]
    if type in _HISTORIES:
        table, record, order = _HISTORIES[type]
        user, defaults = request["user"].lower(), {"txIndex": 0} if "tx_index" in order else {}
        read = _read_rows(record, answer, **defaults)
        rows = _merge_recordings(tables[table].get(user, []), read)
        # Recordings are newest first, but in the order of execution within a millisecond. Sorting
        # is stable.
        tables[table][user] = sorted(rows, key=operator.attrgetter(*order))
    elif type == "userFunding":
        user = request["user"].lower()
        for row in _read_rows(records.FundingRow, answer, user=user):
            tables["funding"][row.time, user, row.delta.coin] = row
    elif type == "meta":
        tables["metas"][_text(request, "dex", "")] = _read_record(records.Meta, answer)
    elif type == "clearinghouseState":
        state, dex = _read_record(records.ClearinghouseState, answer), _text(request, "dex", "")
        tables["states"].setdefault(dex, {})[request["user"].lower()] = state
    elif type == "l2Book" and request.get("nSigFigs") is None:  # else its prices are rounded
        if answer is not None:
            tables["books"][_text(request, "coin")] = _read_record(records.L2Book, answer)
    else:
        key = request_key(type, check_request(operation, request))
        tables["answers"][key] = json.dumps(answer).encode()
    return True


def _read_record(record: type[R], row: Any) -> R:
    """Return a record with all key fields; its numbers are checked."""
    result = build_record(record, row)
    check_values(result)
    return result


def _read_rows(record: type[R], rows: list[Any], **defaults: Any) -> list[R]:
    """Return the records of rows; `defaults` replace fields that are absent or null."""
    found = []
    for number, row in enumerate(rows):
        try:
            filled = {name: value for name, value in defaults.items() if row.get(name) is None}
            found.append(_read_record(record, {**row, **filled}))
        except Exception as error:
            raise ValueError(f"row {number}: {_describe_error(error)}") from error
    return found


def _text(request: Mapping[str, Any], field: str, *default: str) -> str:
    name = request.get(field, *default) if default else request[field]
    if not isinstance(name, str):
        raise ValueError(f"request: {field}: {name!r} is not text")
    return name


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
