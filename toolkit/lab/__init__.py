"""JupyterLab with the query service beside it, both on free ports of this machine."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NoReturn

from toolkit.installation import explain_missing
from toolkit.lab.workspace import make_note, save_workspace
from toolkit.local_service import application_of
from toolkit.service import AcceptedKey, KeyQuotas, Store
from toolkit.service.http import run_server
from toolkit.times import to_iso

_MOST_TABS: Final = 20  # hundreds of open tabs would help nobody
_READY: Final = """\
JupyterLab on {folder}; Ctrl-C ends it, the service and every kernel.
Ready in every kernel: {label}, at {address}.
  import toolkit as tk; session = tk.connect()    # address and key are set
Its history ends on {end}. This is its present: '7d' means the seven days before it.
tk.local() is the same without a port. The note, a tab in JupyterLab, has more details.
JupyterLab opens in a browser. Without a browser, open the address with /lab?token= that it prints \
next."""  # it has no key


def run_lab(
    store: Store,
    folder: Path,
    *,
    port: int = 0,
    browser: bool = True,
    announce: Callable[[str], None] = print,
) -> int:
    """Run JupyterLab on a folder until it ends.

    - ``store``: the store of the service beside it
    - ``folder``: the folder of notebooks
    - ``port``: JupyterLab's port; 0 selects a free port
    - ``browser``: whether to open a browser
    - ``announce``: prints the message that everything is ready

    Returns: JupyterLab's exit code.

    Raise MissingExtra if JupyterLab is not installed.
    """
    with explain_missing("lab"):
        import jupyterlab  # noqa: F401 - it runs as a program of its own

        from toolkit.lab.contents import NOTE, FolderAndNote
    key = secrets.token_urlsafe(24)
    notebooks = sorted(folder.glob("*.ipynb"))[:_MOST_TABS]
    with (
        run_server(application_of(store, KeyQuotas([AcceptedKey("lab", key)]))) as address,
        TemporaryDirectory(prefix="toolkit-lab-") as private,
    ):
        # The notebooks and the note need files of this session only.
        note, workspaces = Path(private) / "note.md", Path(private) / "workspaces"
        note.write_text(make_note(store.about, address, notebooks), encoding="utf-8")
        save_workspace(workspaces, [path.name for path in notebooks], NOTE)
        contents = f"{FolderAndNote.__module__}.{FolderAndNote.__name__}"
        command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.absolute()}"]
        command += ["--ServerApp.ip=127.0.0.1"]  # `localhost` may mean another address
        command += [f"--ServerApp.port={port}"] if port else []
        command += [] if browser else ["--no-browser"]
        # Without this option JupyterLab refuses to run as root, which is usual in a container.
        command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        command += [
            f"--LabApp.workspaces_dir={workspaces}",
            f"--LabApp.extra_labextensions_path={Path(__file__).with_name('extension')}",
            f"--ServerApp.contents_manager_class={contents}",
            f"--{FolderAndNote.__name__}.note={note}",
        ]
        environment = {**os.environ, "TOOLKIT_BASE_URL": address, "TOOLKIT_API_KEY": key}
        end = to_iso(store.about["now_ms"])[:10]
        announce(_READY.format(folder=folder, label=store.about["label"], address=address, end=end))
        return _run_until_end(command, environment)


def _run_until_end(command: list[str], environment: dict[str, str]) -> int:
    """Run a program, and end it if this process ends."""

    def exit_on_signal(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, exit_on_signal)
    # The program gets a session of its own. Otherwise the terminal would also send Ctrl-C to
    # JupyterLab, which asks before it stops, and goes on without an answer.
    program = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return program.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, previous)
        program.terminate()  # nothing happens if it has ended
        try:
            program.wait(timeout=10)  # JupyterLab needs some time to end its kernels
        except subprocess.TimeoutExpired:
            if os.name == "posix":
                os.killpg(program.pid, signal.SIGKILL)
            else:  # Windows has no process groups of this kind; the kernels end with their parent
                program.kill()
            program.wait()
