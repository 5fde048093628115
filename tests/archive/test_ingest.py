"""What was fetched before there was an archive is kept as it came."""

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import START, USER, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.contract.answers import UnknownField
from toolkit.errors import ArchiveError

FILLS = fills_of(300)


def record(folder: Path, name: str, request: object, response: str) -> None:
    folder.mkdir(exist_ok=True)
    text = f'{{"request": {json.dumps(request)}, "status": 200, "response": {response}}}'
    (folder / name).write_text(text)


def test_recordings_are_kept_as_they_came(tmp_path: Path) -> None:
    session, folder = session_of(FILLS), tmp_path / "recordings"
    request = {"type": "userFillsByTime", "user": USER, "startTime": START}
    response = json.dumps(tk.info(request, session=session), indent=1)
    record(folder, "fills.json", request, response)
    record(folder, "meta.json", {"type": "meta"}, '{"universe": [],  "new": 1.50}')
    record(folder, "book.json", {"type": "l2Book"}, "{}")
    (folder / "torn.json").write_text("{")
    kept = archive.open(tmp_path / "kept")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownField)
        found = kept.ingest(folder)
    assert found["kept"] == {"fills.json": 300, "meta.json": 1}
    assert sorted(found["left"]) == ["book.json", "torn.json"]
    assert all(text in response for _, text in rows_of(kept))
    body = kept.scan("answers", columns=["_body"], engine="pandas")["_body"][0]
    assert body == b'{"universe": [],  "new": 1.50}'
    assert kept.ingest(folder)["kept"]["fills.json"] == 0
    later = session_of(fills_of(400))
    assert kept.refresh(tk.user_fills_by_time, USER, session=later).rows == 100
    assert kept.verify() == []


@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_frames_are_kept(tmp_path: Path, numbers: str) -> None:
    session = tk.local(seed=7, size="tiny", default=False)
    user, builder = session.world["users"][0], session.world["builders"][0]
    kept = archive.open(tmp_path)
    for fetch, subject in (
        (tk.user_fills_by_time, user),
        (tk.builder_approved_funding_by_time, builder),
    ):
        made = fetch(subject, 0, numbers=numbers, session=session)
        kept.ingest(made)
        again = kept.frame(fetch, subject, numbers=numbers)
        if numbers == "text":
            pd.testing.assert_frame_equal(again, made)
        pd.testing.assert_frame_equal(
            kept.frame(fetch, subject), fetch(subject, 0, session=session)
        )
        assert kept.refresh(fetch, subject, session=session).rows == 0


def test_what_does_not_join_on_is_refused(tmp_path: Path) -> None:
    session, kept = session_of(FILLS), archive.open(tmp_path)
    first = tk.user_fills_by_time(USER, START, FILLS[100].time, session=session)
    last = tk.user_fills_by_time(USER, FILLS[200].time, session=session)
    part = tk.user_fills_by_time(USER, START, max_rows=5, session=session)
    kept.ingest(first)
    with pytest.raises(ArchiveError, match="gap"):
        kept.ingest(last)
    with pytest.raises(ArchiveError, match="complete"):
        kept.ingest(part)
