"""The commands of ``toolkit archive``."""

import json
import re

from tests.archive.commands import run_command, serving
from tests.archive.world import USER, archived_rows, fill_store, make_fills
from toolkit.archive import open as open_archive
from toolkit.local_service import simulated_store

TINY = ("--size", "tiny")


def test_commands_refresh_freeze_and_verify(tmp_path, monkeypatch):
    path, users = tmp_path / "kept", (USER, "0x" + "b" * 40)
    with serving(fill_store(make_fills(300), users=users), monkeypatch):
        start = ("--start", "2025-08-01")
        lines = run_command("refresh", path, "userFillsByTime", *users, *start, "--json").output
        assert [json.loads(line)["rows"] for line in lines.splitlines()] == [300, 300]
        assert "0 new" in run_command("refresh", path, "user_fills_by_time", USER).output
        run_command("refresh", path, "meta")
    found = json.loads(run_command("status", path, "--json").output)
    assert [row["rows"] for row in found] == [300, 300, 1]
    assert "userFillsByTime" in run_command("status", path).output
    frozen = json.loads(run_command("freeze", path, "--json").output)
    assert json.loads(run_command("compact", path, "--json").output)["files_fewer"] >= 1
    assert json.loads(run_command("verify", path, "--json").output) == {"ok": True, "findings": []}
    verified = run_command("verify", frozen["archive"]).output
    assert re.search(r"no errors: [\d,]+ rows and the refresh log", verified)
    for file in (path / "fills").glob("*.parquet"):  # also those that compaction replaced
        file.write_bytes(b"torn")
    assert "damage" in run_command("verify", path, "--json", code=1).output


def test_commands_refuse_wrong_arguments(tmp_path):
    recorded = {"request": {"type": "meta"}, "status": 200, "response": {"universe": []}}
    (tmp_path / "meta.json").write_text(json.dumps(recorded))
    kept, none = tmp_path / "kept", tmp_path / "none"
    assert "meta.json: 1 row" in run_command("ingest", kept, tmp_path).output
    assert archived_rows(open_archive(kept)) == []
    (tmp_path / "torn.json").write_text("{")
    left = run_command("ingest", kept, tmp_path, "--json", code=1)
    assert list(json.loads(left.stdout)["left"]) == ["torn.json"]
    assert "torn.json: left out: " in left.stderr
    assert "has no rows yet" in run_command("status", none).output
    refused = {
        ("freeze", none): "empty",
        ("ingest", kept, tmp_path / "gone"): "no file or folder",
        ("verify", none): "no archive",  # a misspelt folder is an error
        ("compact", none): "no archive",
        ("refresh", none, "nothing"): "no operation",
        ("status", f"{kept}@f{'0' * 16}"): "no freeze",
        ("refresh", none, "userFillsByTime", "WHALE", *TINY): "Ethereum address",
        ("refresh", none, "meta", *TINY, "--base-url", "http://127.0.0.1:1"): "only one",
        ("refresh", none, "meta", "--dex", "nosuch", *TINY): "Nothing was archived",
    }
    outputs = {words: run_command(*words, code=2).output for words in refused}
    wrong = [words for words, named in refused.items() if named not in outputs[words]]
    assert wrong == []
    assert not none.exists() or not list(none.glob("*/*.parquet"))


def test_refresh_fails_for_unlisted_coin(tmp_path, monkeypatch):
    """A client of a port knows no names before it asks for them."""
    with serving(simulated_store(7, "tiny"), monkeypatch):
        words = ("refresh", tmp_path, "slippageHistory", "btc", "NOPE", "--amount", "1000")
        output = run_command(*words, code=1).output
    assert "NOPE 1000: " in output
    assert "1 of 2 failed" in output
    assert "slippageHistory BTC 1000: 289 new" in output
