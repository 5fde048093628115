"""Status, findings with exit codes, scans, and the HTML of an archive."""

import json
import sys
import warnings
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import CANARY, START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.coverage import RefreshResult, log_entry, log_refreshes
from toolkit.archive.schemas import RowOrigin
from toolkit.archive.storage import ArchiveTables
from toolkit.cli.archive import archive_app
from toolkit.contract.records import FundingDelta, FundingRow, SlippageSample
from toolkit.contract.source_tables import Approval, Sources
from toolkit.errors import ArchiveError, IncompleteWarning
from toolkit.times import HOUR, MINUTE

FILLS = make_fills(300)
OTHER = "0x" + "b" * 40
MIDDLE = FILLS[150].time


def utc(milliseconds):
    return pd.Timestamp(milliseconds, unit="ms", tz="UTC")


def refresh(archive, user, start, end=None):
    session = fill_session(FILLS, users=(USER, OTHER))
    archive.refresh(tk.user_fills_by_time, user, start, end, session=session)


def test_status_has_row_per_subject(tmp_path):
    archive = open_archive(tmp_path)
    empty = archive.status()
    refresh(archive, USER, START)
    refresh(archive, OTHER, MIDDLE)
    status = archive.status()
    assert status.dtypes.equals(empty.dtypes)
    first, second = status.itertuples(index=False)
    assert (first.table, first.operation, first.subject) == ("fills", "userFillsByTime", USER)
    assert (first.rows, second.rows) == (300, sum(fill.time >= MIDDLE for fill in FILLS))
    assert (first.first, first.last) == (utc(FILLS[0].time), utc(FILLS[-1].time))
    assert (first.covered_from, second.covered_from) == (utc(START), utc(MIDDLE))
    assert first.covered_until == utc(FILLS[-1].time + 1_000)  # the present of the service
    assert (first.gaps, second.gaps) == (0, 0)
    assert first.version == second.version == 2  # creation and two commits
    files = sum(file.stat().st_size for file in (tmp_path / "fills").glob("*.parquet"))
    assert first.bytes + second.bytes == pytest.approx(files, abs=1)
    assert first.bytes / second.bytes == pytest.approx(first.rows / second.rows, rel=1e-3)
    assert CANARY not in status.to_csv()


def test_status_counts_gaps(tmp_path):
    archive = open_archive(tmp_path)
    refresh(archive, USER, START)
    origin = RowOrigin("test", True, 0)
    # Log two more ranges, one and two hours later: there is a gap before each.
    for hour in (1, 2):
        at = FILLS[-1].time + hour * HOUR
        log_refreshes(
            archive.tables,
            [log_entry(RefreshResult("userFillsByTime", USER, 0, 300, at, at + 1), origin)],
        )
    assert archive.status()["gaps"].tolist() == [2]
    assert tk.provenance(archive.frame(tk.user_fills_by_time, USER))["complete"] == "no"
    inside = archive.frame(tk.user_fills_by_time, USER, start=START, end=MIDDLE)
    assert tk.provenance(inside)["complete"] == "yes"


def count_table_opens(archive):
    """Return how often status opens a table."""
    found, before = 0, sys.getprofile()

    def count(frame, event, _):
        nonlocal found
        found += event == "call" and frame.f_code is ArchiveTables.open_table.__code__

    sys.setprofile(count)
    try:
        archive.status()
    finally:
        sys.setprofile(before)
    return found


def test_status_reads_log_once(tmp_path):
    archive = open_archive(tmp_path)
    refresh(archive, USER, START)
    of_one = count_table_opens(archive)
    refresh(archive, OTHER, MIDDLE)
    assert len(archive.status()) == 2
    assert count_table_opens(archive) == of_one


def market_session(hours, quarters, sums=1):
    """Return a session of a service with funding of one position and slippage samples.

    Parameters
    ----------
    hours, quarters : list of int
        The hours with a payment, and the quarter hours with a sample.
    sums : int
        The number of payments that the last row of funding sums up.
    """
    from toolkit.client import connect
    from toolkit.local_service import InProcessTransport, application_of
    from toolkit.service import AcceptedKey, KeyQuotas, build_store

    funding = [
        FundingRow(
            time=START + hour * HOUR,
            hash="0x" + "0" * 64,
            user=USER,
            delta=FundingDelta(
                type="funding",
                coin="BTC",
                usdc="-1.5",
                szi="2.0",
                funding_rate="0.0000125",
                n_samples=sums if hour == hours[-1] and sums > 1 else None,
            ),
        )
        for hour in hours
    ]
    slippage = [
        SlippageSample(
            timestamp=START + quarter * 15 * MINUTE,
            dex="",
            coin="BTC",
            half_spread_bps=0.5,
            amount_usd=1_000,
            buy_slippage_bps=1.0,
            sell_slippage_bps=1.0,
        )
        for quarter in quarters
    ]
    sources = Sources(
        start_ms=START,
        now_ms=START + 24 * HOUR,
        label="test",
        simulated=True,
        funding=funding,
        slippage=slippage,
        approvals=[Approval(USER, OTHER, START - 1, 0, True)],
    )
    application = application_of(build_store(sources), KeyQuotas([AcceptedKey("k", CANARY)]))
    return connect(
        "http://local",
        CANARY,
        transport=InProcessTransport(application),
        now_ms=application.now_ms,
        default=False,
    )


@pytest.mark.parametrize(
    ("hours", "sums", "quarters", "expected"),
    [
        ([0, 1, 2], 1, [0, 1, 2, 3], []),
        ([0, 1, 4], 1, [0, 1, 2, 3], [("hours", "notice")]),  # no payment at 02:00 and 03:00
        ([0, 1, 4], 3, [0, 1, 2, 3], []),  # the last row includes them
        ([0, 1, 4], 2, [0, 1, 2, 3], [("hours", "notice")]),  # no payment at 02:00
        ([0, 1, 2], 1, [0, 1, 3], [("grid", "error")]),  # no sample at 00:30
    ],
)
def test_verify_finds_missing_hours(tmp_path, hours, sums, quarters, expected):
    archive, session = open_archive(tmp_path), market_session(hours, quarters, sums)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        archive.refresh(tk.builder_approved_funding_by_time, OTHER, START, session=session)
        archive.refresh(tk.slippage_history, "BTC", 1_000, START, session=session)
    is_usual = hours[-1] - hours[-2] - sums > 1  # an approval may be revoked for some hours
    assert len(caught) == len(expected) - is_usual
    assert archive.status()["rows"].tolist() == [len(hours), len(quarters)]
    assert [(finding.kind, finding.severity) for finding in archive.verify()] == expected
    result = CliRunner().invoke(archive_app, ["verify", str(tmp_path), "--json"])
    errors = any(severity == "error" for _, severity in expected)
    assert result.exit_code == int(errors)
    assert json.loads(result.output)["ok"] is not errors


def test_verify_command_fails_for_gap(tmp_path):
    holed = open_archive(tmp_path)
    without = fill_session([*FILLS[:100], *FILLS[130:]])
    with pytest.warns(IncompleteWarning, match="starts from 130"):
        holed.refresh(tk.user_fills_by_time, USER, START, session=without)
    result = CliRunner().invoke(archive_app, ["verify", str(tmp_path)])
    assert result.exit_code == 1
    assert "BTC at 2025-09-01T00:00:58.575Z (id 130) starts from 130" in result.output
    assert "the fill before it left 100: fills are missing in between" in result.output


@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas"])
@pytest.mark.parametrize("table", ["fills", "funding", "ledger", "orders", "slippage", "answers"])
def test_scan_engines_agree_on_each_table(tmp_path, engine, table):
    def frame(found):
        if engine == "duckdb":
            found = found.to_arrow_table()
        return found if engine == "pandas" else to_pandas(found)

    def to_pandas(found):
        return (found.collect().to_arrow() if engine == "polars" else found).to_pandas()

    session = tk.local(seed=7, size="tiny", default=False)
    archive, empty = open_archive(tmp_path / "full"), open_archive(tmp_path / "empty")
    user, builder = session.world["users"][0], session.world["builders"][0]
    calls: dict[str, Any] = {
        "fills": (tk.user_fills_by_time, user),
        "funding": (tk.builder_approved_funding_by_time, builder),
        "ledger": (tk.user_non_funding_ledger_updates, user),
        "orders": (tk.builder_orders_by_time, builder),
        "slippage": (tk.slippage_history, "BTC", 1_000),
        "answers": (tk.meta,),
    }
    rows = archive.refresh(*calls[table], session=session).rows
    full, none = frame(archive.scan(table, engine=engine)), frame(empty.scan(table, engine=engine))
    assert len(full) == rows > 0
    assert len(none) == 0
    assert [*full.columns] == [*none.columns]
    assert "_json" not in full.columns
    pandas = archive.scan(table, engine="pandas")
    if table != "answers":
        number = {"fills": "px", "funding": "usdc", "ledger": "usdc", "orders": "sz"}.get(
            table, "half_spread_bps"
        )
        assert full[number].sum() == pytest.approx(pandas[number].sum())
        assert len(frame(archive.scan(table, columns=[number], engine=engine)).columns) == 1


def test_scan_refuses_unknown_columns(tmp_path):
    archive = open_archive(tmp_path)
    with pytest.raises(ArchiveError, match="no column price"):
        archive.scan("fills", columns=["price"])
    with pytest.raises(ArchiveError, match="no range of time"):
        archive.scan("answers", start=0)
    with pytest.raises(ArchiveError, match="unknown table 'trades'; choose one of fills, funding"):
        archive.scan("trades")


def test_html_is_escaped(tmp_path):
    archive = open_archive(tmp_path / "<b>mine</b>")
    assert "<b>" not in archive._repr_html_()
    assert "&lt;b&gt;mine" in archive._repr_html_()
    refresh(archive, USER, START)
    shown = archive._repr_html_()
    assert "<td>fills</td>" in shown
    assert "<td>300</td>" in shown
    assert (
        f"@{archive.freeze()}"
        in open_archive(archive.tables.location, frozen=archive.freeze())._repr_html_()
    )
    for file in (tmp_path / "<b>mine</b>" / "fills" / "_delta_log").iterdir():
        file.write_bytes(b"torn")
    assert "damaged" in archive._repr_html_()  # the notebook shows it and raises no error
    secret = open_archive("s3://bucket/x", storage_options={"AWS_SECRET_ACCESS_KEY": CANARY})
    assert CANARY not in repr(secret) + repr(secret.tables)
