"""Lost rows: frames are not complete, the archive is not served, `verify` reports them."""

import json
import shutil
from pathlib import Path

import deltalake
import pytest

import toolkit as tk
from tests.archive.world import START, USER, StopsAfter, archived_rows, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.archive.schemas import SCHEMAS
from toolkit.errors import ArchiveError, ServiceError

FILLS = make_fills(300)


def make_archive(folder, end=300):
    archive = open_archive(folder)
    archive.refresh(
        tk.user_fills_by_time,
        USER,
        START,
        session=fill_session(FILLS[:end]),
        page_size=50,
        rows_per_commit=100,
    )
    archive.refresh(tk.meta, session=fill_session(FILLS))
    return archive


def finding_kinds(archive):
    return {finding.kind for finding in archive.verify()}


def log_entries(archive, name):
    return sorted((Path(archive.tables.location) / name / "_delta_log").glob("*.json"))


def change_log(path, change):
    """Change the statistics of a file in an entry of the Delta log."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in lines:
        if "add" in entry:
            statistics = json.loads(entry["add"]["stats"])
            change(statistics)
            entry["add"]["stats"] = json.dumps(statistics)
    path.write_text("\n".join(map(json.dumps, lines)))


def lose_table(archive):
    shutil.rmtree(Path(archive.tables.location) / "fills")


def lose_newest_entry(archive):
    log_entries(archive, "fills")[-1].unlink()


def lose_middle_rows(archive):
    archive.tables.open_table("fills").delete("_row >= 50 AND _row < 100")
    session = fill_session(FILLS)  # does not fetch them again
    assert archive.refresh(tk.user_fills_by_time, USER, START, session=session).rows == 0


@pytest.mark.parametrize(
    ("lose", "frozen"),
    [
        (lose_table, False),
        (lose_table, True),
        (lose_newest_entry, False),
        (lose_middle_rows, False),
    ],
)
def test_lost_rows_are_reported(tmp_path, lose, *, frozen):
    archive = make_archive(tmp_path / "kept")
    if frozen:
        archive = open_archive(f"{tmp_path / 'kept'}@{archive.freeze()}")
    lose(archive)
    for limits in ({}, {"start": START, "end": FILLS[20].time}):
        facts = tk.provenance(archive.frame(tk.user_fills_by_time, USER, **limits))
        assert facts["complete"] == "no"
        assert "rows were lost" in facts["why"]
    lost = [finding.what for finding in archive.verify() if finding.kind == "lost"]
    assert lost
    with pytest.raises(ArchiveError, match="rows were lost"):
        tk.local(archive=tmp_path / "kept", default=False)
    if lose is lose_middle_rows:
        for text in (facts["why"], *lost):
            assert "from a copy" in text


def test_interrupted_refresh_leaves_gap_only(tmp_path):
    archive = open_archive(tmp_path)
    stopping = fill_session(FILLS, through=lambda inner: StopsAfter(inner, 3))
    with pytest.raises(ServiceError):
        archive.refresh(tk.user_fills_by_time, USER, START, session=stopping, page_size=50)
    assert 0 < len(archived_rows(archive)) < 300
    assert finding_kinds(archive) == {"gap"}
    make_archive(tmp_path)
    assert finding_kinds(archive) == set()
    lose_newest_entry(archive)
    assert "lost" in finding_kinds(archive)
    archive = make_archive(tmp_path)  # the lost rows are fetched again
    assert finding_kinds(archive) == set()
    assert tk.provenance(archive.frame(tk.user_fills_by_time, USER))["complete"] == "yes"
    assert len(archived_rows(archive)) == 300


def test_lost_answer_is_reported(tmp_path):
    archive = make_archive(tmp_path)
    log_entries(archive, "answers")[-1].unlink()
    assert finding_kinds(archive) == {"lost"}
    with pytest.raises(ArchiveError, match="rows were lost"):
        tk.local(archive=tmp_path, default=False)


def test_archive_without_digests_is_intact(tmp_path):
    """Older versions logged new rows only, and their commits had no digest."""
    archive = make_archive(tmp_path, 200)
    for name in ("fills", "answers"):
        for path in log_entries(archive, name):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for entry in lines:
                entry.get("commitInfo", {}).pop("digest", None)
            path.write_text("\n".join(map(json.dumps, lines)))
    assert finding_kinds(archive) == set()
    make_archive(tmp_path)
    assert finding_kinds(archive) == set()


def test_verify_finds_wrong_statistics(tmp_path):
    """Readers would skip the rows. Only tables of older versions have statistics of px."""
    schema = deltalake.Schema.from_arrow(SCHEMAS["fills"])
    deltalake.DeltaTable.create(tmp_path / "fills", schema=schema)
    archive = make_archive(tmp_path)
    entry = log_entries(archive, "fills")[2]
    text = entry.read_text()
    for column, low, high in (
        ("time", "2030-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("_subject", "0xb", "0x1"),
        ("px", 1e9, 0.0),
    ):
        for bound, value in (("minValues", low), ("maxValues", high)):
            change_log(entry, lambda stats: stats[bound].update({column: value}))  # noqa: B023
            (found,) = archive.verify()
            assert (found.kind, found.severity, found.table) == ("damage", "error", "fills")
            assert f"{column} has other values than Delta's log" in found.what
            entry.write_text(text)
    change_log(entry, lambda stats: stats["nullCount"].update(time=1))
    (found,) = archive.verify()
    assert "time has other values than Delta's log" in found.what
