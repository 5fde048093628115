"""Scans from Python and on the command line."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import Archive
from toolkit.archive import open as open_archive
from toolkit.cli.archive import archive_app

FILLS = make_fills(60)


@pytest.fixture(scope="module", name="archive")
def _archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    archive = open_archive(tmp_path_factory.mktemp("scan") / "kept")
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    archive.refresh(tk.user_fills, USER, session=fill_session(FILLS))
    return archive


def run_command(archive: Archive, command: str, *arguments: object, code: int = 0) -> Any:
    words = [command, archive.tables.location, *map(str, arguments)]
    result = CliRunner().invoke(archive_app, words)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"record": "fills", "columns": "px"}, TypeError, r"a list of names: \['px'\]"),
        ({"record": "fills", "columns": ["pz"]}, tk.ArchiveError, "no column pz: it has .*px"),
        ({"record": "nonsense"}, tk.ArchiveError, "'nonsense': choose one of fills, funding"),
        ({"record": 5}, tk.ArchiveError, "there is no table 5: choose one of fills, funding"),
        ({"record": "fills", "subject": 5}, TypeError, "subject is a text, not 5"),
    ],
)
def test_scan_refusals(
    archive: Archive, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        archive.scan(**arguments)


def test_frame_refuses_unknown_numbers(archive: Archive) -> None:
    with pytest.raises(ValueError, match="numbers must be 'float' or 'exact' or 'text'"):
        archive.frame(tk.user_fills_by_time, USER, numbers="decimal")  # type: ignore[arg-type]


def test_scan_command(archive: Archive, tmp_path: Path) -> None:
    table = run_command(archive, "scan", "fills", "--columns", "coin, px").output
    assert "coin" in table
    assert "64000.1" in table
    lines = run_command(
        archive, "scan", "fills", "--columns", "tid,time", "--end", FILLS[9].time, "--json"
    ).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    assert sorted(row["tid"] for row in rows) == [
        fill.tid for fill in FILLS if fill.time <= FILLS[9].time
    ]
    out = tmp_path / "fills.parquet"
    message = run_command(archive, "scan", "userFillsByTime", "--subject", USER, "-o", out).stderr
    assert "60 rows" in message
    expected = archive.scan("fills", engine="pandas")
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)
    run_command(archive, "scan", "fills", "-o", tmp_path / "fills.xlsx", code=2)
    assert "choose one of" in run_command(archive, "scan", "nonsense", code=2).stderr


def test_status_command_shortens_subjects(archive: Archive) -> None:
    (answer,) = (subject for subject in archive.status()["subject"] if subject.startswith("{"))
    assert len(answer) > 60
    assert answer not in run_command(archive, "status").output
    assert f"{answer[:57]}..." in run_command(archive, "status").output
    assert max(map(len, run_command(archive, "status").output.splitlines())) < 250
    assert answer in {
        row["subject"] for row in json.loads(run_command(archive, "status", "--json").output)
    }


def test_progress_counts_rows(archive: Archive) -> None:
    counts: list[int] = []
    archive.verify(progress=counts.append)
    assert sum(counts) >= len(FILLS)
    counts.clear()
    archive.freeze(progress=counts.append)
    assert sum(counts) >= len(FILLS)
