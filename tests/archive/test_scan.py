"""Scans from Python and on the command line."""

import json

import pandas as pd
import pyarrow as pa
import pytest

import toolkit as tk
from tests.archive.commands import run_command
from tests.archive.world import START, USER, fill_session, make_fills
from tests.engines import rows_of
from toolkit.archive import open as open_archive
from toolkit.archive.schemas import operation_table
from toolkit.contract.fields import table_columns
from toolkit.contract.operations import OPERATIONS

FILLS = make_fills(60)
ENGINES = ("pandas", "polars", "duckdb")


@pytest.fixture(scope="module", name="archive")
def _archive(tmp_path_factory):
    archive = open_archive(tmp_path_factory.mktemp("scan") / "kept")
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    archive.refresh(tk.user_fills, USER, session=fill_session(FILLS))
    return archive


def test_scan_refuses_invalid_arguments(archive):
    for arguments, error, named in (
        ({"record": "fills", "columns": "px"}, TypeError, r"\['px'\]"),
        ({"record": "fills", "columns": ["pz"]}, tk.ArchiveError, "no column pz"),
        ({"record": "answers", "start": 0}, tk.ArchiveError, "time"),
        ({"record": "nonsense"}, tk.ArchiveError, "fills, funding"),
        ({"record": 5}, tk.ArchiveError, "fills, funding"),
        ({"record": "fills", "subject": 5}, TypeError, "subject"),
        ({"record": "fills", "engine": "arrow"}, ValueError, "engine"),
        ({"record": "fills", "numbers": "decimal"}, ValueError, "numbers"),
    ):
        with pytest.raises(error, match=named):
            archive.scan(**arguments)
    with pytest.raises(ValueError, match="numbers"):
        archive.frame(tk.user_fills_by_time, USER, numbers="decimal")


def test_scan_command_prints_and_writes_rows(archive, tmp_path):
    def scan(*arguments, code=0):
        return run_command("scan", archive.tables.location, *arguments, code=code)

    table = scan("fills", "--columns", "coin, px").output
    assert "coin" in table
    assert "64000.1" in table
    shown = scan("fills")
    assert shown.stdout.split()[:2] == ["_subject", "coin"]
    assert "_operation" not in shown.stdout
    assert "columns that begin with _ are left out" in shown.stderr
    lines = scan("fills", "--columns", "tid,time", "--end", FILLS[9].time, "--json").stdout
    tids = sorted(json.loads(line)["tid"] for line in lines.splitlines())
    assert tids == [fill.tid for fill in FILLS if fill.time <= FILLS[9].time]
    exact = scan("fills", "--columns", "fee", "--numbers", "exact", "--json").stdout
    assert json.loads(exact.splitlines()[0]) == {"fee": "0.123456789012345678"}
    out = tmp_path / "fills.parquet"
    assert "60 rows" in scan("userFillsByTime", "--subject", USER, "-o", out).stderr
    pd.testing.assert_frame_equal(pd.read_parquet(out), archive.scan("fills", engine="pandas"))
    scan("fills", "-o", tmp_path / "fills.txt", code=2)
    assert "choose one of" in scan("nonsense", code=2).stderr


def test_status_command_shortens_subjects(archive):
    (answer,) = (subject for subject in archive.status()["subject"] if subject.startswith("{"))
    assert len(answer) > 60
    shown = run_command("status", archive.tables.location).output
    assert answer not in shown
    assert f"{answer[:57]}..." in shown
    assert max(map(len, shown.splitlines())) < 250
    rows = json.loads(run_command("status", archive.tables.location, "--json").output)
    assert answer in {row["subject"] for row in rows}


def test_verify_and_freeze_progress_counts_rows(archive):
    for run in (archive.verify, archive.freeze):
        counts = []
        run(progress=counts.append)
        assert sum(counts) >= len(FILLS)


@pytest.fixture(scope="module", name="histories")
def _histories(tmp_path_factory, tiny):
    """An archive with a history of each operation, and the subjects by operation."""
    user, builder = tiny.world["users"][0], tiny.world["builders"][0]
    subjects = {
        "userFillsByTime": (user,),
        "userNonFundingLedgerUpdates": (user,),
        "builderApprovedFillsByTime": (builder,),
        "builderApprovedFundingByTime": (builder,),
        "builderOrdersByTime": (builder,),
        "slippageHistory": ("BTC", 10_000),
    }
    archive = open_archive(tmp_path_factory.mktemp("histories") / "kept")
    for operation, subject in subjects.items():
        start = {} if user in subject else {"start": "2025-09-29"}
        archive.refresh(
            getattr(tk, OPERATIONS[operation].function), *subject, **start, session=tiny
        )
    return archive, subjects


def to_table(found):
    """Return what a scan returned as a table of Arrow."""
    if isinstance(found, pd.DataFrame):
        return pa.Table.from_pandas(found, preserve_index=False)
    return (
        found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.collect().to_arrow()
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_scan_equals_frame(histories, tmp_path, engine, numbers):
    archive, subjects = histories
    how, empty = {"engine": engine, "numbers": numbers}, open_archive(tmp_path)
    for type, subject in subjects.items():
        fetch, table = getattr(tk, OPERATIONS[type].function), operation_table(OPERATIONS[type])
        columns = table_columns(OPERATIONS[type].tables[0])
        names = [column.name for column in columns if column.kind.family == "number"]
        rows = to_table(archive.scan(table, operation=fetch, columns=[*names, "_row"], **how))
        rows = rows.sort_by("_row").select(names)
        wanted = archive.frame(fetch, *subject, numbers=numbers)[names]
        assert len(rows) > 0
        assert rows.to_pylist() == to_table(wanted).to_pylist()
        full, none = to_table(archive.scan(table, **how)), to_table(empty.scan(table, **how))
        assert (len(none), none.schema.names) == (0, full.schema.names)
        assert "_json" not in full.schema.names


@pytest.mark.parametrize("engine", ENGINES)
def test_scan_selects_rows_and_columns(tmp_path, engine):
    archive, other = open_archive(tmp_path), "0x" + "b" * 40
    for user in (USER, other):
        session = fill_session(FILLS, users=(USER, other))
        archive.refresh(tk.user_fills_by_time, user, START, session=session)
    limits = {"subject": USER, "operation": tk.user_fills_by_time, "start": FILLS[30].time}
    rows = to_table(archive.scan("fills", **limits, columns=["px", "builder"], engine=engine))
    assert len(rows) == sum(fill.time >= FILLS[30].time for fill in FILLS)
    assert rows.schema.names == ["px", "builder"]
    assert set(rows["px"].to_pylist()) == {64000.1}


@pytest.mark.parametrize("engine", ENGINES)
def test_scan_names_the_account_of_each_row(tmp_path, engine):
    """The fills of an account do not repeat the account: it is the subject."""
    users = ["0x" + digit * 40 for digit in "57"]
    session = fill_session(FILLS[:20], users=users)
    archive = open_archive(tmp_path)
    for user in users:
        archive.refresh(tk.user_fills_by_time, user, START, session=session)
    archive.refresh(tk.user_fills, users[1], session=session)
    rows = archive.scan("fills", columns=["user", "_subject", "px"], engine=engine)
    found = rows_of(rows)
    assert len(found) == 40
    assert {row["user"] for row in found} == set(users)
    assert all(row["user"] == row["_subject"] for row in found)
    groups = rows_of(tk.pnl.attribution(archive.scan("fills", engine=engine), by="user"))
    assert sorted(row["user"] for row in groups) == users


@pytest.mark.parametrize("engine", ENGINES)
def test_scanned_ledger_keeps_the_source_of_transfers(tmp_path, tiny, engine):
    archive, users = open_archive(tmp_path), tiny.world["users"][:4]
    archive.refresh_many(tk.user_non_funding_ledger_updates, users, 0, session=tiny)
    fetched = tk.many(tk.user_non_funding_ledger_updates, users, 0, session=tiny)
    rows = rows_of(archive.scan("ledger", columns=["account", "user", "time"], engine=engine))
    key = lambda row: (row["account"], row["time"], row["user"] or "")  # noqa: E731
    expected = rows_of(fetched[["account", "user", "time"]])
    assert sorted(map(key, rows)) == sorted(map(key, expected))
    assert any(row["user"] not in (None, row["account"]) for row in rows)
    assert "account" in rows_of(archive.scan("ledger", engine=engine))[0]
    builder = tiny.world["builders"][0]
    archive.refresh(tk.builder_orders_by_time, builder, 0, session=tiny)
    placed = rows_of(archive.scan("orders", engine=engine))
    assert {row["user"] for row in placed} <= {*tiny.world["users"]}
