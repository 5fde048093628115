"""Which notebooks run in JupyterLab, and what the outputs of every run must be."""

import shutil
from pathlib import Path

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
IN_BROWSER = [p for p in NOTEBOOKS if p == NOTEBOOKS[0] or "tk.widgets" in p.read_text()]
"""The first notebook, and those with widgets."""
IN_KERNEL = [p for p in NOTEBOOKS if CHROMIUM is None or p not in IN_BROWSER]
"""The others; all of them if this machine has no Chromium."""


def check_outputs(cells):
    """Check that a run wrote nothing to stderr, and that each picture has an alternative text."""
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    assert [output for output in shown if output.get("name") == "stderr"] == []
    pictures = ["".join(item.get("data", {}).get("text/html", "")) for item in shown]
    assert all('alt="' in html for html in pictures if "<img" in html)
