"""Columns of fields that the contract does not know, behind those that it does."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from toolkit.contract.columns import Column
from toolkit.contract.fields import is_record
from toolkit.frames.cells import TEXT

__all__ = ["Extras", "Path", "extra_columns", "gather", "gather_from_cells"]

Path = tuple[str, ...]
"""Where a field stands in a row: its names on the wire."""

Extras = dict[Path, pa.Array]
"""The unknown fields of one page: where each stands -> its values as text."""

_STR: Any = pd.StringDtype("pyarrow", na_value=np.nan)


def gather(rows: Sequence[Any]) -> Extras:
    """Return the unknown fields of a page of rows.

    Parameters
    ----------
    rows : sequence
        Rows that `toolkit.contract.answers.decode` read, or that are made of such.

    Returns
    -------
    dict
        Text of the wire: the text of a string, the JSON text of all else; None where a row does
        not have the field, or where it is null.
    """
    found: dict[Path, list[str | None]] = {}
    for path, values in _fields_of(rows, ()):
        found[path] = values
    parts = getattr(rows, "parts", [])
    for place in range(len(parts[0]) if parts else 0):
        for path, values in _fields_of([part[place] for part in parts], ()):
            first = found.get(path, [None] * len(values))
            found[path] = [b if a is None else a for a, b in zip(first, values, strict=True)]
    return {path: pa.array(values, TEXT) for path, values in found.items()}


def gather_from_cells(column: Column, cells: Sequence[Any]) -> Extras:
    """Return the unknown fields of the records in the cells of a column.

    Parameters
    ----------
    column : Column
        A column whose cells are lists of records, such as the children of an order. Other columns
        have none.
    cells : sequence
        The lists as decoded JSON; None where a row has no list.

    Returns
    -------
    dict
        Named by the list and the field, as ``children.note``. JSON text of a list with the value
        of each record of the cell; None where no record of the
        cell has the field.
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
    *around, field = column.wire.split(".")
    return {
        (*around, f"{field}.{name}"): pa.array([_values_text(cell, name) for cell in cells], TEXT)
        for name in unknown
    }


def _values_text(cell: Any, name: str) -> str | None:
    values = [entry.get(name) if isinstance(entry, dict) else None for entry in cell or ()]
    return None if values.count(None) == len(values) else json.dumps(values, ensure_ascii=False)


def extra_columns(
    pages: Sequence[tuple[int, Extras]], known: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the columns of the unknown fields of all pages: name and array.

    Parameters
    ----------
    pages : sequence of (int, dict)
        Of each page how many rows it has, and its unknown fields.
    known : collection of str
        Names that are taken.
    """
    paths = dict.fromkeys(path for _, extras in pages for path in extras)
    for path, name in _names(paths, known).items():
        chunks = [
            extras[path] if path in extras else pa.nulls(rows, TEXT) for rows, extras in pages
        ]
        yield name, _STR.__from_arrow__(pa.chunked_array(chunks, TEXT))


def _fields_of(objects: Sequence[Any], path: Path) -> Iterator[tuple[Path, list[str | None]]]:
    kind = next((type(one) for one in objects if one is not None), None)
    if kind is None or not issubclass(kind, msgspec.Struct):
        return
    for attribute, wire in getattr(kind, "__extras__", {}).items():
        values = [None if one is None else _text(getattr(one, attribute)) for one in objects]
        if any(value is not None for value in values):
            yield (*path, wire), values
    for field in msgspec.structs.fields(kind):
        inner = [None if one is None else getattr(one, field.name) for one in objects]
        if isinstance(next((one for one in inner if one is not None), None), msgspec.Struct):
            yield from _fields_of(inner, (*path, field.encode_name))


def _text(raw: Any) -> str | None:
    if raw is msgspec.UNSET:
        return None
    text = bytes(raw).strip()
    if text == b"null":
        return None
    return str(msgspec.json.decode(text)) if text.startswith(b'"') else text.decode()


def _names(paths: Iterable[Path], known: Collection[str]) -> dict[Path, str]:
    """Name each path by its last part in snake case, by more parts where names would clash."""
    parts = dict.fromkeys(paths, 1)
    while True:
        names = {path: _snake(path[-count:]) for path, count in parts.items()}
        given = list(names.values())
        clash = [
            path
            for path, name in names.items()
            if (name in known or given.count(name) > 1) and parts[path] < len(path)
        ]
        if not clash:
            return _numbered(names, known)
        for path in clash:
            parts[path] += 1


def _numbered(names: dict[Path, str], known: Collection[str]) -> dict[Path, str]:
    """Add numbers to the names that clash although they are whole."""
    taken = set(known)
    for path, name in names.items():
        free, number = name, 2
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        names[path] = free
        taken.add(free)
    return names


def _snake(path: Path) -> str:
    words = ["".join(f"_{c.lower()}" if c.isupper() else c for c in one) for one in path]
    words = [word.replace(".", "_") for word in words]
    return "_".join(word.strip("_") for word in words) or "extra"
