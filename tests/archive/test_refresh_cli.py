"""``toolkit archive refresh``: many accounts, each operation, errors and Ctrl-C."""

import io
import itertools
import json
import signal
import sys
import threading
from contextlib import contextmanager

import toolkit as tk
from tests.archive.commands import run_command, serving
from tests.archive.world import CANARY, START, USER, fill_session, fill_store, make_fills
from toolkit.archive import open as open_archive
from toolkit.cli.archive import archive_app
from toolkit.contract.operations import OPERATIONS

OTHER = "0x" + "b" * 40
FILLS = make_fills(300)
TINY = ("--size", "tiny")


def refresh(*arguments, code=0):
    return run_command("refresh", *arguments, code=code)


@contextmanager
def serve_fills(monkeypatch):
    """Serve fills of two accounts on the port of TOOLKIT_BASE_URL, and count the requests."""
    requests = []
    store = fill_store(FILLS, users=(USER, OTHER))
    with serving(store, monkeypatch, lambda: requests.append(1)):
        yield requests


def test_command_refuses_wrong_arguments_before_requests(tmp_path, monkeypatch):
    fills = (tmp_path, "userFillsByTime")
    with serve_fills(monkeypatch) as requests:
        accounts = refresh(*fills, USER, "0xbad", OTHER, "0xworse", code=2).stderr
        dex = refresh(*fills, USER, OTHER, "--dex", "flx", code=2).stderr
    assert ("0xbad" in accounts, "0xworse" in accounts, USER in accounts) == (True, True, False)
    assert dex.count("leave out dex") == 2
    wrong = {
        (*fills, "--coin", "BTC"): "--user",
        fills: "--user",
        (tmp_path, "slippageHistory", "--coin", "BTC"): "--amount",
        (tmp_path, "userFillz"): "userFills?",
    }
    assert [
        words
        for words, named in wrong.items()
        if named not in refresh(*words, *TINY, code=2).output
    ] == []
    assert requests == []
    assert open_archive(tmp_path).status().empty


def test_command_stops_if_all_would_fail(tmp_path, monkeypatch):
    archive = open_archive(tmp_path / "frozen")
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    frozen, both = f"{tmp_path / 'frozen'}@{archive.freeze()}", ("userFillsByTime", USER, OTHER)
    for key, words, why in (
        ("wrong", (tmp_path / "kept", *both), "Invalid API key"),
        (CANARY, (tmp_path / "kept", *both, "--most-points", 1), "points"),
        (CANARY, (frozen, *both), "frozen"),
    ):
        with serve_fills(monkeypatch):
            monkeypatch.setenv("TOOLKIT_API_KEY", key)
            stderr = refresh(*words, code=1).stderr
        assert why in stderr
        assert "1 of 2 failed; not requested: 1" in stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_command_shows_progress(tmp_path, tiny, monkeypatch, capsys):
    users, shown = tiny.world["users"][:3], Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    words = ("refresh", str(tmp_path), "userFillsByTime", *users, *TINY, "--json")
    archive_app(words, standalone_mode=False)
    assert "of 3" in shown.getvalue()
    assert " rows" in shown.getvalue()
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["subject"] for line in lines] == users


def test_command_interrupt_keeps_rows(tmp_path, monkeypatch):
    main, requests = threading.main_thread().ident, itertools.count()

    def press():
        if next(requests) == 3:  # the first request is not a page
            signal.pthread_kill(main, signal.SIGINT)

    with serving(fill_store(make_fills(9_000), users=(USER, OTHER)), monkeypatch, press):
        result = refresh(tmp_path, "userFillsByTime", USER, OTHER, code=130)
        row_count = open_archive(tmp_path).status()["rows"].sum()
        assert f"interrupted; userFillsByTime: {row_count:,} new rows are archived" in result.stderr
        assert 1_900 < row_count < 9_000
        refresh(tmp_path, "userFillsByTime", USER, OTHER)
    assert open_archive(tmp_path).status()["rows"].tolist() == [9_000, 9_000]
    assert open_archive(tmp_path).verify() == []


def test_command_archives_every_operation(tmp_path, tiny):
    world = tiny.world
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
        result = refresh(tmp_path, operation.type, *named, *more, *TINY, "--json")
        together = first is not None and first.kind in ("addresses", "texts")
        assert len(result.stdout.splitlines()) == (1 if together else max(len(named), 1))
    status = open_archive(tmp_path).status()
    assert set(status["operation"]) == set(OPERATIONS)
    for_dex = refresh(tmp_path, "meta", "--dex", world["dexes"][1], *TINY, "--json")
    assert world["dexes"][1] in json.loads(for_dex.stdout)["subject"]
