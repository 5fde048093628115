"""Rows of a history from the columns of a frame or of a file, in SQL of DuckDB.

DuckDB makes the JSON text of each row and the columns of the archive's table. Missing values are
left out of the text. A column that no record has becomes a field of the text, so nothing is lost.
"""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import pandas as pd
import pyarrow as pa

from toolkit.archive.engines import open_duckdb
from toolkit.archive.schemas import SCHEMAS, RowOrigin, complete_rows, operation_table
from toolkit.contract.fields import Field, record_columns, table_columns
from toolkit.contract.operations import Operation
from toolkit.contract.records import Record
from toolkit.display import count_text
from toolkit.errors import ArchiveError


class Value(NamedTuple):
    """A value of each row in SQL."""

    expression: str
    type: str


def table_rows(operation: Operation, columns: pa.Table, origin: RowOrigin) -> pa.Table:
    """Return rows of the archive's table for the columns of a frame, without series and run.

    Raise an ArchiveError if a value is missing that every row has.
    """
    for column in table_columns(operation.tables[0]):
        if column.kind.family == "nested":
            place = columns.schema.get_field_index(column.name)
            cells = [
                None
                if cell is None
                else msgspec.json.encode(_wire_form(column.type, cell)).decode()
                for cell in columns[column.name].to_pylist()
            ]
            columns = columns.set_column(place, column.name, pa.array(cells, pa.string()))
    with open_duckdb() as database:
        database.execute("SET preserve_insertion_order = true")
        relation = database.from_arrow(columns)
        known = match_columns(operation, flat_columns(relation), {})
        made = row_expressions(operation, known, {})
        cells = relation.select(
            ", ".join(f'{sql} AS "{name}"' for name, sql in made.items())
        ).to_arrow_table()
    for name in required_columns(operation):
        if missing := cells[name].null_count:
            count = count_text(missing, "row has", "rows have")
            raise ArchiveError(f"{operation.type}: {count} no {name}")
    return complete_rows(operation_table(operation), cells, origin)


def flat_columns(relation: Any) -> dict[str, Value]:
    """Return the columns of a relation, and the fields of its structs under ``struct.field``."""
    found = {}
    for name, type in zip(relation.columns, relation.types, strict=True):
        column = f'"{name}"'
        if type.id == "struct":
            for part, part_type in type.children:
                found[f"{name}.{part}"] = Value(f'{column}."{part}"', str(part_type))
        else:
            found[name] = Value(column, str(type))
    return found


def required_columns(operation: Operation) -> list[str]:
    """Return the columns of an operation that every row has."""
    columns = table_columns(operation.tables[0])
    return [column.name for column in columns if not column.missing and column.default is None]


def match_columns(
    operation: Operation, found: Mapping[str, Value], given: Mapping[str, str]
) -> dict[str, Value]:
    """Return our name of a column -> its value, by the names that the caller gave or by ours.

    A column may also have its name on the wire.
    """
    matched = {}
    for column in record_columns(operation.tables[0].record):
        places = (given.get(column.name), column.name, column.wire, column.path)
        if place := next((place for place in places if place in found), None):
            matched[column.name] = found[place]
    return matched


def row_expressions(
    operation: Operation, known: Mapping[str, Value], others: Mapping[str, Value]
) -> dict[str, str]:
    """Return the columns of the table and ``_json``, each as an expression.

    `known` are the values of our columns, `others` those of all other fields by their place.
    """
    table, texts, made = operation_table(operation), defaultdict[str, list[str]](list), {}
    for column in record_columns(operation.tables[0].record):
        if column.name not in known:
            continue
        cell, family = value(column, known[column.name]), column.kind.family
        number = f"CAST({cell} AS DOUBLE)" if family == "number" else cell
        is_text = family == "text" or (family == "number" and column.type is str)
        outer, _, name = column.wire.rpartition(".")
        json = f"to_json({cell})" if is_text else number
        texts[outer].append(f"{_key(name)} || CAST({json} AS VARCHAR)")
        if column.name in SCHEMAS[table].names:
            time = f"CAST(make_timestamp_ms({cell}) AS TIMESTAMPTZ)"
            made[column.name] = time if family == "time" else number
    for place, other in others.items():
        outer, _, name = place.rpartition(".")
        texts[outer].append(f"{_key(name)} || CAST(to_json({other.expression}) AS VARCHAR)")
    row = texts.pop("", [])
    for outer, parts in texts.items():
        inner = f"nullif(concat_ws(',', {', '.join(parts)}), '')"
        row.append(f"{_key(outer)} || '{{' || {inner} || '}}'")
    return {**made, "_json": f"'{{' || concat_ws(',', {', '.join(row)}) || '}}'"}


def value(column: Field, cell: Value) -> str:
    """Return a value in the form of the wire: numbers and times are not yet JSON."""
    expression, type, family = *cell, column.kind.family
    if type in ("FLOAT", "DOUBLE"):
        # Not a comparison with 'NaN': DuckDB answers it from the statistics of the file.
        expression = f"CASE WHEN isnan({expression}) THEN NULL ELSE {expression} END"
    if family == "time" and type.startswith(("TIMESTAMP", "DATE")):
        return f"epoch_ms({expression})"
    if family in ("time", "integer"):
        if type.startswith(("FLOAT", "DOUBLE", "DECIMAL")):
            error = f"error('column {column.name}: ' || {expression} || ' is not whole')"
            is_whole = f"{expression} = floor({expression})"
            return f"CASE WHEN {is_whole} THEN CAST({expression} AS BIGINT) ELSE {error} END"
        return f"CAST({expression} AS BIGINT)"
    if family == "flag":
        return f"CAST({expression} AS BOOLEAN)"
    if family == "nested" and type != "VARCHAR":
        expression = f"to_json({expression})"
    text = f"CAST({expression} AS VARCHAR)"
    if type.startswith("DECIMAL") and not type.endswith(",0)"):
        return f"regexp_replace({text}, '\\.?0+$', '')"
    return text


def _key(name: str) -> str:
    """Return the text of a key in JSON, with its colon, as SQL."""
    text = f"{msgspec.json.encode(name).decode()}:"
    return "'" + text.replace("'", "''") + "'"


def _wire_form(type: Any, value: Any) -> Any:
    """Reverse the cells of `toolkit.frames.arrays.typed_array`."""
    parts = get_args(type)
    if get_origin(type) is list:
        return [_wire_form(parts[0], item) for item in value]
    if get_origin(type) is tuple:
        return [_wire_form(part, item) for part, item in zip(parts, value.values(), strict=True)]
    if parts or not issubclass(type, Record):
        return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
    # A record inside a record of the same type is JSON text in the cell.
    if isinstance(value, str):
        return msgspec.json.decode(value)
    record: dict[str, Any] = {}
    for column in record_columns(type):
        if (cell := value[column.name]) is None:
            continue
        target, (*outer, last) = record, column.wire.split(".")
        for name in outer:
            target = target.setdefault(name, {})
        if column.kind.family == "time":
            cell = pd.Timestamp(cell).value // 1_000_000
        elif column.kind.family in ("nested", "number"):
            cell = float(cell) if column.type is float else _wire_form(column.type, cell)
        target[last] = cell
    return record
