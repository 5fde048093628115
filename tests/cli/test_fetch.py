"""``toolkit fetch``, ``plan`` and ``info``: content of files, exit codes, error messages."""

import csv
import dataclasses
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pandas as pd
import pytest
import stamina
import typer
from typer.testing import CliRunner

import toolkit as tk
from toolkit.cli import app
from toolkit.cli.files import write_frame
from toolkit.contract.operations import OPERATIONS
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas, build_store
from toolkit.service.http import run_server
from toolkit.simulation import simulate

CANARY = "canary-cl1-secret-key"
TINY = ("--size", "tiny")


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def user(session):
    return str(session.world["users"][0])


def call(*words, code=0):
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == code, found.output
    return found


def test_help_lists_operations():
    listed = call("fetch", "--help").output
    for type in OPERATIONS:
        assert type in listed
    options = re.sub(r"\x1b\[[0-9;]*m", "", call("fetch", "userFillsByTime", "--help").output)
    for option in ("--user", "--start", "--page-size", "--aggregate-by-time", "--numbers"):
        assert option in options
    assert "--probe" in re.sub(r"\x1b\[[0-9;]*m", "", call("plan", "meta", "--help").output)


def test_unknown_coins_fail(tmp_path):
    out = tmp_path / "samples.parquet"
    for coins, code in ((("tsla",), 2), (("BTC", "NOPE"), 3)):
        words = [word for coin in coins for word in ("--coin", coin)]
        asked = ("slippageHistory", *words, "--amount", "1000", "--start", "1d", *TINY)
        failed = call("fetch", *asked, "-o", str(out), code=code)
        assert repr(coins[-1]) in failed.output
        assert not out.exists()


@contextmanager
def served(store, monkeypatch):
    """Serve a store on a port, and make it the service of the environment."""
    with run_server(application_of(store, KeyQuotas([AcceptedKey("one", CANARY)]))) as address:
        monkeypatch.setenv("TOOLKIT_BASE_URL", address)
        monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
        yield
    store.close()


def test_unknown_names_of_service_on_port_fail(monkeypatch):
    """Such a service lists no names: the command asks it for its coins and dexes."""
    with served(simulated_store(7, "tiny"), monkeypatch):
        words = ("slippageHistory", "--amount", "1000", "--start", "1d")
        failed = call("fetch", *words, "--coin", "NOPE", code=2)
        assert "there is no coin 'NOPE'; choose one of 'BTC'" in failed.output
        assert "BTC" in call("fetch", *words, "--coin", "$btc").output
        nobody = ("--user", "0x" + "1" * 40)
        for words in (["meta"], ["userFills", *nobody], ["currentDepth"]):
            says = "there is no dex 'nosuch'; choose one of '', 'eqx', 'pre'"
            assert says in call("fetch", *words, "--dex", "nosuch", code=2).output
            assert "complete: " in call("fetch", *words, "--dex", "pre").output


def test_strict_service_has_no_list_of_dexes(monkeypatch):
    """The command asks it for the perps of the dex."""
    store = build_store(simulate(seed=7, size="tiny").sources, strict=True)
    with served(store, monkeypatch):
        for words in (["meta"], ["batchClearinghouseStates", "--users", "0x" + "1" * 40]):
            failed = call("fetch", *words, "--dex", "nosuch", code=2)
            assert "there is no dex 'nosuch'; choose one of ''" in failed.output
            assert "complete: " in call("fetch", *words, "--dex", "pre").output


def test_parquet_file_has_certificate(session, user, tmp_path):
    out = tmp_path / "fills.parquet"
    asked = ("user_fills_by_time", "--user", user, "--start", "0", *TINY)  # or userFillsByTime
    said = call("fetch", *asked, "-o", str(out), "--json")
    frame = tk.user_fills_by_time(user, 0, session=session)
    pd.testing.assert_frame_equal(pd.read_parquet(out), frame)
    facts = json.loads(said.stdout)
    assert facts == tk.provenance(pd.read_parquet(out))
    assert (facts["complete"], facts["rows"]) == ("yes", len(frame))
    assert [path.name for path in tmp_path.iterdir()] == ["fills.parquet"]


def test_text_files_keep_digits(session, user, tmp_path):
    frame = tk.user_fills_by_time(user, 0, session=session)
    asked = ("fetch", "userFillsByTime", "--user", user, "--start", "0", *TINY)
    call(*asked, "-o", str(tmp_path / "fills.csv"))
    with (tmp_path / "fills.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [float(row["px"]) for row in written] == frame["px"].tolist()
    assert [pd.Timestamp(row["time"]) for row in written] == frame["time"].tolist()
    call(*asked, "-o", str(tmp_path / "fills.jsonl"))
    lines = (tmp_path / "fills.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["px"] for row in rows] == frame["px"].tolist()
    assert [pd.Timestamp(row["time"]) for row in rows] == frame["time"].tolist()
    missing = frame["twap_id"].isna()
    assert [row["twap_id"] is None for row in rows] == missing.tolist()
    exact = call(*asked, "--numbers", "exact", "--max-rows", "1", "-o", "-")
    assert isinstance(json.loads(exact.stdout)["px"], str)


def test_several_subjects_share_one_file(session, tmp_path):
    users = session.world["users"][:3]
    given = [word for item in users for word in ("--user", item)]
    out = tmp_path / "fills.parquet"
    call("fetch", "userFills", *given, *TINY, "-o", str(out))
    expected = tk.many(tk.user_fills, users, session=session)
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)


def test_each_frame_has_own_file(session, user, tmp_path):
    asked = ("fetch", "batchClearinghouseStates", "--users", user, *TINY)
    call(*asked, "-o", str(tmp_path / "now.csv"))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["now.accounts.csv", "now.failed.csv", "now.positions.csv"]
    lines = [json.loads(line) for line in call(*asked, "-o", "-").stdout.splitlines()]
    assert {line["frame"] for line in lines} <= {"accounts", "positions", "failed"}


def test_rows_are_printed_without_file(user):
    shown = call("fetch", "meta", "--dex", "", *TINY)
    assert "BTC" in shown.stdout
    assert "complete: yes" in shown.stderr


MISTAKES = [
    (("fetch", "userFills", "--user", "0xbad", *TINY), 2, "Invalid Ethereum address: 0xbad"),
    (("fetch", "userFills", *TINY), 2, "userFills needs --user"),
    (("fetch", "userFillsByTime", "--user", "0x", *TINY), 2, "needs --start or --cursor"),
    (("fetch", "meta", "--base-url", "http://x", *TINY), 2, "use only one of them"),
    (("fetch", "meta"), 2, "or offline --size tiny"),
    (("fetch", "meta", *TINY, "-o", "x.xls"), 2, "must end in .parquet, .csv, .xlsx, .jsonl"),
    (("fetch", "meta", *TINY, "-o", "no/such/x.csv"), 2, "there is no folder no/such"),
    (("fetch", "meta", *TINY, "-o", "-", "--json"), 2, "both write to stdout"),
    (("fetch", "meta", "--base-url", "http://127.0.0.1:1/?key=x"), 2, "Pass the key as"),
    (("fetch", "meta", "--base-url", "http://127.0.0.1:1"), 1, "no answer from http://127.0.0.1"),
    (("fetch", "meta", "--archive", "/none"), 1, "there is no archive in /none"),
    (("plan", "userFills", *TINY), 2, "userFills needs --user"),
    (
        ("plan", "userFills", "--user", "0xa", "--user", "0xb", *TINY),
        2,
        "toolkit plan takes only one subject",
    ),
    (("fetch", "slippageHistory", "--coin", "BTC", "--amount", "7", "--start", "1d", *TINY), 2,
     "amount must be one of"),
]  # fmt: skip


def test_mistakes_show_no_traceback():
    for words, code, said in MISTAKES:
        with stamina.set_testing(True, attempts=2):  # without waits
            found = call(*words, code=code)
        assert said in found.stderr
        assert "Traceback" not in found.output
        assert found.stdout == ""


def test_incomplete_rows_need_partial(user, tmp_path):
    out = tmp_path / "fills.parquet"
    out.write_bytes(b"what stood there before")
    asked = ("fetch", "userFillsByTime", "--user", user, "--start", "0", "--page-size", "100")
    asked = (*asked, "--most-points", "20", *TINY, "-o", str(out))
    found = call(*asked, code=2)
    assert "--most-points works only with a service" in found.stderr
    assert out.read_bytes() == b"what stood there before"


def test_warnings_go_to_stderr(user):
    found = call("fetch", "userFillsByTime", "--user", user, "--start", "2025-07-01", *TINY)
    assert "toolkit: warning: user_fills_by_time: the requested start (2025-07-01" in found.stderr


def test_plan_prints_estimate(session):
    asked = (
        "plan",
        "slippageHistory",
        "--coin",
        "BTC",
        "--amount",
        "1000",
        "--start",
        "2025-09-30",
    )
    printed = call(*asked, *TINY).stdout
    plan = tk.plan(tk.slippage_history, "BTC", 1_000, "2025-09-30", session=session)
    assert printed.strip() == str(plan)
    found = json.loads(call(*asked, "--json", *TINY).stdout)
    assert (found["rows"], found["sure"]) == (plan.rows, plan.sure)


@pytest.fixture(scope="module")
def address():
    store = simulated_store(7, "tiny")
    with run_server(application_of(store, KeyQuotas([AcceptedKey("one", CANARY)]))) as found:
        yield found
    store.close()


def command(*words, **environment):
    """Run a command; the environment has no key except the given one."""
    started = [sys.executable, "-c", "from toolkit.cli import app; app()", *words]
    known = {**os.environ, **environment}
    return subprocess.Popen(started, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_key_is_read_from_environment(address, user, tmp_path):
    out = tmp_path / "fills.parquet"
    asked = ("fetch", "userFillsByTime", "--user", user, "--start", "0", "-o", str(out))
    good = command(*asked, TOOLKIT_BASE_URL=address, TOOLKIT_API_KEY=CANARY)
    bad = command(*asked[:-1], str(tmp_path / "none.csv"), TOOLKIT_BASE_URL=address)
    shown = [part for item in (good, bad) for part in item.communicate(timeout=60)]
    assert (good.returncode, bad.returncode) == (0, 1)
    assert b"Invalid API key" in shown[3]
    assert not any(CANARY.encode() in part for part in (*shown, out.read_bytes()))
    with tk.connect(address, CANARY, default=False) as here:
        frame = tk.user_fills_by_time(user, 0, session=here)
    pd.testing.assert_frame_equal(pd.read_parquet(out), frame)
    assert [path.name for path in tmp_path.iterdir()] == ["fills.parquet"]


def test_incomplete_rows_exit_with_3(user, tmp_path, monkeypatch):
    out = tmp_path / "fills.jsonl"
    asked = ("fetch", "userFillsByTime", "--user", user, "--start", "0", "--page-size", "100")
    asked = (*asked, "--most-points", "20", "-o", str(out))
    with served(simulated_store(7, "tiny"), monkeypatch):
        plain = call(*asked, code=3).stderr
        assert "continue with --cursor " in plain
        assert "nothing was written" in plain
        assert not out.exists()
        facts = json.loads(call(*asked, "--partial", "--json", code=3).stdout)
    assert facts["complete"] == "no"
    assert len(out.read_text().splitlines()) == facts["rows"] > 0


def test_contradicting_rows_exit_with_3(user, tmp_path, monkeypatch):
    sources = simulate(seed=7, size="tiny").sources
    fills = list(sources.fills)
    own = [row for row, (account, _) in enumerate(fills) if account == user]
    del fills[own[len(own) // 2]]
    store = build_store(dataclasses.replace(sources, fills=fills))
    out = tmp_path / "fills.parquet"
    asked = ("fetch", "userFillsByTime", "--user", user, "--start", "0", "-o", str(out))
    with served(store, monkeypatch):
        plain = call(*asked, code=3)
        is_written = out.exists()
        call(*asked, "--partial", code=3)
    assert "contradict each other" in plain.stderr
    assert "nothing was written; --partial" in plain.stderr
    assert not is_written
    frame = pd.read_parquet(out)
    assert len(frame) == len(own) - 1
    assert tk.provenance(frame)["complete"] == "no"


def test_closed_pipe_is_silent(address, user):
    asked = ("fetch", "userFillsByTime", "--user", user, "--start", "0", "-o", "-")
    started = command(*asked, TOOLKIT_BASE_URL=address, TOOLKIT_API_KEY=CANARY)
    assert started.stdout is not None
    assert started.stderr is not None
    assert json.loads(started.stdout.readline())["coin"]
    started.stdout.close()
    with started.stderr:
        assert started.stderr.read() == b""
    assert started.wait(timeout=60) == 1


def test_progress_is_shown_on_terminal(tmp_path):
    here, there = pty.openpty()
    started = [sys.executable, "-c", "from toolkit.cli import app; app()", "fetch", "meta", *TINY]
    done = subprocess.run(
        [*started, "-o", str(tmp_path / "meta.csv")],
        env={**os.environ, "TERM": "xterm"},
        stderr=there,
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    os.close(there)
    shown = os.read(here, 65_536)
    os.close(here)
    assert b"\x1b[" in shown
    assert b"meta 16" in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown)  # native perps
    assert done.stdout == b""


def test_interrupt_leaves_no_file(user, tmp_path):
    """The service never responds; Ctrl-C ends the command at once, with a message."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asked = ("fetch", "userFills", "--user", user, "--base-url", address)
        started = command(*asked, "-o", str(tmp_path / "fills.csv"))
        silent.settimeout(60)
        with silent.accept()[0] as asked_by:
            asked_by.recv(1)  # the request is sent
            begun = time.monotonic()
            started.send_signal(signal.SIGINT)
            words = started.communicate(timeout=30)[1].decode()
    assert time.monotonic() - begun < 10
    assert started.returncode == 130
    assert "interrupted; nothing was written" in words
    assert "Traceback" not in words
    assert list(tmp_path.iterdir()) == []


def test_info_prints_answer(session, user):
    request = {"type": "meta", "dex": "eqx"}
    assert json.loads(call("info", json.dumps(request), *TINY).stdout) == tk.info(
        request, session=session
    )
    said = call("info", '{"type": "noSuchThing"}', *TINY, code=2)
    assert "Unknown type: noSuchThing (status 400)" in said.output
    assert "the request is not JSON" in call("info", "{type: meta}", *TINY, code=2).output
    assert "a mapping with a type" in call("info", "[]", *TINY, code=2).output


def test_other_operations_are_explained():
    command = "fetch"
    said = call(command, "subAccounts", "--user", "0x1", code=2).output
    assert "subAccounts is none of the " in said
    assert """toolkit info '{"type": "subAccounts"}'""" in said
    assert "costs 2 points" in said
    assert "Did you mean userFills?" in call(command, "userFils", code=2).output


def test_list_option_takes_several_values():
    for option in (("ALL:ALL_DEXES",), ("ALL", "--market-names", "ALL:eqx")):
        said = call("fetch", "perpTwapSnapshots", "--market-names", *option, *TINY, "--json")
        assert json.loads(said.stdout)["parameters"]["market_names"][0] == option[0]


def test_rows_beyond_a_sheet_are_written_as_parquet(tmp_path, capsys):
    with pytest.raises(typer.Exit):
        write_frame(pd.DataFrame({"a": range(2**20)}), tmp_path / "a.xlsx")
    assert "1,048,576 rows do not fit in an Excel sheet" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert len(pd.read_parquet(tmp_path / "a.parquet")) == 2**20
