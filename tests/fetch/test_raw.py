"""Answers without a frame: raw and info."""

import json

import httpx
import pytest
import stamina

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.errors import BadRequest


def test_info_sends_request_unchanged(session):
    answer = tk.info({"type": "meta", "dex": "", "something": 1}, session=session)
    assert answer["universe"][0]["name"] == "BTC"
    sent = session.counts.requests
    for wrong in ({}, {"type": ""}, {"type": ["meta"]}, "meta", None):
        with pytest.raises(tk.BadRequest, match="type") as caught:
            tk.info(wrong, session=session)
        assert caught.value.status is None
    for odd in (float("nan"), object(), {1, 2}):
        with pytest.raises(tk.BadRequest, match="meta: ") as caught:
            tk.info({"type": "meta", "something": odd}, session=session)
        assert caught.value.status is None
    with pytest.raises(tk.BadRequest, match="Invalid Ethereum address") as caught:
        tk.info({"type": "userFills", "user": "x"}, session=session)
    assert "status" not in str(caught.value)
    assert session.counts.requests == sent  # none of these was sent


def test_info_sends_unknown_types(session):
    sent = session.counts.requests
    with pytest.raises(
        tk.BadRequest, match=r"Unknown type: userFilsByTime \(status 400\)"
    ) as caught:
        tk.info({"type": "userFilsByTime"}, session=session)
    assert caught.value.hint == "Did you mean userFillsByTime?"
    assert session.counts.requests == sent + 1


def test_info_returns_unknown_answers():
    asked = []
    answers = {
        "someState": httpx.Response(200, json={"accountValue": "1.5"}),
        "someWord": httpx.Response(200, json="unifiedAccount"),
        "somePack": httpx.Response(
            200, content=b"\x93\x01\x02\x03", headers={"content-type": "application/octet-stream"}
        ),
        "someText": httpx.Response(200, content=b"no JSON at all"),
    }

    def handler(request):
        asked.append(json.loads(request.content))
        return answers[asked[-1]["type"]]

    result = session_over(handler, "key")
    request = {"type": "someState", "user": "0xAB", "other": None}
    assert tk.info(request, session=result) == {"accountValue": "1.5"}
    assert asked == [request]
    assert (result.counts.requests, result.counts.points) == (1, 2)
    assert tk.info({"type": "someWord"}, session=result) == "unifiedAccount"
    assert tk.info({"type": "somePack"}, session=result) == b"\x93\x01\x02\x03"
    with pytest.raises(tk.AnswerInvalid, match="someText"):
        tk.info({"type": "someText"}, session=result)


def test_info_counts_costs_and_retries():
    left = [httpx.Response(522, content=b"error code: 522"), httpx.Response(200, json=[])]
    result = session_over(lambda request: left.pop(0), "key", points_per_minute=100)
    with stamina.set_testing(True, attempts=2):
        assert tk.info({"type": "userFunding", "user": "0x" + "1" * 40}, session=result) == []
    assert (result.counts.requests, result.counts.points) == (2, 20)
    assert result.counts.causes == {"522": 1}


def test_info_refuses_relative_times(session, users):
    request = {"type": "userFunding", "user": users[0], "startTime": "7d"}
    with pytest.raises(BadRequest, match="startTime"):
        tk.info(request, session=session)
