"""Frames of several calls as one frame, with their provenance merged."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from toolkit.completeness.merge import (
    common_covered,
    merge_parameters,
    merge_provenance,
    subject_states,
)
from toolkit.completeness.overlaps import SubjectRange, common_range, find_overlaps, parts_of
from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import known_operation
from toolkit.contract.operations import Operation
from toolkit.contract.value_kinds import Numbers
from toolkit.display import type_text
from toolkit.frames import Collector, Provenance, provenance
from toolkit.public_names import publish_as

__all__ = ["concat", "concat_frames", "concat_subjects", "subjects_of"]


@publish_as("toolkit")
def concat(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate fetched frames and merge their provenance.

    `pandas.concat` drops provenance as soon as the frames differ in it. Rows that are in two
    frames because their time ranges overlap are kept once.

    Parameters
    ----------
    frames : iterable of DataFrame
        Frames of fetch functions, of `tk.many` or of an archive, with one kind of record: the same
        columns with the same dtypes.

    Returns
    -------
    DataFrame
        The rows in the order of the frames. If the frames have several subjects (accounts,
        builders, validators, coins or dexes), a first column names the subject of each row, as in
        `tk.many`; frames that have this column already may be among them. In the provenance,
        certificates are summed as in `tk.many`, ``parts`` is the number of frames, and parameters
        that differ are listed under their plural. It is ``complete`` only if each frame is, and if
        the ranges of each subject meet or overlap. The range of a frame ends before the time of its
        request, even if `end` is later. If the request had a cursor, the range begins one
        millisecond after the time of the cursor. If `max_rows` ended a pull, the range of its frame
        ends before the time of its last row: other frames must have the rows from this time to the
        end of the pull. A result of `tk.many` with `max_rows` cannot be continued.

    Raises
    ------
    ValueError
        If there is no frame, if a frame has no provenance or was made by this function, if the
        frames have different records, or if two frames may have the same rows because one of them
        is not complete, their filters differ, or the time column is missing.
    TypeError
        If `frames` is one frame, or has a part that is not a pandas frame.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> coins = [tk.slippage_history(coin, 1_000, "1d", session=session) for coin in ("BTC", "ETH")]
    >>> joined = tk.concat(coins)
    >>> facts = tk.provenance(joined)
    >>> facts["complete"], facts["parameters"]["coins"], facts["requests"]
    ('yes', ['BTC', 'ETH'], 4)
    """
    if hasattr(frames, "columns"):
        raise TypeError("concat takes a list of frames, not one frame")
    frames = list(frames)
    for number, part in enumerate(frames):
        if not isinstance(part, pd.DataFrame):
            raise TypeError(
                f"concat takes fetched pandas frames, but frames[{number}] is {type_text(part)}"
            )
    each = [provenance(frame) for frame in frames]
    frames = _name_subjects(frames, each)
    operation = _common_operation(frames, each)
    parts = [part for number, facts in enumerate(each) for part in parts_of(number, facts)]
    kept, states, reasons = find_overlaps(operation, parts)
    bare = [_keep_rows(operation, frame, kept[number]) for number, frame in enumerate(frames)]
    joined = pd.concat(bare, ignore_index=True)
    facts = _merge_parts(each, states, reasons)
    joined.attrs["toolkit"] = Provenance(facts, parts=len(frames), rows=len(joined))
    return joined


def _name_subjects(
    frames: Sequence[pd.DataFrame], each: Sequence[Mapping[str, Any]]
) -> list[pd.DataFrame]:
    """Return the frames with a column that names the subject, if they have several subjects.

    Without it, rows of two accounts would look like the rows of one.
    """
    requests = [(_subject_parameter(facts), facts.get("parameters", {})) for facts in each]
    subjects = [parameters.get(name) for name, parameters in requests]
    is_of_many = any(f"{name}s" in parameters for name, parameters in requests)
    if not is_of_many and len(set(map(str, subjects))) < 2:
        return list(frames)
    return [
        _insert_subject(name, subject, frame) if isinstance(subject, str) else frame
        for frame, subject, (name, _) in zip(frames, subjects, requests, strict=True)
    ]


def _subject_parameter(facts: Mapping[str, Any]) -> str:
    """Return the name of the parameter of which `tk.many` takes many values; else empty text."""
    operation = known_operation(facts["operation"])
    if not operation.parameters:
        return ""
    first = operation.parameters[0]
    return "" if first.kind in ("addresses", "texts", "time") else first.python


def _common_operation(
    frames: Sequence[pd.DataFrame], each: Sequence[Mapping[str, Any]]
) -> Operation:
    """Return the operation of the first frame; raise ValueError if the frames do not match."""
    if not frames:
        raise ValueError("there is no frame to concat. Pass at least one")
    if any("parts" in facts for facts in each):
        raise ValueError(
            "a frame was made by tk.concat, so the ranges of its parts are not known. Call "
            "tk.concat once with all parts"
        )
    operations = [known_operation(facts["operation"]) for facts in each]
    first = operations[0]
    if not all("complete" in facts for facts in each):
        raise ValueError(
            "frames of tk.frame have no certificate, which tk.concat merges. Use pandas.concat; if "
            "rows do not name their user, pandas.concat([a.assign(user=...), b.assign(user=...)])"
        )
    keeps_extra = all(facts.get("extra") == "keep" for facts in each)
    compared = [_known_columns(first, frame) if keeps_extra else frame for frame in frames]
    for operation, frame in zip(operations, compared, strict=True):
        if _records(operation).isdisjoint(_records(first)):
            raise ValueError(
                f"frames of {first.type} and {operation.type} have different kinds of rows. Concat "
                "them separately"
            )
        if not frame.dtypes.equals(compared[0].dtypes):
            differing = frame.dtypes.to_frame().join(compared[0].dtypes.to_frame("b"), how="outer")
            names = differing.index[differing[0].astype(str) != differing["b"].astype(str)]
            raise ValueError(
                f"frames of {first.type} and {operation.type} differ in their columns "
                f"({', '.join(map(str, names)) or 'the order'}). Fetch them with the same options, "
                "or choose the columns that both have"
            )
    return first


def _records(operation: Operation) -> set[type]:
    return {table.record for table in operation.tables}


def _known_columns(operation: Operation, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without the columns of unknown fields, which follow the known ones."""
    known = {column.name for table in operation.tables for column in table_columns(table)}
    last = max((at for at, name in enumerate(frame.columns) if name in known), default=-1)
    return frame.iloc[:, : last + 1]


def _keep_rows(
    operation: Operation, frame: pd.DataFrame, ranges: Sequence[SubjectRange]
) -> pd.DataFrame:
    """Return a frame without provenance and without the rows that other frames have."""
    kept = frame.copy(deep=False)
    kept.attrs = {}  # pandas compares attrs, and drops them if they differ
    for subject, after, until in ranges:
        time = operation.key[0]
        if time not in kept.columns:
            raise ValueError(
                f"Ranges overlap, and there is no column {time} to find repeated rows. Keep this "
                "column"
            )
        repeated = kept[time] <= pd.Timestamp(after, unit="ms", tz="UTC")
        if until is not None:
            repeated |= kept[time] > pd.Timestamp(until, unit="ms", tz="UTC")
        if subject:
            name = operation.parameters[0].python
            repeated &= kept[_subject_column(name, kept)] == subject
        kept = kept[~repeated]
    return kept


def _merge_parts(
    each: Sequence[Mapping[str, Any]], states: Mapping[str, str], reasons: Mapping[str, str]
) -> dict[str, Any]:
    """Merge the provenance of frames whose parts may leave gaps."""
    failed = {name: why for facts in each for name, why in facts.get("failed", {}).items()}
    return merge_provenance(
        each,
        parameters=merge_parameters([facts["parameters"] for facts in each]) | common_range(each),
        states=states,
        failed=failed,
        reasons=[facts["why"] for facts in each if "why" in facts] + list(reasons.values()),
    )


def concat_subjects(
    operation: Operation,
    answers: Mapping[str, Any],
    failed: Mapping[str, Exception],
    numbers: Numbers,
    before: Any = None,
) -> Any:
    """Concatenate the answers of many subjects, table by table, and merge their provenance.

    Parameters
    ----------
    operation : Operation
        The operation of all answers.
    answers : mapping
        Subject -> its frame, or named tuple of frames, in order.
    failed : mapping
        Subject -> why there is no answer.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    before : DataFrame or tuple, optional
        The result of an earlier call for other subjects.
    """
    rows = list(answers.values())
    if before is not None and not rows:
        rows = [before]
    if not rows:
        frames = Collector(operation, numbers).frames(
            {"operation": operation.type, "complete": "yes"}
        )
        joined = [_concat_table(operation, {}, [frame], failed) for frame in frames]
        return joined[0] if len(joined) == 1 else tuple(joined)
    if isinstance(rows[0], pd.DataFrame):
        return _concat_table(operation, answers, [], failed, before)
    earlier = before or [None] * len(rows[0])
    tables = [
        _concat_table(
            operation,
            {subject: frames[at] for subject, frames in answers.items()},
            [],
            failed,
            earlier[at],
        )
        for at in range(len(rows[0]))
    ]
    return type(rows[0])(*tables)


def subjects_of(operation: Operation, frame: pd.DataFrame) -> list[str]:
    """Return the subjects of a frame of `tk.many`, also those without rows."""
    name = operation.parameters[0].python
    known: list[str] = frame.attrs["toolkit"]["parameters"][f"{name}s"]
    return list(known)


def _concat_table(
    operation: Operation,
    answers: Mapping[str, pd.DataFrame],
    empty: Sequence[pd.DataFrame],
    failed: Mapping[str, Exception],
    before: pd.DataFrame | None = None,
) -> pd.DataFrame:
    name = operation.parameters[0].python
    facts = _merge_subjects(operation, answers, empty, failed, before)
    bare = [_insert_subject(name, "", frame) for frame in empty]
    bare += [_insert_subject(name, subject, frame) for subject, frame in answers.items()]
    if before is not None:
        bare.insert(0, before.copy(deep=False))
    for frame in bare:
        frame.attrs = {}  # pandas compares attrs, and drops them if they differ
    joined = pd.concat(bare, ignore_index=True)
    joined.attrs["toolkit"] = Provenance(facts, rows=len(joined))
    return joined


def _insert_subject(name: str, subject: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows with their subject in a first column, unless they name their coin or dex."""
    frame = frame.copy(deep=False)
    if name not in ("coin", "dex") or name not in frame.columns:
        column = _other_name(name) if name in frame.columns else name
        frame.insert(0, column, pd.Series([subject] * len(frame), dtype="str", index=frame.index))
    return frame


def _other_name(name: str) -> str:
    """Return the column of a subject if the rows have another address in a column of its name.

    The `user` of a ledger update may be its sender; the `builder` of a fill is the one that routed
    it.
    """
    return "account" if name == "user" else f"requested_{name}"


def _subject_column(name: str, frame: pd.DataFrame) -> str:
    """Return the column of a joined frame that names the subjects."""
    return _other_name(name) if _other_name(name) in frame.columns else name


def _merge_subjects(
    operation: Operation,
    answers: Mapping[str, pd.DataFrame],
    empty: Sequence[pd.DataFrame],
    failed: Mapping[str, Exception],
    before: pd.DataFrame | None,
) -> dict[str, Any]:
    """Merge the provenance of answers to the same request for several subjects."""
    name = operation.parameters[0].python
    each = [frame.attrs.get("toolkit", {}) for frame in (*answers.values(), *empty)]
    states = {subject: frame.attrs["toolkit"]["complete"] for subject, frame in answers.items()}
    if before is not None:
        earlier = before.attrs["toolkit"]
        each.insert(0, earlier)
        states = subject_states(subjects_of(operation, before), earlier) | states
    shared = {
        key: value
        for key, value in each[0].get("parameters", {}).items()
        if key not in (name, f"{name}s")
    }
    merged = merge_provenance(
        each,
        parameters=shared | {f"{name}s": list(states)},
        states=states,
        failed={subject: str(error) for subject, error in failed.items()},
        reasons=[f"{len(failed)} of {len(failed) + len(states)} failed"] if failed else [],
    )
    return merged | common_covered(each)


def concat_frames(frames: Mapping[str, pd.DataFrame], parameter: str) -> pd.DataFrame:
    """Concatenate answers to similar requests, and merge their provenance.

    - ``frames``: value of the parameter in which the requests differ -> its frame; at least one
    - ``parameter``: name of that parameter
    """
    parts = [frame.attrs.get("toolkit", {}) for frame in frames.values()]
    # pandas compares attrs at great length, and drops them if they differ.
    rows = pd.concat([_without_attrs(frame) for frame in frames.values()], ignore_index=True)
    merged = merge_provenance(
        parts,
        parameters={**parts[0].get("parameters", {}), parameter: ", ".join(frames)},
        states={
            value: str(part.get("complete", "")) for value, part in zip(frames, parts, strict=True)
        },
        failed={},
    )
    rows.attrs = {"toolkit": {**merged, "rows": len(rows)}}
    return rows


def _without_attrs(frame: pd.DataFrame) -> pd.DataFrame:
    bare = frame.copy(deep=False)
    bare.attrs = {}
    return bare
