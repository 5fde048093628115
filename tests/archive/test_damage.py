"""Random damage to a file: `verify` finds it, or the frames are unchanged."""

import random
import shutil

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive

FILLS = make_fills(240)
MIDDLE = FILLS[120].time


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory):
    """Return an archive with files of refreshes and of a compaction, and several answers."""
    folder = tmp_path_factory.mktemp("whole") / "kept"
    archive = open_archive(folder)
    for end in (80, 160, 240):
        session = fill_session(FILLS[:end])
        archive.refresh(tk.user_fills_by_time, USER, START, session=session)
        archive.refresh(tk.user_fills, USER, session=session)
        if end == 160:
            archive.compact()
    return folder


def read_frames(folder):
    archive = open_archive(folder)
    yield archive.frame(tk.user_fills_by_time, USER)
    yield archive.frame(tk.user_fills_by_time, USER, numbers="text")
    yield archive.frame(tk.user_fills_by_time, USER, start=MIDDLE)
    yield archive.frame(tk.user_fills_by_time, USER, end=MIDDLE)
    yield archive.frame(tk.user_fills, USER)


def damage_bytes(draw, content):
    """Flip a bit, cut the end off, or return None to remove the file."""
    how, at = draw.choice(["flip", "flip", "flip", "cut", "gone"]), draw.randrange(len(content))
    if how == "gone":
        return None
    if how == "cut":
        return content[:at]
    if draw.random() < 0.5:  # the footer is most important for readers
        at = max(at, len(content) - 1 - draw.randrange(4_000))
    flipped = bytearray(content)
    flipped[at] ^= 1 << draw.randrange(8)
    return bytes(flipped)


@pytest.mark.parametrize("seed", range(2))
def test_verify_finds_random_damage(tmp_path, whole, seed):
    draw, folder = random.Random(seed), tmp_path / "kept"
    shutil.copytree(whole, folder)
    before = list(read_frames(folder))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    found = 0
    for number in range(30):
        path = draw.choice(files)
        content = path.read_bytes()
        damaged = damage_bytes(draw, content)
        if damaged is None:
            path.unlink()
        else:
            path.write_bytes(damaged)
        if open_archive(folder).verify():
            found += 1
        else:
            for now, then in zip(read_frames(folder), before, strict=True):
                pd.testing.assert_frame_equal(now, then, obj=f"after {number}, {path}")
        path.write_bytes(content)
    assert found > 5
    assert open_archive(folder).verify() == []
