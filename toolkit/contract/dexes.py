"""The names of the native dex, and the dex that a coin belongs to.

The specification and the live service name the native dex differently in different places. This
table is the one home of those names (docs/live_service.md, section 8). What is sent and emitted
carries the name of its place; every name is understood everywhere.
"""

from collections.abc import Callable
from typing import Final

__all__ = [
    "ALL_DEXES",
    "NATIVE_ALIASES",
    "NATIVE_NAMES",
    "canonical_dex",
    "coin_dex",
    "dex_name_in",
    "join_coin",
    "native_form",
    "strip_native_dex",
]

ALL_DEXES: Final = "ALL_DEXES"
"""Asks `batchClearinghouseStates` for the native dex and every builder-deployed one."""

NATIVE_NAMES: Final[dict[str, str]] = {
    "request": "",  # meta, perpDexLimits, batchClearinghouseStates
    "states": "native",  # key of an ALL_DEXES answer
    "fills": "main_dex",  # the dex filter of fills
    "rows": "hyperliquid",  # currentDepth, slippage samples, tokens of account-value snapshots
    "former rows": "main",  # what earlier versions of this project wrote there
}
"""Where a name of the native dex stands -> the name."""

NATIVE_ALIASES: Final = frozenset(NATIVE_NAMES.values())
"""Every name of the native dex."""


def canonical_dex(dex: str) -> str:
    """Return the name of a dex that the project uses inside; the native dex is ``""``.

    Examples
    --------
    >>> canonical_dex("main_dex"), canonical_dex("hyperliquid"), canonical_dex("flx")
    ('', '', 'flx')
    """
    return "" if dex in NATIVE_ALIASES else dex


def dex_name_in(place: str, dex: str) -> str:
    """Return the name of a dex as `place`, a key of `NATIVE_NAMES`, writes it.

    Examples
    --------
    >>> dex_name_in("fills", ""), dex_name_in("rows", "native"), dex_name_in("rows", "flx")
    ('main_dex', 'hyperliquid', 'flx')
    """
    return canonical_dex(dex) or NATIVE_NAMES[place]


def coin_dex(coin: str) -> str:
    """Return the dex of a coin: the part before the colon, ``""`` for all native coins.

    Examples
    --------
    >>> coin_dex("BTC"), coin_dex("main:BTC"), coin_dex("flx:TSLA")
    ('', '', 'flx')
    """
    dex, colon, _ = coin.partition(":")
    return canonical_dex(dex) if colon else ""


def join_coin(dex: str, coin: str) -> str:
    """Return a coin with its dex in front, whether or not the dex already stands there.

    Examples
    --------
    >>> join_coin("main", "BTC"), join_coin("flx", "TSLA"), join_coin("flx", "flx:TSLA")
    ('BTC', 'flx:TSLA', 'flx:TSLA')
    """
    dex, coin = canonical_dex(dex), strip_native_dex(coin)
    return coin if not dex or coin.startswith(f"{dex}:") else f"{dex}:{coin}"


def strip_native_dex(coin: str) -> str:
    """Return a coin as fills and samples write it: without any name of the native dex.

    Examples
    --------
    >>> strip_native_dex("main:BTC"), strip_native_dex("flx:TSLA"), strip_native_dex("BTC")
    ('BTC', 'flx:TSLA', 'BTC')
    """
    dex, colon, symbol = coin.partition(":")
    return symbol if colon and dex in NATIVE_ALIASES else coin


def native_form(form: str, value: str) -> str:
    """Return the value of a request's parameter with the native dex named as it is known there.

    Parameters
    ----------
    form : str
        What the parameter holds: a key of `NATIVE_NAMES` for a dex, ``coin``, ``token``
        (``<dex>:<token>``), ``market`` (a coin, ``ALL`` or ``ALL:<dex>``), or nothing.
    value : str
        The value, with any name of the native dex.

    Examples
    --------
    >>> native_form("fills", "hyperliquid"), native_form("coin", "main:BTC")
    ('main_dex', 'BTC')
    >>> native_form("token", "native:USDC"), native_form("market", "ALL:main")
    ('hyperliquid:USDC', 'ALL')
    """
    if form in NATIVE_NAMES:
        return dex_name_in(form, value)
    return _FORMS[form](value) if form else value


def _token(value: str) -> str:
    dex, colon, token = value.rpartition(":")
    return f"{dex_name_in('rows', dex)}:{token}" if colon else value


def _market(value: str) -> str:
    every, colon, dex = value.partition(":")
    if colon and every == "ALL":
        return "ALL" if dex in NATIVE_ALIASES else value
    return strip_native_dex(value)


_FORMS: Final[dict[str, Callable[[str], str]]] = {
    "coin": strip_native_dex,
    "token": _token,
    "market": _market,
}
