"""Every notebook runs offline; its cells are short.

Notebooks with widgets run in JupyterLab: tests/browser/test_lab.py. The others run here.
"""

import os
import re

import nbclient
import nbformat
import pytest

import toolkit as tk
from tests.notebooks.runs import IN_KERNEL, NOTEBOOKS, check_outputs

EVERY = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def world_on_disk():
    """Simulate once, so that no kernel has to."""
    tk.local(seed=7, size="demo", default=False).close()


@pytest.mark.parametrize("path", IN_KERNEL, ids=lambda path: path.stem)
@pytest.mark.usefixtures("world_on_disk")
# A kernel warns on its own ports; the message is the kernel's, not the notebook's.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_notebook_runs_without_stderr(path):
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        startup_timeout=180,  # beside other tests a kernel takes its time
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute(env={**os.environ, "TQDM_DISABLE": "1"})  # a slow machine shows progress bars
    check_outputs(notebook.cells)


@EVERY
def test_cells_are_short(path):
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    long = [cell.source for cell in code if len(cell.source.splitlines()) > 10]
    assert long == []


@EVERY
def test_notebook_asks_first_and_asserts_last(path):
    cells = nbformat.read(path, as_version=4).cells
    assert cells[0].cell_type == "markdown"
    assert "?" in cells[0].source.splitlines()[0]
    assert cells[-1].cell_type == "code"
    assert cells[-1].source.startswith("assert ")


@EVERY
def test_notebook_shows_live_connection(path):
    """In its first cell of code, which a report replaces by the source that it is asked for."""
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert "tk.connect(" in code[0].source
    assert code[0].metadata["tags"] == ["source"]
    assert [name for name in code[0].source.splitlines() if name.startswith("import")] == [
        "import toolkit as tk"
    ]


@EVERY
def test_notebook_names_live_replacements(path):
    """Names that only the simulated exchange has are set once, with their live replacement."""
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    lines = [line for cell in code for line in cell.source.splitlines()]
    simulated = re.compile(r"session\.world|tk\.example\b|example_account")
    found = [line for line in lines if simulated.search(line)]
    assert [line for line in found if "# on a live service: " not in line] == []
