"""Damage shows; what is whole passes; a freeze stays what it was."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import toolkit as tk
from tests.archive.world import START, USER, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.archive.storage import ArchiveTables
from toolkit.errors import ArchiveError
from toolkit.times import to_iso

FILLS = fills_of(600)


@pytest.fixture(name="kept")
def _kept(tmp_path: Path) -> archive.Archive:
    made = archive.open(tmp_path / "kept")
    for end in (200, 400, 600):
        made.refresh(
            tk.user_fills_by_time,
            USER,
            START,
            page_size=31,
            rows_per_commit=50,
            session=session_of(FILLS[:end]),
        )
    return made


def kinds(kept: archive.Archive) -> list[str]:
    return sorted({one.kind for one in kept.verify() if one.severity == "error"})


def test_a_simulated_exchange_is_whole(tmp_path: Path) -> None:
    session = tk.local(seed=7, size="tiny", default=False)
    kept = archive.open(tmp_path)
    for user in session.world["users"][:6]:
        kept.refresh(tk.user_fills_by_time, user, 0, session=session)
    for builder in session.world["builders"][:2]:
        for fetch in (tk.builder_approved_fills_by_time, tk.builder_approved_funding_by_time):
            kept.refresh(fetch, builder, 0, session=session)
        kept.refresh(tk.builder_orders_by_time, builder, 0, session=session)
    kept.refresh(tk.slippage_history, "BTC", 1_000, 0, session=session)
    assert kinds(kept) == []
    status = kept.status()
    assert status["gaps"].sum() == 0
    assert set(status["table"]) == {"fills", "funding", "orders", "slippage"}


def test_missing_fills_break_the_chain(kept: archive.Archive) -> None:
    assert kinds(kept) == []
    holed = archive.open(Path(kept.tables.location).with_name("holed"))
    without = [*FILLS[:100], *FILLS[130:]]
    holed.refresh(tk.user_fills_by_time, USER, START, session=session_of(without))
    assert kinds(holed) == ["chain"]


def test_damage_to_files_shows(kept: archive.Archive) -> None:
    files = sorted((Path(kept.tables.location) / "fills").glob("*.parquet"))
    content = bytearray(files[0].read_bytes())
    for at in range(len(content) // 8, len(content) // 8 + 64):  # pages of data come first
        content[at] ^= 0xFF
    files[0].write_bytes(content)
    assert "damage" in kinds(kept)
    files[0].unlink()
    assert "damage" in kinds(kept)


def test_rows_that_no_refresh_wrote_show(kept: archive.Archive) -> None:
    tables = ArchiveTables(kept.tables.location)
    handle = tables.open_table("fills")
    rows = tables.read_rows(handle).slice(0, 40)
    tables.append_rows(handle, rows)
    assert {"duplicate", "run"} <= set(kinds(kept))
    (found,) = (one for one in kept.verify() if one.kind == "duplicate")
    times = sorted(set(rows["time"].cast("int64").to_pylist()))[:3]
    moments = ", ".join(to_iso(time // 1_000) for time in times)
    said = f"40 rows repeat an earlier row, first at {moments}"
    assert (found.severity, found.what) == ("error", said)


def test_ledger_rows_may_truly_come_twice(tmp_path: Path) -> None:
    session = tk.local(seed=7, size="tiny", default=False)
    kept, user = archive.open(tmp_path), session.world["users"][0]
    kept.refresh(tk.user_non_funding_ledger_updates, user, 0, session=session)
    handle = kept.tables.open_table("ledger")
    kept.tables.append_rows(handle, kept.tables.read_rows(handle).slice(0, 2))
    (found,) = (one for one in kept.verify() if one.kind == "duplicate")
    assert (found.severity, found.what[:6]) == ("notice", "2 rows")


def test_a_column_that_says_otherwise_than_the_text_shows(tmp_path: Path) -> None:
    tables = ArchiveTables(str(tmp_path))
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS[:20]))
    handle = tables.open_table("fills")
    rows = tables.read_rows(handle)
    at = rows.column_names.index("px")
    rows = rows.set_column(at, "px", pa.array([1.0] * rows.num_rows))
    other = archive.open(tmp_path / "other")
    made = other.tables.open_for_append("fills")
    other.tables.append_rows(
        made, rows, counts={f"userFillsByTime {USER} from {START}": rows.num_rows}
    )
    assert kinds(other) == ["typed"]


@pytest.mark.parametrize("name", ["a#b", "a?b", "a b", "100%", "ä"])
def test_any_name_of_a_folder_will_do(tmp_path: Path, name: str) -> None:
    kept = archive.open(tmp_path / name)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS[:20]))
    assert len(kept.frame(tk.user_fills_by_time, USER)) == 20
    assert kept.verify() == []
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_compaction_and_refreshes_leave_a_freeze_as_it_was(kept: archive.Archive) -> None:
    name = kept.freeze()
    assert name == kept.freeze()
    before = kept.frame(tk.user_fills_by_time, USER, numbers="text")
    rows = rows_of(kept)
    reader = kept.scan("fills", engine="duckdb")  # opened before, read after
    assert kept.compact() > 5
    assert reader.aggregate("count(*)").fetchall() == [(600,)]
    kept.compact(forget_after_hours=0)
    more = fills_of(700)
    kept.refresh(tk.user_fills_by_time, USER, session=session_of(more))
    assert kinds(kept) == []
    assert len(rows_of(kept)) == 700
    frozen = archive.open(f"{kept.tables.location}@{name}")
    assert rows_of(frozen) == rows
    pd.testing.assert_frame_equal(frozen.frame(tk.user_fills_by_time, USER, numbers="text"), before)
    assert kinds(frozen) == []
    with pytest.raises(ArchiveError, match="frozen"):
        frozen.refresh(tk.user_fills_by_time, USER, session=session_of(more))
    with pytest.raises(ArchiveError, match="no freeze"):
        archive.open(kept.tables.location, frozen="f0")


def test_nothing_is_frozen_of_an_empty_archive(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    assert len(kept.status()) == 0
    assert kept.verify() == []
    with pytest.raises(ArchiveError, match="nothing"):
        kept.freeze()
