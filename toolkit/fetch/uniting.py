"""Frames of several calls below each other, with what their certificates say together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import known_operation
from toolkit.contract.operations import Operation
from toolkit.contract.requests import parse_cursor
from toolkit.fetch.certificate import summed
from toolkit.fetch.joining import OF_ONE, completeness, states_of, with_subject
from toolkit.frames import provenance
from toolkit.times import to_iso, to_ms

__all__ = ["concat"]

_RANGE: Final = ("start", "end", "cursor")
_MANNER: Final = ("page_size", "max_rows")

_Kept = tuple[str, int, int | None]
"""Subject, after when and up to when rows are kept, in milliseconds; None for no end."""


def concat(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Put fetched frames below each other, and say of the whole what holds for every part.

    `pandas.concat` drops where frames come from as soon as they differ in it. Rows that two parts
    have because their ranges of time overlap are kept once.

    Parameters
    ----------
    frames : iterable of DataFrame
        Frames that fetch functions, `tk.many` or an archive gave, of one kind of record: the
        same columns with the same dtypes.

    Returns
    -------
    DataFrame
        The rows in the order of the frames. Where they are of several subjects (accounts,
        builders, validators, coins or dexes), a first column names the subject of each row, as
        `tk.many` does; frames that have that column already may stand beside others. Its
        provenance adds certificates up as `tk.many` does;
        ``parts`` says of how many frames, and parameters that differ are listed under their
        plural. It is ``complete`` only where each part is, and where the ranges of the same
        subject meet or overlap. A range ends at the latest before it was asked for, and after a
        cursor begins with the next millisecond.

    Raises
    ------
    ValueError
        If there is no frame, one carries no provenance or was made by this function, they are of
        different records, or the same rows may stand in two of them of which one is not complete.
    TypeError
        If they are one frame.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> coins = [tk.slippage_history(coin, 1_000, "1d", session=session) for coin in ("BTC", "ETH")]
    >>> whole = concat(coins)
    >>> facts = tk.provenance(whole)
    >>> facts["complete"], facts["parameters"]["coins"], facts["requests"]
    ('yes', ['BTC', 'ETH'], 4)
    """
    if hasattr(frames, "columns"):
        raise TypeError("these frames are one: give a list of them")
    parts = list(frames)
    facts = [provenance(one) for one in parts]
    parts = _with_subjects(parts, facts)
    operation = _operation(parts, facts)
    pieces = [one for number, fact in enumerate(facts) for one in _pieces(number, fact)]
    kept, apart = _overlaps(operation, pieces)
    bare = [_once(operation, part, kept[number]) for number, part in enumerate(parts)]
    joined = pd.concat(bare, ignore_index=True)
    joined.attrs["toolkit"] = _facts(facts, pieces, apart) | {
        "parts": len(parts),
        "rows": len(joined),
    }
    return joined


def _with_subjects(
    parts: Sequence[pd.DataFrame], facts: Sequence[Mapping[str, Any]]
) -> list[pd.DataFrame]:
    """Return the frames with a column that names the subject, where they are of several.

    Without it, rows of two accounts would look like the rows of one.
    """
    asked = [(_parameter_name(one), one.get("parameters", {})) for one in facts]
    subjects = [parameters.get(name) for name, parameters in asked]
    of_many = any(f"{name}s" in parameters for name, parameters in asked)
    if not of_many and len(set(map(str, subjects))) < 2:
        return list(parts)
    return [
        with_subject(name, subject, part) if isinstance(subject, str) else part
        for part, subject, (name, _) in zip(parts, subjects, asked, strict=True)
    ]


def _parameter_name(facts: Mapping[str, Any]) -> str:
    """Return the name of the parameter that `tk.many` would take many of; else empty text."""
    operation = known_operation(facts["operation"])
    if not operation.parameters:
        return ""
    first = operation.parameters[0]
    return "" if first.kind in ("addresses", "texts", "time") else first.python


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one frame holds of one question, less its range of time.

    Attributes
    ----------
    part : int
        Which frame.
    subject : str
        The subject, in a frame of `tk.many`; else empty.
    asked : str
        What was asked.
    start, end : int
        From when to when its rows are proved, in milliseconds, both inclusive.
    state : str
        How complete it is.
    """

    part: int
    subject: str
    asked: str
    start: int
    end: int
    state: str


def _operation(parts: Sequence[pd.DataFrame], facts: Sequence[Mapping[str, Any]]) -> Operation:
    if not parts:
        raise ValueError("there is no frame to concat")
    if any("parts" in one for one in facts):
        raise ValueError(
            "a frame that tk.concat made no longer tells the ranges of its parts: put the parts "
            "together at once"
        )
    operations = [known_operation(one["operation"]) for one in facts]
    first = operations[0]
    if not all("complete" in one for one in facts):
        raise ValueError(
            "frames that tk.frame made carry no certificate, which tk.concat joins: use "
            "pandas.concat, and where rows do not name their user "
            "pandas.concat([a.assign(user=...), b.assign(user=...)])"
        )
    keeps = all(one.get("extra") == "keep" for one in facts)
    compared = [_known_columns(first, part) if keeps else part for part in parts]
    for one, frame in zip(operations, compared, strict=True):
        if {table.record for table in one.tables}.isdisjoint(
            table.record for table in first.tables
        ):
            raise ValueError(
                f"frames of {first.type} and {one.type} hold different records: concat them apart"
            )
        if not frame.dtypes.equals(compared[0].dtypes):
            differing = frame.dtypes.to_frame().join(compared[0].dtypes.to_frame("b"), how="outer")
            names = differing.index[differing[0].astype(str) != differing["b"].astype(str)]
            raise ValueError(
                f"frames of {first.type} and {one.type} differ in their columns "
                f"({', '.join(map(str, names)) or 'the order'}): fetch them alike, or choose the "
                "columns that both have"
            )
    return first


def _known_columns(operation: Operation, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without the columns of unknown fields, which stand behind the others."""
    known = {one.name for table in operation.tables for one in table_columns(table)}
    last = max((at for at, name in enumerate(frame.columns) if name in known), default=-1)
    return frame.iloc[:, : last + 1]


def _pieces(part: int, facts: Mapping[str, Any]) -> Iterator[_Piece]:
    """Give what a frame holds, subject by subject."""
    operation, asked = known_operation(facts["operation"]), dict(facts["parameters"])
    start, end = _start(facts) or 0, _end(facts)
    name = operation.parameters[0].python if operation.parameters else ""
    subjects = asked.pop(f"{name}s", None)
    defaults = {one.python: one.default for one in operation.parameters}
    asked = {
        other: value
        for other, value in asked.items()
        if other not in (*_RANGE, *_MANNER) and value != defaults.get(other)
    } | {"type": operation.type}
    if subjects is None:
        yield _Piece(part, "", _written(asked), start, end, facts["complete"])
        return
    for subject, state in states_of(subjects, [facts]).items():
        yield _Piece(part, subject, _written(asked | {name: subject}), start, end, state)


def _start(facts: Mapping[str, Any]) -> int | None:
    """Give the moment from which a frame holds every row; None for the beginning."""
    asked = facts["parameters"]
    if asked.get("cursor"):  # of its own moment only a part comes after it
        return int(parse_cursor(known_operation(facts["operation"]), asked["cursor"])[0]) + 1
    if asked.get("start") is None and facts.get("covered"):  # an archive's frame says it
        return to_ms(facts["covered"][0][0])
    start: int | None = asked.get("start")
    return start


def _end(facts: Mapping[str, Any]) -> int:
    """Give the moment up to which a frame holds every row: later ones may have come since."""
    covered = facts.get("covered")
    known = to_ms(covered[-1][1]) if covered else to_ms(facts["asked_at"]) - 1
    asked: int = facts["parameters"].get("end", known)
    return min(known, asked)


def _written(asked: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(asked.items()))


def _overlaps(
    operation: Operation, pieces: Sequence[_Piece]
) -> tuple[dict[int, list[_Kept]], dict[str, str]]:
    """Say which rows of a part to keep, and what is not known of a subject.

    Returns
    -------
    tuple
        Part -> subjects, with the range whose rows other parts do not have; question -> why the
        whole is not complete.
    """
    grouped: dict[str, list[_Piece]] = defaultdict(list)
    for one in pieces:
        grouped[one.asked].append(one)
    kept: dict[int, list[_Kept]] = defaultdict(list)
    apart: dict[str, str] = {}
    for asked, group in grouped.items():
        if len(group) > 1 and operation.latest:
            apart[asked] = f"{asked}: asked more than once, so rows may stand there twice"
        if not any(one.python == "start" for one in operation.parameters):
            continue
        first, *rest = sorted(group, key=lambda one: (one.start, one.end, one.part))
        last, reach, is_whole = first, first.end, first.state == "yes"
        after = -1
        for one in rest:
            is_whole = is_whole and one.state == "yes"
            if one.start > reach + 1:
                apart[asked] = f"{asked}: nothing between {to_iso(reach)} and {to_iso(one.start)}"
            elif one.start <= reach and not is_whole:
                raise ValueError(
                    f"{asked}: ranges overlap from {to_iso(one.start)} to {to_iso(reach)} and are "
                    "not all complete, so that rows may stand there twice: fetch one of them anew"
                )
            until = max(reach, one.start - 1)
            kept[last.part].append((last.subject, after, until))
            last, after, reach = one, reach, max(reach, one.end)
        if rest:
            kept[last.part].append((last.subject, after, None))
    return kept, apart


def _once(operation: Operation, frame: pd.DataFrame, ranges: Sequence[_Kept]) -> pd.DataFrame:
    """Leave out rows that stand in other parts, and the provenance."""
    kept = frame.copy(deep=False)
    kept.attrs = {}  # attrs that differ would be compared, and dropped
    for subject, after, until in ranges:
        time = operation.key[0]
        if time not in kept.columns:
            raise ValueError(f"ranges overlap, and no column {time} shows which rows are the same")
        there = kept[time] <= pd.Timestamp(after, unit="ms", tz="UTC")
        if until is not None:
            there |= kept[time] > pd.Timestamp(until, unit="ms", tz="UTC")
        if subject:
            name = operation.parameters[0].python
            there &= kept["account" if "account" in kept.columns else name] == subject
        kept = kept[~there]
    return kept


def _facts(
    facts: Sequence[Mapping[str, Any]], pieces: Sequence[_Piece], apart: Mapping[str, str]
) -> dict[str, Any]:
    """Say of the whole what holds for every part; it is complete where each part is."""
    states: dict[str, str] = {}
    for one in pieces:
        label = one.subject or one.asked
        if states.get(label, "yes") == "yes":
            states[label] = "no" if one.asked in apart else one.state
    failed = {name: why for one in facts for name, why in one.get("failed", {}).items()}
    whys = [one["why"] for one in facts if "why" in one] + list(apart.values())
    common = {
        name: value
        for name, value in facts[0].items()
        if name not in OF_ONE and all(one.get(name) == value for one in facts)
    }
    complete = completeness(states, failed)
    cut = {label: state for label, state in states.items() if state != "yes"}
    said = dict.fromkeys(one["history"] for one in facts if "history" in one)
    return {
        "operation": facts[0]["operation"],
        **common,
        "parameters": _parameters(facts),
        "source": ", ".join(dict.fromkeys(one["source"] for one in facts)),
        "simulated": any(one["simulated"] for one in facts),
        "asked_at": min(one["asked_at"] for one in facts),
        "complete": complete,
        **summed(facts),
        **({"why": "; ".join(dict.fromkeys(whys))} if whys else {}),
        **({"failed": failed} if failed else {}),
        **({"states": cut} if cut and complete not in cut.values() else {}),
        **({"history": "; ".join(said)} if said else {}),
    }


def _parameters(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give what all were asked for, what they differ in as lists, and the range."""
    each = [one["parameters"] for one in facts]
    lists: dict[str, list[Any]] = {}
    common: dict[str, Any] = {}
    for name, value in ((name, value) for one in each for name, value in one.items()):
        if name in _RANGE:
            continue
        if all(name in one and one[name] == value for one in each):
            common[name] = value
        elif name not in _MANNER:
            known = lists.setdefault(name if isinstance(value, list) else _plural(name), [])
            known += value if isinstance(value, list) else [value]
    starts = [start for one in facts if (start := _start(one)) is not None]
    ends = [one["end"] for one in each if "end" in one]
    return {
        **common,
        **{name: list(dict.fromkeys(values)) for name, values in lists.items()},
        **({"start": min(starts)} if len(starts) == len(facts) else {}),
        **({"end": max(ends)} if len(ends) == len(facts) else {}),
    }


def _plural(name: str) -> str:
    return f"{name}es" if name.endswith("x") else f"{name}s"
