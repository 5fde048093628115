"""What a fill's fees are worth: `fee` is in `fee_token`, which is not always USDC.

A spot buy pays in the token that it buys, and its own price says what that is worth. Any other
token has no price here.
"""

from collections.abc import Sequence

import narwhals as nw

from toolkit.analysis import columns, markets
from toolkit.analysis.columns import Numbers

CASH = ("USDC", "")
"""Tokens that count as USD; the empty one is how transfers of USDC name theirs."""


def in_usd(have: Sequence[str], kind: Numbers) -> dict[str, nw.Expr]:
    """Value fee, builder fee and deployer fee in USD; 0 where the token has no price here."""
    names = ("fee", "builder_fee", "deployer_fee")
    fees = {f"_{name}": columns.filled(name, have, kind) for name in names}
    if "fee_token" not in have:
        return fees
    cash, bought = is_cash(), is_bought()
    return {
        name: nw.when(cash)
        .then(fee)
        .when(bought)
        .then(_valued(fee, bought, kind))
        .otherwise(columns.zero(kind))
        for name, fee in fees.items()
    }


def _valued(fee: nw.Expr, bought: nw.Expr, kind: Numbers) -> nw.Expr:
    if kind == "float":
        return fee * nw.col("px").cast(nw.Float64())
    # Only the rows concerned are narrowed, and 20 + 16 digits are what a product may have.
    fee = nw.when(bought).then(fee).cast(nw.Decimal(20, 10))
    px = nw.when(bought).then(nw.col("px")).cast(nw.Decimal(16, 8))
    return (fee * px).cast(columns.EXACT)


def is_cash() -> nw.Expr:
    """Tell whether a fill's fee is in USDC; rows from before fees had tokens are."""
    token = nw.col("fee_token")
    return token.is_null() | token.is_in(CASH)


def is_bought() -> nw.Expr:
    """Tell whether a fill's fee is in the token that it bought."""
    spot = nw.col("coin").str.contains(markets.SPOT_COIN)
    return spot & (nw.col("side") == "B") & ~is_cash()


def unpriced(have: Sequence[str], kind: Numbers) -> nw.Expr:
    """Give 1 where a fee was charged in a token that has no price here, else 0."""
    if "fee_token" not in have:
        return nw.lit(0)
    lost = ~(is_cash() | is_bought()) & (columns.filled("fee", have, kind) != 0)
    return nw.when(lost).then(nw.lit(1)).otherwise(nw.lit(0))
