"""Each notebook has a .py source; its .ipynb has the same cells and no outputs."""

from pathlib import Path

import jupytext
import nbformat

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SOURCES = sorted(NOTEBOOKS.glob("*.py"))


def cell_texts(notebook):
    return [
        (cell.cell_type, cell.source, sorted(cell.metadata.get("tags", [])))
        for cell in notebook.cells
    ]


def test_notebooks_equal_their_sources():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in SOURCES}
    wrong = [
        source.stem
        for source in SOURCES
        if cell_texts(nbformat.read(source.with_suffix(".ipynb"), as_version=4))
        != cell_texts(jupytext.read(source))
    ]
    assert wrong == [], "run make notebooks"


def test_notebooks_have_kernel_and_no_outputs():
    for source in SOURCES:
        notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert [cell.source for cell in code if cell.outputs or cell.execution_count] == []
        # JupyterLab changes the file on opening if one of these is missing.
        metadata = notebook.metadata
        names = metadata["kernelspec"]["name"], metadata["language_info"]["name"]
        assert names == ("python3", "python"), source.name
