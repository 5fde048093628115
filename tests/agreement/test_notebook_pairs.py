"""Each notebook has a .py source; its .ipynb has the same cells and no outputs."""

from pathlib import Path

import jupytext
import nbformat
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SOURCES = sorted(NOTEBOOKS.glob("*.py"))
EVERY = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


def cell_texts(notebook):
    return [
        (cell.cell_type, cell.source, sorted(cell.metadata.get("tags", [])))
        for cell in notebook.cells
    ]


def notebook_of(source):
    return nbformat.read(source.with_suffix(".ipynb"), as_version=4)


def test_every_notebook_has_its_source():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in SOURCES}


@EVERY
def test_notebook_equals_its_source(source):
    assert cell_texts(notebook_of(source)) == cell_texts(jupytext.read(source))


@EVERY
def test_notebook_has_no_outputs(source):
    code = [cell for cell in notebook_of(source).cells if cell.cell_type == "code"]
    assert [cell.source for cell in code if cell.outputs or cell.execution_count] == []


@EVERY
def test_notebook_names_kernel(source):
    metadata = notebook_of(source).metadata
    assert metadata["kernelspec"]["name"] == "python3"
    assert metadata["language_info"]["name"] == "python"  # or JupyterLab changes it on opening
