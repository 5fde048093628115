"""From rows to frames: a `Collector` makes typed arrays of each page, and joins them at the end."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import pandas as pd

from toolkit.contract.columns import Column, table_columns
from toolkit.contract.field_deviations import report_unknown, report_unreadable
from toolkit.contract.operations import Operation, Table
from toolkit.contract.value_kinds import Numbers
from toolkit.errors import AnswerInvalid
from toolkit.frames.arrays import REFUSALS, first_invalid, is_all_missing, join_arrays, typed_array
from toolkit.frames.provenance import Provenance
from toolkit.frames.unknown_columns import (
    ExtraValues,
    extra_columns,
    gather_cell_extras,
    gather_extras,
)
from toolkit.installation import package_version

__all__ = ["Collector", "Extra", "FrameBuilder"]

Extra = Literal["drop", "keep"]
"""Whether unknown fields are dropped or kept as columns."""


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
        self._pages: list[list[_Page]] = []

    @property
    def rows(self) -> int:
        """The number of rows of the first table so far."""
        return sum(page[0].rows for page in self._pages)

    def add(self, tables: Sequence[Any]) -> None:
        """Add one page: for each table of the operation its rows, or its columns by name.

        An interruption leaves complete pages only, because the page is added in a single step.
        """
        pairs = zip(self._builders, tables, strict=True)
        self._pages.append([builder.page(rows, self.extra) for builder, rows in pairs])

    def last_page(self) -> list[dict[str, Any]]:
        """Return the columns of each table on the last page: name -> array."""
        return [
            {column.name: array for column, array in zip(builder.columns, page.arrays, strict=True)}
            for builder, page in zip(self._builders, self._pages[-1], strict=True)
        ]

    def frames(self, provenance: Mapping[str, Any]) -> tuple[pd.DataFrame, ...]:
        """Return the frames with `provenance` in their attrs; a second call is possible."""
        frames = tuple(
            builder.frame([page[at] for page in self._pages])
            for at, builder in enumerate(self._builders)
        )
        for builder, frame in zip(self._builders, frames, strict=True):
            version = package_version()
            facts = {**provenance, "rows": len(frame), "toolkit_version": version}
            if missing := builder.count_missing():
                facts["missing_fields"] = missing
            frame.attrs["toolkit"] = Provenance(facts)
        return frames


class _Page(NamedTuple):
    """One page of one table: its number of rows, its known columns and its unknown fields."""

    rows: int
    arrays: list[Any]
    extras: ExtraValues


class FrameBuilder:
    """Builds the columns of one frame, page by page."""

    def __init__(self, table: Table, operation: str, numbers: Numbers) -> None:
        self.columns = table_columns(table)
        self.operation = operation
        self.numbers = numbers
        self._paths = dict.fromkeys(
            path for column in self.columns for path in (column.path, column.older) if path
        )
        self._joined: dict[str, Any] = {}

    def page(self, rows: Any, extra: Extra) -> _Page:
        """Return one page; unknown fields are kept or dropped, and those inside cells reported."""
        arrays = self.chunks(rows)
        extras: ExtraValues = {}
        if isinstance(rows, Mapping):  # columns of a snapshot, or of an archive
            known = {column.name for column in self.columns} if extra == "keep" else rows
            extras = {(*name.split(".", 1),): rows[name] for name in rows if name not in known}
        else:
            cells = [column for column in self.columns if column.kind.family == "nested"]
            by_path = _values_by_path([column.path for column in cells], rows) if cells else {}
            for column in cells:
                extras |= gather_cell_extras(column, by_path[column.path])
            for path in extras:  # decoding has reported all others
                report_unknown(self.operation, ".".join(path))
            extras = gather_extras(rows) | extras if extra == "keep" else {}
        return _Page(len(arrays[0]), arrays, extras)

    def chunks(self, rows: Any) -> list[Any]:
        """Return the columns of a page."""
        if isinstance(rows, Mapping):
            by_column = [rows[column.name] for column in self.columns]
        else:
            by_path = _values_by_path(self._paths, rows)
            by_column = [_column_values(column, by_path) for column in self.columns]
        arrays = []
        for column, values in zip(self.columns, by_column, strict=True):
            try:
                arrays.append(typed_array(column, values, self.numbers))
            except REFUSALS as error:
                if not column.beyond:
                    raise self._invalid(column, values, error) from None
                arrays.append(typed_array(column, self._readable(column, values), self.numbers))
        return arrays

    def _readable(self, column: Column, values: Sequence[Any]) -> list[Any]:
        """Return the values of a column beyond the specification, with None for unreadable ones."""
        kept = list(values)
        for row, value in enumerate(kept):
            try:
                typed_array(column, [value], self.numbers)
            except REFUSALS:
                report_unreadable(self.operation, column.wire, value, column.kind.name)
                kept[row] = None
        return kept

    def frame(self, pages: Sequence[_Page]) -> pd.DataFrame:
        """Return the frame of all pages; this frees the columns of the pages column by column."""
        for at, column in enumerate(self.columns):
            if column.name not in self._joined:
                self._joined[column.name] = join_arrays(
                    column, [page.arrays[at] for page in pages], self.numbers
                )
            for page in pages:
                page.arrays[at] = None
        columns = self._joined
        if any(page.extras for page in pages):
            columns = columns | extra_columns([(page.rows, page.extras) for page in pages], columns)
        return pd.DataFrame(columns, copy=False)

    def count_missing(self) -> dict[str, int]:
        """Return in how many rows a value is missing that the specification has in every row."""
        expected = [column.name for column in self.columns if column.expected and column.missing]
        counts = {name: int(pd.isna(self._joined[name]).sum()) for name in expected}
        return {name: count for name, count in counts.items() if count}

    def _invalid(self, column: Column, values: Any, error: Exception) -> AnswerInvalid:
        row, value = first_invalid(column, values, self.numbers)
        reason = (
            "a value is missing, and this column needs one in every row"
            if row is not None and value is None
            else f"not a legal {column.kind.name}: {error}"
        )
        return AnswerInvalid(
            reason, operation=self.operation, column=column.name, row=row, value=value
        )


def _column_values(column: Column, by_path: Mapping[str, list[Any]]) -> list[Any]:
    """Return the values of one column, with its default or its older place for missing ones."""
    values = by_path[column.path]
    if column.default is not None and None in values:
        values = [column.default if value is None else value for value in values]
    if column.older and not is_all_missing(older := by_path[column.older]):
        values = [old if new is None else new for new, old in zip(values, older, strict=True)]
    return values


def _values_by_path(paths: Iterable[str], objects: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the values at some places of records; None if a nested record around is missing."""
    inner: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition(".")
        inner.setdefault(name, []).append(rest)
    fields = _field_values(inner, objects)
    found: dict[str, list[Any]] = {}
    for name, rests in inner.items():
        values = fields[name]
        if rests == [""]:
            found[name] = values
        elif is_all_missing(values):  # for example, most fills have no liquidation
            found |= {f"{name}.{rest}": values for rest in rests}
        else:
            present = [value for value in values if value is not None]
            for rest, parts in _values_by_path(rests, present).items():
                if len(present) < len(values):
                    part = iter(parts)
                    parts = [None if value is None else next(part) for value in values]
                found[f"{name}.{rest}"] = parts
    return found


def _field_values(names: Iterable[str], objects: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the values of some fields of the records of one table."""
    record_type = type(objects[0]) if len(objects) else None
    if record_type is not None and issubclass(record_type, msgspec.Struct):
        places = {name: place for place, name in enumerate(record_type.__struct_fields__)}
        # One long list of all fields: several times as fast as a look at each field.
        flat: list[Any] = []
        for record in objects:
            flat += msgspec.structs.astuple(record)
        # Some records may have unknown fields after the known ones, and others not.
        if len(flat) == len(objects) * len(places):
            return {name: flat[places[name] :: len(places)] for name in names}
    return {name: [getattr(record, name) for record in objects] for name in names}
