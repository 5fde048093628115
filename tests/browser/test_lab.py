"""What a researcher does first: open a notebook in JupyterLab and run it to its end."""

import shutil
from pathlib import Path

import nbformat.v4 as nb
import pytest
from playwright.sync_api import Page

from .lab import Lab, errors, not_run

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def save(path: Path, *sources: str) -> str:
    cells = [nb.new_code_cell(source) for source in sources]
    path.write_text(nb.writes(nb.new_notebook(cells=cells)))
    return path.name


def test_a_failing_cell_is_noticed(lab: Lab, page: Page):
    name = save(lab.root / "fails.ipynb", "1 + 1", "1 / 0", "2 + 2")
    cells = lab.run_all(page, name)
    assert errors(cells) == ["ZeroDivisionError: division by zero"]
    assert not_run(cells) == ["2 + 2"]


def test_the_service_stands_ready_in_the_kernel(lab: Lab, page: Page):
    name = save(lab.root / "asks.ipynb", "import toolkit as tk", "tk.meta().shape[0] > 0")
    cells = lab.run_all(page, name)
    assert errors(cells) == []
    assert cells[1]["outputs"][0]["data"]["text/plain"] == "True"


def in_the_browser() -> list[Path]:
    """List the notebooks that need one: the first that anybody opens, and those with widgets."""
    found = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
    return [path for path in found if path == found[0] or "tk.widgets" in path.read_text()]


@pytest.mark.parametrize("path", in_the_browser(), ids=lambda path: path.stem)
def test_notebook_runs_to_its_end(lab: Lab, page: Page, path: Path):
    shutil.copy(path, lab.root)
    cells = lab.run_all(page, path.name)
    assert errors(cells) == []
    assert not_run(cells) == []
