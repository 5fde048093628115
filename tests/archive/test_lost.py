"""Rows that are gone are never called complete, nor served, and `verify` names them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit as tk
from tests.archive.world import START, USER, Stops, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.errors import ArchiveError, ServiceError

FILLS = fills_of(300)


def keep(folder: Path, end: int = 300) -> archive.Archive:
    kept = archive.open(folder)
    kept.refresh(
        tk.user_fills_by_time,
        USER,
        START,
        session=session_of(FILLS[:end]),
        page_size=50,
        rows_per_commit=100,
    )
    kept.refresh(tk.meta, session=session_of(FILLS))
    return kept


def kinds(kept: archive.Archive) -> set[str]:
    return {one.kind for one in kept.verify()}


def logs(kept: archive.Archive, name: str) -> list[Path]:
    return sorted((Path(kept.tables.location) / name / "_delta_log").glob("*.json"))


def change_log(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a log entry says of the file that it adds."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for one in lines:
        if "add" in one:
            said = json.loads(one["add"]["stats"])
            change(said)
            one["add"]["stats"] = json.dumps(said)
    path.write_text("\n".join(map(json.dumps, lines)))


def lose_table(kept: archive.Archive) -> None:
    shutil.rmtree(Path(kept.tables.location) / "fills")


def lose_newest_entry(kept: archive.Archive) -> None:
    logs(kept, "fills")[-1].unlink()


@pytest.mark.parametrize("lose", [lose_table, lose_newest_entry])
@pytest.mark.parametrize("frozen", [False, True])
def test_lost_rows_show(
    tmp_path: Path, lose: Callable[[archive.Archive], None], *, frozen: bool
) -> None:
    kept = keep(tmp_path / "kept")
    if frozen and lose is lose_table:
        kept = archive.open(f"{tmp_path / 'kept'}@{kept.freeze()}")
    lose(kept)
    for limits in ({}, {"start": START, "end": FILLS[20].time}):
        facts = tk.provenance(kept.frame(tk.user_fills_by_time, USER, **limits))
        assert facts["complete"] == "no"
        assert "rows were lost" in facts["why"]
    assert "lost" in kinds(kept)
    with pytest.raises(ArchiveError, match="rows were lost"):
        tk.local(archive=tmp_path / "kept", default=False)


def test_whoever_lost_rows_is_told_that_a_refresh_does_not_mend_it(tmp_path: Path) -> None:
    kept = keep(tmp_path)
    kept.tables.open_table("fills").delete("_row >= 50 AND _row < 100")
    assert kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS)).rows == 0
    mend = "restore the files from a copy, or start a new archive"
    assert mend in tk.provenance(kept.frame(tk.user_fills_by_time, USER))["why"]
    assert any(mend in one.what for one in kept.verify() if one.kind == "lost")
    with pytest.raises(ArchiveError, match=mend):
        tk.local(archive=tmp_path, default=False)


def test_rows_that_came_again_are_whole(tmp_path: Path) -> None:
    kept = keep(tmp_path)
    lose_newest_entry(kept)
    kept = keep(tmp_path)
    assert kinds(kept) == set()
    assert tk.provenance(kept.frame(tk.user_fills_by_time, USER))["complete"] == "yes"
    assert len(rows_of(kept)) == 300


def test_rows_that_an_interrupted_refresh_kept_count_with_the_next(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    stopping = session_of(FILLS, through=lambda inner: Stops(inner, 3))
    with pytest.raises(ServiceError):
        kept.refresh(tk.user_fills_by_time, USER, START, session=stopping, page_size=50)
    assert 0 < len(rows_of(kept)) < 300
    assert kinds(kept) == {"gap"}
    keep(tmp_path)
    assert kinds(kept) == set()
    lose_newest_entry(kept)
    assert "lost" in kinds(kept)


def test_a_lost_answer_shows(tmp_path: Path) -> None:
    kept = keep(tmp_path)
    logs(kept, "answers")[-1].unlink()
    assert kinds(kept) == {"lost"}
    with pytest.raises(ArchiveError, match="rows were lost"):
        tk.local(archive=tmp_path, default=False)


def test_archives_of_before_totals_and_digests_are_whole(tmp_path: Path) -> None:
    """Notes counted the new rows only, and commits had no digest."""
    kept = keep(tmp_path, 200)
    for name in ("fills", "answers"):
        for path in logs(kept, name):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for one in lines:
                one.get("commitInfo", {}).pop("digest", None)
            path.write_text("\n".join(map(json.dumps, lines)))
    assert kinds(kept) == set()
    keep(tmp_path)
    assert kinds(kept) == set()


@pytest.mark.parametrize("column", ["time", "_subject", "px"])
@pytest.mark.parametrize("bound", ["minValues", "maxValues"])
def test_statistics_that_hide_rows_show(tmp_path: Path, column: str, bound: str) -> None:
    kept = keep(tmp_path)
    wrong: dict[str, Any] = {
        "time": {"minValues": "2030-01-01T00:00:00Z", "maxValues": "2020-01-01T00:00:00Z"},
        "_subject": {"minValues": "0xb", "maxValues": "0x1"},
        "px": {"minValues": 1e9, "maxValues": 0.0},
    }
    change_log(
        logs(kept, "fills")[2], lambda said: said[bound].update({column: wrong[column][bound]})
    )
    (found,) = kept.verify()
    assert (found.kind, found.severity, found.table) == ("damage", "error", "fills")
    assert f"{column} has other values than the log states" in found.what
