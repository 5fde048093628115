"""JupyterLab with the query service beside it, each on a free port of this machine."""

import importlib.util
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from toolkit.local import site_of
from toolkit.service import Access, Key, Store
from toolkit.service.http import running

__all__ = ["LabMissing", "run"]


class LabMissing(Exception):
    """JupyterLab is not installed."""


def run(store: Store, folder: Path, *, port: int = 0, browser: bool = True) -> int:
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
    command += [f"--ServerApp.port={port}"] if port else []
    command += [] if browser else ["--no-browser"]
    # JupyterLab refuses to run as root, as one does in a container, unless it is told to.
    command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with running(site_of(store, Access([Key("lab", key)]))) as address:
        environment = {**os.environ, "TOOLKIT_BASE_URL": address, "TOOLKIT_API_KEY": key}
        return _run_to_its_end(command, environment)


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
        if program.poll() is None:
            program.terminate()
            program.wait(timeout=10)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
