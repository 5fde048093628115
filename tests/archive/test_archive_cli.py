"""The archive from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import CANARY, USER, fills_of, rows_of
from toolkit import archive
from toolkit.cli.archive import archive_app
from toolkit.contract.sources import Sources
from toolkit.local_service import site_of
from toolkit.service import Access, Key, build_store
from toolkit.service.http import run_server

FILLS = fills_of(300)


@pytest.fixture(name="service")
def _service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve on a port, where TOOLKIT_BASE_URL says."""
    now = FILLS[-1].time + 1_000
    fills = [(user, fill) for user in (USER, "0x" + "b" * 40) for fill in FILLS]
    sources = Sources(start_ms=0, now_ms=now, label="test", simulated=True, fills=fills)
    store = build_store(sources)
    with run_server(site_of(store, Access([Key("k", CANARY)]))) as address:
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
        yield
    store.close()


def call(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(archive_app, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    assert CANARY not in result.output
    return result.output


@pytest.mark.usefixtures("service")
def test_every_command(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    users = [USER, "0x" + "b" * 40]
    said = call("refresh", path, "userFillsByTime", *users, "--start", "2025-08-01", "--json")
    assert [json.loads(line)["rows"] for line in said.splitlines()] == [300, 300]
    assert "0 new" in call("refresh", path, "user_fills_by_time", USER)
    call("refresh", path, "meta")
    found = json.loads(call("status", path, "--json"))
    assert [one["rows"] for one in found] == [300, 300, 1]
    assert "userFillsByTime" in call("status", path)
    frozen = json.loads(call("freeze", path, "--json"))
    assert json.loads(call("compact", path, "--json"))["files_fewer"] >= 1
    assert json.loads(call("verify", path, "--json")) == {"ok": True, "findings": []}
    assert "whole" in call("verify", frozen["archive"])
    for file in (path / "fills").glob("*.parquet"):  # those that compaction left behind, too
        file.write_bytes(b"torn")
    assert "damage" in call("verify", path, "--json", code=1)


def test_ingest_and_refusals(tmp_path: Path) -> None:
    recorded = {"request": {"type": "meta"}, "status": 200, "response": {"universe": []}}
    (tmp_path / "meta.json").write_text(json.dumps(recorded))
    assert "meta.json: 1 rows" in call("ingest", tmp_path / "kept", tmp_path)
    assert rows_of(archive.open(tmp_path / "kept")) == []
    assert "nothing" in call("status", tmp_path / "none")
    assert "nothing" in call("freeze", tmp_path / "none", code=2)
    assert "there is no file or folder" in call(
        "ingest", tmp_path / "kept", tmp_path / "gone", code=2
    )
    for command in ("verify", "compact"):  # a misspelt folder is not whole
        assert "there is no archive" in call(command, tmp_path / "none", code=2)
    assert "no operation" in call("refresh", tmp_path, "nothing", code=2)
    assert "no freeze" in call("status", f"{tmp_path / 'kept'}@f{'0' * 16}", code=2)


def test_a_simulated_exchange_can_be_archived(tmp_path: Path) -> None:
    told = CliRunner().invoke(
        archive_app,
        ["refresh", str(tmp_path / "kept"), "userFillsByTime", "WHALE", "--size", "tiny"],
    )
    assert told.exit_code == 2
    assert "Invalid Ethereum address" in told.output
    with tk.local(size="tiny", default=False) as session:
        user = session.world["examples"]["WHALE"]
        rows = len(tk.user_fills_by_time(user, 0, session=session))
    arguments = ["refresh", str(tmp_path / "kept"), "userFillsByTime", user, "--size", "tiny"]
    for new in (rows, 0):
        told = CliRunner().invoke(archive_app, [*arguments, "--json"])
        assert told.exit_code == 0, told.output
        assert (json.loads(told.output)["rows"], json.loads(told.output)["total"]) == (new, rows)


def test_two_sources_are_one_too_many(tmp_path: Path) -> None:
    both = ["--size", "tiny", "--base-url", "http://127.0.0.1:1"]
    told = CliRunner().invoke(archive_app, ["refresh", str(tmp_path), "meta", *both])
    assert told.exit_code == 2
    assert "give one of them" in told.output
