"""What was fetched before there was an archive: recorded answers, and frames."""

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import msgspec
import pandas as pd
import pyarrow as pa

from toolkit.archive.coverage import Refreshed, covered, note
from toolkit.archive.errors import Beaten
from toolkit.archive.refresh import append_answer
from toolkit.archive.runs import Overlap, Run, runs_of
from toolkit.archive.schemas import Origin, arrow_rows, table_of
from toolkit.archive.series import Series, is_history, operation_named, run_name, series_of
from toolkit.archive.storage import Tables
from toolkit.contract.answers import decode
from toolkit.contract.columns import Column, record_columns, table_columns
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.paging import PageReader, key_getter
from toolkit.contract.records import Record
from toolkit.contract.requests import make_cursor, parse_cursor
from toolkit.errors import ArchiveError, Incomplete, ToolkitError
from toolkit.frames import provenance
from toolkit.times import to_ms

__all__ = ["Stretch", "ingest_frame", "ingest_recordings", "page_size"]

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows of a history that follow each other; make one with `of_page` or `of_whole`.

    Attributes
    ----------
    series : Series
        Whose.
    texts : sequence of bytes
        The JSON text of each row.
    keys : sequence of tuple
        The key of each, ascending.
    after : tuple or None
        The cursor that they follow; None where they begin with a time.
    start, until : int
        Of which range, both ends inclusive, they are all there are; none if it ends before it
        begins.
    """

    series: Series
    texts: Sequence[bytes]
    keys: Sequence[Key]
    after: Key | None
    start: int
    until: int

    @classmethod
    def of_page(cls, series: Series, texts: Sequence[bytes], asked: Mapping[str, Any]) -> "Stretch":
        """Take one page, as a request with these parameters was answered.

        Raises
        ------
        ArchiveError
            If the rows do not ascend.
        """
        rows = _rows(series.operation, texts)
        made = _made(series, texts, rows, asked)
        is_whole = _ends_whole(series.operation, rows, made.after, asked)
        return made if is_whole else replace(made, until=made.until - 1)

    @classmethod
    def of_whole(
        cls, series: Series, texts: Sequence[bytes], asked: Mapping[str, Any]
    ) -> "Stretch":
        """Take rows of which it is known that none is missing, up to the last.

        Raises
        ------
        ArchiveError
            If the rows do not ascend.
        """
        return _made(series, texts, _rows(series.operation, texts), asked)

    def new_run(self) -> tuple[Run, list[bytes]]:
        """Begin a run, and give its rows."""
        return Run(self.start, None), self._from(self.start)

    def beyond(self, run: Run, proved: int) -> list[bytes]:
        """Give the rows that a run lacks.

        Parameters
        ----------
        run : Run
            The last run of the series, with rows.
        proved : int
            Up to when it is known to be complete.

        Raises
        ------
        ArchiveError
            If rows may be missing between, or archived rows are not among these.
        """
        operation = self.series.operation
        archived = [key_getter(operation)(row) for row in _rows(operation, run.again)]
        if self.until < run.start:
            raise ArchiveError(
                f"{self.series.name}: the rows end before what is archived begins: ingest the "
                "oldest page first, or refresh with an earlier start"
            )
        if not self._joins(archived[-1], proved):
            where = make_cursor(self.after) if self.after else self.start
            raise ArchiveError(
                f"{self.series.name}: the rows begin at {where}, and what is archived is complete "
                f"up to {proved} only, with a gap between: refresh instead"
            )
        again = [text for text, key in zip(run.again, archived, strict=True) if self._shows(key)]
        overlap = Overlap(self.series, replace(run, again=tuple(again)))
        new = list(overlap.new(self._from(archived[-1][0])))
        if new:  # else the rows may end where the archive goes on
            overlap.check()
        return new

    def _from(self, time: int) -> list[bytes]:
        return [text for text, key in zip(self.texts, self.keys, strict=True) if key[0] >= time]

    def _joins(self, last: Key, proved: int) -> bool:
        """Whether nothing can be missing between the archived rows and these.

        The last archived group may be cut: then only what shows it whole joins on.
        """
        return self._shows(last) or self.start <= proved + 1

    def _shows(self, key: Key) -> bool:
        """Whether every row of this key, or a later one, would be among these.

        Nobody says whether a page begins with its cursor's rows; if they came, it does.
        """
        if self.after is None:
            return bool(key[0] >= self.start)
        return key > self.after or (key == self.after and key in self.keys[:1])


def page_size(operation: Operation, asked: Mapping[str, Any]) -> int | None:
    """Give the most rows that the page of a request holds; None where nobody says."""
    page = operation.page
    if page is None:
        return None
    asked_for: int = asked.get(page.python) or page.default
    return asked_for if page.most is None else min(asked_for, page.most)


def _made(
    series: Series, texts: Sequence[bytes], rows: Sequence[Any], asked: Mapping[str, Any]
) -> Stretch:
    keys = list(map(key_getter(series.operation), rows))
    if any(two < one for one, two in itertools.pairwise(keys)):
        raise ArchiveError(f"{series.name}: the rows do not ascend in time")
    after, start = None, asked.get("start")
    if asked.get("cursor"):
        after = parse_cursor(series.operation, asked["cursor"])
        start = int(after[0]) + 1  # of the cursor's own moment only a part comes after it
    elif start is None:
        start = keys[0][0] if keys else 0
    until = keys[-1][0] if keys else start - (after is not None)
    return Stretch(series, texts, keys, after, start, until)


def _ends_whole(
    operation: Operation, rows: Sequence[Any], after: Key | None, asked: Mapping[str, Any]
) -> bool:
    """Whether the last group of a page is whole, as far as one who reads on could tell."""
    size = page_size(operation, asked)
    try:
        return PageReader(operation, size, size, kept=after).read(rows).stop == len(rows)
    except Incomplete:
        return False


def _rows(operation: Operation, texts: Sequence[bytes]) -> Sequence[Any]:
    rows: Sequence[Any] = decode(operation, 200, {}, b"[%b]" % b",".join(texts))
    return rows


_FACTS: Final = frozenset({"start", "end", "cursor", "page_size"})
_TRIES: Final = 50


def ingest_recordings(tables: Tables, path: Path) -> dict[str, dict[str, Any]]:
    """Keep recorded answers; see `Archive.ingest`."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    kept: dict[str, int] = {}
    left: dict[str, str] = {} if files else {str(path): "there is no file *.json in it"}
    for file in files:
        try:
            kept[file.name] = _ingest_file(tables, file)
        except (ToolkitError, TypeError, KeyError, OSError, msgspec.DecodeError) as error:
            left[file.name] = str(error) or type(error).__name__
    return {"kept": kept, "left": left}


class _Recording(msgspec.Struct):
    request: dict[str, Any]
    response: msgspec.Raw
    status: int = 200
    left_out: int = 0


def _ingest_file(tables: Tables, file: Path) -> int:
    recording = msgspec.json.decode(file.read_bytes(), type=_Recording)
    operation = operation_named(str(recording.request.get("type")))
    if recording.status != 200 or operation.binary:
        raise ArchiveError(f"it is no answer of {operation.type} in JSON")
    if recording.left_out:
        raise ArchiveError(
            f"{recording.left_out:,} rows of the answer are not in the file, as its left_out says: "
            "what it shows is not all between its first row and its last"
        )
    named = _parameters(operation, recording.request)
    body, at = bytes(recording.response), file.stat().st_mtime_ns // 1_000_000
    origin = Origin(f"recording {file.name}", False, at)
    if not is_history(operation):
        series = series_of(operation, (), named)
        answer = decode(operation, 200, {}, body, parameters=series.parameters)
        size = page_size(operation, named)
        if operation.paging == "backward" and size is not None and len(answer) >= size:
            raise ArchiveError(
                f"{series.name}: a full page of {size} rows; nothing shows that there are no more: "
                "refresh instead"
            )
        return append_answer(tables, series, body, {}, origin)
    kept = {name: value for name, value in named.items() if name not in _FACTS}
    texts = [bytes(one) for one in msgspec.json.decode(body, type=list[msgspec.Raw])]
    page = Stretch.of_page(series_of(operation, (), kept), texts, named)
    return _append(tables, page, origin).rows


def _parameters(operation: Operation, request: dict[str, Any]) -> dict[str, Any]:
    return {
        operation.by_wire[name].python: value
        for name, value in request.items()
        if name in operation.by_wire and value is not None
    }


def ingest_frame(tables: Tables, frame: pd.DataFrame) -> Refreshed:
    """Keep a fetched history; see `Archive.ingest`."""
    facts = provenance(frame)
    operation = OPERATIONS[facts["operation"]]
    if not is_history(operation) or facts.get("complete") != "yes":
        raise ArchiveError(
            f"{operation.type}: only complete histories are ingested from frames, since a frame "
            "of anything else does not say what was left out: refresh instead"
        )
    given = facts["parameters"]
    if not given.keys() <= {one.python for one in operation.parameters}:
        raise ArchiveError(
            f"{operation.type}: the frame is of several questions: ingest each of its parts"
        )
    named = {
        one.python: given[one.python]
        for one in operation.parameters
        if one.python in given and one.python not in _FACTS
    }
    series = series_of(operation, (), named)
    texts = list(map(msgspec.json.encode, _wire_rows(operation, frame)))
    origin = Origin(facts["source"], facts["simulated"], to_ms(facts["asked_at"]))
    return _append(tables, Stretch.of_whole(series, texts, given), origin)


def _wire_rows(operation: Operation, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Write rows as the wire has them; what is missing in a cell is left out."""
    known = table_columns(operation.tables[0])
    if lacking := [one.name for one in known if one.name not in frame]:
        raise ArchiveError(
            f"{operation.type}: the frame lacks {', '.join(lacking)}: ingest it as it was fetched"
        )
    cells = {one.name: pa.Array.from_pandas(frame[one.name]).to_pylist() for one in known}
    rows = [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]
    return [_record(known, row) for row in rows]


def _record(columns: Sequence[Column], cells: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for column in columns:
        if (value := cells[column.name]) is None:
            continue
        place = made
        *outer, last = column.wire.split(".")
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = _value(column.kind.family, column.type, value)
    return made


def _value(family: str, type: Any, value: Any) -> Any:
    """Write a cell as the wire has it, the records and lists inside it too."""
    if family == "nested":
        return _nested(type, value)
    if family == "time":
        return pd.Timestamp(value).value // 1_000_000
    if family == "number":
        return _number(value) if type is str else float(value)
    return value


def _nested(type: Any, value: Any) -> Any:
    """Undo `toolkit.frames.cells.cell_value`."""
    parts = get_args(type)
    if get_origin(type) is list:
        return [_nested(parts[0], one) for one in value]
    if get_origin(type) is tuple:
        return [_nested(part, one) for part, one in zip(parts, value.values(), strict=True)]
    if parts or not issubclass(type, Record):
        return _number(value)
    # A record inside one of its own kind is JSON in the cell.
    return (
        msgspec.json.decode(value)
        if isinstance(value, str)
        else _record(record_columns(type), value)
    )


def _number(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return value if isinstance(value, str) else repr(value)


def _append(tables: Tables, rows: Stretch, origin: Origin) -> Refreshed:
    """Append rows that are at hand, and note of which range they are all there are.

    Raises
    ------
    ArchiveError
        If they do not join on to what is archived.
    """
    series = rows.series
    for _ in range(_TRIES):
        with contextlib.suppress(Beaten):
            done = _append_new(tables, rows, origin)
            note(tables, done, origin)
            return done
    raise ArchiveError(f"{series.name}: other processes keep writing to the archive; try again")


def _append_new(tables: Tables, rows: Stretch, origin: Origin) -> Refreshed:
    """Append what is not archived to the last run, or as the first."""
    series = rows.series
    handle = tables.handle_to_write(table_of(series.operation))
    runs = runs_of(tables, handle, series)
    if runs:
        run = runs[-1]
        new = rows.beyond(run, _proved(tables, series, run))
    else:
        run, new = rows.new_run()
    count = run.rows + len(new)
    counts = {series.name: count, run_name(series, run.start): count}
    tables.append(
        handle,
        arrow_rows(series, new, run.start, run.rows, origin),
        counts=counts,
        notes={"series": series.name},
    )
    total = sum(one.rows for one in runs) + len(new)
    type, subject = series.operation.type, series.subject
    return Refreshed(type, subject, len(new), total, run.start, rows.until)


def _proved(tables: Tables, series: Series, run: Run) -> int:
    """Give the moment up to which a run is noted to be complete."""
    ends = [until for start, until in covered(tables, series) if start <= run.start]
    return max(ends, default=run.start - 1)
