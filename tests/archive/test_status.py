"""Status, findings with exit codes, scans, and the HTML of an archive."""

import json
import warnings

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.commands import run_command
from tests.archive.world import CANARY, START, USER, fill_session, make_fills, store_session
from toolkit.archive import open as open_archive
from toolkit.contract.recorded_rows import build_record
from toolkit.contract.records import FundingRow, SlippageSample
from toolkit.contract.source_tables import Approval, Sources
from toolkit.service import build_store
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


PAYMENT = {"coin": "BTC", "usdc": "-1.5", "szi": "2.0", "fundingRate": "0.0000125"}
PAYMENT["type"] = "funding"
SAMPLE = {"dex": "", "coin": "BTC", "amountUsd": 1000.0, "halfSpreadBps": 0.5}
SAMPLE |= {"buySlippageBps": 1.0, "sellSlippageBps": 1.0}


def market_session(hours, quarters, sums=1):
    """Return a session of a service with funding of one position and slippage samples.

    Parameters
    ----------
    hours, quarters : list of int
        The hours with a payment, and the quarter hours with a sample.
    sums : int
        The number of payments that the last row of funding sums up.
    """
    funding = [
        {"time": START + hour * HOUR, "hash": "0x" + "0" * 64, "user": USER, "delta": {**PAYMENT}}
        for hour in hours
    ]
    if sums > 1:
        funding[-1]["delta"]["nSamples"] = sums
    slippage = [{"timestamp": START + quarter * 15 * MINUTE, **SAMPLE} for quarter in quarters]
    sources = Sources(
        start_ms=START,
        now_ms=START + 24 * HOUR,
        label="test",
        simulated=True,
        funding=[build_record(FundingRow, row) for row in funding],
        slippage=[build_record(SlippageSample, row) for row in slippage],
        approvals=[Approval(USER, OTHER, START - 1, 0, True)],
    )
    return store_session(build_store(sources))


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
    is_wrong = any(severity == "error" for _, severity in expected)
    output = run_command("verify", tmp_path, "--json", code=int(is_wrong)).output
    assert json.loads(output)["ok"] is not is_wrong


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
