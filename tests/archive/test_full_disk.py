"""A full disk causes a clear error and no damage; a later refresh completes the archive."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.processes import finish, run
from tests.archive.world import archived_rows, fill_session
from toolkit.archive import open as open_archive
from toolkit.cli.archive import archive_app
from toolkit.cli.files import write_frame
from toolkit.errors import ArchiveError

ALL = len(FILLS) * len(USERS)


@pytest.fixture(name="small")
def _small(tmp_path):
    """Mount a disk of 400 KB, if that is allowed."""
    path = tmp_path / "small"
    path.mkdir()
    if os.name != "posix":
        pytest.skip("there is no tmpfs here")
    mounted = _mount(path, "size=400k")
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", path], check=True)


def _mount(path, options):
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _is_intact(archive):
    return [finding for finding in archive.verify() if finding.severity == "error"] == []


def test_refresh_on_full_disk_loses_no_row(small, capfd):
    archive, session = open_archive(small / "kept"), fill_session(FILLS, users=USERS)
    with pytest.raises(ArchiveError, match="there is no space left to write"):
        refresh_all(archive, session)
    before = archived_rows(archive)
    assert 0 < len(before) < ALL
    assert len(set(before)) == len(before)
    assert _is_intact(archive)
    with pytest.raises(ArchiveError, match="there is no space left to write"):
        refresh_all(archive, session)  # the disk is still full
    for write in (archive.compact, archive.freeze):
        with pytest.raises(ArchiveError, match="there is no space left to write"):
            write()
    assert _is_intact(archive)
    assert list(small.rglob("*#*")) == []  # half-written files of deltalake
    assert capfd.readouterr().out == ""
    assert _mount(small, "remount,size=64m").returncode == 0
    refresh_all(archive, session)
    assert len(set(archived_rows(archive))) == len(archived_rows(archive)) == ALL
    assert archive.verify() == []


def test_ingest_on_full_disk_names_files(small):
    samples = Path(__file__).parents[2] / "data" / "samples"
    (small / "filler").write_bytes(bytes(290_000))  # of the 400 KB
    result = CliRunner().invoke(
        archive_app, ["ingest", str(small / "kept"), str(samples), "--json"]
    )
    found = json.loads(result.stdout)
    refused = [
        name for name, why in found["left"].items() if "there is no space left to write" in why
    ]
    assert result.exit_code == 1
    assert found["kept"]
    assert len(refused) > 1
    for name in refused:
        assert f"{name}: left out: " in result.stderr
    kinds = {finding.kind for finding in open_archive(small / "kept").verify()}
    assert not kinds & {"damage", "run", "lost"}  # the samples are not complete histories


def test_write_frame_on_full_disk_writes_nothing(small):
    frame = pd.DataFrame({"px": range(200_000)})
    with pytest.raises(OSError, match=r"nothing was written: .*fills\.csv") as caught:
        write_frame(frame, small / "fills.csv")
    assert caught.value.errno == errno.ENOSPC
    assert list(small.iterdir()) == []


def test_refresh_with_file_limit_loses_no_row(tmp_path):
    """Files may have at most 13,000 bytes; this test needs no mounted disk."""
    output = finish(run("tests.archive.disk_limit", tmp_path, 13_000))
    assert "there is no space left to write" in output
    assert "no archived row is lost" in output
    archive = open_archive(tmp_path)
    assert _is_intact(archive)
    assert len(archived_rows(archive)) >= 200
    refresh_all(archive, fill_session(FILLS, users=USERS))
    assert len(set(archived_rows(archive))) == len(archived_rows(archive)) == ALL
    assert archive.verify() == []
