"""Columns of unknown fields, after the columns that the contract knows."""

import functools
import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec
import pyarrow as pa

from toolkit.contract.columns import Column
from toolkit.contract.fields import is_record
from toolkit.display import snake_case
from toolkit.frames.nested_values import STR, TEXT

__all__ = [
    "ExtraValues",
    "Path",
    "extra_columns",
    "gather_cell_extras",
    "gather_extras",
]

Path = tuple[str, ...]
"""The place of a field in a row: its names on the wire."""

ExtraValues = dict[Path, pa.Array]
"""The unknown fields of one page: place -> values as text."""


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
    found: dict[Path, list[str | None]] = {}
    for path, values in _iterate_fields(rows, ()):
        found[path] = values
    parts = getattr(rows, "parts", [])
    for place in range(len(parts[0]) if parts else 0):
        for path, values in _iterate_fields([part[place] for part in parts], ()):
            first = found.get(path, [None] * len(values))
            found[path] = [b if a is None else a for a, b in zip(first, values, strict=True)]
    return {path: pa.array(values, TEXT) for path, values in found.items()}


def gather_cell_extras(column: Column, cells: Sequence[Any]) -> ExtraValues:
    """Return the unknown fields of the records in the cells of a column.

    Parameters
    ----------
    column : Column
        A column whose cells are lists of records, such as the children of an order. Other columns
        have no such fields.
    cells : sequence
        The lists as decoded JSON; None if a row has no list.

    Returns
    -------
    dict
        Place such as ``children.note`` -> JSON text of a list with the value of each record of the
        cell; None if no record of the cell has the field.
    """
    record: Any = next(iter(get_args(column.type)), None)
    if get_origin(column.type) is not list or not is_record(record) or not any(cells):
        return {}
    known = set(record.__struct_encode_fields__)
    unknown = dict.fromkeys(
        name
        for cell in cells
        for entry in cell or ()
        if isinstance(entry, dict)
        for name in entry
        if name not in known
    )
    *parents, field = column.wire.split(".")
    return {
        (*parents, f"{field}.{name}"): pa.array([_values_text(cell, name) for cell in cells], TEXT)
        for name in unknown
    }


def _values_text(cell: Any, name: str) -> str | None:
    values = [entry.get(name) if isinstance(entry, dict) else None for entry in cell or ()]
    return None if values.count(None) == len(values) else json.dumps(values, ensure_ascii=False)


def extra_columns(
    pages: Sequence[tuple[int, ExtraValues]], known: Collection[str]
) -> dict[str, Any]:
    """Return the columns of the unknown fields of all pages: name -> array.

    Each has the name of the last part of its place in snake case. If that is not unique, it has
    more parts, and a number if not even the whole place is.

    Parameters
    ----------
    pages : sequence of (int, dict)
        The number of rows and the unknown fields of each page.
    known : collection of str
        Names of the other columns.
    """
    paths = dict.fromkeys(path for _, extras in pages for path in extras)
    columns: dict[str, Any] = {}
    for path in paths:
        for parts in range(1, len(path) + 1):
            name = _snake_name(path[-parts:])
            others = (other for other in paths if other != path)
            if name not in known and all(_snake_name(other[-parts:]) != name for other in others):
                break
        free, number = name, 2
        while free in known or free in columns:
            free, number = f"{name}_{number}", number + 1
        chunks = [
            extras[path] if path in extras else pa.nulls(rows, TEXT) for rows, extras in pages
        ]
        columns[free] = STR.__from_arrow__(pa.chunked_array(chunks, TEXT))
    return columns


def _iterate_fields(objects: Sequence[Any], path: Path) -> Iterator[tuple[Path, list[str | None]]]:
    record_type = next((type(row) for row in objects if row is not None), None)
    if record_type is None or not issubclass(record_type, msgspec.Struct):
        return
    for attribute, wire in getattr(record_type, "__extras__", {}).items():
        values = _raw_texts([getattr(row, attribute, msgspec.UNSET) for row in objects])
        if any(value is not None for value in values):
            yield (*path, wire), values
    for attribute, wire in _nested_records_of(record_type):
        inner = [None if row is None else getattr(row, attribute) for row in objects]
        yield from _iterate_fields(inner, (*path, wire))


@functools.lru_cache(maxsize=512)  # answers with unknown fields make further records
def _nested_records_of(record_type: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a record that can be records: attribute and name on the wire."""
    return tuple(
        (field.name, field.encode_name)
        for field in msgspec.structs.fields(record_type)
        if _names_struct(field.type)
    )


def _names_struct(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return True
    return any(map(_names_struct, get_args(annotation)))


def _raw_texts(values: Sequence[Any]) -> list[str | None]:
    """Return the texts of JSON values: of a string its content; None for null and absence."""
    texts = [
        "null" if value is msgspec.UNSET else bytes(value).decode(errors="replace").strip()
        for value in values
    ]
    quoted = ",".join(text for text in texts if text[:1] == '"')
    contents = iter(msgspec.json.decode(f"[{quoted}]"))
    return [
        next(contents) if text[:1] == '"' else None if text == "null" else text for text in texts
    ]


def _snake_name(path: Path) -> str:
    words = [snake_case(name).replace(".", "_") for name in path]
    return "_".join(word.strip("_") for word in words) or "extra"
