"""What is no archive is told so, and where a store lets nobody in, what to set."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import START, USER, fills_of, session_of
from toolkit import archive
from toolkit.archive.errors import StoreUnreachable, translate_errors
from toolkit.cli.archive import archive_app
from toolkit.errors import ArchiveError


@pytest.mark.parametrize(
    ("path", "said"),
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
def test_a_path_that_cannot_be_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.md").write_text("words")
    (tmp_path / "kept").mkdir()
    with pytest.raises(ArchiveError, match=said):
        archive.open(path)
    with pytest.raises(ArchiveError, match=said):
        tk.local(archive=path, default=False)
    told = CliRunner().invoke(archive_app, ["verify", path])
    assert told.exit_code == 2
    assert "toolkit: " in told.output


@pytest.mark.parametrize("name", ["kept@home", "kept@fund", "100%", "a b"])
def test_a_folder_may_be_named_as_it_likes(tmp_path: Path, name: str) -> None:
    (tmp_path / "kept").mkdir()
    kept = archive.open(tmp_path / name)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(fills_of(20)))
    assert kept.status()["rows"].tolist() == [20]
    assert kept.verify() == []


def test_a_path_is_text() -> None:
    with pytest.raises(TypeError, match="not None"):
        archive.open(None)  # type: ignore[arg-type]


def test_the_environment_is_left_alone_once_the_libraries_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RUST_LOG", raising=False)
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(fills_of(20)))
    written: list[object] = []
    monkeypatch.setattr(os, "putenv", lambda *pair: written.append(pair))
    assert kept.status()["rows"].tolist() == [20]
    assert written == []


@pytest.mark.parametrize("damaged", [["fills", "pulls"], ["pulls"], ["answers"]])
def test_damage_is_found_and_does_not_end_the_command(tmp_path: Path, damaged: list[str]) -> None:
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(fills_of(20)))
    kept.refresh(tk.user_fills, USER, session=session_of(fills_of(20)))
    for name in damaged:
        entry = sorted((tmp_path / name / "_delta_log").glob("*.json"))[-1]
        entry.write_bytes(entry.read_bytes()[:80])
    found = [(one.kind, one.table) for one in kept.verify()]
    assert found == [("damage", name) for name in damaged]
    told = CliRunner().invoke(archive_app, ["verify", str(tmp_path)])
    assert told.exit_code == 1
    assert "archive verify" not in told.output  # it is what was done
    assert "<unknown>" not in told.output  # no native backtrace


@pytest.mark.parametrize(
    ("native", "options", "said"),
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
def test_a_store_that_lets_nobody_in(native: str, options: Mapping[str, str], said: str) -> None:
    with (
        pytest.raises(StoreUnreachable, match=said) as told,
        translate_errors("s3://bucket/x", options),
    ):
        raise OSError(native)
    assert "written" not in str(told.value)
    assert "canary" not in str(told.value)


def test_a_store_that_cannot_be_reached_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "name",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
    }.items():
        monkeypatch.setenv(name, value)
    told = CliRunner().invoke(archive_app, ["verify", "s3://bucket/x"])
    assert told.exit_code == 2
    assert "check the address, the network" in told.output
