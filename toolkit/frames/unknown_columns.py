"""Columns of unknown fields, after the columns that the contract knows."""

import functools
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
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
    "gather_unplaced_fields",
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


def gather_unplaced_fields(answer: Any, tables: Sequence[Any]) -> dict[str, list[str]]:
    """Return the unknown fields of a nested answer that no row has.

    - ``answer``: the decoded answer
    - ``tables``: the rows of its tables, whose unknown fields are columns

    Returns: place in the answer, with dots -> the texts of its values, in the order of the answer.
    """
    placed = {
        id(record)
        for rows in tables
        for row, parts in zip_longest(rows, getattr(rows, "parts", ()), fillvalue=())
        for part in (row, *parts)
        for record in _nested_records(part)
    }
    found: dict[str, list[str]] = {}
    for path, record in _iterate_records(answer, ()):
        for attribute, wire in getattr(type(record), "__extras__", {}).items():
            (text,) = [None] if id(record) in placed else _raw_texts([getattr(record, attribute)])
            if text is not None:
                found.setdefault(".".join((*path, wire)), []).append(text)
    return found


def _nested_records(record: Any) -> Iterator[msgspec.Struct]:
    """Yield a record and the records in its fields, but not those in lists."""
    if isinstance(record, msgspec.Struct):
        yield record
        for name in record.__struct_fields__:
            yield from _nested_records(getattr(record, name))


def _iterate_records(value: Any, path: Path) -> Iterator[tuple[Path, msgspec.Struct]]:
    """Yield every record of an answer with its place."""
    if isinstance(value, msgspec.Struct):
        yield path, value
        for field in msgspec.structs.fields(value):
            yield from _iterate_records(getattr(value, field.name), (*path, field.encode_name))
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _iterate_records(item, path)


def _values_text(cell: Any, name: str) -> str | None:
    values = [entry.get(name) if isinstance(entry, dict) else None for entry in cell or ()]
    return None if values.count(None) == len(values) else json.dumps(values, ensure_ascii=False)


def extra_columns(
    pages: Sequence[tuple[int, ExtraValues]], known: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of the unknown fields of all pages: name and array.

    Parameters
    ----------
    pages : sequence of (int, dict)
        The number of rows and the unknown fields of each page.
    known : collection of str
        Names of the other columns.
    """
    paths = dict.fromkeys(path for _, extras in pages for path in extras)
    for path, name in _column_names(paths, known).items():
        chunks = [
            extras[path] if path in extras else pa.nulls(rows, TEXT) for rows, extras in pages
        ]
        yield name, STR.__from_arrow__(pa.chunked_array(chunks, TEXT))


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
    texts = [b"null" if value is msgspec.UNSET else bytes(value).strip() for value in values]
    contents = iter(
        msgspec.json.decode(b"[%b]" % b",".join(text for text in texts if text[:1] == b'"'))
    )
    return [
        next(contents) if text[:1] == b'"' else None if text == b"null" else text.decode()
        for text in texts
    ]


def _column_names(paths: Iterable[Path], known: Collection[str]) -> dict[Path, str]:
    """Return a name for each place: its last part in snake case, or more parts to be unique."""
    parts = dict.fromkeys(paths, 1)
    while True:
        names = {path: _snake_name(path[-count:]) for path, count in parts.items()}
        all_names = list(names.values())
        clash = [
            path
            for path, name in names.items()
            if (name in known or all_names.count(name) > 1) and parts[path] < len(path)
        ]
        if not clash:
            return _add_numbers(names, known)
        for path in clash:
            parts[path] += 1


def _add_numbers(names: dict[Path, str], known: Collection[str]) -> dict[Path, str]:
    """Return the names with a number where complete places have the same name."""
    taken = set(known)
    for path, name in names.items():
        free, number = name, 2
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        names[path] = free
        taken.add(free)
    return names


def _snake_name(path: Path) -> str:
    words = [snake_case(name).replace(".", "_") for name in path]
    return "_".join(word.strip("_") for word in words) or "extra"
