"""Whether an answer is all there is, said in its headers.

The simulated exchange holds everything, and says nothing. Of an archive these headers say

- ``x-toolkit-incomplete``: in words, percent-encoded, why an answer is not proved to be all;
- ``x-toolkit-covered``: from when to when, in Unix milliseconds, the history is complete around
  what was asked.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from toolkit.contract.dexes import name_in
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.proof import Covered, is_history, names_of, wider
from toolkit.service.asked import Asked
from toolkit.service.store import Store
from toolkit.times import iso

__all__ = ["proof_headers"]

_LONGEST: Final = 600
"""Characters of the words that say what is missing."""

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
    """Give the headers that say whether the answer to a question is proved to be all there is."""
    if not store.about["partial"]:
        return {}
    if asked.operation.type in EXTRA_OPERATIONS:
        return _of_extra(store, asked)
    if is_history(asked.operation):
        return _of_history(store, asked)
    if asked.operation.latest:
        return _of_latest(store, asked)
    return _of_state(store, asked)


def _of_extra(store: Store, asked: Asked) -> Mapping[str, str]:
    """Return the headers of an operation beyond the specification."""
    if asked.operation.type == "clearinghouseState":
        dex = name_in("rows", asked["dex"])
        name = f"batchClearinghouseStates {dex} {asked['user']}"
        if any(store.document("answered", one) for one in wider(name)):
            return {}
    return _lacks(
        f"{asked.operation.type} is computed from what the archive holds, which need not be all"
    )


def _of_history(store: Store, asked: Asked) -> Mapping[str, str]:
    operation, (name,) = asked.operation, names_of(asked.operation, asked.parameters)
    if asked.parameters.get("builder") and operation.type == "userFillsByTime":
        return _lacks(
            f"{name}: an archive does not know through which builder these fills were routed: "
            "leave out builder"
        )
    text = store.document("covered", name)
    known = msgspec.json.decode(text, type=Covered) if text else Covered.of([])
    cursor = asked.parameters.get("cursor") and asked.cursor
    start, end = cursor[0] if cursor else asked["start"], asked.parameters["end"]
    found = known.holding(operation, start, end, asked.now_ms)
    if found is not None:
        return {"x-toolkit-covered": "{},{}".format(*found)}
    until = "" if end is None else f" to {_moment(end)}"
    return _lacks(
        f"{name} from {_moment(start)}{until} is not proved complete: the archive has "
        f"{_ranges(known)}; {_REFRESH}, or ask for what it has"
    )


def _moment(time_ms: int) -> str:
    """Write a time that somebody asked for, whatever it is."""
    try:
        return iso(time_ms)
    except OverflowError:
        return f"{time_ms} ms"


def _ranges(known: Covered) -> str:
    if not known.ranges:
        return "nothing of it" if known.first == known.last == 0 else "no complete range of it"
    some = [f"{iso(one)} to {iso(two)}" for one, two in known.ranges[-_RANGES:]]
    more = len(known.ranges) - len(some)
    beyond = known.ranges[-1][1] < known.last
    return (
        (f"{more} earlier ranges, " if more else "")
        + ", ".join(some)
        + (f", and rows up to {iso(known.last)} of which some may be missing" if beyond else "")
    )


def _of_latest(store: Store, asked: Asked) -> Mapping[str, str]:
    (name,) = names_of(asked.operation, asked.parameters)
    for one in wider(name):
        text = store.document("answered", one)
        most = msgspec.json.decode(text) if text else 0
        is_same = one == name and not asked.parameters.get("aggregate_by_time")
        if text and (most is None or (is_same and asked["max_rows"] <= most)):
            return {}
    return _lacks(
        f"{asked.operation.type} of {asked['user']}: the archive has no answer that shows these to "
        f"be the latest {asked['max_rows']} rows, or has later rows of other operations; {_REFRESH}"
    )


def _of_state(store: Store, asked: Asked) -> Mapping[str, str]:
    type = asked.operation.type
    if type not in _ANSWERED:
        return _lacks(
            f"{type} is not served from an archive, since nothing on the wire says what it was "
            "computed from: Archive.frame gives the answer, once it was refreshed"
        )
    missing = [
        name
        for name in names_of(asked.operation, asked.parameters)
        if not any(store.document("answered", one) for one in wider(name))
    ]
    if not missing:
        return {}
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return _lacks(f"the archive has no answer to {missing[0]}{more}: {_REFRESH}")


def _lacks(words: str) -> Mapping[str, str]:
    return {"x-toolkit-incomplete": quote(words[:_LONGEST], safe=" ,;:=()/")}
