"""``toolkit lab``: JupyterLab and its service start together and end together."""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import nbformat.v4 as nb
import pytest
from tornado.web import HTTPError

from toolkit.lab import run_lab
from toolkit.lab.contents import NOTE, FolderAndNote
from toolkit.lab.workspace import make_note
from toolkit.local_service import simulated_store

MINUTE = 60
COMMAND = Path(sys.executable).with_name("toolkit")
HERE = "http://127.0.0.1"
ABOUT = {"label": "simulated, seed 7, size tiny", "now_ms": 1_759_276_800_000, "simulated": True}


@pytest.fixture(scope="module", autouse=True)
def world():
    """Simulate the exchange before the command runs, so that the command starts fast."""
    simulated_store(7, "tiny").close()


class Command:
    """The running command, and the address of JupyterLab."""

    def __init__(self, folder, private):
        heading = nb.new_markdown_cell("# First of all\n\nProse.")
        (folder / "10 first?.ipynb").write_text(nb.writes(nb.new_notebook(cells=[heading])))
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

    def _read(self):
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line)
                if HERE in line and "/lab" in line and "token" in line:
                    self.ready.set()
        self.ready.set()

    @property
    def service(self):
        """The address in the environment of the kernels."""
        line = next(line for line in self.lines if line.startswith("Ready in every kernel"))
        return line.rpartition(" at ")[2].strip().rstrip(".")

    @property
    def address(self):
        line = next(line for line in self.lines if HERE in line and "token" in line)
        return line[line.index(HERE) :].split("/lab")[0]

    def ask(self, path, method=None, **body):
        request = urllib.request.Request(
            f"{self.address}/{path}",
            method=method,
            data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"token {self.token}"},
        )
        for _ in range(100):  # it prints its address shortly before it accepts connections
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
def lab(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    command = Command(folder, tmp_path / "private")
    yield command
    if command.process.poll() is None:
        command.process.kill()
    command.process.wait(MINUTE)
    command.reader.join(MINUTE)


def alive_with(word):
    """Return the processes whose environment contains a word."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # the process has ended, or belongs to another user
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to find orphans")
def test_lab_opens_notebooks_and_ends_all_processes(lab, tmp_path):
    assert lab.ready.wait(MINUTE)
    assert lab.process.poll() is None, "".join(lab.lines)
    opened = lab.ask("lab/api/workspaces/default")["data"]
    assert opened["layout-restorer:data"]["main"]["current"] == "notebook:10 first?.ipynb"
    assert [name for name in opened if ":" in name and "restorer" not in name] == [
        "notebook:10 first?.ipynb",
        "notebook:20_second.ipynb",
        f"markdownviewer-widget:{NOTE}",
    ]
    model = lab.ask(f"api/contents/{quote(NOTE)}?type=file")
    assert model["content"] == make_note(
        ABOUT, lab.service, sorted((tmp_path / "notebooks").iterdir())
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        lab.ask(f"api/contents/{quote(NOTE)}", method="PUT", type="file", format="text", content="")
    listed = lab.ask("api/contents/")["content"]
    assert sorted(entry["name"] for entry in listed) == ["10 first?.ipynb", "20_second.ipynb"]
    lab.ask("api/kernels", name="python3")
    running = " ".join(alive_with(lab.token))
    for name in ("toolkit lab", "jupyterlab", "ipykernel"):
        assert name in running
    lab.process.send_signal(signal.SIGINT)
    assert lab.process.wait(MINUTE) == 0
    assert alive_with(lab.token) == []
    assert "toolkit/lab.py" not in "".join(lab.lines)  # no traceback of ours
    assert len(list((tmp_path / "notebooks").iterdir())) == 2
    written = [path for path in (tmp_path / "private").rglob("*") if "workspace" in path.name]
    assert written == []


def test_note_lists_notebooks(tmp_path):
    untitled = tmp_path / "a b.ipynb"
    untitled.write_text("not a notebook")
    titled = tmp_path / "two.ipynb"
    cell = nb.new_markdown_cell("# Two: is it more?\nProse.")
    titled.write_text(nb.writes(nb.new_notebook(cells=[cell])))
    text = make_note(ABOUT, "http://127.0.0.1:1234", [untitled, titled])
    assert "1. [a b](a%20b.ipynb)\n1. [Two: is it more?](two.ipynb)\n" in text
    assert "**simulated, seed 7, size tiny** runs at `http://127.0.0.1:1234`" in text
    for word in ("2025-10-01", "TOOLKIT_BASE_URL", "TOOLKIT_API_KEY", "Ctrl-C", "getpass"):
        assert word in text
    assert "There is none" in make_note(ABOUT, "http://127.0.0.1:1234", [])


def test_lab_returns_exit_code(tmp_path):
    """JupyterLab refuses to start on a folder that does not exist."""
    messages: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    store = simulated_store(7, "tiny")
    code = run_lab(store, tmp_path / "none", port=1, browser=False, announce=messages.append)
    store.close()
    assert code == 1
    assert signal.getsignal(signal.SIGTERM) is before
    (message,) = messages
    assert "Ready in every kernel: simulated, seed 7, size tiny, at http://127.0.0.1:" in message
    assert "Its history ends on 2025-10-01." in message


def test_note_is_read_only(tmp_path):
    note, folder = tmp_path / "note.md", tmp_path / "folder"
    note.write_text("About it")
    folder.mkdir()
    contents = FolderAndNote(root_dir=str(folder), note=str(note))

    async def use_note():
        assert await contents.file_exists(f"/{NOTE}")
        assert not await contents.file_exists("other.md")
        model = await contents.get(NOTE)
        assert (model["content"], model["mimetype"]) == ("About it", "text/markdown")
        assert (model["writable"], model["size"]) == (False, len("About it"))
        assert (await contents.get(NOTE, content=False))["content"] is None
        with pytest.raises(HTTPError, match="is read-only"):
            await contents.save({"type": "file", "format": "text", "content": "x"}, NOTE)
        file = {"type": "file", "format": "text", "content": "mine"}
        assert (await contents.save(file, "other.md"))["name"] == "other.md"
        assert (await contents.get("other.md"))["content"] == "mine"

    with ThreadPoolExecutor(1) as pool:  # the loop of the browser tests may run in this thread
        pool.submit(asyncio.run, use_note()).result()
    assert note.read_text() == "About it"
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["other.md"]
