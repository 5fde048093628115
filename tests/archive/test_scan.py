"""Reading all rows of a kind, from Python and on the command line; mistakes say what there is."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import START, USER, fills_of, session_of
from toolkit import archive
from toolkit.cli.archive import archive_app

FILLS = fills_of(60)


@pytest.fixture(scope="module", name="kept")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> archive.Archive:
    kept = archive.open(tmp_path_factory.mktemp("scan") / "kept")
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS))
    kept.refresh(tk.user_fills, USER, session=session_of(FILLS))
    return kept


def call(kept: archive.Archive, command: str, *arguments: object, code: int = 0) -> Any:
    words = [command, kept.tables.location, *map(str, arguments)]
    result = CliRunner().invoke(archive_app, words)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"record": "fills", "columns": "px"}, TypeError, r"a list of names: \['px'\]"),
        ({"record": "fills", "columns": ["pz"]}, tk.ArchiveError, "no column pz: it has .*px"),
        ({"record": "nonsense"}, tk.ArchiveError, "'nonsense': choose one of fills, funding"),
        ({"record": 5}, tk.ArchiveError, "there is no table 5: choose one of fills, funding"),
        ({"record": "fills", "subject": 5}, TypeError, "subject is a text, not 5"),
    ],
)
def test_mistakes_in_a_scan(
    kept: archive.Archive, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        kept.scan(**arguments)


def test_numbers_that_there_are_not(kept: archive.Archive) -> None:
    with pytest.raises(ValueError, match="numbers must be 'float' or 'exact' or 'text'"):
        kept.frame(tk.user_fills_by_time, USER, numbers="decimal")  # type: ignore[arg-type]


def test_a_scan_on_the_command_line(kept: archive.Archive, tmp_path: Path) -> None:
    table = call(kept, "scan", "fills", "--columns", "coin, px").output
    assert "coin" in table
    assert "64000.1" in table
    lines = call(
        kept, "scan", "fills", "--columns", "tid,time", "--end", FILLS[9].time, "--json"
    ).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    assert sorted(row["tid"] for row in rows) == [
        fill.tid for fill in FILLS if fill.time <= FILLS[9].time
    ]
    out = tmp_path / "fills.parquet"
    said = call(kept, "scan", "userFillsByTime", "--subject", USER, "-o", out).stderr
    assert "60 rows" in said
    expected = kept.scan("fills", engine="pandas")
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)
    call(kept, "scan", "fills", "-o", tmp_path / "fills.xlsx", code=2)
    assert "choose one of" in call(kept, "scan", "nonsense", code=2).stderr


def test_status_is_short_on_a_terminal_and_whole_in_json(kept: archive.Archive) -> None:
    (answer,) = (one for one in kept.status()["subject"] if one.startswith("{"))
    assert len(answer) > 60
    assert answer not in call(kept, "status").output
    assert f"{answer[:57]}..." in call(kept, "status").output
    assert max(map(len, call(kept, "status").output.splitlines())) < 250
    assert answer in {one["subject"] for one in json.loads(call(kept, "status", "--json").output)}


def test_what_takes_long_counts_rows(kept: archive.Archive) -> None:
    counts: list[int] = []
    kept.verify(progress=counts.append)
    assert sum(counts) >= len(FILLS)
    counts.clear()
    kept.freeze(progress=counts.append)
    assert sum(counts) >= len(FILLS)
