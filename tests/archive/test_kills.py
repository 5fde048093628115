"""The archive survives kills at any instant, writers at once, a full disk; it holds no key."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import toolkit as tk
from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.world import CANARY, START, rows_of, session_of
from toolkit import archive
from toolkit.archive.freezing import contents
from toolkit.archive.layout import SCHEMAS

ROOT = Path(__file__).parents[2]


def run(*arguments: object) -> subprocess.Popen[str]:
    """Start a process of our own in the checkout."""
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def words_in(kept: archive.Archive) -> Sequence[str]:
    """Give every text and body of an archive, decompressed."""
    return [
        str(value)
        for name in kept.tables.names()
        for column in kept.tables.read(kept.tables.handle(name)).columns
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type)
        for value in column.to_pylist()
    ]


def test_kills_at_random_instants_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    said = finish(run("tests.archive.kills", tmp_path / "killed", 50, 11))
    assert "killed 50 damaged 0" in said
    assert said.splitlines()[-1].endswith("full 0")
    assert "there is no room to write" in said
    session = session_of(FILLS, users=USERS)
    killed, undisturbed = archive.open(tmp_path / "killed"), archive.open(tmp_path / "undisturbed")
    before = len(rows_of(killed))
    assert before > len(FILLS)  # the kills struck while there was much to do
    for kept in (killed, undisturbed):
        for user in USERS:
            kept.refresh(tk.user_fills_by_time, user, START, session=session)
    assert [one for one in killed.verify() if one.severity == "error"] == []
    assert rows_of(killed) == rows_of(undisturbed)
    assert contents(killed.tables, "fills") == contents(undisturbed.tables, "fills")
    # What the full disk left is whole, and the next refresh completes it.
    full = archive.open(f"{tmp_path / 'killed'}-full")
    refresh_all(full, session)
    assert rows_of(full) == rows_of(undisturbed)
    assert full.verify() == []
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    assert not any(CANARY in word for word in words_in(killed))


def test_two_processes_refresh_at_once_beside_readers(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    writers = [run("tests.archive.writer", folder) for _ in range(2)]
    reader, reads = archive.open(folder), 0
    while any(one.poll() is None for one in writers):
        rows = rows_of(reader)
        assert len(rows) == len(set(rows)), "a row was there twice"
        reads += 1
    said = [finish(one) for one in writers]
    assert reads > 2
    assert sum(int(one.split()[-1]) for one in said) == len(FILLS) * len(USERS)
    assert reader.verify() == []
    assert len(rows_of(reader)) == len(FILLS) * len(USERS)


def test_an_archive_of_an_older_version_gains_a_new_column(tmp_path: Path) -> None:
    """What a version wrote that knew fewer fields is read, and added to."""
    kept, session = archive.open(tmp_path), session_of(FILLS, users=USERS)
    older = pa.schema([one for one in SCHEMAS["fills"] if one.name not in ("venue", "twap_id")])
    import deltalake

    deltalake.DeltaTable.create(kept.tables.uri("fills"), schema=deltalake.Schema.from_arrow(older))
    half = session_of(FILLS[:700], users=USERS)
    handle = kept.tables.handle("fills")
    from toolkit.archive.layout import Origin, arrow_rows
    from toolkit.archive.series import Series
    from toolkit.contract.operations import OPERATIONS

    texts = [text.encode() for _, text in _texts(tmp_path / "aside", half)]
    series = Series(OPERATIONS["userFillsByTime"], USERS[0], {"user": USERS[0]})
    rows = arrow_rows(series, texts, START, 0, Origin("test", True, 0)).select(older.names)
    kept.tables.append(handle, rows, counts={f"{series.name} from {START}": len(texts)})
    assert kept.refresh(tk.user_fills_by_time, USERS[0], session=session).rows == len(FILLS) - 700
    assert "venue" in kept.scan("fills", engine="pandas").columns
    assert kept.verify() == []
    assert len(kept.frame(tk.user_fills_by_time, USERS[0])) == len(FILLS)


def _texts(folder: Path, session: tk.Session) -> list[tuple[str, str]]:
    aside = archive.open(folder)
    aside.refresh(tk.user_fills_by_time, USERS[0], START, session=session)
    table = aside.scan("fills", columns=["_row", "_json"], engine="pandas").sort_values("_row")
    return list(table.itertuples(index=False, name=None))
