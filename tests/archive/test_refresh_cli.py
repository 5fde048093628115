"""``toolkit archive refresh``: many accounts, each operation, errors and Ctrl-C."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import (
    CANARY,
    START,
    USER,
    ChangedAnswers,
    fill_session,
    fill_store,
    make_fills,
)
from toolkit.archive import open as open_archive
from toolkit.cli.archive import archive_app
from toolkit.contract.operations import OPERATIONS
from toolkit.local_service import application_of
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server

OTHER = "0x" + "b" * 40
FILLS = make_fills(300)


def call(*arguments):
    result = CliRunner().invoke(archive_app, ["refresh", *map(str, arguments)])
    assert CANARY not in result.output
    return result


@contextmanager
def serve_fills(monkeypatch, fills=300, on_request=None):
    """Serve fills of two accounts on the port of TOOLKIT_BASE_URL."""
    with closing(fill_store(make_fills(fills), users=(USER, OTHER))) as store:
        application = application_of(store, KeyQuotas([AcceptedKey("k", CANARY)]))

        def now_ms():
            if on_request:
                on_request()
            return store.about["now_ms"]

        with run_server(replace(application, now_ms=now_ms)) as address:
            monkeypatch.setenv("TOOLKIT_BASE_URL", address)
            monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
            yield


def test_command_names_all_invalid_accounts(tmp_path, monkeypatch):
    requests = itertools.count()
    with serve_fills(monkeypatch, on_request=lambda: next(requests)):
        result = call(tmp_path, "userFillsByTime", USER, "0xbad", OTHER, "0xworse")
    assert result.exit_code == 2
    assert result.stderr.count("Invalid Ethereum address") == 2
    assert "0xbad" in result.stderr
    assert "0xworse" in result.stderr
    assert next(requests) == 0
    assert open_archive(tmp_path).status().empty


def test_command_refuses_filter_before_requests(tmp_path, monkeypatch):
    requests = itertools.count()
    with serve_fills(monkeypatch, on_request=lambda: next(requests)):
        result = call(tmp_path, "userFillsByTime", USER, OTHER, "--dex", "flx")
    assert result.exit_code == 2
    assert result.stderr.count("leave out dex") == 2
    assert next(requests) == 0


def test_command_continues_after_one_failure(tmp_path, monkeypatch):
    archive = open_archive(tmp_path)
    other = fill_session(
        FILLS[:100],
        users=(USER,),
        through=lambda inner: ChangedAnswers(inner, lambda body: body.replace(b"64000.10", b"1.0")),
    )
    archive.refresh(tk.user_fills_by_time, USER, START, session=other)
    with serve_fills(monkeypatch):
        result = call(tmp_path, "userFillsByTime", USER, OTHER, "--json")
    assert result.exit_code == 1
    assert [json.loads(line)["subject"] for line in result.stdout.splitlines()] == [OTHER]
    assert f"userFillsByTime {USER}: " in result.stderr
    assert "did not come again" in result.stderr
    assert "1 of 2 failed" in result.stderr
    assert archive.status()["rows"].tolist() == [100, 300]


@pytest.mark.parametrize(
    ("key", "more", "why"),
    [("wrong", (), "Invalid API key"), (CANARY, ("--most-points", 1), "points")],
)
def test_command_stops_if_all_would_fail(tmp_path, monkeypatch, key, more, why):
    requests = itertools.count()
    with serve_fills(monkeypatch, on_request=lambda: next(requests)):
        monkeypatch.setenv("TOOLKIT_API_KEY", key)
        result = call(tmp_path, "userFillsByTime", USER, OTHER, *more)
    assert result.exit_code == 1
    assert why in result.stderr
    assert "1 of 2 failed; not requested: 1" in result.stderr


def test_command_stops_on_frozen_archive(tmp_path):
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    result = call(
        f"{tmp_path}@{archive.freeze()}", "userFillsByTime", USER, OTHER, "--size", "tiny"
    )
    assert result.exit_code == 1
    assert "is opened frozen" in result.stderr
    assert "1 of 2 failed; not requested: 1" in result.stderr


def test_command_shows_progress(tmp_path):
    pty = pytest.importorskip("pty", reason="there are no terminals to open here")
    with tk.local(size="tiny", default=False) as session:
        users = session.world["users"][:3]
    command = ["archive", "refresh", tmp_path, "userFillsByTime", *users, "--size", "tiny"]
    shown, terminal = pty.openpty()
    text = bytearray()

    def read():
        with suppress(OSError):  # the terminal was closed
            while seen := os.read(shown, 4096):
                text.extend(seen)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        result = subprocess.run(
            [sys.executable, "-c", "from toolkit.cli import app; app()", *command, "--json"],
            stdout=subprocess.PIPE,
            stderr=terminal,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
            timeout=120,
            check=False,
        )
    finally:
        os.close(terminal)
        reader.join()
        os.close(shown)
    assert result.returncode == 0, text.decode()
    assert b"of 3" in text
    assert b" rows" in text
    assert [json.loads(line)["subject"] for line in result.stdout.splitlines()] == users


def test_command_interrupt_keeps_rows(tmp_path, monkeypatch):
    main, requests = threading.main_thread().ident, itertools.count()
    assert main is not None

    def press():
        if next(requests) == 3:  # the first request is not a page
            signal.pthread_kill(main, signal.SIGINT)

    with serve_fills(monkeypatch, 9_000, press):
        result = call(tmp_path, "userFillsByTime", USER, OTHER)
        row_count = open_archive(tmp_path).status()["rows"].sum()
        assert result.exit_code == 130
        assert f"interrupted; userFillsByTime: {row_count:,} new rows are archived" in result.stderr
        assert 1_900 < row_count < 9_000
        assert call(tmp_path, "userFillsByTime", USER, OTHER).exit_code == 0
    assert open_archive(tmp_path).status()["rows"].tolist() == [9_000, 9_000]
    assert open_archive(tmp_path).verify() == []


def test_command_accepts_start_0(tmp_path, monkeypatch):
    with serve_fills(monkeypatch):
        result = call(tmp_path, "userFillsByTime", USER, "--start", "0", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["start_ms"] == 0


def test_command_counts_age_from_present_of_service(tmp_path):
    with tk.local(size="tiny", default=False) as session:
        user = session.world["users"][0]
        rows = len(tk.user_fills_by_time(user, "7d", session=session))
    done = call(tmp_path, "userFillsByTime", user, "--start", "7d", "--size", "tiny", "--json")
    assert json.loads(done.stdout)["rows"] == rows > 0


def test_command_archives_every_operation(tmp_path):
    with tk.local(size="tiny", default=False) as session:
        world = session.world
    subjects = {
        "user": world["users"][:1],
        "builder": world["builders"][:1],
        "validator": world["validators"][:1],
        "coin": world["perp_coins"][:2],
        "dex": ["native", world["dexes"][1]],
        "users": world["users"][:3],
        "collateral_tokens": ["ALL"],
        "market_names": ["ALL:ALL_DEXES"],
    }
    for operation in OPERATIONS.values():
        first = operation.parameters[0] if operation.parameters else None
        named = subjects[first.python] if first and first.required else []
        more = ["--amount", "1000"] if operation.type == "slippageHistory" else []
        result = call(tmp_path, operation.type, *named, *more, "--size", "tiny", "--json")
        assert result.exit_code == 0, result.output
        together = first is not None and first.kind in ("addresses", "texts")
        assert len(result.stdout.splitlines()) == (1 if together else max(len(named), 1))
    status = open_archive(tmp_path).status()
    assert set(status["operation"]) == set(OPERATIONS)
    for_dex = call(tmp_path, "meta", "--dex", world["dexes"][1], "--size", "tiny", "--json")
    assert world["dexes"][1] in json.loads(for_dex.stdout)["subject"]


def test_refresh_takes_subjects_as_options(tmp_path, monkeypatch):
    with serve_fills(monkeypatch):
        done = call(tmp_path, "userFillsByTime", "--user", USER, "--user", OTHER, "--start", START)
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 2


def test_refresh_names_fitting_option(tmp_path):
    done = call(tmp_path, "userFillsByTime", "--coin", "BTC", "--size", "tiny")
    assert done.exit_code == 2
    assert "userFillsByTime has no --coin: use --user" in done.output


def test_refresh_names_missing_option(tmp_path):
    for operation, options in (("userFillsByTime", "--user"), ("slippageHistory", "--amount")):
        arguments = ("--coin", "BTC") if operation == "slippageHistory" else ()
        done = call(tmp_path, operation, *arguments, "--size", "tiny")
        assert done.exit_code == 2
        assert f"{operation} needs {options}\n" in done.output
    done = call(tmp_path, "userFillz", "--size", "tiny")
    assert "there is no operation 'userFillz'; did you mean userFills?" in done.output
