"""Ingest: append rows that were fetched without the archive, from recordings and frames.

A recorded page may end inside a group of rows with one key. It proves what a reader would keep of
it (`toolkit.contract.paging`): everything before the last group, or the whole page if it is known
to be the last one. The rows of the last group are archived as well, but no range that is logged as
complete contains them.
"""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

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
from toolkit.archive.schemas import RowOrigin, Series, arrow_rows, find_operation, make_series
from toolkit.archive.storage import ArchiveTables
from toolkit.archive.table_rows import place_rows, table_rows
from toolkit.completeness.subjects import is_history
from toolkit.contract.answers import decode
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.paging import PageReader, key_getter
from toolkit.contract.requests import make_cursor, parse_cursor
from toolkit.errors import ArchiveError, Incomplete, ToolkitError
from toolkit.frames import provenance
from toolkit.times import to_ms

__all__ = ["RowBlock", "ingest_frame", "ingest_recordings"]

_INGESTED: Final = (".json", ".parquet")
_ROWS_AT_ONCE: Final = 50_000
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
    rows : pyarrow.Table, optional
        The same rows as `table_rows` returns them, if they were made from columns.
    """

    series: Series
    texts: Sequence[bytes]
    keys: Sequence[Key]
    after: Key | None
    start: int
    until: int
    rows: pa.Table | None = None

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
        keys = list(map(key_getter(series.operation), rows))
        block = _make_block(series, texts, keys, parameters)
        if _is_last_group_complete(series.operation, rows, block.after, parameters):
            return block
        return replace(block, until=block.until - 1)

    @classmethod
    def from_columns(
        cls, series: Series, columns: pa.Table, parameters: Mapping[str, Any], origin: RowOrigin
    ) -> "RowBlock":
        """Return the block of the columns of a frame, whose rows are complete up to the last one.

        Raises
        ------
        ArchiveError
            If the rows do not ascend in time, or values are missing.
        """
        rows = table_rows(series.operation, columns, origin)
        names = [name for name in series.keys if name in rows.column_names]
        keys = list(zip(*(_key_values(rows[name]) for name in names), strict=True))
        texts = rows["_json"].cast(pa.binary()).to_pylist()
        return replace(_make_block(series, texts, keys, parameters), rows=rows)

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
    series: Series, texts: Sequence[bytes], keys: Sequence[Key], parameters: Mapping[str, Any]
) -> RowBlock:
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
    left = {
        file.name: f"the name of a file to ingest ends in {' or '.join(_INGESTED)}"
        for file in sorted(path.glob("[!.]*"))
        if file.is_file() and file not in files
    }
    if not files:
        left[str(path)] = f"there is no file {' or '.join('*' + name for name in _INGESTED)} in it"
    for file in files:
        try:
            if file.suffix == ".parquet":
                new_rows[file.name] = ingest_frame(tables, file).rows
            else:
                new_rows[file.name] = _ingest_file(tables, file)
        except (ToolkitError, TypeError, ValueError, KeyError, OSError) as error:
            left[file.name] = str(error) or type(error).__name__
    return {"kept": new_rows, "left": left}


def _ingest_file(tables: ArchiveTables, file: Path) -> int:
    """Append one recorded answer, and return the number of new rows."""
    try:
        recording = msgspec.json.decode(file.read_bytes(), type=_Recording)
    except msgspec.MsgspecError as error:
        raise ArchiveError(
            "the file is not a recorded answer, which is a JSON object with request and response: "
            f"{error}"
        ) from None
    operation = find_operation(str(recording.request.get("type")))
    if recording.status != 200 or operation.binary:
        raise ArchiveError(
            f"the file is not a JSON answer of {operation.type} with status 200, but with "
            f"{recording.status}"
            if recording.status != 200
            else f"answers of {operation.type} are binary: refresh instead"
        )
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
        done = _append_block(tables, page, origin)
        assert done is not None
        log_refreshes(tables, [log_entry(done, origin)])
        return done.rows
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


def _key_values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


@dataclass(frozen=True, slots=True)
class _FetchedFrame:
    """The frame of a history, in memory or in a Parquet file, which is read in portions."""

    facts: Mapping[str, Any]
    names: Sequence[str]
    source: pd.DataFrame | Path

    @classmethod
    def open(cls, source: pd.DataFrame | Path) -> "_FetchedFrame":
        """Return a frame, or the frame in a Parquet file.

        Raises
        ------
        ValueError
            If it has no provenance.
        """
        if isinstance(source, pd.DataFrame):
            return cls(provenance(source), list(source.columns), source)
        footer = pq.read_metadata(source)
        without_columns = pd.DataFrame(index=range(footer.num_rows))
        without_columns.attrs = json.loads((footer.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
        return cls(provenance(without_columns), footer.schema.to_arrow_schema().names, source)

    def read_portions(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of the rows, in order; at least one portion."""
        if isinstance(self.source, Path):
            with pq.ParquetFile(self.source) as file:
                if not file.metadata.num_rows:
                    yield file.read(columns=list(columns))
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(columns)):
                    yield pa.Table.from_batches([batch])
            return
        for first in range(0, max(len(self.source), 1), _ROWS_AT_ONCE):
            part = self.source.iloc[first : first + _ROWS_AT_ONCE]
            yield pa.table({name: pa.Array.from_pandas(part[name]) for name in columns})


def ingest_frame(tables: ArchiveTables, source: pd.DataFrame | Path) -> Refreshed:
    """Append a fetched history, or the Parquet file of one; see `Archive.ingest`.

    The rows are committed in portions, and their range is logged at the end. If the process is
    killed, another call continues after the last committed row.
    """
    frame = _FetchedFrame.open(source)
    facts = frame.facts
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
    columns = [column.name for column in table_columns(operation.tables[0])]
    if missing := [name for name in columns if name not in frame.names]:
        raise ArchiveError(
            f"{operation.type}: the frame lacks {', '.join(missing)}: ingest it as it was fetched"
        )
    subject = {
        parameter.python: parameters[parameter.python]
        for parameter in operation.parameters
        if parameter.python in parameters and parameter.python not in _PART_NAMES
    }
    series = make_series(operation, (), subject)
    origin = RowOrigin(facts["source"], facts["simulated"], to_ms(facts["asked_at"]))
    new_rows, done, rest = 0, None, None
    portions = _with_last(frame.read_portions(columns))
    for portion, is_last in portions:
        rows = portion if rest is None else pa.concat_tables([rest, portion])
        block = RowBlock.from_columns(series, rows, parameters, origin)
        # The next portion begins with the rows of the last time, so that it proves to follow.
        parameters = {"start": block.until}
        rest = rows.slice(sum(key[0] < block.until for key in block.keys))
        done = _append_block(tables, block, origin, is_last=is_last)
        new_rows += 0 if done is None else done.rows
    assert done is not None
    done = replace(done, rows=new_rows)
    log_refreshes(tables, [log_entry(done, origin)])
    return done


def _with_last(portions: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    """Yield each portion, and whether it is the last one."""
    portion = next(portions)
    for following in portions:
        yield portion, False
        portion = following
    yield portion, True


def _append_block(
    tables: ArchiveTables, block: RowBlock, origin: RowOrigin, *, is_last: bool = True
) -> Refreshed | None:
    """Append a block. Return None if it comes before the archived rows, and others follow.

    Raises
    ------
    ArchiveError
        If rows may be missing between the archived rows and the block.
    """
    for _ in range(MAX_TRIES):
        with contextlib.suppress(CommitConflict):
            return _append_new_rows(tables, block, origin, is_last=is_last)
    raise ArchiveError(
        f"{block.series.name}: other processes keep writing to the archive; try again"
    )


def _append_new_rows(
    tables: ArchiveTables, block: RowBlock, origin: RowOrigin, *, is_last: bool
) -> Refreshed | None:
    """Append the rows that are not archived to the last run, or as the first run."""
    series = block.series
    handle = tables.open_for_append(series.table)
    runs = read_runs(tables, handle, series)
    if runs:
        run = runs[-1]
        if block.until < run.start and not is_last:
            return None
        covered = log_ranges(read_series_log(tables, series))
        ends = [last for first, last in covered if first <= run.start]
        new = block.texts_after_run(run, max(ends, default=run.start - 1))
    else:
        run, new = Run(block.start, None), block.texts_since(block.start)
    count = run.rows + len(new)
    if block.rows is not None and list(block.texts[len(block.texts) - len(new) :]) == new:
        of_series = block.rows.slice(len(block.texts) - len(new))
        rows = place_rows(series, of_series, run.start, run.rows)
    else:
        rows = arrow_rows(series, new, run.start, run.rows, origin)
    tables.append_rows(
        handle,
        rows,
        counts={series.name: count, series.run_transaction(run.start): count},
        notes={"series": series.name},
    )
    total = sum(known.rows for known in runs) + len(new)
    return Refreshed(series.operation.type, series.subject, len(new), total, run.start, block.until)
