"""The names of the native dex, and the dex that a coin belongs to.

The specification and the live service use different names of the native dex in different places
(docs/live_service.md, section 8). `NATIVE_NAMES` lists them. Requests and answers have the name of
their place, and readers accept every name everywhere.
"""

import re
from typing import Final

ALL_DEXES: Final = "ALL_DEXES"
"""The value of `dex` with which `batchClearinghouseStates` answers for every dex."""

NATIVE_NAMES: Final[dict[str, str]] = {
    "request": "",  # meta, perpDexLimits, batchClearinghouseStates
    "states": "native",  # key of an ALL_DEXES answer
    "fills": "main_dex",  # the dex filter of fills
    "rows": "hyperliquid",  # currentDepth, slippage samples, tokens of account-value snapshots
    "former rows": "main",  # earlier versions of this project wrote this name there
}
"""Place -> the name of the native dex there."""

NATIVE_ALIASES: Final = frozenset(NATIVE_NAMES.values())
"""Every name of the native dex."""


NOT_PERP: Final = r"^@|/|^#"
"""Coins of spot and outcome markets, which are paid from the spot balance."""

COLLATERAL_TOKENS: Final[dict[int, str]] = {0: "USDC", 235: "USDE", 268: "USDT0", 360: "USDH"}
"""`collateral_token` of `tk.meta` (the index of a spot token) -> name in `fee_token`.

docs/live_service.md, section 6."""


def is_perp_coin(coin: str) -> bool:
    """Return whether a coin is a perp, not a spot pair or an outcome token.

    >>> is_perp_coin("flx:TSLA"), is_perp_coin("@107"), is_perp_coin("PURR/USDC")
    (True, False, False)
    """
    return re.search(NOT_PERP, coin) is None


def canonical_dex(dex: str) -> str:
    """Return the name of a dex inside this project; the native dex is ``""``.

    >>> canonical_dex("main_dex"), canonical_dex("hyperliquid"), canonical_dex("flx")
    ('', '', 'flx')
    """
    return "" if dex in NATIVE_ALIASES else dex


def dex_name_in(place: str, dex: str) -> str:
    """Return the name of a dex at a place, which is a key of `NATIVE_NAMES`.

    >>> dex_name_in("fills", ""), dex_name_in("rows", "native"), dex_name_in("rows", "flx")
    ('main_dex', 'hyperliquid', 'flx')
    """
    return canonical_dex(dex) or NATIVE_NAMES[place]


def coin_dex(coin: str) -> str:
    """Return the dex of a coin: the part before the colon, ``""`` for all native coins.

    >>> coin_dex("BTC"), coin_dex("main:BTC"), coin_dex("flx:TSLA")
    ('', '', 'flx')
    """
    dex, colon, _ = coin.partition(":")
    return canonical_dex(dex) if colon else ""


def join_coin(dex: str, coin: str) -> str:
    """Return a coin with its dex in front, even if the coin already has it.

    >>> join_coin("main", "BTC"), join_coin("flx", "TSLA"), join_coin("flx", "flx:TSLA")
    ('BTC', 'flx:TSLA', 'flx:TSLA')
    """
    dex, coin = canonical_dex(dex), strip_native_dex(coin)
    return coin if not dex or coin.startswith(f"{dex}:") else f"{dex}:{coin}"


def strip_native_dex(coin: str) -> str:
    """Return a coin without a name of the native dex in front, as in fills and samples.

    >>> strip_native_dex("main:BTC"), strip_native_dex("flx:TSLA"), strip_native_dex("BTC")
    ('BTC', 'flx:TSLA', 'BTC')
    """
    dex, colon, symbol = coin.partition(":")
    return symbol if colon and dex in NATIVE_ALIASES else coin


def native_form(form: str, value: str) -> str:
    """Return the value of a request's parameter with the native dex's name for this parameter.

    - ``form``: the form of the parameter: a key of `NATIVE_NAMES` for a dex, ``coin``, ``token``
      (``<dex>:<token>``), or ``market`` (a coin, ``ALL`` or ``ALL:<dex>``)
    - ``value``: the value, with any name of the native dex

    >>> native_form("fills", "hyperliquid"), native_form("coin", "main:BTC")
    ('main_dex', 'BTC')
    >>> native_form("token", "native:USDC"), native_form("market", "ALL:main")
    ('hyperliquid:USDC', 'ALL')
    """
    if form == "coin":
        return strip_native_dex(value)
    if form == "token":
        dex, colon, token = value.rpartition(":")
        return f"{dex_name_in('rows', dex)}:{token}" if colon else value
    if form == "market":
        if value.startswith("ALL:"):
            return "ALL" if value[4:] in NATIVE_ALIASES else value
        return strip_native_dex(value)
    return dex_name_in(form, value)
