"""JupyterLab with the query service beside it, each on a free port of this machine."""

import importlib.util
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

from toolkit.lab.note import note
from toolkit.lab.workspace import keep_workspace
from toolkit.local_service import site_of
from toolkit.service import Access, Key, Store
from toolkit.service.http import run_server
from toolkit.times import to_iso

__all__ = ["LabMissing", "run"]

_TABS: Final = 12  # in a folder of hundreds, opening all would help nobody


class LabMissing(Exception):
    """JupyterLab is not installed."""


def run(
    store: Store,
    folder: Path,
    *,
    port: int = 0,
    browser: bool = True,
    tell: Callable[[str], None] = print,
) -> int:
    """Run JupyterLab on a folder until it ends.

    Parameters
    ----------
    store : Store
        What the service beside it answers from.
    folder : Path
        The notebooks.
    port : int, default 0
        JupyterLab's port; 0 takes any that is free.
    browser : bool, default True
        Whether to open a browser.
    tell : callable
        Where to say what is ready.

    Returns
    -------
    int
        JupyterLab's exit code.

    Raises
    ------
    LabMissing
        If it is not installed.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise LabMissing("JupyterLab is not here: pip install 'exchange-toolkit[lab]'")
    key = secrets.token_urlsafe(24)
    with (
        run_server(site_of(store, Access([Key("lab", key)]))) as address,
        TemporaryDirectory(prefix="toolkit-lab-") as private,
    ):
        command = [sys.executable, "-m", "jupyterlab", *_options(folder, port, browser)]
        command += _opened(folder, Path(private), store, address)
        environment = {**os.environ, "TOOLKIT_BASE_URL": address, "TOOLKIT_API_KEY": key}
        tell(_ready(store, address, folder))
        return _run_to_its_end(command, environment)


def _options(folder: Path, port: int, browser: bool) -> list[str]:
    """Say where JupyterLab runs."""
    options = [f"--ServerApp.root_dir={folder.absolute()}"]
    options += ["--ServerApp.ip=127.0.0.1"]  # `localhost` may be another address alone
    options += [f"--ServerApp.port={port}"] if port else []
    options += [] if browser else ["--no-browser"]
    # JupyterLab refuses to run as root, as one does in a container, unless it is told to.
    options += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return options


def _opened(folder: Path, private: Path, store: Store, address: str) -> list[str]:
    """Say what JupyterLab opens: the notebooks and the note, from files of this session alone."""
    from toolkit.lab.contents import NOTE, FolderAndNote

    notebooks = sorted(folder.glob("*.ipynb"))[:_TABS]
    text = private / "note.md"
    text.write_text(note(store.about, address, notebooks), encoding="utf-8")
    workspaces = private / "workspaces"
    keep_workspace(workspaces, [path.name for path in notebooks], NOTE)
    contents = f"{FolderAndNote.__module__}.{FolderAndNote.__name__}"
    return [
        f"--LabApp.workspaces_dir={workspaces}",
        f"--LabApp.extra_labextensions_path={Path(__file__).with_name('extension')}",
        f"--ServerApp.contents_manager_class={contents}",
        f"--{FolderAndNote.__name__}.note={text}",
    ]


def _ready(store: Store, address: str, folder: Path) -> str:
    """Say what is ready, and how to use it; the key stands in the environment of kernels alone."""
    end = to_iso(store.about["now_ms"])[:10]
    return (
        f"JupyterLab on {folder}; Ctrl-C ends it, the service and every kernel.\n"
        f"Ready in every kernel: {store.about['label']}, at {address}.\n"
        "  import toolkit as tk; session = tk.connect()    # address and key are set\n"
        f"Its history ends on {end}: that is its present, from which '7d' counts back.\n"
        "tk.local() is the same without a port. The note beside the notebooks says more."
    )


def _run_to_its_end(command: list[str], environment: dict[str, str]) -> int:
    """Run a program; whatever ends us ends it, too."""
    before = signal.signal(signal.SIGTERM, _leave)
    # In a session of its own, or the terminal would send Ctrl-C to JupyterLab as well, which
    # asks before it stops, and goes on when nobody answers.
    program = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return program.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(program)


def _end(program: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started: JupyterLab ends its kernels, if it is given time."""
    if program.poll() is None:
        program.terminate()
        try:
            program.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
