"""A real JupyterLab for the tests, and the actions of a browser on it."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 90
RUN_MS = 120_000
Process = subprocess.Popen[str]

FILES = {
    "config/jupyter_server_config.json": {
        "ServerApp": {
            "allow_root": True,
            "ip": "127.0.0.1",
            "port_retries": 0,
            "terminals_enabled": False,
        }
    },
    "config/jupyter_lab_config.json": {
        # Adds `window.jupyterapp` to the page.
        "LabApp": {"expose_app_in_browser": True, "extension_manager": "readonly"}
    },
    "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
    # Without it JupyterLab draws only the visible cells.
    "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {
        "windowingMode": "none"
    },
}

RUN_NOTEBOOK = """async ([path, subshells]) => {
  const app = window.jupyterapp;
  await app.restored;
  app.serviceManager.kernels.commsOverSubshells = subshells ? "perCommTarget" : "disabled";
  const panel = await app.commands.execute(
    "docmanager:open", {path, factory: "Notebook", kernel: {name: "python3"}});
  await panel.context.ready;
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session.kernel;
  await kernel.info;
  app.shell.activateById(panel.id);
  await app.commands.execute("notebook:run-all-cells");
  return panel.content.model.sharedModel.toJSON().cells;
}"""
"""Opens a notebook, runs all its cells, and resolves to the cells afterwards."""

RUN_CODE = """async code => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const outputs = [];
  const future = kernel.requestExecute({code});
  future.onIOPub = message => {
    const content = message.content;
    if (message.header.msg_type === "stream") outputs.push(content.text);
    if (message.header.msg_type === "execute_result") outputs.push(content.data["text/plain"]);
    if (message.header.msg_type === "error") outputs.push(...content.traceback);
  };
  await future.done;
  return outputs.join("\\n");
}"""
"""Runs code in the kernel of the front notebook, outside its cells; resolves to the output."""

BEGIN_CODE = """
code => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  kernel.requestExecute({code});
}
"""
"""The same, without waiting for its end."""

SAVE = """
async () => {
  await window.jupyterapp.shell.currentWidget.context.save();
}
"""

CLOSE = """
async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.sessionContext.shutdown();
  panel.dispose();
}
"""
"""Ends the kernel of the front notebook: remaining kernels would slow down the next test."""

THEME = """
async theme => {
  await window.jupyterapp.commands.execute("apputils:change-theme", {theme});
}
"""


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab; `log` contains its log."""

    url: str
    token: str
    root: Path
    log: list[str]

    def visit(self, page, workspace=None):
        """Open the lab in a page, and wait until it is ready for commands.

        The workspace is new by default: that of another page would open its notebooks.
        """
        name = workspace or secrets.token_hex(4)
        page.goto(f"{self.url}/lab/workspaces/{name}?token={self.token}")
        page.wait_for_function("window.jupyterapp !== undefined", timeout=START_SECONDS * 1000)

    def run_all(self, page, notebook, subshells=True):
        """Run the cells of a notebook in the browser, and return them with their outputs."""
        page.set_default_timeout(RUN_MS)
        cells: list[dict[str, Any]] = _evaluate(page, RUN_NOTEBOOK, [notebook, subshells])
        return cells


def run_code(page, code):
    """Run code in the kernel of the front notebook, and return its output."""
    said: str = _evaluate(page, RUN_CODE, code)
    return said


def _evaluate(page, script, argument):
    """Run a script in the page; a script that does not end fails after a timeout."""
    late = f'setTimeout(() => no(new Error("not done after {RUN_MS} ms")), {RUN_MS})'
    return page.evaluate(
        f"argument => Promise.race([({script})(argument), new Promise((_, no) => {late})])",
        argument,
    )


def errors(cells):
    """Return the exceptions with which cells ended."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [f"{o['ename']}: {o['evalue']}" for o in outputs if o["output_type"] == "error"]


def not_run(cells):
    """Return the source of the code cells that never ran."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in code if not cell["execution_count"]]


@contextmanager
def run_lab(root, private):
    """Run `toolkit lab` on the notebooks in `root`; Jupyter writes its files into `private`."""
    token = secrets.token_hex(16)
    quiet = {"TQDM_DISABLE": "1"}  # a slow machine shows progress bars
    environment = os.environ | _folders(private) | {"JUPYTER_TOKEN": token} | quiet
    process, log, port = _start_lab(root, environment)
    try:
        yield Lab(f"http://127.0.0.1:{port}", token, root, log.lines)
    finally:
        _stop_lab(process, log)


def _start_lab(root, environment):
    """Start the command; start it again if another program took the port in the meantime."""
    command = [Path(sys.executable).with_name("toolkit"), "lab", "--no-browser", "--size", "tiny"]
    while True:
        port = _free_port()
        process = subprocess.Popen(
            [*command, "--port", str(port), "--folder", str(root)],
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        log = _Log(process)
        if log.await_ready():
            return process, log, port
        _stop_lab(process, log)
        if not any(f"port {port} is not available" in line for line in log.lines):
            raise RuntimeError("JupyterLab did not start:\n" + "".join(log.lines))


def _stop_lab(process, log):
    # The process group, because JupyterLab is a child of the command.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    process.wait(timeout=30)
    log.follower.join(timeout=30)


class _Log:
    """Reads JupyterLab's log, so that it never blocks, and detects that it is ready."""

    def __init__(self, process):
        self.lines: list[str] = []
        self.process = process
        self.is_ready = False
        self.decided = threading.Event()
        self.follower = threading.Thread(target=self._follow, daemon=True)
        self.follower.start()

    def _follow(self):
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.lines.append(line)
                if "is running at" in line:
                    self.is_ready = True
                    self.decided.set()
        self.decided.set()  # the command ended

    def await_ready(self):
        """Wait until JupyterLab answers or has ended, and return whether it answers."""
        self.decided.wait(START_SECONDS)
        return self.is_ready


def _folders(private):
    """Return an environment that separates this lab from other Jupyter installations."""
    names = {
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    for name, content in FILES.items():
        path = private / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return {variable: str(private / name) for variable, name in names.items()}


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
