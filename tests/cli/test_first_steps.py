"""``toolkit`` alone, ``toolkit doctor`` and ``toolkit notebooks``."""

import json
import re
import shlex
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from toolkit.cli import FIRST_STEPS, app
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def check(result, name):
    return next(entry for entry in json.loads(result.stdout) if entry["name"] == name)


def test_bare_command_shows_first_steps():
    shown = call()
    assert shown.exit_code == 0
    assert shown.stdout.strip() == FIRST_STEPS
    root = typer.main.get_command(app)
    for line in re.findall(r"^  (toolkit .*?)(?:   .*)?$", FIRST_STEPS, re.MULTILINE):
        assert shlex.split(line)[1] in root.commands


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_full_disk_ends_command():
    code = "from toolkit.cli import app; app(['--version'])"
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


def test_doctor_finds_this_machine_ready(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = call("doctor", "--json")
    assert found.exit_code == 0
    assert check(found, "libraries")["state"] == "ok"
    assert check(found, "extra scale")["state"] == "ok"
    assert check(found, "key")["state"] == "note"
    assert "export TOOLKIT_API_KEY" in check(found, "key")["advice"]


def test_doctor_names_shadow_and_missing_archive(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolkit.py").touch()
    found = call("doctor", "--json", "--archive", "none")
    assert found.exit_code == 1
    assert "toolkit.py" in check(found, "import")["found"]
    assert check(found, "archive")["state"] == "problem"


def test_doctor_hides_key_in_address(monkeypatch):
    monkeypatch.setenv("TOOLKIT_BASE_URL", "https://me:a-secret-key@127.0.0.1:1")
    found = call("doctor", "--json")
    assert "Pass the key as api_key" in check(found, "address")["advice"]
    assert "a-secret-key" not in found.output


def test_doctor_asks_address_for_its_clock(monkeypatch):
    from toolkit.local_service import application_of, simulated_store

    monkeypatch.setenv("TOOLKIT_API_KEY", "a-secret-key")
    store = simulated_store(7, "tiny")
    with run_server(
        application_of(store, KeyQuotas([AcceptedKey("k", "a-secret-key")]))
    ) as address:
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        found = call("doctor", "--json")
    store.close()
    assert check(found, "address")["state"] == "ok"
    assert "a-secret-key" not in found.output
    closed = call("doctor", "--json")
    assert closed.exit_code == 1
    assert check(closed, "address")["advice"] == "check TOOLKIT_BASE_URL"
    assert check(call("doctor", "--json", "--offline"), "address")["state"] == "ok"


@contextmanager
def dated_server(date):
    """Run a server that answers with one date, or without a date; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response_only(200)
            if date is not None:
                self.send_header("Date", date)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_DIFFERS = r"^the clock differs from the service by [\d,]+ s"


def test_doctor_compares_clocks(monkeypatch):
    for date, state, found in (
        ("Mon, 01 Sep 2025 00:00:00 GMT", "problem", _DIFFERS),
        ("Mon, 01 Sep 2025 00:00:00 -0000", "problem", _DIFFERS),
        ("yesterday", "note", "does not say its time"),
        (None, "note", "does not say its time"),
    ):
        with dated_server(date) as address:
            monkeypatch.setenv("TOOLKIT_BASE_URL", address)
            shown = call("doctor", "--json")
        assert check(shown, "clock")["state"] == state
        assert re.search(rf"{found}$", check(shown, "clock")["found"])


def test_doctor_prints_advice_as_text(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("TOOLKIT_API_KEY", "TOOLKIT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    shown = call("doctor")
    lines = shown.stdout.splitlines()
    chromium = next(number for number, line in enumerate(lines) if "Chromium" in line)
    assert lines[chromium].split() == ["note", "Chromium", "not", "found"]
    assert lines[chromium + 1].strip().startswith("-> reports as PDF")
    assert lines[-1] == "ready"
    assert shown.exit_code == 0


def test_doctor_reports_unwritable_cache(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    shown = call("doctor", "--json", "--offline")
    assert shown.exit_code == 1
    assert check(shown, "cache")["found"].endswith("is not writable")
    assert check(shown, "cache")["advice"] == "set XDG_CACHE_HOME"


def test_doctor_counts_archive_rows(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert call("archive", "refresh", "kept", "meta", *TINY).exit_code == 0
    shown = call("doctor", "--json", "--offline", "--archive", "kept")
    assert check(shown, "archive")["state"] == "ok"
    assert re.fullmatch(r"kept: 1 series, [1-9]\d* rows?", check(shown, "archive")["found"])


def test_doctor_lists_unfit_libraries(monkeypatch, tmp_path):
    """An installed distribution is a folder of metadata: the first one on the path counts."""
    needs = ["absent-library>=1", "pandas>=2", 'absent-extra; extra == "scale"']
    for name, version, requirements in (("exchange_toolkit", "9.9", needs), ("pandas", "0.1", [])):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    shown = call("doctor", "--json", "--offline")
    assert shown.exit_code == 1
    found = "absent-library is missing; pandas is 0.1, not >=2"
    assert check(shown, "libraries")["found"] == found
    assert check(shown, "extra scale")["state"] == "note"
    assert check(shown, "extra scale")["found"].endswith("; absent-extra is missing")
    assert "[scale]" in check(shown, "extra scale")["advice"]


def test_notebooks_are_copied_once(tmp_path):
    folder = tmp_path / "mine"
    first = call("notebooks", folder)
    assert first.exit_code == 0
    changed = folder / "01_quickstart.ipynb"
    changed.write_text("mine")
    again = call("notebooks", folder)
    assert "0 notebooks copied to" in again.output
    assert changed.read_text() == "mine"


def test_notebooks_need_writable_folder(tmp_path):
    (tmp_path / "file").touch()
    shown = call("notebooks", tmp_path / "file")
    assert shown.exit_code == 1
    assert f"cannot write into {tmp_path / 'file'}: File exists" in shown.output


TINY = ("--size", "tiny")
USER = "0x4a1ddfb577c46543c4485b599b97bcc3d58e77ca"


def test_messages_name_options_not_functions(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    samples = ("fetch", "slippageHistory", "--coin", "BTC", "--start", "1d", *TINY)
    for words, message in (
        ((*samples, "--amount", "10k"), "--amount is a number of USD, such as 10000 or 1e4"),
        (("fetch", "userFills", "--user", USER), "use --base-url or TOOLKIT_BASE_URL, or offline"),
        (("archive", "verify", "kept@badid"), "`toolkit archive refresh` makes an archive"),
    ):
        shown = call(*words)
        assert shown.exit_code == 2
        assert message in shown.output
        assert "tk." not in shown.output


def test_report_names_missing_archive_operations(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert call("archive", "refresh", "kept", "delegations", "--user", USER, *TINY).exit_code == 0
    shown = call("report", "wallet", "--archive", "kept", "--user", USER)
    assert shown.exit_code == 1
    for operation in ("userFillsByTime", "userNonFundingLedgerUpdates"):
        assert f"kept {operation} --user {USER}\n" in shown.output
    assert shown.output.count("  toolkit archive refresh ") == 3
    assert "kept meta\n" in shown.output
    assert "error.rows" not in shown.output
