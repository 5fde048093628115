"""The commands of ``toolkit archive``."""

import contextlib
import json
import re

import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import CANARY, USER, archived_rows, make_fills
from toolkit.archive import open as open_archive
from toolkit.cli.archive import archive_app
from toolkit.contract.source_tables import Sources
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas, build_store
from toolkit.service.http import run_server

FILLS = make_fills(300)


@pytest.fixture(name="service")
def _service(monkeypatch):
    """Serve on the port of TOOLKIT_BASE_URL."""
    now = FILLS[-1].time + 1_000
    fills = [(user, fill) for user in (USER, "0x" + "b" * 40) for fill in FILLS]
    sources = Sources(start_ms=0, now_ms=now, label="test", simulated=True, fills=fills)
    store = build_store(sources)
    with run_server(application_of(store, KeyQuotas([AcceptedKey("k", CANARY)]))) as address:
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
        yield
    store.close()


def run_command(*arguments, code=0):
    result = CliRunner().invoke(archive_app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert CANARY not in result.output
    return result.output


@pytest.mark.usefixtures("service")
def test_commands_refresh_freeze_and_verify(tmp_path):
    path = tmp_path / "kept"
    users = [USER, "0x" + "b" * 40]
    output = run_command(
        "refresh", path, "userFillsByTime", *users, "--start", "2025-08-01", "--json"
    )
    assert [json.loads(line)["rows"] for line in output.splitlines()] == [300, 300]
    assert "0 new" in run_command("refresh", path, "user_fills_by_time", USER)
    run_command("refresh", path, "meta")
    found = json.loads(run_command("status", path, "--json"))
    assert [row["rows"] for row in found] == [300, 300, 1]
    assert "userFillsByTime" in run_command("status", path)
    frozen = json.loads(run_command("freeze", path, "--json"))
    assert json.loads(run_command("compact", path, "--json"))["files_fewer"] >= 1
    assert json.loads(run_command("verify", path, "--json")) == {"ok": True, "findings": []}
    assert re.search(
        r"no errors: [\d,]+ rows and the refresh log", run_command("verify", frozen["archive"])
    )
    for file in (path / "fills").glob("*.parquet"):  # also those that compaction replaced
        file.write_bytes(b"torn")
    assert "damage" in run_command("verify", path, "--json", code=1)


def test_commands_refuse_missing_archive(tmp_path):
    recorded = {"request": {"type": "meta"}, "status": 200, "response": {"universe": []}}
    (tmp_path / "meta.json").write_text(json.dumps(recorded))
    assert "meta.json: 1 row" in run_command("ingest", tmp_path / "kept", tmp_path)
    assert archived_rows(open_archive(tmp_path / "kept")) == []
    assert "has no rows yet" in run_command("status", tmp_path / "none")
    assert "is empty, so it cannot be frozen" in run_command("freeze", tmp_path / "none", code=2)
    assert "there is no file or folder" in run_command(
        "ingest", tmp_path / "kept", tmp_path / "gone", code=2
    )
    for command in ("verify", "compact"):  # a misspelt folder is an error
        assert "there is no archive" in run_command(command, tmp_path / "none", code=2)
    assert "no operation" in run_command("refresh", tmp_path, "nothing", code=2)
    assert "no freeze" in run_command("status", f"{tmp_path / 'kept'}@f{'0' * 16}", code=2)


def test_command_refreshes_from_simulated_exchange(tmp_path):
    result = CliRunner().invoke(
        archive_app,
        ["refresh", str(tmp_path / "kept"), "userFillsByTime", "WHALE", "--size", "tiny"],
    )
    assert result.exit_code == 2
    assert "Invalid Ethereum address" in result.output
    with tk.local(size="tiny", default=False) as session:
        user = session.world["examples"]["WHALE"]
        rows = len(tk.user_fills_by_time(user, 0, session=session))
    arguments = ["refresh", str(tmp_path / "kept"), "userFillsByTime", user, "--size", "tiny"]
    for new in (rows, 0):
        result = CliRunner().invoke(archive_app, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
        assert (json.loads(result.output)["rows"], json.loads(result.output)["total"]) == (
            new,
            rows,
        )


def test_refresh_refuses_two_sources(tmp_path):
    both = ["--size", "tiny", "--base-url", "http://127.0.0.1:1"]
    result = CliRunner().invoke(archive_app, ["refresh", str(tmp_path), "meta", *both])
    assert result.exit_code == 2
    assert "use only one of them" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("meta", "--dex", "nosuch"), "there is no dex 'nosuch'"),
        (("slippageHistory", "BTC", "NOPE", "--amount", "1000"), "there is no coin 'NOPE'"),
    ],
)
def test_refresh_refuses_unknown_names(tmp_path, arguments, words):
    output = run_command("refresh", tmp_path / "kept", *arguments, "--size", "tiny", code=2)
    assert words in output
    assert "Nothing was archived" in output
    assert not list(tmp_path.glob("kept/*/*.parquet"))


def test_refresh_fails_for_unlisted_coin(tmp_path, monkeypatch):
    """A client of a port knows no names before it asks for them."""
    monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
    with (
        contextlib.closing(simulated_store(7, "tiny")) as store,
        run_server(application_of(store, KeyQuotas([AcceptedKey("k", CANARY)]))) as address,
    ):
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        place = ("refresh", tmp_path, "slippageHistory")
        output = run_command(*place, "BTC", "NOPE", "--amount", "1000", code=1)
    assert "slippageHistory NOPE 1000: there is no coin 'NOPE'" in output
    assert "1 of 2 failed" in output
    assert "slippageHistory BTC 1000: 289 new" in output
