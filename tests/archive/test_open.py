"""Errors when an archive is opened: invalid paths, damage, unreachable stores."""

import os

import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.errors import translate_errors
from toolkit.cli.archive import archive_app
from toolkit.errors import ArchiveError, StoreUnreachable


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("ftp://host/x", "begins with one of s3://"),
        ("", "path of the archive is empty"),
        ("file.md", "is a file"),
        ("kept@f0123456789", "kept has no freeze 'f0123456789'"),
        ("a%20b", "because %20 in its name"),
        ("a%2Fb/c", "because %2F in its name"),
        ("s3://key:secret@host/x", "without anything else"),
    ],
)
def test_open_refuses_invalid_path(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.md").write_text("words")
    (tmp_path / "kept").mkdir()
    with pytest.raises(ArchiveError, match=message):
        open_archive(path)
    with pytest.raises(ArchiveError, match=message):
        tk.local(archive=path, default=False)
    result = CliRunner().invoke(archive_app, ["verify", path])
    assert result.exit_code == 2
    assert "toolkit: " in result.output


@pytest.mark.parametrize("name", ["kept@home", "kept@fund", "100%", "a b"])
def test_folder_with_special_name_is_archive(tmp_path, name):
    (tmp_path / "kept").mkdir()
    archive = open_archive(tmp_path / name)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(make_fills(20)))
    assert archive.status()["rows"].tolist() == [20]
    assert archive.verify() == []


def test_open_refuses_none():
    with pytest.raises(TypeError, match="not None"):
        open_archive(None)  # type: ignore[arg-type]


def test_opened_archive_keeps_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("RUST_LOG", raising=False)
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(make_fills(20)))
    written: list[object] = []
    monkeypatch.setattr(os, "putenv", lambda *pair: written.append(pair))
    assert archive.status()["rows"].tolist() == [20]
    assert written == []


@pytest.mark.parametrize("damaged", [["fills", "pulls"], ["pulls"], ["answers"]])
def test_verify_command_reports_damage(tmp_path, damaged):
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(make_fills(20)))
    archive.refresh(tk.user_fills, USER, session=fill_session(make_fills(20)))
    for name in damaged:
        entry = sorted((tmp_path / name / "_delta_log").glob("*.json"))[-1]
        entry.write_bytes(entry.read_bytes()[:80])
    found = [(finding.kind, finding.table) for finding in archive.verify()]
    assert found == [("damage", name) for name in damaged]
    result = CliRunner().invoke(archive_app, ["verify", str(tmp_path)])
    assert result.exit_code == 1
    assert "archive verify" not in result.output  # the user has just run this command
    assert "<unknown>" not in result.output  # no native backtrace


@pytest.mark.parametrize(
    ("native", "options", "message"),
    [
        (
            "an error occurred while loading credentials: failed to load IMDS session token",
            {},
            "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
        ),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token in 5 ms",
            {},
            "Set AWS_ACCESS_KEY_ID",
        ),
        ("Error performing GET http://127.0.0.1:1/: error sending request", {}, "the network"),
        ("Error performing GET: canary-secret", {"AWS_SECRET_ACCESS_KEY": "canary-secret"}, r"\*"),
    ],
)
def test_unreachable_store_error_has_advice(native, options, message):
    with (
        pytest.raises(StoreUnreachable, match=message) as result,
        translate_errors("s3://bucket/x", options),
    ):
        raise OSError(native)
    assert "written" not in str(result.value)
    assert "canary" not in str(result.value)


def test_verify_command_reports_unreachable_store(monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "name",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
    }.items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(archive_app, ["verify", "s3://bucket/x"])
    assert result.exit_code == 2
    assert "check the address, the network" in result.output


def test_commits_name_the_version(tmp_path):
    import deltalake

    with tk.local(seed=7, size="tiny", default=False) as session:
        tk.archive.open(tmp_path).refresh(
            tk.delegations, session.world["users"][0], session=session
        )
    (commit, *_) = deltalake.DeltaTable(tmp_path / "answers").history(1)
    assert commit["toolkit"] == tk.__version__
