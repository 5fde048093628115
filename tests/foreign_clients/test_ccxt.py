"""ccxt, unchanged: the 17 calls of section 9 and fetch_order_book, against the default service."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.foreign_clients.conftest import INSTALLED, KEY, missing

FOLDER = INSTALLED / "ccxt"
SCRIPT = Path(__file__).with_name("ccxt_calls.py")


@pytest.fixture(scope="module")
def found(address, accounts):
    if not (FOLDER / "ccxt").is_dir():
        missing("ccxt")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(FOLDER), address, KEY, *accounts],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def total(values):
    return sum((Decimal(str(value)) for value in values), Decimal(0))


def test_ccxt_markets_equal_simulation(found, world):
    symbols = {market["info"].get("name") for market in found["fetch_markets"]}
    coins = {asset.name for meta in world.sources.metas.values() for asset in meta.universe}
    spot = world.sources.spot_meta
    assert spot is not None
    pairs = {pair.name for pair in spot.universe}
    assert pairs <= symbols
    native = {asset.name for asset in world.sources.metas[""].universe}
    live = {coin for coin in native if coin != "MYRO"}  # ccxt may omit the delisted market
    assert live <= symbols <= coins | pairs
    assert len(found["load_markets"]) == len(found["fetch_markets"])
    assert len(found["fetch_currencies"]) == len(spot.tokens)


def test_ccxt_tickers_equal_contexts(found, world):
    btc = world.sources.contexts[""][0]
    ticker = found["fetch_ticker"]
    assert Decimal(str(ticker["info"]["midPx"])) == Decimal(str(btc.mid_px))
    assert found["fetch_tickers"]["BTC/USDC:USDC"]["info"] == ticker["info"]
    rate = found["fetch_funding_rates"]["BTC/USDC:USDC"]
    assert rate["fundingRate"] == pytest.approx(float(btc.funding))


def test_ccxt_order_book_equals_simulation(found, world):
    bids, asks = world.sources.books["ETH"].levels
    book = found["fetch_order_book"]
    assert [[str(px), str(sz)] for px, sz in book["bids"]] == [[p(b.px), p(b.sz)] for b in bids]
    assert [[str(px), str(sz)] for px, sz in book["asks"]] == [[p(a.px), p(a.sz)] for a in asks]
    assert book["timestamp"] == world.sources.now_ms


def p(number):
    """Return a number as Python writes it."""
    return str(float(number))


def test_ccxt_trades_sum_to_fills(found, world):
    for user, answers in found["users"].items():
        mine = [fill for who, fill in world.sources.fills if who == user]
        trades = answers["fetch_my_trades"]
        assert 0 < len(trades) == len(mine) < 2_000
        assert total(trade["amount"] for trade in trades) == total(fill.sz for fill in mine)
        # ccxt adds the builder's fee to a fee that already contains it. This is a fault of ccxt.
        twice = [fill.builder_fee for fill in mine if isinstance(fill.builder_fee, str)]
        paid = total(fill.fee for fill in mine) + total(twice)
        assert abs(total(trade["fee"]["cost"] for trade in trades) - paid) < Decimal("0.000001")


def test_ccxt_orders_equal_order_events(found, world):
    open_orders = 0
    for user, answers in found["users"].items():
        mine = [event for who, event in world.sources.orders if who == user]
        latest = mine[-2_000:]
        orders = answers["fetch_orders"]
        assert {order["id"] for order in orders} == {str(event.order.oid) for event in latest}
        assert len(orders) == len({(event.order.oid) for event in latest})
        last = {event.order.oid: event.status for event in mine}
        resting = {str(oid) for oid, status in last.items() if status == "open"}
        assert {order["id"] for order in answers["fetch_open_orders"]} == resting
        open_orders += len(resting)
        closed = {order["id"] for order in answers["fetch_closed_orders"]}
        assert closed == {str(oid) for oid, status in last.items() if status == "filled"}
        canceled = {order["id"] for order in answers["fetch_canceled_orders"]}
        assert canceled == {order["id"] for order in orders if order["status"] == "canceled"}
    assert open_orders > 0


def test_ccxt_positions_equal_account_state(found, world):
    for user, answers in found["users"].items():
        state = world.sources.states[""][user]
        ours = {position.position.coin: position.position for position in state.asset_positions}
        theirs = {row["info"]["position"]["coin"]: row for row in answers["fetch_positions"]}
        assert theirs.keys() == ours.keys()
        for coin, row in theirs.items():
            assert total([row["contracts"]]) == abs(Decimal(ours[coin].szi))
            assert row["side"] == ("short" if ours[coin].szi.startswith("-") else "long")
        value = Decimal(state.margin_summary.account_value)
        assert answers["fetch_balance"]["USDC"]["total"] == pytest.approx(float(value))


def test_ccxt_funding_sums_to_rows(found, world):
    rows = 0
    for user, answers in found["users"].items():
        mine = [row.delta.usdc for row in world.sources.funding if row.user == user]
        history = answers["fetch_funding_history"]
        assert len(history) == len(mine)
        difference = total(entry["amount"] for entry in history) - total(mine)
        assert abs(difference) < Decimal("0.000001")
        rows += len(mine)
    assert rows > 100


def test_ccxt_ledger_equals_simulation(found, world):
    seen = set()
    for user, answers in found["users"].items():
        mine = [update for who, update in world.sources.ledger if who == user]
        kinds = [update.delta.type for update in mine]
        assert len(answers["fetch_ledger"]) == len(mine)
        assert len(answers["fetch_deposits"]) == kinds.count("deposit")
        assert len(answers["fetch_withdrawals"]) == kinds.count("withdraw")
        seen.update(kinds)
    assert {"deposit", "withdraw"} <= seen
