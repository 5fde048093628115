"""The local service and its commands."""

import io
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
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
from toolkit.simulation import simulate

ROOT = Path(__file__).parents[2]
NOTHING = Sources(start_ms=0, now_ms=0, label="nothing", simulated=False)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Use a temporary folder as the cache of worlds."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_local_session_knows_its_world():
    with local(7, "tiny", default=False) as session:
        assert session.simulated
        assert session.label == "simulated, seed 7, size tiny"
        assert session.world["examples"]["WHALE"] in session.world["users"]
        assert session.now_ms() == session.world["now_ms"]


def test_local_remains_function_after_import():
    with tk.local(7, "tiny", default=False) as session:
        assert session.simulated


def test_live_clock_starts_at_end():
    with local(7, "tiny", clock="live", default=False) as session:
        first = session.now_ms()
        assert 0 <= first - session.world["now_ms"] < 60_000


@pytest.mark.parametrize(
    "wrong", [{"size": "huge"}, {"cursors": "fuzzy"}, {"clock": "stopped"}, {"recordings": "/none"}]
)
def test_wrong_argument_is_named(wrong):
    with pytest.raises(ValueError, match=r"huge|fuzzy|stopped|none"):
        local(**{"size": "tiny", "default": False, **wrong})


@pytest.mark.parametrize(
    ("seed", "error"),
    [(-1, ValueError), (10**40, ValueError), ("x", TypeError), (1.5, TypeError), (True, TypeError)],
)
@pytest.mark.parametrize("size", ["tiny", "large"])
def test_invalid_seed_is_refused(size, seed, error):
    with pytest.raises(error, match="a seed must be a whole number"):
        local(seed, size, default=False)


def test_numpy_integer_is_valid_seed():
    with local(np.int64(7), "tiny", default=False) as session:
        assert session.world["seed"] == 7


def test_cache_file_name_has_size_and_seed(tmp_path):
    simulated_store(7, "tiny", tmp_path).close()
    (file,) = tmp_path.iterdir()
    assert re.fullmatch(r"tiny-7-\d+\.\d+\.\d+-[0-9a-f]{16}\.db", file.name)
    result = file.stat().st_ino
    simulated_store(7, "tiny", tmp_path).close()
    assert file.stat().st_ino == result
    simulated_store(8, "tiny", tmp_path).close()
    assert len(list(tmp_path.iterdir())) == 2


def _truncate(file):
    file.write_bytes(file.read_bytes()[:-1])


def _garble(file):
    file.write_bytes(b"this is no store" * 10_000)


def _empty(file):
    file.write_bytes(b"")


def _other_tables(file):
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE about (name TEXT PRIMARY KEY, json BLOB NOT NULL)")
        connection.execute("INSERT INTO about VALUES ('about', '{\"label\": \"another\"}')")
        connection.commit()


def _unfinished(file):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM about")
        connection.commit()


def _flip_bytes(file):
    content, draw = bytearray(file.read_bytes()), random.Random(5)
    for place in draw.sample(range(len(content)), 200):
        content[place] ^= draw.randint(1, 255)
    file.write_bytes(content)


def _flip_one_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) * 3 // 4] ^= 16
    file.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the name and the content of a complete store."""
    folder = tmp_path_factory.mktemp("whole")
    simulated_store(7, "tiny", folder).close()
    (file,) = folder.iterdir()
    return file.name, file.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [_truncate, _garble, _empty, _other_tables, _unfinished, _flip_bytes, _flip_one_bit],
)
def test_damaged_store_is_rebuilt(tmp_path, damage, whole):
    name, content = whole
    file = tmp_path / name
    file.write_bytes(content)
    damage(file)
    with pytest.raises(StoreDamaged):
        open_store(file)
    with pytest.warns(UserWarning, match=r"\.db .*\. It is built again$") as issued:
        store = simulated_store(7, "tiny", tmp_path)
    assert len(issued) == 1
    assert len(store.about["world"]["users"]) == 40
    store.close()
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


BUILD = """
import sys
from pathlib import Path
from toolkit.local_service import simulated_store
sys.stdin.readline()
store = simulated_store(7, "tiny", Path(sys.argv[1]))
print(store.about["label"], store.select_value("SELECT count(*) FROM fill"), flush=True)
store.close()
"""


def test_two_processes_share_store(tmp_path):
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    pipe = subprocess.PIPE
    builders = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(2)
    ]
    for item in builders:  # both processes have finished their imports
        assert item.stdin is not None
        item.stdin.write("go\n")
        item.stdin.flush()
    answers = [builder.communicate(timeout=120) for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    store = simulated_store(7, "tiny", tmp_path)
    expected = f"{store.about['label']} {store.select_value('SELECT count(*) FROM fill')}\n"
    store.close()
    assert answers == [(expected, ""), (expected, "")]
    assert [file.suffix for file in tmp_path.iterdir()] == [".db"]


def test_second_process_waits(tmp_path):
    path = tmp_path / "nothing.db"
    begun, waited = threading.Event(), threading.Event()
    parts: list[Path] = []

    def make(path):
        begun.set()
        assert waited.wait(30)
        parts.append(path)
        return build_store(NOTHING, path)

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


HANG = """
import sys
from pathlib import Path
from toolkit.service.cache import cached_store

def make(path):
    Path(f"{path.parent}/.{path.name}.half").write_text("half a file")
    print("building", flush=True)
    sys.stdin.read()

cached_store(Path(sys.argv[1]), make, print)
"""


def test_killed_build_blocks_nobody(tmp_path):
    path = tmp_path / "nothing.db"
    command = [sys.executable, "-c", HANG, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as builder:
        assert builder.stdout is not None
        assert builder.stdout.readline() == "building\n"
        builder.kill()
    left = tmp_path / ".nothing.db.half"
    os.utime(left, (0, 0))  # an hour later
    store = cached_store(
        path, lambda path: build_store(NOTHING, path), lambda: pytest.fail("waits for nobody")
    )
    store.close()
    assert list(tmp_path.iterdir()) == [path]


def test_failed_build_leaves_no_file(tmp_path):
    def make(path):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_store(tmp_path / "nothing.db", make, print)
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, sys, warnings
from pathlib import Path
from toolkit.local_service import simulated_store, tiled_store
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))  # like a disk with no more room
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    store = simulated_store(7, "tiny", Path(sys.argv[1]))
count = store.select_value("SELECT count(*) FROM fill")
print(count > 10_000, *(one.message for one in said), sep="|")
try:
    tiled_store(7, Path(sys.argv[1]) / "large.db", 1, "tiny")
except OSError as error:
    print(error)
"""


def test_full_disk_warns_and_leaves_no_file(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    small, large = done.stdout.splitlines()
    assert small.startswith(f"True|cannot save the simulated exchange in {tmp_path}: ")
    assert "large.db cannot be written: " in large
    assert list(tmp_path.iterdir()) == []


NO_HOME = """
import os, sys, warnings
import toolkit as tk
with warnings.catch_warnings(record=True) as issued:
    warnings.simplefilter("always")
    tk.local(7, "tiny", default=False)
    tk.connect("http://127.0.0.1:9", "a-secret", points_per_minute=1200, default=False)
print(*(one.message for one in issued), sep=chr(10))
print(os.listdir())
"""


def _run_without_home(folder, *prefix, **environment):
    """Run `NO_HOME` in an empty folder, and return the lines that it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    kept.pop("HOME", None)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", NO_HOME],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_user_without_home_folder_is_warned(tmp_path):
    prefix = ("unshare", "--user", "--map-user=12345")  # no entry in the list of users
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("another user cannot be tried here")
    world, budget, files = _run_without_home(tmp_path, *prefix)
    assert world.startswith(
        "cannot save the simulated exchange: this user has no home folder: set XDG_CACHE_HOME"
    )
    assert budget.startswith("this user has no home folder: set XDG_CACHE_HOME to a folder. Points")
    assert files == "[]"


def test_unwritable_home_warns(tmp_path):
    file = tmp_path / "file"
    file.touch()
    world, *_, files = _run_without_home(tmp_path, HOME=str(file))
    assert world.startswith(f"cannot save the simulated exchange in {file}/.cache/")
    assert world.endswith(". It will be simulated again. Set XDG_CACHE_HOME to a writable folder")
    assert files == "['file']"


def test_large_world_builds_by_tiles(tmp_path):
    store = tiled_store(7, tmp_path / "large.db", 2, "tiny")
    assert len(store.about["world"]["users"]) == 80
    assert store.about["label"] == "simulated, seed 7, size large"
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["large.db"]


def test_large_world_shows_progress(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TQDM_MININTERVAL", "0")
    tiled_store(7, tmp_path / "large.db", 2, "tiny").close()
    shown = sys.stderr.getvalue()
    assert shown.startswith("simulating the large exchange, seed 7: this takes about ten minutes")
    assert "2/2" in shown


def test_old_stores_are_removed(tmp_path):
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


def test_large_stores_are_removed(tmp_path):
    for number in range(3):
        with (tmp_path / f"large-{number}-0.db").open("wb") as file:
            file.truncate(4 * 2**30)  # a sparse file that uses no disk space
        os.utime(tmp_path / f"large-{number}-0.db", (number, number))
    simulated_store(7, "tiny", tmp_path).close()
    kept = sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("large"))
    assert kept == ["large-1-0.db", "large-2-0.db"]


def test_large_world_without_cache_fails(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        OSError, match=r"cannot save the simulated exchange in .*below: .*; free 3 GB, or "
    ):
        simulated_store(7, "large", tmp_path / "file" / "below")


def test_unwritable_cache_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="cannot save"):
        store = simulated_store(7, "tiny", tmp_path / "file" / "below")
    assert store.about["simulated"]
    store.close()


runner = CliRunner()


def test_world_prints_json():
    result = runner.invoke(app, ["world", "--seed", "7", "--size", "tiny", "--json"])
    assert result.exit_code == 0
    import json

    found = json.loads(result.stdout)
    assert list(found) == [
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
        "digest",
    ]
    assert found["digest"] == simulate(7, "tiny").digest()


def test_world_prints_summary():
    result = runner.invoke(app, ["world", "--size", "tiny"])
    assert result.exit_code == 0
    assert "users" in result.stdout
    assert re.search(r"^dexes +3  \(native\), eqx, pre$", result.stdout, re.MULTILINE)
    assert re.search(r"^digest +[0-9a-f]{64}$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["world", "--size", "huge"], 2, "huge"),
        (["serve", "--port", "70000"], 2, "65535"),
        (["serve", "--port", "0", "--keys", "/none.toml"], 2, "/none.toml"),
        (["serve", "--port", "0", "--recordings", "/none"], 2, "/none"),
        (["serve", "--port", "0", "--clock", "stopped"], 2, "live"),
        (["serve", "--host", "203.0.113.1", "--port", "0"], 1, "cannot listen on"),
        (["serve", "--host", "0.0.0.0", "--port", "0"], 2, "so it needs a key of yours"),
        (["serve", "--port", "0", "--archive", "/none"], 1, "there is no archive in /none"),
        (["lab", "--folder", "/none"], 2, "/none"),
    ],
)
def test_mistake_prints_message_without_traceback(arguments, code, message):
    result = runner.invoke(app, arguments)
    assert result.exit_code == code
    assert message in result.output
    assert "Traceback" not in result.output


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has these permissions")
@pytest.mark.parametrize(("mode", "is_warned"), [(0o644, True), (0o640, True), (0o600, False)])
def test_readable_keys_file_warning(tmp_path, mode, is_warned):
    file = tmp_path / "keys.toml"
    file.write_text('[[key]]\nsecret = "hush"')
    file.chmod(mode)
    command = ["serve", "--port", "0", "--keys", str(file), "--recordings", "/none"]
    assert (f"Run: chmod 600 {file}" in runner.invoke(app, command).output) == is_warned


def test_warning_if_other_machines_reach_service(monkeypatch):
    monkeypatch.setenv("TOOLKIT_API_KEY", "hush")
    command = ["serve", "--host", "0.0.0.0", "--port", "0", "--recordings", "/none"]
    output = runner.invoke(app, command).output
    assert "OTHER MACHINES CAN REACH THIS SERVICE" in output
    assert "hush" not in output


def test_used_port_names_alternative():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = runner.invoke(app, ["serve", "--port", port, "--size", "tiny"])
    assert result.exit_code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.output
    assert "--port 0 selects a free port" in result.output


def test_interrupt_ends_service_without_traceback(cache):
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


def _when_ready(address):
    for _ in range(100):
        try:
            return httpx.get(f"{address}/healthz", timeout=5)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"{address} never answered")
