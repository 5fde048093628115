"""``toolkit report wallet``: writes the file, says where it lies and what it says."""

import pytest
from typer.testing import CliRunner

from toolkit.cli.report import report_app


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(report_app, ["wallet", *map(str, arguments)])


def test_writes_a_report_and_says_so(run, tmp_path):
    out = tmp_path / "wallet.html"
    result = run("--size", "tiny", "--out", out)
    assert result.exit_code == 0, result.output
    assert f"report: {out}" in result.output
    for label in ("net PnL", "closed PnL", "fees", "funding", "volume"):
        assert label in result.output
    assert out.stat().st_size > 100_000


def test_says_what_is_wrong(run, tmp_path):
    result = run("--size", "tiny", "--user", "0x12", "--out", tmp_path / "w.html")
    assert result.exit_code == 1
    assert "0x12" in result.output
    assert not (tmp_path / "w.html").exists()


def test_live_needs_an_account_and_an_address(run, tmp_path):
    result = run("--live", "--out", tmp_path / "w.html")
    assert result.exit_code == 2
    assert "--user" in result.output
    result = run("--live", "--user", "0x" + "1" * 40, "--out", tmp_path / "w.html")
    assert result.exit_code == 1
    assert "TOOLKIT_BASE_URL" in result.output
