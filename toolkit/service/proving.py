"""Which answers of a partial source, such as an archive, are proved complete.

The simulated exchange has everything, and states nothing. `toolkit.completeness.headers` writes
what is found here into the headers of an answer.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from toolkit.completeness.coverage import find_covered_range, make_coverage
from toolkit.completeness.headers import Completeness, write_completeness
from toolkit.completeness.subjects import alternative_names, evidence_names, is_history
from toolkit.contract.dexes import dex_name_in
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.sources import HistoryCoverage
from toolkit.service.asked import Asked
from toolkit.service.store import Store
from toolkit.times import to_iso

__all__ = ["proof_headers"]

_RANGES: Final = 3  # how many of an archive's ranges are named
_REFRESH: Final = "refresh it into the archive"
_ANSWERED: Final = frozenset(
    {
        "currentDepth",
        "meta",
        "metaAndAssetCtxs",
        "perpDexLimits",
        "batchClearinghouseStates",
        "borrowLendUserState",
        "delegations",
    }
)
"""Operations whose archived answers are served again."""


def proof_headers(store: Store, asked: Asked) -> Mapping[str, str]:
    """Return the headers that state whether the answer to a request is proved complete."""
    if not store.about["partial"]:
        return {}
    if asked.operation.type in EXTRA_OPERATIONS:
        completeness = _of_extra(store, asked)
    elif is_history(asked.operation):
        completeness = _of_history(store, asked)
    elif asked.operation.latest:
        completeness = _of_latest(store, asked)
    else:
        completeness = _of_state(store, asked)
    return write_completeness(completeness)


def _of_extra(store: Store, asked: Asked) -> Completeness:
    """Return the headers of an operation beyond the specification."""
    if asked.operation.type == "clearinghouseState":
        dex = dex_name_in("rows", asked["dex"])
        name = f"batchClearinghouseStates {dex} {asked['user']}"
        if any(store.document("answered", one) for one in alternative_names(name)):
            return Completeness()
    return Completeness(
        f"{asked.operation.type} is computed from what the archive holds, which need not be all"
    )


def _of_history(store: Store, asked: Asked) -> Completeness:
    operation, (name,) = asked.operation, evidence_names(asked.operation, asked.parameters)
    if asked.parameters.get("builder") and operation.type == "userFillsByTime":
        return Completeness(
            f"{name}: an archive does not know through which builder these fills were routed: "
            "leave out builder"
        )
    text = store.document("covered", name)
    known = msgspec.json.decode(text, type=HistoryCoverage) if text else make_coverage([])
    cursor = asked.parameters.get("cursor") and asked.cursor
    start, end = cursor[0] if cursor else asked["start"], asked.parameters["end"]
    found = find_covered_range(known, operation, start, end, asked.now_ms)
    if found is not None:
        return Completeness(covered=found)
    until = "" if end is None else f" to {_moment(end)}"
    return Completeness(
        f"{name} from {_moment(start)}{until} is not proved complete: the archive has "
        f"{_ranges(known)}; {_REFRESH}, or ask for what it has"
    )


def _moment(time_ms: int) -> str:
    """Write a time that somebody asked for, whatever it is."""
    try:
        return to_iso(time_ms)
    except OverflowError:
        return f"{time_ms} ms"


def _ranges(known: HistoryCoverage) -> str:
    if not known.ranges:
        return "nothing of it" if known.first == known.last == 0 else "no complete range of it"
    some = [f"{to_iso(one)} to {to_iso(two)}" for one, two in known.ranges[-_RANGES:]]
    more = len(known.ranges) - len(some)
    beyond = known.ranges[-1][1] < known.last
    return (
        (f"{more} earlier ranges, " if more else "")
        + ", ".join(some)
        + (f", and rows up to {to_iso(known.last)} of which some may be missing" if beyond else "")
    )


def _of_latest(store: Store, asked: Asked) -> Completeness:
    (name,) = evidence_names(asked.operation, asked.parameters)
    for one in alternative_names(name):
        text = store.document("answered", one)
        most = msgspec.json.decode(text) if text else 0
        is_same = one == name and not asked.parameters.get("aggregate_by_time")
        if text and (most is None or (is_same and asked["max_rows"] <= most)):
            return Completeness()
    return Completeness(
        f"{asked.operation.type} of {asked['user']}: the archive has no answer that shows these to "
        f"be the latest {asked['max_rows']} rows, or has later rows of other operations; {_REFRESH}"
    )


def _of_state(store: Store, asked: Asked) -> Completeness:
    type = asked.operation.type
    if type not in _ANSWERED:
        return Completeness(
            f"{type} is not served from an archive, since nothing on the wire says what it was "
            "computed from: Archive.frame gives the answer, once it was refreshed"
        )
    missing = [
        name
        for name in evidence_names(asked.operation, asked.parameters)
        if not any(store.document("answered", one) for one in alternative_names(name))
    ]
    if not missing:
        return Completeness()
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return Completeness(f"the archive has no answer to {missing[0]}{more}: {_REFRESH}")
