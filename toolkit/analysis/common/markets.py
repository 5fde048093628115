"""What the name of a coin tells of its market: its dex, and whether it is a perp."""

import narwhals as nw

from toolkit.contract.dexes import NATIVE_ALIASES, NATIVE_NAMES

SPOT_COIN = r"^@|/"
OUTCOME_COIN = r"^#"
NOT_PERP = f"{SPOT_COIN}|{OUTCOME_COIN}"
"""Coins whose fills are paid from another balance than the perp account's."""

NATIVE_DEX = NATIVE_NAMES["rows"]
"""How results name the native dex, as depth and slippage rows do."""


def is_perp(coin: nw.Expr) -> nw.Expr:
    """Tell whether a coin is a perp, of whatever dex."""
    return ~coin.str.contains(NOT_PERP)


def unify_dex_name(dex: nw.Expr) -> nw.Expr:
    """Return names of dexes with each name of the native one written as `NATIVE_DEX`."""
    return nw.when(dex.is_in(sorted(NATIVE_ALIASES))).then(nw.lit(NATIVE_DEX)).otherwise(dex)


def unify_token_name(token: nw.Expr) -> nw.Expr:
    """Return ``<dex>:<token>`` with each name of the native dex written as `NATIVE_DEX`."""
    names = "|".join(sorted(filter(None, NATIVE_ALIASES)))
    return token.str.replace_all(f"^({names})?:", f"{NATIVE_DEX}:")


def dex_of(coin: nw.Expr) -> nw.Expr:
    """Return the dex of a coin: ``<dex>:`` before the symbol, else hyperliquid, spot, outcome."""
    return (
        nw.when(coin.str.contains(":"))
        .then(unify_dex_name(coin.str.replace_all(":.*", "")))
        .when(coin.str.contains(SPOT_COIN))
        .then(nw.lit("spot"))
        .when(coin.str.contains(OUTCOME_COIN))
        .then(nw.lit("outcome"))
        .otherwise(nw.lit(NATIVE_DEX))
    )
