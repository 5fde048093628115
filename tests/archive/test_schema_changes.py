"""Archives of older and newer versions with other columns can be read and refreshed."""

import json
import warnings

import deltalake
import pandas as pd
import pyarrow as pa

import toolkit as tk
from tests.archive.world import START, USER, ChangedAnswers, archived_rows, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.coverage import RefreshResult, log_entry, log_refreshes
from toolkit.archive.schemas import SCHEMAS, RowOrigin, Series, decoded_rows, place_rows
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import request_body
from toolkit.errors import UnknownField

FILLS = make_fills(300)
NEWER = ("venue", "twap_id", "_columns")  # columns that the older version does not have
ORIGIN = RowOrigin("test", True, 0)
SERIES = Series(OPERATIONS["userFillsByTime"], USER, {"user": USER})


def exchange_texts(session):
    """Return the text of each row on the wire."""
    answer = session.ask(
        SERIES.operation, request_body(SERIES.operation, {"user": USER, "start": START})
    )
    return [json.dumps(row, separators=(",", ":")).encode() for row in json.loads(answer.content)]


def older_archive(path, texts):
    """Return an archive with a table of an older version with fewer columns."""
    tables = ArchiveTables(str(path))
    schema = pa.schema([field for field in SCHEMAS["fills"] if field.name not in NEWER])
    deltalake.DeltaTable.create(
        tables.table_uri("fills"), schema=deltalake.Schema.from_arrow(schema)
    )
    rows = place_rows(SERIES, decoded_rows(SERIES, texts, ORIGIN), START, 0)
    rows = rows.select(schema.names)
    counts = {f"{SERIES.name} from {START}": len(texts)}
    tables.append_rows(tables.open_table("fills"), rows, counts=counts)
    last, count = json.loads(texts[-1])["time"], len(texts)
    log_refreshes(
        tables,
        [log_entry(RefreshResult("userFillsByTime", USER, count, count, START, last), ORIGIN)],
    )
    return open_archive(path)


def changed_session(change):
    """Return a session of a service with changed fills."""

    def rewrite(content):
        rows = json.loads(content)
        for row in rows:
            change(row)
        return json.dumps(rows, separators=(",", ":")).encode()

    return fill_session(FILLS, through=lambda inner: ChangedAnswers(inner, rewrite))


def test_older_archive_gets_new_columns(tmp_path):
    def without(row):
        del row["twapId"]

    archive = older_archive(tmp_path, exchange_texts(changed_session(without))[:200])
    # The table does not have the column yet; in frames it is there without values.
    assert not {*NEWER} & {*archive.scan("fills", engine="pandas").columns}
    early = frame_of_texts(archive)
    assert len(early) == 200
    assert early["twap_id"].isna().all()
    assert early["venue"].isna().all()
    assert archive.verify() == []
    # A refresh from a newer service adds the column.
    newer = fill_session(FILLS)
    assert archive.refresh(tk.user_fills_by_time, USER, session=newer).rows == 100
    scanned = archive.scan("fills", engine="pandas")
    assert {*NEWER} <= {*scanned.columns}
    assert scanned["_columns"].isna().sum() == 200
    assert scanned["venue"].isna().all()
    assert archive.verify() == []
    fetched = tk.user_fills_by_time(USER, START, session=newer)
    pd.testing.assert_frame_equal(frame_of_texts(archive), fetched)
    assert archive.compact() > 0
    assert archive.verify() == []


def test_field_unknown_when_archived_is_in_frames(tmp_path):
    """An older version has it in the text only: frames have the value, scans do not."""

    def with_venue(row):
        row["venue"] = "ab"

    archive = older_archive(tmp_path, exchange_texts(changed_session(with_venue)))
    assert archive.frame(tk.user_fills_by_time, USER)["venue"].eq("ab").all()
    assert archive.compact() == 0
    assert [finding.kind for finding in archive.verify()] == []
    # When the table has the column, the missing values are a notice.
    more = fill_session(make_fills(310))
    archive.refresh(tk.user_fills_by_time, USER, session=more)
    archive.compact()
    assert archive.frame(tk.user_fills_by_time, USER)["venue"].eq("ab").sum() == 300
    assert archive.scan("fills", columns=["venue"], engine="pandas")["venue"].isna().all()
    assert [(finding.kind, finding.severity) for finding in archive.verify()] == [
        ("typed", "notice")
    ]


def frame_of_texts(archive):
    """Return the archived rows as a frame, decoded from their texts."""
    texts = archive.scan("fills", columns=["_json", "_row"], engine="pandas").sort_values("_row")
    rows = [json.loads(text) for text in texts["_json"]]
    return tk.frame("userFillsByTime", rows)


def test_unknown_field_is_not_in_frames(tmp_path):
    def with_more(row):
        row["newField"] = {"deep": ["1.50", None, 2]}

    archive, session = open_archive(tmp_path), changed_session(with_more)
    call, plain = (tk.user_fills_by_time, USER), fill_session(FILLS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownField)
        archive.refresh(*call, START, session=session)
        texts = sorted(text.decode() for text in exchange_texts(session))
        assert [text for _, text in archived_rows(archive)] == texts
        for numbers in ("float", "exact", "text"):
            fetched = tk.user_fills_by_time(USER, START, numbers=numbers, session=plain)
            pd.testing.assert_frame_equal(archive.frame(*call, numbers=numbers), fetched)
        # Without the field, the rows still equal the archived ones.
        more = fill_session(make_fills(310))
        assert archive.refresh(*call, session=more).rows == 10
    assert archive.verify() == []


def test_column_of_newer_version_is_kept(tmp_path):
    tables = ArchiveTables(str(tmp_path))
    schema = SCHEMAS["fills"].append(pa.field("liquidity_score", pa.float64()))
    deltalake.DeltaTable.create(
        tables.table_uri("fills"), schema=deltalake.Schema.from_arrow(schema)
    )
    archive, session = open_archive(tmp_path), fill_session(FILLS)
    archive.refresh(tk.user_fills_by_time, USER, START, session=session)
    scanned = archive.scan("fills", engine="pandas")
    assert scanned["liquidity_score"].isna().all()
    fetched = tk.user_fills_by_time(USER, START, session=session)
    pd.testing.assert_frame_equal(archive.frame(tk.user_fills_by_time, USER), fetched)
    assert archive.verify() == []
    assert archive.freeze().startswith("f")
