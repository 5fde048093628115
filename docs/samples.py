"""Write data/samples/: a request and its answer for every operation, from the tiny exchange.

``python docs/samples.py`` writes the samples that have changed. With ``--check`` it lists them.
The script tries requests until the samples show every branch that the simulated exchange has:
optional fields present and absent, null and not null, every word. It keeps only those rows of long
answers that show something new. See data/README.md.
"""

import functools
import io
import itertools
import json
import struct
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import msgpack
import msgspec
import zstandard

from toolkit.contract.answers import answer_type
from toolkit.contract.fields import AnnotationParts, split_annotation
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.records import AccountValueRow, Record
from toolkit.contract.value_kinds import field_note
from toolkit.service import AcceptedKey, Application, KeyQuotas, build_store
from toolkit.simulation import World, simulate

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "data" / "samples"
FIRST_ROWS: Final = 4
"""The number of first rows of a sample that are always kept."""

_PLAIN: Final = [
    AnnotationParts(kind, null=False, absent=False) for kind in (str, int, float, bool)
]
ENOUGH: Final = 0.8
"""The script takes the plainest request that shows this share of what the best one shows."""

Json = Any
Branch = tuple[str, str]
Exchange = dict[str, Json]


# Branches of an answer.


def value_branches(annotation: Any, value: Json, place: str = "") -> Iterator[Branch]:
    """Yield the branches of a value: field, and ``absent``, ``null``, ``rows``, ..."""
    shape = split_annotation(annotation)
    if value is None:
        yield place, "null"
        return
    if shape.null or shape.absent or shape.type is Any:
        yield place, "there"
    if _is_word(annotation):
        yield place, value
    if isinstance(shape.type, type) and issubclass(shape.type, Record):
        yield from _record_branches(shape.type, value)
    elif get_origin(shape.type) in (list, tuple, dict):
        yield from _entry_branches(shape.type, value, place)


def _record_branches(record: type[Record], value: Mapping[str, Json]) -> Iterator[Branch]:
    for wire, place, annotation in _branching_fields(record):
        if wire in value:
            yield from value_branches(annotation, value[wire], place)
        else:
            yield place, "absent"


@functools.cache
def _branching_fields(record: type[Record]) -> list[tuple[str, str, Any]]:
    """Return (wire name, place, annotation) of the fields that have several branches."""
    hints = typing.get_type_hints(record, include_extras=True)
    return [
        (field.encode_name, f"{record.__name__}.{field.name}", hints[field.name])
        for field in msgspec.structs.fields(record)
        if _is_word(hints[field.name]) or split_annotation(hints[field.name]) not in _PLAIN
    ]


def _is_word(annotation: Any) -> bool:
    note = field_note(annotation)
    return note is not None and note.kind.name == "word"


def _entry_branches(annotation: Any, value: Json, place: str) -> Iterator[Branch]:
    kinds = get_args(annotation)
    if get_origin(annotation) is tuple:
        pairs = list(zip(kinds, value, strict=True))
    elif get_origin(annotation) is dict:
        yield place, "keyed"
        pairs = [(kinds[-1], entry) for entry in value.values()]
    else:
        if value:
            yield place, "rows"
        pairs = [(kinds[-1], entry) for entry in value]
    for kind, entry in pairs:
        yield from value_branches(kind, entry, place)


def answer_branches(operation: Operation, request: Json, response: Json) -> Iterator[Branch]:
    """Yield the branches of an answer."""
    if operation.binary:
        for row in snapshot_rows(operation, response):
            yield from _record_branches(operation.tables[0].record, row)
    else:
        yield from value_branches(answer_type(operation, request), response, operation.type)


def snapshot_rows(operation: Operation, snapshots: Json) -> Iterator[dict[str, Json]]:
    """Yield the tuples of snapshots in array form as dicts with the names of their values."""
    for snapshot_id, name, entries in snapshots:
        if operation.tables[0].record is AccountValueRow:
            named = [(snapshot_id, name, user, *values) for user, values in entries.items()]
        else:
            named = [(snapshot_id, name, *values) for values in entries]
        names = operation.tables[0].record.__struct_fields__
        for values in named:
            yield dict(itertools.zip_longest(names, values))


# Requests.


class Exchanger:
    """A client of the service of the tiny exchange."""

    def __init__(self) -> None:
        self.world: World = simulate(seed=7, size="tiny")
        self._store = build_store(self.world.sources)
        self._access = KeyQuotas([AcceptedKey("samples", "samples")])

    def ask(self, request: Json) -> tuple[int, Json]:
        """Return status and answer; snapshots are in array form."""
        body = json.dumps(request).encode()
        headers = {"authorization": "Bearer samples"}
        now = self.world.sources.now_ms
        application = Application(self._store, self._access, now_ms=lambda: now, at_ms=lambda: 0)
        got = application.respond("POST", "/info", headers, body)
        if "x-payload-format" in got.headers:
            return got.status, unpack_snapshots(got.headers["x-payload-format"], got.content)
        return got.status, json.loads(got.content)


def unpack_snapshots(form: str, content: bytes) -> list[Json]:
    """Return the snapshots of a binary answer."""
    blobs = [content]
    if form == "multi-zstd":
        blobs, rest = [], content[4:]
        while rest:
            (length,) = struct.unpack_from("<I", rest)
            blobs.append(rest[4 : 4 + length])
            rest = rest[4 + length :]
    reader = zstandard.ZstdDecompressor().stream_reader
    return [msgpack.unpackb(reader(io.BytesIO(blob)).read()) for blob in blobs]


def requests(world: World) -> dict[str, list[Json]]:
    """Return the requests to try for each operation, the plainest first."""
    summary, failing = world.summary(), sorted(world.sources.unavailable)
    users, builders, start = summary["users"], summary["builders"], summary["start_ms"]
    dexes: list[str] = summary["dexes"]
    coins = [(coin, amount) for coin in summary["perp_coins"] for amount in (100_000, 1_000_000)]
    pairs = [users[i : i + 2] + failing for i in range(0, len(users), 2)]
    fields: dict[str, list[Json]] = {
        "spotPairDeployAuctionStatus": [{}],
        "perpDeployAuctionStatus": [{}],
        "currentDepth": [{"dex": dex} for dex in ("eqx", "hyperliquid")],
        "slippageHistory": [{"coin": c, "amount": a, "startTime": start} for c, a in coins],
        "meta": [{"dex": dex} for dex in dexes],
        "metaAndAssetCtxs": [{"dex": dex} for dex in dexes],
        "perpDexLimits": [{"dex": dex} for dex in reversed(dexes)],
        "accountValueSnapshotTimestamp": [{}],
        "accountValueSnapshots": [{"collateral_tokens": ["ALL"]}],
        "perpTwapSnapshotTimestamp": [{}],
        "perpTwapSnapshots": [{"market_names": ["ALL:ALL_DEXES"]}],
        "userFills": [{"user": user} for user in users],
        "userFillsByTime": [{"user": user, "startTime": start} for user in users],
        "builderOrdersByTime": [{"builder": builder, "startTime": start} for builder in builders],
        "historicalOrders": [{"user": user} for user in users],
        "userNonFundingLedgerUpdates": [{"user": user, "startTime": start} for user in users],
        "batchClearinghouseStates": [
            {"users": two, "dex": dex} for dex in ("", "ALL_DEXES") for two in pairs
        ],
        "borrowLendUserState": [{"user": user} for user in users],
        "delegations": [{"user": user} for user in users],
        "validatorAprHistory": [{"validator": validator} for validator in summary["validators"]],
    }
    approved = [{"builder": builder, "startTime": start} for builder in builders]
    fields |= {name: approved for name in OPERATIONS if name.startswith("builderApproved")}
    return {name: [{"type": name, **field} for field in fields[name]] for name in OPERATIONS}


# Selection.


def make_sample(exchanger: Exchanger, operation: Operation, tried: list[Json]) -> Exchange:
    """Return exchanges that together show every branch; the first has the others in ``more``."""
    answers = [(request, *exchanger.ask(request)) for request in tried]
    shown = [set(answer_branches(operation, request, got)) for request, _, got in answers]
    wanted = set().union(*shown)
    chosen: list[Exchange] = []
    while wanted or not chosen:
        most = max(len(branches & wanted) for branches in shown)
        best = next(
            i for i, branches in enumerate(shown) if len(branches & wanted) >= ENOUGH * most
        )
        request, status, got = answers[best]
        kept = _select_rows(operation, request, got, wanted, 0 if chosen else FIRST_ROWS)
        exchange = {"request": request, "status": status, "response": kept}
        left_out = 0 if kept is got else len(got) - len(kept)
        chosen.append(exchange | ({"left_out": left_out} if left_out else {}))
        wanted -= shown[best]
    return chosen[0] | ({"more": chosen[1:]} if chosen[1:] else {})


def _select_rows(
    operation: Operation, request: Json, response: Json, wanted: set[Branch], first: int
) -> Json:
    """Return the rows of an answer that show a wanted branch, in their order."""
    if operation.binary or get_origin(operation.answer) is not list:
        return response
    unseen, kept = set(wanted), []
    for number, row in enumerate(response):
        shows = set(answer_branches(operation, request, [row]))
        if number < first or shows & unseen:
            kept.append(row)
            unseen -= shows
    return kept


def all_samples() -> dict[str, str]:
    """Return every sample: name of the file -> its text."""
    exchanger = Exchanger()
    tried = requests(exchanger.world)
    return {
        f"{name}.json": format_sample(make_sample(exchanger, operation, tried[name]))
        for name, operation in OPERATIONS.items()
    }


def format_sample(exchange: Exchange) -> str:
    """Return a sample as JSON with one row on each line."""
    parts = []
    for name, value in exchange.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(
                format_sample(entry).rstrip() if name == "more" else _json_line(entry)
                for entry in value
            )
            parts.append(f"{_json_line(name)}: [\n{rows}\n]")
        else:
            parts.append(f"{_json_line(name)}: {_json_line(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def _json_line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def main(arguments: list[str]) -> int:
    """Write the samples that have changed; with ``--check`` list them and return 1."""
    texts = all_samples()
    files = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    stale = sorted(name for name in {*texts, *files} if texts.get(name) != files.get(name))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if "--check" in arguments:
            print(f"data/samples/{name} is stale: run python docs/samples.py")
        elif name in texts:
            (FOLDER / name).write_text(texts[name])
            print(f"wrote data/samples/{name}")
        else:
            (FOLDER / name).unlink()
            print(f"removed data/samples/{name}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
