"""Bulk ingest: Parquet files of somebody else, with the rows of many accounts."""

import contextlib
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toolkit as tk
from tests.archive.commands import run_command
from tests.archive.world import fill_session, make_fills
from tests.fetch.wire import fill
from toolkit.archive import open as open_archive
from toolkit.archive.ingest import BulkWriter
from toolkit.archive.row_sql import table_rows
from toolkit.archive.schemas import RowOrigin, Series
from toolkit.contract.fields import record_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill
from toolkit.errors import ArchiveError
from toolkit.times import to_ms

WIRE = {column.name: column.wire for column in record_columns(Fill)}
MIDDLE = "2025-09-29T12:00"


def write_files(folder, session, users, start, end):
    """Write fills with the names of the wire, ordered by time, as a node publishes them."""
    folder.mkdir(exist_ok=True)
    frames = [
        tk.user_fills_by_time(user, start, end, numbers="text", session=session).assign(
            trader=user.upper().replace("0X", "0x")
        )
        for user in users
    ]
    rows = pd.concat([frame.astype(object) for frame in frames]).sort_values("time", kind="stable")
    rows["time"] = [to_ms(time) for time in rows["time"]]
    rows = rows.rename(columns=WIRE | {"px": "price"}).convert_dtypes(dtype_backend="pyarrow")
    rows.attrs = {}
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        part.to_parquet(folder / f"{number}.parquet")
    return folder


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
def test_bulk_files_become_histories(tmp_path, tiny):
    users, now = tiny.world["users"][:6], tiny.now_ms()
    archive = open_archive(tmp_path / "kept")
    columns = {"user": "trader", "px": "price"}
    archive.refresh(tk.user_fills_by_time, users[0], 0, MIDDLE, session=tiny)
    for start, end in ((0, to_ms(MIDDLE)), (to_ms(MIDDLE) + 1, now)):
        files = write_files(tmp_path / str(end), tiny, users, start, end)
        for is_first in (True, False):
            done = archive.ingest_bulk(files, tk.user_fills_by_time, start, end, columns=columns)
            assert done["left"] == {}
            assert (sum(done["kept"].values()) > 0) == is_first
    for user in users:
        fetched = tk.user_fills_by_time(user, 0, numbers="text", session=tiny)
        kept = archive.frame(tk.user_fills_by_time, user, numbers="text")
        pd.testing.assert_frame_equal(kept, fetched)
        assert tk.provenance(kept)["complete"] == "yes"
    refreshed = archive.refresh_many(tk.user_fills_by_time, users, session=tiny)
    assert sum(each.rows for each in refreshed) == 0
    assert archive.verify() == []


def test_bulk_notes_missing_rows(tmp_path):
    user, fills = "0x" + "c" * 40, make_fills(300)
    session = fill_session(fills, users=[user])
    frame = tk.user_fills_by_time(user, fills[0].time, numbers="text", session=session)
    frame = frame.drop(index=range(100, 130)).assign(user=user)
    frame.attrs = {}
    frame.to_parquet(tmp_path / "f.parquet")
    archive = open_archive(tmp_path / "kept")
    end = fills[-1].time
    archive.ingest_bulk(tmp_path / "f.parquet", tk.user_fills_by_time, fills[0].time, end)
    facts = tk.provenance(archive.frame(tk.user_fills_by_time, user))
    assert facts["complete"] == "no"
    assert "starts from 130, but the fill before it left 100" in facts["why"]


USERS = ["0x" + digit * 40 for digit in "abc"]


@pytest.fixture(name="made")
def _made():
    """Return a session with the same fills for each user, these fills, and their times."""
    session = fill_session(make_fills(60), users=USERS)
    frame = tk.user_fills_by_time(USERS[0], 0, numbers="text", session=session)
    frame.attrs = {}
    return session, frame, [to_ms(time) for time in frame["time"]]


def test_bulk_keeps_new_rows_of_last_time(tmp_path, made):
    """The new rows of the last archived time may come before the archived ones."""
    _, frame, times = made
    tie = next(n for n in range(60) if times[n] == times[n + 1])
    last, archive = times[tie], open_archive(tmp_path / "kept")
    frame[: tie + 1].assign(user=USERS[0]).to_parquet(tmp_path / "first.parquet")
    archive.ingest_bulk(tmp_path / "first.parquet", tk.user_fills_by_time, times[0], last)
    order = sorted(range(60), key=lambda n: (times[n], -n if times[n] == last else n))
    frame.iloc[order].assign(user=USERS[0]).to_parquet(tmp_path / "second.parquet")
    archive.ingest_bulk(tmp_path / "second.parquet", tk.user_fills_by_time, times[0], times[-1])
    kept = archive.frame(tk.user_fills_by_time, USERS[0])
    assert sorted(kept["tid"]) == sorted(frame["tid"])


@pytest.mark.parametrize("is_later", [True, False])
def test_bulk_leaves_out_contradictory_histories(tmp_path, made, is_later):
    """The files lack the rows of the last archived time, and have later rows or not."""
    session, frame, times = made
    last = sorted(set(times))[5]
    archive = open_archive(tmp_path / "kept")
    archive.refresh(tk.user_fills_by_time, USERS[0], times[0], last, session=session)
    rows = frame[[time < last or (is_later and time > last) for time in times]]
    rows.assign(user=USERS[0]).to_parquet(tmp_path / "f.parquet")
    file = tmp_path / "f.parquet"
    done = archive.ingest_bulk(file, tk.user_fills_by_time, times[0], times[-1])
    assert done["kept"] == {}
    assert "did not come again" in done["left"][USERS[0]]


def test_bulk_beside_writer_repeats_no_row(tmp_path, made):
    """Another process refreshes a user after the first portion: no row is archived twice."""
    session, frame, times = made
    operation, span = OPERATIONS["userFillsByTime"], (times[0], times[-1])
    columns = pa.Table.from_pandas(frame, preserve_index=False)
    rows = table_rows(operation, columns, RowOrigin("test", False, 0))
    first, second, third = (rows.append_column("_subject", pa.array([u] * 60)) for u in USERS)
    both = pa.concat_tables([first[30:], second])
    for number, (refreshed, parts, is_refused) in enumerate(
        (
            (USERS[0], [both], True),  # continues the user of the first portion
            (USERS[1], [both], True),
            (USERS[2], [both, third], False),  # before any row of the user is written
            (USERS[0], [second], True),  # while a portion of another user is committed
        )
    ):
        archive = open_archive(tmp_path / str(number))
        every, origin = Series(operation, ""), RowOrigin("", False, 0)
        writer = BulkWriter(archive.tables, every, span, origin)
        writer.append_part(first[:30])
        archive.refresh(tk.user_fills_by_time, refreshed, times[0], session=session)
        refusal = pytest.raises(ArchiveError, match="another process")
        with refusal if is_refused else contextlib.nullcontext():
            for part in parts:
                writer.append_part(part)
        kept = archive.frame(tk.user_fills_by_time, refreshed)
        assert kept["tid"].tolist() == frame["tid"].tolist()


def wire_fill(number, **changes):
    """Return a fill with the names of the wire."""
    return fill(1_770_000_000_000 + number, number, 400 + number) | changes


def ingest_rows(archive, file):
    return archive.ingest_bulk(file, tk.user_fills_by_time, 1_770_000_000_000, 1_770_000_001_000)


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
def test_bulk_keeps_structs_and_unknown_columns(tmp_path):
    """No column vanishes: structs, and columns that the operation or no record has."""
    liquidation = {"liquidatedUser": USERS[1], "markPx": "149.5", "method": "market", "tier": 4}
    rows = [
        wire_fill(1, user=USERS[0], liquidation=liquidation, builder=USERS[2], desk=7),
        wire_fill(2, user=USERS[1], liquidation=None, builder=None, desk=8),
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "f.parquet")
    archive = open_archive(tmp_path / "kept")
    assert ingest_rows(archive, tmp_path / "f.parquet")["left"] == {}
    kept = archive.frame(tk.user_fills_by_time, USERS[0], extra="keep")
    assert kept["liquidated_user"].tolist() == [USERS[1]]
    assert kept["liquidation_mark_px"].tolist() == [149.5]
    assert kept["builder"].tolist() == [USERS[2]]
    assert kept["desk"].tolist() == ["7"]
    scanned = archive.scan("fills", engine="pandas").sort_values("time")
    assert scanned["builder"].fillna("").tolist() == [USERS[2], ""]
    assert scanned["user"].tolist() == USERS[:2]
    stored = archive.scan("fills", engine="pandas", columns=["_json", "time"]).sort_values("time")
    texts = [json.loads(text) for text in stored["_json"]]
    assert [text.get("liquidation") for text in texts] == [liquidation, None]
    assert archive.verify() == []


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
def test_bulk_reads_lines_of_nodes(tmp_path):
    """Blocks of a node have pairs of account and fill; the texts stay as they are."""
    fills = [wire_fill(1, twapId=12), wire_fill(2, builder=USERS[2])]
    pairs = [
        [user.upper().replace("0X", "0x"), fill] for user, fill in zip(USERS, fills, strict=False)
    ]
    blocks = [{"block_number": 5, "events": pairs}, {"block_number": 6, "events": []}]
    lines = [*map(json.dumps, blocks), json.dumps(wire_fill(3, user=USERS[0]))]
    (tmp_path / "f.jsonl").write_text("\n".join([*lines, ""]))
    archive = open_archive(tmp_path / "kept")
    assert ingest_rows(archive, tmp_path / "f.jsonl") == {
        "kept": {f"userFillsByTime {USERS[0]}": 2, f"userFillsByTime {USERS[1]}": 1},
        "left": {},
    }
    first, second = (archive.frame(tk.user_fills_by_time, user, extra="keep") for user in USERS[:2])
    assert first["twap_id"].tolist() == [12, pd.NA]
    assert first["tid"].tolist() == [401, 403]
    assert second["builder"].tolist() == [USERS[2]]
    assert archive.verify() == []
    for content, named in (
        ("no JSON", "line 1"),
        (json.dumps(wire_fill(1)), "no user"),
        (json.dumps([1]), "line 1"),
        (json.dumps({"events": [[USERS[0], {"coin": "SOL"}]]}), "time"),
    ):
        (tmp_path / "f.jsonl").write_text(content)
        with pytest.raises(ArchiveError, match=named):
            ingest_rows(archive, tmp_path / "f.jsonl")


UNREADABLE = [  # column, change of its values, and what the error names
    ("user", lambda cells: [None, *cells[1:]], "1 row has no user"),
    ("time", lambda cells: [None, *cells[1:]], "1 row has no time"),
    ("time", lambda cells: [cell + 0.5 for cell in cells], "column time: "),
    ("time", lambda cells: [f"at {cell}" for cell in cells], "column time"),
    ("time", lambda cells: [cell * 1000 for cell in cells], "no row is in the range"),
    ("px", lambda cells: [float("nan"), *map(float, cells[1:])], "1 row has no px"),
]


def test_bulk_refuses_unreadable_values(tmp_path, made):
    _, frame, times = made
    archive, file = open_archive(tmp_path / "kept"), tmp_path / "f.parquet"
    table = pa.Table.from_pandas(frame.assign(user=USERS[0], time=times), preserve_index=False)
    call = (file, tk.user_fills_by_time, times[0], times[-1])
    for column, change, named in UNREADABLE:
        changed = pa.array(change(table[column].to_pylist()))
        at = table.schema.get_field_index(column)
        pq.write_table(table.set_column(at, column, changed), file)
        with pytest.raises(ArchiveError, match=named):
            archive.ingest_bulk(*call)
    frame.to_parquet(file)
    with pytest.raises(ArchiveError, match="no column user"):
        archive.ingest_bulk(*call)
    with pytest.raises(ArchiveError, match="wrong"):
        archive.ingest_bulk(*call, columns={"px": "wrong"})


def test_bulk_continues_after_interrupt(tmp_path, made):
    """Rows that were committed before an interrupt are skipped by the next call."""
    _, frame, times = made
    frame.assign(user=USERS[0]).to_parquet(tmp_path / "f.parquet")
    archive = open_archive(tmp_path / "kept")
    call = tmp_path / "f.parquet", tk.user_fills_by_time, times[0], times[-1]

    def interrupt(rows):
        assert rows == 60
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.ingest_bulk(*call, progress=interrupt)
    assert archive.status()["rows"].sum() == 60
    done = archive.ingest_bulk(*call)
    assert done == {"kept": {f"userFillsByTime {USERS[0]}": 0}, "left": {}}
    kept = archive.frame(tk.user_fills_by_time, USERS[0])
    assert tk.provenance(kept)["complete"] == "yes"
    assert archive.verify() == []


def test_bulk_command_needs_all_options(tmp_path, tiny):
    users, now = tiny.world["users"][:3], tiny.now_ms()
    files, path = write_files(tmp_path / "files", tiny, users, 0, now), tmp_path / "kept"

    def ingest(*options, code=0):
        return run_command("ingest", path, files, *options, code=code).output

    bulk = ["--bulk", "userFillsByTime", "--column", "user=trader", "--column", "px=price"]
    times = ["--start", "2025-08-01", "--end", now]
    rows = sum(len(tk.user_fills_by_time(user, 0, session=tiny)) for user in users)
    assert ingest(*bulk, *times) == f"{rows:,} new rows of 3 histories\n"
    again = json.loads(ingest(*bulk, *times, "--json"))
    assert again["left"] == {}
    assert [*again["kept"].values()] == [0, 0, 0]
    assert "--start and --end" in ingest(*bulk, code=2)
    assert "not px" in ingest(*bulk, "--column", "px", *times, code=2)
    assert "--bulk" in ingest(*times, code=2)
    assert "no column user" in ingest(*bulk[:2], *times, code=2)
