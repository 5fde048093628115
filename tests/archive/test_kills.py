"""The archive survives kills at random times and concurrent writers, and contains no key."""

import contextlib
import re
import subprocess

import pandas as pd

import toolkit as tk
from tests.archive.kills import FILLS, USERS
from tests.archive.processes import finish, run
from tests.archive.world import CANARY, START, archived_rows, archived_words, fill_session
from toolkit.archive import open as open_archive
from toolkit.archive.storage import table_digest


def test_random_kills_lose_nothing(tmp_path):
    output = finish(run("tests.archive.kills", tmp_path / "killed", 50, 0.25))
    refreshing, compacting, damaged = map(int, re.findall(r"\d+", output.splitlines()[-1]))
    assert damaged == 0, output
    assert refreshing + compacting == 50
    assert min(refreshing, compacting) >= 10
    session = fill_session(FILLS, users=USERS)
    killed, undisturbed = open_archive(tmp_path / "killed"), open_archive(tmp_path / "undisturbed")
    assert 0 < len(archived_rows(killed)) < len(FILLS) * len(USERS)  # no worker was without work
    for archive in (killed, undisturbed):
        for user in USERS:
            archive.refresh(tk.user_fills_by_time, user, START, session=session)
    assert [finding for finding in killed.verify() if finding.severity == "error"] == []
    assert archived_rows(killed) == archived_rows(undisturbed)  # bytes of the wire, sorted
    assert table_digest(killed.tables, "fills") == table_digest(undisturbed.tables, "fills")
    for user in USERS:
        pulled = tk.user_fills_by_time(user, START, numbers="text", session=session)
        kept_so = killed.frame(tk.user_fills_by_time, user, numbers="text")
        pd.testing.assert_frame_equal(kept_so, pulled)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    assert not any(CANARY in word for word in archived_words(killed))


def test_reader_sees_no_row_twice(tmp_path):
    folder, everything = tmp_path / "shared", len(FILLS) * len(USERS)
    # They refresh the accounts in opposite orders.
    writers = [run("tests.archive.writer", folder, order) for order in (1, -1)]
    reader, reads = open_archive(folder), 0
    while any(writer.poll() is None for writer in writers):
        rows = archived_rows(reader)
        assert len(rows) == len(set(rows)), "the archive has a row twice"
        reads += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            writers[reads % 2].wait(0.2)
    for writer in writers:
        finish(writer)
    assert reads > 2
    assert len(set(archived_rows(reader))) == len(archived_rows(reader)) == everything
    assert [finding for finding in reader.verify() if finding.severity == "error"] == []
