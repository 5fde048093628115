"""Lost rows: frames are not complete, the archive is not served, `verify` reports them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit as tk
from tests.archive.world import START, USER, StopsAfter, archived_rows, fill_session, make_fills
from toolkit import archive
from toolkit.errors import ArchiveError, ServiceError

FILLS = make_fills(300)


def make_archive(folder: Path, end: int = 300) -> archive.Archive:
    kept = archive.open(folder)
    kept.refresh(
        tk.user_fills_by_time,
        USER,
        START,
        session=fill_session(FILLS[:end]),
        page_size=50,
        rows_per_commit=100,
    )
    kept.refresh(tk.meta, session=fill_session(FILLS))
    return kept


def finding_kinds(kept: archive.Archive) -> set[str]:
    return {finding.kind for finding in kept.verify()}


def log_entries(kept: archive.Archive, name: str) -> list[Path]:
    return sorted((Path(kept.tables.location) / name / "_delta_log").glob("*.json"))


def change_log(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the statistics of a file in an entry of the Delta log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in lines:
        if "add" in entry:
            statistics = json.loads(entry["add"]["stats"])
            change(statistics)
            entry["add"]["stats"] = json.dumps(statistics)
    path.write_text("\n".join(map(json.dumps, lines)))


def lose_table(kept: archive.Archive) -> None:
    shutil.rmtree(Path(kept.tables.location) / "fills")


def lose_newest_entry(kept: archive.Archive) -> None:
    log_entries(kept, "fills")[-1].unlink()


@pytest.mark.parametrize("lose", [lose_table, lose_newest_entry])
@pytest.mark.parametrize("frozen", [False, True])
def test_lost_rows_are_reported(
    tmp_path: Path, lose: Callable[[archive.Archive], None], *, frozen: bool
) -> None:
    kept = make_archive(tmp_path / "kept")
    if frozen and lose is lose_table:
        kept = archive.open(f"{tmp_path / 'kept'}@{kept.freeze()}")
    lose(kept)
    for limits in ({}, {"start": START, "end": FILLS[20].time}):
        facts = tk.provenance(kept.frame(tk.user_fills_by_time, USER, **limits))
        assert facts["complete"] == "no"
        assert "rows were lost" in facts["why"]
    assert "lost" in finding_kinds(kept)
    with pytest.raises(ArchiveError, match="rows were lost"):
        tk.local(archive=tmp_path / "kept", default=False)


def test_lost_rows_message_advice(tmp_path: Path) -> None:
    kept = make_archive(tmp_path)
    kept.tables.open_table("fills").delete("_row >= 50 AND _row < 100")
    assert kept.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS)).rows == 0
    advice = "restore the files from a copy, or start a new archive"
    assert advice in tk.provenance(kept.frame(tk.user_fills_by_time, USER))["why"]
    assert any(advice in finding.what for finding in kept.verify() if finding.kind == "lost")
    with pytest.raises(ArchiveError, match=advice):
        tk.local(archive=tmp_path, default=False)


def test_lost_rows_fetched_again(tmp_path: Path) -> None:
    kept = make_archive(tmp_path)
    lose_newest_entry(kept)
    kept = make_archive(tmp_path)
    assert finding_kinds(kept) == set()
    assert tk.provenance(kept.frame(tk.user_fills_by_time, USER))["complete"] == "yes"
    assert len(archived_rows(kept)) == 300


def test_row_count_after_interrupted_refresh(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    stopping = fill_session(FILLS, through=lambda inner: StopsAfter(inner, 3))
    with pytest.raises(ServiceError):
        kept.refresh(tk.user_fills_by_time, USER, START, session=stopping, page_size=50)
    assert 0 < len(archived_rows(kept)) < 300
    assert finding_kinds(kept) == {"gap"}
    make_archive(tmp_path)
    assert finding_kinds(kept) == set()
    lose_newest_entry(kept)
    assert "lost" in finding_kinds(kept)


def test_lost_answer_is_reported(tmp_path: Path) -> None:
    kept = make_archive(tmp_path)
    log_entries(kept, "answers")[-1].unlink()
    assert finding_kinds(kept) == {"lost"}
    with pytest.raises(ArchiveError, match="rows were lost"):
        tk.local(archive=tmp_path, default=False)


def test_verify_archive_without_digests(tmp_path: Path) -> None:
    """Older versions logged new rows only, and their commits had no digest."""
    kept = make_archive(tmp_path, 200)
    for name in ("fills", "answers"):
        for path in log_entries(kept, name):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for entry in lines:
                entry.get("commitInfo", {}).pop("digest", None)
            path.write_text("\n".join(map(json.dumps, lines)))
    assert finding_kinds(kept) == set()
    make_archive(tmp_path)
    assert finding_kinds(kept) == set()


@pytest.mark.parametrize("column", ["time", "_subject", "px"])
@pytest.mark.parametrize("bound", ["minValues", "maxValues"])
def test_verify_finds_wrong_statistics(tmp_path: Path, column: str, bound: str) -> None:
    kept = make_archive(tmp_path)
    wrong: dict[str, Any] = {
        "time": {"minValues": "2030-01-01T00:00:00Z", "maxValues": "2020-01-01T00:00:00Z"},
        "_subject": {"minValues": "0xb", "maxValues": "0x1"},
        "px": {"minValues": 1e9, "maxValues": 0.0},
    }
    change_log(
        log_entries(kept, "fills")[2],
        lambda statistics: statistics[bound].update({column: wrong[column][bound]}),
    )
    (found,) = kept.verify()
    assert (found.kind, found.severity, found.table) == ("damage", "error", "fills")
    assert f"{column} has other values than the log states" in found.what
