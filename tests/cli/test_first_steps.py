"""``toolkit`` alone, ``toolkit doctor`` and ``toolkit notebooks``."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from toolkit.cli import FIRST_STEPS, app
from toolkit.service import Access, Key
from toolkit.service.http import run_server


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def check(result: Result, name: str) -> dict[str, str]:
    return next(entry for entry in json.loads(result.stdout) if entry["name"] == name)


def test_bare_command_shows_first_steps() -> None:
    shown = call()
    assert shown.exit_code == 0
    assert shown.stdout.strip() == FIRST_STEPS
    root = typer.main.get_command(app)
    for line in re.findall(r"^  (toolkit .*?)(?:   .*)?$", FIRST_STEPS, re.MULTILINE):
        assert shlex.split(line)[1] in root.commands


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("words", ["world --size tiny --json", "--version"])
def test_full_disk_ends_command(words: str) -> None:
    code = f"from toolkit.cli import app; app({words.split()!r})"
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == "toolkit: cannot write the output: No space left on device\n"


def test_completion_is_offered() -> None:
    assert "--install-completion" in call("--help").stdout


def test_doctor_finds_this_machine_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = call("doctor", "--json")
    assert found.exit_code == 0
    assert check(found, "libraries")["state"] == "ok"
    assert check(found, "extra scale")["state"] == "ok"
    assert check(found, "key")["state"] == "note"
    assert "export TOOLKIT_API_KEY" in check(found, "key")["advice"]


def test_doctor_names_shadow_and_missing_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolkit.py").touch()
    found = call("doctor", "--json", "--archive", "none")
    assert found.exit_code == 1
    assert "toolkit.py" in check(found, "import")["found"]
    assert check(found, "archive")["state"] == "problem"


def test_doctor_hides_key_in_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLKIT_BASE_URL", "https://me:a-secret-key@127.0.0.1:1")
    found = call("doctor", "--json")
    assert "Pass the key as api_key" in check(found, "address")["advice"]
    assert "a-secret-key" not in found.output


def test_doctor_asks_address_for_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.local_service import simulated_store, site_of

    monkeypatch.setenv("TOOLKIT_API_KEY", "a-secret-key")
    store = simulated_store(7, "tiny")
    with run_server(site_of(store, Access([Key("k", "a-secret-key")]))) as address:
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        found = call("doctor", "--json")
    store.close()
    assert check(found, "address")["state"] == "ok"
    assert "a-secret-key" not in found.output
    closed = call("doctor", "--json")
    assert closed.exit_code == 1
    assert check(closed, "address")["advice"] == "check TOOLKIT_BASE_URL"
    assert check(call("doctor", "--json", "--offline"), "address")["state"] == "ok"


def test_notebooks_are_copied_once(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    first = call("notebooks", folder)
    assert first.exit_code == 0
    changed = folder / "01_quickstart.ipynb"
    changed.write_text("mine")
    again = call("notebooks", folder)
    assert "0 notebooks copied" in again.output
    assert changed.read_text() == "mine"


TINY = ("--size", "tiny")
USER = "0x4a1ddfb577c46543c4485b599b97bcc3d58e77ca"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            (
                "fetch",
                "slippageHistory",
                "--coin",
                "BTC",
                "--amount",
                "10k",
                "--start",
                "1d",
                *TINY,
            ),
            "--amount is a number of USD, such as 10000 or 1e4, not '10k'",
        ),
        (("fetch", "userFills", "--user", USER), "use --base-url or TOOLKIT_BASE_URL, or offline"),
        (("archive", "verify", "kept@badid"), "'badid' is not the id of a freeze"),
    ],
)
def test_message_speaks_of_command_line(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").mkdir()
    shown = call(*words)
    assert shown.exit_code == 2
    assert message in shown.output
    assert "tk." not in shown.output


def test_report_names_all_that_archive_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("archive", "refresh", "kept", "delegations", "--user", USER, *TINY).exit_code == 0
    shown = call("report", "wallet", "--archive", "kept", "--user", USER)
    assert shown.exit_code == 1
    for operation in ("userFillsByTime", "userNonFundingLedgerUpdates"):
        assert f"kept {operation} --user {USER}\n" in shown.output
    assert shown.output.count("  toolkit archive refresh ") == 3
    assert "kept meta\n" in shown.output
    assert "error.rows" not in shown.output
