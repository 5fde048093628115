"""Whoever reads while another process refreshes claims no rows that were not read."""

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd

import toolkit as tk
from tests.archive.asking import offline, served
from tests.archive.world import START, USER, fills_of, session_of
from toolkit import archive
from toolkit.archive import storage
from toolkit.archive.schemas import SCHEMAS

FILLS = fills_of(120)
MIDDLE = FILLS[60].time


class Grows:
    """Refreshes an archive between two of the looks that a reader takes at its tables."""

    def __init__(self, path: Path, look: int) -> None:
        self.left = look
        self._path = path

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_name == "open_table"
            and code.co_filename == storage.__file__
        ):
            self.left -= 1
            if self.left == 0:
                refresh(self._path)


def utc(milliseconds: int) -> pd.Timestamp:
    return pd.Timestamp(milliseconds, unit="ms", tz="UTC")


def refresh(path: Path, end: int | None = None) -> None:
    kept = archive.open(path)
    kept.refresh(tk.user_fills_by_time, USER, START, end, session=session_of(FILLS))


def at_each_look(folder: Path, read: Callable[[Path], Any]) -> list[Any]:
    """Read an archive again and again, each time with a refresh at a later look at its tables."""
    found = []
    for look in itertools.count(1):
        path = folder / str(look)
        refresh(path, MIDDLE)
        grows, before = Grows(path, look), sys.getprofile()
        sys.setprofile(grows)
        try:
            found.append(read(path))
        finally:
            sys.setprofile(before)
        if grows.left > 0:  # the reader came to its end
            return found


def rows_until(time: pd.Timestamp) -> int:
    return sum(one.time <= time.value // 10**6 for one in FILLS)


def holds(frame: pd.DataFrame) -> bool:
    """Hold what is called complete to be what the service has up to there."""
    facts = tk.provenance(frame)
    if facts["complete"] == "yes":
        assert len(frame) == rows_until(pd.Timestamp(facts["covered"][-1][1]))
    return bool(facts["complete"] == "yes")


def test_a_served_archive_proves_no_rows_that_it_lacks(tmp_path: Path) -> None:
    frames = [
        served(tk.user_fills_by_time, USER, START, session=session)[1]
        for session in at_each_look(tmp_path, offline)
    ]
    # Between the looks at notes and rows, some more rows come: then it is open what they lack.
    assert len(frames) - sum(map(holds, frames)) <= len(SCHEMAS)
    assert {len(frame) for frame in frames} == {rows_until(utc(MIDDLE)), len(FILLS)}


def test_a_frame_calls_no_rows_complete_that_it_lacks(tmp_path: Path) -> None:
    frames = at_each_look(
        tmp_path, lambda path: archive.open(path).frame(tk.user_fills_by_time, USER)
    )
    assert any(map(holds, frames))


def test_status_counts_the_rows_of_what_it_calls_covered(tmp_path: Path) -> None:
    for status in at_each_look(tmp_path, lambda path: archive.open(path).status()):
        (row,) = status.itertuples(index=False)
        assert row.rows >= rows_until(row.covered_until)
