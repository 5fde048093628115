"""Names of the native dex and of coins."""

from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract import dexes

ALIASES = ["", "native", "main_dex", "main", "hyperliquid"]


def test_native_dex_aliases_are_one_dex():
    for name in ALIASES:
        assert dexes.canonical_dex(name) == ""
        assert {place: dexes.dex_name_in(place, name) for place in dexes.NATIVE_NAMES} == (
            dexes.NATIVE_NAMES
        )


@given(st.from_regex(r"[a-z]{2,6}", fullmatch=True), st.sampled_from(list(dexes.NATIVE_NAMES)))
def test_other_dexes_keep_their_name(dex, place):
    if dex not in ALIASES:
        assert dexes.canonical_dex(dex) == dex
        assert dexes.dex_name_in(place, dex) == dex
        assert dexes.coin_dex(dexes.join_coin(dex, "GOLD")) == dex
        assert dexes.join_coin(dex, dexes.join_coin(dex, "GOLD")) == f"{dex}:GOLD"


def test_native_coins_have_no_prefix():
    for coin in ("BTC", "@107", "#1024", "PURR/USDC"):
        assert {dexes.join_coin(name, coin) for name in ALIASES} == {coin}
        assert dexes.coin_dex(coin) == ""
