"""What a fill's money is worth: fees, and closed PnL, in the token of `fee_token`.

Source: docs/live_service.md, section 3 (spot) and section 6 (collateral and fee tokens).

- A fee in USDC is USD.
- A spot buy pays in the token that it buys. This fee is a part of what the token cost, so the
  closed PnL of the later sell contains it already: it is no expense of its own. The price of the
  fill says what it was worth.
- Perps of a builder-deployed dex are margined in the dex's collateral, and pay fees in it; spot
  sells and outcome markets pay in the token that they are quoted in. Closed PnL, fees and funding
  are then all in this token. They count at par, one token as one USD, or at a price that the
  caller gives: always alike.
- A perp of the native dex is margined in USDC. A fee of it in another token has no price here.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import columns, markets
from toolkit.analysis.common.columns import Frame, Numbers
from toolkit.analysis.common.repeated_rows import warn_user
from toolkit.errors import MissingColumns

CASH = ("USDC", "")
"""Tokens that count as USD; the empty one is how transfers of USDC name theirs."""

COLLATERAL_TOKENS: Mapping[int, str] = {0: "USDC", 235: "USDE", 268: "USDT0", 360: "USDH"}
"""`collateral_token` of `tk.meta`, the index of a spot token, to the name in `fee_token`."""

Prices = Mapping[str, Any]
"""Token -> USD."""


class UnusedPrices(UserWarning):
    """A price names a token that no fill and no dex uses."""


class MissingFees(UserWarning):
    """Fills do not say what they paid."""


class MissingAmounts(UserWarning):
    """Fills do not say a price, a size, a closed PnL or a fee."""


class MissingTokens(UserWarning):
    """Spot buys do not say in which token they paid their fee."""


def warn_missing_amounts(frame: Frame, what: str) -> None:
    """Warn if fills lack prices, sizes, closed PnL or fees, which are then in no sum."""
    missing, rows = columns.count_missing(frame, ("px", "sz", "closed_pnl", "fee"))
    told = [f"{name} in {count:,}" for name, count in missing.items() if count]
    if told:
        parts = {"builder_fee", "deployer_fee"} & set(frame.collect_schema().names())
        lost = f" Without fee, its parts {' and '.join(sorted(parts))} do not count either."
        warn_user(
            f"{what}: of {rows:,} rows, missing are {', '.join(told)}. What they lack is in no "
            "sum, and a figure that all rows of a group lack is missing; covers says how many "
            f"are known.{lost * bool(missing['fee'] and parts)} Fetch the rows again, or leave "
            "them out.",
            MissingAmounts,
        )


def warn_missing_tokens(frame: Frame, what: str) -> None:
    """Warn if spot buys paid a fee without naming its token, which then counts as USDC.

    A lazy frame is read for that, a few columns alone.
    """
    if not {"fee", "fee_token"} <= set(frame.collect_schema().names()):
        return
    silent = frame.select("coin", "side", "fee", "fee_token")
    silent = silent.filter(nw.col("fee_token").is_null() & (nw.col("side") == "B"))
    silent = silent.filter(nw.col("coin").str.contains(markets.SPOT_COIN) & (nw.col("fee") != 0))
    one = nw.lit(1)
    counted = silent.with_columns(_buys=one).select(nw.col("_buys").sum())
    buys = counted.lazy().collect("pyarrow").to_arrow().to_pylist()[0]["_buys"]
    if buys:
        warn_user(
            f"{what}: {buys:,} spot buy{'s' * (buys > 1)} paid a fee without a fee_token, and it "
            "counts as USDC here. Such fees are usually in the bought token, where they are a part "
            "of its cost and no expense. Fetch the rows again, or fill in fee_token.",
            MissingTokens,
        )


def fees_in_usd(have: Sequence[str], kind: Numbers) -> dict[str, nw.Expr]:
    """Value fee, builder fee and deployer fee in USD; 0 where the token has no price here.

    Collateral and quote tokens count at par.
    """
    names = ("fee", "builder_fee", "deployer_fee")
    fees = {f"_{name}": columns.column_or_zero(name, have, kind) for name in names}
    if "fee_token" not in have:
        return fees
    bought = is_in_bought_token()
    counted = is_cash() | is_at_par()
    return {
        name: nw.when(counted)
        .then(fee)
        .when(bought)
        .then(at_fill_price(fee, bought, kind))
        .otherwise(columns.zero_literal(kind))
        for name, fee in fees.items()
    }


def at_fill_price(fee: nw.Expr, bought: nw.Expr, kind: Numbers) -> nw.Expr:
    """Return what a fee in the bought token was worth; missing where `bought` is not true."""
    if kind == "float":
        return nw.when(bought).then(fee * nw.col("px").cast(nw.Float64()))
    # Only the rows concerned are narrowed, and 20 + 16 digits are what a product may have.
    fee = nw.when(bought).then(fee).cast(nw.Decimal(20, 10))
    px = nw.when(bought).then(nw.col("px")).cast(nw.Decimal(16, 8))
    return (fee * px).cast(columns.EXACT)


def is_cash() -> nw.Expr:
    """Tell whether a fill's fee is in USDC; rows from before fees had tokens are."""
    token = nw.col("fee_token")
    return token.is_null() | token.is_in(CASH)


def is_in_bought_token() -> nw.Expr:
    """Tell whether a fill's fee is in the token that it bought."""
    spot = nw.col("coin").str.contains(markets.SPOT_COIN)
    return spot & (nw.col("side") == "B") & ~is_cash()


def is_at_par() -> nw.Expr:
    """Return whether a fill's money is in a collateral or quote token other than USDC."""
    return ~is_cash() & ~is_in_bought_token() & _has_own_token()


def _has_own_token() -> nw.Expr:
    """Return whether a coin may be margined or quoted in another token than USDC."""
    return nw.col("coin").str.contains(f":|{markets.NOT_PERP}")


def warn_missing_builder_fees(frame: Frame, what: str) -> None:
    """Warn if no fill says what it paid its builder; give it fills with a builder alone."""
    if columns.is_empty_column(frame, "builder_fee"):
        warn_user(
            f"{what}: column builder_fee is missing on every fill with the builder, and counts "
            "as 0 here. Fetch the rows again, unless the builder charges nothing.",
            MissingFees,
        )


def without_price(have: Sequence[str], kind: Numbers, name: str = "fee") -> nw.Expr:
    """Give 1 where the fee `name` was charged in a token that has no price here, else 0."""
    if "fee_token" not in have:
        return nw.lit(0)
    lost = ~(is_cash() | is_in_bought_token() | is_at_par()) & (
        columns.column_or_zero(name, have, kind) != 0
    )
    return nw.when(lost).then(nw.lit(1)).otherwise(nw.lit(0))


def parse_prices(prices: Prices | None) -> dict[str, Decimal]:
    """Return prices of tokens as decimals, names in upper case: compare tokens in upper case.

    Raises
    ------
    ValueError
        If a price is no positive number, a token has two prices, or USDC has one other than 1.
    """
    found: dict[str, Decimal] = {}
    for token, price in (prices or {}).items():
        try:
            value = Decimal(str(price))
        except ArithmeticError:
            value = Decimal(0)
        if not (value.is_finite() and value > 0):
            raise ValueError(f"prices: {token!r} must have a positive price in USD, not {price!r}")
        name = str(token).upper()
        if name in CASH and value != 1:
            raise ValueError(f"prices: {token!r} counts as one USD; leave its price out")
        if found.setdefault(name, value) != value:
            raise ValueError(f"prices: {token!r} has two prices; case means nothing in its name")
    return {token: value for token, value in found.items() if token not in CASH}


def warn_unused_prices(
    prices: Mapping[str, Decimal], fills: Frame, dexes: Mapping[str, str]
) -> None:
    """Warn of prices of tokens that neither fills nor dexes use: a misspelt name has no effect.

    A lazy frame is read for that, one column alone.
    """
    tokens = {token.upper() for token in dexes.values()}
    if prices and "fee_token" in fills.collect_schema().names():
        rows = fills.select("fee_token").unique(["fee_token"]).lazy().collect("pyarrow")
        tokens |= {token.upper() for token in rows["fee_token"].to_list() if token}
    unused = sorted(set(prices) - tokens)
    if unused:
        warn_user(
            f"prices: {', '.join(unused)} has no effect, since the fills use "
            f"{', '.join(sorted(tokens - {''})) or 'no token that is named'}. Check the names.",
            UnusedPrices,
        )


def apply_prices(
    amount: nw.Expr, tokens: nw.Expr, prices: Mapping[str, Decimal], kind: Numbers
) -> nw.Expr:
    """Multiply amounts in a token by its price; others stay as they are."""
    made = amount
    for token, price in prices.items():
        if price == 1:
            continue
        mine = tokens == token
        if kind == "float":
            value = amount * float(price)
        else:
            held = nw.when(mine).then(amount).cast(nw.Decimal(22, 10))
            value = (held * nw.lit(price).cast(nw.Decimal(14, 8))).cast(columns.EXACT)
        made = nw.when(mine).then(value).otherwise(made)
    return made


def dex_tokens(meta: Any) -> dict[str, str]:
    """Return the collateral of each dex that `meta` names, if it is not USDC.

    Parameters
    ----------
    meta : DataFrame
        Of `tk.meta`: ``name``, ``collateral_token``; of as many dexes as wanted.
    """
    if meta is None:
        return {}
    frame = columns.open_frame(meta, "meta")
    columns.require_columns(frame, ("name", "collateral_token"), "meta")
    rows = frame.select("name", "collateral_token").lazy().collect("pyarrow")
    found: dict[str, str] = {}
    for name, index in zip(rows["name"].to_list(), rows["collateral_token"].to_list(), strict=True):
        if ":" not in name or index is None or int(index) == 0:
            continue
        if int(index) not in COLLATERAL_TOKENS:
            raise MissingColumns(
                f"meta: collateral_token {index} of {name} is not known "
                f"({', '.join(f'{k} = {v}' for k, v in COLLATERAL_TOKENS.items())}); "
                "its fills name the token as fee_token"
            )
        found[name.split(":")[0]] = COLLATERAL_TOKENS[int(index)]
    return found


def dex_tokens_in_fills(fills: Frame) -> dict[str, str]:
    """Return the collateral of each builder-deployed dex whose fills name one.

    Raises
    ------
    MissingColumns
        If the fills of one dex name several tokens other than USDC.
    """
    if "fee_token" not in fills.collect_schema().names():
        return {}
    mine = nw.col("coin").str.contains(":") & ~is_cash()
    pairs = fills.filter(mine).select(dex=markets.dex_of(nw.col("coin")), token=nw.col("fee_token"))
    rows = pairs.unique(["dex", "token"]).lazy().collect("pyarrow")
    found: dict[str, str] = {}
    for dex, token in zip(rows["dex"].to_list(), rows["token"].to_list(), strict=True):
        if found.setdefault(dex, token) != token:
            raise MissingColumns(
                f"fills: dex {dex} pays fees in {found[dex]} and in {token}; say which token is "
                "its collateral: meta="
            )
    return found


def tokens_at_par(fills: Any) -> list[str]:
    """Return the tokens other than USDC that fills count at par; of pandas frames alone."""
    if not isinstance(fills, pd.DataFrame) or "fee_token" not in fills.columns:
        return []
    frame: Any = nw.from_native(fills, eager_only=True)
    found: Iterable[Any] = frame.filter(is_at_par())["fee_token"].unique().to_list()
    return sorted(str(token) for token in found)
