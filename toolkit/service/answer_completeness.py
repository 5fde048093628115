"""How complete the answers of a partial source are, for example those of an archive.

A simulated exchange has everything, so nothing is stated about it. The documents "covered" and
"answered" of a store contain the evidence of its source.
"""

from typing import Final

import msgspec

from toolkit.completeness.covered_ranges import find_covered_range, make_coverage
from toolkit.completeness.evidence_names import alternative_names, evidence_names
from toolkit.completeness.headers import Completeness
from toolkit.contract.source_tables import HistoryCoverage
from toolkit.display import count_text
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import Store
from toolkit.times import to_iso

__all__ = ["state_completeness"]

_MOST_RANGES: Final = 3  # of an archive, in a message
_REFRESH: Final = "refresh the archive with this operation"


def state_completeness(store: Store, request: CheckedRequest) -> Completeness:
    """Return how complete the answer to a request is."""
    operation = request.operation
    if not store.about["partial"]:
        return Completeness()
    if operation.extra:
        return _extra_completeness(store, request)
    if operation.is_history:
        return _history_completeness(store, request)
    if operation.latest:
        return _latest_completeness(store, request)
    return _snapshot_completeness(store, request)


def _extra_completeness(store: Store, request: CheckedRequest) -> Completeness:
    """Return the completeness of an operation beyond the specification."""
    operation = request.operation
    if operation.part_of:
        (name,) = evidence_names(operation, request.parameters)
        if _is_answered(store, name):
            return Completeness()
    return Completeness(
        f"{operation.type} is computed from the rows in the archive, and some rows may be missing"
    )


def _history_completeness(store: Store, request: CheckedRequest) -> Completeness:
    operation, (name,) = request.operation, evidence_names(request.operation, request.parameters)
    if request.parameters.get("builder") and "builder" not in operation.subject:
        return Completeness(
            f"{name}: an archive does not know through which builder these fills were routed. "
            "Leave out builder"
        )
    text = store.document("covered", name)
    coverage = msgspec.json.decode(text, type=HistoryCoverage) if text else make_coverage([])
    cursor = request.parameters.get("cursor") and request.cursor
    start, end = cursor[0] if cursor else request["start"], request.parameters["end"]
    covered = find_covered_range(coverage, operation, start, end, request.now_ms)
    if covered is not None:
        return Completeness(covered=covered)
    until = "" if end is None else f" to {_format_time(end)}"
    return Completeness(
        f"{name} from {_format_time(start)}{until} is not proved complete: the archive has "
        f"{_describe_ranges(coverage)}; {_REFRESH}, or request a range that it has"
    )


def _format_time(time_ms: int) -> str:
    """Return a requested time as text, also one that no calendar has."""
    try:
        return to_iso(time_ms)
    except OverflowError:
        return f"{time_ms} ms"


def _describe_ranges(coverage: HistoryCoverage) -> str:
    if not coverage.ranges:
        is_empty = coverage.first == coverage.last == 0
        return "no rows of it" if is_empty else "no complete range of it"
    ranges = [
        f"{to_iso(first)} to {to_iso(last)}" for first, last in coverage.ranges[-_MOST_RANGES:]
    ]
    earlier = len(coverage.ranges) - len(ranges)
    text = (f"{count_text(earlier, 'earlier range')}, " if earlier else "") + ", ".join(ranges)
    if coverage.ranges[-1][1] < coverage.last:
        text += f", and rows up to {to_iso(coverage.last)}, of which some may be missing"
    return text


def _latest_completeness(store: Store, request: CheckedRequest) -> Completeness:
    (name,) = evidence_names(request.operation, request.parameters)
    for other in alternative_names(name):
        text = store.document("answered", other)
        most_rows = msgspec.json.decode(text) if text else 0
        is_same = other == name and not request.parameters.get("aggregate_by_time")
        if text and (most_rows is None or (is_same and request["max_rows"] <= most_rows)):
            return Completeness()
    return Completeness(
        f"{request.operation.type} of {request['user']}: no archived answer shows that these are "
        f"the latest {request['max_rows']} rows, or the archive has later rows of other "
        f"operations; "
        f"{_REFRESH}"
    )


def _snapshot_completeness(store: Store, request: CheckedRequest) -> Completeness:
    operation = request.operation
    if not operation.from_archive:
        return Completeness(
            f"{operation.type} is not served from an archive, because its answer does not contain "
            "the data from which it is computed. Refresh it, then read it with Archive.frame"
        )
    missing = [
        name
        for name in evidence_names(operation, request.parameters)
        if not _is_answered(store, name)
    ]
    if not missing:
        return Completeness()
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return Completeness(f"the archive has no answer to {missing[0]}{more}: {_REFRESH}")


def _is_answered(store: Store, name: str) -> bool:
    """Return whether the source has an answer that contains the named one."""
    return any(store.document("answered", other) for other in alternative_names(name))
