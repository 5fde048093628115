"""Run a notebook with parameters, over a source of data, in a kernel of its own."""

import ast
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import Any, Final

from anyio.from_thread import start_blocking_portal

from toolkit.errors import ReportFailed

__all__ = ["parameters_of", "read_notebook", "run_notebook"]

_KERNEL_STARTS: Final = 180  # seconds; a busy machine takes its time
_TRANSPORT: Final = "tcp" if sys.platform == "win32" else "ipc"  # a socket of this user alone
_BEGIN: Final = "import toolkit.reports.inside as _report\n\n_report.begin()"
_END: Final = "_report.end(globals(), {names!r})"


def read_notebook(path: Path) -> Any:
    """Read a notebook: ``.ipynb``, or text that jupytext understands.

    Raises
    ------
    ReportFailed
        If there is no such file, or it is no notebook.
    """
    import jupytext

    if not path.is_file():
        raise ReportFailed(f"there is no notebook {path}")
    try:
        return jupytext.read(path)
    except Exception as error:  # each format has its own errors
        raise ReportFailed(f"{path} is no notebook: {error}") from None


def parameters_of(notebook: Any) -> dict[str, Any]:
    r"""Give the parameters of a notebook: what its cell tagged ``parameters`` sets, and to what.

    Examples
    --------
    >>> import nbformat
    >>> cell = nbformat.v4.new_code_cell("coin = 'BTC'\ndays = 30")
    >>> cell.metadata["tags"] = ["parameters"]
    >>> parameters_of(nbformat.v4.new_notebook(cells=[cell]))
    {'coin': 'BTC', 'days': 30}
    """
    found: dict[str, Any] = {}
    for cell in _tagged(notebook, "parameters"):
        for line in ast.parse(cell.source).body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                found[line.targets[0].id] = ast.literal_eval(line.value)
            elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                found[line.target.id] = line.value and ast.literal_eval(line.value)
    return found


def run_notebook(
    notebook: Any,
    parameters: Mapping[str, Any],
    source: str | None = None,
    on_cell: Callable[[int, int], None] | None = None,
) -> Any:
    """Run a notebook and give it with its outputs; the one given stays as it is.

    Parameters
    ----------
    notebook : notebook
        As `read_notebook` gives it.
    parameters : mapping
        Values to set after its cell tagged ``parameters``: numbers, text, flags, None, lists.
    source : str, optional
        An expression that makes ``session``; it takes the place of the cell tagged ``source``.
    on_cell : callable, optional
        Called before each cell: its number, and how many there are.

    Returns
    -------
    notebook
        The executed notebook; its last output says where the data came from.

    Raises
    ------
    ReportFailed
        If a parameter is not one of the notebook's, a cell raises, or there is no kernel.
    """
    prepared = _prepared(notebook, parameters, source)
    _execute(prepared, on_cell)
    return prepared


def _prepared(notebook: Any, parameters: Mapping[str, Any], source: str | None) -> Any:
    import nbformat

    known = parameters_of(notebook)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        has = ", ".join(known) or "none"
        raise ReportFailed(f"the notebook has no parameter {', '.join(unknown)}; it has {has}")
    cells = [_hidden(_BEGIN)]
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "source" in tags and source is not None:
            cells.append(_hidden(f"import toolkit as tk\n\nsession = {source}"))
            continue
        cells.append(nbformat.from_dict(dict(cell)))
        if "parameters" in tags and parameters:
            cells.append(_hidden("\n".join(f"{k} = {v!r}" for k, v in parameters.items())))
    cells.append(nbformat.v4.new_markdown_cell("## Provenance"))
    cells.append(_hidden(_END.format(names=tuple(known))))
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": _KERNEL})
    for place, cell in enumerate(made.cells):  # ids are drawn at random otherwise
        cell["id"] = f"cell-{place}"
        if cell.cell_type == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return made


_KERNEL: Final = {"name": "python3", "display_name": "Python 3", "language": "python"}


def _hidden(code: str) -> Any:
    import nbformat

    return nbformat.v4.new_code_cell(code, metadata={"tags": ["hidden"]})


def _execute(notebook: Any, on_cell: Callable[[int, int], None] | None) -> None:
    try:
        import nbclient
        from nbclient.exceptions import CellExecutionError
        from traitlets.config import Config
    except ImportError:
        raise ReportFailed("reports need a kernel: pip install 'exchange-toolkit[lab]'") from None
    # Nothing of the user's own IPython profile may change a report.
    with tempfile.TemporaryDirectory(prefix="report-") as profile:
        connection = {
            "transport": _TRANSPORT,
            "connection_file": str(Path(profile) / "kernel.json"),
        }
        client = nbclient.NotebookClient(
            notebook,
            config=Config({"ConnectionFileMixin": connection}),
            timeout=None,
            startup_timeout=_KERNEL_STARTS,
            kernel_name=_KERNEL["name"],
            record_timing=False,
            resources={"metadata": {"path": str(Path.cwd())}},
        )
        if on_cell is not None:
            client.on_cell_start = partial(_tell, on_cell, len(notebook.cells))
        variables = {**os.environ, "IPYTHONDIR": profile, "MPLBACKEND": "Agg"}
        # In a loop of its own, closed at the end; in a notebook this thread has one that runs.
        with start_blocking_portal() as portal:
            done = portal.start_task_soon(partial(client.async_execute, env=variables))
            try:
                # Awake now and then: a signal may reach another thread than this one.
                while not wait([done], timeout=0.5).done:
                    pass
                done.result()
            except CellExecutionError as error:
                raise ReportFailed(_in_words(error)) from None
            except BaseException:
                if client.km is not None:  # an interrupt ends the kernel, too
                    portal.call(partial(client.km.shutdown_kernel, now=True))
                done.cancel()
                raise


def _tell(on_cell: Callable[[int, int], None], cells: int, *, cell_index: int, **_: Any) -> None:
    on_cell(cell_index + 1, cells)


def _in_words(error: Any) -> str:
    """Say what a cell raised; the traceback of a kernel is of no use to who asked for a report."""
    value = re.sub(r"\x1b\[[0-9;]*m", "", str(error.evalue))
    return value if error.ename in _OURS else f"{error.ename}: {value}"


_OURS: Final = frozenset({"BadRequest", "Incomplete", "ReportFailed", "ValueError"})


def _tagged(notebook: Any, tag: str) -> list[Any]:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]
