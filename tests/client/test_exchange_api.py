"""The exchange's own API, as a model of it: docs/live_service.md, section 12."""

import json

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import fill
from toolkit.client import open_session

USER = "0x" + "ab" * 20
DAY = 86_400_000
NOW = 1_760_000_000_000
ACCEPTED = {
    "userFills": {"type", "user", "aggregateByTime"},
    "userFillsByTime": {"type", "user", "startTime", "endTime", "aggregateByTime"},
}


class Exchange:
    """A model of the API: fixed pages, the 10,000 latest fills of an account, weights, no key."""

    def __init__(self, fills):
        self.fills = fills
        self.kept = fills[-10_000:]
        self.weight = 0
        self.bodies = []

    def answer(self, request):
        body = json.loads(request.content)
        self.bodies.append(body)
        assert "authorization" not in request.headers
        assert body.keys() <= ACCEPTED[body["type"]]
        if body["type"] == "userFills":
            rows = self.kept[:-2_001:-1]
        else:
            start, end = body["startTime"], body.get("endTime", NOW)
            rows = [row for row in self.kept if start <= row["time"] <= end][:2_000]
        self.weight += 20 + -(-len(rows) // 20)
        return httpx.Response(200, json=rows)

    def session(self, **options):
        transport = httpx.MockTransport(self.answer)
        return open_session(
            "http://stand-in.test", api="hyperliquid", transport=transport, now_ms=lambda: NOW,
            **options,
        )  # fmt: skip


def fills_every(seconds, count):
    """Return fills of distinct times before NOW; each third one has the time of the one before."""
    rows = [fill(NOW - 1_000 * seconds * (count - i + i % 3 // 2), tid=i + 1) for i in range(count)]
    for row in rows:
        del row["txIndex"], row["twapId"]
    return rows


def test_long_account_lacks_its_oldest_fills():
    exchange = Exchange(fills_every(60, 12_345))
    with exchange.session(sleep=lambda seconds: None) as session:
        with pytest.raises(tk.Incomplete) as missing:
            tk.user_fills_by_time(USER, 0, session=session)
        assert session.counts.points == exchange.weight
    rows = missing.value.rows
    first = exchange.kept[0]
    assert len(rows) == 10_000
    assert rows.attrs["toolkit"]["complete"] == "no"
    assert rows["tid"].tolist() == [row["tid"] for row in exchange.kept]
    begin = rows["time"][0]
    assert begin.timestamp() * 1_000 == first["time"]
    with exchange.session() as session:
        again = tk.user_fills_by_time(USER, begin, session=session)
    assert again.attrs["toolkit"]["complete"] == "yes"
    assert len(exchange.bodies) == 12
