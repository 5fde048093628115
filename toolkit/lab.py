"""JupyterLab with the query service beside it, each on a free port of this machine."""

import importlib.util
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit.local import site_of
from toolkit.service import Access, Key, Store
from toolkit.service.http import bind, server

__all__ = ["LabMissing", "run", "serving"]


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
    with serving(store, key) as address:
        environment = {**os.environ, "TOOLKIT_BASE_URL": address, "TOOLKIT_API_KEY": key}
        running = subprocess.Popen(command, env=environment)
        while True:
            try:
                return running.wait()
            except KeyboardInterrupt:
                # The terminal has sent it to JupyterLab as well, which asks before it stops.
                continue


@contextmanager
def serving(store: Store, key: str) -> Iterator[str]:
    """Run the service of a store in a thread, on a free port, and give its address."""
    taken = bind("127.0.0.1", 0)
    taken.listen()
    serves = server(site_of(store, Access([Key("lab", key)])))
    thread = threading.Thread(target=serves.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    finally:
        serves.should_exit = True
        thread.join(timeout=10)
        store.close()
