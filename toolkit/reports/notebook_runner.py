"""The kernel of a report: it runs a notebook with parameters over a source of data."""

import ast
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
from anyio.from_thread import start_blocking_portal

from toolkit.client import current_session
from toolkit.display import type_text
from toolkit.errors import NotConnected, ReportFailed
from toolkit.reports.blocks import Block, provenance, words

_KERNEL: Final = {"name": "python3", "display_name": "Python 3", "language": "python"}
_TRANSPORT: Final = "tcp" if sys.platform == "win32" else "ipc"  # a socket of this user alone
_OWN_ERRORS: Final = frozenset({"ArchiveError", "BadRequest", "Incomplete", "ReportFailed"})


def read_notebook(path: Path) -> Any:
    """Return a notebook of a file: ``.ipynb``, or a text format of jupytext.

    Raise ReportFailed if there is no such file, or it is not a notebook.
    """
    import jupytext
    import nbformat

    if not path.is_file():
        raise ReportFailed(f"there is no notebook {path}: check the path")
    try:
        return nbformat.convert(jupytext.read(path), 4)  # old notebooks, too
    except Exception as error:  # each format has its own errors
        raise ReportFailed(f"{path} is not a notebook: {error}") from None


def read_parameters(notebook: Any) -> dict[str, Any]:
    r"""Return the parameters in the cell with the tag ``parameters``, and their defaults.

    Examples
    --------
    >>> import nbformat
    >>> cell = nbformat.v4.new_code_cell("coin = 'BTC'\ndays = 30")
    >>> cell.metadata["tags"] = ["parameters"]
    >>> read_parameters(nbformat.v4.new_notebook(cells=[cell]))
    {'coin': 'BTC', 'days': 30}
    """
    parameters: dict[str, Any] = {}
    for cell in notebook.cells:
        if "parameters" not in _cell_tags(cell):
            continue
        for line in ast.parse(cell.source).body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                parameters[line.targets[0].id] = ast.literal_eval(line.value)
            elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                parameters[line.target.id] = line.value and ast.literal_eval(line.value)
    return parameters


def run_notebook(
    notebook: Any,
    parameters: Mapping[str, Any],
    source: str | None = None,
    on_cell: Callable[[int, int], None] | None = None,
) -> Any:
    """Return a copy of a notebook with the outputs of its cells.

    - ``notebook``: a result of `read_notebook`
    - ``parameters``: values to set after the cell with the tag ``parameters``: numbers, text,
      flags, None, lists
    - ``source``: an expression that makes ``session``. It replaces the cell with the tag
      ``source``.
    - ``on_cell``: called before each cell with its number and the number of cells

    Returns: the executed notebook; its last output is the provenance.

    Raise ReportFailed if the notebook does not have a parameter, if a cell raises, or if there is
    no kernel.
    """
    import nbformat

    known = read_parameters(notebook)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        raise ReportFailed(f"the notebook has no parameter {', '.join(unknown)}; it has {names}")
    for name, value in parameters.items():
        try:
            ast.literal_eval(repr(value))
        except (SyntaxError, ValueError):
            raise ReportFailed(
                f"the parameter {name} of the notebook is {type_text(value)}. Pass text, "
                "a number, True, False, None, or a list of these"
            ) from None
    if source is not None and not any("source" in _cell_tags(cell) for cell in notebook.cells):
        warnings.warn(
            f"The notebook has no cell with the tag source, so the report does not use {source}. "
            "Add the tag to the cell that opens the session.",
            stacklevel=2,
        )

    def hide(code: str) -> Any:
        return nbformat.v4.new_code_cell(code, metadata={"tags": ["hidden"]})

    first = "import toolkit.reports.notebook_runner as _report\n\n_report.show_warnings()"
    cells = [hide(first)]
    for number, cell in enumerate(notebook.cells, 1):
        tags = _cell_tags(cell)
        if "source" in tags and source is not None:
            cells.append(hide(f"import toolkit as tk\n\nsession = {source}"))
            continue
        cells.append(nbformat.from_dict(dict(cell)))
        cells[-1].metadata["number"] = number
        if "parameters" in tags and parameters:
            lines = (f"{name} = {value!r}" for name, value in parameters.items())
            cells.append(hide("\n".join(lines)))
    cells.append(nbformat.v4.new_markdown_cell("## Provenance"))
    cells.append(hide(f"_report.report_provenance(globals(), {tuple(known)!r})"))
    prepared = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": _KERNEL})
    for number, cell in enumerate(prepared.cells):
        cell["id"] = f"cell-{number}"  # nbformat draws random ids
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
    _execute_cells(prepared, on_cell)
    return prepared


def _cell_tags(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))


def _execute_cells(notebook: Any, on_cell: Callable[[int, int], None] | None) -> None:
    import nbclient
    from nbclient.exceptions import CellExecutionError
    from traitlets.config import Config

    # An empty profile: the user's own IPython profile must not change a report.
    with tempfile.TemporaryDirectory(prefix="report-") as profile:
        file = str(Path(profile) / "kernel.json")
        connection = {"transport": _TRANSPORT, "connection_file": file}
        started: list[int] = []

        def start_cell(*, cell_index: int, **_: Any) -> None:
            started.append(cell_index)
            if on_cell is not None:
                on_cell(cell_index + 1, len(notebook.cells))

        client = nbclient.NotebookClient(
            notebook,
            config=Config({"ConnectionFileMixin": connection}),
            timeout=None,
            startup_timeout=180,  # seconds; a busy machine is slow
            kernel_name=_KERNEL["name"],
            record_timing=False,
            resources={"metadata": {"path": str(Path.cwd())}},
        )
        client.on_cell_start = start_cell
        variables = {**os.environ, "IPYTHONDIR": profile, "MPLBACKEND": "Agg"}
        # The kernel needs an event loop of its own: in a notebook this thread has a running one.
        with start_blocking_portal() as portal:
            execution = portal.start_task_soon(partial(client.async_execute, env=variables))
            try:
                # The timeout lets this thread handle signals, such as an interrupt.
                while not wait([execution], timeout=0.5).done:
                    pass
                execution.result()
            except CellExecutionError as error:
                number = notebook.cells[started[-1]].metadata.get("number")
                raise ReportFailed(_error_text(error, number)) from None
            except BaseException:  # an interrupt, too, must not leave the kernel running
                if client.km is not None:
                    portal.call(partial(client.km.shutdown_kernel, now=True))
                execution.cancel()
                raise


def _error_text(error: Any, number: int | None) -> str:
    """Return the message of a cell's error without the traceback of the kernel."""
    message = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue))
    if error.ename in _OWN_ERRORS:
        return message
    kind = "" if error.ename == "ValueError" else f"{error.ename}: "
    where = "" if number is None else f"cell {number} of the notebook: "
    return f"{where}{kind}{message}"


def show_warnings() -> None:
    """Show warnings as text: their paths and process numbers would differ in every run."""
    from IPython.display import display

    of_developers = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if not issubclass(category, of_developers):
            display(words(f"{category.__name__}: {message}"))

    warnings.showwarning = show
    warnings.simplefilter("default")


def report_provenance(namespace: Mapping[str, Any], parameters: Sequence[str]) -> Block:
    """Return the provenance of everything in a report.

    - ``namespace``: the names of the notebook. Its ``sources``, a mapping of name -> frame, are the
      fetched frames; without it, these are all frames with a provenance.
    - ``parameters``: names of the parameters to show
    """
    label, simulated = "the notebook itself: it opened no session", False
    with suppress(NotConnected):
        session = current_session(namespace.get("session"))
        label, simulated = session.label, session.simulated
    frames = namespace.get("sources")
    if frames is None:
        frames = {}
        for name, value in namespace.items():
            facts = value.attrs.get("toolkit", {}) if isinstance(value, pd.DataFrame) else {}
            if not name.startswith("_") and "operation" in facts and "helper" not in facts:
                frames[name] = value
    chosen = {name: namespace.get(name) for name in parameters}
    return provenance(frames, chosen, label, simulated=simulated)
