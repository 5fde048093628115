"""200,000 rows over a failing network: none is lost or repeated."""

import json

import numpy as np
import pytest

import toolkit as tk
from tests.archive.world import START, USER, draw_keys, fill_store, make_fills_at
from tests.end.faults import REFUSED, failing, failures, served
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import request_body
from toolkit.service import open_store

ROWS = 200_000
FILLS = OPERATIONS["userFillsByTime"]
# A transaction of 1,999 fills is the largest that can be read: one that fills a page of 2,000
# looks the same as a larger one.
STORMS = {50_001: 1_999, 50_002: 1_999, 52_500: 1_500, 130_007: 1_999, 177_777: 1_998}


def stormy(rows):
    """Return keys with ties of each kind; each 100,000th millisecond has 5,000 fills."""
    times, transactions = np.array(draw_keys(rows, storms=STORMS, crowd=5_000)).T
    return times, transactions


@pytest.fixture(scope="module", name="keys")
def _keys():
    return stormy(ROWS)


@pytest.fixture(scope="module", name="path")
def _path(keys, tmp_path_factory):
    return _store(keys, tmp_path_factory.mktemp("complete") / "store.db")


def _store(keys, path):
    fill_store(make_fills_at(np.column_stack(keys).tolist()), path).close()
    return path


def through(path, inclusive, share):
    return failing(served(open_store(path), inclusive), share)


pytestmark = pytest.mark.usefixtures("no_waiting")


@pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])
def test_200_000_fills_are_complete(keys, path, inclusive):
    session, network = through(path, inclusive, 0.15)
    with session:
        pulled = tk.user_fills_by_time(USER, 0, session=session)
    times, transactions = keys
    assert len(pulled) == ROWS
    assert np.array_equal(pulled["tid"], np.arange(ROWS))  # none lost, none repeated, in order
    assert np.array_equal(pulled["time"].astype("int64"), times)
    assert np.array_equal(pulled["tx_index"], transactions)
    # The certificate of the frame.
    said, kinds = tk.provenance(pulled), failures(network)
    failed = kinds.total()
    assert said["complete"] == "yes"
    assert said["rows"] == ROWS
    assert (said["first"], said["last"]) == tuple(f"{times[i]}_{transactions[i]}" for i in (0, -1))
    # Each successful request brought a page; each full page cut a group, which was read again.
    # The last page confirmed the end.
    assert said["pages"] == said["requests"] - failed >= 102
    assert said["ties"] >= 95
    assert len(kinds) > 4
    assert sum(said["retries"].values()) == session.counts.retries == failed > 10
    assert all(said["retries"].get(kind[-3:], 0) == kinds[kind] for kind in REFUSED)


def test_naive_readers_lose_rows(keys, path):
    times, transactions = keys
    assert max(np.unique(times, return_counts=True)[1]) >= 5_000
    groups = np.flatnonzero((np.diff(times) != 0) | (np.diff(transactions) != 0))
    assert max(np.diff(groups)) == 1_999
    for inclusive in (False, True):
        session, _ = through(path, inclusive, 0.0)
        read = []
        with session:
            asked = {"user": USER, "start": 0, "page_size": 2_000}
            for _ in range(30):
                rows = json.loads(session.ask(FILLS, request_body(FILLS, asked)).content)
                read += [row["tid"] for row in rows]
                last = rows[-1]
                asked = {"user": USER, "cursor": f"{last['time']}_{last['txIndex']}"}
        lost, repeated = set(range(max(read))) - {*read}, len(read) - len({*read})
        assert (not lost and repeated > 20) if inclusive else (len(lost) > 20 and not repeated)


def test_large_transaction_needs_larger_page(path):
    """A transaction of 1,999 fills with pages of 500 rows: the page size grows."""
    for inclusive in (False, True):
        session, _ = through(path, inclusive, 0.0)
        with session:
            pulled = tk.user_fills_by_time(USER, 0, page_size=500, max_rows=60_000, session=session)
        assert np.array_equal(pulled["tid"], np.arange(60_000))


def test_too_large_transaction_is_named(tmp_path):
    """400 fills, 2,100 of one transaction, and 500 that no cursor can reach."""
    times = np.repeat(START + np.arange(3), (400, 2_100, 500))
    transactions = np.concatenate([np.arange(400), np.full(2_100, 7), np.arange(500)])
    path = _store((times, transactions), tmp_path / "store.db")
    for inclusive in (False, True):
        session, _ = through(path, inclusive, 0.0)
        with session, pytest.raises(tk.Incomplete, match=f"{START + 1}_7") as caught:
            tk.user_fills_by_time(USER, 0, session=session)
        assert caught.value.rows["tid"].tolist() == list(range(400))
        assert tk.provenance(caught.value.rows)["complete"] == "no"
