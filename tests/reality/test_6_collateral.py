"""Collateral of the simulated exchange's dexes: docs/live_service.md, section 6."""

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
