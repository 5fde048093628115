"""Collateral of the simulated exchange's dexes: docs/live_service.md, section 6."""

from collections import defaultdict
from decimal import Decimal

import pytest

from tests.worlds import world_of
from toolkit.contract.dexes import coin_dex

TOKENS = {0: "USDC", 235: "USDE", 268: "USDT0", 360: "USDH"}


@pytest.fixture(scope="module")
def world():
    return world_of("tiny", 2)


@pytest.fixture(scope="module")
def tokens(world):
    return {dex: TOKENS[meta.collateral_token] for dex, meta in world.sources.metas.items()}


def test_perp_fees_are_paid_in_collateral(world, tokens):
    assert tokens == {"": "USDC", "eqx": "USDC", "pre": "USDH"}
    perps = [fill for _, fill in world.sources.fills if not set(fill.coin) & set("/@#")]
    assert [fill for fill in perps if fill.fee_token != tokens[coin_dex(fill.coin)]] == []
    assert {fill.fee_token for fill in perps} == {"USDC", "USDH"}


def test_snapshots_name_collateral(world, tokens):
    for snapshot in world.sources.account_snapshots:
        assert set(snapshot.values) == set(tokens.items())


def test_collateral_balance_includes_fees_and_funding(world):
    """On the dex of USDH: value = issued USDH + closed PnL + funding - fees + unrealised."""
    sums = defaultdict(Decimal)
    for user, update in world.sources.ledger:
        delta = update.delta
        if delta.type == "send" and delta.destination_dex == "pre" and delta.destination == user:
            assert delta.token == "USDH"
            sums[user] += Decimal(str(delta.amount))
    for user, fill in world.sources.fills:
        if coin_dex(fill.coin) == "pre":
            sums[user] += Decimal(fill.closed_pnl) - Decimal(fill.fee)
    for row in world.sources.funding:
        if coin_dex(row.delta.coin) == "pre":
            sums[row.user] += Decimal(row.delta.usdc)
    for user, state in world.sources.states["pre"].items():
        open_ = sum((Decimal(r.position.unrealized_pnl) for r in state.asset_positions), Decimal(0))
        assert Decimal(state.margin_summary.account_value) == sums[user] + open_
    assert any(sums.values())
