"""Ctrl-C during a refresh loses no rows."""

import itertools
import sys

import httpx
import pytest

import toolkit as tk
from tests.archive.world import START, USER, archived_rows, fill_session, make_fills
from toolkit.archive import history_pull, refresh
from toolkit.archive import open as open_archive

FILLS = make_fills(120)


class InterruptAfter(httpx.BaseTransport):
    """A transport that raises KeyboardInterrupt after some requests."""

    def __init__(self, inner, after):
        self._inner = inner
        self._left = after

    def handle_request(self, request):
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._inner.handle_request(request)


def test_interrupt_keeps_pulled_rows(tmp_path):
    archive = open_archive(tmp_path)
    session = fill_session(FILLS, through=lambda inner: InterruptAfter(inner, 3))
    with pytest.raises(KeyboardInterrupt) as caught:
        archive.refresh(tk.user_fills_by_time, USER, START, page_size=20, session=session)
    rows = len(archived_rows(archive))
    assert 20 < rows < 60
    assert f"{rows} new rows are archived" in caught.value.__notes__[0]
    done = archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    assert (done.rows, done.total) == (len(FILLS) - rows, len(FILLS))
    assert archive.verify() == []


class InterruptAtLine:
    """A tracer that raises KeyboardInterrupt at the n-th executed line of a refresh."""

    def __init__(self, line):
        self.left = line

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename not in (refresh.__file__, history_pull.__file__):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def test_interrupt_at_any_line_loses_no_row(tmp_path):
    session, call = fill_session(FILLS), {"page_size": 20, "rows_per_commit": 30}
    for line in itertools.count(1, 17):
        archive, press, before = (
            open_archive(tmp_path / str(line)),
            InterruptAtLine(line),
            sys.gettrace(),
        )
        sys.settrace(press)
        try:
            archive.refresh(tk.user_fills_by_time, USER, START, session=session, **call)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        archive.refresh(tk.user_fills_by_time, USER, START, session=session, **call)
        assert len(set(archived_rows(archive))) == len(archived_rows(archive)) == len(FILLS)
        assert archive.verify() == []
        if press.left > 0:  # the refresh ended before
            break
    assert line > 100
