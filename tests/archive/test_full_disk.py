"""A full disk: a clear error, a whole archive, and a refresh that finishes once there is room."""

import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.processes import finish, run
from tests.archive.world import rows_of, session_of
from toolkit import archive
from toolkit.cli.archive import archive_app
from toolkit.cli.writing import write
from toolkit.errors import ArchiveError

ALL = len(FILLS) * len(USERS)


@pytest.fixture(name="small")
def _small(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 400 KB, where that is allowed."""
    path = tmp_path / "small"
    path.mkdir()
    if os.name != "posix":
        pytest.skip("there is no tmpfs here")
    mounted = _mount(path, "size=400k")
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", path], check=True)


def _mount(path: Path, options: str) -> subprocess.CompletedProcess[str]:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _is_whole(kept: archive.Archive) -> bool:
    return [one for one in kept.verify() if one.severity == "error"] == []


def test_a_full_disk_leaves_the_archive_whole(small: Path) -> None:
    kept, session = archive.open(small / "kept"), session_of(FILLS, users=USERS)
    with pytest.raises(ArchiveError, match="there is no space left to write"):
        refresh_all(kept, session)
    before = rows_of(kept)
    assert 0 < len(before) < ALL
    assert len(set(before)) == len(before)
    assert _is_whole(kept)
    with pytest.raises(ArchiveError, match="there is no space left to write"):
        refresh_all(kept, session)  # still full: no worse
    assert _is_whole(kept)
    assert _mount(small, "remount,size=64m").returncode == 0
    refresh_all(kept, session)
    assert len(set(rows_of(kept))) == len(rows_of(kept)) == ALL
    assert kept.verify() == []


def test_recordings_that_have_no_room_are_named_and_end_with_1(small: Path) -> None:
    samples = Path(__file__).parents[2] / "data" / "samples"
    (small / "filler").write_bytes(bytes(290_000))  # of the 400 KB
    said = CliRunner().invoke(archive_app, ["ingest", str(small / "kept"), str(samples), "--json"])
    found = json.loads(said.stdout)
    full = [name for name, why in found["left"].items() if "there is no space left to write" in why]
    assert said.exit_code == 1
    assert found["kept"]
    assert len(full) > 1
    for name in full:
        assert f"{name}: left out: " in said.stderr
    kinds = {one.kind for one in archive.open(small / "kept").verify()}
    assert not kinds & {"damage", "run", "lost"}  # samples are no whole histories


def test_a_frame_that_has_no_room_leaves_no_half_a_file_and_names_it(small: Path) -> None:
    frame = pd.DataFrame({"px": range(200_000)})
    with pytest.raises(OSError, match=r"nothing was written: .*fills\.csv") as caught:
        write(frame, small / "fills.csv")
    assert caught.value.errno == errno.ENOSPC
    assert list(small.iterdir()) == []


def test_a_file_that_may_not_grow_leaves_the_archive_whole(tmp_path: Path) -> None:
    """The same where nothing can be mounted: files of at most 13,000 bytes."""
    said = finish(run("tests.archive.filling", tmp_path, 13_000))
    assert "there is no space left to write" in said
    assert "no archived row is lost" in said
    kept = archive.open(tmp_path)
    assert _is_whole(kept)
    assert len(rows_of(kept)) >= 200
    refresh_all(kept, session_of(FILLS, users=USERS))
    assert len(set(rows_of(kept))) == len(rows_of(kept)) == ALL
    assert kept.verify() == []
