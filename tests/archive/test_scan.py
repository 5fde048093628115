"""Scans from Python and on the command line."""

import json
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from tests.engines import as_table
from tests.scale.test_cases import close
from toolkit.archive import open as open_archive
from toolkit.archive.schemas import RECORDS
from toolkit.cli.archive import archive_app
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.frames.nested_values import EXACT

FILLS = make_fills(60)


@pytest.fixture(scope="module", name="archive")
def _archive(tmp_path_factory):
    archive = open_archive(tmp_path_factory.mktemp("scan") / "kept")
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    archive.refresh(tk.user_fills, USER, session=fill_session(FILLS))
    return archive


def run_command(archive, command, *arguments, code=0):
    words = [command, archive.tables.location, *map(str, arguments)]
    result = CliRunner().invoke(archive_app, words)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"record": "fills", "columns": "px"}, TypeError, r"a list of names: pass \['px'\]"),
        ({"record": "fills", "columns": ["pz"]}, tk.ArchiveError, "no column pz: it has .*px"),
        ({"record": "nonsense"}, tk.ArchiveError, "'nonsense'; choose one of fills, funding"),
        ({"record": 5}, tk.ArchiveError, "unknown table 5; choose one of fills, funding"),
        ({"record": "fills", "subject": 5}, TypeError, "subject must be text, not 5"),
    ],
)
def test_scan_refuses_invalid_arguments(archive, arguments, error, message):
    with pytest.raises(error, match=message):
        archive.scan(**arguments)


def test_frame_refuses_unknown_numbers(archive):
    with pytest.raises(ValueError, match="numbers must be 'float' or 'exact' or 'text'"):
        archive.frame(tk.user_fills_by_time, USER, numbers="decimal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="numbers must be 'float' or 'exact' or 'text'"):
        archive.scan("fills", numbers="decimal")  # type: ignore[call-overload]


def test_scan_command_prints_and_writes_rows(archive, tmp_path):
    table = run_command(archive, "scan", "fills", "--columns", "coin, px").output
    assert "coin" in table
    assert "64000.1" in table
    shown = run_command(archive, "scan", "fills")
    assert shown.stdout.split()[:2] == ["_subject", "coin"]
    assert "_operation" not in shown.stdout
    assert "columns that begin with _ are left out" in shown.stderr
    lines = run_command(
        archive, "scan", "fills", "--columns", "tid,time", "--end", FILLS[9].time, "--json"
    ).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    assert sorted(row["tid"] for row in rows) == [
        fill.tid for fill in FILLS if fill.time <= FILLS[9].time
    ]
    exact = run_command(
        archive, "scan", "fills", "--columns", "fee", "--numbers", "exact", "--json"
    )
    assert json.loads(exact.stdout.splitlines()[0]) == {"fee": "0.123456789012345678"}
    out = tmp_path / "fills.parquet"
    message = run_command(archive, "scan", "userFillsByTime", "--subject", USER, "-o", out).stderr
    assert "60 rows" in message
    expected = archive.scan("fills", engine="pandas")
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)
    run_command(archive, "scan", "fills", "-o", tmp_path / "fills.txt", code=2)
    assert "choose one of" in run_command(archive, "scan", "nonsense", code=2).stderr


def test_status_command_shortens_subjects(archive):
    (answer,) = (subject for subject in archive.status()["subject"] if subject.startswith("{"))
    assert len(answer) > 60
    assert answer not in run_command(archive, "status").output
    assert f"{answer[:57]}..." in run_command(archive, "status").output
    assert max(map(len, run_command(archive, "status").output.splitlines())) < 250
    assert answer in {
        row["subject"] for row in json.loads(run_command(archive, "status", "--json").output)
    }


def test_verify_and_freeze_progress_counts_rows(archive):
    counts: list[int] = []
    archive.verify(progress=counts.append)
    assert sum(counts) >= len(FILLS)
    counts.clear()
    archive.freeze(progress=counts.append)
    assert sum(counts) >= len(FILLS)


@pytest.fixture(scope="module", name="histories")
def _histories(tmp_path_factory):
    """An archive with a history of each table."""
    session = tk.local(seed=7, size="tiny", default=False)
    user, builder = session.world["users"][0], session.world["builders"][0]
    archive = open_archive(tmp_path_factory.mktemp("exact") / "kept")
    for fetch in (tk.user_fills_by_time, tk.user_non_funding_ledger_updates):
        archive.refresh(fetch, user, session=session)
    for fetch in (
        tk.builder_approved_fills_by_time,
        tk.builder_approved_funding_by_time,
        tk.builder_orders_by_time,
    ):
        archive.refresh(fetch, builder, "2025-09-29", session=session)
    archive.refresh(tk.slippage_history, "BTC", 10_000, "2025-09-30", session=session)
    return archive


@pytest.mark.parametrize("numbers", ["exact", "text"])
@pytest.mark.parametrize("engine", ["pandas", "polars", "duckdb"])
def test_scan_numbers_equal_frame(histories, engine, numbers):
    status = histories.status()
    assert set(status["table"]) == set(RECORDS)
    for table, type, subject in zip(
        status["table"], status["operation"], status["subject"], strict=True
    ):
        operation = OPERATIONS[type]
        values = [int(word) if word.isdigit() else word for word in subject.split(" ")]
        frame: Any = histories.frame(operation.function, *values, numbers=numbers)
        names = [
            column.name
            for column in table_columns(operation.tables[0])
            if column.kind.family == "number"
        ]
        wanted = pa.Table.from_pandas(frame[names], preserve_index=False)
        rows = as_table(
            histories.scan(
                table, columns=[*names, "_row", "_operation"], engine=engine, numbers=numbers
            )
        )  # the fills of two operations are decoded together
        rows = rows.filter(pc.equal(rows["_operation"], type))
        found = rows.sort_by("_row").select(names)
        assert found.to_pylist() == wanted.to_pylist()
        assert len(found)
        if numbers == "exact":
            assert {*found.schema.types} == {EXACT}


@pytest.mark.parametrize("engine", ["pandas", "polars", "duckdb"])
def test_exact_scan_sums_money(archive, engine):
    """Floats would lose digits of these fees."""
    fills: Any = archive.frame(tk.user_fills_by_time, USER, numbers="exact")
    wanted: Any = tk.pnl.attribution(fills)
    rows = archive.scan("fills", operation="userFillsByTime", engine=engine, numbers="exact")
    found = as_table(tk.pnl.attribution(rows)).to_pylist()
    assert found == list(map(close, as_table(wanted).to_pylist()))  # the volume is a float
    assert found[0]["trading_fee"] == -60 * Decimal("0.123456789012345678")
    few = archive.scan("fills", columns=["coin", "fee"], engine=engine, numbers="exact", end=START)
    assert as_table(few).schema.names == ["coin", "fee"]
    none = archive.scan("orders", columns=["sz"], engine=engine, numbers="exact")
    assert as_table(none).schema.types == [EXACT]
