"""Frames from pages: the collector, `tk.frame` and `tk.provenance`."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pprint import pformat
from typing import Any, Final, Literal, NamedTuple, get_origin

import pandas as pd

from toolkit.contract.answers import decode, encode
from toolkit.contract.columns import table_columns
from toolkit.contract.deviations import report_unknown
from toolkit.contract.extra_operations import find_operation
from toolkit.contract.fields import is_record
from toolkit.contract.kinds import Numbers
from toolkit.contract.operations import VIEWS, Operation, Table
from toolkit.contract.records import Record
from toolkit.contract.rows import AnswerTables, answer_rows
from toolkit.display import facts_table
from toolkit.frames.arrays import FrameBuilder
from toolkit.frames.extras import Extras, gather_extras, gather_unplaced_fields

__all__ = ["Collector", "Extra", "frame", "provenance"]

Extra = Literal["drop", "keep"]
"""Whether unknown fields are dropped or kept as columns."""

_SHOWN: Final = 10
"""If there are more subjects than this, only the first few are shown."""

_FIRST: Final = 3


class Collector:
    """Collects the pages of one answer and makes its frames at the end.

    Parameters
    ----------
    operation : Operation
        The operation of the request; errors name it.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    extra : {"drop", "keep"}
        Whether unknown fields become columns, after the known ones.
    """

    def __init__(self, operation: Operation, numbers: Numbers, extra: Extra = "drop") -> None:
        self.operation = operation
        self.numbers = numbers
        self.extra = extra
        self._builders = [
            FrameBuilder(table, operation.type, numbers) for table in operation.tables
        ]
        self._pages: list[_Page] = []
        self._unplaced: dict[str, list[str]] = {}

    @property
    def rows(self) -> int:
        """The number of rows of the first table so far."""
        return self._pages[-1].rows if self._pages else 0

    def add(self, tables: Sequence[Any]) -> None:
        """Add one page: for each table of the operation its rows, or its columns by name.

        An interruption leaves complete pages only, because the page is added in a single step.
        """
        pairs = list(zip(self._builders, tables, strict=True))
        chunks = [builder.chunks(rows) for builder, rows in pairs]
        extras = [
            (len(arrays[0]), self._extras(builder, rows))
            for arrays, (builder, rows) in zip(chunks, pairs, strict=True)
        ]
        if self.extra == "keep" and isinstance(tables, AnswerTables):
            self._unplaced |= gather_unplaced_fields(tables.answer, tables)
        self._pages.append(_Page(self.rows + len(chunks[0][0]), chunks, extras))

    def _extras(self, builder: "FrameBuilder", rows: Any) -> Extras:
        """Return the unknown fields of a page if they are kept, and report those inside cells."""
        if isinstance(rows, Mapping):  # columns of a snapshot, or of an archive
            known = {column.name for column in builder.columns} if self.extra == "keep" else rows
            return {(*name.split(".", 1),): rows[name] for name in rows if name not in known}
        in_cells = builder.cell_extras(rows)
        for path in in_cells:  # decoding has reported all others
            report_unknown(self.operation.type, ".".join(path))
        return gather_extras(rows) | in_cells if self.extra == "keep" else {}

    def last_page(self) -> list[dict[str, Any]]:
        """Return the columns of each table on the last page: name -> array."""
        return [
            {column.name: array for column, array in zip(builder.columns, arrays, strict=True)}
            for builder, arrays in zip(self._builders, self._pages[-1].chunks, strict=True)
        ]

    def frames(self, provenance: Mapping[str, Any]) -> tuple[pd.DataFrame, ...]:
        """Return the frames with `provenance` in their attrs; a second call is possible."""
        frames = tuple(
            builder.frame(
                [page.chunks[at] for page in self._pages], [page.extras[at] for page in self._pages]
            )
            for at, builder in enumerate(self._builders)
        )
        for frame in frames:
            frame.attrs["toolkit"] = {**provenance, "rows": len(frame)}
            if self._unplaced:
                frame.attrs["toolkit"]["unknown_fields"] = self._unplaced
        return frames


def frame(
    kind: str | type[Record], rows: Any, *, numbers: Numbers = "float", extra: Extra = "drop"
) -> pd.DataFrame | tuple[pd.DataFrame, ...]:
    """Return a typed frame of wire rows, which are JSON objects.

    Parameters
    ----------
    kind : str or Record
        The ``type`` of an operation, also of one that only `tk.info` can send, such as
        ``userFunding``; ``marginTables``; or a record of `toolkit.contract.records`.
    rows : list or dict
        Rows as on the wire, or the complete answer of an operation.
    numbers : {"float", "exact", "text"}, default "float"
        The form of numbers.
    extra : {"drop", "keep"}, default "drop"
        Whether unknown fields are left out or become columns of text.

    Returns
    -------
    DataFrame or tuple of DataFrame
        A tuple if the answer of the operation has several tables.

    Raises
    ------
    AnswerInvalid
        If a row breaks the contract; the error names column, row and value.
    ValueError
        If there is no such operation, or no record describes its answer.
    TypeError
        If the kind is neither text nor a record, or if the record contains rows.

    Examples
    --------
    >>> row = {"validator": "0x" + "0" * 40, "amount": "1.5", "lockedUntilTimestamp": 0}
    >>> frame("delegations", [row])["amount"].tolist()
    [1.5]
    """
    operation = _operation_of(kind)
    if parts := [column.name for column in table_columns(operation.tables[0]) if column.is_rows]:
        raise TypeError(
            f"{operation.type} is not a row; it contains rows ({', '.join(parts)}). Pass the type "
            "of the operation whose answer it is"
        )
    plain = operation.binary or (isinstance(rows, list) and _is_one_record(operation))
    if plain:
        operation = _stand_in(operation.tables[0].record, operation.type)
    answer = decode(operation, 200, {}, encode(rows), numbers=numbers)
    collector = Collector(operation, numbers, extra)
    collector.add((answer,) if plain else answer_rows(operation, answer, {}))
    view = {"view": operation.view} if operation.view else {}
    facts = {"operation": operation.type, **view, "source": "rows", "numbers": numbers}
    frames = collector.frames(facts)
    return frames if len(frames) > 1 else frames[0]


class Provenance(dict[str, Any]):
    """The origin of a frame: a dict that a notebook shows as a table.

    The table shows only the first of many subjects; the dict has all of them.
    """

    def __repr__(self) -> str:
        return pformat(self._shortened_facts(), sort_dicts=False, width=100)

    def _repr_html_(self) -> str:
        return facts_table("Where these rows come from", self._shortened_facts())

    def _shortened_facts(self) -> dict[str, Any]:
        return {name: _shorten_value(value) for name, value in self.items()}


def provenance(frame: pd.DataFrame) -> Provenance:
    """Return where a frame comes from, and whether it is complete.

    Parameters
    ----------
    frame : DataFrame
        A frame from a fetch function, or a frame that pandas derived from one.

    Returns
    -------
    Provenance
        A dict, shown as a table:

        - ``operation``, ``parameters``, ``numbers``, ``source``, ``simulated``, ``asked_at``:
          the request, its source and its time;
        - ``complete``: ``yes``; ``latest`` if the operation is limited to the latest rows;
          ``first n rows`` if `max_rows` cut the answer; ``no``, with ``why``;
        - ``rows``, ``pages``, ``first``, ``last``: the numbers of rows and pages, and the keys of
          the first and the last row, in the form of a cursor;
        - ``proved``, ``believed``: what the rows prove, and what cannot be proved;
        - ``breaks``, ``gaps``, ``unproved``: places where rows contradict each other, may be
          missing or repeated, or are not proved for a usual reason such as a transfer;
        - ``ties``: the number of ties (rows with one key) at the end of a page; they were fetched
          again because the page may have cut them;
        - ``requests``, ``points``: the number of requests with every retry, and their cost;
        - ``retries``: cause (a status, or a failure of the connection) -> number of retries;
        - ``waits``, ``waited_seconds``: how often and how long requests waited for the budget;
        - ``unknown_fields``: with ``extra="keep"`` the unknown fields that belong to no row: place
          in the answer -> texts of the values.

    Raises
    ------
    ValueError
        If the frame has no provenance, for example after a concat of different answers.

    Examples
    --------
    >>> provenance(frame("delegations", []))["operation"]
    'delegations'
    """
    try:
        facts = Provenance(frame.attrs["toolkit"])
    except KeyError:
        raise ValueError(
            "this frame has no provenance: it was not fetched, or pandas dropped frame.attrs when "
            "it joined different answers. Join fetched frames with tk.concat"
        ) from None
    if facts.get("rows", len(frame)) != len(frame):
        facts["complete"] = f"no longer: {len(frame)} rows, {facts['rows']} were fetched"
    return facts


def _shorten_value(value: Any) -> Any:
    """Return a value with only the first few of many entries, such as hundreds of accounts."""
    if isinstance(value, Mapping):
        some = dict(islice(value.items(), len(value) if len(value) <= _SHOWN else _FIRST))
        more = {"...": f"{len(value) - len(some)} more"} if len(some) < len(value) else {}
        return {name: _shorten_value(item) for name, item in some.items()} | more
    if isinstance(value, list) and len(value) > _SHOWN:
        return [*value[:_FIRST], f"... {len(value) - _FIRST} more"]
    return value


class _Page(NamedTuple):
    """One page: the rows up to its end, and the columns and extras of each table."""

    rows: int
    chunks: list[list[Any]]
    extras: list[tuple[int, Extras]]


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
    """Return an operation whose answer is a plain list of one record."""
    return Operation(name or record.__name__, "", "", list[record], (Table(record),))  # type: ignore[valid-type]
