"""Time and memory of frames from an archive, of refreshes, and of ingest.

`python -m tests.benchmarks.test_archive <folder>` reads an archive and prints the peak of memory.
"""

import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest

import toolkit as tk
from tests.archive.test_ingest_bulk import write_files
from tests.archive.world import START, fill_session, make_fills
from tests.archive.world import USER as FILLS_USER
from tests.benchmarks.side_by_side import side_by_side
from tests.benchmarks.test_frames import as_users_write_it, page_of_fills
from toolkit import archive
from toolkit.archive.coverage import RefreshResult, log_entry, log_refreshes
from toolkit.archive.schemas import RowOrigin, Series, decoded_rows, place_rows
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import request_body

USER = "0x" + "a" * 40
SERIES = Series(OPERATIONS["userFillsByTime"], USER, {"user": USER})
ORIGIN = RowOrigin("benchmark", True, 0)
ROWS = 1_000_000
_ACCOUNTS = ((0, 1_000), (10**6, 20))


@pytest.fixture(scope="module", name="simulated")
def _simulated():
    """Return the texts of fills of the demo exchange."""
    session = tk.local(seed=7, size="demo", default=False)
    texts: list[bytes] = []
    for user in session.world["users"]:
        answer = session.ask(
            SERIES.operation, request_body(SERIES.operation, {"user": user, "start": 0})
        )
        texts += map(bytes, msgspec.json.decode(answer.content, type=list[msgspec.Raw]))
    return texts[:60_000]


@pytest.fixture(scope="module", name="million")
def _million(tmp_path_factory):
    """Archive a million fills as a refresh does; return the folder and the pages."""
    path = tmp_path_factory.mktemp("million")
    pages = [page_of_fills(2_000, 2_000 * i) for i in range(ROWS // 2_000)]
    tables, done = archive.open(path).tables, 0
    handle = tables.open_for_append("fills")
    for at in range(0, len(pages), 25):
        texts = [
            bytes(row)
            for page in pages[at : at + 25]
            for row in msgspec.json.decode(page, type=list[msgspec.Raw])
        ]
        counts = {SERIES.run_counter(0): done + len(texts)}
        rows = place_rows(SERIES, decoded_rows(SERIES, texts, ORIGIN), 0, done)
        tables.append_rows(handle, rows, counts=counts)
        done += len(texts)
    log_refreshes(
        tables, [log_entry(RefreshResult("userFillsByTime", USER, done, done, 0, 2**41), ORIGIN)]
    )
    return path, pages


def test_frame_of_million_archived_fills(million, report):
    path, pages = million
    kept = archive.open(path)
    assert len(kept.frame(tk.user_fills_by_time, USER)) == ROWS
    for numbers in ("float", "text"):
        report(
            side_by_side(
                f"{ROWS:,} fills, archived pages -> frame",
                "json + pandas, pages in memory,",
                lambda: as_users_write_it(pages),
                f"the archive, numbers={numbers!r},",
                lambda: kept.frame(tk.user_fills_by_time, USER, numbers=numbers),  # noqa: B023
                rounds=2,
            )
        )


def test_memory_of_million_archived_fills(million, report):
    command = [sys.executable, "-m", "tests.benchmarks.test_archive", str(million[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    report(
        f"{ROWS:,} archived fills -> frame: peak of the process "
        f"{measured['peak'] / measured['size']:.2f} x the frame ({measured['size'] / 1e6:.0f} MB)"
    )


def test_one_account_of_many(simulated, tmp_path, sizes, report):
    """Compare one account's frame with DuckDB on the files, before and after compaction."""
    tables, each, rng = archive.open(tmp_path).tables, 2_000, random.Random(1)
    accounts = max(sizes[-1] // each, 50)
    commit = accounts // 50
    handle = tables.open_for_append("fills")
    rows = place_rows(SERIES, decoded_rows(SERIES, simulated[:each], ORIGIN), 0, 0)
    place = rows.column_names.index("_subject")
    users = [f"0x{rng.randrange(16**40):040x}" for _ in range(accounts)]
    for first in range(0, accounts, commit):
        some = users[first : first + commit]
        parts = [rows.set_column(place, "_subject", pa.array([user] * each)) for user in some]
        counts = {f"userFillsByTime {user} from 0": each for user in some}
        tables.append_rows(handle, pa.concat_tables(parts), counts=counts)
    entries = (RefreshResult("userFillsByTime", user, each, each, 0, 2**41) for user in users[:30])
    log_refreshes(tables, [log_entry(entry, ORIGIN) for entry in entries])
    columns = ", ".join(name for name in rows.column_names if not name.startswith("_"))
    for state in ("as refreshed", "compacted"):
        kept = archive.open(tmp_path)
        files = [uri.removeprefix("file://") for uri in kept.tables.open_table("fills").file_uris()]
        query = (
            f"SELECT {columns} FROM read_parquet({files!r}, union_by_name=true) "
            "WHERE _subject = ? ORDER BY time"
        )
        turns, ours = itertools.cycle(users[:30]), itertools.cycle(users[:30])
        report(
            side_by_side(
                f"one of {accounts:,} accounts, {accounts * each:,} fills, {state}",
                "DuckDB on the files,",
                lambda: duckdb.sql(query, params=[next(turns)]).to_arrow_table().to_pandas(),  # noqa: B023
                "archive.frame,",
                lambda: kept.frame(tk.user_fills_by_time, next(ours)),  # noqa: B023
                rounds=9,
            )
        )
        kept.compact()


def test_refresh_of_many_accounts(tmp_path, report):
    """Compare refreshes of single accounts with a refresh of many, before and after them."""
    many, alone = ([f"0x{first + n:040x}" for n in range(size)] for first, size in _ACCOUNTS)
    session = fill_session(make_fills(40), users=[*many, *alone])
    kept, empty = archive.open(tmp_path / "kept"), archive.open(tmp_path / "empty")

    def measure(work):
        begun = time.process_time()
        work()
        return 1e3 * (time.process_time() - begun)

    def refresh_alone(into, user):
        return measure(lambda: into.refresh(tk.user_fills_by_time, user, START, session=session))

    for what in ("first", "again"):
        taken = measure(
            lambda: kept.refresh_many(tk.user_fills_by_time, many, START, session=session)
        )
        report(f"refresh of {len(many):,} accounts, {what}: {taken / len(many):.1f} ms an account")
    for name, into in (("an empty archive", empty), (f"{len(many):,} accounts", kept)):
        taken = statistics.median(refresh_alone(into, user) for user in alone)
        report(f"refresh of a new account in {name}: {taken:.0f} ms")


def test_ingest_of_parquet(tmp_path, report):
    for numbers in ("float", "exact", "text"):
        session = fill_session(make_fills(200_000))
        frame = tk.user_fills_by_time(FILLS_USER, START, numbers=numbers, session=session)
        frame.to_parquet(tmp_path / "fills.parquet")
        begun = time.process_time()
        archive.open(tmp_path / numbers).ingest(tmp_path / "fills.parquet")
        rate = len(frame) / (time.process_time() - begun)
        report(f"ingest of Parquet, numbers={numbers!r}: {rate:,.0f} rows a second")


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
def test_ingest_of_bulk_files(tmp_path, report):
    session = tk.local(seed=7, size="demo", default=False)
    users, now = session.world["users"], session.now_ms()
    files = write_files(tmp_path / "files", session, users, 0, now)
    rates = []
    for turn in range(3):
        kept = archive.open(tmp_path / str(turn))
        begun = time.process_time()
        done = kept.ingest_bulk(
            files, tk.user_fills_by_time, 0, now, columns={"user": "trader", "px": "price"}
        )
        rates.append(sum(done["kept"].values()) / (time.process_time() - begun))
    report(
        f"ingest of bulk files, {sum(done['kept'].values()):,} fills of {len(done['kept'])} "
        f"accounts: {min(rates):,.0f} to {max(rates):,.0f} rows a second"
    )


def _status(name):
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) * 1_024


def _main(path):
    kept: Any = archive.open(path)
    kept.frame(tk.user_fills_by_time, USER, end=page_time(2_000))  # imports everything
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    frame = kept.frame(tk.user_fills_by_time, USER)
    size = int(frame.memory_usage(deep=True).sum())
    print(json.dumps({"peak": _status("VmHWM") - before, "size": size}))


def page_time(row):
    return int(json.loads(page_of_fills(1, row))[0]["time"])


if __name__ == "__main__":
    _main(sys.argv[1])
