"""The composition root and the command line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import toolkit.local
from toolkit.cli import app
from toolkit.local import local, simulated_store
from toolkit.service import StoreDamaged, open_store


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep worlds in a folder of the tests."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_a_session_on_the_service_in_process() -> None:
    with local(7, "tiny", default=False) as session:
        assert session.simulated
        assert session.label == "simulated, seed 7, size tiny"
        assert session.world["examples"]["WHALE"] in session.world["users"]
        assert session.now_ms() == session.world["now_ms"]


def test_the_module_may_be_called_like_the_function() -> None:
    called: Any = toolkit.local
    with called(7, "tiny", default=False) as session:
        assert session.simulated


def test_a_live_clock_goes_on_from_the_end() -> None:
    with local(7, "tiny", clock="live", default=False) as session:
        first = session.now_ms()
        assert 0 <= first - session.world["now_ms"] < 60_000


@pytest.mark.parametrize(
    "wrong", [{"size": "huge"}, {"cursors": "fuzzy"}, {"clock": "stopped"}, {"recordings": "/none"}]
)
def test_wrong_arguments_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"huge|fuzzy|stopped|none"):
        local(**{"size": "tiny", "default": False, **wrong})


def test_a_world_is_kept_and_made_again_when_it_is_damaged(tmp_path: Path) -> None:
    simulated_store(7, "tiny", tmp_path).close()
    (file,) = tmp_path.iterdir()
    made = file.stat().st_ino
    simulated_store(7, "tiny", tmp_path).close()
    assert file.stat().st_ino == made
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreDamaged):
        open_store(file)
    store = simulated_store(7, "tiny", tmp_path)
    assert len(store.about["world"]["users"]) == 40
    store.close()


def test_worlds_do_not_pile_up(tmp_path: Path) -> None:
    left = tmp_path / ".demo-7-0.db.killed"
    left.write_bytes(b"half a world")
    os.utime(left, (0, 0))
    for number in range(12):
        (tmp_path / f"demo-{number}-0.db").write_bytes(b"old")
        os.utime(tmp_path / f"demo-{number}-0.db", (number, number))
    simulated_store(7, "tiny", tmp_path).close()
    kept = sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("demo"))
    assert kept == sorted(f"demo-{number}-0.db" for number in range(5, 12))
    assert not left.exists()


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="cannot keep"):
        store = simulated_store(7, "tiny", tmp_path / "file" / "below")
    assert store.about["simulated"]
    store.close()


runner = CliRunner()


def test_world_prints_json() -> None:
    result = runner.invoke(app, ["world", "--seed", "7", "--size", "tiny", "--json"])
    assert result.exit_code == 0
    import json

    assert list(json.loads(result.stdout)) == [
        "seed",
        "size",
        "start_ms",
        "now_ms",
        "users",
        "builders",
        "validators",
        "perp_coins",
        "spot_coins",
        "dexes",
        "venues",
        "collateral_tokens",
    ]


def test_world_prints_a_summary() -> None:
    result = runner.invoke(app, ["world", "--size", "tiny"])
    assert result.exit_code == 0
    assert "users" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["world", "--size", "huge"], 2, "huge"),
        (["serve", "--port", "70000"], 2, "65535"),
        (["serve", "--port", "0", "--keys", "/none.toml"], 2, "/none.toml"),
        (["serve", "--port", "0", "--recordings", "/none"], 2, "/none"),
        (["serve", "--host", "203.0.113.1", "--port", "0"], 1, "cannot be had"),
        (["lab", "--folder", "/none"], 2, "/none"),
    ],
)
def test_mistakes_are_one_clear_line(arguments: list[str], code: int, message: str) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == code
    assert message in result.output
    assert "Traceback" not in result.output


def test_serve_from_start_to_interrupt(cache: Path) -> None:
    command = [sys.executable, "-c", "from toolkit.cli import app; app()"]
    command += ["serve", "--port", "0", "--size", "tiny"]
    environment = {**os.environ, "TOOLKIT_API_KEY": "s3cret", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        line = served.stdout.readline()
        address = line.split()[-1]
        assert "s3cret" not in line
        got = _when_ready(address)
        assert got.status_code == 200
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=20)
        assert "Traceback" not in out + err


def _when_ready(address: str) -> httpx.Response:
    for _ in range(100):
        try:
            return httpx.get(f"{address}/healthz", timeout=5)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"{address} never answered")
