"""Ctrl-C during a refresh loses no rows."""

import sys

import pytest

import toolkit as tk
from tests.archive.world import START, USER, StopsAfter, archived_rows, fill_session, make_fills
from toolkit.archive import coverage, refresh
from toolkit.archive import open as open_archive

FILLS = make_fills(120)


def test_interrupt_keeps_pulled_rows(tmp_path):
    archive = open_archive(tmp_path)
    session = fill_session(FILLS, through=lambda inner: StopsAfter(inner, 3, KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as caught:
        archive.refresh(tk.user_fills_by_time, USER, START, page_size=20, session=session)
    rows = len(archived_rows(archive))
    assert 20 < rows < 60
    assert f"{rows} new rows are archived" in caught.value.__notes__[0]
    done = archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    assert (done.rows, done.total) == (len(FILLS) - rows, len(FILLS))
    assert archive.verify() == []


class InterruptAtLine:
    """A tracer that notes the lines of a refresh, and raises KeyboardInterrupt at the n-th."""

    def __init__(self, number=0):
        self.lines = []
        self._number = number

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename not in (refresh.__file__, coverage.__file__):
            return None
        if event == "line":
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.lines) == self._number:
                raise KeyboardInterrupt
        return self


def test_interrupt_at_any_line_loses_no_row(tmp_path):
    """Every fifth line of the code is interrupted when it runs for the last time."""
    session, call = fill_session(FILLS[:60]), {"page_size": 20, "rows_per_commit": 30}

    def refresh_traced(archive, tracer):
        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            archive.refresh(tk.user_fills_by_time, USER, START, session=session, **call)
        finally:
            sys.settrace(before)

    whole = InterruptAtLine()
    refresh_traced(open_archive(tmp_path / "whole"), whole)
    last = {line: number for number, line in enumerate(whole.lines, 1)}
    assert len(last) > 150
    for number in [*last.values()][::5]:
        archive = open_archive(tmp_path / str(number))
        with pytest.raises(KeyboardInterrupt):
            refresh_traced(archive, InterruptAtLine(number))
        archive.refresh(tk.user_fills_by_time, USER, START, session=session, **call)
        assert len(set(archived_rows(archive))) == len(archived_rows(archive)) == 60
        assert archive.verify() == []
