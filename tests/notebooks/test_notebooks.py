"""Every notebook runs offline.

Two notebooks run in JupyterLab: tests/browser/test_lab.py. The others run here.
"""

import os
import re

import nbclient
import nbformat
import pytest

import toolkit as tk
from tests.notebooks.runs import IN_KERNEL, NOTEBOOKS, check_outputs, read_small

SIMULATED = re.compile(r"session\.world|tk\.example\b|example_account")


@pytest.fixture(scope="module")
def world_on_disk():
    """Simulate once, so that no kernel has to."""
    tk.local(seed=7, size="demo", default=False).close()


@pytest.mark.parametrize("path", IN_KERNEL, ids=lambda path: path.stem)
@pytest.mark.usefixtures("world_on_disk")
# A kernel warns on its own ports; the message is the kernel's, not the notebook's.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_notebook_runs_without_stderr(path):
    notebook = read_small(path)
    nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        startup_timeout=180,  # beside other tests a kernel takes its time
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute(env={**os.environ, "TQDM_DISABLE": "1"})  # a slow machine shows progress bars
    check_outputs(notebook.cells)


def test_notebooks_ask_first_and_assert_last():
    """The first cell of code has the tag by which a report replaces it, and names `tk.connect`."""
    wrong = []
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        lines = [line for cell in code for line in cell.source.splitlines()]
        # What only the simulated exchange has is set once, with its live replacement.
        named = [line for line in lines if SIMULATED.search(line)]
        if not (
            cells[0].cell_type == "markdown"
            and "?" in cells[0].source.splitlines()[0]
            and cells[-1].cell_type == "code"
            and cells[-1].source.startswith("assert ")
            and "tk.connect(" in code[0].source
            and code[0].metadata["tags"] == ["source"]
            and all("# on a live service: " in line for line in named)
        ):
            wrong.append(path.name)
    assert wrong == []
