"""Pages of an answer as frames."""

import json

import httpx
import pandas as pd
import pytest

import toolkit as tk
from toolkit.client import connect, open_session
from toolkit.errors import IncompleteWarning

NOBODY = "0x" + "0" * 39 + "9"


def test_pages_have_every_row_once(session, users):
    whole = tk.user_fills_by_time(users[0], 0, session=session)
    parts = list(tk.pages(tk.user_fills_by_time, users[0], 0, page_size=300, session=session))
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_flags=False)
    assert all(tk.provenance(part)["simulated"] for part in parts)
    said = [tk.provenance(part)["complete"] for part in parts]
    assert said == ["one page"] * (len(parts) - 1) + ["one page, the last"]
    assert [tk.provenance(part)["pages"] for part in parts] == list(range(1, len(parts) + 1))
    assert tk.provenance(parts[-1])["ties"] == len(parts) - 1
    with pytest.raises(TypeError, match="returns several frames"):
        list(tk.pages(tk.batch_clearinghouse_states, users, session=session))


def test_unevenly_cut_pages_are_complete():
    """The service cuts its answers anywhere: 500 rows, then 480, then 500."""

    times = list(range(1_600))
    sizes = iter([500, 480, 500, 500, 500, 500])

    def handler(request):
        start = json.loads(request.content)["startTime"]
        rows = [
            {"time": t, "hash": "0x0", "delta": {"type": "deposit", "usdc": "1"}}
            for t in times[start:][: next(sizes)]
        ]
        return httpx.Response(200, json=rows)

    session = open_session(
        "http://service.test", "key", transport=httpx.MockTransport(handler), default=False
    )
    assert len(tk.user_non_funding_ledger_updates(NOBODY, session=session)) == 1_600


def test_huge_amount_is_refused(session):
    with pytest.raises(tk.BadRequest, match="amount"):
        tk.slippage_history("BTC", 10**400, 0, session=session)


def test_pages_warn_if_incomplete(session, users):
    session.budget.most = session.budget.spent + 15
    try:
        with pytest.warns(IncompleteWarning):
            some = tk.user_fills_by_time(
                users[0], 0, page_size=300, on_incomplete="warn", session=session
            )
    finally:
        session.budget.most = None
    assert tk.provenance(some)["complete"] == "no"
    assert 0 < len(some) < 300


def test_examples_need_simulated_exchange():
    with (
        connect("http://127.0.0.1:9", "k") as asked,
        pytest.raises(AttributeError, match=r"service at http://127\.0\.0\.1:9\. "),
    ):
        tk.example.stories(asked)
