"""What is what: the columns of operations, of fetched frames and of results, in words."""

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pandas as pd

from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import find_operation, known_operation
from toolkit.contract.operations import OPERATIONS, VIEWS, Operation
from toolkit.fetch.registry import operation_of
from toolkit.frames import column_dtype, provenance

__all__ = ["describe"]

_RETURNS: Final = re.compile(r"\nReturns\n-+\n(.*?)(?=\n\w[\w ]*\n-{3,}|\Z)", re.S)
_PART: Final = re.compile(r"^ *- |[;.]\s+(?=``[a-z])", re.M)  # what begins with a column's name
_NAMES: Final = re.compile(r"``([^`]+)``")


class Description(pd.DataFrame):
    """A table of words that a notebook shows whole: no meaning is cut off."""

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.to_html(notebook=True)


def describe(
    what: Callable[..., Any] | pd.DataFrame | tuple[pd.DataFrame, ...] | str | None = None,
) -> pd.DataFrame:
    """Say what an operation asks for and gives, or what the columns of a frame mean.

    Parameters
    ----------
    what : callable, DataFrame, named tuple or str, optional
        A fetch function, the name of an operation such as ``"userFunding"``, a fetched frame,
        several fetched frames as one answer has them, or a result of an analysis helper: its
        columns. Nothing: all operations.

    Returns
    -------
    DataFrame
        One row per column, with dtype, unit and meaning, of several frames with the frame; or
        one row per operation, with function, points and summary. A frame's columns are those
        that it has; what it was given beside them has no meaning here.

    Raises
    ------
    ValueError
        If the frame does not say where it comes from, or no operation of that name is known.
    TypeError
        If it is none of these; of an analysis helper it says where to look.

    Examples
    --------
    >>> import toolkit as tk
    >>> tk.describe(tk.delegations)["column"].tolist()
    ['validator', 'amount', 'locked_until_timestamp']
    >>> paid = tk.funding.sums(tk.frame("builderApprovedFundingByTime", []))
    >>> print(tk.describe(paid).set_index("column").loc["payments", "meaning"].partition(".")[0])
    rows; rows without an amount are not counted
    """
    if what is None:
        return Description([_operation_row(one) for one in OPERATIONS.values()])
    if isinstance(what, str):
        return Description(_columns(_operation_named(what)))
    if isinstance(what, tuple):
        return Description(_of_several(what))
    if isinstance(what, pd.DataFrame):
        return Description(_of_frame(what))
    if hasattr(what, "__qualname__") and not hasattr(what, "__operation__"):
        name = what.__qualname__
        raise TypeError(
            f"{name} is not a fetch function: help({name}) says what it takes and gives, and "
            "tk.describe of its result what the columns mean"
        )
    return Description(_columns(operation_of(what)))


def _operation_named(kind: str) -> Operation:
    operation = VIEWS.get(kind) or find_operation(kind)
    if operation is None or not operation.tables:
        raise ValueError(
            f"No table layout is known for {kind!r}. tk.describe() lists the operations that have "
            "functions; docs/reference/beyond.md describes those that tk.info asks"
        )
    return operation


def _of_several(frames: tuple[pd.DataFrame, ...]) -> list[dict[str, Any]]:
    names = getattr(frames, "_fields", None)
    if names is None or not all(isinstance(one, pd.DataFrame) for one in frames):
        raise TypeError("a tuple has no names for its frames: give tk.describe one of them")
    return [
        {"frame": name} | row
        for name, one in zip(names, frames, strict=True)
        for row in _of_frame(one)
    ]


def _of_frame(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [_column_row(frame, name, words) for name, words in _words(frame).items()]


def _columns(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "frame": table.name,
            "column": one.name,
            "dtype": str(column_dtype(one)),
            "unit": one.kind.unit,
            "missing": not one.expected,
            "meaning": one.meaning,
        }
        for table in operation.tables
        for one in table_columns(table)
    ]


def _column_row(frame: pd.DataFrame, name: str, words: tuple[str, str]) -> dict[str, Any]:
    unit, meaning = words
    return {"column": name, "dtype": str(frame[name].dtype), "unit": unit, "meaning": meaning}


def _words(frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Give unit and meaning of a frame's columns."""
    facts = provenance(frame)
    if "helper" in facts:
        known = _of_helper(str(facts["helper"]), facts.get("by") or [])
    else:
        known = _of_operation(_operation(facts), frame)
    return {name: known.get(name, ("", "")) for name in frame.columns}


def _operation(facts: Mapping[str, Any]) -> Operation:
    return VIEWS.get(facts.get("view", "")) or known_operation(facts["operation"])


def _of_operation(operation: Operation, frame: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Take the table of the operation that most of the frame's columns are of."""
    tables = [table_columns(table) for table in operation.tables]
    fitting = max(tables, key=lambda table: sum(one.name in frame.columns for one in table))
    return {one.name: (one.kind.unit, one.meaning) for one in fitting}


def _of_helper(helper: str, by: list[str]) -> dict[str, tuple[str, str]]:
    """Read what the helper's own documentation says about the columns of its result."""
    # Analysis stands above fetching, and is looked up when asked for.
    module, _, name = helper.partition(".")
    function = getattr(getattr(importlib.import_module("toolkit"), module), name)
    found = _RETURNS.search("\n" + (inspect.getdoc(function) or ""))
    known = dict.fromkeys(by, ("", "what is grouped by"))
    beside: dict[str, tuple[str, str]] = {}
    for part in _PART.split(found[1]) if found else ():
        words = " ".join(part.split()).rstrip(";.")
        head, _, rest = words.partition(": ")
        own = _names(head)
        known |= dict.fromkeys(own, ("", rest or words.replace("``", "")))
        beside |= dict.fromkeys(_names(rest), ("", (words if own else rest).replace("``", "")))
    return _carried_over() | beside | known


def _names(words: str) -> list[str]:
    names = [one.strip() for quoted in _NAMES.findall(words) for one in quoted.split(",")]
    return [one.partition(" =")[0] for one in names]


@functools.cache
def _carried_over() -> dict[str, tuple[str, str]]:
    """Give what results take over from fetched frames: columns that mean the same everywhere."""
    meant: dict[str, set[tuple[str, str]]] = {}
    for operation in OPERATIONS.values():
        for table in operation.tables:
            for one in table_columns(table):
                meant.setdefault(one.name, set()).add((one.kind.unit, one.meaning))
    return {name: ways.pop() for name, ways in meant.items() if len(ways) == 1}


def _operation_row(operation: Operation) -> dict[str, Any]:
    return {
        "function": operation.function,
        "operation": operation.type,
        "points": operation.points,
        "add_on": operation.add_on,
        "since": operation.since or None,
        "summary": operation.summary,
    }
