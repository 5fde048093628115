"""`tk.account`: each frame once, from what the source has; what it lacks is named once."""

import json
import threading
import warnings

import httpx
import pandas as pd
import pytest

import toolkit as tk
from tests.fetch.wire import fill
from toolkit.client import open_session

USER = "0x" + "ab" * 20
NOW = 1_760_000_000_000


@pytest.fixture(scope="module", params=["service", "exchange"])
def session(request):
    return tk.local(seed=7, size="tiny", like=request.param, default=False)


def test_frames_are_fetched_once(session):
    account = tk.account(f" {session.world['examples']['WHALE']}", session=session)
    before = session.counts.requests
    assert "not fetched" in repr(account)
    assert session.counts.requests == before
    threads = [threading.Thread(target=account.fetch, args=["fills"]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    account.fetch("funding", "ledger", "orders", "states", "spot", "mode", "role", "perps")
    after = session.counts.requests
    context, shown = account.to_context(), repr(account) + account._repr_html_()
    assert account.prepared is account.prepared
    assert session.counts.requests == after
    assert account.missing == {}
    assert shown.count(f"fills    {len(account.fills)} rows, complete: yes") == 1
    earned = tk.pnl.attribution(account.fills, account.funding, account.ledger).iloc[0]
    for figure in (earned["net"], earned["funding"], earned["ledger"]):
        assert f"{figure:+,.2f} USD" in context
    value = account.states.accounts["account_value"].sum()
    assert f"{value:+,.2f} USD" in context
    assert context.count("Open: ") == min(10, len(account.states.positions))
    doubtful = account.funding.copy()  # the fetch warned of it, and raised nothing
    doubtful.attrs["toolkit"] = {**tk.provenance(doubtful), "complete": "no", "why": "BTC twice"}
    assert "incomplete: funding (BTC twice)" in account.assign(funding=doubtful).to_context()


def test_both_apis_have_the_same_account():
    service, exchange = (
        tk.local(seed=7, size="tiny", like=like, default=False) for like in ("service", "exchange")
    )
    user = service.world["examples"]["LARGE"]
    one, other = (tk.account(user, "2d", session=each) for each in (service, exchange))
    for name in ("fills", "funding", "ledger"):
        rows, same = (
            getattr(each, name).drop(columns=["tx_index", "twap_id"], errors="ignore")
            for each in (one, other)
        )
        pd.testing.assert_frame_equal(rows, same)
    for mine, own in zip(one.states[:2], other.states[:2], strict=True):
        keys = [name for name in ("dex", "coin") if name in mine]
        columns = [name for name in mine if name in own]
        rows, same = (each[columns].sort_values(keys, ignore_index=True) for each in (mine, own))
        pd.testing.assert_frame_equal(rows, same)
    assert one.samples is not None
    with pytest.warns(
        tk.errors.IncompleteWarning, match="samples of .* missing: .*slippageHistory"
    ):
        assert other.samples is None
    assert "missing" in dict(other._list_parts())["samples"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert other.samples is None


def test_incomplete_fills_are_kept_and_named():
    """The exchange's own API keeps the 10,000 latest fills of an account."""
    rows = [fill(NOW - 1_000 * (10_100 - i), tid=i + 1) for i in range(10_100)][-10_000:]
    for row in rows:
        del row["txIndex"], row["twapId"]

    def answer(request):
        body = json.loads(request.content)
        found = [r for r in rows if body["startTime"] <= r["time"] <= body.get("endTime", NOW)]
        return httpx.Response(200, json=found[:2_000])

    transport = httpx.MockTransport(answer)
    options = {"transport": transport, "now_ms": lambda: NOW, "sleep": lambda seconds: None}
    with open_session("http://stand-in.test", api="hyperliquid", **options) as session:
        account = tk.account(USER, session=session)
        with pytest.warns(tk.errors.IncompleteWarning, match="fills of .* incomplete"):
            assert len(account.fills) == 10_000
    assert "10,000" in account.missing["fills"]
    assert "10,000 rows, complete: no; " in repr(account)
    whole = account.assign(fills=account.fills.iloc[:5])
    assert (len(whole.fills), whole.missing, len(account.fills)) == (5, {}, 10_000)
    assert len(whole.prepared) == 5


def test_malformed_address_is_refused():
    session = tk.local(seed=7, size="tiny", default=False)
    with pytest.raises(tk.BadRequest, match="0x12"):
        tk.account("0x12", session=session)
