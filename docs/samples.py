"""Write data/samples/: a request and its answer for every operation, from the tiny exchange.

``python docs/samples.py`` writes the samples that have changed.
The script tries requests until the samples show every branch that the simulated exchange has:
optional fields present and absent, null and not null, every word. It keeps only those rows of long
answers that show something new. See data/README.md.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import msgpack

# The other scripts of this folder are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from reference_pages import write_changed

import toolkit as tk
from toolkit.contract.answers import answer_type
from toolkit.contract.fields import is_record, record_fields, split_annotation
from toolkit.contract.operations import FETCHED, Operation
from toolkit.contract.snapshots import LIMIT, open_envelope
from toolkit.simulation import simulate

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "data" / "samples"
FIRST_ROWS: Final = 4
"""The number of first rows of a sample that are always kept."""
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
    if is_record(shape.type):
        yield from _record_branches(shape.type, value)
    elif get_origin(shape.type) in (list, tuple, dict):
        yield from _entry_branches(shape.type, value, place)


def _record_branches(record: Any, value: Json) -> Iterator[Branch]:
    for field in record_fields(record):
        place = f"{record.__name__}.{field.path}"
        if field.wire not in value:
            yield place, "absent"
            continue
        inner = value[field.wire]
        if inner is not None and (field.null or field.absent):
            yield place, "there"
        if inner is not None and field.kind.name == "word":
            yield place, inner
        yield from value_branches(field.type, inner, place)


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
    names = operation.tables[0].record.__struct_fields__
    for *head, entries in snapshots:
        is_keyed = isinstance(entries, dict)
        rows = [(user, *values) for user, values in entries.items()] if is_keyed else entries
        yield from (dict(itertools.zip_longest(names, (*head, *row))) for row in rows)


# Requests.


def requests() -> dict[str, list[Json]]:
    """Return the requests to try for each operation, the plainest first."""
    world = simulate(seed=7, size="tiny")
    summary, failing = world.summary(), sorted(world.sources.unavailable)
    users, start = summary["users"], summary["start_ms"]
    coins = [(coin, amount) for coin in summary["perp_coins"] for amount in (100_000, 1_000_000)]
    pairs = [users[i : i + 2] + failing for i in range(0, len(users), 2)]
    by_user = [{"user": user} for user in users]
    by_builder = [{"builder": builder} for builder in summary["builders"]]
    by_coin = [{"coin": coin} for coin in summary["perp_coins"]]
    by_dex = [{"dex": dex} for dex in summary["dexes"]]
    fields: dict[str, list[Json]] = {
        "currentDepth": [{"dex": dex} for dex in ("eqx", "hyperliquid")],
        "slippageHistory": [{"coin": c, "amount": a} for c, a in coins],
        "meta": by_dex,
        "metaAndAssetCtxs": by_dex,
        "perpDexLimits": by_dex[::-1],
        "accountValueSnapshots": [{"collateral_tokens": ["ALL"]}],
        "perpTwapSnapshots": [{"market_names": ["ALL:ALL_DEXES"]}],
        "batchClearinghouseStates": [
            {"users": two, "dex": dex} for dex in ("", "ALL_DEXES") for two in pairs
        ],
        "portfolioState": [user | {"dex": dex} for dex in ("", "ALL_DEXES") for user in by_user],
        "vaultDetails": [
            {"vaultAddress": vault, **who}
            for vault, role in world.sources.roles.items()
            if role.role == "vault"
            for who in ({}, *by_user)
        ]
        + [{"vaultAddress": users[0]}],
        "candleSnapshot": [
            {"req": coin | {"interval": "1h", "startTime": start}} for coin in by_coin
        ],
        "openInterestHistory": by_coin,
        "validatorAprHistory": [{"validator": validator} for validator in summary["validators"]],
    }
    usual = {"user": by_user, "builder": by_builder, "coin": by_coin}
    tried = {}
    for name, operation in FETCHED.items():
        required = [item.name for item in operation.parameters if item.required]
        known = fields.get(name) or next((usual[name] for name in required if name in usual), [{}])
        item = operation.by_wire.get("startTime")
        is_top = item is not None and not item.within
        first = {"startTime": start} if is_top and (item.required or item.default == 0) else {}
        tried[name] = [{"type": name, **field, **first} for field in known]
    return tried


# Selection.


def make_sample(answers: list[tuple[Json, Json]], operation: Operation) -> Exchange:
    """Return exchanges that together show every branch; the first has the others in ``more``."""
    shown = [set(answer_branches(operation, *answer)) for answer in answers]
    wanted = set().union(*shown)
    chosen: list[Exchange] = []
    while wanted or not chosen:
        most = max(len(branches & wanted) for branches in shown)
        best = next(
            i for i, branches in enumerate(shown) if len(branches & wanted) >= ENOUGH * most
        )
        request, got = answers[best]
        kept = _select_rows(operation, request, got, wanted, 0 if chosen else FIRST_ROWS)
        exchange = {"request": request, "status": 200, "response": kept}
        if kept != got:
            exchange["left_out"] = len(got) - len(kept)
        chosen.append(exchange)
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
    session = tk.local(seed=7, size="tiny", default=False)
    samples = {}
    for name, tried in requests().items():
        operation = FETCHED[name]
        answers = [(request, _ask(session, operation, request)) for request in tried]
        samples[f"{name}.json"] = format_sample(make_sample(answers, operation))
    return samples


def _ask(session: tk.Session, operation: Operation, request: Json) -> Json:
    """Return the answer to a request; snapshots are in array form."""
    answer = session.ask(operation, request)
    if not operation.binary:
        return json.loads(answer.content)
    payloads = open_envelope(answer.headers, answer.content, LIMIT)
    return [msgpack.unpackb(payload) for payload in payloads]


def format_sample(exchange: Exchange) -> str:
    """Return a sample as JSON with one row on each line."""
    parts = []
    for name, value in exchange.items():
        line = _json_line(value)
        if isinstance(value, list) and value:
            write = format_sample if name == "more" else _json_line
            line = "[\n" + ",\n".join(write(entry).rstrip() for entry in value) + "\n]"
        parts.append(f"{_json_line(name)}: {line}")
    return "{" + ",\n".join(parts) + "}\n"


def _json_line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    write_changed(FOLDER, all_samples())
