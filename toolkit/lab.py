"""JupyterLab with the query service beside it, each on a free port of this machine."""

import importlib.util
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from toolkit.local import site_of
from toolkit.service import Access, Key, Store
from toolkit.service.http import running
from toolkit.times import iso

__all__ = ["LabMissing", "run"]


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
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.absolute()}"]
    command += ["--ServerApp.ip=127.0.0.1"]  # `localhost` may be another address alone
    command += [f"--LabApp.default_url=/lab/tree/{quote(first)}" for first in _first(folder)]
    command += [f"--ServerApp.port={port}"] if port else []
    command += [] if browser else ["--no-browser"]
    # JupyterLab refuses to run as root, as one does in a container, unless it is told to.
    command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with running(site_of(store, Access([Key("lab", key)]))) as address:
        environment = {**os.environ, "TOOLKIT_BASE_URL": address, "TOOLKIT_API_KEY": key}
        tell(_note(store, address, folder))
        return _run_to_its_end(command, environment)


def _first(folder: Path) -> list[str]:
    """Name the notebook that is open when JupyterLab begins, where there is one."""
    return [path.name for path in sorted(folder.glob("*.ipynb"))[:1]]


def _note(store: Store, address: str, folder: Path) -> str:
    """Say what is ready, and how to use it; the key stands in the environment of kernels alone."""
    end = iso(store.about["now_ms"])[:10]
    return (
        f"JupyterLab on {folder}; Ctrl-C ends it, the service and every kernel.\n"
        f"Ready in every kernel: {store.about['label']}, at {address}.\n"
        "  import toolkit as tk; session = tk.connect()    # address and key are set\n"
        f"Its history ends on {end}: that is its present, from which '7d' counts back.\n"
        "tk.local() is the same without a port."
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
