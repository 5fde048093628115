"""Compaction: the order of rows in files, and checks of a history in several parts."""

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import START, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive import storage
from toolkit.archive.storage import ArchiveTables, compact_table, file_actions
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import ArchiveError, CommitConflict

USERS = [f"0x{number:040x}" for number in (3, 1, 2)]
FILLS = make_fills(60)
SERIES = (OPERATIONS["userFillsByTime"], (USERS[0],), {})


@pytest.fixture(name="archive")
def _archive(tmp_path):
    archive = open_archive(tmp_path / "kept")
    for end in (20, 40, 60):
        session = fill_session(FILLS[:end], users=USERS)
        for user in USERS:
            archive.refresh(tk.user_fills_by_time, user, START, session=session)
    return archive


def test_compaction_sorts_by_account(archive):
    before = [archive.frame(tk.user_fills_by_time, user) for user in USERS]
    assert archive.compact() > 5
    (action,) = file_actions(archive.tables.open_table("fills"))
    rows = archive.tables.read_rows(archive.tables.open_table("fills"))
    assert rows["_subject"].to_pylist() == sorted(rows["_subject"].to_pylist())
    assert rows["_row"].to_pylist() == [*range(len(FILLS))] * len(USERS)
    assert (action["min._subject"], action["max._subject"]) == (min(USERS), max(USERS))
    assert action["num_records"] == rows.num_rows
    for user, frame in zip(USERS, before, strict=True):
        pd.testing.assert_frame_equal(archive.frame(tk.user_fills_by_time, user), frame)
    assert archive.verify() == []
    assert archive.compact() == 0  # nothing is left to sort
    more = fill_session(make_fills(70), users=USERS)
    archive.refresh(tk.user_fills_by_time, USERS[0], session=more)
    assert archive.compact() == 2  # of the fills and of the log
    assert archive.verify() == []


class LateTables(ArchiveTables):
    """Tables that another process has changed since they were opened."""

    def __init__(self, location, change):
        super().__init__(location)
        self._change = change

    def open_for_append(self, name):
        handle = super().open_for_append(name)
        self._change(open_archive(self.location))
        return handle


def test_concurrent_compaction_is_refused(archive):
    tables = LateTables(archive.tables.location, lambda other: other.compact())
    with pytest.raises(CommitConflict):
        compact_table(tables, "fills", (), None)
    assert archive.verify() == []


def test_compaction_of_other_number_of_rows_is_refused(archive, monkeypatch):
    actions = [
        {**each, "num_records": 11} for each in file_actions(archive.tables.open_table("fills"))
    ]
    monkeypatch.setattr(storage, "file_actions", lambda _: actions)
    with pytest.raises(ArchiveError, match="cannot be compacted"):
        compact_table(archive.tables, "fills", (), None)
    monkeypatch.undo()
    assert archive.verify() == []


def test_rows_beside_compaction_are_kept(archive):
    session = fill_session(make_fills(70), users=USERS)
    tables = LateTables(
        archive.tables.location,
        lambda other: other.refresh(tk.user_fills_by_time, USERS[0], session=session),
    )
    assert compact_table(tables, "fills", (), None) == 7  # of nine files; the tenth is new
    assert len(archive.frame(tk.user_fills_by_time, USERS[0])) == 70
    assert archive.verify() == []
    assert archive.compact() > 0
    assert archive.verify() == []
