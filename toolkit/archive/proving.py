"""What of an archive's content a service can show to be all there is."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from toolkit.archive.gathering import Found, Latest
from toolkit.archive.pulls import Ranges
from toolkit.archive.status import Spans
from toolkit.completeness.coverage import make_coverage
from toolkit.contract.dexes import canonical, coin_dex, native_bare
from toolkit.contract.paging import key_of
from toolkit.contract.sources import Evidence, HistoryCoverage

__all__ = ["histories_of", "proof_of"]


def histories_of(ranges: Ranges, spans: Spans) -> dict[str, HistoryCoverage]:
    """Give what is known of every history, by the names of `toolkit.completeness.subjects`."""
    found = {}
    for type, subject in sorted({*ranges, *spans}):
        span = spans.get((type, subject))
        times = () if span is None else (span["first"], span["last"])
        known = make_coverage(ranges.get((type, subject), ()), times)
        found[f"{type} {native_bare(subject)}"] = known
    return found


def proof_of(found: Found) -> Evidence:
    """Give what is proved of the rows and answers that were found.

    An answer is proved where what was gathered gives it again: the latest rows of a user are not,
    once another operation has shown later ones, since that one does not show every column; nor is
    a state that another answer says cannot be had.
    """
    answers: dict[str, int | None] = dict.fromkeys(found.answered)
    answers |= dict.fromkeys(
        name for name, could in found.stated.items() if could is _had(found, name)
    )
    for name, latest in found.latest.items():
        if _comes_again(latest, list(_rows(found, latest))):
            answers[name] = None if _is_whole(latest) else latest.parameters["max_rows"]
    return Evidence(found.histories, answers)


def _had(found: Found, name: str) -> bool:
    return name.rpartition(" ")[2] not in found.unavailable


def _is_whole(latest: Latest) -> bool:
    """Whether there were fewer rows than asked for."""
    return len(latest.keys) < int(latest.parameters["max_rows"])


def _rows(found: Found, latest: Latest) -> Iterable[Any]:
    """Give the gathered rows that the question is about."""
    user = latest.parameters["user"]
    if latest.operation.type == "historicalOrders":
        return found.orders.get(user, {}).values()
    return _filtered(latest, found.fills.get(user, {}).values())


def _filtered(latest: Latest, fills: Iterable[Any]) -> Iterator[Any]:
    builder, dex = latest.parameters["builder"], latest.parameters["dex"]
    for fill in fills:
        routed = None if fill.builder is msgspec.UNSET else fill.builder
        if builder in (None, routed) and (dex is None or coin_dex(fill.coin) == canonical(dex)):
            yield fill


def _comes_again(latest: Latest, rows: list[Any]) -> bool:
    """Whether the gathered rows, as far back as the answer went, are those of the answer."""
    gathered, answered = Counter(map(key_of(latest.operation), rows)), Counter(latest.keys)
    if _is_whole(latest):
        return gathered == answered
    oldest = min(answered)  # of it, the answer may have had only the first rows
    later = {key: rows for key, rows in gathered.items() if key > oldest}
    return later == {key: rows for key, rows in answered.items() if key > oldest}
