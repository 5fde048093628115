"""Descriptions: the columns of operations, of fetched frames and of results, in words."""

import functools
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Protocol, cast

import pandas as pd

from toolkit.contract.fields import table_columns
from toolkit.contract.operations import (
    FETCHED,
    VIEWS,
    Operation,
    Table,
    find_operation,
    known_operation,
)
from toolkit.descriptions import column_descriptions as words_of
from toolkit.descriptions.column_descriptions import ColumnWords
from toolkit.fetch.registry import operation_of
from toolkit.frames import column_dtype, provenance
from toolkit.public_names import publish_as

__all__ = ["Description", "describe"]


@publish_as("toolkit")
class Description(pd.DataFrame):
    """A table of words that a notebook shows without cutting a sentence."""

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.to_html(notebook=True)


class HasParams(Protocol):
    """An estimate: a result of an analysis helper with a frame of figures."""

    @property
    def params(self) -> pd.DataFrame:
        """The figures."""


@publish_as("toolkit")
def describe(
    what: Callable[..., object]
    | pd.DataFrame
    | tuple[pd.DataFrame, ...]
    | HasParams
    | str
    | None = None,
) -> pd.DataFrame:
    """Return the meaning and the unit of each column of an operation, a frame or a result.

    Parameters
    ----------
    what : callable, DataFrame, named tuple, estimate or str, optional
        A fetch function, the name of an operation such as ``"userFunding"``, a fetched frame, the
        named tuple of frames of one answer, or the result of an analysis helper. Without it, all
        operations are listed.

    Returns
    -------
    DataFrame
        One row per column, with dtype, unit and meaning; with the name of the frame if there are
        several. An estimate has several frames, and one more row for each of its figures: the frame
        is ``figures`` and the column is the name of the figure. For all operations: one row per
        operation, with function, points and summary. The columns of a frame are those that it has.
        A column that you added has no meaning.

    Raises
    ------
    ValueError
        If the frame has no provenance, or no operation of that name is known.
    TypeError
        If `what` is none of these. For an analysis helper the message says where to look.

    Examples
    --------
    >>> import toolkit as tk
    >>> tk.describe(tk.delegations)["column"].tolist()
    ['validator', 'amount', 'locked_until_timestamp']
    >>> paid = tk.funding.sums(tk.frame("builderApprovedFundingByTime", []))
    >>> print(tk.describe(paid).set_index("column").loc["payments", "meaning"])
    number of rows with an amount. A row that sums several payments (n_samples) is one row
    """
    if what is None:
        header = ["function", "operation", "points", "add_on", "since", "summary"]
        rows = [
            (each.function, each.type, each.points, each.add_on, each.since or None, each.summary)
            for each in FETCHED.values()
        ]
        return Description(rows, columns=header)
    if isinstance(what, tuple):
        names = getattr(what, "_fields", None)
        if names is None or not all(isinstance(frame, pd.DataFrame) for frame in what):
            raise TypeError("this tuple does not name its frames. Pass one frame")
        named = zip(names, map(_frame_columns, what), strict=True)
        return Description([{"frame": name} | row for name, rows in named for row in rows])
    if isinstance(getattr(what, "params", None), pd.DataFrame):
        return Description(_estimate_rows(cast("HasParams", what)))
    if isinstance(what, pd.DataFrame):
        return Description(_frame_columns(what))
    if hasattr(what, "__qualname__") and not hasattr(what, "__operation__"):
        name = what.__qualname__
        raise TypeError(
            f"{name} is not a fetch function: help({name}) describes what it takes and returns, "
            "and tk.describe of its result describes the columns"
        )
    if isinstance(what, str):
        operation = _find_operation(what)
    else:
        operation = operation_of(cast("Callable[..., object]", what))
    return Description(
        [
            {
                "frame": table.name,
                "column": column.name,
                "dtype": str(column_dtype(column)),
                "unit": column.kind.unit,
                "missing": not column.expected,
                "meaning": column.meaning,
            }
            for table in operation.tables
            for column in table_columns(table)
        ]
    )


def _find_operation(type: str) -> Operation:
    operation = VIEWS.get(type) or find_operation(type)
    if operation is None or not operation.tables:
        near = get_close_matches(type, [*FETCHED, *VIEWS], n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"{type!r} is not an operation that tk.describe knows. {hint}tk.describe() lists the "
            "operations that have functions; docs/reference/beyond.md describes those that "
            "tk.info can request"
        )
    return operation


def _estimate_rows(estimate: HasParams) -> list[dict[str, Any]]:
    """Describe the columns of each frame of an estimate; its figures follow those of `params`."""
    rows: list[dict[str, Any]] = []
    known = words_of.estimate_columns(type(estimate))
    for attribute, frame in vars(estimate).items():
        if not isinstance(frame, pd.DataFrame):
            continue
        described = _frame_columns(frame, known.get(attribute, {}))
        rows += [{"frame": attribute} | row for row in described]
        if attribute == "params" and "name" in frame:  # its values are names of figures
            figure = {"frame": "figures", "dtype": str(frame["estimate"].dtype)}
            for name in frame["name"].unique():
                words = words_of.find_words(known.get("params", {}), name)
                rows.append({**figure, "column": name, **words._asdict()})
    return rows


def _frame_columns(
    frame: pd.DataFrame, own: Mapping[str, ColumnWords] | None = None
) -> list[dict[str, Any]]:
    """Describe the columns of a frame; `own` are the words of a frame of an estimate."""
    facts = provenance(frame) if own is None or "toolkit" in frame.attrs else {}
    known = {**_known_words(facts, frame), **(own or {})}
    if own is None and (estimate := words_of.returned_class(str(facts.get("helper", "")))):
        known |= _fitting_words(words_of.estimate_columns(estimate).values(), frame)
    rows: list[dict[str, Any]] = []
    figure_unit = ""  # of the figure before, to which an interval belongs
    for name, dtype in frame.dtypes.astype(str).items():
        unit, meaning = words_of.find_words(known, str(name))
        if dtype == "str":
            unit = ""
        elif not unit and meaning and dtype.startswith("datetime64"):
            unit = "UTC"
        elif dtype.startswith(("float", "double", "decimal")):
            unit = unit or (figure_unit if name in ("low", "high") else "")
            figure_unit = figure_unit if name in ("low", "high") else unit
        rows.append({"column": name, "dtype": dtype, "unit": unit, "meaning": meaning})
    return rows


def _fitting_words(
    tables: Iterable[Mapping[str, ColumnWords]], frame: pd.DataFrame
) -> Mapping[str, ColumnWords]:
    """Return the words of that table with which a frame has most columns."""
    return max(tables, key=lambda table: len(table.keys() & set(frame.columns)), default={})


def _known_words(facts: Mapping[str, Any], frame: pd.DataFrame) -> Mapping[str, ColumnWords]:
    """Return the words of the columns that the provenance of a frame makes known."""
    if "helper" in facts:
        return _helper_words(facts, frame)
    if "operation" not in facts:
        return {}
    operation = VIEWS.get(facts.get("view", "")) or known_operation(facts["operation"])
    words: dict[str, ColumnWords] = {}
    for helper in _ADDING_HELPERS:
        words |= words_of.returned_columns(helper)
    for subject in operation.parameters[:1]:  # a frame of tk.many or tk.concat names it
        meaning = f"{subject.meaning} of the request"
        columns = ("account", f"requested_{subject.python}", subject.python)
        words |= {name: ColumnWords("", meaning) for name in columns}
    return {**words, **_fitting_words(map(_table_words, operation.tables), frame)}


def _table_words(table: Table) -> dict[str, ColumnWords]:
    return {
        column.name: ColumnWords(column.kind.unit, column.meaning)
        for column in table_columns(table)
    }


_USUAL_WORDS: Final = {
    "coin": ColumnWords("", "coin"),
    "dex": ColumnWords("", "dex of the coin"),
    "user": ColumnWords("", "account"),
    "time": ColumnWords("UTC", "time"),
    "start": ColumnWords("UTC", "start"),
}
"""Words of columns whose meaning differs a little between operations."""

_ADDING_HELPERS: Final = ("pnl.audit",)
"""Helpers that add columns to a fetched frame and keep its provenance."""


def _helper_words(facts: Mapping[str, Any], frame: pd.DataFrame) -> Mapping[str, ColumnWords]:
    """Return the words of a result: from its inputs and from the helper's own docstring."""
    inherited: dict[str, ColumnWords] = {}
    for given in facts.get("inputs", {}).values():
        inherited |= _known_words(given, frame)
    for name in facts.get("by") or []:
        unit = inherited[name].unit if name in inherited else words_of.unit_of(name, "")
        inherited[name] = ColumnWords(unit, f"{name.replace('_', ' ')} of the group")
    words = _USUAL_WORDS | _common_words() | inherited
    for name, own in words_of.returned_columns(str(facts["helper"])).items():
        unit = own.unit or words_of.find_words(words, name).unit
        words[name] = ColumnWords(unit, own.meaning)
    return words


@functools.cache
def _common_words() -> dict[str, ColumnWords]:
    """Return the words of columns that mean the same in every operation."""
    meanings: dict[str, set[ColumnWords]] = {}
    for operation in FETCHED.values():
        for table in operation.tables:
            for name, words in _table_words(table).items():
                meanings.setdefault(name, set()).add(words)
    return {name: words.pop() for name, words in meanings.items() if len(words) == 1}
