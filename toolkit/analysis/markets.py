"""What the name of a coin tells of its market: its dex, and whether it is a perp."""

import narwhals as nw

SPOT_COIN = r"^@|/"
OUTCOME_COIN = r"^#"
NOT_PERP = f"{SPOT_COIN}|{OUTCOME_COIN}"
"""Coins whose fills are paid from another balance than the perp account's."""

NATIVE_DEX = "main"


def is_perp(coin: nw.Expr) -> nw.Expr:
    """Tell whether a coin is a perp, of whatever dex."""
    return ~coin.str.contains(NOT_PERP)


def dex_of(coin: nw.Expr) -> nw.Expr:
    """Give the dex of a coin: ``<dex>:`` before the symbol, else main, spot or outcome."""
    return (
        nw.when(coin.str.contains(":"))
        .then(coin.str.replace_all(":.*", ""))
        .when(coin.str.contains(SPOT_COIN))
        .then(nw.lit("spot"))
        .when(coin.str.contains(OUTCOME_COIN))
        .then(nw.lit("outcome"))
        .otherwise(nw.lit(NATIVE_DEX))
    )
