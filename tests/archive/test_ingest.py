"""Ingest of recordings and frames."""

import json
import warnings
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import START, USER, archived_rows, error_kinds, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.errors import ArchiveError, UnknownField

FILLS = make_fills(300)


def write_recording(folder, name, request, response):
    folder.mkdir(exist_ok=True)
    text = f'{{"request": {json.dumps(request)}, "status": 200, "response": {response}}}'
    (folder / name).write_text(text)


def test_ingest_recordings_unchanged(tmp_path):
    session, folder = fill_session(FILLS), tmp_path / "recordings"
    request = {"type": "userFillsByTime", "user": USER, "startTime": START}
    response = json.dumps(tk.info(request, session=session), indent=1)
    write_recording(folder, "fills.json", request, response)
    write_recording(folder, "meta.json", {"type": "meta"}, '{"universe": [],  "new": 1.50}')
    write_recording(folder, "book.json", {"type": "l2Book"}, "{}")
    (folder / "torn.json").write_text("{")
    archive = open_archive(tmp_path / "kept")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownField)
        found = archive.ingest(folder)
    assert found["kept"] == {"fills.json": 300, "meta.json": 1}
    assert sorted(found["left"]) == ["book.json", "torn.json"]
    assert all(text in response for _, text in archived_rows(archive))
    body = archive.scan("answers", columns=["_body"], engine="pandas")["_body"][0]
    assert body == b'{"universe": [],  "new": 1.50}'
    assert archive.ingest(folder)["kept"]["fills.json"] == 0
    later = fill_session(make_fills(400))
    assert archive.refresh(tk.user_fills_by_time, USER, session=later).rows == 100
    assert archive.verify() == []


@pytest.mark.filterwarnings("ignore:.*the archive has this history up to:toolkit.HistoryWarning")
@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_ingested_frame_is_read_unchanged(tmp_path, tiny, numbers):
    user, builder = tiny.world["users"][0], tiny.world["builders"][0]
    archive = open_archive(tmp_path)
    for fetch, subject in (
        (tk.user_fills_by_time, user),
        (tk.user_non_funding_ledger_updates, user),
        (tk.builder_approved_fills_by_time, builder),
        (tk.builder_approved_funding_by_time, builder),
        (tk.builder_orders_by_time, builder),  # its cells contain records
    ):
        fetched = fetch(subject, 0, numbers=numbers, session=tiny)
        archive.ingest(fetched)
        if numbers == "text":
            again = archive.frame(fetch, subject, numbers=numbers)
            pd.testing.assert_frame_equal(again, fetched)
        again, plain = archive.frame(fetch, subject), fetch(subject, 0, session=tiny)
        pd.testing.assert_frame_equal(again, plain)
        assert archive.refresh(fetch, subject, session=tiny).rows == 0


def test_ingest_keeps_decimals_and_escaped_text(tmp_path):
    session, archive = fill_session(FILLS), open_archive(tmp_path)
    frame = tk.user_fills_by_time(USER, START, numbers="exact", session=session)
    fees = ["0.0000000001", "0.00000000099", "-0.0000001", "0", "100", "0.000001"]
    texts = ['a"b', "c\\d", "e\tf", "\u00e9", "", "g"]
    frame.loc[: len(fees) - 1, "fee"] = [Decimal(fee) for fee in fees]
    frame["cloid"] = pd.Series(texts * (len(frame) // 6), dtype=frame["cloid"].dtype)
    archive.ingest(frame)
    again = archive.frame(tk.user_fills_by_time, USER, numbers="text")
    assert again["fee"].head(len(fees)).tolist() == fees
    assert again["cloid"].tolist() == frame["cloid"].tolist()
    assert archive.verify() == []


def test_ingest_joins_parquet_files(tmp_path):
    session, folder = fill_session(FILLS), tmp_path / "frames"
    folder.mkdir()
    first = tk.user_fills_by_time(USER, START, FILLS[100].time, session=session)
    last = tk.user_fills_by_time(USER, FILLS[100].time, session=session)
    first.to_parquet(folder / "1.parquet")
    last.to_parquet(folder / "2.parquet")
    last.assign(fee=1.0).rename(columns={"px": "price"}).to_parquet(folder / "3.parquet")
    pd.DataFrame({"px": [1.0]}).to_parquet(folder / "4.parquet")
    (folder / "5.parquet").write_bytes(b"no Parquet")
    archive = open_archive(tmp_path / "kept")
    for new in (len(FILLS), 0):
        found = archive.ingest(folder)
        assert sum(found["kept"].values()) == new
        assert list(found["kept"]) == ["1.parquet", "2.parquet"]
    assert list(found["left"]) == ["3.parquet", "4.parquet", "5.parquet"]
    assert "lacks px" in found["left"]["3.parquet"]
    assert "no provenance" in found["left"]["4.parquet"]
    fetched = tk.user_fills_by_time(USER, START, session=session)
    pd.testing.assert_frame_equal(archive.frame(tk.user_fills_by_time, USER), fetched)
    assert archive.verify() == []


def test_ingest_refuses_incomplete_frames(tmp_path):
    session, archive = fill_session(FILLS), open_archive(tmp_path)
    fills = tk.user_fills_by_time(USER, START, FILLS[100].time, session=session)
    part = tk.user_fills_by_time(USER, START, max_rows=5, session=session)
    archive.ingest(fills)
    refused = ((part, "complete"), (fills.drop(columns=["px", "fee"]), "px, fee"))
    for frame, named in refused:
        with pytest.raises(ArchiveError, match=named):
            archive.ingest(frame)


def test_ingest_leaves_out_shortened_file(tmp_path):
    """Rows may be missing between any two rows of the file."""
    samples = Path(__file__).parents[2] / "data" / "samples"
    archive = open_archive(tmp_path / "kept")
    found = archive.ingest(samples / "userFillsByTime.json")
    assert found["kept"] == {}
    assert "lacks" in found["left"]["userFillsByTime.json"]
    assert archive.ingest(samples / "meta.json")["left"] == {}


SUMMARY = {
    "accountValue": "31.5",
    "totalMarginUsed": "0.0",
    "totalNtlPos": "0.0",
    "totalRawUsd": "31.5",
}
OWN_ANSWERS = [  # of the exchange's own API, beyond the specification
    (
        {"type": "clearinghouseState", "user": USER},
        {
            "marginSummary": SUMMARY,
            "crossMarginSummary": SUMMARY,
            "crossMaintenanceMarginUsed": "0.0",
            "withdrawable": "31.5",
            "assetPositions": [],
            "time": START,
        },
    ),
    (
        {"type": "userFunding", "user": USER, "startTime": START},
        [
            {
                "time": START + hour * 3_600_000,
                "hash": "0x" + "0" * 64,
                "delta": {
                    "type": "funding",
                    "coin": "SOL",
                    "usdc": f"-0.0{hour}",
                    "szi": "4.0",
                    "fundingRate": "0.0000125",
                    "nSamples": None,
                },
            }
            for hour in (1, 2)
        ],
    ),
    ({"type": "metaAndAssetCtxs"}, [{"universe": [], "marginTables": []}, []]),
]


@pytest.mark.filterwarnings("ignore::toolkit.errors.IncompleteWarning")
def test_recorded_answers_of_the_exchange_are_served_again(tmp_path):
    (tmp_path / "files").mkdir()
    for number, (request, response) in enumerate(OWN_ANSWERS):
        recorded = {"request": request, "status": 200, "response": response}
        (tmp_path / "files" / f"{number}.json").write_text(json.dumps(recorded))
    archive = open_archive(tmp_path / "kept")
    kept = {"0.json": 1, "1.json": 2, "2.json": 1}
    assert archive.ingest(tmp_path / "files") == {"kept": kept, "left": {}}
    assert error_kinds(archive) == set()
    for source in ({"archive": tmp_path / "kept"}, {"recordings": tmp_path / "files"}):
        session = tk.local(default=False, **source)
        for request, response in OWN_ANSWERS:
            assert tk.info(request, session=session) == response
    scanned = archive.scan("funding", engine="pandas")
    assert scanned["user"].tolist() == [USER] * 2
