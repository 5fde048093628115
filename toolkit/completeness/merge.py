"""Merged provenance: what holds for every part of a frame or of a result. All merges are here.

`join_parts` is for parts of one history in several frames: where they meet, overlap or leave a gap.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from operator import itemgetter
from typing import Any, Final, NamedTuple

from toolkit.contract.operations import Operation, known_operation
from toolkit.contract.requests import parse_cursor
from toolkit.times import to_iso, to_ms

Facts = Mapping[str, Any]
"""The provenance of one frame."""

_SUMMED: Final = ("pages", "ties", "requests", "points", "waits", "waited_seconds")
_COUNTS: Final = (*_SUMMED, "retries", "first", "last")
"""What describes one pull only."""

_STATEMENTS: Final = ("rows", "why", "history", "failed", "states")
"""What the merge determines again for the merged frame."""

_JOINED: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "operation": itemgetter(0),
    "asked_at": min,
    "simulated": any,
    "missing_fields": lambda counts: dict(sum(map(Counter, counts), Counter())),
    **dict.fromkeys(("source", "toolkit_version"), lambda texts: ", ".join(dict.fromkeys(texts))),
    **dict.fromkeys(("breaks", "gaps", "unproved"), lambda lists: [*chain(*lists)]),
}
"""What the merged frame has even if its parts differ in it -> its value from those of the parts."""

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
    complete = overall_completeness(states, failed)
    incomplete = {subject: state for subject, state in states.items() if state != "yes"}
    # "no" does not say which subjects are incomplete; any other state holds for all of them.
    if complete != "no" and complete in incomplete.values():
        incomplete = {}
    statements = {
        "why": "; ".join(dict.fromkeys(reasons)),
        "failed": dict(failed),
        "states": incomplete,
        "history": "; ".join(dict.fromkeys(values["history"])),
    }
    return {
        **{
            name: value
            for name, value in parts[0].items()
            if name not in (*_COUNTS, *_STATEMENTS)
            and all(part.get(name) == value for part in parts)
        },
        **{name: join(values[name]) for name, join in _JOINED.items() if name in values},
        "parameters": dict(parameters),
        "complete": complete,
        **{name: sum(values[name]) for name in _SUMMED},
        "retries": dict(sorted(sum(map(Counter, values["retries"]), Counter()).items())),
        **{name: value for name, value in statements.items() if value},
    }


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


SubjectRange = tuple[str, int, int | None]
"""Subject, and the time after which and up to which rows are kept; None for no end."""


class _Part(NamedTuple):
    """The rows that one frame has of one subject.

    - ``subject``: the subject in a frame of `tk.many`; else empty
    - ``series``: what was requested, without the time range and without filters
    - ``filters``: the parameters that select some rows of the series
    - ``start``, ``end``: the time range that is proved, in milliseconds, both inclusive
    - ``requested_end``: the last time of which rows were requested: the end, or the present
    - ``state``: how complete the rows are
    - ``has_later``: whether the frame can have rows after ``end``, such as those of the present
    - ``is_cut``: whether `max_rows` ended the pull. Then some rows after ``end`` came, but not all
    - ``cursor``: the key after which the rows begin; empty without a cursor. Rows with its time can
      follow it, although this time is before ``start``
    """

    frame: int
    subject: str
    series: str
    filters: Mapping[str, Any]
    start: int
    end: int
    requested_end: int
    state: str
    has_later: bool
    is_cut: bool
    cursor: tuple[int | str, ...]

    @property
    def content(self) -> str:
        """What was requested, without the time range."""
        return ", ".join(filter(None, (self.series, _content_text(self.filters))))


def join_parts(
    operation: Operation, each: Sequence[Facts]
) -> tuple[dict[int, list[SubjectRange]], dict[str, Any]]:
    """Return the rows to keep of each frame, and their merged provenance.

    Parameters
    ----------
    operation : Operation
        The operation of the frames.
    each : sequence of mapping
        The provenance of each frame.

    Returns
    -------
    tuple
        Number of a frame -> ranges whose rows no other frame has, and the provenance of all frames
        together.

    Raises
    ------
    ValueError
        If ranges overlap that are not complete or have different filters, so that rows may be in
        both.
    """
    parts = [part for number, facts in enumerate(each) for part in _parts_of(number, facts)]
    grouped: dict[str, list[_Part]] = defaultdict(list)
    for part in parts:
        grouped[part.content].append(part)
    kept: dict[int, list[SubjectRange]] = defaultdict(list)
    reasons: dict[str, str] = {}
    has_range = any(parameter.python == "start" for parameter in operation.parameters)
    if has_range or operation.latest:
        _check_filters(parts)
    for content, group in grouped.items():
        if len(group) > 1 and operation.latest:
            reasons[content] = f"{content}: requested more than once, so rows may be repeated"
        if len(group) > 1 and has_range and (reason := _choose_rows(content, group, kept)):
            reasons[content] = f"{content}: {reason}"
    states: dict[str, str] = {}
    for part in parts:
        state = "no" if part.content in reasons else part.state
        if part.is_cut and len(grouped[part.content]) > 1 and part.content not in reasons:
            state = "yes"  # other parts have the rows after its end
        label = part.subject or part.content
        if states.get(label, "yes") == "yes":
            states[label] = state
    parameters = merge_parameters([facts["parameters"] for facts in each])
    starts = [start for facts in each if (start := _proved_start(facts)) is not None]
    ends = [facts["parameters"]["end"] for facts in each if "end" in facts["parameters"]]
    if len(starts) == len(each):  # the range of all, as far as every frame states it
        parameters["start"] = min(starts)
    if len(ends) == len(each):
        parameters["end"] = max(ends)
    failed = {name: why for facts in each for name, why in facts.get("failed", {}).items()}
    whys = [facts["why"] for facts in each if "why" in facts] + list(reasons.values())
    return kept, merge_provenance(
        each, parameters=parameters, states=states, failed=failed, reasons=whys
    )


def _parts_of(frame: int, facts: Facts) -> Iterator[_Part]:
    """Yield the parts of a frame, one per subject."""
    operation, parameters = known_operation(facts["operation"]), dict(facts["parameters"])
    cursor, covered = _cursor_key(facts), facts.get("covered")
    # Later rows may have come since the request.
    end = to_ms(covered[-1][1]) if covered else to_ms(facts["asked_at"]) - 1
    requested_end = parameters.get("end", end + 1)
    end = min(end, requested_end)
    start, has_later = _proved_start(facts) or 0, end < requested_end
    if cursor and int(cursor[0]) > end:  # such as a cursor in the millisecond of the present
        start = int(cursor[0])
    asked_end = end + has_later
    name = operation.parameters[0].python if operation.parameters else ""
    subjects = parameters.pop(f"{name}s", None)
    states = {"": facts["complete"]} if subjects is None else subject_states(subjects, facts)
    is_cut = facts["complete"].startswith("first ") and operation.paging != "backward"
    is_cut = is_cut and subjects is None and facts.get("last") is not None
    if is_cut:
        end, has_later = min(end, int(facts["last"].split("_")[0]) - 1), True
    content: dict[str, Any] = {"type": operation.type}
    filters: dict[str, Any] = {}
    defaults = {parameter.python: parameter.default for parameter in operation.parameters}
    for other, value in parameters.items():
        default = defaults.get(other)
        if other not in (*_RANGE, *_PAGING) and value != default:
            # Without a value, all rows come; a default text names some of them, such as a dex.
            is_filter = other != name and (default is None or default is False)
            (filters if is_filter else content)[other] = value
    for subject, state in states.items():
        series = _content_text(content | ({name: subject} if subject else {}))
        yield _Part(
            frame, subject, series, filters, start, end, asked_end, state, has_later, is_cut, cursor
        )


def _check_filters(parts: Sequence[_Part]) -> None:
    """Raise ValueError if parts of one series may have the same rows under different filters."""
    grouped: dict[str, list[_Part]] = defaultdict(list)
    for part in parts:
        grouped[part.series].append(part)
    for one, other in chain.from_iterable(combinations(group, 2) for group in grouped.values()):
        shared = one.filters.keys() & other.filters.keys()
        is_disjoint = any(one.filters[name] != other.filters[name] for name in shared)
        start, end = max(one.start, other.start), min(one.end, other.end)
        if one.filters != other.filters and not is_disjoint and start <= end:
            texts = [_content_text(part.filters) or "none" for part in (one, other)]
            raise ValueError(
                f"{one.series}: frames with different filters ({'; '.join(texts)}) overlap from "
                f"{to_iso(start)} to {to_iso(end)}, so rows may be in both. Use one filter for "
                "all, or pandas.concat if you know that no row is in both"
            )


def _choose_rows(content: str, group: Sequence[_Part], kept: dict[int, list[SubjectRange]]) -> str:
    """Add the rows to keep of each part of one history; return why rows are missing, or no text.

    Each proved time belongs to one part. Of parts that meet or overlap, one has the last rows. It
    also keeps the rows after all proved times, such as those of the present, up to where the next
    parts begin.
    """
    meeting: list[list[_Part]] = []
    reach, is_sure = -1, True
    by_first_row = sorted(group, key=lambda p: (p.start, not p.cursor, p.cursor, -p.end, p.frame))
    for part in by_first_row:
        is_sure &= part.state == "yes" or part.is_cut
        if meeting and part.start <= reach and not is_sure:
            raise ValueError(
                f"{content}: ranges overlap from {to_iso(part.start)} to {to_iso(reach)} and are "
                "not all complete, so rows may be repeated. Fetch one of the ranges again"
                + (", without max_rows" if any("first " in other.state for other in group) else "")
            )
        if not meeting or part.start > reach + 1:
            meeting.append([])
        meeting[-1].append(part)
        reach = max(reach, part.end)
    reason, after = "", -1
    requested = max((part.requested_end for part in group if part.is_cut), default=-1)
    for number, parts in enumerate(meeting, 1):
        begin = meeting[number][0].start if number < len(meeting) else None
        reach = max(part.end for part in parts)
        last = min(
            (part for part in parts if part.end == reach),
            key=lambda part: (not part.has_later, part.is_cut, part.cursor, part.frame),
        )
        for part in parts:
            first = after if part.end > after else reach  # no row of a part that others enclose
            after = max(after, part.end)
            until = part.end if part is not last else None if begin is None else begin - 1
            kept[part.frame].append((part.subject, first, until))
        if begin is not None and last.is_cut:
            reason = (
                f"max_rows cut the rows with time {to_iso(after + 1)}, and the next frame "
                f"begins at {to_iso(begin)}. Continue from the time of the last row"
            )
        elif begin is not None:
            reason = f"no frame has the rows between {to_iso(after)} and {to_iso(begin)}"
        elif not reason and (last.is_cut or after + last.has_later < requested):
            reason = f"max_rows ended a pull, and no frame has all rows after {to_iso(after)}"
    return reason


def _proved_start(facts: Facts) -> int | None:
    """Return the time from which a frame has every row; None for the beginning."""
    if key := _cursor_key(facts):  # of the cursor's own millisecond only a part follows
        return int(key[0]) + 1
    start: int | None = facts["parameters"].get("start")
    if start is None and facts.get("covered"):  # a frame of an archive
        return to_ms(facts["covered"][0][0])
    return start


def _cursor_key(facts: Facts) -> tuple[int | str, ...]:
    """Return the key of the cursor of a request; an empty key if it has none."""
    cursor = facts["parameters"].get("cursor")
    return parse_cursor(known_operation(facts["operation"]), cursor) if cursor else ()


def _content_text(content: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(content.items()))
