"""A million rows over a network that fails: none lost, none repeated, and the frame says so."""

import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import stamina

import toolkit as tk
from tests.end.faults import BROKEN, REFUSED, Failing, FailingSocket
from toolkit.client import Session, connect
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill
from toolkit.contract.sources import Sources
from toolkit.local import InProcess, site_of
from toolkit.service import Access, Key, Site, Store, build, open_store

USER = "0x" + "a" * 40
ROWS = 1_000_000
START = 1_756_684_800_000
FILLS = OPERATIONS["userFillsByTime"]
# A transaction of 1,999 fills is the largest that can be read: one that fills a page of 2,000
# cannot be told from one that goes on.
STORMS = {50_001: 1_999, 50_002: 1_999, 52_500: 1_500, 300_007: 1_999, 777_777: 1_998}


def keys_of(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw times and transactions, with ties of each kind.

    Most fills share their transaction with a few others and their millisecond with many; each
    100,000th millisecond holds 5,000 fills; transactions of `STORMS` nearly fill a page.
    """
    draw = random.Random(5)
    times, transactions = np.empty(rows, np.int64), np.empty(rows, np.int64)
    time, transaction, done, crowded = START, 0, 0, 0
    storms = sorted(STORMS.items())
    while done < rows:
        if done < crowded or draw.random() < 0.4:
            transaction += 1
        else:
            time, transaction = time + draw.randint(1, 4_000), 0
            if done // 100_000 != crowded // 100_000:
                crowded = done + 5_000
        size = draw.choice((1, 1, 1, 1, 2, 2, 3, 5, 9))
        if storms and done >= storms[0][0]:
            size = storms.pop(0)[1]
        times[done : done + size] = time
        transactions[done : done + size] = transaction
        done += size
    return times, transactions


def fills_of(times: np.ndarray, transactions: np.ndarray) -> list[tuple[str, Fill]]:
    named = zip(times.tolist(), transactions.tolist(), strict=True)
    return [(USER, _fill(number, time, tx)) for number, (time, tx) in enumerate(named)]


def _fill(number: int, time: int, tx: int) -> Fill:
    return Fill(
        coin="BTC",
        px="64000.0",
        sz="0.001",
        side="B",
        time=time,
        start_position="0.0",
        dir="Open Long",
        closed_pnl="0.0",
        hash=f"0x{tx:064x}",
        oid=number // 3,
        crossed=True,
        fee="0.01",
        tid=number,
        fee_token="USDC",
        twap_id=None,
        tx_index=tx,
    )


@pytest.fixture(scope="module", name="keys")
def _keys() -> tuple[np.ndarray, np.ndarray]:
    return keys_of(ROWS)


@pytest.fixture(scope="module", name="path")
def _path(keys: tuple[np.ndarray, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _store(keys, tmp_path_factory.mktemp("million") / "store.db")


def _store(keys: tuple[np.ndarray, np.ndarray], path: Path) -> Path:
    now = int(keys[0][-1]) + 1
    sources = Sources(
        start_ms=START, now_ms=now, label="ties", simulated=True, fills=fills_of(*keys)
    )
    build(sources, path).close()
    return path


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=12):
        yield


def site(store: Store, inclusive: bool) -> Site:
    return site_of(store, Access([Key("test", "a-secret")]), inclusive=inclusive)


def through(path: Path, inclusive: bool, share: float) -> tuple[Session, Failing]:
    network = Failing(InProcess(site(open_store(path), inclusive)), seed=3, share=share)
    session = connect(
        "http://service.test",
        "a-secret",
        transport=network,
        simulated=True,
        attempts=12,
        default=False,
    )
    return session, network


@pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])
def test_a_million_fills_come_once_each_in_order(keys, path, inclusive) -> None:
    session, network = through(path, inclusive, 0.15)
    with session:
        pulled = tk.user_fills_by_time(USER, 0, session=session)
    times, transactions = keys
    assert len(pulled) == ROWS
    assert np.array_equal(pulled["tid"], np.arange(ROWS))  # none lost, none repeated, in order
    assert np.array_equal(pulled["time"].astype("int64"), times)
    assert np.array_equal(pulled["tx_index"], transactions)
    # What the frame itself says: the certificate.
    said, failed = tk.provenance(pulled), sum(network.failed.values())
    assert said["complete"] == "yes"
    assert said["rows"] == ROWS
    assert (said["first"], said["last"]) == tuple(f"{times[i]}_{transactions[i]}" for i in (0, -1))
    # Each request but those that failed gave a page; each full page cut a group, read again.
    assert said["pages"] == said["requests"] - failed >= 501
    assert said["ties"] >= 490
    assert set(network.failed) == {*REFUSED, *BROKEN}
    assert sum(said["retries"].values()) == session.counts.retries == failed > 50
    refused = [network.failed[kind] for kind in REFUSED]
    assert [said["retries"][kind] for kind in ("429", "500", "502")] == [
        refused[0] + refused[1],
        *refused[2:],
    ]


def test_the_million_breaks_naive_readers(keys, path) -> None:
    times, transactions = keys
    assert max(np.unique(times, return_counts=True)[1]) >= 5_000
    groups = np.flatnonzero((np.diff(times) != 0) | (np.diff(transactions) != 0))
    assert max(np.diff(groups)) == 1_999
    for inclusive in (False, True):
        session, _ = through(path, inclusive, 0.0)
        read: list[int] = []
        with session:
            asked = {"user": USER, "start": 0, "page_size": 2_000}
            for _ in range(30):
                rows = httpx.Response(200, content=session.ask(FILLS, asked).content).json()
                read += [row["tid"] for row in rows]
                last = rows[-1]
                asked = {"user": USER, "cursor": f"{last['time']}_{last['txIndex']}"}
        lost, repeated = set(range(max(read))) - {*read}, len(read) - len({*read})
        assert (not lost and repeated > 20) if inclusive else (len(lost) > 20 and not repeated)


@pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])
def test_a_transaction_larger_than_a_page_is_read_on_a_larger_page(path, inclusive) -> None:
    """Pages of 500 rows, and a transaction of 1,999: the page grows as far as it may."""
    session, _ = through(path, inclusive, 0.0)
    with session:
        pulled = tk.user_fills_by_time(USER, 0, page_size=500, max_rows=60_000, session=session)
    assert np.array_equal(pulled["tid"], np.arange(60_000))


@pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])
def test_a_transaction_larger_than_every_page_is_named_not_skipped(tmp_path, inclusive) -> None:
    """3,000 fills: 400 before, 2,100 of one transaction, 500 after that no cursor leads to."""
    times = np.repeat(START + np.arange(3), (400, 2_100, 500))
    transactions = np.concatenate([np.arange(400), np.full(2_100, 7), np.arange(500)])
    path = _store((times, transactions), tmp_path / "store.db")
    session, _ = through(path, inclusive, 0.0)
    with session, pytest.raises(tk.Incomplete, match=f"{START + 1}_7") as caught:
        tk.user_fills_by_time(USER, 0, session=session)
    assert caught.value.rows["tid"].tolist() == list(range(400))
    assert tk.provenance(caught.value.rows)["complete"] == "no"


def test_sockets_that_reset_close_and_stall_lose_nothing(tmp_path) -> None:
    """Bytes on a real socket; a body that stalls is ended by the client's timeout."""
    keys = keys_of(10_000)
    served = site(open_store(_store(keys, tmp_path / "store.db")), inclusive=False)
    network = FailingSocket(served, seed=4, share=0.4)
    with network.running() as address:
        session = connect(
            address, "a-secret", attempts=12, timeout=0.2, simulated=True, default=False
        )
        with session:
            pulled = tk.user_fills_by_time(USER, 0, page_size=500, session=session)
    served.store.close()
    assert np.array_equal(pulled["tid"], np.arange(10_000))
    assert tk.provenance(pulled)["complete"] == "yes"
    assert set(network.failed) == {"reset", "cut", "slow"}
    assert session.counts.retries >= sum(network.failed.values())
