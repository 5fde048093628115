"""``toolkit lab``: JupyterLab and the service beside it come together, and go together."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat.v4 as nb
import pytest

from toolkit.local import simulated_store

MINUTE = 60
COMMAND = Path(sys.executable).with_name("toolkit")
HERE = "http://127.0.0.1"


@pytest.fixture(scope="module", autouse=True)
def world() -> None:
    """Simulate before the command does: it is not what is waited for."""
    simulated_store(7, "tiny").close()


class Command:
    """The command, running; it says where JupyterLab is."""

    def __init__(self, folder: Path, private: Path) -> None:
        (folder / "10 first?.ipynb").write_text(nb.writes(nb.new_notebook()))
        (folder / "20_second.ipynb").write_text(nb.writes(nb.new_notebook()))
        places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
        self.token = secrets.token_hex(8)
        self.process = subprocess.Popen(
            [COMMAND, "lab", "--no-browser", "--size", "tiny", "--folder", str(folder)],
            env=os.environ
            | {name: str(private / name) for name in places}
            | {"JUPYTER_TOKEN": self.token, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line)
                if HERE in line and "/lab" in line and "token" in line:
                    self.ready.set()
        self.ready.set()

    @property
    def address(self) -> str:
        line = next(line for line in self.lines if HERE in line and "token" in line)
        return line[line.index(HERE) :].split("/lab")[0]

    def ask(self, path: str, **body: str) -> object:
        request = urllib.request.Request(
            f"{self.address}/api/{path}",
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"token {self.token}"},
        )
        for _ in range(100):  # it says its address a moment before it takes connections
            try:
                with urllib.request.urlopen(request, timeout=MINUTE) as answer:
                    return json.load(answer)
            except ConnectionError:
                threading.Event().wait(0.1)
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ConnectionError):
                    raise
                threading.Event().wait(0.1)
        raise AssertionError("nobody answers:\n" + "".join(self.lines))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Command]:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    command = Command(folder, tmp_path / "private")
    yield command
    if command.process.poll() is None:
        command.process.kill()
    command.process.wait(MINUTE)
    command.reader.join(MINUTE)


def alive_with(word: str) -> list[str]:
    """List the processes whose environment holds a word."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # gone, or not ours
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find orphans")
def test_interrupted_it_leaves_no_process_behind(lab: Command):
    assert lab.ready.wait(MINUTE)
    assert lab.process.poll() is None, "".join(lab.lines)
    lab.ask("kernels", name="python3")
    running = " ".join(alive_with(lab.token))
    for name in ("toolkit lab", "jupyterlab", "ipykernel"):
        assert name in running
    lab.process.send_signal(signal.SIGINT)
    assert lab.process.wait(MINUTE) == 0
    assert alive_with(lab.token) == []
    said = "".join(lab.lines)
    assert "Ready in every kernel: simulated, seed 7, size tiny, at http://127.0.0.1:" in said
    assert "Its history ends on 2025-10-01" in said
    assert "/lab/tree/10%20first%3F.ipynb" in said
    assert "toolkit/lab.py" not in said  # no traceback of ours; a kernel cut short may leave one
