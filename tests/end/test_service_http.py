"""The service on a real port, over HTTP and with the exchange's own Python client."""

from urllib.parse import unquote

import httpx
import pytest
from hyperliquid.info import Info

import toolkit as tk
from tests.worlds import world_of
from toolkit.client import open_session
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server
from toolkit.times import DAY, to_iso


@pytest.fixture(scope="module")
def world():
    return world_of("tiny")


@pytest.fixture(scope="module")
def address():
    store = simulated_store(7, "tiny")
    with run_server(application_of(store, KeyQuotas([AcceptedKey("all", "s3cret")]))) as address:
        yield address
    store.close()


def ask_meta(address):
    headers = {"Authorization": "Bearer s3cret"}
    return httpx.post(f"{address}/info", json={"type": "meta"}, headers=headers)


def test_answers_name_source(address, world):
    refused = httpx.post(f"{address}/info", json={"type": "meta"})
    for got in (httpx.get(f"{address}/healthz"), ask_meta(address), refused):
        assert got.headers["x-toolkit-now"] == str(world.sources.now_ms)
        assert got.headers["x-toolkit-clock"] == "fixed"
        assert got.headers["x-toolkit-simulated"] == "true"
        assert unquote(got.headers["x-toolkit-source"]) == world.sources.label


@pytest.fixture
def served(address):
    with tk.connect(address, "s3cret", default=False) as session:
        yield session


def test_age_counts_from_service_present(served, world):
    user = world.examples["WHALE"]
    local = tk.local(seed=7, size="tiny", default=False)
    fills = tk.user_fills_by_time(user, "7d", session=served)
    assert len(fills) > 0
    assert fills.equals(tk.user_fills_by_time(user, "7d", session=local))
    facts = tk.provenance(fills)
    assert facts["simulated"] is True
    assert facts["source"] == world.sources.label
    assert facts["asked_at"] == to_iso(world.sources.now_ms)
    assert facts["requests"] == facts["pages"]  # the look at /healthz does not count
    assert (served.simulated, served.label) == (True, world.sources.label)
    assert served.now_ms() == world.sources.now_ms


def test_user_choice_overrides_service(address, world):
    later = world.sources.now_ms + 400 * DAY
    with open_session(
        address, "s3cret", label="mine", now_ms=lambda: later, default=False
    ) as session:
        with pytest.warns(tk.HistoryWarning, match="the service's present is"):
            fills = tk.user_fills_by_time(world.examples["WHALE"], "7d", session=session)
        assert len(fills) == 0
        assert (session.label, session.now_ms(), session.simulated) == ("mine", later, True)


def test_many_counts_ages_from_service_present(served, world):
    users = [world.examples["WHALE"], world.examples["BUILDER"]]
    fills = tk.many(tk.user_fills_by_time, users, "7d", session=served)
    assert users[0] in set(fills["user"])
    assert tk.provenance(fills)["simulated"] is True


def test_official_client_gets_fills(address, world):
    info = Info(
        address, skip_ws=True, meta={"universe": []}, spot_meta={"universe": [], "tokens": []}
    )
    info.session.headers["Authorization"] = "Bearer s3cret"
    user = world.examples["WHALE"]
    fills = info.user_fills(user)
    mine = [fill for who, fill in world.sources.fills if who == user]
    assert len(fills) == min(len(mine), 2000)
    assert fills[0]["hash"] == mine[-1].hash  # newest first
    assert len(info.user_fills_by_time(user, 0, aggregate_by_time=False)) == min(len(mine), 2000)
    assert len(info.user_fills_by_time(user, 0, None, True)) <= len(mine)
    assert info.meta()["universe"][0]["name"] == "BTC"
    assert len(info.user_non_funding_ledger_updates(user, 0)) == sum(
        who == user for who, _ in world.sources.ledger
    )
    universe, contexts = info.meta_and_asset_ctxs()
    assert len(universe["universe"]) == len(contexts)
    assert info.historical_orders(user)[0]["status"]
    delegating = next(iter(world.sources.delegations))
    assert info.user_staking_delegations(delegating)[0]["validator"]
    assert info.query_perp_deploy_auction_status()["startGas"]
    info.session.close()
