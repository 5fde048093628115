"""An archive with rows that lack their user or amount is not served."""

import json
import warnings

import httpx
import pytest

import toolkit as tk
from toolkit.contract.field_deviations import forget_deviations

NOW = 1_700_000_100_000
BUILDER = "0x" + "b1" * 20
FILL = {
    "coin": "BTC",
    "px": "50000.0",
    "sz": "0.01",
    "side": "B",
    "time": 1_700_000_000_000,
    "startPosition": "0.0",
    "dir": "Open Long",
    "closedPnl": "0.0",
    "hash": "0x" + "0" * 64,
    "oid": 7,
    "crossed": True,
    "fee": "0.1",
    "tid": 9,
    "feeToken": "USDC",
    "user": None,
}
SAMPLE = {"timestamp": 1_700_000_000_000, "coin": "BTC", "amountUsd": None}
START = 1_699_999_000_000


def session_answering(rows):
    """Return a session with these rows on the first page and no rows on other pages."""
    left = [rows]

    def answer(request):
        return httpx.Response(200, content=json.dumps(left.pop() if left else []).encode())

    return tk.connect(
        "http://service.test",
        "key",
        transport=httpx.MockTransport(answer),
        now_ms=lambda: NOW,
        default=False,
    )


@pytest.fixture
def archive(tmp_path):
    forget_deviations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield tk.archive.open(tmp_path)


def test_serve_refuses_rows_without_user(archive, tmp_path):
    fetch = tk.builder_approved_fills_by_time
    archive.refresh(fetch, BUILDER, START, session=session_answering([FILL]))
    assert len(archive.frame(fetch, BUILDER)) == 1
    with pytest.raises(tk.ArchiveError, match="an archived row has no user, so"):
        tk.local(archive=tmp_path, default=False)


def test_serve_fills_in_missing_amount(archive, tmp_path):
    archive.refresh(tk.slippage_history, "BTC", 1_000, START, session=session_answering([SAMPLE]))
    served = tk.local(archive=tmp_path, default=False)
    frame = tk.slippage_history("BTC", 1_000, START, session=served)
    assert frame["amount_usd"].tolist() == [1_000]
    assert len(frame) == len(archive.frame(tk.slippage_history, "BTC", 1_000)) == 1
