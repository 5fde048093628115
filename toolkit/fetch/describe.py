"""Descriptions: the columns of operations, of fetched frames and of results, in words."""

import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol, cast

import pandas as pd

from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import find_operation, known_operation
from toolkit.contract.operations import OPERATIONS, VIEWS, Operation
from toolkit.fetch.registry import operation_of
from toolkit.frames import column_dtype, provenance

__all__ = ["describe"]


class Description(pd.DataFrame):
    """A table of words that a notebook shows without cutting a sentence."""

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.to_html(notebook=True)


class ColumnWords(NamedTuple):
    """The unit and the meaning of a column.

    Attributes
    ----------
    unit, meaning : str
        In words; empty if not known.
    is_shared : bool
        Whether the meaning is the text around the column, which has no words of its own there.
    """

    unit: str
    meaning: str
    is_shared: bool = False


class HasParams(Protocol):
    """An estimate: a result of an analysis helper with a frame of figures."""

    @property
    def params(self) -> pd.DataFrame:
        """The figures."""


Columns = Mapping[str, ColumnWords]
"""Column -> its words."""


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
        several. For all operations: one row per operation, with function, points and summary. The
        columns of a frame are those that it has. A column that you added has no meaning.

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
        return Description([_operation_row(operation) for operation in OPERATIONS.values()])
    if isinstance(what, str):
        return Description(_operation_columns(_find_operation(what)))
    if isinstance(what, tuple):
        return Description(_several_frames(what))
    if isinstance(params := getattr(what, "params", None), pd.DataFrame):
        return Description(_frame_columns(params, type(what)))
    if isinstance(what, pd.DataFrame):
        return Description(_frame_columns(what))
    if hasattr(what, "__qualname__") and not hasattr(what, "__operation__"):
        name = what.__qualname__
        raise TypeError(
            f"{name} is not a fetch function: help({name}) describes what it takes and returns, "
            "and tk.describe of its result describes the columns"
        )
    return Description(_operation_columns(operation_of(cast("Callable[..., object]", what))))


def _operation_row(operation: Operation) -> dict[str, Any]:
    return {
        "function": operation.function,
        "operation": operation.type,
        "points": operation.points,
        "add_on": operation.add_on,
        "since": operation.since or None,
        "summary": operation.summary,
    }


def _find_operation(type: str) -> Operation:
    operation = VIEWS.get(type) or find_operation(type)
    if operation is None or not operation.tables:
        raise ValueError(
            f"No table layout is known for {type!r}. tk.describe() lists the operations that have "
            "functions; docs/reference/beyond.md describes those that tk.info can request"
        )
    return operation


def _operation_columns(operation: Operation) -> list[dict[str, Any]]:
    return [
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


def _several_frames(frames: tuple[pd.DataFrame, ...]) -> list[dict[str, Any]]:
    names = getattr(frames, "_fields", None)
    if names is None or not all(isinstance(frame, pd.DataFrame) for frame in frames):
        raise TypeError("A tuple has no names for its frames. Call tk.describe with one of them")
    return [
        {"frame": name} | row
        for name, frame in zip(names, frames, strict=True)
        for row in _frame_columns(frame)
    ]


def _frame_columns(frame: pd.DataFrame, estimate: type | None = None) -> list[dict[str, Any]]:
    """Describe the columns of a frame; `estimate` is the class of a result that has it."""
    facts = provenance(frame) if estimate is None or "toolkit" in frame.attrs else {}
    known = dict(_known_words(facts, frame))
    if estimate is not None:
        known |= _estimate_words(estimate)
    rows: list[dict[str, Any]] = []
    figure_unit = ""  # of the figure before, to which an interval belongs
    for name in frame.columns:
        unit, meaning, _ = known.get(name, ColumnWords("", ""))
        dtype = str(frame[name].dtype)
        is_number = dtype.startswith(("float", "double", "decimal"))
        if unit == _DEFAULT_USD:
            unit = "USD" if is_number else ""
        elif not unit and meaning:
            unit = "UTC" if dtype.startswith("datetime64") else unit
            unit = figure_unit if is_number and name in ("low", "high") else unit
        if is_number and unit:
            figure_unit = unit
        rows.append({"column": name, "dtype": dtype, "unit": unit, "meaning": meaning})
    return rows


def _known_words(facts: Mapping[str, Any], frame: pd.DataFrame) -> Columns:
    """Return the words of the columns that the provenance of a frame makes known."""
    if "helper" in facts:
        return _helper_words(facts, frame)
    if "operation" not in facts:
        return {}
    operation = VIEWS.get(facts.get("view", "")) or known_operation(facts["operation"])
    added = (_returned_columns(helper) for helper in _ADDING_HELPERS)
    words = {name: words for columns in added for name, words in columns.items()}
    return words | _table_words(operation, frame)


def _table_words(operation: Operation, frame: pd.DataFrame) -> dict[str, ColumnWords]:
    """Return the words of that table of an operation with which a frame has most columns."""
    tables = [table_columns(table) for table in operation.tables]
    fitting = max(tables, key=lambda table: sum(item.name in frame.columns for item in table))
    return {column.name: ColumnWords(column.kind.unit, column.meaning) for column in fitting}


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


def _helper_words(facts: Mapping[str, Any], frame: pd.DataFrame) -> Columns:
    """Return the words of a result: from its inputs and from the helper's own docstring."""
    words = _USUAL_WORDS | _common_words()
    for given in facts.get("inputs", {}).values():
        words |= _known_words(given, frame)
    for name in facts.get("by") or []:
        unit = words[name].unit if name in words else _unit_of(name, "", "")
        words[name] = ColumnWords(unit, "what is grouped by")
    for name, own in _returned_columns(str(facts["helper"])).items():
        inherited = words.get(name, ColumnWords("", ""))
        unit = inherited.unit if own.unit in ("", _DEFAULT_USD) and inherited.unit else own.unit
        keeps_inherited = inherited.meaning and (own.is_shared or not own.meaning)
        words[name] = ColumnWords(unit, inherited.meaning if keeps_inherited else own.meaning)
    return words


@functools.cache
def _common_words() -> dict[str, ColumnWords]:
    """Return the words of columns that mean the same in every operation."""
    meanings: dict[str, set[ColumnWords]] = {}
    for operation in OPERATIONS.values():
        for table in operation.tables:
            for column in table_columns(table):
                words = ColumnWords(column.kind.unit, column.meaning)
                meanings.setdefault(column.name, set()).add(words)
    return {name: words.pop() for name, words in meanings.items() if len(words) == 1}


def _estimate_words(estimate: type) -> Columns:
    """Return the words of the figures of an estimate, from the docstring of its class."""
    found = re.search(r"\nparams : DataFrame\n((?: +.*\n|\n)*)", inspect.getdoc(estimate) or "")
    own = parse_columns(found[1]) if found else {}
    unit = own["estimate"].unit if "estimate" in own else ""
    return {
        **{name: words for name, words in own.items() if not words.is_shared},
        "name": ColumnWords("", "name of the figure"),
        "estimate": ColumnWords(unit, "the figure"),
        "low": ColumnWords(unit, "lower end of the interval of the figure"),
        "high": ColumnWords(unit, "upper end of the interval of the figure"),
        "usd": ColumnWords("USD", "the figure as a sum of money"),
        "n": ColumnWords("", "number of observations"),
        "missing": ColumnWords("", "number of observations without a value"),
        "clusters": ColumnWords("", "number of clusters, which the interval draws again"),
    }


@functools.cache
def _returned_columns(helper: str) -> Columns:
    """Return the words of the columns in the Returns section of a helper's docstring."""
    # Analysis is a layer above, so it is imported only here.
    module, _, name = helper.partition(".")
    function = getattr(getattr(importlib.import_module("toolkit"), module), name)
    found = _RETURNS.search("\n" + (inspect.getdoc(function) or ""))
    return parse_columns(found[1].partition("\n")[2]) if found else {}


_RETURNS: Final = re.compile(r"\nReturns\n-+\n(.*?)(?=\n\w[\w ]*\n-{3,}|\Z)", re.S)
_NAMES: Final = re.compile(r"``([a-z_]\w*(?:, [a-z_]\w*)*)(?: = ([^`]+))?``")
# Where the next columns of a list item begin: after a semicolon, or before names with a colon. A
# sentence that only begins with a name, such as "``x`` is missing", does not begin a column.
_NEXT: Final = re.compile(
    r"(?:; (?:and )?|, and )(?=``[a-z_][^`]*``(?:, ``[a-z_][^`]*``)*(?: \([^)]*\))?"
    r"(?: (?:Int64|int64|float64|bool|boolean|text))?(?: \([^)]*\))?(?::|,|;|\.|$))"
    r"|; (?=``[a-z_][^`]*`` (?!(?:is|are|has|have|says|was|replaces)\b))"
)
_DTYPE: Final = re.compile(r"^\s*(?:Int64|int64|float64|bool|boolean|text)\b")
_DEFAULT_USD: Final = "USD if it is an amount"

_UNIT_OF_SUFFIX: Final = {
    "usd": "USD",
    "usdc": "USD",
    "bps": "basis points",
    "px": "USD per unit",
    "hours": "hours",
    "days": "days",
    "seconds": "seconds",
    "secs": "seconds",
    "share": "fraction",
    "ratio": "fraction",
    "rate": "fraction",
    "apr": "fraction",
    "apy": "fraction",
    "return_": "fraction",
    "retention": "fraction",
    "ntl": "USD",
    "sz": "units of the coin",
    "size": "units of the coin",
    "position": "units of the coin",
}
_UNIT_IN_WORDS: Final = (
    (re.compile(r"\bUSD\b"), "USD"),
    (re.compile(r"\bbasis points\b"), "basis points"),
    (re.compile(r"^\W*(?:the )?share\b"), "fraction"),
    (re.compile(r"\bUTC\b"), "UTC"),
)


def parse_columns(text: str) -> dict[str, ColumnWords]:
    """Return the words of the columns that the description of a frame lists.

    A list item begins with the names of columns; after a colon follows what they mean. Further
    columns of the same item follow after a semicolon. A unit is taken from the name of the column,
    such as ``cost_bps``, or from its meaning; if the text before the list says that amounts are in
    USD, that holds for amounts without another unit.

    Examples
    --------
    >>> columns = parse_columns("- ``size``: of the order; ``cost_bps``: against mid")
    >>> columns["size"].meaning, columns["cost_bps"].meaning, columns["cost_bps"].unit
    ('of the order', 'against mid', 'basis points')
    """
    head, *items = re.split(r"^- ", textwrap.dedent(text), flags=re.M)
    default = _DEFAULT_USD if re.search(r"\bUSD\b", head) else ""
    prose = re.split(r"\.(?: |$)", " ".join(head.split()))[0]
    columns = list(_prose_columns(prose, shared=prose))
    for item in items:
        paragraph = " ".join(item.partition("\n\n")[0].split())
        for entry in _NEXT.split(paragraph):
            columns += _entry_columns(entry.strip().rstrip(";."))
    columns.sort(key=lambda column: not column[2])  # own words come last, and count
    return {
        name: ColumnWords(_unit_of(name, meaning, default), meaning, is_shared)
        for name, meaning, is_shared in columns
    }


def _entry_columns(entry: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the columns of an entry with their meaning: names, a colon, the meaning."""
    head, colon, meaning = _split_at_colon(entry)
    if not colon:
        yield from _prose_columns(entry, shared=entry)
        return
    for names, formula, note in _named_parts(head):
        words = "; ".join(filter(None, (formula, meaning, note)))
        for name in names:
            yield name, _plain_text(words), False
    for match in _NAMES.finditer(meaning):  # columns that are only mentioned
        for name in match[1].split(", "):
            yield name, _plain_text(meaning), True


def _prose_columns(entry: str, shared: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the columns of an entry without a colon: each name is followed by its own words.

    A name without own words means what `shared` says.
    """
    for names, formula, note in _named_parts(entry):
        words = "; ".join(filter(None, (formula, note)))
        for name in names:
            yield name, _plain_text(words or shared), not words


def _named_parts(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield names, their formula and the note that follows them."""
    found = list(_NAMES.finditer(text))
    for at, match in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(text)
        note = _DTYPE.sub("", text[match.end() : end]).strip(" ,;:.")
        note = re.sub(r"(?:^| )(?:and|or|then)$", "", note).strip(" ,;:.")
        if note.startswith("(") and note.endswith(")") and note.count("(") == 1:
            note = note[1:-1]
        yield match[1].split(", "), match[2] or "", note


def _split_at_colon(entry: str) -> tuple[str, str, str]:
    """Split at the first colon that is not inside quotes or parentheses."""
    depth, quoted = 0, False
    for at, letter in enumerate(entry):
        if entry.startswith("``", at) and not entry.startswith("``", at - 1):
            quoted = not quoted
        depth += (letter == "(") - (letter == ")")
        if letter == ":" and not quoted and depth == 0:
            return entry[:at], ":", entry[at + 1 :].strip()
    return entry, "", ""


def _plain_text(words: str) -> str:
    return words.replace("``", "").strip()


def _unit_of(name: str, meaning: str, default: str) -> str:
    for ending in (name, name.rpartition("_")[2]):
        if ending in _UNIT_OF_SUFFIX:
            return _UNIT_OF_SUFFIX[ending]
    first = re.split(r"[.;]", meaning)[0]
    return next((unit for words, unit in _UNIT_IN_WORDS if words.search(first)), default)
