"""The archive in a folder and on an object store survives kills and concurrent writers."""

import contextlib
import re
import subprocess

import pandas as pd
import pytest

import toolkit as tk
from tests.archive import bucket
from tests.archive.kills import FILLS, USERS
from tests.archive.processes import finish, run
from tests.archive.world import START, archived_rows, archived_words, error_kinds, fill_session
from toolkit.archive import open as open_archive
from toolkit.archive.storage import table_digest

EVERYTHING = len(FILLS) * len(USERS)


@pytest.fixture(params=["folder", "store"], name="place")
def _place(request, tmp_path, monkeypatch):
    """Return a place for archives; processes find the store by their environment."""
    if request.param == "folder":
        return str(tmp_path)
    for name, value in request.getfixturevalue("served").environment.items():
        monkeypatch.setenv(name, value)
    return f"{bucket.BUCKET}/{request.function.__name__}"


def test_random_kills_lose_nothing(place, tmp_path, served):
    is_store = place.startswith("s3:")
    rounds, longest = (6, 1.0) if is_store else (36, 0.25)
    output = finish(run("tests.archive.kills", f"{place}/killed", rounds, longest))
    refreshing, compacting, damaged = map(int, re.findall(r"\d+", output.splitlines()[-1]))
    assert (refreshing + compacting, damaged) == (rounds, 0), output
    assert min(refreshing, compacting) >= (0 if is_store else 4)
    session = fill_session(FILLS, users=USERS)
    killed, undisturbed = open_archive(f"{place}/killed"), open_archive(tmp_path / "undisturbed")
    assert 0 < len(archived_rows(killed)) < EVERYTHING  # no worker was without work
    for archive in (killed, undisturbed):
        for user in USERS:
            archive.refresh(tk.user_fills_by_time, user, START, session=session)
    assert error_kinds(killed) == set()
    assert archived_rows(killed) == archived_rows(undisturbed)  # bytes of the wire, sorted
    assert table_digest(killed.tables, "fills") == table_digest(undisturbed.tables, "fills")
    for user in USERS:
        pulled = tk.user_fills_by_time(user, START, numbers="text", session=session)
        archived = killed.frame(tk.user_fills_by_time, user, numbers="text")
        pd.testing.assert_frame_equal(archived, pulled)
    killed.freeze()
    if is_store:
        files = bucket.list_objects(served.environment, "test_random_kills_lose_nothing/")
    else:
        paths = (path for path in tmp_path.rglob("*") if path.is_file())
        files = {str(path): path.read_bytes() for path in paths}
    assert len(files) > 20
    assert [name for name, content in files.items() if b"canary" in name.encode() + content] == []
    # Compressed data does not contain the key either.
    assert not any("canary" in word for word in archived_words(killed))


def test_reader_sees_no_row_twice(place):
    # The writers refresh the accounts in opposite orders.
    writers = [run("tests.archive.writer", f"{place}/shared", order) for order in (1, -1)]
    reader, reads = open_archive(f"{place}/shared"), 0
    while any(writer.poll() is None for writer in writers):
        rows = archived_rows(reader)
        assert len(rows) == len(set(rows)), "the archive has a row twice"
        reads += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            writers[reads % 2].wait(0.2)
    for writer in writers:
        finish(writer)
    assert reads > 2
    assert len(set(archived_rows(reader))) == len(archived_rows(reader)) == EVERYTHING
    assert error_kinds(reader) == set()
