"""Parts of one history in several frames: where they meet, overlap or leave a gap."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final

from toolkit.completeness.merge import Facts, subject_states
from toolkit.contract.extra_operations import known_operation
from toolkit.contract.operations import Operation
from toolkit.contract.requests import parse_cursor
from toolkit.times import to_iso, to_ms

__all__ = ["FramePart", "SubjectRange", "common_range", "find_overlaps", "parts_of"]

_NOT_CONTENT: Final = ("start", "end", "cursor", "page_size", "max_rows")

SubjectRange = tuple[str, int, int | None]
"""Subject, and the time after which and up to which rows are kept; None for no end."""


@dataclass(frozen=True, slots=True)
class FramePart:
    """The rows that one frame has of one subject.

    Attributes
    ----------
    frame : int
        Which frame.
    subject : str
        The subject in a frame of `tk.many`; else empty.
    series : str
        What was requested, without the time range and without filters.
    filters : mapping
        Name -> value of the parameters that select some rows of the series.
    start, end : int
        The time range that is proved, in milliseconds, both inclusive.
    requested_end : int
        The last time of which rows were requested: the end, or the present of the request.
    state : str
        How complete the rows are.
    has_later : bool
        Whether the frame can have rows after ``end``, such as those of the present.
    is_cut : bool
        Whether `max_rows` ended the pull. Then some rows after ``end`` came, but not all.
    cursor : tuple
        The key after which the rows begin; empty without a cursor. Rows with its time can follow
        it, although this time is before ``start``.
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
    is_cut: bool = False
    cursor: tuple[int | str, ...] = ()

    @property
    def order(self) -> tuple[Any, ...]:
        """The key that sorts parts by their first row; of equal ones, the longest is first."""
        return self.start, not self.cursor, self.cursor, -self.end, self.frame

    @property
    def content(self) -> str:
        """What was requested, without the time range."""
        filters = _content_text(self.filters)
        return f"{self.series}, {filters}" if filters else self.series

    @property
    def label(self) -> str:
        """The subject; if it is empty, the series and its filters (`content`)."""
        return self.subject or self.content


def parts_of(frame: int, facts: Facts) -> Iterator[FramePart]:
    """Yield the parts of a frame, one per subject.

    Parameters
    ----------
    frame : int
        Which frame.
    facts : mapping
        Its provenance.
    """
    operation, parameters = known_operation(facts["operation"]), dict(facts["parameters"])
    start, end = _proved_start(facts) or 0, _proved_end(facts)
    cursor = _cursor_key(facts)
    if cursor and int(cursor[0]) > end:  # such as a cursor in the millisecond of the present
        start = int(cursor[0])
    name = operation.parameters[0].python if operation.parameters else ""
    subjects = parameters.pop(f"{name}s", None)
    content: dict[str, Any] = {"type": operation.type}
    filters: dict[str, Any] = {}
    defaults = {parameter.python: parameter.default for parameter in operation.parameters}
    for other, value in parameters.items():
        default = defaults.get(other)
        if other not in _NOT_CONTENT and value != default:
            # Without a value, all rows come; a default text names some of them, such as a dex.
            is_filter = other != name and (default is None or default is False)
            (filters if is_filter else content)[other] = value
    has_later = end < facts["parameters"].get("end", end + 1)
    requested_end = end + has_later
    make_part = partial(
        FramePart,
        frame,
        filters=filters,
        start=start,
        requested_end=requested_end,
        cursor=cursor,
    )
    if subjects is None:
        cut_time = _cut_time(operation, facts)
        yield make_part(
            subject="",
            series=_content_text(content),
            end=end if cut_time is None else min(end, cut_time - 1),
            state=facts["complete"],
            has_later=has_later or cut_time is not None,
            is_cut=cut_time is not None,
        )
        return
    for subject, state in subject_states(subjects, facts).items():
        series = _content_text(content | {name: subject})
        yield make_part(subject=subject, series=series, end=end, state=state, has_later=has_later)


def find_overlaps(
    operation: Operation, parts: Sequence[FramePart]
) -> tuple[dict[int, list[SubjectRange]], dict[str, str], dict[str, str]]:
    """Return the rows to keep of each frame, and how complete they are together.

    Returns
    -------
    tuple
        Frame -> ranges whose rows no other frame has; label of a part -> how complete its rows are;
        content -> why it is not complete.

    Raises
    ------
    ValueError
        If ranges overlap that are not complete or have different filters, so that rows may be in
        both.
    """
    grouped: dict[str, list[FramePart]] = defaultdict(list)
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
        if len(group) > 1 and has_range:
            _check_complete(content, group)
            if reason := _choose_rows(group, kept):
                reasons[content] = f"{content}: {reason}"
    states: dict[str, str] = {}
    for part in parts:
        state = "no" if part.content in reasons else part.state
        if part.is_cut and len(grouped[part.content]) > 1 and part.content not in reasons:
            state = "yes"  # other parts have the rows after its end
        if states.get(part.label, "yes") == "yes":
            states[part.label] = state
    return kept, states, reasons


def _check_filters(parts: Sequence[FramePart]) -> None:
    """Raise ValueError if parts of one series may have the same rows under different filters."""
    grouped: dict[str, list[FramePart]] = defaultdict(list)
    for part in parts:
        grouped[part.series].append(part)
    for series, group in grouped.items():
        for one, other in combinations(group, 2):
            shared = one.filters.keys() & other.filters.keys()
            is_disjoint = any(one.filters[name] != other.filters[name] for name in shared)
            start, end = max(one.start, other.start), min(one.end, other.end)
            if one.filters != other.filters and not is_disjoint and start <= end:
                texts = [_content_text(part.filters) or "none" for part in (one, other)]
                raise ValueError(
                    f"{series}: frames with different filters ({'; '.join(texts)}) overlap from "
                    f"{to_iso(start)} to {to_iso(end)}, so rows may be in both. Use one filter for "
                    "all, or pandas.concat if you know that no row is in both"
                )


def _check_complete(content: str, group: Sequence[FramePart]) -> None:
    """Raise ValueError if ranges overlap that are not complete."""
    first, *others = sorted(group, key=lambda part: (part.start, part.end))
    reach, is_complete = first.end, first.state == "yes" or first.is_cut
    for part in others:
        is_complete = is_complete and (part.state == "yes" or part.is_cut)
        if part.start <= reach and not is_complete:
            raise ValueError(
                f"{content}: ranges overlap from {to_iso(part.start)} to {to_iso(reach)} and are "
                "not all complete, so rows may be repeated. Fetch one of the ranges again"
                + (", without max_rows" if any("first " in other.state for other in group) else "")
            )
        reach = max(reach, part.end)


def _choose_rows(group: Sequence[FramePart], kept: dict[int, list[SubjectRange]]) -> str:
    """Add the rows to keep of each part of one history; return why rows are missing, or no text."""
    meeting: list[list[FramePart]] = []
    reach = -1
    for part in sorted(group, key=lambda part: part.order):
        if not meeting or part.start > reach + 1:
            meeting.append([])
        meeting[-1].append(part)
        reach = max(reach, part.end)
    reason, after = "", -1
    requested = max((part.requested_end for part in group if part.is_cut), default=-1)
    for number, parts in enumerate(meeting, 1):
        begin = meeting[number][0].start if number < len(meeting) else None
        last = _keep_once(parts, after, begin, kept)
        after = last.end
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


def _keep_once(
    parts: Sequence[FramePart], after: int, begin: int | None, kept: dict[int, list[SubjectRange]]
) -> FramePart:
    """Add the rows to keep of parts that meet or overlap; return the part that has the last rows.

    Each proved time belongs to one part. The rows after all proved times, such as those of the
    present, are those of the part that is returned, up to the `begin` of the next frame.
    """
    reach = max(part.end for part in parts)
    last = min(
        (part for part in parts if part.end == reach),
        key=lambda part: (not part.has_later, part.is_cut, part.cursor, part.frame),
    )
    until = None if begin is None else begin - 1
    for part in parts:
        first = after if part.end > after else reach  # no row of a part that others enclose
        after = max(after, part.end)
        kept[part.frame].append((part.subject, first, until if part is last else part.end))
    return last


def common_range(each: Sequence[Facts]) -> dict[str, int]:
    """Return ``start`` and ``end`` of all frames together, as far as every frame states them."""
    starts = [start for facts in each if (start := _proved_start(facts)) is not None]
    ends = [facts["parameters"]["end"] for facts in each if "end" in facts["parameters"]]
    return {
        **({"start": min(starts)} if len(starts) == len(each) else {}),
        **({"end": max(ends)} if len(ends) == len(each) else {}),
    }


def _proved_start(facts: Facts) -> int | None:
    """Return the time from which a frame has every row; None for the beginning."""
    parameters = facts["parameters"]
    if key := _cursor_key(facts):  # of the cursor's own millisecond only a part follows
        return int(key[0]) + 1
    if parameters.get("start") is None and facts.get("covered"):  # a frame of an archive
        return to_ms(facts["covered"][0][0])
    start: int | None = parameters.get("start")
    return start


def _cursor_key(facts: Facts) -> tuple[int | str, ...]:
    """Return the key of the cursor of a request; an empty key if it has none."""
    cursor = facts["parameters"].get("cursor")
    return parse_cursor(known_operation(facts["operation"]), cursor) if cursor else ()


def _proved_end(facts: Facts) -> int:
    """Return the time up to which a frame has every row: later rows may have come since."""
    covered = facts.get("covered")
    known = to_ms(covered[-1][1]) if covered else to_ms(facts["asked_at"]) - 1
    end: int = facts["parameters"].get("end", known)
    return min(known, end)


def _cut_time(operation: Operation, facts: Facts) -> int | None:
    """Return the time of the last row if `max_rows` ended the pull, else None."""
    is_cut = facts["complete"].startswith("first ") and operation.paging != "backward"
    if not is_cut or facts.get("last") is None:
        return None
    return int(facts["last"].split("_")[0])


def _content_text(content: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(content.items()))
