"""``toolkit report`` writes files, and prints their paths and headline numbers."""

import inspect
import sys

import pytest
from typer.testing import CliRunner

from toolkit.cli.report import report_app


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(report_app, ["wallet", *map(str, arguments)])


def test_command_writes_report(run, tmp_path):
    out = tmp_path / "wallet.html"
    result = run("--size", "tiny", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"report: {out}" in result.output
    for label in ("net PnL", "closed PnL", "fees", "funding", "volume"):
        assert label in result.output
    assert out.stat().st_size > 100_000


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--user", "0x12", "--user: '0x12' is not an address. An address is 0x and 40 hex digits"),
        ("--builder", "me", "--builder: 'me' is not an address. An address is 0x and 40 hex"),
        ("--start", "yesterday", "--start: 'yesterday' is not a time. Use whole milliseconds"),
        ("--end", "1756684800", "--end: 1756684800 looks like seconds, but times are"),
    ],
)
def test_invalid_option_is_refused(run, tmp_path, option, value, message):
    result = run("--size", "tiny", option, value, "--out", tmp_path / "w.html")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "w.html").exists()


def test_live_needs_user_and_address(run, tmp_path):
    result = run("--live", "--out", tmp_path / "w.html")
    assert result.exit_code == 2
    assert "--user" in result.output
    result = run("--live", "--user", "0x" + "1" * 40, "--out", tmp_path / "w.html")
    assert result.exit_code == 1
    assert "TOOLKIT_BASE_URL" in result.output


def test_recordings_need_existing_folder(run, tmp_path):
    result = run("--recordings", tmp_path / "none", "--user", "0x" + "1" * 40)
    assert result.exit_code == 2
    assert f"there is no folder {tmp_path / 'none'}" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["market", "--coin", "NOPE"], "NOPE"),
        (["builder", "--address", "0x" + "1" * 40], "there are no fills through 0x1111"),
        (
            ["comparison", "--user", "0x" + "1" * 40],
            "needs 2 to 50 accounts; 1 was passed",
        ),
    ],
)
def test_report_without_data_fails(words, message, tmp_path):
    out = tmp_path / "report.html"
    result = CliRunner().invoke(report_app, [*words, "--size", "tiny", "--out", str(out)])
    assert result.exit_code == 1
    assert message in result.output
    assert not out.exists()


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


def several(run, session, out, *options):
    users = session.world["users"][:2]
    asked = [part for user in users for part in ("--user", user)]
    return users, run("--size", "tiny", "--seed", "7", *asked, "--out", out, *options)


def test_command_prints_several_reports(run, session, browser, tmp_path):
    users, result = several(run, session, tmp_path / "many", "--pdf", "--code")
    assert result.exit_code == 0, result.output
    for user in users:
        page, pdf = (tmp_path / "many" / f"{user}.{ending}" for ending in ("html", "pdf"))
        assert f"{user}: {page}, {pdf}" in result.output
        assert pdf.read_text() == page.as_uri()
        assert "<summary>code</summary>" in page.read_text()


def test_unprinted_page_is_kept(run, session, browser, tmp_path):
    browser.unlink()
    users, result = several(run, session, tmp_path / "many", "--pdf")
    assert result.exit_code == 1
    assert "2 of 2 reports failed" in result.output
    for user in users:
        page = tmp_path / "many" / f"{user}.html"
        assert f"{user}: {page}, no browser on this machine prints PDF" in result.output
        assert "<summary>code</summary>" not in page.read_text()


@pytest.mark.parametrize(
    "command", report_app.registered_commands, ids=lambda c: c.callback.__name__
)
def test_reports_share_last_options(command):
    names = [*inspect.signature(command.callback).parameters]
    assert names[-8:] == ["out", "seed", "size", "recordings", "archive", "live", "pdf", "code"]
