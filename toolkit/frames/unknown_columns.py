"""Columns of unknown fields, after the columns that the contract knows."""

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa

from toolkit.contract.fields import Field, is_record
from toolkit.display import snake_case
from toolkit.frames.arrays import STR, TEXT

ExtraValues = dict[str, pa.Array]
"""The unknown fields of one page: place in a row, with dots between wire names -> texts."""


def gather_extras(rows: Sequence[Any]) -> ExtraValues:
    """Return the unknown fields of a page of rows.

    Parameters
    ----------
    rows : sequence
        Rows from `toolkit.contract.answers.decode`, or rows made from them.

    Returns
    -------
    dict
        The text of a string, or the JSON text of another value; None if the field is absent or
        null.
    """
    found: dict[str, list[str | None]] = {}
    parts = itertools.zip_longest(*getattr(rows, "parts", []))  # a row may have no part
    for records in (rows, *parts):
        for path, values in _iterate_fields(records, ""):
            first = found.get(path, [None] * len(values))
            found[path] = [b if a is None else a for a, b in zip(first, values, strict=True)]
    return {path: pa.array(values, TEXT) for path, values in found.items()}


def _iterate_fields(records: Sequence[Any], path: str) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the place and the texts of each unknown field of records and of their records."""
    record_type = next((type(row) for row in records if row is not None), None)
    if record_type is None or not issubclass(record_type, msgspec.Struct):
        return
    for attribute, wire in getattr(record_type, "__extras__", {}).items():
        values = [_raw_text(getattr(row, attribute, msgspec.UNSET)) for row in records]
        if any(value is not None for value in values):
            yield path + wire, values
    for field in msgspec.structs.fields(record_type):
        inner = [None if row is None else getattr(row, field.name) for row in records]
        yield from _iterate_fields(inner, f"{path}{field.encode_name}.")


def _raw_text(value: Any) -> str | None:
    """Return the text of a JSON value: of a string its content; None for null and absence."""
    content = None if value is msgspec.UNSET else msgspec.json.decode(value)
    if content is None or isinstance(content, str):
        return content
    return bytes(value).decode(errors="replace").strip()


def gather_cell_extras(columns: Sequence[Field], cells: Mapping[str, Sequence[Any]]) -> ExtraValues:
    """Return the unknown fields of the records in cells.

    Parameters
    ----------
    columns : sequence of Field
        The columns. Those whose cells are lists of records, such as the children of an order, can
        have such fields.
    cells : mapping of str to sequence
        Name of a column -> its values; the lists as decoded JSON, or None.

    Returns
    -------
    dict
        Place such as ``order.children.note`` -> JSON text of a list with the value of each record
        of the cell; None if no record of the cell has the field.
    """
    found: ExtraValues = {}
    for column in columns:
        record: Any = next(iter(get_args(column.type)), None)
        is_list = column.kind.family == "nested" and get_origin(column.type) is list
        if not (is_list and is_record(record) and any(cells[column.name])):
            continue
        lists = [
            [entry if isinstance(entry, dict) else {} for entry in cell]
            for cell in (cell if isinstance(cell, list) else [] for cell in cells[column.name])
        ]
        names = dict.fromkeys(name for entries in lists for entry in entries for name in entry)
        for name in (name for name in names if name not in record.__struct_encode_fields__):
            values = [[entry.get(name) for entry in entries] for entries in lists]
            texts = [
                None if cell.count(None) == len(cell) else json.dumps(cell, ensure_ascii=False)
                for cell in values
            ]
            found[f"{column.wire}.{name}"] = pa.array(texts, TEXT)
    return found


def extra_columns(
    pages: Sequence[tuple[int, ExtraValues]], known: Collection[str]
) -> dict[str, Any]:
    """Return the columns of the unknown fields of all pages: name -> array.

    Each has the name of its place in snake case, such as ``delta_note``, and a number if another
    column has this name.

    Parameters
    ----------
    pages : sequence of (int, dict)
        The number of rows and the unknown fields of each page.
    known : collection of str
        Names of the other columns.
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
