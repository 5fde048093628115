"""Errors when an archive is opened: invalid paths, damage, unreachable stores."""

import os

import deltalake
import pytest

import toolkit as tk
from tests.archive.commands import run_command
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.archive import open_existing
from toolkit.archive.errors import translate_errors
from toolkit.errors import ArchiveError, StoreUnreachable

FILLS = make_fills(20)


def test_open_refuses_invalid_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.md").write_text("words")
    (tmp_path / "kept").mkdir()
    for path, named in {
        "ftp://host/x": "s3://",
        "": "empty",
        "file.md": "is a file",
        "a%20b": "%20",
        "a%2Fb/c": "%2F",
        "s3://key:secret@host/x": "without anything else",
    }.items():
        with pytest.raises(ArchiveError, match=named):
            open_archive(path)
        with pytest.raises(ArchiveError, match=named):
            tk.local(archive=path, default=False)
        assert "toolkit: " in run_command("verify", path, code=2).output
    with pytest.raises(TypeError, match="None"):
        open_archive(None)


def test_opened_archive_keeps_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("RUST_LOG", raising=False)
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    written = []
    monkeypatch.setattr(os, "putenv", lambda *pair: written.append(pair))
    assert archive.status()["rows"].tolist() == [20]
    assert written == []


@pytest.mark.parametrize("damaged", [["fills", "pulls"], ["pulls"], ["answers"]])
def test_verify_command_reports_damage(tmp_path, damaged):
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    archive.refresh(tk.user_fills, USER, session=fill_session(FILLS))
    for name in damaged:
        entry = sorted((tmp_path / name / "_delta_log").glob("*.json"))[-1]
        entry.write_bytes(entry.read_bytes()[:80])
    found = [(finding.kind, finding.table) for finding in archive.verify()]
    assert found == [("damage", name) for name in damaged]
    output = run_command("verify", tmp_path, code=1).output
    assert "archive verify" not in output  # the user has just run this command
    assert "<unknown>" not in output  # no native backtrace


UNREACHABLE = [  # the native error, options of the store, and what our error names
    ("an error occurred while loading credentials: failed to load IMDS", {}, "AWS_ACCESS_KEY_ID"),
    ("Error performing PUT http://169.254.169.254/latest/api/token", {}, "AWS_ACCESS_KEY_ID"),
    ("Error performing GET http://127.0.0.1:1/: error sending request", {}, "the network"),
    ("Error performing GET: canary-secret", {"AWS_SECRET_ACCESS_KEY": "canary-secret"}, r"\*"),
]


@pytest.mark.parametrize(("native", "options", "named"), UNREACHABLE)
def test_unreachable_store_error_has_advice(native, options, named):
    with (
        pytest.raises(StoreUnreachable, match=named) as result,
        translate_errors("s3://bucket/x", options),
    ):
        raise OSError(native)
    assert "written" not in str(result.value)
    assert "canary" not in str(result.value)


def test_commits_name_the_version(tmp_path, tiny):
    archive = open_archive(tmp_path)
    archive.refresh(tk.delegations, tiny.world["users"][0], session=tiny)
    (commit, *_) = deltalake.DeltaTable(tmp_path / "answers").history(1)
    assert commit["toolkit"] == tk.__version__


def test_a_file_in_the_place_of_a_table_is_damage(tmp_path):
    (tmp_path / "fills").write_text("x")
    assert [found.kind for found in open_existing(tmp_path).verify()] == ["damage"]
