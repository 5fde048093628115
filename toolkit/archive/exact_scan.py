"""Scans with exact numbers: the number columns of a scan, decoded from the texts of the rows.

The tables hold numbers as floats. Exact decimals are in the text of a row only. They are decoded a
batch at a time, by the same functions as those of a frame. So a scan has the values of
`Archive.frame`, on every engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.schemas import RECORDS
from toolkit.contract.answers import decode
from toolkit.contract.columns import record_columns
from toolkit.contract.kinds import Numbers
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.frames.cells import field_type
from toolkit.frames.collect import FrameBuilder

__all__ = ["NumberDecoder"]

_ROWS_AT_ONCE: Final = 50_000
_SOURCES: Final = ("_operation", "_json")
"""The columns that the numbers of a row are decoded from."""


class NumberDecoder:
    """Decodes the number columns of a table from the texts of its rows.

    - ``table``: the table
    - ``shown``: the columns of the result
    - ``numbers`` ({"exact", "text"}): the form of numbers
    """

    def __init__(self, table: str, shown: Sequence[str], numbers: Numbers) -> None:
        self._shown, self._numbers = list(shown), numbers
        columns = record_columns(RECORDS[table]) if table in RECORDS else ()
        wanted = {
            column.name: column
            for column in columns
            if column.kind.family == "number" and column.name in shown
        }
        self._types = {name: field_type(column, numbers) for name, column in wanted.items()}
        self._unused = tuple(column.path for column in columns if column.name not in wanted)
        sources = _SOURCES if wanted else ()
        stored = [name for name in shown if name not in wanted]
        self._needed = list(dict.fromkeys([*stored, *sources]))

    def scan(self, dataset: Any, engine: str) -> Any:
        """Return the rows of a dataset on an engine of this machine."""
        from toolkit.analysis.common.by_account import scan_tables
        from toolkit.analysis.common.engines import decimal_dtype

        tables = self._read_tables(dataset)
        if engine == "pandas":
            return pa.concat_tables(tables).to_pandas(types_mapper=decimal_dtype)
        return scan_tables(tables, engine)

    def on_spark(self, session: Any, rows: Any) -> Any:
        """Return a Spark frame whose numbers the executors decode."""
        from toolkit.analysis.common.engines import spark_frame

        rows = rows.select(*self._needed)
        schema = spark_frame(session, self._decode(rows.limit(0).toArrow())).schema

        def decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from self._decode(pa.Table.from_batches([batch])).to_batches()

        return rows.mapInArrow(decode_batches, schema)

    def _read_tables(self, dataset: Any) -> Iterator[pa.Table]:
        """Yield the rows in tables of few rows; the first one has none."""
        yield self._decode(dataset.schema.empty_table().select(self._needed))
        for batch in dataset.to_batches(columns=self._needed, batch_size=_ROWS_AT_ONCE):
            yield self._decode(pa.Table.from_batches([batch]))

    def _decode(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the columns of the result."""
        if not self._types:
            return rows.select(self._shown)
        types = pc.unique(rows["_operation"]).to_pylist()
        parts = [
            self._decode_operation(
                OPERATIONS[type],
                rows if len(types) == 1 else rows.filter(pc.equal(rows["_operation"], type)),
            )
            for type in types
        ]
        return pa.concat_tables(parts) if parts else self._place(rows, {})

    def _decode_operation(self, operation: Operation, rows: pa.Table) -> pa.Table:
        texts = rows["_json"].cast(pa.large_binary()).to_pylist()
        records = decode(operation, 200, {}, b"[%b]" % b",".join(texts), numbers=self._numbers)
        table = operation.tables[0]
        numbers = replace(table, omits=(*table.omits, *self._unused))
        builder = FrameBuilder(numbers, operation.type, self._numbers)
        names = [column.name for column in builder.columns]
        return self._place(rows, dict(zip(names, builder.chunks(records), strict=True)))

    def _place(self, rows: pa.Table, decoded: dict[str, Any]) -> pa.Table:
        """Return the columns of the result in their order, with decoded numbers."""
        columns = [
            decoded.get(name, pa.nulls(rows.num_rows, self._types[name]))
            if name in self._types
            else rows[name]
            for name in self._shown
        ]
        return pa.table(columns, names=self._shown)
