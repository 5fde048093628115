"""The first steps of a researcher: open a notebook in JupyterLab and run it."""

import shutil
from pathlib import Path

import nbformat.v4 as nb
import pytest
from playwright.sync_api import expect

from tests.notebooks.runs import IN_BROWSER, NOTEBOOKS, check_outputs, read_small
from toolkit.lab.contents import NOTE

from .conftest import open_page
from .lab import THEME, errors, not_run, run_lab

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SOON = 60_000  # ms; other tests may use the processors


def save(path, *sources):
    cells = [nb.new_code_cell(source) for source in sources]
    path.write_text(nb.writes(nb.new_notebook(cells=cells)))
    return path.name


def test_failing_cell_is_reported(lab, page):
    name = save(lab.root / "fails.ipynb", "1 + 1", "1 / 0", "2 + 2")
    cells = lab.run_all(page, name)
    assert errors(cells) == ["ZeroDivisionError: division by zero"]
    assert not_run(cells) == ["2 + 2"]


def test_kernel_calls_service(lab, page):
    name = save(lab.root / "asks.ipynb", "import toolkit as tk", "tk.meta().shape[0] > 0")
    cells = lab.run_all(page, name)
    assert errors(cells) == []
    assert cells[1]["outputs"][0]["data"]["text/plain"] == "True"


@pytest.mark.parametrize("path", IN_BROWSER, ids=lambda path: path.stem)
def test_notebook_runs(lab, page, path):
    (lab.root / path.name).write_text(nb.writes(read_small(path)))
    cells = lab.run_all(page, path.name)
    assert errors(cells) == []
    assert not_run(cells) == []
    check_outputs(cells)


TABS = """async () => {
  const app = window.jupyterapp;
  await app.restored;
  return [...app.shell.widgets("main")].map(widget => widget.title.label);
}"""

IDLE = 'window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === "idle"'

KERNELS = """async () => {
  const manager = window.jupyterapp.serviceManager.sessions;
  await manager.refreshRunning();
  return [...manager.running()].length;
}"""


def test_each_notebook_has_tab(browser, tmp_path):
    """There is one tab for each notebook; a kernel starts when its tab comes to the front."""
    root = tmp_path / "notebooks"
    root.mkdir()
    names = [Path(shutil.copy(path, root)).name for path in NOTEBOOKS]
    save(root / names[1], "import toolkit as tk", "len(tk.meta()) > 0")
    with run_lab(root, tmp_path / "private") as lab, open_page(browser, lab, "default") as page:
        assert page.evaluate(TABS) == [*names, NOTE]
        front = page.get_by_role("tab", selected=True)
        expect(front.filter(has_text=names[0])).to_have_count(1)
        shown = page.locator(".jp-MarkdownViewer")
        heading = shown.get_by_role("heading", name="About this laboratory")
        expect(heading).to_be_visible(timeout=SOON)
        expect(shown.get_by_text("simulated, seed 7, size tiny")).to_be_visible()
        expect(shown.locator("ol > li")).to_have_count(len(names))
        for theme in ("JupyterLab Light", "JupyterLab Dark"):
            page.evaluate(THEME, theme)
            expect(page.locator("body")).to_have_attribute("data-jp-theme-name", theme)
            expect(page.locator(".jp-Notebook:visible .jp-Cell").first).to_be_visible(timeout=SOON)
            expect(heading).to_be_visible()
        page.wait_for_function(IDLE)
        assert page.evaluate(KERNELS) == 1
        shown.locator("ol a").nth(1).click()
        expect(front.filter(has_text=names[1])).to_have_count(1, timeout=SOON)
        page.wait_for_function(IDLE)
        page.evaluate('window.jupyterapp.commands.execute("notebook:run-all-cells")')
        expect(page.locator(".jp-OutputArea-output:visible", has_text="True")).to_be_visible(
            timeout=SOON
        )
        assert page.evaluate(KERNELS) == 2
