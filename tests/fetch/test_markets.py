"""Names of markets: each of several spellings means one market, and no unknown one is empty."""

import json
from functools import partial

import httpx
import pandas as pd
import pytest

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.errors import BadRequest
from toolkit.fetch.markets import with_readable_coins

SAMPLES = {
    coin: [
        {
            "timestamp": 1_767_225_600_000 + 900_000 * number,
            "dex": coin.partition(":")[0] if ":" in coin else "hyperliquid",
            "coin": coin,
            "halfSpreadBps": 0.5,
            "amountUsd": 10_000,
            "buySlippageBps": 1.0 + number,
            "sellSlippageBps": 2.0,
        }
        for number in range(2)
    ]
    for coin in ("BTC", "kPEPE", "abc:TSLA", "@9")
}
LISTS = {
    "": {"universe": [{"name": "BTC"}, {"name": "kPEPE"}, {"name": "ETH"}]},
    "abc": {"universe": [{"name": "abc:TSLA"}]},
    "spot": {
        "tokens": [{"name": "USDC", "index": 0}, {"name": "HYPE", "index": 5}],
        "universe": [{"name": "@9", "tokens": [5, 0]}],
    },
}
slippage = partial(tk.slippage_history, amount=10_000, start="2026-01-01", end="2026-01-02")


def service(lists):
    """Return a session, and the list of what its service was asked."""
    asked = []

    def answer(request):
        body = json.loads(request.content)
        asked.append(body["type"])
        if body["type"] == "slippageHistory":
            rows = SAMPLES.get(body["coin"], [])
            later = [row for row in rows if row["timestamp"] >= body["startTime"]]
            return httpx.Response(200, json=later)
        found = lists.get("spot" if body["type"] == "spotMeta" else body.get("dex", ""))
        if found is None:
            return httpx.Response(400, json={"error": "Unknown type"})
        return httpx.Response(200, json=found)

    return session_over(answer), asked


def test_each_spelling_means_one_market():
    session, asked = service(LISTS)
    for code, names in {
        "BTC": ("btc", "BTC-PERP", "$BTC", "btc-perp", "main:BTC", "hyperliquid:btc"),
        "kPEPE": ("kpepe", "KPEPE-PERP"),
        "abc:TSLA": ("abc:tsla", "ABC:TSLA", "$abc:tsla-perp"),
        "@9": ("HYPE/USDC", "hype/usdc", "@9"),
    }.items():
        for name in names:
            frame = slippage(name, session=session)
            assert frame["coin"].tolist() == [code] * 2, name
            assert tk.provenance(frame)["parameters"]["coin"] == code
    assert (asked.count("meta"), asked.count("spotMeta")) == (2, 1)


def test_code_needs_no_list():
    session, asked = service(LISTS)
    for name in ("BTC", "abc:TSLA", "@9"):
        assert len(slippage(name, session=session)) == 2
    assert set(asked) == {"slippageHistory"}
    with pytest.warns(tk.HistoryWarning, match="no rows came"):  # it has no samples
        assert slippage("ETH", session=session).empty


def test_unknown_name_is_an_error():
    session, _ = service(LISTS)
    local = tk.local(seed=7, size="tiny", default=False)
    for name, near, where in (
        ("nope", "'BTC'", session),
        ("NOPE", "'BTC'", session),
        ("KPEPE", "'kPEPE'", session),
        ("ETTH", "'ETH'", session),
        ("HYPER/USDC", "'HYPE/USDC'", session),
        ("TSLA", "'eqx:TSLA'", local),
    ):
        with pytest.raises(BadRequest) as caught:
            slippage(name, session=where)
        assert repr(name) in str(caught.value)
        assert near in str(caught.value)
    with pytest.raises(tk.Incomplete, match="NOPE"):
        tk.many(tk.slippage_history, ["BTC", "NOPE"], 10_000, "2026-01-01", session=session)


def test_service_without_lists():
    """The likely code is asked for; an empty answer is no complete frame."""
    session, _ = service({})
    for name, code in {"btc-perp": "BTC", "abc:tsla": "abc:TSLA"}.items():
        assert set(slippage(name, session=session)["coin"]) == {code}
    for name in ("NOPE", "kpepe"):
        with pytest.raises(BadRequest, match=f"(?i){name}"):
            slippage(name, session=session)


def test_rows_have_readable_spot_pairs():
    pairs = [{"name": name, "tokens": [5, 0]} for name in ("@9", "@10")]
    twice = LISTS | {"spot": LISTS["spot"] | {"universe": pairs}}
    rows = pd.DataFrame({"coin": ["@9", "BTC", "@77"]})
    for lists, first in ((LISTS, "HYPE/USDC"), ({}, "@9"), (twice, "@9")):
        named = with_readable_coins(rows, service(lists)[0])
        assert named["coin"].tolist() == [first, "BTC", "@77"]
    session, asked = service(LISTS)
    assert with_readable_coins(rows.iloc[1:2], session)["coin"].tolist() == ["BTC"]
    assert asked == []


def test_twap_markets_have_spellings():
    local = tk.local(seed=7, size="tiny", default=False)
    every = tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=local)
    code = every["market"].iloc[0]
    asked = [code.lower() if ":" in code else f"${code.lower()}-perp"]
    assert set(tk.perp_twap_snapshots(asked, session=local)["market"]) == {code}
