"""Read archived rows: as the frames that fetching returns, or as scans on an engine.

The tables hold numbers as floats. Exact decimals are in the text of a row only: a scan with exact
numbers extracts them from there, on the engine.
"""

import functools
import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive import coverage, engines, schemas
from toolkit.archive.errors import explain_missing_library
from toolkit.archive.schemas import ANSWERS, RECORDS, Series
from toolkit.archive.storage import ArchiveTables, archive_present_ms
from toolkit.completeness.covered_ranges import find_covered_range, make_coverage
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.fields import record_columns, record_fields, table_columns
from toolkit.contract.value_kinds import EXACT_PRECISION, EXACT_SCALE, Numbers
from toolkit.errors import ArchiveError
from toolkit.fetch.pull import publish_remarks
from toolkit.fetch.remarks import coverage_remarks
from toolkit.frames import Collector
from toolkit.frames.answer_frames import cut_facts
from toolkit.frames.arrays import TEXT
from toolkit.times import Time, to_iso, to_ms

Engine = Literal["duckdb", "polars", "pandas", "spark"]
"""The library that reads a scan."""

_OWNER: Final = "account"
_TEXTS_AT_ONCE: Final = 20_000
_STORED_FAMILIES: Final = ("number", "time", "integer", "flag", "text")


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise a ValueError if a value is none of the choices of a Literal."""
    if value not in get_args(choices):
        forms = " or ".join(map(repr, get_args(choices)))
        raise ValueError(f"{name} must be {forms}, not {value!r}")


def latest_answer(tables: ArchiveTables, series: Series) -> dict[str, Any]:
    """Return the row of the latest stored answer of a series; empty if there is none."""
    rows = tables.read_rows(ANSWERS, series=series).to_pylist()
    return max(reversed(rows), key=operator.itemgetter("_fetched"), default={})


def state_frames(
    tables: ArchiveTables, series: Series, collector: Collector
) -> tuple[pd.DataFrame, ...]:
    """Return the frames of the latest archived answer."""
    operation, numbers, answer = series.operation, collector.numbers, latest_answer(tables, series)
    if not answer:
        raise ArchiveError(
            f"{tables.location} has no answer to {series.name}. Refresh {operation.type} first"
        )
    headers, parameters = json.loads(answer["_headers"]), series.parameters
    decoded = decode(
        operation, 200, headers, answer["_body"], numbers=numbers, parameters=parameters
    )
    collector.add((decoded,) if operation.binary else answer_rows(operation, decoded, parameters))
    provenance = _make_provenance(tables, series, numbers, answer)
    facts = {"complete": "latest" if operation.latest else "yes"}
    if operation.paging == "none":
        facts |= cut_facts(operation, collector.rows)
    return collector.frames(provenance | facts)


def history_frames(
    tables: ArchiveTables,
    series: Series,
    start: Time | None,
    end: Time | None,
    collector: Collector,
) -> tuple[pd.DataFrame, ...]:
    """Return the frames of a history, and state whether the range is complete."""
    operation, numbers = series.operation, collector.numbers
    log_handle = tables.open_table(schemas.PULLS)  # first: rows are written before their log entry
    log = tables.read_rows(log_handle or schemas.PULLS, series=series).to_pylist()
    if not log:
        raise ArchiveError(
            f"{tables.location} has no rows of {series.name}. Refresh {operation.type} first"
        )
    now = max(entry["until"] for entry in log)
    first, last = (None if time is None else to_ms(time, now_ms=now) for time in (start, end))
    handle = tables.open_table(series.table)
    is_plain = numbers == "float" and collector.extra == "drop"
    columns = _stored_columns(tables, series, handle, first, last) if is_plain else None
    if columns is not None:
        collector.add((columns,))
    else:
        rows, order = ordered_rows(tables, series, handle, first, last, ["_json"])
        texts = rows["_json"].cast(pa.large_binary())
        for at in range(0, len(order), _TEXTS_AT_ONCE):  # a million texts need much memory
            some = texts.take(order[at : at + _TEXTS_AT_ONCE]).to_pylist()
            schemas.collect_texts(collector, series, some)
    ranges, newest = coverage.complete_ranges(log), max(log, key=operator.itemgetter("_fetched"))
    provenance = _make_provenance(tables, series, numbers, newest, start=first, end=last)
    provenance["covered"] = [tuple(map(to_iso, span)) for span in ranges]
    frames = collector.frames(provenance)
    moments, found = frames[0][series.keys[0]], collector.rows
    frame_times = [to_ms(moments.min()), to_ms(moments.max())] if len(moments) else []
    known, present = make_coverage(ranges, frame_times), archive_present_ms(tables, log_handle)
    proved = find_covered_range(known, operation, first, last, present)
    if (first, last) != (None, None):
        found = tables.read_rows(handle or series.table, ["_row"], series=series).num_rows
    # The refresh log has the breaks that refreshes found, and what the service did not keep.
    reasons = [entry for entry in log if entry.get("why")]
    why = [*dict.fromkeys(entry["why"] for entry in reasons)]
    if message := coverage.missing_rows_message(found, coverage.count_logged_rows(log)):
        why = [f"{message}; toolkit archive verify shows where"]
    elif not proved:
        unproved = (
            "the archive does not prove that this range is complete. The entry covered lists the "
            "complete ranges. A refresh requests what was never pulled"
        )
        why = [unproved, *why]
    else:
        publish_remarks(operation, coverage_remarks(proved[1], last, present), frames)
        starts = [entry["start"] for entry in reasons if not entry.get("breaks")]
        why = why if first is None and proved[0] in starts else []
    facts = {"complete": "no", "why": "; ".join(why)} if why else {"complete": "yes"}
    frames[0].attrs["toolkit"] |= facts
    return frames


def _make_provenance(
    tables: ArchiveTables,
    series: Series,
    numbers: Numbers,
    origin: Mapping[str, Any],
    **times: int | None,
) -> dict[str, Any]:
    given_times = {name: time for name, time in times.items() if time is not None}
    return {
        "operation": series.operation.type,
        "parameters": {**series.parameters, **given_times},
        "numbers": numbers,
        "source": origin["_source"],
        "simulated": origin["_simulated"],
        "asked_at": to_iso(origin["_fetched"]),
        "archive": tables.location,
        "covered": [],
    }


def _stored_columns(
    tables: ArchiveTables, series: Series, handle: Any, start: int | None, end: int | None
) -> dict[str, Any] | None:
    """Return the columns of a history from the table, without decoding any text.

    Return None if the table does not have every value: nested values are in the text only, and so
    are fields that the writer of a row did not know.
    """
    columns = table_columns(series.operation.tables[0])
    if any(column.kind.family not in _STORED_FAMILIES for column in columns):
        return None
    names = ["_columns", *(column.name for column in columns)]
    rows, order = ordered_rows(tables, series, handle, start, end, names)
    if not {*names} <= {*rows.column_names} or (
        {*pc.unique(rows["_columns"]).to_pylist()} - {schemas.column_set_id(series.table)}
    ):
        return None
    is_ordered = order.equals(pa.array(np.arange(len(order)), order.type))
    values = {}
    for column in columns:
        array = rows[column.name] if is_ordered else rows[column.name].take(order)
        rows = rows.drop_columns([column.name])  # frees its memory
        if column.kind.family == "time":
            whole = schemas.to_milliseconds(array)
            values[column.name] = whole.fill_null(np.iinfo(np.int64).min).to_numpy()
        else:  # one array, with text in the type of frames, so that nothing is copied later
            is_text = pa.types.is_string(array.type)
            values[column.name] = (array.cast(TEXT) if is_text else array).combine_chunks()
    return values


def ordered_rows(
    tables: ArchiveTables,
    series: Series,
    handle: Any,
    start: int | None,
    end: int | None,
    columns: list[str],
) -> tuple[pa.Table, pa.Array]:
    """Return columns of a history, and the positions of its rows in the operation's order."""
    sort_keys = [*series.keys, "_part", "_row"]
    limits = _time_limits(series.keys[0], start, end)
    names = list(dict.fromkeys([*sort_keys, *columns]))
    condition = functools.reduce(operator.and_, limits) if limits else None
    rows = tables.read_rows(handle or series.table, names, condition, series)
    order = pc.sort_indices(rows, [(name, "ascending") for name in sort_keys])
    return rows.drop_columns([name for name in sort_keys if name not in columns]), order


def _time_limits(column: str, start: int | None, end: int | None) -> list[Any]:
    """Return the conditions of a time range in Unix milliseconds, both ends inclusive."""
    return [
        compare(ds.field(column), pa.scalar(time * 1000, pa.timestamp("us", "UTC")))
        for compare, time in ((operator.ge, start), (operator.le, end))
        if time is not None
    ]


def scan_table(
    tables: ArchiveTables,
    name: str,
    values: Mapping[str, str],
    times: tuple[int | None, int | None],
    columns: Sequence[str] | None,
    engine: Engine,
    session: Any = None,
    numbers: Numbers = "float",
) -> Any:
    """Return the rows of a table on an engine; see `Archive.scan`.

    `values` maps a column to the value that it must have. `times` are Unix milliseconds, both ends
    inclusive. `session` is the SparkSession of ``"spark"``.
    """
    check_choice("numbers", numbers, Numbers)
    check_choice("engine", engine, Engine)
    if (engine == "spark") != (session is not None):
        raise ValueError('session= and engine="spark" belong together: pass both, or none')
    if name not in RECORDS and times != (None, None):
        raise ArchiveError(f"{name} has no range of time: leave out start and end")
    handle = tables.open_table(name)
    dataset = (
        ds.dataset(schemas.SCHEMAS[name].empty_table())
        if handle is None
        else tables.open_dataset(handle)
    )
    # A ledger row names the source of a transfer as its user, so its account has another column.
    known = [*dataset.schema.names, *([_OWNER] if name == "ledger" else [])]
    shown = list(columns or [column for column in known if column != "_json"])
    if unknown := set(shown) - set(known):
        raise ArchiveError(
            f"{name} has no column {', '.join(sorted(unknown))}: it has {', '.join(known)}"
        )
    limits = [ds.field(column) == value for column, value in values.items()]
    limits += _time_limits(schemas.time_column_name(name), *times) if name in RECORDS else []
    filtered = dataset.filter(functools.reduce(operator.and_, limits)) if limits else dataset
    with tables.translate_errors(tables.table_uri(name)), explain_missing_library():
        if engine == "spark":
            rows = engines.spark_frame(session, dataset.schema.empty_table())
            if files := handle.file_uris() if handle else []:  # Spark itself reads them
                rows = session.read.schema(rows.schema).parquet(*files)
            for column, value in values.items():
                rows = rows.filter(rows[column] == value)
            for sign, limit in zip((">=", "<="), times, strict=True):
                if limit is not None:
                    time = schemas.time_column_name(name)
                    rows = rows.filter(f"`{time}` {sign} timestamp_millis({limit})")
            made = _scanned_columns(name, shown, numbers, "get_json_object", "`")
            return rows.selectExpr(*made)
        import duckdb

        made = _scanned_columns(name, shown, numbers, "json_extract_string", '"')
        if engine == "duckdb":
            return duckdb.from_arrow(filtered).select(", ".join(made))
        database = duckdb.connect()
        database.execute("SET TimeZone = 'UTC'")
        relation = database.from_arrow(filtered).select(", ".join(made))
        if engine == "polars":
            return relation.pl(lazy=True)
        return relation.to_arrow_table().to_pandas(
            types_mapper=lambda dtype: pd.ArrowDtype(dtype) if pa.types.is_decimal(dtype) else None
        )


def _scanned_columns(
    table: str, shown: Sequence[str], numbers: Numbers, extract: str, quote: str
) -> list[str]:
    """Return columns of a table as expressions of SQL.

    Exact numbers come from the text of a row. The history of an account does not repeat the account
    in each row, so it is the subject.
    """
    fields = record_fields(RECORDS[table]) if table in RECORDS else ()
    older = {field.older_place_of: field.wire for field in fields}
    columns = {column.name: column for column in record_columns(RECORDS[table])} if fields else {}
    histories = schemas.table_operations(table)
    of_users = ", ".join(f"'{each.type}'" for each in histories if "user" in each.subject)
    made = []
    for name in shown:
        expression, column = f"{quote}{name}{quote}", columns.get(name)
        if column is not None and column.kind.family == "number" and numbers != "float":
            places = [column.wire, *([older[name]] if name in older else [])]
            texts = ", ".join(f"{extract}(_json, '$.{place}')" for place in places)
            type = f"DECIMAL({EXACT_PRECISION}, {EXACT_SCALE})" if numbers == "exact" else "STRING"
            expression = f"CAST(coalesce({texts}) AS {type})"
        elif name == _OWNER and table == "ledger":
            expression = "_subject"
        elif column is not None and column.wire == "user" and of_users:
            is_of_user = f"_operation IN ({of_users})"
            expression = f"CASE WHEN {is_of_user} THEN _subject ELSE {expression} END"
        made.append(f"{expression} AS {quote}{name}{quote}")
    return made
