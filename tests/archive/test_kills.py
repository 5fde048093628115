"""The archive survives kills at any instant, and writers at once; it holds no key."""

import contextlib
import re
import subprocess
from pathlib import Path

import pandas as pd

import toolkit as tk
from tests.archive.kills import FILLS, USERS
from tests.archive.processes import finish, run
from tests.archive.world import CANARY, START, rows_of, session_of, words_in
from toolkit import archive
from toolkit.archive.freezes import table_digest


def test_50_kills_at_random_instants_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    said = finish(run("tests.archive.kills", tmp_path / "killed", 50, 0.25))
    refreshing, compacting, damaged = map(int, re.findall(r"\d+", said.splitlines()[-1]))
    assert damaged == 0, said
    assert refreshing + compacting == 50
    assert min(refreshing, compacting) >= 10
    session = session_of(FILLS, users=USERS)
    killed, undisturbed = archive.open(tmp_path / "killed"), archive.open(tmp_path / "undisturbed")
    assert 0 < len(rows_of(killed)) < len(FILLS) * len(USERS)  # there was something to do all along
    for kept in (killed, undisturbed):
        for user in USERS:
            kept.refresh(tk.user_fills_by_time, user, START, session=session)
    assert [one for one in killed.verify() if one.severity == "error"] == []
    assert rows_of(killed) == rows_of(undisturbed)  # bytes of the wire, sorted
    assert table_digest(killed.tables, "fills") == table_digest(undisturbed.tables, "fills")
    for user in USERS:
        pulled = tk.user_fills_by_time(user, START, numbers="text", session=session)
        kept_so = killed.frame(tk.user_fills_by_time, user, numbers="text")
        pd.testing.assert_frame_equal(kept_so, pulled)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    assert not any(CANARY in word for word in words_in(killed))


def test_two_processes_refresh_at_once_beside_readers(tmp_path: Path) -> None:
    folder, everything = tmp_path / "shared", len(FILLS) * len(USERS)
    # They take the accounts in opposite orders, and do not even begin at the same moment.
    writers = [run("tests.archive.writer", folder, order) for order in (1, -1)]
    reader, reads = archive.open(folder), 0
    while any(one.poll() is None for one in writers):
        rows = rows_of(reader)
        assert len(rows) == len(set(rows)), "a row was there twice"
        reads += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            writers[reads % 2].wait(0.2)
    for one in writers:
        finish(one)
    assert reads > 2
    assert len(set(rows_of(reader))) == len(rows_of(reader)) == everything
    assert [one for one in reader.verify() if one.severity == "error"] == []
