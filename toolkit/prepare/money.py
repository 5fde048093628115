"""Money of fills in USD: closed PnL, fees and volume, row by row.

Source: docs/live_service.md, section 3 (spot) and section 6 (collateral and fee tokens).

- A fee in USDC is in USD.
- A spot market has a base and a quote token, and its price is in the quote token. A buy pays its
  fee in the base token, a sell in the quote token; a rebate is the other way round. A fee in the
  base token is a part of the cost of the tokens: the closed PnL of a later sell contains it, so it
  is not deducted again.
- A perp of a builder-deployed dex and an outcome market have one token for closed PnL, fees and
  funding: the collateral, or the quote token.
- Amounts in such a token count at par (one token is one USD), or all at the price of the caller.
- A perp of the native dex has USDC as collateral. A fee in another token has no price here without
  one of the caller.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple

import numpy as np

from toolkit.arrays import Flags, Floats
from toolkit.contract.dexes import COLLATERAL_TOKENS
from toolkit.display import count_text
from toolkit.errors import (
    MissingAmounts,
    MissingColumns,
    MissingTokens,
    UnusedPrices,
    warn_caller,
)
from toolkit.prepare.door import Frame, Names, Table, filled
from toolkit.prepare.markets import dex_of, is_perp, is_spot, pair_of

CASH: Final = ("USDC", "")
"""Tokens that count as USD. Transfers of USDC have an empty token."""

Prices = Mapping[str, float | Decimal | str]
"""Token -> USD."""

Collateral = Mapping[str, str]
"""Builder-deployed dex -> the token of its collateral, if it is not USDC."""


class Money(NamedTuple):
    """Amounts of fills in USD; a missing amount counts as 0.

    - ``closed_pnl``: as the exchange states it, before fees
    - ``fee``, ``builder_fee``, ``deployer_fee``: the fee and its parts, positive if paid; 0 if it
      is in the base token or has no price
    - ``fee_in_cost``: the fee in the base token, positive if paid
    - ``volume``: px * sz
    - ``price``: USD for one unit of the token in which px is quoted
    - ``is_at_par``: whether the amounts are in a token other than USDC that counts at par
    - ``is_unpriced``: whether the fee is in a token without a price
    - ``tokens``: the token of closed PnL
    """

    closed_pnl: Floats
    fee: Floats
    builder_fee: Floats
    deployer_fee: Floats
    fee_in_cost: Floats
    volume: Floats
    price: Floats
    is_at_par: Flags
    is_unpriced: Flags
    tokens: Names


def read_tokens(table: Table, collateral: Collateral) -> Names:
    """Return the token of each fee; a missing one is the collateral of the dex, "" is USDC."""
    tokens = table.text("fee_token", blank=True)
    if not collateral:
        return tokens
    of_coin = table.text("coin").renamed(lambda coin: collateral.get(dex_of(coin), ""))
    lacks = tokens.facts("".__eq__)
    codes = np.where(lacks, len(tokens.values) + of_coin.codes, tokens.codes)
    return Names(codes, [*tokens.values, *of_coin.values]).renamed(str)


def is_in_base(table: Table, tokens: Names) -> Flags:
    """Return whether a fill pays its fee, or receives its rebate, in the base token."""
    spot: Flags = table.text("coin").facts(is_spot)
    other: Flags = tokens.facts(lambda token: token not in CASH)
    in_base = spot & other
    if not in_base.any():
        return in_base
    is_buy: Flags = table.text("side").facts("B".__eq__)
    return np.asarray(in_base & (is_buy != (table.number("fee", 0.0) < 0)))


def read_money(table: Table, tokens: Names, in_base: Flags, prices: Mapping[str, float]) -> Money:
    """Return the amounts of fills in USD."""
    fee, px = table.number("fee"), table.number("px")
    paid, closed = filled(fee), filled(table.number("closed_pnl", np.nan))
    # A part of a fee that is missing does not count either.
    builder, deployer = (
        filled(table.number(name, 0.0)) if paid is fee
        else np.where(np.isnan(fee), 0.0, filled(table.number(name, 0.0)))
        for name in ("builder_fee", "deployer_fee")
    )  # fmt: skip
    volume = filled(px * table.number("sz"))
    nothing = np.zeros(len(table))
    if all(token in CASH for token in tokens.present()):
        none = np.zeros(len(table), dtype=bool)
        one = nothing + 1.0
        return Money(closed, paid, builder, deployer, nothing, volume, one, none, none, tokens)
    coins = table.text("coin")
    quotes = _quote_tokens(coins, tokens, in_base)
    is_native: Flags = coins.facts(lambda coin: is_perp(coin) and ":" not in coin)
    price, known = _prices_of(quotes, prices)
    fee_price, fee_known = _prices_of(tokens, prices)
    unpriced = is_native & ~fee_known & tokens.facts(lambda token: token not in CASH)
    is_counted = ~(unpriced | in_base)
    paid, builder, deployer = (
        np.where(is_counted, amount * fee_price, 0.0) for amount in (paid, builder, deployer)
    )
    in_quote = quotes.facts(lambda token: token not in CASH)
    is_buy = table.text("side").facts("B".__eq__)
    return Money(
        closed * price,
        paid,
        builder,
        deployer,
        np.where(in_base, np.nan_to_num(fee * px) * price, 0.0),
        volume * price,
        price,
        in_quote & ~known & ~(in_base & is_buy),
        unpriced & (np.nan_to_num(fee) != 0),
        quotes,
    )


def _quote_tokens(coins: Names, tokens: Names, in_base: Flags) -> Names:
    """Return the token of each fill's closed PnL: quote token or collateral.

    A native perp has USDC. If a spot fill has its fee in the base token, other fills of the market
    state the quote token, or the name of the market. Otherwise it counts as USDC.
    """
    is_native = coins.facts(lambda coin: is_perp(coin) and ":" not in coin)
    names = [*tokens.values, *(pair_of(coin)[1] for coin in coins.values)]
    of_coin = len(tokens.values) + np.arange(len(coins.values))
    stated = ~in_base & coins.facts(is_spot)
    of_coin[coins.codes[stated]] = tokens.codes[stated]
    codes = np.where(in_base, of_coin[coins.codes], tokens.codes)
    cash = len(names)
    return Names(np.where(is_native, cash, codes), [*names, ""]).renamed(str)


def _prices_of(tokens: Names, prices: Mapping[str, float]) -> tuple[Floats, Flags]:
    """Return the price of each row's token, 1 if there is none, and whether there is one."""
    found: Floats = tokens.facts(lambda token: prices.get(token.upper(), np.nan))
    return np.where(np.isnan(found), 1.0, found), ~np.isnan(found)


def parse_prices(prices: Prices | None) -> dict[str, float]:
    """Return prices of tokens, with the names of the tokens in upper case.

    Raise ValueError if a price is not a positive number, if a token has two prices, or if USDC has
    a price other than 1.
    """
    found: dict[str, float] = {}
    for token, price in (prices or {}).items():
        try:
            value = float(price)
        except (TypeError, ValueError):
            value = 0.0
        if not 0 < value < np.inf:
            raise ValueError(f"prices: {token!r} must have a positive price in USD, not {price!r}")
        name = str(token).upper()
        if name in CASH and value != 1:
            raise ValueError(f"prices: {token!r} counts as one USD. Remove its price")
        if found.setdefault(name, value) != value:
            raise ValueError(f"prices: {token!r} has two prices. Upper and lower case are the same")
    return {token: value for token, value in found.items() if token not in CASH}


def collateral_of_dexes(meta: Frame | Collateral | None) -> dict[str, str]:
    """Return the collateral of each dex in `meta` whose collateral is not USDC.

    - ``meta``: as `tk.meta` returns it, of one or more dexes: ``name``, ``collateral_token``; or
      the collateral by dex
    """
    if meta is None:
        return {}
    if isinstance(meta, Mapping):
        return dict(meta)
    table = Table(meta, "meta")
    table.require(("name", "collateral_token"))
    names, indices = table.text("name"), table.number("collateral_token")
    found: dict[str, str] = {}
    for code, index in zip(names.codes.tolist(), indices.tolist(), strict=True):
        name = names.values[code]
        if ":" not in name or np.isnan(index) or not index:
            continue
        if int(index) not in COLLATERAL_TOKENS:
            raise MissingColumns(
                f"meta: collateral_token {int(index)} of {name} is unknown. The known ones are "
                f"{', '.join(f'{k} = {v}' for k, v in COLLATERAL_TOKENS.items())}. Pass the "
                "collateral yourself: meta={dex: token}. fee_token of its fills names the token"
            )
        found[name.split(":")[0]] = COLLATERAL_TOKENS[int(index)]
    return found


def collateral_in_fills(table: Table) -> dict[str, str]:
    """Return the collateral of each builder-deployed dex from the fee_token of its fills.

    Raise MissingColumns if the fills of one dex have several tokens other than USDC.
    """
    if not table.has("fee_token"):
        return {}
    coins, tokens = table.text("coin"), table.text("fee_token")
    pairs = np.unique(coins.codes * len(tokens.values) + tokens.codes).tolist()
    found: dict[str, str] = {}
    for pair in pairs:
        coin, token = (
            coins.values[pair // len(tokens.values)],
            tokens.values[pair % len(tokens.values)],
        )
        if ":" not in coin or token in CASH:
            continue
        dex = dex_of(coin)
        if found.setdefault(dex, token) != token:
            raise MissingColumns(
                f"fills: dex {dex} has fees in {found[dex]} and in {token}. Pass meta= to name "
                "its collateral"
            )
    return found


def warn_unused_prices(prices: Mapping[str, float], table: Table, collateral: Collateral) -> None:
    """Warn if a price is passed for a token that neither fills nor dexes use."""
    if not prices:
        return
    tokens = {token.upper() for token in collateral.values()}
    if table.has("fee_token"):
        tokens |= {token.upper() for token in table.text("fee_token").present()}
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


def warn_missing_amounts(table: Table) -> None:
    """Warn if prices, sizes, closed PnL or fees are missing: no sum contains them."""
    missing = table.count_missing(("px", "sz", "closed_pnl", "fee"))
    found = [f"{name} is missing in {count:,}" for name, count in missing.items() if count]
    if found:
        parts = {"builder_fee", "deployer_fee"} & set(table.frame.columns)
        lost = f" If fee is missing, its parts {' and '.join(sorted(parts))} do not count either."
        warn_caller(
            f"{table.what}: of {count_text(len(table), 'row')}, {' and '.join(found)}. Sums leave "
            "these values out. If a value is missing in all rows of a group, its sum is missing. "
            "The column 'covers' says how many are known."
            f"{lost * bool(missing['fee'] and parts)} Fetch the rows again, or remove them",
            MissingAmounts,
        )


def warn_missing_tokens(table: Table) -> None:
    """Warn if spot buys do not name the token of their fee, which then counts as USDC."""
    if not (table.has("fee") and table.has("fee_token") and table.has("side")):
        return
    silent = table.frame["fee_token"].isna().to_numpy(dtype=bool)
    if not silent.any():
        return
    fee = table.number("fee")
    silent = silent & table.text("coin").facts(is_spot) & table.text("side").facts("B".__eq__)
    buys = int((silent & (fee != 0) & ~np.isnan(fee)).sum())
    if buys:
        warn_caller(
            f"{table.what}: {count_text(buys, 'spot buy has', 'spot buys have')} a fee but no "
            "fee_token. The fee counts as USDC here. Usually such a fee is paid in the bought "
            "token, is part of its cost, and is not deducted. Fetch the rows again, or fill in "
            "fee_token",
            MissingTokens,
        )


def in_usd(
    amounts: Floats, coins: Names, collateral: Collateral, prices: Mapping[str, float]
) -> Floats:
    """Return amounts in the collateral of their coins in USD, as of funding."""
    if not (prices and collateral):
        return amounts
    price = coins.facts(lambda coin: prices.get(collateral.get(dex_of(coin), "").upper(), 1.0))
    return np.asarray(amounts * price)
