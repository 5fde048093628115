"""A whole history through bytes, over a network that fails: every row once, in order."""

import random
from collections.abc import Iterator
from typing import Literal

import pytest
import stamina

import toolkit as tk
from tests.end.faults import Failing
from toolkit.client import Session, connect
from toolkit.contract.records import Fill
from toolkit.contract.sources import Sources
from toolkit.local import InProcess
from toolkit.service import Access, Key, Site, build

USER = "0x" + "a" * 40
ROWS = 20_000
START = 1_756_684_800_000


def history(rows: int, seed: int = 5) -> list[Fill]:
    """Fills with ties: many in a millisecond, many in a transaction, one of 150."""
    draw = random.Random(seed)
    fills: list[Fill] = []
    time, tx = START, 0
    while len(fills) < rows:
        if draw.random() < 0.4:
            tx += 1
        else:
            time, tx = time + draw.randint(1, 4_000), 0
        size = (
            150 if len(fills) in range(9_990, 10_000) else draw.choice([1, 1, 1, 1, 2, 2, 3, 5, 9])
        )
        fills += [_fill(len(fills) + i, time, tx) for i in range(min(size, rows - len(fills)))]
    return fills


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


@pytest.fixture(scope="module")
def fills() -> list[Fill]:
    return history(ROWS)


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=12):
        yield


def served(
    fills: list[Fill], cursors: Literal["exclusive", "inclusive"], share: float
) -> tuple[Session, Failing]:
    sources = Sources(
        start_ms=START,
        now_ms=fills[-1].time + 1,
        label="ties",
        simulated=True,
        fills=[(USER, one) for one in fills],
    )
    site = Site(
        build(sources),
        Access([Key("test", "secret")]),
        now_ms=lambda: sources.now_ms,
        at_ms=lambda: 0,
        inclusive=cursors == "inclusive",
    )
    network = Failing(InProcess(site), seed=3, share=share)
    session = connect(
        "http://service.test", "secret", transport=network, attempts=12, default=False
    )
    return session, network


@pytest.mark.parametrize("cursors", ["exclusive", "inclusive"])
@pytest.mark.parametrize(("page_size", "share"), [(2_000, 0.4), (7, 0.05)])
def test_20_000_fills_come_once_each_in_order(fills, cursors, page_size, share) -> None:
    session, network = served(fills, cursors, share)
    with session:
        pulled = tk.user_fills_by_time(USER, 0, page_size=page_size, session=session)
    assert pulled["tid"].tolist() == [one.tid for one in fills]
    assert tk.provenance(pulled)["complete"] == "yes"
    assert sum(network.failed.values()) == session.counts.retries > 0
    if page_size == 7:
        assert len(network.failed) == 9  # each way to fail has been met


def test_the_history_has_the_ties_that_break_naive_readers(fills) -> None:
    keys = [(one.time, one.tx_index) for one in fills]
    assert len(set(keys)) < len(keys) / 2
    edges = [keys[i - 1] == keys[i] for i in range(2_000, ROWS, 2_000)]
    assert any(edges)
    assert max(keys.count(key) for key in set(keys[::7])) > 7


def test_a_pull_that_breaks_off_hands_over_what_it_has(fills) -> None:
    session, _ = served(fills, "exclusive", 0.0)
    with session:
        session.budget.most = 35
        with pytest.raises(tk.Incomplete, match="rows were read before") as caught:
            tk.user_fills_by_time(USER, 0, session=session)
        rows = caught.value.rows
        assert 5_000 < len(rows) <= 6_000
        assert rows["tid"].tolist() == [one.tid for one in fills[: len(rows)]]
        assert tk.provenance(rows)["complete"] == "no"
        session.budget.most = session.budget.spent + 15
        with pytest.warns(UserWarning, match="incomplete"):
            marked = tk.user_fills_by_time(USER, 0, on_incomplete="warn", session=session)
        assert tk.provenance(marked)["complete"] == "no"


def test_max_rows_stops_early_and_says_so(fills) -> None:
    session, _ = served(fills, "exclusive", 0.0)
    with session:
        some = tk.user_fills_by_time(USER, 0, max_rows=2_500, session=session)
        assert some["tid"].tolist() == list(range(2_500))
        assert tk.provenance(some)["complete"] == "first 2500 rows"
        parts = list(tk.pages(tk.user_fills_by_time, USER, 0, session=session))
        assert sum(map(len, parts)) == ROWS
