"""The local service and its commands."""

import io
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import toolkit as tk
from toolkit.cli import app
from toolkit.contract.source_tables import Sources
from toolkit.local_service import local, simulated_store, tiled_store
from toolkit.service import Store, StoreDamaged, build_store, open_store
from toolkit.service.cache import cached_store

NOTHING = Sources(start_ms=0, now_ms=0, label="nothing", simulated=False)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Use a temporary folder as the cache of worlds."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    return folder


def build_nothing(path):
    return build_store(NOTHING, path)


def wait_for_nobody():
    pytest.fail("waits for nobody")


def test_local_session_knows_its_world():
    with tk.local(7, "tiny", default=False) as session:
        assert session.simulated
        assert session.label == "simulated, seed 7, size tiny"
        assert session.world["examples"]["WHALE"] in session.world["users"]
        assert session.now_ms() == session.world["now_ms"]
    with local(np.int64(7), "tiny", clock="live", default=False) as session:
        assert session.world["seed"] == 7
        assert 0 <= session.now_ms() - session.world["now_ms"] < 60_000


def test_wrong_argument_is_named():
    for wrong, error, named in [
        ({"size": "huge"}, ValueError, "huge"),
        ({"cursors": "fuzzy"}, ValueError, "fuzzy"),
        ({"clock": "stopped"}, ValueError, "stopped"),
        ({"recordings": "/none"}, ValueError, "none"),
        *(({"seed": seed}, ValueError, "seed") for seed in (-1, 10**40)),
        *(({"seed": seed, "size": "large"}, TypeError, "seed") for seed in ("x", 1.5, True)),
    ]:
        with pytest.raises(error, match=named):
            local(**{"size": "tiny", "default": False, **wrong})


# --- the cache of stores ---


def test_cache_file_name_has_size_and_seed(tmp_path):
    simulated_store(7, "tiny", tmp_path).close()
    (file,) = tmp_path.iterdir()
    assert re.fullmatch(r"tiny-7-.*\.db", file.name)
    result = file.stat().st_ino
    simulated_store(7, "tiny", tmp_path).close()
    assert file.stat().st_ino == result


def _truncate(file):
    file.write_bytes(file.read_bytes()[:-1])


def _other_tables(file):
    file.unlink()
    _execute(
        file,
        "CREATE TABLE about (name TEXT PRIMARY KEY, json BLOB NOT NULL)",
        "INSERT INTO about VALUES ('about', '{\"label\": \"another\"}')",
    )


def _unfinished(file):
    _execute(file, "DELETE FROM about")


def _other_version(file):
    _execute(file, "PRAGMA user_version = 1")


def _execute(file, *statements):
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _flip_one_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) * 3 // 4] ^= 16
    file.write_bytes(content)


DAMAGES = [_truncate, _other_tables, _unfinished, _other_version, _flip_one_bit]


def test_damaged_store_is_rebuilt(tmp_path, world):
    file = tmp_path / "few.db"
    few = replace(NOTHING, fills=world.sources.fills[:2_000])
    build_store(few, file).close()
    content = file.read_bytes()
    for damage in DAMAGES:
        damage(file)
        with pytest.raises(StoreDamaged):
            open_store(file)
        with pytest.warns(UserWarning, match=r"few\.db") as issued:
            cached_store(file, lambda path: build_store(few, path), wait_for_nobody).close()
        assert len(issued) == 1, damage
        assert file.read_bytes() == content
        assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(StoreDamaged):
        open_store(tmp_path / "missing.db")


BUILD = """
import sys
from pathlib import Path
from toolkit.contract.source_tables import Sources
from toolkit.service import build_store
from toolkit.service.cache import cached_store

def make(path):
    Path(f"{path.parent}/.{path.name}.half").write_text("half a file")
    print("building", flush=True)
    sys.stdin.readline()
    nothing = Sources(start_ms=0, now_ms=0, label="nothing", simulated=False)
    return build_store(nothing, path)

store = cached_store(Path(sys.argv[1]), make, lambda: print("waiting", flush=True))
print(store.about["label"], flush=True)
"""


def start_build(path):
    """Start a process that needs a store, and return it with the first line that it prints."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", BUILD, str(path)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    return process, process.stdout.readline()


def test_two_processes_share_store(tmp_path):
    path = tmp_path / "nothing.db"
    first, said = start_build(path)
    assert said == "building\n"
    second, said = start_build(path)
    assert said == "waiting\n"
    assert first.communicate("go on\n", timeout=60) == ("nothing\n", None)
    assert second.communicate(timeout=60) == ("nothing\n", None)


def test_killed_build_blocks_nobody(tmp_path):
    path = tmp_path / "nothing.db"
    builder, said = start_build(path)
    assert said == "building\n"
    with builder:
        builder.kill()
    left = tmp_path / ".nothing.db.half"
    os.utime(left, (0, 0))  # an hour later
    cached_store(path, build_nothing, wait_for_nobody).close()
    assert list(tmp_path.iterdir()) == [path]


def test_second_thread_waits(tmp_path):
    path = tmp_path / "nothing.db"
    begun, waited = threading.Event(), threading.Event()
    parts: list[Path] = []

    def make(path):
        begun.set()
        assert waited.wait(30)
        parts.append(path)
        return build_nothing(path)

    stores: list[Store] = []
    first = threading.Thread(target=lambda: stores.append(cached_store(path, make, waited.set)))
    first.start()
    assert begun.wait(30)
    stores.append(cached_store(path, make, waited.set))
    first.join()
    assert parts == [path]
    assert [store.about["label"] for store in stores] == ["nothing"] * 2
    assert list(tmp_path.iterdir()) == [path]
    for store in stores:
        store.close()


def test_full_disk_leaves_no_file(tmp_path, world):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))  # like a full disk
    try:
        with pytest.raises(OSError, match=r"world\.db"):
            cached_store(
                tmp_path / "world.db", lambda path: build_store(world.sources, path), print
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_exist_warns(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="XDG_CACHE_HOME"):
        store = simulated_store(7, "tiny", tmp_path / "file" / "below")
    assert store.select_value("SELECT count(*) FROM fill") > 10_000
    store.close()
    with pytest.raises(OSError, match=r"below: .* 3 GB"):  # does not fit into memory
        simulated_store(7, "large", tmp_path / "file" / "below")


def test_large_world_builds_by_tiles(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TQDM_MININTERVAL", "0")
    store = tiled_store(7, tmp_path / "large.db", 1, "tiny")
    shown = sys.stderr.getvalue()
    assert "seed 7" in shown
    assert "1/1" in shown
    assert len(store.about["world"]["users"]) == 40
    assert store.about["label"] == "simulated, seed 7, size large"
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["large.db"]


def test_old_stores_are_removed(tmp_path):
    """Eight stores remain, and at most ten gigabytes of them."""
    left = tmp_path / ".demo-7-0.db.killed"
    left.write_bytes(b"half a world")
    os.utime(left, (0, 0))
    names = [f"demo-{number}-0.db" for number in range(12)]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(b"old")
        os.utime(tmp_path / name, (number, number))
    cached_store(tmp_path / "first.db", build_nothing, print).close()
    assert {file.name for file in tmp_path.iterdir()} == {"first.db", *names[5:]}
    for number, name in enumerate(names[5:8]):
        os.truncate(tmp_path / name, 4 * 2**30)  # a sparse file that uses no disk space
        os.utime(tmp_path / name, (number, number))
    cached_store(tmp_path / "second.db", build_nothing, print).close()
    kept = {file.name for file in tmp_path.iterdir()}
    assert kept == {"first.db", "second.db", *names[6:]}


# --- commands ---

runner = CliRunner()


def test_world_prints_json(world):
    result = runner.invoke(app, ["world", "--seed", "7", "--size", "tiny", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(json.dumps(world.summary()))


def test_mistake_prints_message_without_traceback():
    serve = ["serve", "--port", "0"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, code, named in [
            (["world", "--size", "huge"], 2, "huge"),
            (["serve", "--port", "70000"], 2, "65535"),
            (["serve", "--port", port, "--size", "tiny"], 1, "--port 0"),
            ([*serve, "--keys", "/none.toml"], 2, "/none.toml"),
            ([*serve, "--recordings", "/none"], 2, "/none"),
            ([*serve, "--upstream", "ftp://127.0.0.1"], 2, "ftp://127.0.0.1"),
            ([*serve, "--clock", "stopped"], 2, "live"),
            ([*serve, "--host", "203.0.113.1"], 1, "203.0.113.1"),
            ([*serve, "--host", "0.0.0.0"], 2, "key"),
            ([*serve, "--archive", "/none"], 1, "/none"),
            (["lab", "--folder", "/none"], 2, "/none"),
        ]:
            result = runner.invoke(app, arguments)
            assert result.exit_code == code, arguments
            assert named in result.output
            assert "Traceback" not in result.output


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has these permissions")
def test_readable_keys_file_warning(tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text('[[key]]\nsecret = "hush"')
    command = ["serve", "--port", "0", "--keys", str(file), "--recordings", "/none"]
    for mode, is_warned in ((0o644, True), (0o640, True), (0o600, False)):
        file.chmod(mode)
        assert (f"chmod 600 {file}" in runner.invoke(app, command).output) == is_warned


def test_warning_if_other_machines_reach_service(monkeypatch):
    monkeypatch.setenv("TOOLKIT_API_KEY", "hush")
    command = ["serve", "--host", "0.0.0.0", "--port", "0", "--recordings", "/none"]
    output = runner.invoke(app, command).output
    assert "OTHER MACHINES" in output
    assert "hush" not in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_service_without_traceback(number):
    command = [sys.executable, "-c", "from toolkit.cli import app; app()"]
    command += ["serve", "--port", "0", "--size", "tiny"]
    environment = {**os.environ, "TOOLKIT_API_KEY": "s3cret", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as served:
        line = served.stdout.readline()
        address = line.split()[-1]
        assert "s3cret" not in line
        got = _when_ready(address)
        assert got.status_code == 200
        served.send_signal(number)
        out, err = served.communicate(timeout=20)
    assert (served.returncode, err) == (0, "")
    assert "Traceback" not in out


def _when_ready(address):
    for _ in range(100):
        try:
            return httpx.get(f"{address}/healthz", timeout=5)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"{address} never answered")
