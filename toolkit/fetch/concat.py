"""Frames of several calls as one frame, with their provenance merged."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.completeness import merge
from toolkit.contract.fields import table_columns
from toolkit.contract.operations import Operation, known_operation
from toolkit.contract.value_kinds import Numbers
from toolkit.display import type_text
from toolkit.frames import Collector, Provenance, provenance
from toolkit.public_names import publish_as


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
    subjects, is_of_many = list[tuple[str, Any]](), False
    for facts in each:
        parameters = facts.get("parameters", {})
        parameter = next(iter(known_operation(facts["operation"]).parameters), None)
        is_subject = parameter and parameter.kind not in ("addresses", "texts", "time")
        name = parameter.python if parameter and is_subject else ""
        is_of_many |= f"{name}s" in parameters
        subjects.append((name, parameters.get(name)))
    if is_of_many or len({str(subject) for _, subject in subjects}) > 1:
        # Without a column of the subject, rows of two accounts would look like the rows of one.
        for number, (name, subject) in enumerate(subjects):
            if isinstance(subject, str):
                count = len(frames[number])
                frames[number] = _insert_subjects(frames[number], name, [subject], [count])
    operation = _common_operation(frames, each)
    kept, joined = merge.join_parts(operation, each)
    for number, ranges in kept.items():
        for subject, after, until in ranges:
            frame, time = frames[number], operation.key[0]
            if time not in frame.columns:
                raise ValueError(
                    f"Ranges overlap, and there is no column {time} to find repeated rows. Keep "
                    "this column"
                )
            repeated = frame[time] <= pd.Timestamp(after, unit="ms", tz="UTC")
            if until is not None:
                repeated |= frame[time] > pd.Timestamp(until, unit="ms", tz="UTC")
            if subject:
                name = operation.parameters[0].python
                other = _other_name(name)
                repeated &= frame[other if other in frame.columns else name] == subject
            frames[number] = frame[~repeated]
    return _join(frames, joined | {"parts": len(frames)})


def _join(frames: Iterable[pd.DataFrame], facts: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of frames as one frame with a provenance."""
    bare = [frame.copy(deep=False) for frame in frames]
    for frame in bare:
        frame.attrs = {}  # pandas compares attrs at great length, and drops them if they differ
    joined = pd.concat(bare, ignore_index=True)
    joined.attrs["toolkit"] = Provenance(facts, rows=len(joined))
    return joined


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
    if not all("complete" in facts for facts in each):
        raise ValueError(
            "frames of tk.frame have no certificate, which tk.concat merges. Use pandas.concat; if "
            "rows do not name their user, pandas.concat([a.assign(user=...), b.assign(user=...)])"
        )
    operations, dtypes = [known_operation(facts["operation"]) for facts in each], []
    first, keeps_extra = operations[0], all(facts.get("extra") == "keep" for facts in each)
    known = [column.name for table in first.tables for column in table_columns(table)]
    for operation, frame in zip(operations, frames, strict=True):
        if not {t.record for t in first.tables} & {t.record for t in operation.tables}:
            raise ValueError(
                f"frames of {first.type} and {operation.type} have different kinds of rows. Concat "
                "them separately"
            )
        count = len(frame.columns)
        if keeps_extra:  # the columns of unknown fields follow the known ones
            count = int(max(np.flatnonzero(frame.columns.isin(known)), default=-1)) + 1
        dtypes.append(frame.dtypes.iloc[:count])
        if not dtypes[-1].equals(dtypes[0]):
            differing = dtypes[-1].to_frame().join(dtypes[0].to_frame("b"), how="outer")
            names = differing.index[differing[0].astype(str) != differing["b"].astype(str)]
            raise ValueError(
                f"frames of {first.type} and {operation.type} differ in their columns "
                f"({', '.join(map(str, names)) or 'the order'}). Fetch them with the same options, "
                "or choose the columns that both have"
            )
    return first


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
    name = operation.parameters[0].python
    calls = [*([] if before is None else [before]), *answers.values()]
    kind, subjects = type(calls[0]) if calls else tuple, list(answers)
    if not calls:  # columns and dtypes without rows
        facts = {"operation": operation.type, "complete": "yes"}
        calls, subjects = [Collector(operation, numbers).frames(facts)], [""]
    joined: list[pd.DataFrame] = []
    rows = [call if isinstance(call, tuple) else (call,) for call in calls]
    for parts in zip(*rows, strict=True):  # table by table
        each = [part.attrs.get("toolkit", {}) for part in parts]
        parameters, new = {**each[0].get("parameters", {})}, parts[before is not None :]
        earlier, _ = parameters.pop(f"{name}s", ()), parameters.pop(name, None)
        states = merge.subject_states(earlier, each[0]) if earlier else {}
        states |= {k: v["complete"] for k, v in zip(answers, each[-len(new) :], strict=False)}
        facts = merge.merge_provenance(
            each,
            parameters=parameters | {f"{name}s": list(states)},
            states=states,
            failed={subject: str(error) for subject, error in failed.items()},
            reasons=[f"{len(failed)} of {len(failed) + len(states)} failed"] if failed else [],
        ) | merge.common_covered(each)
        whole: list[pd.DataFrame] = []
        if new:  # one column for all rows: one for each frame takes as long as all the rest
            whole = [_insert_subjects(_join(new, facts), name, subjects, [*map(len, new)])]
        if before is not None:
            whole = [_join([parts[0], *whole], facts)]
        joined += whole
    if len(joined) == 1:
        return joined[0]
    return tuple(joined) if kind is tuple else kind(*joined)


def _insert_subjects(
    frame: pd.DataFrame, name: str, subjects: list[str], counts: list[int]
) -> pd.DataFrame:
    """Return rows with their subject in a first column, unless they name their coin or dex."""
    frame = frame.copy(deep=False)
    if name not in ("coin", "dex") or name not in frame.columns:
        column = _other_name(name) if name in frame.columns else name
        values = pd.Series(subjects, dtype="str").repeat(counts)
        frame.insert(0, column, values.set_axis(frame.index))
    return frame


def _other_name(name: str) -> str:
    """Return the column of a subject if the rows have another address in a column of its name.

    The `user` of a ledger update may be its sender; the `builder` of a fill is the one that routed
    it.
    """
    return "account" if name == "user" else f"requested_{name}"


def concat_frames(frames: Mapping[str, pd.DataFrame], parameter: str) -> pd.DataFrame:
    """Concatenate answers to similar requests, and merge their provenance.

    - ``frames``: value of the parameter in which the requests differ -> its frame; at least one
    - ``parameter``: name of that parameter
    """
    parts = [frame.attrs.get("toolkit", {}) for frame in frames.values()]
    states = {value: part.get("complete", "") for value, part in zip(frames, parts, strict=True)}
    parameters = {**parts[0].get("parameters", {}), parameter: ", ".join(frames)}
    merged = merge.merge_provenance(parts, parameters=parameters, states=states, failed={})
    return _join(frames.values(), merged)
