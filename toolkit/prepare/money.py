"""Money of fills in USD: the tokens of their markets, closed PnL, fees and volume, row by row.

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

from toolkit import errors
from toolkit.arrays import Flags, Floats
from toolkit.contract.dexes import COLLATERAL_TOKENS, coin_dex, join_coin
from toolkit.display import count_text
from toolkit.prepare.door import NATIVE_DEX, Frame, Names, Table, filled, name_pairs

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
    - ``in_base``: whether the fee is in the base token of a spot market
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
    in_base: Flags


def is_spot(coin: str) -> bool:
    """Return whether a coin is a spot market: ``@107`` or ``PURR/USDC``."""
    return coin.startswith("@") or "/" in coin


def is_outcome(coin: str) -> bool:
    """Return whether a coin is an outcome token: ``#12340``."""
    return coin.startswith("#")


def is_perp(coin: str) -> bool:
    """Return whether a coin is a perp, on any dex."""
    return not coin.startswith(("@", "#")) and "/" not in coin


def dex_of(coin: str) -> str:
    """Return the dex of a coin: ``<dex>:`` before the symbol, else hyperliquid, spot, outcome.

    >>> dex_of("BTC"), dex_of("flx:TSLA"), dex_of("@107"), dex_of("#10")
    ('hyperliquid', 'flx', 'spot', 'outcome')
    """
    if is_spot(coin):
        return "spot"
    return "outcome" if is_outcome(coin) else coin_dex(coin) or NATIVE_DEX


def join_names(dexes: Names, symbols: Names) -> Names:
    """Return the names of coins from two columns: ``<dex>:<symbol>``, or the symbol alone."""
    codes, pairs = name_pairs(dexes, symbols)
    return Names(codes, [join_coin(*pair) for pair in pairs]).renamed(str)


def is_in_base(table: Table, tokens: Names) -> Flags:
    """Return whether a fill pays its fee, or receives its rebate, in the base token."""
    in_base: Flags = table.text("coin").facts(is_spot)
    if in_base.any() and (in_base := in_base & ~tokens.facts(CASH.__contains__)).any():
        is_buy: Flags = table.text("side").facts("B".__eq__)
        in_base = in_base & (is_buy != (table.number("fee", 0.0) < 0))
    return in_base


def parse_prices(prices: Prices) -> dict[str, float]:
    """Return prices of tokens, with the names of the tokens in upper case.

    Raise ValueError if a price is not a positive number, if a token has two prices, or if USDC has
    a price other than 1.
    """
    found: dict[str, float] = {}
    for token, price in prices.items():
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


def collateral_of_dexes(meta: Frame | Collateral) -> dict[str, str]:
    """Return the collateral of each dex in `meta` whose collateral is not USDC.

    - ``meta``: as `tk.meta` returns it, of one or more dexes: ``name``, ``collateral_token``; or
      the collateral by dex
    """
    if isinstance(meta, Mapping):
        return dict(meta)
    table = Table(meta, "meta")
    table.require(("name", "collateral_token"))
    names, indices = table.text("name"), filled(table.number("collateral_token"))
    found: dict[str, str] = {}
    for code, index in zip(names.codes.tolist(), indices.tolist(), strict=True):
        name = names.values[code]
        if ":" not in name or not index:
            continue
        if int(index) not in COLLATERAL_TOKENS:
            raise errors.MissingColumns(
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
    found: dict[str, str] = {}
    for coin, token in name_pairs(table.text("coin"), table.text("fee_token", blank=True))[1]:
        dex = dex_of(coin)
        if ":" in coin and token not in CASH and found.setdefault(dex, token) != token:
            raise errors.MissingColumns(
                f"fills: dex {dex} has fees in {found[dex]} and in {token}. Pass meta= to name "
                "its collateral"
            )
    return found


def warn_unused_prices(prices: Mapping[str, float], table: Table, collateral: Collateral) -> None:
    """Warn if a price is passed for a token that neither fills nor dexes use."""
    named = table.text("fee_token", blank=True).present()
    tokens = {token.upper() for token in (*collateral.values(), *named)}
    if unused := sorted(set(prices) - tokens):
        in_use = "The fills do not name the tokens of their fees"
        if tokens:
            in_use = f"The tokens in use are {', '.join(sorted(tokens))}"
        errors.warn_caller(
            f"prices: no fill or dex uses {', '.join(unused)}. {in_use}. Check the names",
            errors.UnusedPrices,
        )


def warn_missing_amounts(table: Table) -> None:
    """Warn if prices, sizes, closed PnL or fees are missing: no sum contains them."""
    missing = {n: int(table.column(n).isna().sum()) for n in ("px", "sz", "closed_pnl", "fee")}
    found = [f"{name} is missing in {count:,}" for name, count in missing.items() if count]
    if found:
        parts = [name for name in ("builder_fee", "deployer_fee") if table.has(name)]
        lost = f" If fee is missing, its parts {' and '.join(parts)} do not count either."
        errors.warn_caller(
            f"{table.what}: of {count_text(len(table), 'row')}, {' and '.join(found)}. Sums leave "
            "these values out. If a value is missing in all rows of a group, its sum is missing. "
            "The column 'covers' says how many are known."
            f"{lost * bool(missing['fee'] and parts)} Fetch the rows again, or remove them",
            errors.MissingAmounts,
        )


def warn_missing_tokens(table: Table) -> None:
    """Warn if spot buys do not name the token of their fee, which then counts as USDC."""
    if not all(map(table.has, ("fee", "fee_token", "side"))):
        return
    silent = np.asarray(table.column("fee_token").array.isna())
    if not silent.any():
        return
    silent = silent & table.text("coin").facts(is_spot) & table.text("side").facts("B".__eq__)
    buys = int((silent & (filled(table.number("fee")) != 0)).sum())
    if buys:
        errors.warn_caller(
            f"{table.what}: {count_text(buys, 'spot buy has', 'spot buys have')} a fee but no "
            "fee_token. The fee counts as USDC here. Usually such a fee is paid in the bought "
            "token, is part of its cost, and is not deducted. Fetch the rows again, or fill in "
            "fee_token",
            errors.MissingTokens,
        )
