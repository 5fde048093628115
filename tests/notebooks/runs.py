"""Which notebooks run in JupyterLab, and what the outputs of every run must be."""

import shutil
from pathlib import Path

import nbformat

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IN_BROWSER = [NOTEBOOKS[1], next(p for p in NOTEBOOKS if "tk.widgets" in p.read_text())]
"""The quickstart, and the first one with widgets."""
IN_KERNEL = [p for p in NOTEBOOKS if CHROMIUM is None or p not in IN_BROWSER]
"""The others; all of them if this machine has no Chromium."""
ON_TINY = ("00", "01", "02", "10", "11", "13")
"""Notebooks whose assertions hold on the tiny exchange; the others need the size that they name."""


def read_small(path):
    """Return a notebook on the tiny exchange, if its assertions hold there."""
    notebook = nbformat.read(path, as_version=4)
    if path.name.startswith(ON_TINY):
        (source,) = [cell for cell in notebook.cells if "source" in cell.metadata.get("tags", ())]
        assert 'size="demo"' in source.source
        source.source = source.source.replace('size="demo"', 'size="tiny"')
    return notebook


def check_outputs(cells):
    """Check that a run wrote nothing to stderr, and that each picture has an alternative text."""
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    assert [output for output in shown if output.get("name") == "stderr"] == []
    pictures = ["".join(item.get("data", {}).get("text/html", "")) for item in shown]
    assert all('alt="' in html for html in pictures if "<img" in html)
