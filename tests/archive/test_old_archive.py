"""An archive that version 0.1 wrote: it opens, its rows can be continued, one command migrates it.

The fixture has two ranges of the rows of `make_fills`, of which the second has rows up to 79.
"""

import tarfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.commands import run_command
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.refresh import Asked, FetchedAnswer, append_answers
from toolkit.archive.schemas import RowOrigin, make_series
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.operations import EXTRA_OPERATIONS

FILLS = make_fills(120)
FREEZE = "f0d58a51579d44c18"


@pytest.fixture(name="folder")
def _folder(tmp_path):
    with tarfile.open(Path(__file__).parent / "archive_of_version_0_1.tar.gz") as fixture:
        fixture.extractall(tmp_path, filter="data")
    return tmp_path


def test_old_archive_is_read_and_continued(folder):
    archive, session = open_archive(folder), fill_session(FILLS)
    assert {finding.severity for finding in archive.verify()} == {"notice"}
    fills = archive.frame(tk.user_fills_by_time, USER, start=FILLS[20].time, end=FILLS[70].time)
    assert tk.provenance(fills)["complete"] == "yes"
    done = archive.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert done.total == len(FILLS)
    archive.refresh(tk.user_fills, USER, session=session)
    fetched = tk.user_fills_by_time(USER, START, session=session)
    pd.testing.assert_frame_equal(archive.frame(tk.user_fills_by_time, USER), fetched)
    assert archive.verify() == []
    assert open_archive(folder, frozen=FREEZE).tables.versions


def test_refresh_beside_one_that_adds_columns(folder, monkeypatch):
    """Delta refuses the entry in the log then; it is written again."""
    session, others = fill_session(FILLS), ["pulls"]
    append = ArchiveTables.append_rows

    def append_later(tables, handle, rows, **notes):
        if others and handle.table_uri.rstrip("/").endswith(others[0]):
            others.clear()
            open_archive(folder).refresh(tk.user_fills, USER, session=session)
        append(tables, handle, rows, **notes)

    monkeypatch.setattr(ArchiveTables, "append_rows", append_later)
    archive = open_archive(folder)
    assert archive.refresh(tk.user_fills_by_time, USER, START, session=session).total == len(FILLS)
    assert archive.verify() == []


def test_one_command_migrates_old_archive(folder):
    before = open_archive(folder).frame(tk.user_fills_by_time, USER)
    run_command("compact", folder)
    archive = open_archive(folder)
    pd.testing.assert_frame_equal(archive.frame(tk.user_fills_by_time, USER), before)
    for name in ("fills", "answers", "pulls"):
        assert len(archive.tables.open_table(name).file_uris()) == 1
    frozen = open_archive(folder, frozen=FREEZE)
    assert {finding.severity for finding in frozen.verify()} <= {"notice"}
    done = archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    assert done.total == len(FILLS)


def test_pages_that_were_kept_as_answers_stay_readable(tmp_path):
    """Older versions had no table for histories beyond the specification."""
    archive = open_archive(tmp_path / "kept")
    operation = replace(EXTRA_OPERATIONS["fundingHistory"], paging="none")
    series = make_series(operation, (), {"coin": "BTC", "start": START})
    answer = FetchedAnswer(Asked(series, RowOrigin("recording", True, START)), b"[]", {})
    append_answers(archive.tables, [answer])
    assert archive.verify() == []
    assert archive.status()["table"].tolist() == ["answers"]
    served = tk.local(archive=tmp_path / "kept", default=False)
    with pytest.raises(tk.Incomplete):
        tk.funding_history("BTC", START, session=served)
