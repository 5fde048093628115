import threading
from dataclasses import replace

import msgspec
import pytest

from tests.service.conftest import asker_of
from toolkit.contract.records.ledger import FundingDelta, FundingRow
from toolkit.contract.source_tables import Approval, Sources
from toolkit.service import build_store, open_store
from toolkit.service.tables import approval_intervals

EMPTY = Sources(start_ms=0, now_ms=0, label="nothing", simulated=False)


def test_store_in_file_equals_memory(tmp_path, world, asker):
    path = tmp_path / "world.db"
    build_store(world.sources, path, world={"size": "tiny"}).close()
    store = open_store(path)
    assert store.about["world"] == {"size": "tiny"}
    assert store.about["label"] == world.sources.label
    filed = asker_of(store)
    user = world.examples["WHALE"]
    assert filed.ask("userFills", user=user) == asker.ask("userFills", user=user)
    assert [item.name for item in tmp_path.iterdir()] == ["world.db"]
    store.close()


def test_threads_read_concurrently(tmp_path, world, asker):
    filed = build_store(world.sources, tmp_path / "world.db")
    users = list(world.expected)[:10]
    expected = [asker.ask("userFills", user=user) for user in users]
    for store in (filed, asker.store):
        found: list[bool] = []

        def read(shared, found=found):
            found.append([shared.ask("userFills", user=user) for user in users] == expected)

        shared = asker_of(store)
        threads = [threading.Thread(target=read, args=(shared,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 8
    filed.close()


def test_funding_page_reads_few_blocks(tmp_path):
    """One of 64 accounts approved the builder; its 200 hourly rows are in 4 or 5 blocks."""
    users = [f"0x{number:040x}" for number in range(64)]
    rows = [
        FundingRow(
            user=user,
            time=hour,
            hash="0x0",
            delta=FundingDelta(type="funding", coin="BTC", usdc="1", szi="1", funding_rate="1"),
        )
        for hour in range(200)
        for user in users
    ]
    approval = Approval(users[9], "0xbuilder", 0, 0, True)
    store = build_store(replace(EMPTY, funding=rows, approvals=[approval]), tmp_path / "world.db")
    read: list[tuple[object, ...]] = []
    select_value = store.select_value
    store.select_value = lambda sql, *values: read.append(values) or select_value(sql, *values)
    sql = "SELECT row FROM approved_funding WHERE builder = ? ORDER BY time"
    found = list(map(msgspec.json.decode, store.select_texts("funding", sql, "0xbuilder")))
    assert [(row["user"], row["time"]) for row in found] == [(users[9], n) for n in range(200)]
    assert len(read) <= 5
    store.close()


def test_failed_store_leaves_no_file(tmp_path):
    broken = Sources(start_ms=0, now_ms=0, label="", simulated=False, fills=[("0x", None)])  # type: ignore[list-item]
    with pytest.raises(AttributeError):
        build_store(broken, tmp_path / "world.db")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_store_leaves_no_file(tmp_path, world):
    def parts():
        yield world.sources
        assert [file.suffix for file in tmp_path.iterdir()] != [".db"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_store(parts(), tmp_path / "world.db")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_file_is_named(tmp_path):
    (tmp_path / "world.db").mkdir()
    with pytest.raises(OSError, match=r"world\.db"):
        build_store(EMPTY, tmp_path / "world.db")
    assert [file.name for file in tmp_path.iterdir()] == ["world.db"]


def test_world_is_computed_after_all_parts():
    taken: list[str] = []

    def parts():
        for name in ("first", "second"):
            taken.append(name)
            yield Sources(start_ms=0, now_ms=1, label=name, simulated=True)

    store = build_store(parts(), world=lambda: taken)
    assert store.about["world"] == ["first", "second"]
    assert store.about["label"] == "second"
    store.close()


def test_approvals_become_intervals():
    def approval(time, approved, tx=0):
        return Approval("u", "b", time, tx, approved)

    def intervals(*approvals):
        return approval_intervals(approvals).get("u", [])

    assert intervals(approval(5, True)) == [("b", 5, None)]
    assert intervals(approval(9, False), approval(5, True)) == [("b", 5, 9)]
    assert intervals(approval(5, True), approval(6, True), approval(9, False)) == [("b", 5, 9)]
    assert intervals(approval(5, False)) == []
    assert intervals(approval(5, True, 1), approval(5, False, 2)) == []
    assert intervals(approval(5, False, 1), approval(5, True, 2)) == [("b", 5, None)]
    again = intervals(approval(5, True), approval(9, False), approval(12, True))
    assert again == [("b", 5, 9), ("b", 12, None)]
