"""Frames of several calls below each other, with what their certificates say together."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.requests import parse_cursor
from toolkit.fetch.certificate import summed
from toolkit.fetch.joining import OF_ONE, completeness, states_of
from toolkit.frames import provenance
from toolkit.times import iso, to_ms

__all__ = ["concat"]

_RANGE: Final = ("start", "end", "cursor")
_MANNER: Final = ("page_size", "max_rows")


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
        The rows in the order of the frames. Its provenance adds certificates up as `tk.many` does;
        parameters that differ are listed under their plural. It is ``complete`` only where
        each part is, and where the ranges of the same subject meet or overlap.

    Raises
    ------
    ValueError
        If there is no frame, one carries no provenance, they are of different records, or the
        same rows may stand in two of them of which one is not complete.

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
    parts = list(frames)
    facts = [provenance(one) for one in parts]
    operation = _operation(parts, facts)
    pieces = [one for number, fact in enumerate(facts) for one in _pieces(number, fact)]
    again, apart = _overlaps(operation, pieces)
    bare = [_once(operation, part, again[number]) for number, part in enumerate(parts)]
    joined = pd.concat(bare, ignore_index=True)
    joined.attrs["toolkit"] = _facts(facts, pieces, apart) | {"rows": len(joined)}
    return joined


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
        From when to when, in milliseconds, both inclusive.
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
    operations = [OPERATIONS[one["operation"]] for one in facts]
    first = operations[0]
    if not all("complete" in one for one in facts):
        raise ValueError(
            "rows that tk.frame made carry no certificate: put the rows together before, or fetch"
        )
    for one, frame in zip(operations, parts, strict=True):
        if {table.record for table in one.tables}.isdisjoint(
            table.record for table in first.tables
        ):
            raise ValueError(
                f"frames of {first.type} and {one.type} hold different records: concat them apart"
            )
        if not frame.dtypes.equals(parts[0].dtypes):
            differing = frame.dtypes.to_frame().join(parts[0].dtypes.to_frame("b"), how="outer")
            names = differing.index[differing[0].astype(str) != differing["b"].astype(str)]
            raise ValueError(
                f"frames of {first.type} and {one.type} differ in their columns "
                f"({', '.join(map(str, names)) or 'the order'}): fetch them alike, or choose the "
                "columns that both have"
            )
    return first


def _pieces(part: int, facts: Mapping[str, Any]) -> Iterator[_Piece]:
    """Give what a frame holds, subject by subject."""
    operation, asked = OPERATIONS[facts["operation"]], dict(facts["parameters"])
    covered = facts.get("covered") or [(0, facts["asked_at"])]  # an archive's frame says it
    start = to_ms(covered[0][0]) if asked.get("start") is None else asked["start"]
    end = to_ms(covered[-1][1]) if asked.get("end") is None else asked["end"]
    if asked.get("cursor"):
        start = int(parse_cursor(operation, asked["cursor"])[0]) + 1
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


def _written(asked: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(asked.items()))


def _overlaps(
    operation: Operation, pieces: Sequence[_Piece]
) -> tuple[dict[int, list[tuple[str, int]]], dict[str, str]]:
    """Say which rows of a part stand in earlier ones, and what is not known of a subject.

    Returns
    -------
    tuple
        Part -> subjects, and the moments up to which they are there already; question -> why the
        whole is not complete.
    """
    grouped: dict[str, list[_Piece]] = defaultdict(list)
    for one in pieces:
        grouped[one.asked].append(one)
    again: dict[int, list[tuple[str, int]]] = defaultdict(list)
    apart: dict[str, str] = {}
    for asked, group in grouped.items():
        if len(group) > 1 and operation.latest:
            apart[asked] = f"{asked}: asked more than once, so rows may stand there twice"
        if not any(one.python == "start" for one in operation.parameters):
            continue
        first, *rest = sorted(group, key=lambda one: (one.start, one.end, one.part))
        reach, is_whole = first.end, first.state == "yes"
        for one in rest:
            is_whole = is_whole and one.state == "yes"
            if one.start > reach + 1:
                apart[asked] = f"{asked}: nothing between {iso(reach)} and {iso(one.start)}"
            elif one.start <= reach and not is_whole:
                raise ValueError(
                    f"{asked}: ranges overlap from {iso(one.start)} to {iso(reach)} and are not "
                    "all complete, so that rows may stand there twice: fetch one of them anew"
                )
            else:
                again[one.part].append((one.subject, reach))
            reach = max(reach, one.end)
    return again, apart


def _once(
    operation: Operation, frame: pd.DataFrame, again: Sequence[tuple[str, int]]
) -> pd.DataFrame:
    """Leave out rows that stand in earlier parts, and the provenance."""
    kept = frame.copy(deep=False)
    kept.attrs = {}  # attrs that differ would be compared, and dropped
    for subject, until in again:
        time = operation.key[0]
        if time not in kept.columns:
            raise ValueError(f"ranges overlap, and no column {time} shows which rows are the same")
        there = kept[time] <= pd.Timestamp(until, unit="ms", tz="UTC")
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
    """Give what all were asked for, and what they differ in as lists."""
    each = [one["parameters"] for one in facts]
    made: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in each for name in one):
        values = [one[name] for one in each if name in one]
        if all(value == values[0] for value in values) and len(values) == len(each):
            made[name] = values[0]
        elif name in ("start", "end"):
            if len(values) == len(each):
                made[name] = min(values) if name == "start" else max(values)
        elif all(isinstance(value, list) for value in values):
            made[name] = list(dict.fromkeys(item for value in values for item in value))
        elif name not in (*_RANGE, *_MANNER):
            made[f"{name}es" if name.endswith("x") else f"{name}s"] = list(dict.fromkeys(values))
    return made
