"""``toolkit report`` writes files, and prints their paths and headline numbers."""

import inspect
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.reports.pages import PARAMETERS, report_page
from toolkit.cli import app
from toolkit.cli.report import report_app
from toolkit.reports.build import write_reports


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(report_app, ["wallet", *map(str, arguments)])


def test_command_writes_same_page(run, tmp_path):
    out = tmp_path / "wallet.html"
    result = run("--size", "tiny", "--user", PARAMETERS["wallet"]["user"], "--out", out)
    assert result.exit_code == 0, result.output
    assert f"report: {out}" in result.output
    for label in ("net PnL", "closed PnL", "fees", "funding", "volume"):
        assert label in result.output
    assert out.read_bytes() == report_page("wallet").html.encode()


def test_invalid_options_are_refused(run, tmp_path):
    out = tmp_path / "w.html"
    for option, value, named in (
        ("--user", "0x12", "'0x12' is not an address"),
        ("--start", "yesterday", "'yesterday' is not a time"),
        ("--end", "1756684800", "seconds"),
    ):
        result = run("--size", "tiny", option, value, "--out", out)
        assert result.exit_code == 2
        assert option in result.output
        assert named in " ".join(result.output.split())
        assert not out.exists()


def test_missing_sources_are_named(run, tmp_path):
    own = ("--user", "0x" + "1" * 40, "--out", tmp_path / "w.html")
    for arguments, code, named in (
        (("--live", "--out", tmp_path / "w.html"), 2, "--user"),
        (("--live", *own), 1, "TOOLKIT_BASE_URL"),
        (("--recordings", tmp_path / "none", *own), 2, str(tmp_path / "none")),
    ):
        result = run(*arguments)
        assert result.exit_code == code
        assert named in result.output
    result = CliRunner().invoke(report_app, ["run", str(tmp_path / "none.py")])
    assert result.exit_code == 1
    assert "none.py" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A browser that prints a page as its own address, the only one there is."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "chromium"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "out = next(one for one in sys.argv if one.startswith('--print-to-pdf='))\n"
        "open(out.partition('=')[2], 'w').write(sys.argv[-1])\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return program


def test_command_prints_several_reports(run, browser, tmp_path):
    """One of an account, and one of an account without data, which fails."""
    users = [PARAMETERS["wallet"]["user"], "0x" + "00" * 20]
    asked = [part for user in users for part in ("--user", user)]
    result = run("--size", "tiny", *asked, "--out", tmp_path / "many", "--pdf", "--code")
    assert result.exit_code == 1
    page, pdf = (tmp_path / "many" / f"{users[0]}.{ending}" for ending in ("html", "pdf"))
    assert f"{users[0]}: {page}, {pdf}" in result.output
    assert f"{users[1]}: " in result.output
    assert not (tmp_path / "many" / f"{users[1]}.html").exists()
    assert pdf.read_text() == page.as_uri()
    assert "<summary>code</summary>" in page.read_text()


def test_unprinted_pages_are_kept(browser, tmp_path):
    browser.unlink()
    (tmp_path / "mine.py").write_text('# %% tags=["parameters", "source"]\nname = None\n')
    (report,) = write_reports(tmp_path / "mine.py", [{"name": "a"}], "None", tmp_path, pdf=True)
    assert report.path.read_text().endswith("</html>\n")
    assert "prints PDF" in report.error


def test_reports_share_last_options():
    for command in report_app.registered_commands:
        names = [*inspect.signature(command.callback).parameters]
        sources = ["seed", "size", "recordings", "archive", "live", "exchange"]
        assert names[-9:] == ["out", *sources, "pdf", "code"]


def test_notebook_of_docs_becomes_report(user, tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    monkeypatch.chdir(tmp_path)
    (notebook,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "mine.py").write_text(notebook)
    (line,) = re.findall(r"`(toolkit report run [^`]*)`", text)
    words = shlex.split(line.replace("0x...", user))[1:]
    done = CliRunner().invoke(app, [*words, "--size", "tiny"])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "mine.html").read_text()
    assert "How active is this account?" in page
    assert "Fills a day" in page
