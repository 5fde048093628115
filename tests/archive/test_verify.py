"""`verify` finds faults and passes intact archives; a freeze never changes."""

import pandas as pd
import pyarrow as pa
import pytest

import toolkit as tk
from tests.archive.world import START, USER, archived_rows, error_kinds, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.storage import ArchiveTables
from toolkit.client import forget
from toolkit.errors import ArchiveError
from toolkit.times import to_iso

FILLS = make_fills(600)


@pytest.fixture(name="archive")
def _archive(tmp_path):
    archive = open_archive(tmp_path / "kept")
    for end in (200, 400, 600):
        archive.refresh(
            tk.user_fills_by_time,
            USER,
            START,
            page_size=31,
            rows_per_commit=50,
            session=fill_session(FILLS[:end]),
        )
    return archive


def test_verify_finds_repeated_rows(archive):
    tables = ArchiveTables(archive.tables.location)
    handle = tables.open_table("fills")
    rows = tables.read_rows(handle).slice(0, 40)
    tables.append_rows(handle, rows)
    assert {"duplicate", "run"} <= error_kinds(archive)
    (found,) = (finding for finding in archive.verify() if finding.kind == "duplicate")
    times = sorted(set(rows["time"].cast("int64").to_pylist()))[:3]
    moments = ", ".join(to_iso(time // 1_000) for time in times)
    expected = f"40 rows repeat an earlier row, first at {moments}"
    assert (found.severity, found.what) == ("error", expected)


def test_verify_notices_repeated_ledger_rows(tmp_path, tiny):
    archive, user = open_archive(tmp_path), tiny.world["users"][0]
    archive.refresh(tk.user_non_funding_ledger_updates, user, 0, session=tiny)
    handle = archive.tables.open_table("ledger")
    archive.tables.append_rows(handle, archive.tables.read_rows(handle).slice(0, 2))
    (found,) = (finding for finding in archive.verify() if finding.kind == "duplicate")
    assert (found.severity, found.what[:6]) == ("notice", "2 rows")


def with_cells(rows, column, cells):
    """Return rows with other cells in a column; `cells` takes the list of the cells."""
    at = rows.column_names.index(column)
    changed = pa.array(cells(rows[column].to_pylist()), rows.schema.field(column).type)
    return rows.set_column(at, column, changed)


WRONG_ROWS = [  # change of a run of 20 rows, and the errors
    (lambda rows: rows, set()),
    (lambda rows: with_cells(rows, "px", lambda cells: [1.0] * len(cells)), {"typed"}),
    (lambda rows: with_cells(rows, "_row", lambda cells: [*cells[:5], *cells[:4:-1]]), {"order"}),
    (lambda rows: with_cells(rows, "_row", lambda cells: [*cells[:5], 4, *cells[6:]]), {"run"}),
    (lambda rows: pa.concat_tables([rows[:9], rows[10:]]), {"chain", "run"}),
]


def test_verify_finds_wrong_rows(tmp_path):
    archive, found = open_archive(tmp_path / "kept"), []
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS[:20]))
    rows = archive.tables.read_rows(archive.tables.open_table("fills")).sort_by("_row")
    for number, (change, _) in enumerate(WRONG_ROWS):
        other, changed = open_archive(tmp_path / str(number)), change(rows)
        counts = {f"userFillsByTime {USER} from {START}": changed.num_rows}
        other.tables.append_rows(other.tables.open_for_append("fills"), changed, counts=counts)
        found.append(error_kinds(other))
    assert found == [kinds for _, kinds in WRONG_ROWS]


@pytest.mark.parametrize("name", ["kept@home", "kept@fund", "a#b", "a?b", "100%", "a ä"])
def test_folder_with_special_name_is_archive(tmp_path, name):
    archive = open_archive(tmp_path / name)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS[:20]))
    assert len(archive.frame(tk.user_fills_by_time, USER)) == 20
    assert archive.verify() == []
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_freeze_survives_compaction(archive):
    name = archive.freeze()
    assert name == archive.freeze()
    before = archive.frame(tk.user_fills_by_time, USER, numbers="text")
    rows = archived_rows(archive)
    reader = archive.scan("fills", engine="duckdb")  # opened before compaction, read after it
    assert archive.compact() > 5
    assert reader.aggregate("count(*)").fetchall() == [(600,)]
    archive.compact(forget_after_hours=0)
    more = make_fills(700)
    archive.refresh(tk.user_fills_by_time, USER, session=fill_session(more))
    assert error_kinds(archive) == set()
    assert len(archived_rows(archive)) == 700
    frozen = open_archive(f"{archive.tables.location}@{name}")
    assert archived_rows(frozen) == rows
    pd.testing.assert_frame_equal(frozen.frame(tk.user_fills_by_time, USER, numbers="text"), before)
    assert error_kinds(frozen) == set()
    with pytest.raises(ArchiveError, match="frozen"):
        frozen.refresh(tk.user_fills_by_time, USER, session=fill_session(more))
    forget()  # a freeze is refused before an address is needed
    with pytest.raises(ArchiveError, match="a freeze never changes"):
        frozen.refresh_many(tk.user_fills_by_time, [USER])
    with pytest.raises(ArchiveError, match=f"no freeze 'f0': it has {name}$"):
        open_archive(archive.tables.location, frozen="f0")


def test_freeze_of_same_rows_has_same_id(archive):
    name = archive.freeze()
    archive.compact()  # other versions of the tables
    other = archive.freeze()
    assert archive.freeze() == other != name
    assert archive.verify() == []
    assert open_archive(archive.tables.location, frozen=name).verify() == []
