"""Parts of one history in several frames: where they meet, overlap or leave a gap."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, Final, NamedTuple

from toolkit.completeness.merge import Facts, merge_parameters, merge_provenance, subject_states
from toolkit.contract.operations import Operation, known_operation
from toolkit.contract.requests import parse_cursor
from toolkit.times import to_iso, to_ms

_NOT_CONTENT: Final = ("start", "end", "cursor", "page_size", "max_rows")

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
        if other not in _NOT_CONTENT and value != default:
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
