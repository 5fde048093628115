"""A history over a failing network: every row once, in order."""

import pytest

import toolkit as tk
from tests.archive.world import USER, draw_keys, fill_store, make_fills_at
from tests.end.faults import BROKEN, REFUSED, failing, failures, served

ROWS = 20_000


@pytest.fixture(scope="module")
def fills():
    """Fills, 150 of them in one transaction."""
    return make_fills_at(draw_keys(ROWS, storms={9_990: 150}))


pytestmark = pytest.mark.usefixtures("no_waiting")


def pulling(fills, cursors, share):
    return failing(served(fill_store(fills), cursors == "inclusive"), share)


@pytest.mark.parametrize(
    ("cursors", "page_size", "share"),
    [("exclusive", 2_000, 0.4), ("inclusive", 2_000, 0.4), ("exclusive", 7, 0.05)],
)
def test_20_000_fills_are_complete(fills, cursors, page_size, share):
    session, network = pulling(fills, cursors, share)
    with session:
        pulled = tk.user_fills_by_time(USER, 0, page_size=page_size, session=session)
    assert pulled["tid"].tolist() == [fill.tid for fill in fills]
    assert tk.provenance(pulled)["complete"] == "yes"
    assert failures(network).total() == session.counts.retries > 0
    if page_size == 7:
        assert {*failures(network)} == {*REFUSED, *BROKEN}


def test_incomplete_pull_keeps_its_rows(fills):
    session, _ = pulling(fills, "exclusive", 0.0)
    with session:
        session.budget.most = 35
        with pytest.raises(tk.Incomplete, match="rows that came before") as caught:
            tk.user_fills_by_time(USER, 0, session=session)
        rows = caught.value.rows
        assert 5_000 < len(rows) <= 6_000
        assert rows["tid"].tolist() == [fill.tid for fill in fills[: len(rows)]]
        assert tk.provenance(rows)["complete"] == "no"
        session.budget.most = session.budget.spent + 15
        with pytest.warns(UserWarning, match="incomplete"):
            marked = tk.user_fills_by_time(USER, 0, on_incomplete="warn", session=session)
        assert tk.provenance(marked)["complete"] == "no"


def test_max_rows_stops_early(fills):
    session, _ = pulling(fills, "exclusive", 0.0)
    with session:
        some = tk.user_fills_by_time(USER, 0, max_rows=2_500, session=session)
        assert some["tid"].tolist() == list(range(2_500))
        assert tk.provenance(some)["complete"] == "first 2,500 rows"
        parts = list(tk.pages(tk.user_fills_by_time, USER, 0, session=session))
        assert sum(map(len, parts)) == ROWS
