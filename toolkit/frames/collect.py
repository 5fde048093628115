"""From rows to frames: a `Collector` makes typed arrays of each page, and joins them at the end.

Columns of unknown fields follow those that the contract knows.
"""

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import msgspec
import pandas as pd
import pyarrow as pa

from toolkit.contract.field_deviations import report_unknown, report_unreadable
from toolkit.contract.fields import Field, is_record, table_columns
from toolkit.contract.operations import Operation
from toolkit.contract.value_kinds import Numbers
from toolkit.display import snake_case
from toolkit.errors import AnswerInvalid
from toolkit.frames.arrays import REFUSALS, STR, TEXT, join_arrays, typed_array
from toolkit.frames.provenance import Provenance
from toolkit.installation import package_version

Extra = Literal["drop", "keep"]
"""Whether unknown fields are dropped or kept as columns."""

ExtraValues = dict[str, pa.Array]
"""The unknown fields of one page: place in a row, with dots between wire names -> texts.

The text is that of a string, or the JSON text of another value; None if the field is absent or
null."""


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

    Attributes
    ----------
    rows : int
        The number of rows of the first table so far.
    """

    def __init__(self, operation: Operation, numbers: Numbers, extra: Extra = "drop") -> None:
        self.operation, self.numbers, self.extra = operation, numbers, extra
        self.rows = 0
        # Each page has for each table the number of its rows, its known and its unknown columns.
        self._pages: list[list[tuple[int, dict[str, Any], ExtraValues]]] = []
        self._joined: list[dict[str, Any]] = [{} for _ in operation.tables]

    def add(self, tables: Sequence[Any]) -> int:
        """Add one page: for each table of the operation its rows, or its columns by name.

        Return the number of rows of the first table. An interruption leaves complete pages only,
        because the page is added in a single step.
        """
        page = []
        for table, rows in zip(self.operation.tables, tables, strict=True):
            columns, is_kept = table_columns(table), self.extra == "keep"
            if isinstance(rows, Mapping):  # columns of a snapshot, or of an archive
                cells = {column.name: rows[column.name] for column in columns}
                extras = {name: rows[name] for name in rows if name not in cells}
            else:
                cells = _cells_of(rows, columns)
                extras = {}
                for column in (column for column in columns if column.kind.family == "nested"):
                    extras |= _gather_cell_extras(column, cells[column.name])
                for path in extras:  # decoding has reported all others
                    report_unknown(self.operation.type, path)
                extras = _gather_extras(rows) | extras if is_kept else {}
            arrays = {}
            for column in columns:
                try:
                    arrays[column.name] = typed_array(column, cells[column.name], self.numbers)
                except REFUSALS as error:
                    arrays[column.name] = self._readable_array(column, cells[column.name], error)
            page.append((len(next(iter(arrays.values()))), arrays, extras if is_kept else {}))
        self._pages.append(page)
        self.rows += page[0][0]
        return page[0][0]

    def columns(self) -> list[dict[str, Any]]:
        """Return the known columns of each table: name -> array of all pages.

        This frees the columns of the pages column by column.
        """
        for at, table in enumerate(self.operation.tables):
            arrays = [page[at][1] for page in self._pages]
            for column in table_columns(table):
                if column.name not in self._joined[at]:
                    chunks = [known[column.name] for known in arrays]
                    self._joined[at][column.name] = join_arrays(column, chunks, self.numbers)
                for known in arrays:
                    known.pop(column.name, None)
        return self._joined

    def frames(self, provenance: Mapping[str, Any]) -> tuple[pd.DataFrame, ...]:
        """Return the frames with `provenance` in their attrs; a second call is possible."""
        frames = []
        for at, (table, known) in enumerate(
            zip(self.operation.tables, self.columns(), strict=True)
        ):
            extras = [(page[at][0], page[at][2]) for page in self._pages]
            more = _extra_columns(extras, known) if any(found for _, found in extras) else {}
            frame = pd.DataFrame(known | more, copy=False)
            facts = {**provenance, "rows": len(frame), "toolkit_version": package_version()}
            expected = [c.name for c in table_columns(table) if c.expected and c.missing]
            missing = {name: int(pd.isna(known[name]).sum()) for name in expected}
            if missing := {name: count for name, count in missing.items() if count}:
                facts["missing_fields"] = missing
            frame.attrs["toolkit"] = Provenance(facts)
            frames.append(frame)
        return tuple(frames)

    def _readable_array(self, column: Field, cells: Any, error: Exception) -> Any:
        """Return the array of a column beyond the specification without its unreadable values.

        Of a column in the specification, raise AnswerInvalid with the first one.
        """
        reason = f"not a legal {column.kind.name}: {error}"
        kept = cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)
        for row, value in enumerate(kept):
            try:
                typed_array(column, [value], self.numbers)
            except REFUSALS:
                if not column.beyond:
                    if value is None:
                        reason = "a value is missing, and this column needs one in every row"
                    place = {"column": column.name, "row": row, "value": value}
                    raise AnswerInvalid(reason, operation=self.operation.type, **place) from None
                report_unreadable(self.operation.type, column.wire, value, column.kind.name)
                kept[row] = None
        return typed_array(column, kept, self.numbers)


def _cells_of(rows: Sequence[Any], columns: Iterable[Field]) -> dict[str, list[Any]]:
    """Return the values of columns; None if a nested record around a value is missing."""
    found, cells = _Values({"": list(rows)}), {}
    for column in columns:
        values = found[column.path]
        if column.default is not None and None in values:
            values = [column.default if value is None else value for value in values]
        if column.older and None in values:
            pairs = zip(values, found[column.older], strict=True)
            values = [old if new is None else new for new, old in pairs]
        cells[column.name] = values
    return cells


class _Values(dict[str, list[Any]]):
    """Place in records -> its values, read as they are needed; None if a record is missing."""

    def __missing__(self, path: str) -> list[Any]:
        around = path.rpartition(".")[0]
        records = self[around]
        present = [record for record in records if record is not None]
        if not present:  # for example, most fills have no liquidation
            return self.setdefault(path, [None] * len(records))
        names = present[0].__struct_fields__
        # One long list of all fields: several times as fast as a look at each field.
        flat: list[Any] = []
        for record in present:
            flat += msgspec.structs.astuple(record)
        values = {name: flat[place :: len(names)] for place, name in enumerate(names)}
        if len(flat) != len(present) * len(names):  # some have unknown fields after the known ones
            values = {name: [getattr(record, name) for record in present] for name in names}
        for name, known in values.items():
            if len(present) < len(records):
                part = iter(known)
                known = [None if record is None else next(part) for record in records]
            self[f"{around}.{name}".lstrip(".")] = known
        return self[path]


def _gather_extras(rows: Sequence[Any]) -> ExtraValues:
    """Return the unknown fields of a page of rows, and of the parts that they were made of."""
    found: dict[str, list[str | None]] = {}

    def gather(records: Sequence[Any], path: str) -> None:
        record_type = next((type(row) for row in records if row is not None), None)
        if record_type is None or not issubclass(record_type, msgspec.Struct):
            return
        for attribute, wire in getattr(record_type, "__extras__", {}).items():
            texts = [_raw_text(getattr(row, attribute, msgspec.UNSET)) for row in records]
            pairs = zip(found.get(path + wire, texts), texts, strict=True)
            found[path + wire] = [new if old is None else old for old, new in pairs]
        for field in msgspec.structs.fields(record_type):
            inner = [None if row is None else getattr(row, field.name) for row in records]
            gather(inner, f"{path}{field.encode_name}.")

    for records in (rows, *itertools.zip_longest(*getattr(rows, "parts", []))):
        gather(records, "")  # a row may have no part
    arrays = ((path, pa.array(texts, TEXT)) for path, texts in found.items())
    return {path: array for path, array in arrays if array.null_count < len(array)}


def _raw_text(value: Any) -> str | None:
    """Return the text of a JSON value: of a string its content; None for null and absence."""
    content = None if value is msgspec.UNSET else msgspec.json.decode(value)
    if content is None or isinstance(content, str):
        return content
    return bytes(value).decode(errors="replace").strip()


def _gather_cell_extras(column: Field, cells: list[Any]) -> ExtraValues:
    """Return the unknown fields of the records in cells, such as the children of an order.

    Each has the JSON text of a list with the value of each record of the cell; None if no record of
    the cell has the field.
    """
    record: Any = next(iter(get_args(column.type)), None)
    if get_origin(column.type) is not list or not is_record(record) or not any(cells):
        return {}
    lists = [
        [entry if isinstance(entry, dict) else {} for entry in cell]
        for cell in (cell if isinstance(cell, list) else [] for cell in cells)
    ]
    found: ExtraValues = {}
    names = dict.fromkeys(name for entries in lists for entry in entries for name in entry)
    for name in (name for name in names if name not in record.__struct_encode_fields__):
        values = [[entry.get(name) for entry in entries] for entries in lists]
        texts = [
            None if cell.count(None) == len(cell) else json.dumps(cell, ensure_ascii=False)
            for cell in values
        ]
        found[f"{column.wire}.{name}"] = pa.array(texts, TEXT)
    return found


def _extra_columns(
    pages: Sequence[tuple[int, ExtraValues]], known: Collection[str]
) -> dict[str, Any]:
    """Return the columns of the unknown fields of all pages, with the number of rows of each.

    Each has the name of its place in snake case, such as ``delta_note``, and a number if another
    column has this name.
    """
    columns: dict[str, Any] = {}
    for path in dict.fromkeys(path for _, extras in pages for path in extras):
        words = [snake_case(name).strip("_") for name in path.split(".")]
        name = free = "_".join(words).strip("_") or "extra"
        number = 2
        while free in known or free in columns:
            free, number = f"{name}_{number}", number + 1
        chunks = [extras.get(path, pa.nulls(rows, TEXT)) for rows, extras in pages]
        columns[free] = STR.__from_arrow__(pa.chunked_array(chunks, TEXT))
    return columns
