"""Ingest: append rows that were fetched without the archive, or that somebody else wrote.

A recorded page may end inside a tie: rows with one key. It proves what a reader would keep of it
(`toolkit.contract.paging`): everything before the last tie, or the whole page if it is known to be
the last one. The rows of the last tie are archived as well, but no range that is logged as complete
contains them.

In bulk files a table of columns says where the values are. DuckDB sorts the rows of many accounts
by account and time, in temporary files if they do not fit into memory. They are committed in
portions, and the range of all accounts is logged at the end. If the process is killed, another call
skips the rows that are archived and continues.
"""

import functools
import itertools
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypedDict

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from toolkit.archive import coverage, engines, row_sql, schemas
from toolkit.archive.coverage import HistoryWriter, RefreshResult, Run
from toolkit.archive.refresh import Asked, FetchedAnswer, append_answers
from toolkit.archive.schemas import RowOrigin, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.completeness.checks import BreakLog, HistoryChecks
from toolkit.contract import paging
from toolkit.contract.answers import decode
from toolkit.contract.fields import record_columns, table_columns
from toolkit.contract.operations import Operation
from toolkit.contract.paging import RowKey
from toolkit.contract.requests import parse_cursor
from toolkit.display import count_text
from toolkit.errors import ArchiveError, CommitConflict, ToolkitError
from toolkit.frames import provenance
from toolkit.times import to_iso, to_ms

_INGESTED: Final = (".json", ".parquet")
_ROWS_AT_ONCE: Final = 50_000
_PART_NAMES: Final = frozenset({"start", "end", "cursor", "page_size"})


class IngestResult(TypedDict):
    """What was ingested: a dict.

    Attributes
    ----------
    kept : dict
        File or series -> its number of new rows.
    left : dict
        File or subject -> why it was left out.
    """

    kept: dict[str, int]
    left: dict[str, str]


class _RecordedAnswer(msgspec.Struct):
    """A recorded answer: a request, and what the service answered."""

    request: dict[str, Any]
    response: msgspec.Raw
    status: int = 200
    left_out: int = 0


def ingest_recordings(tables: ArchiveTables, path: Path) -> IngestResult:
    """Append the recorded answers and frames in a file or folder; see `Archive.ingest`."""
    files = [path]
    if path.is_dir():
        files = sorted(file for suffix in _INGESTED for file in path.glob(f"*{suffix}"))
    new_rows: dict[str, int] = {}
    left = {
        file.name: f"the name of a file to ingest must end in {' or '.join(_INGESTED)}"
        for file in sorted(path.glob("[!.]*"))
        if file.is_file() and file not in files
    }
    if not files:
        left[str(path)] = f"there is no file {' or '.join('*' + name for name in _INGESTED)} in it"
    for file in files:
        try:
            if file.suffix == ".parquet":
                new_rows[file.name] = sum(ingest_frame(tables, file)["kept"].values())
            else:
                new_rows[file.name] = _ingest_file(tables, file)
        except (ToolkitError, TypeError, ValueError, KeyError, OSError) as error:
            left[file.name] = str(error) or type(error).__name__
    return {"kept": new_rows, "left": left}


def _ingest_file(tables: ArchiveTables, file: Path) -> int:
    """Append one recorded answer, and return the number of new rows."""
    try:
        recording = msgspec.json.decode(file.read_bytes(), type=_RecordedAnswer)
    except msgspec.MsgspecError as error:
        raise ArchiveError(
            "the file is not a recorded answer, which is a JSON object with request and response: "
            f"{error}"
        ) from None
    operation = schemas.resolve_operation(str(recording.request.get("type")))
    if recording.status != 200 or operation.binary:
        raise ArchiveError(
            f"the recorded status is {recording.status}; only answers with 200 can be ingested"
            if recording.status != 200
            else f"answers of {operation.type} are binary: refresh instead"
        )
    if recording.left_out:
        raise ArchiveError(
            f"the recording lacks {count_text(recording.left_out, 'row')} between its first and "
            "its last row (left_out). Record the complete answer, or refresh instead"
        )
    parameters = {
        operation.by_wire[name].python: value
        for name, value in recording.request.items()
        if name in operation.by_wire and value is not None
    }
    body, modified_ms = bytes(recording.response), file.stat().st_mtime_ns // 1_000_000
    origin = RowOrigin(f"recording {file.name}", False, modified_ms)
    limit = operation.most_rows or None  # the largest number of rows that the page can have
    if (page := operation.page) is not None:
        requested = parameters.get(page.python) or page.default
        limit = requested if page.most is None else min(requested, page.most)
    if operation.is_history:
        texts = [bytes(text) for text in msgspec.json.decode(body, type=list[msgspec.Raw])]
        keys = paging.row_keys(operation, schemas.decode_texts(operation, texts))
        paging.check_keys(operation, keys, {})
        first = keys[0][0] if keys else 0
        writer = _page_writer(tables, operation, parameters, first, origin, keys)
        writer.until = keys[-1][0] if keys else writer.until - (writer.after is not None)
        has_limit = operation.paging == "cursor" or operation.most_rows
        is_full = len(keys) >= (limit or paging.UNKNOWN_LIMIT)
        if is_full or not (has_limit or len({*keys} - {writer.after}) < 2):
            writer.until -= 1  # a limit may have cut the last tie
        if texts:
            writer.append_part(schemas.decoded_rows(writer.series, texts, origin))
        return sum(writer.log_ranges()["kept"].values())
    series = schemas.make_series(operation, (), parameters)
    answer = decode(operation, 200, {}, body, parameters=series.parameters)
    if operation.paging == "backward" and limit is not None and len(answer) >= limit:
        raise ArchiveError(
            f"{series.name}: the recorded page has the maximum of {limit} rows, so earlier rows "
            "may be missing. Refresh the archive instead of ingesting the page"
        )
    (done,) = append_answers(tables, [FetchedAnswer(Asked(series, origin), body, {})])
    return done.rows


def _page_writer(
    tables: ArchiveTables,
    operation: Operation,
    parameters: Mapping[str, Any],
    first: int,
    origin: RowOrigin,
    keys: Sequence[RowKey] = (),
) -> "BulkWriter":
    """Return the writer of a page, which has all rows from its start on or after its cursor."""
    start, after = parameters.get("start", first), None
    if parameters.get("cursor"):
        after = parse_cursor(operation, parameters["cursor"])
        start = int(after[0]) + 1  # only a part of the rows of the cursor's own time follow
    subject = {name: value for name, value in parameters.items() if name not in _PART_NAMES}
    series = schemas.make_series(operation, (), subject)
    return BulkWriter(tables, series, (start, start), origin, after, keys)


def ingest_frame(tables: ArchiveTables, source: pd.DataFrame | Path) -> IngestResult:
    """Append a fetched history, or the Parquet file of one; see `Archive.ingest`.

    The rows are committed in portions, and their range is logged at the end. If the process is
    killed, another call continues after the last committed row.
    """
    if isinstance(source, pd.DataFrame):
        frame, names = source, list(source.columns)
    else:
        footer = pq.read_metadata(source)
        names = footer.schema.to_arrow_schema().names
        frame = pd.DataFrame(index=range(footer.num_rows))
        frame.attrs = json.loads((footer.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
    facts = provenance(frame)
    operation = schemas.resolve_operation(facts["operation"])
    if not operation.is_history or facts.get("complete") != "yes":
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
    if missing := [name for name in columns if name not in names]:
        raise ArchiveError(
            f"{operation.type}: the frame lacks {', '.join(missing)}. Pass the fetched frame with "
            "all of its columns"
        )
    origin = RowOrigin(facts["source"], facts["simulated"], to_ms(facts["asked_at"]))
    if isinstance(source, pd.DataFrame):
        table = pa.table({name: pa.Array.from_pandas(source[name]) for name in columns})
        portions = table.to_batches(_ROWS_AT_ONCE)
    else:
        portions = pq.ParquetFile(source).iter_batches(_ROWS_AT_ONCE, columns=columns)
    writer, time, last = None, Series(operation, "").keys[0], 0
    for portion in engines.whole_groups(portions, [time]):
        rows = row_sql.table_rows(operation, portion, origin)
        times = schemas.to_milliseconds(rows[time]).to_numpy()
        writer = writer or _page_writer(tables, operation, parameters, int(times[0]), origin)
        if times[0] < last or (np.diff(times) < 0).any():
            raise ArchiveError(
                f"{writer.series.name}: the rows do not ascend in time. Sort them by time"
            )
        last = writer.until = int(times[-1])
        writer.append_part(rows)
    return (writer or _page_writer(tables, operation, parameters, 0, origin)).log_ranges()


def ingest_bulk(
    tables: ArchiveTables,
    path: Path,
    operation: Operation,
    columns: Mapping[str, str],
    times: tuple[int, int],
    origin: RowOrigin,
    progress: Callable[[int], object] | None = None,
) -> IngestResult:
    """Append the rows of many accounts; see `Archive.ingest_bulk`."""
    required = [parameter.python for parameter in operation.parameters if parameter.required]
    subject = [name for name in required if name != "start"]
    if not operation.is_history or len(subject) != 1:
        raise ArchiveError(f"{operation.type}: only histories of one subject have bulk files")
    files = sorted(path.rglob("[!._]*")) if path.is_dir() else [path]
    files = [file for file in files if file.is_file()]
    starts = []
    for file in files:
        with file.open("rb") as opened:
            starts.append(opened.read(4))
    is_parquet = set(starts) <= {b"PAR1"}
    select = _select_columns if is_parquet else _select_texts
    table, every = schemas.operation_table(operation), Series(operation, "")
    with engines.open_duckdb() as database, engines.use_system_memory():
        from duckdb import Error

        try:
            rows, made = select(database, files, operation, subject[0], columns)
            engines.limit_memory(database, _check_bulk(rows, made, path, operation, times))
            rows = rows.filter(f"_time BETWEEN {times[0]} AND {times[1]}")
            rows = rows.order("_subject, _time, _file, _place").select(
                ", ".join(f'{sql} AS "{name}"' for name, sql in made.items())
            )
            writer = BulkWriter(tables, every, times, origin)
            for part in engines.whole_groups(engines.read_batches(rows), ["_subject", "_time"]):
                if is_parquet:
                    known = schemas.complete_rows(table, part, origin)
                else:
                    texts = part["_json"].cast(pa.binary()).to_pylist()
                    known = schemas.decoded_rows(every, texts, origin)
                writer.append_part(known.append_column("_subject", part["_subject"]))
                if progress is not None:
                    progress(part.num_rows)
        except (Error, pa.ArrowException) as error:
            raise ArchiveError(
                f"{path}: {error}. Times are timestamps or whole Unix milliseconds, numbers are "
                "texts, floats or decimals"
            ) from None
    return writer.log_ranges()


def _select_columns(
    database: Any,
    files: Sequence[Path],
    operation: Operation,
    subject: str,
    columns: Mapping[str, str],
) -> tuple[Any, Mapping[str, str]]:
    """Return the rows of Parquet files with their subject and place, and what to make of them."""
    query = (
        "SELECT * FROM read_parquet($files, union_by_name=true, hive_partitioning=false, "
        "filename='_file', file_row_number=true)"
    )
    relation = database.sql(query, params={"files": list(map(str, files))})
    found = row_sql.flat_columns(relation)
    file, place = found.pop("_file"), found.pop("file_row_number")
    shown = {column.name for column in table_columns(operation.tables[0])}
    known = row_sql.match_columns(operation, found, columns)
    if unknown := sorted((set(columns) - {subject, *shown}) | (set(columns.values()) - {*found})):
        raise ArchiveError(
            f"columns: unknown name {', '.join(unknown)}. Each key must be one of our columns "
            f"({', '.join(sorted({subject, *shown}))}). Each value must be a column of the files "
            f"({', '.join(sorted(found))})"
        )
    owner = found.get(columns.get(subject, subject))
    missing = [name for name in row_sql.required_columns(operation) if name not in known]
    if missing or owner is None:
        names = ", ".join([*([subject] if owner is None else []), *missing])
        raise ArchiveError(
            f"{files[0].parent if files[1:] else files[0]} has no column {names}: name them in "
            "columns={our name: name in the files}"
        )
    known = {name: cell for name, cell in known.items() if cell != owner or name in shown}
    wires = {column.wire for column in record_columns(operation.tables[0].record)}
    others = {
        name: cell
        for name, cell in found.items()
        if cell not in (owner, *known.values())
        and name not in wires
        and not name.startswith("__")  # the index of pandas
    }
    time = next(c for c in record_columns(operation.tables[0].record) if c.kind.family == "time")
    name = f"CAST({owner.expression} AS VARCHAR)"
    places = {
        "_subject": f"CASE WHEN {name} ILIKE '0x%' THEN lower({name}) ELSE {name} END",
        "_time": row_sql.value(time, known[Series(operation, "").keys[0]]),
        "_file": file.expression,
        "_place": place.expression,
    }
    made = row_sql.row_expressions(operation, known, others)
    needed = ", ".join(f'{sql} AS "{name}"' for name, sql in places.items())
    return relation.select(f"*, {needed}"), {"_subject": "_subject", "_time": "_time", **made}


def _select_texts(
    database: Any,
    files: Sequence[Path],
    operation: Operation,
    subject: str,
    columns: Mapping[str, str],
) -> tuple[Any, Mapping[str, str]]:
    """Return the rows of files of JSON lines, unchanged, with their subject and place.

    A line is a row of the wire with its subject, or a block of a node's file of fills.
    """
    if set(columns) - {subject}:
        raise ArchiveError(f"columns: JSON lines have the names of the wire; give only {subject}")
    whole = [(name, pa.int64()) for name in ("_time", "_file", "_place")]
    schema = pa.schema([("_subject", pa.string()), *whole, ("_json", pa.string())])
    owner, time = columns.get(subject, subject), operation.key[0]
    wire = next(c.wire for c in table_columns(operation.tables[0]) if c.path == time)

    def read_rows() -> Iterator[tuple[str | None, int, int, int, str]]:
        place = itertools.count()
        for at, file in enumerate(files):
            with file.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    try:
                        for user, text in _read_line(line, owner):
                            row = msgspec.json.decode(text)
                            found = functools.reduce(operator.getitem, wire.split("."), row)
                            yield user, found, at, next(place), bytes(text).decode()
                    except (msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
                        raise ArchiveError(
                            f"{file}, line {number}: {error}. Bulk files are Parquet, or JSON "
                            f"lines: each a row of {operation.type} with {owner}, or a block of a "
                            "node's file of fills with events. Decompress the files first"
                        ) from None

    found = read_rows()
    database.from_arrow(schema.empty_table()).create("lines")
    while rows := list(itertools.islice(found, _ROWS_AT_ONCE)):
        cells = [*map(list, zip(*rows, strict=True))]
        database.from_arrow(pa.table(cells, schema=schema)).insert_into("lines")
    return database.table("lines"), {name: name for name in ("_subject", "_time", "_json")}


def _read_line(line: bytes, owner: str) -> Iterator[tuple[str | None, msgspec.Raw]]:
    """Yield subject and text of the rows of a line of JSON."""
    if not line.strip():
        return
    block = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    pairs = [(block.get(owner, b'""'), msgspec.Raw(line.strip()))]
    if "events" in block:
        pair = tuple[msgspec.Raw, msgspec.Raw]
        pairs = msgspec.json.decode(block["events"], type=list[pair])
    for user, text in pairs:
        subject = msgspec.json.decode(user, type=str)
        yield (subject.lower() if subject[:2].lower() == "0x" else subject) or None, text


def _check_bulk(
    rows: Any, made: Mapping[str, str], path: Path, operation: Operation, times: tuple[int, int]
) -> int:
    """Return the number of rows.

    Raise an ArchiveError if a value cannot be read, or is missing that every row has, or no row is
    in the range.
    """
    counts = rows.aggregate(
        ", ".join(
            [
                "count(*) AS _rows, any_value(_time) AS _some",
                f"count_if(_time BETWEEN {times[0]} AND {times[1]}) AS _wanted",
                *(f'count({sql}) AS "{name}"' for name, sql in made.items() if name != "_json"),
            ]
        )
    )
    (found,) = counts.to_arrow_table().to_pylist()
    needed = [name for name in row_sql.required_columns(operation) if name in made]
    for name in ("_subject", "_time", *needed):
        if missing := found["_rows"] - found[name]:
            lacking = count_text(missing, "row has", "rows have")
            ours = {"_subject": operation.subject[0], "_time": Series(operation, "").keys[0]}
            raise ArchiveError(f"{path}: {lacking} no {ours.get(name, name)}. Remove or fill them")
    if found["_rows"] and not found["_wanted"]:
        raise ArchiveError(
            f"{path}: no row is in the range {to_iso(times[0])} to {to_iso(times[1])}. The time of "
            f"one row is {found['_some']} Unix milliseconds. State the range of the files, and "
            "check the unit of their times"
        )
    count: int = found["_rows"]
    return count


@dataclass
class _History:
    """A history whose rows are ingested: its runs, and what came of its rows."""

    series: Series
    runs: list[Run]
    # The last archived rows, if they must come again.
    expected: list[Any] = field(default_factory=list)
    left: str = ""  # why its rows are left out
    new_rows: int = 0
    breaks: BreakLog = field(default_factory=BreakLog)


@dataclass
class BulkWriter:
    """Appends sorted rows of a series, and logs their range at the end.

    A series without a subject stands for all subjects of its operation.

    Rows before the range are left out. If they come after a cursor, `after` is its key, and `keys`
    are those of all rows.
    """

    tables: ArchiveTables
    series: Series
    times: tuple[int, int]
    origin: RowOrigin
    after: RowKey | None = None
    keys: Sequence[RowKey] = ()

    def __post_init__(self) -> None:
        self._operation, self._subject = self.series.operation, self.series.subject
        self._start, self.until = self.times
        self._writer = HistoryWriter(self.tables, self.series, is_only=bool(self._subject))
        self._histories: dict[str, _History] = {}
        self._checks = HistoryChecks(self._operation, {})
        if self._subject:
            self._history(self._subject)

    def append_part(self, part: pa.Table) -> None:
        """Append rows that are sorted by subject and time, unless they are archived."""
        if self._subject:
            part = part.append_column("_subject", pa.repeat(self._subject, part.num_rows))
        columns = coverage.checked_columns(part)
        if "user" in self._operation.subject:
            columns["user"] = part["_subject"]
        for found in self._checks.add_page(columns):
            if found.kind != "order":  # the rows of one subject come after those of another
                self._history(part["_subject"][found.row].as_py()).breaks.append(found)
        pieces: list[tuple[Series, Run, pa.Table]] = []
        for first, end in engines.equal_slices(part, ["_subject"]):
            history = self._history(part["_subject"][first].as_py())
            rows = self._new_rows_of(history, part.slice(first, end - first))
            if rows.num_rows:
                rows, run = coverage.place_in_run(history.series, history.runs[-1], rows)
                history.runs[-1] = run
                history.new_rows += rows.num_rows
                pieces.append((history.series, run, rows))
        try:
            if pieces and self._writer.append(pieces):
                self._writer.open()
                written = (each for each in self._histories.values() if not each.left)
                if any(self._writer.has_changed(each.series, each.runs) for each in written):
                    raise CommitConflict
        except CommitConflict:
            raise ArchiveError(
                f"{self._operation.type}: another process writes the same histories. Ingest again "
                "when it is done; the rows so far are archived"
            ) from None

    def log_ranges(self) -> IngestResult:
        """Log the range of each subject; return ``kept`` and ``left``, as `Archive.ingest`.

        Raise an ArchiveError if the rows of the only subject were left out.
        """
        entries, result = [], IngestResult(kept={}, left={})
        for subject, history in self._histories.items():
            series, last = history.series, history.runs[-1].last or 0
            if history.expected and not history.left and last <= self.until:
                history.left = str(coverage.mismatch(series, last, history.expected))
            if history.left and self._subject:
                raise ArchiveError(f"{series.name}: {history.left}")
            if history.left:
                result["left"][subject] = history.left
                continue
            new, total = history.new_rows, sum(run.rows for run in history.runs)
            done = RefreshResult(self._operation.type, subject, new, total, self._start, self.until)
            entries.append(coverage.log_entry(done, self.origin, history.breaks, history.runs))
            result["kept"][series.name] = new
        if entries:
            coverage.log_refreshes(self.tables, entries, self._writer.log)
        return result

    def _new_rows_of(self, history: _History, rows: pa.Table) -> pa.Table:
        """Return the rows of a subject that are not archived; none if they cannot follow."""
        times = schemas.to_milliseconds(rows[history.series.keys[0]]).to_numpy()
        if self.after:  # some of the rows after a cursor may be before the range
            rows = rows.slice(int(np.searchsorted(times, self._start)))
        # All rows of a time are in one part, so those of the last archived time are all here.
        last = history.runs[-1].last or 0
        if history.left or (history.expected and times[-1] < last):
            return rows.slice(0, 0)
        if history.expected:
            rows = coverage.rows_after(history.series, last, history.expected, rows)
        if history.expected:
            history.left = str(coverage.mismatch(history.series, last, history.expected))
            return rows.slice(0, 0)
        return rows

    def _history(self, subject: str) -> _History:
        """Return the history of a subject; at first find the run that its rows continue."""
        if subject in self._histories:
            return self._histories[subject]
        series = Series(self._operation, subject)
        runs, entries = self._writer.read_state(series)
        history = self._histories[subject] = _History(series, [*runs])
        texts: Sequence[str] = runs[-1].last_texts if runs else ()
        after = self.after
        if after and runs and runs[-1].last == after[0]:
            # The cursor divides the rows of the last archived time. A service may repeat the rows
            # of the cursor, or begin after them. Texts have no known order.
            archived = schemas.decode_texts(self._operation, [text.encode() for text in texts])
            parts = paging.ordered_parts(after)
            is_repeated = [
                key in self.keys or key[:parts] > after[:parts]
                for key in paging.row_keys(self._operation, archived)
            ]
            if is_repeated[-1]:
                history.expected = [*map(json.loads, itertools.compress(texts, is_repeated))]
                self._start = int(after[0])
                return history
        start = self._start
        begin, last = (runs[-1].start, runs[-1].last or 0) if runs else (start, 0)
        # Whether no row is missing between the archived rows and the start.
        since = min(begin, start) if last < start else start
        is_joined = begin == start or any(
            first <= since and start <= end + 1 for first, end in coverage.pulled_ranges(entries)
        )
        if not runs or (last < start and not is_joined):
            history.runs.append(Run(start, None))
        elif begin > start or not is_joined:
            history.left = (
                "the archive has rows after the beginning of the files. Ingest files in the order "
                "of their times, or refresh instead"
            )
        elif last >= start:
            history.expected = [*map(json.loads, texts)]
        return history
