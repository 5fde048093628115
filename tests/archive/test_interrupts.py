"""Ctrl-C keeps what was read, wherever it strikes."""

import itertools
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

import toolkit as tk
from tests.archive.world import START, USER, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.archive import refresh

FILLS = fills_of(120)


class Interrupts(httpx.BaseTransport):
    """Passes some requests on, then somebody presses Ctrl-C."""

    def __init__(self, inner: httpx.BaseTransport, after: int) -> None:
        self._inner = inner
        self._left = after

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._inner.handle_request(request)


def test_what_was_read_before_an_interrupt_is_kept_and_said(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    session = session_of(FILLS, through=lambda inner: Interrupts(inner, 3))
    with pytest.raises(KeyboardInterrupt) as caught:
        kept.refresh(tk.user_fills_by_time, USER, START, page_size=20, session=session)
    rows = len(rows_of(kept))
    assert 20 < rows < 60
    assert f"{rows} new rows are archived" in caught.value.__notes__[0]
    done = kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS))
    assert (done.rows, done.total) == (len(FILLS) - rows, len(FILLS))
    assert kept.verify() == []


class Presses:
    """Presses Ctrl-C at one of the lines that a refresh runs through."""

    def __init__(self, line: int) -> None:
        self.left = line

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != refresh.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def test_an_interrupt_at_any_line_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    session, call = session_of(FILLS), {"page_size": 20, "rows_per_commit": 30}
    for line in itertools.count(1, 11):
        kept, press, before = archive.open(tmp_path / str(line)), Presses(line), sys.gettrace()
        sys.settrace(press)
        try:
            kept.refresh(tk.user_fills_by_time, USER, START, session=session, **call)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        kept.refresh(tk.user_fills_by_time, USER, START, session=session, **call)
        assert len(set(rows_of(kept))) == len(rows_of(kept)) == len(FILLS)
        assert kept.verify() == []
        if press.left > 0:  # it came to its end
            break
    assert line > 100
