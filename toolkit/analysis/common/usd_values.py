"""Fees and closed PnL in USD: each fill states them in its `fee_token`.

Source: docs/live_service.md, section 3 (spot) and section 6 (collateral and fee tokens).

- A fee in USDC is in USD.
- A spot buy pays its fee in the bought token. This fee is a part of the token's cost, and the
  closed PnL of the later sell contains it. So it is not deducted again. Its value follows from the
  price of the fill.
- A perp of a builder-deployed dex pays its fee in the collateral of the dex. A spot sell or an
  outcome market pays in its quote token. Closed PnL, fees and funding are then all in this token.
  They count at par (one token is one USD), or all at the price that the caller passes.
- A perp of the native dex has USDC as collateral. If its fee is in another token, this module
  cannot value it and counts 0 (`is_unpriced_fee` flags it).
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import exact_products, fixed_point, frame_access, markets
from toolkit.analysis.common.frame_access import Frame, NumberKind
from toolkit.contract.dexes import COLLATERAL_TOKENS
from toolkit.display import count_text
from toolkit.errors import (
    MissingAmounts,
    MissingColumns,
    MissingFees,
    MissingTokens,
    UnusedPrices,
    warn_caller,
)

FEES = ("fee", "builder_fee", "deployer_fee")
"""The fee of a fill, and the parts of it."""

CASH = ("USDC", "")
"""Tokens that count as USD. Transfers of USDC have an empty token."""

PricesByToken = Mapping[str, float | Decimal | str]
"""Token -> USD."""


def warn_missing_amounts(frame: Frame, what: str) -> None:
    """Warn if prices, sizes, closed PnL or fees are missing: no sum contains them."""
    missing, rows = frame_access.count_missing(frame, ("px", "sz", "closed_pnl", "fee"))
    found = [f"{name} is missing in {count:,}" for name, count in missing.items() if count]
    if found:
        parts = {"builder_fee", "deployer_fee"} & set(frame.columns)
        lost = f" If fee is missing, its parts {' and '.join(sorted(parts))} do not count either."
        warn_caller(
            f"{what}: of {count_text(rows, 'row')}, {' and '.join(found)}. Sums leave these values "
            "out. If a value is missing in all rows of a group, its sum is missing. The column "
            f"'covers' says how many are known.{lost * bool(missing['fee'] and parts)} Fetch the "
            "rows again, or remove them",
            MissingAmounts,
        )


def warn_missing_tokens(frame: Frame, what: str) -> None:
    """Warn if spot buys do not name the token of their fee, which then counts as USDC.

    If the frame is lazy, only a few columns are read.
    """
    if not {"fee", "fee_token"} <= set(frame.columns):
        return
    silent = frame.select("coin", "side", "fee", "fee_token")
    silent = silent.filter(nw.col("fee_token").is_null() & (nw.col("side") == "B"))
    silent = silent.filter(markets.is_spot(nw.col("coin")) & (nw.col("fee") != 0))
    one = nw.lit(1)
    counted = silent.with_columns(_buys=one).select(nw.col("_buys").sum())
    buys = counted.lazy().collect("pyarrow").to_arrow().to_pylist()[0]["_buys"]
    if buys:
        warn_caller(
            f"{what}: {count_text(buys, 'spot buy has', 'spot buys have')} a fee but no fee_token. "
            "The fee counts as USDC here. Usually such a fee is paid in the bought token, is part "
            "of its cost, and is not deducted. Fetch the rows again, or fill in fee_token",
            MissingTokens,
        )


def add_fees_in_usd(frame: Frame, kind: NumberKind) -> Frame:
    """Add `_fee`, `_builder_fee` and `_deployer_fee` in USD; 0 if the token has no price here.

    Collateral and quote tokens count at par.
    """
    column_names = frame.columns
    fees = {f"_{n}": frame_access.column_or_zero(n, column_names, kind) for n in FEES}
    if "fee_token" not in column_names:
        return frame.with_columns(**fees)
    bought = is_in_bought_token()
    frame = frame.with_columns(**fees, _counted=is_cash() | is_at_par(), _bought=bought)
    for name in fees:
        frame = add_bought_fee(frame, "_worth", nw.col(name), nw.col("_bought"), kind)
        value = (
            nw.when(nw.col("_counted"))
            .then(nw.col(name))
            .when(nw.col("_bought"))
            .then(nw.col("_worth"))
            .otherwise(frame_access.zero_literal(kind))
        )
        frame = frame.with_columns(value.alias(name)).drop("_worth")
    return frame.drop("_counted", "_bought")


def add_bought_fee(
    frame: Frame, name: str, fee: nw.Expr, bought: nw.Expr, kind: NumberKind
) -> Frame:
    """Add the value of a fee in the bought token, in USD; missing if `bought` is not true."""
    paid, px = (nw.when(bought).then(each) for each in (fee, nw.col("px")))
    return exact_products.add_product(frame, name, paid, px, kind)


def is_cash() -> nw.Expr:
    """Return whether a fill's fee is in USDC; old rows without a token are in USDC."""
    token = nw.col("fee_token")
    return token.is_null() | token.is_in(CASH)


def is_in_bought_token() -> nw.Expr:
    """Return whether a fill's fee is in the token that it bought."""
    spot = markets.is_spot(nw.col("coin"))
    return spot & (nw.col("side") == "B") & ~is_cash()


def is_at_par() -> nw.Expr:
    """Return whether a fill is settled in a collateral or quote token other than USDC."""
    return ~is_cash() & ~is_in_bought_token() & _has_own_token()


def _has_own_token() -> nw.Expr:
    """Return whether a coin may have a collateral or quote token other than USDC."""
    coin = nw.col("coin")
    return coin.str.contains(":", literal=True) | ~markets.is_perp(coin)


def warn_missing_builder_fees(frame: Frame, what: str) -> None:
    """Warn if builder_fee is missing on all fills; pass only fills with a builder."""
    if frame_access.is_empty_column(frame, "builder_fee"):
        warn_caller(
            f"{what}: column builder_fee is missing on every fill that has a builder, and "
            "counts as 0 here. Fetch the rows again, unless the builders charge no fee",
            MissingFees,
        )


def is_unpriced_fee(column_names: Sequence[str], kind: NumberKind, name: str = "fee") -> nw.Expr:
    """Return 1 if the fee `name` is in a token that has no price here, else 0."""
    if "fee_token" not in column_names:
        return nw.lit(0)
    lost = ~(is_cash() | is_in_bought_token() | is_at_par()) & (
        frame_access.column_or_zero(name, column_names, kind) != 0
    )
    return nw.when(lost).then(nw.lit(1)).otherwise(nw.lit(0))


def parse_prices(prices: PricesByToken | None) -> dict[str, Decimal]:
    """Return prices of tokens as decimals, with the names of the tokens in upper case.

    Raise ValueError if a price is not a positive number, if a token has two prices, or if USDC has
    a price other than 1.
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
            raise ValueError(f"prices: {token!r} counts as one USD. Remove its price")
        if found.setdefault(name, value) != value:
            raise ValueError(f"prices: {token!r} has two prices. Upper and lower case are the same")
    return {token: value for token, value in found.items() if token not in CASH}


def warn_unused_prices(
    prices: Mapping[str, Decimal], fills: Frame, dexes: Mapping[str, str]
) -> None:
    """Warn if a price is passed for a token that neither fills nor dexes use.

    If the frame is lazy, only one column is read.
    """
    tokens = {token.upper() for token in dexes.values()}
    if prices and "fee_token" in fills.columns:
        rows = fills.select("fee_token").unique(["fee_token"]).lazy().collect("pyarrow")
        tokens |= {token.upper() for token in rows["fee_token"].to_list() if token}
    unused = sorted(set(prices) - tokens)
    if unused:
        names = ", ".join(sorted(tokens - {""}))
        in_use = (
            f"The tokens in use are {names}"
            if names
            else "The fills do not name the tokens of their fees"
        )
        warn_caller(
            f"prices: no fill or dex uses {', '.join(unused)}. {in_use}. Check the names",
            UnusedPrices,
        )


def apply_prices(
    frame: Frame,
    names: Iterable[str],
    tokens: nw.Expr,
    prices: Mapping[str, Decimal],
    kind: NumberKind,
) -> Frame:
    """Return the frame with the amounts `names` in USD.

    They are multiplied by the price of the token, or unchanged without a price. Raise ValueError if
    the amounts are exact and a price has more than 18 decimals.
    """
    price = frame_access.missing_literal(kind)
    for token, value in prices.items():
        if value != 1:
            price = (
                nw.when(tokens == token).then(_price_literal(token, value, kind)).otherwise(price)
            )
    frame = frame.with_columns(_price=price)
    for name in names:
        frame = exact_products.add_product(frame, "_priced", nw.col(name), nw.col("_price"), kind)
        unpriced = nw.col("_price").is_null()
        value_in_usd = nw.when(unpriced).then(nw.col(name)).otherwise(nw.col("_priced"))
        frame = frame.with_columns(value_in_usd.alias(name)).drop("_priced")
    return frame.drop("_price")


def _price_literal(token: str, price: Decimal, kind: NumberKind) -> nw.Expr:
    if kind == "float":
        return nw.lit(float(price))
    if fixed_point.count_decimals(price) > fixed_point.SCALE or price >= 10**fixed_point.SCALE:
        raise ValueError(
            f"prices: the price of {token!r}, {price}, has more than {fixed_point.SCALE} digits "
            "before or after the decimal point. Exact amounts have at most so many. Round the "
            'price, or fetch the fills with numbers="float"'
        )
    return nw.lit(price).cast(frame_access.EXACT)


def dex_tokens(meta: Any) -> dict[str, str]:
    """Return the collateral of each dex in `meta` whose collateral is not USDC.

    - ``meta``: as `tk.meta` returns it, of one or more dexes: ``name``, ``collateral_token``; or
      the collateral by dex
    """
    if meta is None:
        return {}
    if isinstance(meta, Mapping):
        return dict(meta)
    frame = frame_access.open_frame(meta, "meta")
    frame_access.require_columns(frame, ("name", "collateral_token"), "meta")
    rows = frame.select("name", "collateral_token").lazy().collect("pyarrow")
    found: dict[str, str] = {}
    for name, index in zip(rows["name"].to_list(), rows["collateral_token"].to_list(), strict=True):
        if ":" not in name or index is None or int(index) == 0:
            continue
        if int(index) not in COLLATERAL_TOKENS:
            raise MissingColumns(
                f"meta: collateral_token {index} of {name} is unknown. The known ones are "
                f"{', '.join(f'{k} = {v}' for k, v in COLLATERAL_TOKENS.items())}. Pass the "
                "collateral yourself: meta={dex: token}. fee_token of its fills names the token"
            )
        found[name.split(":")[0]] = COLLATERAL_TOKENS[int(index)]
    return found


def dex_tokens_in_fills(fills: Frame) -> dict[str, str]:
    """Return the collateral of each builder-deployed dex from the fee_token of its fills.

    Raise MissingColumns if the fills of one dex have several tokens other than USDC.
    """
    if "fee_token" not in fills.columns:
        return {}
    mine = nw.col("coin").str.contains(":", literal=True) & ~is_cash()
    pairs = fills.filter(mine).select(dex=markets.dex_of(nw.col("coin")), token=nw.col("fee_token"))
    rows = pairs.unique(["dex", "token"]).lazy().collect("pyarrow")
    found: dict[str, str] = {}
    for dex, token in zip(rows["dex"].to_list(), rows["token"].to_list(), strict=True):
        if found.setdefault(dex, token) != token:
            raise MissingColumns(
                f"fills: dex {dex} has fees in {found[dex]} and in {token}. Pass meta= to name "
                "its collateral"
            )
    return found


def tokens_at_par(fills: Any) -> list[str]:
    """Return the tokens other than USDC that count at par; empty unless the frame is pandas."""
    if not isinstance(fills, pd.DataFrame) or "fee_token" not in fills.columns:
        return []
    frame: Any = nw.from_native(fills, eager_only=True)
    found: Iterable[Any] = frame.filter(is_at_par())["fee_token"].unique().to_list()
    return sorted(str(token) for token in found)
