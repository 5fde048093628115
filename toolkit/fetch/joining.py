"""The answers of many subjects below each other, and what their certificates say together."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from toolkit.contract.answer_types import Numbers
from toolkit.contract.operations import Operation
from toolkit.fetch.certificate import SUMMED, summed
from toolkit.frames import Collector

__all__ = ["OF_ONE", "completeness", "join", "states_of", "subjects_of", "with_subject"]

OF_ONE: Final = (*SUMMED, "retries", "first", "last", "why", "rows", "history", "failed", "states")
"""What is true of one pull alone, or said anew of the whole."""


def join(
    operation: Operation,
    answers: Mapping[str, Any],
    failed: Mapping[str, Exception],
    numbers: Numbers,
    before: Any = None,
) -> Any:
    """Join what was answered for each subject, table by table.

    Parameters
    ----------
    operation : Operation
        What was asked.
    answers : mapping
        Subject -> its frame, or named tuple of frames, in order.
    failed : mapping
        Subject -> why there is none.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    before : DataFrame or tuple, optional
        What an earlier call gave for other subjects.
    """
    rows = list(answers.values())
    if before is not None and not rows:
        rows = [before]
    if not rows:
        frames = Collector(operation, numbers).frames(
            {"operation": operation.type, "complete": "yes"}
        )
        joined = [_below(operation, {}, [one], failed) for one in frames]
        return joined[0] if len(joined) == 1 else tuple(joined)
    if isinstance(rows[0], pd.DataFrame):
        return _below(operation, answers, [], failed, before)
    earlier = before or [None] * len(rows[0])
    tables = range(len(rows[0]))
    parts = [{k: one[i] for k, one in answers.items()} for i in tables]
    made = (_below(operation, parts[i], [], failed, earlier[i]) for i in tables)
    return type(rows[0])(*made)


def subjects_of(operation: Operation, frame: pd.DataFrame) -> list[str]:
    """Give the subjects that a joined frame holds the rows of, those without rows too."""
    name = operation.parameters[0].python
    known: list[str] = frame.attrs["toolkit"]["parameters"][f"{name}s"]
    return list(known)


def _below(
    operation: Operation,
    answers: Mapping[str, pd.DataFrame],
    empty: Sequence[pd.DataFrame],
    failed: Mapping[str, Exception],
    before: pd.DataFrame | None = None,
) -> pd.DataFrame:
    name = operation.parameters[0].python
    facts = _facts(operation, answers, empty, failed, before)
    bare = [with_subject(name, "", one) for one in empty]
    bare += [with_subject(name, subject, part) for subject, part in answers.items()]
    if before is not None:
        bare.insert(0, before.copy(deep=False))
    for part in bare:
        part.attrs = {}  # attrs that differ would be compared, and dropped
    joined = pd.concat(bare, ignore_index=True)
    joined.attrs["toolkit"] = facts | {"rows": len(joined)}
    return joined


def with_subject(name: str, subject: str, part: pd.DataFrame) -> pd.DataFrame:
    """Return rows with their subject in front, unless they name their coin or dex themselves."""
    part = part.copy(deep=False)
    if name not in ("coin", "dex") or name not in part.columns:
        place = "account" if name in part.columns else name
        part.insert(0, place, pd.Series([subject] * len(part), dtype="str", index=part.index))
    return part


def _facts(
    operation: Operation,
    answers: Mapping[str, pd.DataFrame],
    empty: Sequence[pd.DataFrame],
    failed: Mapping[str, Exception],
    before: pd.DataFrame | None,
) -> dict[str, Any]:
    """Say of the whole what holds for every part; it is complete where each part is."""
    name = operation.parameters[0].python
    earlier = [] if before is None else [before.attrs["toolkit"]]
    each = [frame.attrs.get("toolkit", {}) for frame in (*answers.values(), *empty)]
    common = {k: v for k, v in (earlier + each)[0].items() if k not in (*OF_ONE, "covered")}
    shared = {k: v for k, v in common.get("parameters", {}).items() if k not in (name, f"{name}s")}
    done = [] if before is None else subjects_of(operation, before)
    states = states_of(done, earlier) | {
        subject: frame.attrs["toolkit"]["complete"] for subject, frame in answers.items()
    }
    facts = common | {
        "parameters": shared | {f"{name}s": list(states)},
        "complete": completeness(states, failed),
        **summed(earlier + each),
    }
    if failed:
        facts |= {
            "why": f"{len(failed)} of {len(failed) + len(states)} failed",
            "failed": {subject: str(error) for subject, error in failed.items()},
        }
    cut = {subject: state for subject, state in states.items() if state != "yes"}
    if cut and facts["complete"] not in cut.values():  # else one word says it of all
        facts["states"] = cut
    if ranges := [one["covered"] for one in earlier + each if "covered" in one]:
        # ISO texts ascend as their times do.
        facts["covered"] = [(max(one[0][0] for one in ranges), min(one[-1][1] for one in ranges))]
    said = dict.fromkeys(one["history"] for one in earlier + each if "history" in one)
    return facts | ({"history": "; ".join(said)} if said else {})


def states_of(subjects: Sequence[str], earlier: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Give how complete each subject of a joined frame is; empty without provenance."""
    if not earlier:
        return {}
    cut, whole = earlier[0].get("states", {}), earlier[0]["complete"]
    mixed = whole == "no" or whole.startswith("not of ")
    return {subject: cut.get(subject, "yes" if mixed else whole) for subject in subjects}


def completeness(states: Mapping[str, str], failed: Mapping[str, Any]) -> str:
    """Say in one word how complete the whole is, or of which subjects it is not."""
    kinds = set(states.values()) or {"yes"}
    if failed:
        return "no"
    if len(kinds) == 1:
        return kinds.pop()
    return "not of " + ", ".join(one for one, state in states.items() if state != "yes")
