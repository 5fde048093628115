"""Parts of one history in several frames: where they meet, overlap or leave a gap."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolkit.completeness.merge import Facts, subject_states
from toolkit.contract.extra_operations import known_operation
from toolkit.contract.operations import Operation
from toolkit.contract.requests import parse_cursor
from toolkit.times import to_iso, to_ms

__all__ = ["FramePart", "RowRange", "common_range", "find_overlaps", "parts_of"]

_NOT_CONTENT: Final = ("start", "end", "cursor", "page_size", "max_rows")

RowRange = tuple[str, int, int | None]
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
    content : str
        What was requested, without the time range.
    start, end : int
        The time range that is proved, in milliseconds, both inclusive.
    state : str
        How complete the rows are.
    is_cut : bool
        Whether `max_rows` ended the pull. Then some rows after ``end`` came, but not all.
    """

    frame: int
    subject: str
    content: str
    start: int
    end: int
    state: str
    is_cut: bool = False

    @property
    def label(self) -> str:
        """The subject, or what was requested."""
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
    operation, content = known_operation(facts["operation"]), dict(facts["parameters"])
    start, end = _proved_start(facts) or 0, _proved_end(facts)
    cut_time = _cut_time(operation, facts)
    name = operation.parameters[0].python if operation.parameters else ""
    subjects = content.pop(f"{name}s", None)
    defaults = {parameter.python: parameter.default for parameter in operation.parameters}
    content = {
        other: value
        for other, value in content.items()
        if other not in _NOT_CONTENT and value != defaults.get(other)
    } | {"type": operation.type}
    if subjects is None:
        until, is_cut = (end, False) if cut_time is None else (min(end, cut_time - 1), True)
        yield FramePart(frame, "", _content_text(content), start, until, facts["complete"], is_cut)
        return
    for subject, state in subject_states(subjects, facts).items():
        yield FramePart(frame, subject, _content_text(content | {name: subject}), start, end, state)


def find_overlaps(
    operation: Operation, parts: Sequence[FramePart]
) -> tuple[dict[int, list[RowRange]], dict[str, str], dict[str, str]]:
    """Return the rows to keep of each frame, and how complete they are together.

    Returns
    -------
    tuple
        Frame -> ranges whose rows no other frame has; label of a part -> how complete its rows are;
        content -> why it is not complete.

    Raises
    ------
    ValueError
        If ranges overlap that are not complete, so that rows may be in both.
    """
    grouped: dict[str, list[FramePart]] = defaultdict(list)
    for part in parts:
        grouped[part.content].append(part)
    kept: dict[int, list[RowRange]] = defaultdict(list)
    states: dict[str, str] = {}
    reasons: dict[str, str] = {}
    has_range = any(parameter.python == "start" for parameter in operation.parameters)
    for content, group in grouped.items():
        if len(group) > 1 and operation.latest:
            reasons[content] = f"{content}: requested more than once, so rows may be repeated"
        if not has_range:
            continue
        first, *others = sorted(group, key=lambda part: (part.start, part.end, part.frame))
        last, reach, is_complete = first, first.end, first.state == "yes" or first.is_cut
        after = -1
        for part in others:
            is_complete = is_complete and (part.state == "yes" or part.is_cut)
            if part.start > reach + 1:
                gap = f"nothing between {to_iso(reach)} and {to_iso(part.start)}"
                reasons[content] = f"{content}: {gap}"
            elif part.start <= reach and not is_complete:
                raise ValueError(
                    f"{content}: ranges overlap from {to_iso(part.start)} to {to_iso(reach)} and "
                    "are not all complete, so rows may be repeated. Fetch one of the ranges again"
                )
            kept[last.frame].append((last.subject, after, max(reach, part.start - 1)))
            last, after, reach = part, reach, max(reach, part.end)
        if others:
            kept[last.frame].append((last.subject, after, None))
            if all(part.is_cut for part in group if part.end == reach):
                reasons[content] = f"{content}: max_rows ended the pull after {to_iso(reach)}"
    for part in parts:
        state = "no" if part.content in reasons else part.state
        if part.is_cut and len(grouped[part.content]) > 1 and part.content not in reasons:
            state = "yes"  # another part has the rows after its end
        if states.get(part.label, "yes") == "yes":
            states[part.label] = state
    return kept, states, reasons


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
    if parameters.get("cursor"):  # of the cursor's own millisecond only a part follows
        return int(parse_cursor(known_operation(facts["operation"]), parameters["cursor"])[0]) + 1
    if parameters.get("start") is None and facts.get("covered"):  # a frame of an archive
        return to_ms(facts["covered"][0][0])
    start: int | None = parameters.get("start")
    return start


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
