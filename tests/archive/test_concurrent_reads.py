"""A reader during a refresh never claims rows as complete that it did not read."""

import itertools
import sys

import toolkit as tk
from tests.archive.offline import fetch_served, offline_session
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive import storage
from toolkit.archive.schemas import SCHEMAS
from toolkit.times import to_ms

FILLS = make_fills(120)
MIDDLE = FILLS[60].time


class RefreshAtOpen:
    """A profiler that refreshes an archive when a reader opens its n-th table."""

    def __init__(self, path, look):
        self.left = look
        self._path = path

    def __call__(self, frame, event, _):
        code = frame.f_code
        if (
            event == "call"
            and code.co_name == "open_table"
            and code.co_filename == storage.__file__
        ):
            self.left -= 1
            if self.left == 0:
                refresh(self._path)


def refresh(path, end=None):
    archive = open_archive(path)
    archive.refresh(tk.user_fills_by_time, USER, START, end, session=fill_session(FILLS))


def read_during_refreshes(folder, read):
    """Read an archive repeatedly, each time with a refresh when a later table is opened."""
    found = []
    for look in itertools.count(1):
        path = folder / str(look)
        refresh(path, MIDDLE)
        grows, before = RefreshAtOpen(path, look), sys.getprofile()
        sys.setprofile(grows)
        try:
            found.append(read(path))
        finally:
            sys.setprofile(before)
        if grows.left > 0:  # the reader opened fewer tables
            return found


def rows_until(time):
    return sum(fill.time <= time for fill in FILLS)


def check_complete(frame):
    """Check that a complete frame has all rows up to the end of its range; return completeness."""
    facts = tk.provenance(frame)
    if facts["complete"] == "yes":
        assert len(frame) == rows_until(to_ms(facts["covered"][-1][1]))
    return bool(facts["complete"] == "yes")


def test_served_rows_are_consistent_during_refresh(tmp_path):
    frames = [
        fetch_served(tk.user_fills_by_time, USER, START, session=session)[1]
        for session in read_during_refreshes(tmp_path, offline_session)
    ]
    # If rows come after the log was read, their range is not proved yet.
    assert len(frames) - sum(map(check_complete, frames)) <= len(SCHEMAS)
    assert {len(frame) for frame in frames} == {rows_until(MIDDLE), len(FILLS)}


def test_frame_is_consistent_during_refresh(tmp_path):
    frames = read_during_refreshes(
        tmp_path, lambda path: open_archive(path).frame(tk.user_fills_by_time, USER)
    )
    assert any(map(check_complete, frames))
