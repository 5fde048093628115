"""Names of the native dex and of coins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract import dexes

ALIASES = ["", "native", "main_dex", "main", "hyperliquid"]


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("place", dexes.NATIVE_NAMES)
def test_native_dex_aliases_are_one_dex(name, place):
    assert dexes.canonical_dex(name) == ""
    assert dexes.dex_name_in(place, name) == dexes.NATIVE_NAMES[place]


@given(st.from_regex(r"[a-z]{2,6}", fullmatch=True), st.sampled_from(list(dexes.NATIVE_NAMES)))
def test_other_dexes_keep_their_name(dex, place):
    if dex not in ALIASES:
        assert dexes.canonical_dex(dex) == dex
        assert dexes.dex_name_in(place, dex) == dex
        assert dexes.coin_dex(dexes.join_coin(dex, "GOLD")) == dex
        assert dexes.join_coin(dex, dexes.join_coin(dex, "GOLD")) == f"{dex}:GOLD"


@pytest.mark.parametrize("coin", ["BTC", "@107", "#1024", "PURR/USDC"])
@pytest.mark.parametrize("name", ALIASES)
def test_native_coins_have_no_prefix(coin, name):
    assert dexes.join_coin(name, coin) == coin
    assert dexes.coin_dex(coin) == ""
