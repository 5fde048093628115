"""Pages in, frames out."""

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pprint import pformat
from typing import Any, Final, Literal, NamedTuple, get_origin

import pandas as pd

from toolkit.contract.answers import decode, encode
from toolkit.contract.columns import Column, table_columns
from toolkit.contract.deviations import report_unknown, report_unreadable
from toolkit.contract.extra_operations import find_operation
from toolkit.contract.fields import is_record
from toolkit.contract.kinds import Numbers
from toolkit.contract.operations import VIEWS, Operation, Table
from toolkit.contract.records import Record
from toolkit.contract.rows import answer_rows as rows_of
from toolkit.display import facts_table
from toolkit.errors import AnswerInvalid
from toolkit.frames.arrays import REFUSALS, join_arrays, typed_array
from toolkit.frames.extras import Extras, extra_columns, gather, gather_from_cells

__all__ = ["Collector", "Extra", "frame", "provenance"]

Extra = Literal["drop", "keep"]
"""What becomes of fields that the contract does not know."""

_SHOWN: Final = 10
"""So many subjects are shown all; of more the first few."""

_FIRST: Final = 3


class Collector:
    """Gathers the pages of one answer and makes its frames at the end.

    Parameters
    ----------
    operation : Operation
        What was asked; it names the frames and appears in errors.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    extra : {"drop", "keep"}
        Whether fields that are not known become columns, behind the known ones.
    """

    def __init__(self, operation: Operation, numbers: Numbers, extra: Extra = "drop") -> None:
        self.operation = operation
        self.numbers = numbers
        self.extra = extra
        self._parts = [_Parts(table, operation.type, numbers) for table in operation.tables]
        self._pages: list[_Page] = []

    @property
    def rows(self) -> int:
        """Rows of the first table so far."""
        return self._pages[-1].rows if self._pages else 0

    def add(self, tables: Sequence[Any]) -> None:
        """Take one page: for each table of the operation its rows, or its columns by name.

        It is taken by one operation: what breaks in leaves whole pages, never a part of one.
        """
        chunks = [parts.chunks(rows) for parts, rows in zip(self._parts, tables, strict=True)]
        extras = [
            (len(made[0]), self._extras(parts, rows))
            for parts, made, rows in zip(self._parts, chunks, tables, strict=True)
        ]
        self._pages.append(_Page(self.rows + len(chunks[0][0]), chunks, extras))

    def _extras(self, parts: "_Parts", rows: Any) -> Extras:
        """Return the unknown fields of a page if they are kept, and report those in cells."""
        if isinstance(rows, Mapping):
            return {}
        in_cells = parts.cell_extras(rows)
        for path in in_cells:  # reading has reported all others
            report_unknown(self.operation.type, ".".join(path))
        return gather(rows) | in_cells if self.extra == "keep" else {}

    def frames(self, provenance: Mapping[str, Any]) -> tuple[pd.DataFrame, ...]:
        """Make the frames, with `provenance` in their attrs; again, where it was broken off."""
        made = tuple(
            parts.frame(
                [page.chunks[at] for page in self._pages], [page.extras[at] for page in self._pages]
            )
            for at, parts in enumerate(self._parts)
        )
        for one in made:
            one.attrs["toolkit"] = {**provenance, "rows": len(one)}
        return made


def frame(
    kind: str | type[Record], rows: Any, *, numbers: Numbers = "float", extra: Extra = "drop"
) -> pd.DataFrame | tuple[pd.DataFrame, ...]:
    """Turn wire rows, as JSON objects, into a typed frame.

    Parameters
    ----------
    kind : str or Record
        The ``type`` of an operation, also of one that only `tk.info` can ask, such as
        ``userFunding``; ``marginTables``; or a record of `toolkit.contract.records`.
    rows : list or dict
        Rows as they stand on the wire, or the whole answer of an operation.
    numbers : {"float", "exact", "text"}, default "float"
        The form of numbers.
    extra : {"drop", "keep"}, default "drop"
        Whether fields that are not known are left out, or become columns of text.

    Returns
    -------
    DataFrame or tuple of DataFrame
        A tuple for an operation whose answer holds several kinds of record.

    Raises
    ------
    AnswerInvalid
        If a row breaks the contract; it names column, row and value.
    ValueError
        If there is no such operation, or no record describes its answer.
    TypeError
        If the kind is neither text nor a record, or the record is no row but holds rows.

    Examples
    --------
    >>> row = {"validator": "0x" + "0" * 40, "amount": "1.5", "lockedUntilTimestamp": 0}
    >>> frame("delegations", [row])["amount"].tolist()
    [1.5]
    """
    operation = _operation_of(kind)
    if parts := [column.name for column in table_columns(operation.tables[0]) if column.is_rows]:
        raise TypeError(
            f"{operation.type} is no row but holds rows ({', '.join(parts)}): give the type of "
            "the operation that answers with it"
        )
    plain = operation.binary or (isinstance(rows, list) and _is_one_record(operation))
    if plain:
        operation = _stand_in(operation.tables[0].record, operation.type)
    answer = decode(operation, 200, {}, encode(rows), numbers=numbers)
    collector = Collector(operation, numbers, extra)
    collector.add((answer,) if plain else rows_of(operation, answer, {}))
    view = {"view": operation.view} if operation.view else {}
    facts = {"operation": operation.type, **view, "source": "rows", "numbers": numbers}
    made = collector.frames(facts)
    return made if len(made) > 1 else made[0]


class Provenance(dict[str, Any]):
    """Where a frame comes from: a dict that a notebook shows as a table.

    What is shown names the first of many subjects; the dict itself has them all.
    """

    def __repr__(self) -> str:
        return pformat(self._shown(), sort_dicts=False, width=100)

    def _repr_html_(self) -> str:
        return facts_table("Where these rows come from", self._shown())

    def _shown(self) -> dict[str, Any]:
        return {name: _shortened(value) for name, value in self.items()}


def provenance(frame: pd.DataFrame) -> Provenance:
    """Say where a frame comes from, and whether it is complete.

    Parameters
    ----------
    frame : DataFrame
        A frame that a fetch function returned, or one derived from it by pandas.

    Returns
    -------
    Provenance
        A dict, shown as a table:

        - ``operation``, ``parameters``, ``numbers``, ``source``, ``simulated``, ``asked_at``:
          what was asked, of whom and when;
        - ``complete``: ``yes``; ``latest`` where the operation gives no more by definition;
          ``first n rows`` where `max_rows` cut it; ``no``, with ``why``;
        - ``rows``, ``pages``, ``first``, ``last``: how many came on how many pages, and the keys
          of the first and the last row, written as a cursor is;
        - ``ties``: how many groups of rows with one key stood at the end of a page, and were
          asked for again because they may have been cut;
        - ``requests``, ``points``: what was sent, every attempt, and what it cost;
        - ``retries``: cause (a status, or how the connection failed) -> further attempts;
        - ``waits``, ``waited_seconds``: how often and how long requests were held back.

    Raises
    ------
    ValueError
        If the frame carries no provenance, as after a concat of different answers.

    Examples
    --------
    >>> provenance(frame("delegations", []))["operation"]
    'delegations'
    """
    try:
        facts = Provenance(frame.attrs["toolkit"])
    except KeyError:
        raise ValueError(
            "this frame does not say where it comes from: it was not fetched, or pandas dropped "
            "frame.attrs when different answers were joined"
        ) from None
    if facts.get("rows", len(frame)) != len(frame):
        facts["complete"] = f"no longer: {len(frame)} rows, {facts['rows']} were fetched"
    return facts


def _shortened(value: Any) -> Any:
    """Leave the first few of many: a frame may be of hundreds of accounts."""
    if isinstance(value, Mapping):
        some = dict(islice(value.items(), len(value) if len(value) <= _SHOWN else _FIRST))
        more = {"...": f"{len(value) - len(some)} more"} if len(some) < len(value) else {}
        return {name: _shortened(one) for name, one in some.items()} | more
    if isinstance(value, list) and len(value) > _SHOWN:
        return [*value[:_FIRST], f"... {len(value) - _FIRST} more"]
    return value


class _Page(NamedTuple):
    """The rows so far, this page's among them, and for each table its columns and extras."""

    rows: int
    chunks: list[list[Any]]
    extras: list[tuple[int, Extras]]


class _Parts:
    """Makes the columns of one frame, page by page."""

    def __init__(self, table: Table, operation: str, numbers: Numbers) -> None:
        self.columns = table_columns(table)
        self.operation = operation
        self.numbers = numbers
        self._getters = [operator.attrgetter(column.path) for column in self.columns]
        self._joined: dict[str, Any] = {}

    def chunks(self, rows: Any) -> list[Any]:
        """Make each column of a page."""
        made = []
        for column, values in zip(self.columns, self._by_column(rows), strict=True):
            try:
                made.append(typed_array(column, values, self.numbers))
            except REFUSALS as error:
                if not (column.beyond and column.kind.family == "iso"):
                    raise self._invalid(column, values, error) from None
                made.append(typed_array(column, self._readable(column, values), self.numbers))
        return made

    def cell_extras(self, rows: Any) -> Extras:
        """Return the unknown fields of the records in cells."""
        return {
            path: values
            for column, get in zip(self.columns, self._getters, strict=True)
            if column.kind.family == "nested"
            for path, values in gather_from_cells(column, _values(column, get, rows)).items()
        }

    def _readable(self, column: Column, values: Sequence[Any]) -> list[Any]:
        """Return the values of a column beyond the specification; None where one is unreadable."""
        kept = list(values)
        for row, value in enumerate(kept):
            try:
                typed_array(column, [value], self.numbers)
            except REFUSALS:
                report_unreadable(self.operation, column.wire, value, column.kind.name)
                kept[row] = None
        return kept

    def _by_column(self, rows: Any) -> list[Any]:
        if isinstance(rows, Mapping):
            return [rows[column.name] for column in self.columns]
        return [
            _values(column, get, rows)
            for column, get in zip(self.columns, self._getters, strict=True)
        ]

    def frame(
        self, pages: Sequence[list[Any]], extras: Sequence[tuple[int, Extras]]
    ) -> pd.DataFrame:
        """Join the pages column by column, and let go of what is joined."""
        for at, one in enumerate(self.columns):
            if one.name not in self._joined:
                self._joined[one.name] = join_arrays(
                    one, [page[at] for page in pages], self.numbers
                )
            for page in pages:
                page[at] = None
        further = dict(extra_columns(extras, self._joined))
        return pd.DataFrame(self._joined | further, copy=False)

    def _invalid(self, column: Column, values: Any, error: Exception) -> AnswerInvalid:
        row, value = _first_bad(column, values, self.numbers)
        return AnswerInvalid(
            f"not a legal {column.kind.name}: {error}",
            operation=self.operation,
            column=column.name,
            row=row,
            value=value,
        )


def _values(column: Column, get: Callable[[Any], Any], rows: Sequence[Any]) -> list[Any]:
    """Return the values of one column; None where a nested record around it is missing."""
    try:
        values = list(map(get, rows))
    except AttributeError:
        values = _nested_values(column.path, rows)
    if column.default is not None and None in values:
        values = [column.default if value is None else value for value in values]
    if column.older:
        older = list(map(operator.attrgetter(column.older), rows))
        if older.count(None) < len(older):
            values = [old if new is None else new for new, old in zip(values, older, strict=True)]
    return values


def _nested_values(path: str, objects: Sequence[Any]) -> list[Any]:
    first, *others = path.split(".")
    values = list(map(operator.attrgetter(first), objects))
    for name in others:
        if values.count(None) == len(values):  # as most fills are of no liquidation
            return values
        values = [None if value is None else getattr(value, name) for value in values]
    return values


def _first_bad(column: Column, values: Any, numbers: Numbers) -> tuple[int | None, Any]:
    for row, value in enumerate(values):
        try:
            typed_array(column, [value], numbers)
        except REFUSALS:
            return row, value
    return None, None


def _operation_of(kind: Any) -> Operation:
    if is_record(kind):
        return _stand_in(kind)
    if not isinstance(kind, str):
        raise TypeError(
            "kind must be the type of an operation, such as 'userFunding', or a record, "
            f"not {kind!r}"
        )
    operation = VIEWS.get(kind) or find_operation(kind)
    if operation is None:
        raise ValueError(
            f"No table layout is known for {kind!r}; use the answer of tk.info, or "
            "pandas.json_normalize. tk.describe() lists the operations that have functions"
        )
    if not operation.tables:
        raise ValueError(
            f"No table layout is known for {kind!r}; use the answer of tk.info, or "
            "pandas.json_normalize"
        )
    return operation


def _is_one_record(operation: Operation) -> bool:
    return get_origin(operation.answer) not in (list, tuple) and len(operation.tables) == 1


def _stand_in(record: type[Record], name: str = "") -> Operation:
    """Make an operation whose answer is a plain list of one record."""
    return Operation(name or record.__name__, "", "", list[record], (Table(record),))  # type: ignore[valid-type]
