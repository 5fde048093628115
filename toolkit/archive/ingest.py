"""Ingest: append rows that were fetched without the archive, from recordings and frames.

A recorded page may end inside a group of rows with one key. It proves what a reader would keep of
it (`toolkit.contract.paging`): everything before the last group, or the whole page if it is known
to be the last one. The rows of the last group are archived as well, but no range that is logged as
complete contains them.
"""

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.errors import CommitConflict
from toolkit.archive.pulls import (
    Refreshed,
    Run,
    RunOverlap,
    log_entry,
    log_ranges,
    log_refreshes,
    read_runs,
    read_series_log,
)
from toolkit.archive.refresh import MAX_TRIES, ArchivedAnswer, append_answers
from toolkit.archive.schemas import (
    RowOrigin,
    Series,
    arrow_rows,
    find_operation,
    is_history,
    make_series,
)
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.answers import decode
from toolkit.contract.columns import Column, record_columns, table_columns
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.paging import PageReader, key_getter
from toolkit.contract.records import Record
from toolkit.contract.requests import make_cursor, parse_cursor
from toolkit.errors import ArchiveError, Incomplete, ToolkitError
from toolkit.frames import provenance
from toolkit.times import to_ms

__all__ = ["RowBlock", "ingest_frame", "ingest_recordings"]

_INGESTED: Final = (".json", ".parquet")
_PART_NAMES: Final = frozenset({"start", "end", "cursor", "page_size"})

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of a history that follow each other; make one with `from_page` or `from_history`.

    Attributes
    ----------
    series : Series
        The series of the rows.
    texts : sequence of bytes
        The JSON text of each row.
    keys : sequence of tuple
        The key of each row, ascending.
    after : tuple or None
        The cursor after which they come; None if they begin at a time.
    start, until : int
        The range in Unix milliseconds, both ends inclusive, for which they are all rows that
        exist. The range is empty if `until` is before `start`.
    """

    series: Series
    texts: Sequence[bytes]
    keys: Sequence[Key]
    after: Key | None
    start: int
    until: int

    @classmethod
    def from_page(
        cls, series: Series, texts: Sequence[bytes], parameters: Mapping[str, Any]
    ) -> "RowBlock":
        """Return the block of one page.

        Parameters
        ----------
        series : Series
            The series of the rows.
        texts : sequence of bytes
            The JSON text of each row.
        parameters : mapping
            The parameters of the page's request.

        Raises
        ------
        ArchiveError
            If the rows do not ascend in time.
        """
        rows = _decode_rows(series.operation, texts)
        block = _make_block(series, texts, rows, parameters)
        if _is_last_group_complete(series.operation, rows, block.after, parameters):
            return block
        return replace(block, until=block.until - 1)

    @classmethod
    def from_history(
        cls, series: Series, texts: Sequence[bytes], parameters: Mapping[str, Any]
    ) -> "RowBlock":
        """Return the block of rows that are known to be complete up to the last one.

        Raises
        ------
        ArchiveError
            If the rows do not ascend in time.
        """
        rows = _decode_rows(series.operation, texts)
        return _make_block(series, texts, rows, parameters)

    def texts_since(self, time: int) -> list[bytes]:
        """Return the rows from a time on."""
        return [text for text, key in zip(self.texts, self.keys, strict=True) if key[0] >= time]

    def texts_after_run(self, run: Run, proved_until: int) -> list[bytes]:
        """Return the rows that a run does not have yet.

        Parameters
        ----------
        run : Run
            The last run of the series; it has rows.
        proved_until : int
            The time up to which the run is proved complete.

        Raises
        ------
        ArchiveError
            If rows may be missing between the run and the block.
        HistoryMismatch
            If the block does not contain the archived rows of the run's last time.
        """
        operation = self.series.operation
        archived = [key_getter(operation)(row) for row in _decode_rows(operation, run.last_texts)]
        if self.until < run.start:
            raise ArchiveError(
                f"{self.series.name}: the rows end before the archived rows begin. Ingest the "
                "oldest page first, or refresh with an earlier start"
            )
        if not self._contains_group(archived[-1]) and self.start > proved_until + 1:
            begin = make_cursor(self.after) if self.after else self.start
            raise ArchiveError(
                f"{self.series.name}: the rows begin at {begin}, but the archive is complete only "
                f"up to {proved_until}. There may be a gap between: refresh instead"
            )
        expected = [
            text
            for text, key in zip(run.last_texts, archived, strict=True)
            if self._contains_group(key)
        ]
        overlap = RunOverlap(self.series, replace(run, last_texts=tuple(expected)))
        new = list(overlap.new_texts(self.texts_since(archived[-1][0])))
        # Without new rows the block may end before the last archived row.
        if new:
            overlap.check_matched()
        return new

    def _contains_group(self, key: Key) -> bool:
        """Return whether the block has every row of this key and of later keys, up to its end.

        A service may return the rows of the cursor itself or begin after them. Only if the first
        row has the key of the cursor, the service returns them.
        """
        if self.after is None:
            return bool(key[0] >= self.start)
        return key > self.after or (key == self.after and key in self.keys[:1])


def _make_block(
    series: Series, texts: Sequence[bytes], rows: Sequence[Any], parameters: Mapping[str, Any]
) -> RowBlock:
    keys = list(map(key_getter(series.operation), rows))
    if any(later < earlier for earlier, later in itertools.pairwise(keys)):
        raise ArchiveError(f"{series.name}: the rows do not ascend in time")
    after, start = None, parameters.get("start")
    if parameters.get("cursor"):
        after = parse_cursor(series.operation, parameters["cursor"])
        start = int(after[0]) + 1  # only a part of the rows of the cursor's own time come after it
    elif start is None:
        start = keys[0][0] if keys else 0
    until = keys[-1][0] if keys else start - (after is not None)
    return RowBlock(series, texts, keys, after, start, until)


def _is_last_group_complete(
    operation: Operation, rows: Sequence[Any], after: Key | None, parameters: Mapping[str, Any]
) -> bool:
    """Return whether a page has all rows of its last key, as a reader of pages decides."""
    size = _page_limit(operation, parameters)
    try:
        return PageReader(operation, {}, size, size, last_kept_key=after).read(rows).stop == len(
            rows
        )
    except Incomplete:
        return False


def _page_limit(operation: Operation, parameters: Mapping[str, Any]) -> int | None:
    """Return the most rows that a page of a request can have; None if that is unknown."""
    page = operation.page
    if page is None:
        return None
    requested: int = parameters.get(page.python) or page.default
    return requested if page.most is None else min(requested, page.most)


def _decode_rows(operation: Operation, texts: Sequence[bytes]) -> Sequence[Any]:
    rows: Sequence[Any] = decode(operation, 200, {}, b"[%b]" % b",".join(texts))
    return rows


class _Recording(msgspec.Struct):
    """A recorded answer: a request, and what the service answered."""

    request: dict[str, Any]
    response: msgspec.Raw
    status: int = 200
    left_out: int = 0


def ingest_recordings(tables: ArchiveTables, path: Path) -> dict[str, dict[str, Any]]:
    """Append the recorded answers and frames in a file or folder; see `Archive.ingest`."""
    files = [path]
    if path.is_dir():
        files = sorted(file for suffix in _INGESTED for file in path.glob(f"*{suffix}"))
    new_rows: dict[str, int] = {}
    left: dict[str, str] = {}
    if not files:
        left[str(path)] = f"there is no file {' or '.join('*' + name for name in _INGESTED)} in it"
    for file in files:
        try:
            if file.suffix == ".parquet":
                new_rows[file.name] = ingest_frame(tables, pd.read_parquet(file)).rows
            else:
                new_rows[file.name] = _ingest_file(tables, file)
        except (ToolkitError, TypeError, ValueError, KeyError, OSError) as error:
            left[file.name] = str(error) or type(error).__name__
    return {"kept": new_rows, "left": left}


def _ingest_file(tables: ArchiveTables, file: Path) -> int:
    """Append one recorded answer, and return the number of new rows."""
    recording = msgspec.json.decode(file.read_bytes(), type=_Recording)
    operation = find_operation(str(recording.request.get("type")))
    if recording.status != 200 or operation.binary:
        raise ArchiveError(f"the file is not a JSON answer of {operation.type} with status 200")
    if recording.left_out:
        raise ArchiveError(
            f"{recording.left_out:,} rows of the answer are not in the file, according to its "
            "left_out. The rows between its first and its last row are not complete"
        )
    parameters = {
        operation.by_wire[name].python: value
        for name, value in recording.request.items()
        if name in operation.by_wire and value is not None
    }
    body, modified_ms = bytes(recording.response), file.stat().st_mtime_ns // 1_000_000
    origin = RowOrigin(f"recording {file.name}", False, modified_ms)
    if is_history(operation):
        subject = {name: value for name, value in parameters.items() if name not in _PART_NAMES}
        texts = [bytes(text) for text in msgspec.json.decode(body, type=list[msgspec.Raw])]
        page = RowBlock.from_page(make_series(operation, (), subject), texts, parameters)
        return _append_block(tables, page, origin).rows
    series = make_series(operation, (), parameters)
    answer = decode(operation, 200, {}, body, parameters=series.parameters)
    limit = _page_limit(operation, parameters)
    if operation.paging == "backward" and limit is not None and len(answer) >= limit:
        raise ArchiveError(
            f"{series.name}: the page is full with {limit} rows, so there may be more rows: "
            "refresh instead"
        )
    (done,) = append_answers(tables, [ArchivedAnswer(series, body, {}, origin)])
    return done.rows


def ingest_frame(tables: ArchiveTables, frame: pd.DataFrame) -> Refreshed:
    """Append a fetched history; see `Archive.ingest`."""
    facts = provenance(frame)
    operation = OPERATIONS[facts["operation"]]
    if not is_history(operation) or facts.get("complete") != "yes":
        raise ArchiveError(
            f"{operation.type}: only the frame of a complete history can be ingested. Other "
            "frames do not show which rows are missing: refresh instead"
        )
    parameters = facts["parameters"]
    if not parameters.keys() <= {parameter.python for parameter in operation.parameters}:
        raise ArchiveError(
            f"{operation.type}: this frame combines several requests. Ingest each one separately"
        )
    subject = {
        parameter.python: parameters[parameter.python]
        for parameter in operation.parameters
        if parameter.python in parameters and parameter.python not in _PART_NAMES
    }
    series = make_series(operation, (), subject)
    texts = _wire_texts(operation, frame)
    origin = RowOrigin(facts["source"], facts["simulated"], to_ms(facts["asked_at"]))
    return _append_block(tables, RowBlock.from_history(series, texts, parameters), origin)


def _wire_texts(operation: Operation, frame: pd.DataFrame) -> list[bytes]:
    """Return the rows of a frame as JSON texts of the wire; missing cells are left out."""
    columns = table_columns(operation.tables[0])
    if missing := [column.name for column in columns if column.name not in frame]:
        raise ArchiveError(
            f"{operation.type}: the frame lacks {', '.join(missing)}: ingest it as it was fetched"
        )
    fields: dict[str, list[Any]] = defaultdict(list)  # object inside the row -> its fields
    for column in columns:
        cells = pa.Array.from_pandas(frame[column.name])
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.combine_chunks()
        outer, _, name = column.wire.rpartition(".")
        field_texts = pc.binary_join_element_wise(f',"{name}":', _json_texts(column, cells), "")
        fields[outer].append(pc.fill_null(field_texts, ""))
    rows = fields.pop("", [])
    for name, parts in fields.items():
        objects = _json_objects(parts)  # an object without fields is left out
        objects = pc.if_else(pc.equal(objects, "{}"), pa.scalar(None, pa.string()), objects)
        object_texts = pc.binary_join_element_wise(f',"{name}":', objects, "")
        rows.append(pc.fill_null(object_texts, ""))
    texts: list[bytes] = _json_objects(rows).cast(pa.binary()).to_pylist()
    return texts


def _json_objects(fields: Sequence[Any]) -> Any:
    """Return objects with fields, each of which has a comma before it."""
    joined = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*fields, ""), 1)
    return pc.binary_join_element_wise("{", joined, "}", "")


def _json_texts(column: Column, cells: Any) -> Any:
    """Return the cells of a column as JSON texts. They are made by Arrow, if it can."""
    family = column.kind.family
    if family == "time":
        return cells.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()).cast(pa.string())
    if family in ("integer", "flag") and not pa.types.is_floating(cells.type):
        return cells.cast(pa.string())
    if family == "number" and column.type is str and not _is_text(cells):
        numbers = [None if cell is None else _number_text(cell) for cell in cells.to_pylist()]
        cells = pa.array(numbers, pa.string())
    is_plain = family == "text" or (family == "number" and column.type is str)
    if is_plain and _is_text(cells) and not pc.any(_has_escapes(cells)).as_py():
        return pc.binary_join_element_wise('"', cells.cast(pa.string()), '"', "")
    values = [
        None
        if cell is None
        else msgspec.json.encode(_wire_value(family, column.type, cell)).decode()
        for cell in cells.to_pylist()
    ]
    return pa.array(values, pa.string())


def _is_text(cells: Any) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def _has_escapes(cells: Any) -> Any:
    """Return which texts have characters that JSON escapes."""
    return pc.match_substring_regex(cells, r'["\\\x00-\x1f]')


def _wire_record(columns: Sequence[Column], cells: Mapping[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for column in columns:
        if (value := cells[column.name]) is None:
            continue
        target = record
        *outer, last = column.wire.split(".")
        for name in outer:
            target = target.setdefault(name, {})
        target[last] = _wire_value(column.kind.family, column.type, value)
    return record


def _wire_value(family: str, type: Any, value: Any) -> Any:
    """Return a cell in the form of the wire, including the records and lists inside it."""
    if family == "nested":
        return _nested_wire_value(type, value)
    if family == "time":
        return pd.Timestamp(value).value // 1_000_000
    if family == "number":
        return _number_text(value) if type is str else float(value)
    return value


def _nested_wire_value(type: Any, value: Any) -> Any:
    """Reverse `toolkit.frames.cells.cell_value`."""
    parts = get_args(type)
    if get_origin(type) is list:
        return [_nested_wire_value(parts[0], item) for item in value]
    if get_origin(type) is tuple:
        return [
            _nested_wire_value(part, item) for part, item in zip(parts, value.values(), strict=True)
        ]
    if parts or not issubclass(type, Record):
        return _number_text(value)
    # A record inside a record of the same type is JSON text in the cell.
    if isinstance(value, str):
        return msgspec.json.decode(value)
    return _wire_record(record_columns(type), value)


def _number_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return value if isinstance(value, str) else repr(value)


def _append_block(tables: ArchiveTables, block: RowBlock, origin: RowOrigin) -> Refreshed:
    """Append a block, and log the range for which it is complete.

    Raises
    ------
    ArchiveError
        If rows may be missing between the archived rows and the block.
    """
    for _ in range(MAX_TRIES):
        with contextlib.suppress(CommitConflict):
            done = _append_new_rows(tables, block, origin)
            log_refreshes(tables, [log_entry(done, origin)])
            return done
    raise ArchiveError(
        f"{block.series.name}: other processes keep writing to the archive; try again"
    )


def _append_new_rows(tables: ArchiveTables, block: RowBlock, origin: RowOrigin) -> Refreshed:
    """Append the rows that are not archived to the last run, or as the first run."""
    series = block.series
    handle = tables.open_for_append(series.table)
    runs = read_runs(tables, handle, series)
    if runs:
        run = runs[-1]
        covered = log_ranges(read_series_log(tables, series))
        ends = [last for first, last in covered if first <= run.start]
        new = block.texts_after_run(run, max(ends, default=run.start - 1))
    else:
        run, new = Run(block.start, None), block.texts_since(block.start)
    count = run.rows + len(new)
    tables.append_rows(
        handle,
        arrow_rows(series, new, run.start, run.rows, origin),
        counts={series.name: count, series.run_transaction(run.start): count},
        notes={"series": series.name},
    )
    total = sum(known.rows for known in runs) + len(new)
    return Refreshed(series.operation.type, series.subject, len(new), total, run.start, block.until)
