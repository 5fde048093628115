"""``toolkit archive refresh``: many accounts, each operation, mistakes, failures and Ctrl-C."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import CANARY, START, USER, Changed, fills_of, session_of, store_of
from toolkit import archive
from toolkit.cli.archive import archive_app
from toolkit.contract.operations import OPERATIONS
from toolkit.local_service import site_of
from toolkit.service import Access, Key
from toolkit.service.http import run_server

OTHER = "0x" + "b" * 40
FILLS = fills_of(300)


def call(*arguments: object) -> Result:
    said = CliRunner().invoke(archive_app, ["refresh", *map(str, arguments)])
    assert CANARY not in said.output
    return said


@contextmanager
def served(
    monkeypatch: pytest.MonkeyPatch, fills: int = 300, on_request: Callable[[], None] | None = None
) -> Iterator[None]:
    """Serve fills of two accounts where TOOLKIT_BASE_URL says."""
    with closing(store_of(fills_of(fills), users=(USER, OTHER))) as store:
        site = site_of(store, Access([Key("k", CANARY)]))

        def now_ms() -> int:
            if on_request:
                on_request()
            return store.about["now_ms"]

        with run_server(replace(site, now_ms=now_ms)) as address:
            monkeypatch.setenv("TOOLKIT_BASE_URL", address)
            monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
            yield


def test_all_wrong_accounts_are_named_before_any_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = itertools.count()
    with served(monkeypatch, on_request=lambda: next(requests)):
        said = call(tmp_path, "userFillsByTime", USER, "0xbad", OTHER, "0xworse")
    assert said.exit_code == 2
    assert said.stderr.count("Invalid Ethereum address") == 2
    assert "0xbad" in said.stderr
    assert "0xworse" in said.stderr
    assert next(requests) == 0
    assert archive.open(tmp_path).status().empty


def test_what_cannot_be_archived_is_told_before_any_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = itertools.count()
    with served(monkeypatch, on_request=lambda: next(requests)):
        said = call(tmp_path, "userFillsByTime", USER, OTHER, "--dex", "flx")
    assert said.exit_code == 2
    assert said.stderr.count("leave out dex") == 2
    assert next(requests) == 0


def test_a_failure_of_one_account_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = archive.open(tmp_path)
    other = session_of(
        FILLS[:100],
        users=(USER,),
        through=lambda inner: Changed(inner, lambda body: body.replace(b"64000.10", b"1.0")),
    )
    kept.refresh(tk.user_fills_by_time, USER, START, session=other)
    with served(monkeypatch):
        said = call(tmp_path, "userFillsByTime", USER, OTHER, "--json")
    assert said.exit_code == 1
    assert [json.loads(line)["subject"] for line in said.stdout.splitlines()] == [OTHER]
    assert f"userFillsByTime {USER}: " in said.stderr
    assert "did not come again" in said.stderr
    assert "1 of 2 failed" in said.stderr
    assert kept.status()["rows"].tolist() == [100, 300]


@pytest.mark.parametrize(
    ("key", "more", "why"),
    [("wrong", (), "Invalid API key"), (CANARY, ("--most-points", 1), "points")],
)
def test_what_would_fail_for_all_ends_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, more: tuple[object, ...], why: str
) -> None:
    requests = itertools.count()
    with served(monkeypatch, on_request=lambda: next(requests)):
        monkeypatch.setenv("TOOLKIT_API_KEY", key)
        said = call(tmp_path, "userFillsByTime", USER, OTHER, *more)
    assert said.exit_code == 1
    assert why in said.stderr
    assert "1 of 2 failed; not asked for: 1" in said.stderr


def test_an_archive_that_takes_nothing_ends_it_at_once(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS))
    said = call(f"{tmp_path}@{kept.freeze()}", "userFillsByTime", USER, OTHER, "--size", "tiny")
    assert said.exit_code == 1
    assert "is opened frozen" in said.stderr
    assert "1 of 2 failed; not asked for: 1" in said.stderr


def test_a_terminal_is_shown_how_many_are_done(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="there are no terminals to open here")
    with tk.local(size="tiny", default=False) as session:
        users = session.world["users"][:3]
    command = ["archive", "refresh", tmp_path, "userFillsByTime", *users, "--size", "tiny"]
    shown, terminal = pty.openpty()
    text = bytearray()

    def read() -> None:
        with suppress(OSError):  # so a terminal ends
            while seen := os.read(shown, 4096):
                text.extend(seen)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        said = subprocess.run(
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
    assert said.returncode == 0, text.decode()
    assert b"of 3" in text
    assert b" rows" in text
    assert [json.loads(line)["subject"] for line in said.stdout.splitlines()] == users


def test_ctrl_c_keeps_what_was_read_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, requests = threading.main_thread().ident, itertools.count()
    assert main is not None

    def press() -> None:
        if next(requests) == 3:  # who it is, then pages
            signal.pthread_kill(main, signal.SIGINT)

    with served(monkeypatch, 9_000, press):
        said = call(tmp_path, "userFillsByTime", USER, OTHER)
        (kept,) = archive.open(tmp_path).status()["rows"]
        assert said.exit_code == 130
        assert f"interrupted; userFillsByTime {USER}: {kept} new rows are archived" in said.stderr
        assert 1_900 < kept < 9_000
        assert call(tmp_path, "userFillsByTime", USER, OTHER).exit_code == 0
    assert archive.open(tmp_path).status()["rows"].tolist() == [9_000, 9_000]
    assert archive.open(tmp_path).verify() == []


def test_a_start_of_0_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch):
        said = call(tmp_path, "userFillsByTime", USER, "--start", "0", "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["start_ms"] == 0


def test_every_operation_can_be_archived(tmp_path: Path) -> None:
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
    for one in OPERATIONS.values():
        first = one.parameters[0] if one.parameters else None
        named = subjects[first.python] if first and first.required else []
        more = ["--amount", "1000"] if one.type == "slippageHistory" else []
        said = call(tmp_path, one.type, *named, *more, "--size", "tiny", "--json")
        assert said.exit_code == 0, said.output
        together = first is not None and first.kind in ("addresses", "texts")
        assert len(said.stdout.splitlines()) == (1 if together else max(len(named), 1))
    status = archive.open(tmp_path).status()
    assert set(status["operation"]) == set(OPERATIONS)
    for_dex = call(tmp_path, "meta", "--dex", world["dexes"][1], "--size", "tiny", "--json")
    assert world["dexes"][1] in json.loads(for_dex.stdout)["subject"]
