"""An archive in a read-only folder can be read; writing raises an error that says what to do."""

import pytest

import toolkit as tk
from tests.archive.processes import finish, run_with_permissions
from tests.archive.read_only import FILLS
from tests.archive.world import START, USER, fill_session
from toolkit.archive import open as open_archive


def test_read_only_archive_refuses_writes(tmp_path):
    archive, session = open_archive(tmp_path), fill_session(FILLS)
    for last in (100, 200):
        end = FILLS[last].time
        archive.refresh(tk.user_fills_by_time, USER, START, end, session=session)
    rows = len(archive.frame(tk.user_fills_by_time, USER))
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        output = finish(run_with_permissions("tests.archive.read_only", tmp_path))
    finally:
        for folder in folders:
            folder.chmod(0o700)
    if "not obeyed" in output:
        pytest.skip("this user may write everywhere")
    done = dict(line.split(": ", 1) for line in output.splitlines())
    assert (done["frame"], done["verify"], done["served"]) == (str(rows), "[]", "True")
    for name in ("refresh", "answer", "freeze", "compact"):
        assert done[name].startswith(str(tmp_path)), name
        assert done[name].endswith(
            "this user may not read or write there, or the disk is read-only. Change the "
            "permissions of the folder, or copy the archive to a folder of your own"
        )
    assert archive.verify() == []


def test_read_only_folder_gets_no_archive(tmp_path):
    tmp_path.chmod(0o500)
    try:
        output = finish(run_with_permissions("tests.archive.read_only", tmp_path))
    finally:
        tmp_path.chmod(0o700)
    if "not obeyed" in output:
        pytest.skip("this user may write everywhere")
    assert "refresh: " in output
    assert output.count("this user may not read or write there") == 2
    assert list(tmp_path.iterdir()) == []
