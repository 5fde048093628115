"""The notebook in docs/reports.md becomes a report with the command in that page."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from toolkit.cli import app

TEXT = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()


def test_notebook_of_docs_becomes_report(user, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (notebook,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (tmp_path / "mine.py").write_text(notebook)
    (line,) = re.findall(r"`(toolkit report run [^`]*)`", TEXT)
    words = shlex.split(line.replace("0x...", user))[1:]
    done = CliRunner().invoke(app, [*words, "--size", "tiny"])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "mine.html").read_text()
    assert "How active is this account?" in page
    assert "Fills a day" in page
