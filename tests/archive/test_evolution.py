"""Records grow: what an older version archived is read and added to, and the other way round."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import toolkit as tk
from tests.archive.world import START, USER, Changed, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.archive.coverage import Refreshed, log_refresh
from toolkit.archive.read import read_texts
from toolkit.archive.schemas import SCHEMAS, RowOrigin, arrow_rows
from toolkit.archive.series import Series
from toolkit.archive.storage import ArchiveTables
from toolkit.client import Session
from toolkit.contract.deviations import UnknownField
from toolkit.contract.operations import OPERATIONS

FILLS = fills_of(300)
NEWER = ("venue", "twap_id", "_columns")  # columns that the older version does not know
ORIGIN = RowOrigin("test", True, 0)
SERIES = Series(OPERATIONS["userFillsByTime"], USER, {"user": USER})


def exchange_texts(session: Session) -> list[bytes]:
    """Give the rows as they stand on the wire."""
    answer = session.ask(OPERATIONS["userFillsByTime"], {"user": USER, "start": START})
    return [json.dumps(row, separators=(",", ":")).encode() for row in json.loads(answer.content)]


def older_archive(path: Path, texts: list[bytes]) -> archive.Archive:
    """Write a table as a version did that knew fewer columns."""
    import deltalake

    tables = ArchiveTables(str(path))
    schema = pa.schema([one for one in SCHEMAS["fills"] if one.name not in NEWER])
    deltalake.DeltaTable.create(
        tables.table_uri("fills"), schema=deltalake.Schema.from_arrow(schema)
    )
    rows = arrow_rows(SERIES, texts, START, 0, ORIGIN).select(schema.names)
    counts = {f"{SERIES.name} from {START}": len(texts)}
    tables.append_rows(tables.open_table("fills"), rows, counts=counts)
    last, count = json.loads(texts[-1])["time"], len(texts)
    log_refresh(tables, Refreshed("userFillsByTime", USER, count, count, START, last), ORIGIN)
    return archive.open(path)


def changed(change: Callable[[dict[str, Any]], None]) -> Session:
    """Connect to a service whose fills are written otherwise."""

    def rewrite(content: bytes) -> bytes:
        rows = json.loads(content)
        for row in rows:
            change(row)
        return json.dumps(rows, separators=(",", ":")).encode()

    return session_of(FILLS, through=lambda inner: Changed(inner, rewrite))


def test_an_archive_that_lacks_a_column_is_read_and_added_to(tmp_path: Path) -> None:
    def without(row: dict[str, Any]) -> None:
        del row["twapId"]

    kept = older_archive(tmp_path, exchange_texts(changed(without))[:200])
    # Before anything is added: the table has no such column; frames have, and it is missing.
    assert not {*NEWER} & {*kept.scan("fills", engine="pandas").columns}
    early = kept_frame(kept)
    assert len(early) == 200
    assert early["twap_id"].isna().all()
    assert early["venue"].isna().all()
    assert kept.verify() == []
    # The same service, newer: rows of both kinds stand together.
    newer = session_of(FILLS)
    assert kept.refresh(tk.user_fills_by_time, USER, session=newer).rows == 100
    scanned = kept.scan("fills", engine="pandas")
    assert {*NEWER} <= {*scanned.columns}
    assert scanned["_columns"].isna().sum() == 200
    assert scanned["venue"].isna().all()
    assert kept.verify() == []
    fetched = tk.user_fills_by_time(USER, START, session=newer)
    pd.testing.assert_frame_equal(kept_frame(kept), fetched)
    assert kept.compact() > 0
    assert kept.verify() == []


def test_a_field_that_was_unknown_when_it_came_is_in_frames_now(tmp_path: Path) -> None:
    """An older version kept it in the text alone; scans have no column of it, frames do."""

    def with_venue(row: dict[str, Any]) -> None:
        row["venue"] = "ab"

    kept = older_archive(tmp_path, exchange_texts(changed(with_venue)))
    assert kept.frame(tk.user_fills_by_time, USER)["venue"].eq("ab").all()
    assert kept.compact() == 0
    assert [one.kind for one in kept.verify()] == []
    # Once the table has the column, the older rows lack it: said, and no damage.
    more = session_of(fills_of(310))
    kept.refresh(tk.user_fills_by_time, USER, session=more)
    kept.compact()
    assert kept.frame(tk.user_fills_by_time, USER)["venue"].eq("ab").sum() == 300
    assert kept.scan("fills", columns=["venue"], engine="pandas")["venue"].isna().all()
    assert [(one.kind, one.severity) for one in kept.verify()] == [("typed", "notice")]


def kept_frame(kept: archive.Archive) -> pd.DataFrame:
    """Read the rows; an archive that was written here by hand has no notes for `Archive.frame`."""
    rows = [json.loads(text) for text in read_texts(kept.tables, SERIES)]
    made = tk.frame("userFillsByTime", rows)
    assert isinstance(made, pd.DataFrame)
    return made


@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_a_field_that_this_version_does_not_know_is_kept_as_it_came(
    tmp_path: Path, numbers: Any
) -> None:
    def with_more(row: dict[str, Any]) -> None:
        row["newField"] = {"deep": ["1.50", None, 2]}

    kept, session = archive.open(tmp_path), changed(with_more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownField)
        kept.refresh(tk.user_fills_by_time, USER, START, session=session)
        assert [text for _, text in rows_of(kept)] == sorted(
            text.decode() for text in exchange_texts(session)
        )
        made = kept.frame(tk.user_fills_by_time, USER, numbers=numbers)
    plain = tk.user_fills_by_time(USER, START, numbers=numbers, session=session_of(FILLS))
    pd.testing.assert_frame_equal(made, plain)
    assert kept.verify() == []


def test_columns_that_a_newer_version_wrote_do_not_break_this_one(tmp_path: Path) -> None:
    import deltalake

    tables = ArchiveTables(str(tmp_path))
    schema = SCHEMAS["fills"].append(pa.field("liquidity_score", pa.float64()))
    deltalake.DeltaTable.create(
        tables.table_uri("fills"), schema=deltalake.Schema.from_arrow(schema)
    )
    kept, session = archive.open(tmp_path), session_of(FILLS)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session)
    scanned = kept.scan("fills", engine="pandas")
    assert scanned["liquidity_score"].isna().all()
    fetched = tk.user_fills_by_time(USER, START, session=session)
    pd.testing.assert_frame_equal(kept.frame(tk.user_fills_by_time, USER), fetched)
    assert kept.verify() == []
    assert kept.freeze().startswith("f")
