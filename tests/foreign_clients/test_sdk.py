"""The exchange's own Python SDK, unchanged: `Info` starts, and its 38 methods answer.

The key is part of the address, because the SDK cannot set a header before it starts.
"""

import inspect
import json
from contextlib import nullcontext
from decimal import Decimal

import pytest
from hyperliquid.info import Info
from hyperliquid.utils.types import Cloid

from tests.foreign_clients.conftest import KEY
from toolkit.contract.answers import encode
from toolkit.times import HOUR

NOT_ASKED = {
    "disconnect_websocket",
    "name_to_asset",
    "post",
    "set_perp_meta",
    "subscribe",
    "unsubscribe",
}
"""Methods that send no request, or use a websocket."""


@pytest.fixture(scope="module")
def info(address):
    info = Info(address.replace("http://", f"http://key:{KEY}@"), skip_ws=True)
    yield info
    info.session.close()


def methods():
    named = inspect.getmembers(Info, inspect.isfunction)
    return [name for name, _ in named if not name.startswith("_") and name not in NOT_ASKED]


@pytest.fixture(scope="module")
def arguments(world):
    """Return an argument for each name of a parameter."""
    user = world.examples["WHALE"]
    oid, cloid = next(
        (event.order.oid, event.order.cloid)
        for who, event in world.sources.orders
        if who == user and event.order.cloid
    )
    now = world.sources.now_ms
    times = {"startTime": now - HOUR, "start_time": 0, "endTime": now}
    return {
        **dict.fromkeys(["user", "address", "multi_sig_user"], user),
        **times,
        "name": "BTC",
        "interval": "1m",
        "oid": oid,
        "cloid": Cloid(cloid),
    }


def call(info, name, arguments):
    method = getattr(info, name)
    wanted = inspect.signature(method).parameters.values()
    return method(
        *[arguments[parameter.name] for parameter in wanted if parameter.default is parameter.empty]
    )


def test_all_38_methods_have_answers(info, arguments):
    none = {
        "query_user_to_multi_sig_signers",
        "query_sub_accounts",
        "query_user_dex_abstraction_state",
    }
    answers = {name: call(info, name, arguments) for name in methods()}
    assert len(answers) == 38
    assert {name for name, answer in answers.items() if answer is None} <= none


def refusal():
    """Expect an error status. The SDK reads a ``code`` that our errors do not have."""
    return pytest.raises(KeyError, match="code")


def plain(value):
    return json.loads(encode(value))


def test_answers_equal_simulation(info, world):
    user, sources = world.examples["WHALE"], world.sources
    assert info.user_state(user) == plain(sources.states[""][user])
    assert info.spot_user_state(user) == plain(sources.spot_states[user])
    mine = [fill for who, fill in sources.fills if who == user]
    fills = info.user_fills(user)
    assert len(fills) == len(mine)
    assert sum(Decimal(item["sz"]) for item in fills) == sum(Decimal(item.sz) for item in mine)
    funding = [row.delta.usdc for row in sources.funding if row.user == user]
    theirs = [row["delta"]["usdc"] for row in info.user_funding_history(user, 0)]
    assert theirs == funding
    assert info.all_mids()["BTC"] == sources.contexts[""][0].mid_px
    assert info.l2_snapshot("ETH") == plain(sources.books["ETH"])
    assert info.name_to_asset("ETH") == 1


def test_client_starts_with_every_dex(address, world):
    dexes = list(world.sources.metas)
    base = address.replace("http://", f"http://key:{KEY}@")
    info = Info(base, skip_ws=True, perp_dexs=dexes)
    assert info.name_to_asset("eqx:TSLA") >= 100_000
    info.session.close()


def test_wrong_key_in_address_is_refused(address, api):
    with refusal() if api.has_keys else nullcontext():
        Info(address.replace("http://", "http://key:wrong@"), skip_ws=True)
