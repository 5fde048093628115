"""Merged provenance: what holds for every part of a frame or of a result. All merges are here."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Facts = Mapping[str, Any]
"""The provenance of one frame."""

_SUMMED: Final = ("pages", "ties", "requests", "points", "waits", "waited_seconds")
_COUNTS: Final = (*_SUMMED, "retries", "first", "last")
"""What describes one pull only."""

_STATEMENTS: Final = ("rows", "why", "history", "failed", "states")
"""What the merge determines again for the merged frame."""

_LISTS: Final = ("breaks", "gaps", "unproved")
_TEXTS: Final = ("source", "toolkit_version")
_JOINED: Final = ("operation", "simulated", "asked_at", "missing_fields", *_TEXTS, *_LISTS)
"""What the merged frame has even if its parts differ in it."""

_RANGE: Final = ("start", "end", "cursor")
_PAGING: Final = ("page_size", "max_rows")
_UNKNOWN: Final = "unknown"


def merge_provenance(
    parts: Sequence[Facts],
    *,
    parameters: Mapping[str, Any],
    states: Mapping[str, str],
    failed: Mapping[str, str],
    reasons: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the provenance of rows that come from several frames.

    Parameters
    ----------
    parts : sequence of mapping
        The provenance of each frame; at least one.
    parameters : mapping
        The parameters of all requests together.
    states : mapping of str to str
        Subject -> how complete its rows are.
    failed : mapping of str to str
        Subject -> why there are no rows of it.
    reasons : iterable of str
        Why the merged rows are not complete.

    Returns
    -------
    dict
        Counts are summed. It is ``complete`` only if each part is. ``simulated`` holds if any part
        is simulated; ``asked_at`` is the earliest.

    Examples
    --------
    >>> parts = [{"source": "a", "complete": "yes", "pages": 1}] * 2
    >>> merged = merge_provenance(parts, parameters={}, states={"x": "yes", "y": "no"}, failed={})
    >>> merged["source"], merged["complete"], merged["pages"]
    ('a', 'not of y', 2)
    """
    values: dict[str, list[Any]] = defaultdict(list)
    for name, value in ((name, value) for part in parts for name, value in part.items()):
        values[name].append(value)
    merged = {
        name: value
        for name, value in parts[0].items()
        if name not in (*_COUNTS, *_STATEMENTS)
        and (name in _JOINED or all(part.get(name) == value for part in parts))
    }
    for name, found in values.items():
        if name in _TEXTS:
            merged[name] = ", ".join(dict.fromkeys(found))
        elif name in _LISTS:
            merged[name] = [text for texts in found for text in texts]
    if "asked_at" in values:
        merged["asked_at"] = min(values["asked_at"])
    if "simulated" in values:
        merged["simulated"] = any(values["simulated"])
    if "missing_fields" in values:
        merged["missing_fields"] = dict(sum(map(Counter, values["missing_fields"]), Counter()))
    complete = overall_completeness(states, failed)
    causes: Counter[str] = sum(map(Counter, values["retries"]), Counter())
    merged |= {"parameters": dict(parameters), "complete": complete}
    merged |= {name: sum(values[name]) for name in _SUMMED}
    merged["retries"] = dict(sorted(causes.items()))
    if why := "; ".join(dict.fromkeys(reasons)):
        merged["why"] = why
    if failed:
        merged["failed"] = dict(failed)
    incomplete = {subject: state for subject, state in states.items() if state != "yes"}
    # "no" does not say which subjects are incomplete; any other state holds for all of them.
    if incomplete and (complete == "no" or complete not in incomplete.values()):
        merged["states"] = incomplete
    if values["history"]:
        merged["history"] = "; ".join(dict.fromkeys(values["history"]))
    return merged


def common_covered(parts: Iterable[Facts]) -> dict[str, Any]:
    """Return the time range that is complete in every part that states one, as ``covered``."""
    ranges = [part["covered"] for part in parts if "covered" in part]
    if not ranges:
        return {}
    # ISO texts ascend as their times do.
    start, end = max(spans[0][0] for spans in ranges), min(spans[-1][1] for spans in ranges)
    return {"covered": [(start, end)]}


def merge_parameters(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of several requests, without their time range.

    Values that differ are listed under the plural of their name.

    Examples
    --------
    >>> merge_parameters([{"coin": "BTC", "amount": 1}, {"coin": "ETH", "amount": 1}])
    {'amount': 1, 'coins': ['BTC', 'ETH']}
    """
    lists: dict[str, list[Any]] = {}
    common: dict[str, Any] = {}
    for name, value in ((name, value) for parameters in each for name, value in parameters.items()):
        if name in _RANGE:
            continue
        if all(name in parameters and parameters[name] == value for parameters in each):
            common[name] = value
        elif name not in _PAGING:
            plural = f"{name}es" if name.endswith("x") else f"{name}s"
            known = lists.setdefault(name if isinstance(value, list) else plural, [])
            known += value if isinstance(value, list) else [value]
    return common | {name: list(dict.fromkeys(values)) for name, values in lists.items()}


def subject_states(subjects: Sequence[str], facts: Facts) -> dict[str, str]:
    """Return how complete the rows of each subject of a merged frame are."""
    incomplete, complete = facts.get("states", {}), facts["complete"]
    mixed = complete == "no" or complete.startswith("not of ")
    return {subject: incomplete.get(subject, "yes" if mixed else complete) for subject in subjects}


def overall_completeness(states: Mapping[str, str], failed: Mapping[str, Any]) -> str:
    """Return how complete all subjects together are, or of which subjects rows are missing.

    Examples
    --------
    >>> overall_completeness({"a": "yes", "b": "first 5 rows"}, {})
    'not of b'
    """
    kinds = set(states.values()) or {"yes"}
    if failed:
        return "no"
    if len(kinds) == 1:
        return kinds.pop()
    return "not of " + ", ".join(subject for subject, state in states.items() if state != "yes")


def merge_inputs(inputs: Mapping[str, Facts]) -> dict[str, Any]:
    """Return the provenance of a result that was computed from several frames.

    Parameters
    ----------
    inputs : mapping of str to mapping
        Name of the input -> its provenance; empty if it has none.

    Returns
    -------
    dict
        - ``source``, ``numbers``: if all inputs agree;
        - ``simulated``: whether any input is simulated;
        - ``complete``: what all inputs state, or what each incomplete one states, for example
          ``"no (ledger)"``; an input that states nothing is ``unknown``;
        - ``inputs``: the provenance of each input, without the counts of its pull.

    Examples
    --------
    >>> facts = {"fills": {"complete": "yes"}, "ledger": {"complete": "no", "simulated": True}}
    >>> merged = merge_inputs(facts)
    >>> merged["complete"], merged["simulated"]
    ('no (ledger)', True)
    """
    agreed = {
        name: {facts.get(name) for facts in inputs.values()} for name in ("source", "numbers")
    }
    common = {name: v.pop() for name, v in agreed.items() if len(v) == 1 and None not in v}
    states = {name: str(facts.get("complete", _UNKNOWN)) for name, facts in inputs.items()}
    incomplete = [f"{state} ({name})" for name, state in states.items() if state != "yes"]
    kinds = {*states.values()}
    complete = kinds.pop() if len(kinds) == 1 else ", ".join(incomplete)
    return {
        **common,
        "simulated": any(bool(facts.get("simulated")) for facts in inputs.values()),
        "complete": complete,
        "inputs": {
            name: {key: value for key, value in facts.items() if key not in _COUNTS}
            for name, facts in inputs.items()
        },
    }
