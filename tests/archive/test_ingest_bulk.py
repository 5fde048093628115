"""Bulk ingest: Parquet files of somebody else, with the rows of many accounts."""

from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.contract.columns import record_columns
from toolkit.contract.records import Fill
from toolkit.errors import ArchiveError
from toolkit.times import to_ms

WIRE = {column.name: column.wire for column in record_columns(Fill)}
MIDDLE = "2025-09-29T12:00"


@pytest.fixture(scope="module", name="session")
def _session() -> tk.Session:
    return tk.local(seed=7, size="tiny", default=False)


def write_files(
    folder: Path, session: tk.Session, users: list[str], start: object, end: object
) -> Path:
    """Write fills with the names of the wire, ordered by time, as a node publishes them."""
    folder.mkdir(exist_ok=True)
    frames = [
        tk.user_fills_by_time(user, start, end, numbers="text", session=session).assign(
            trader=user.upper().replace("0X", "0x")
        )
        for user in users
    ]
    rows = pd.concat([frame.astype(object) for frame in frames]).sort_values("time", kind="stable")
    rows["time"] = [to_ms(time) for time in rows["time"]]
    rows = rows.rename(columns=WIRE | {"px": "price"}).convert_dtypes(dtype_backend="pyarrow")
    rows.attrs = {}
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        part.to_parquet(folder / f"{number}.parquet")
    return folder


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
def test_bulk_files_become_histories(tmp_path: Path, session: tk.Session) -> None:
    users, now = session.world["users"][:6], session.now_ms()
    archive = open_archive(tmp_path / "kept")
    columns = {"user": "trader", "px": "price"}
    archive.refresh(tk.user_fills_by_time, users[0], 0, MIDDLE, session=session)
    for start, end in ((0, to_ms(MIDDLE)), (to_ms(MIDDLE) + 1, now)):
        files = write_files(tmp_path / str(end), session, users, start, end)
        for is_first in (True, False):
            done = archive.ingest_bulk(files, tk.user_fills_by_time, start, end, columns=columns)
            assert done["left"] == {}
            assert (sum(done["kept"].values()) > 0) == is_first
    for user in users:
        fetched = tk.user_fills_by_time(user, 0, numbers="text", session=session)
        kept = archive.frame(tk.user_fills_by_time, user, numbers="text")
        pd.testing.assert_frame_equal(kept, fetched)
        assert tk.provenance(kept)["complete"] == "yes"
    refreshed = archive.refresh_many(tk.user_fills_by_time, users, session=session)
    assert sum(each.rows for each in refreshed) == 0
    assert archive.verify() == []


def test_bulk_files_after_archived_rows(tmp_path: Path, session: tk.Session) -> None:
    """Rows that begin before the archived ones cannot be put between them."""
    users, now = session.world["users"][:2], session.now_ms()
    archive = open_archive(tmp_path / "kept")
    archive.refresh(tk.user_fills_by_time, users[0], MIDDLE, session=session)
    files = write_files(tmp_path / "files", session, users, 0, now)
    columns = {"user": "trader", "px": "price"}
    done = archive.ingest_bulk(files, tk.user_fills_by_time, 0, now, columns=columns)
    assert list(done["left"]) == [users[0]]
    assert list(done["kept"]) == [f"userFillsByTime {users[1]}"]


def test_bulk_notes_missing_rows(tmp_path: Path) -> None:
    user, fills = "0x" + "c" * 40, make_fills(300)
    session = fill_session(fills, users=[user])
    frame = tk.user_fills_by_time(user, fills[0].time, numbers="text", session=session)
    frame = frame.drop(index=range(100, 130)).assign(user=user)
    frame.attrs = {}
    frame.to_parquet(tmp_path / "f.parquet")
    archive = open_archive(tmp_path / "kept")
    end = fills[-1].time
    archive.ingest_bulk(tmp_path / "f.parquet", tk.user_fills_by_time, fills[0].time, end)
    facts = tk.provenance(archive.frame(tk.user_fills_by_time, user))
    assert facts["complete"] == "no"
    assert "starts from 130, but the fill before it left 100" in facts["why"]


def test_bulk_names_missing_columns(tmp_path: Path, session: tk.Session) -> None:
    files = write_files(tmp_path / "files", session, session.world["users"][:1], 0, None)
    archive = open_archive(tmp_path / "kept")
    with pytest.raises(ArchiveError, match="has no column user, px: name them in columns="):
        archive.ingest_bulk(files, tk.user_fills_by_time, 0, 1)
    with pytest.raises(ArchiveError, match="there is no column wrong"):
        archive.ingest_bulk(files, tk.user_fills_by_time, 0, 1, columns={"px": "wrong"})
