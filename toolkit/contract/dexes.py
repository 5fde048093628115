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
    "canonical",
    "coin_dex",
    "join",
    "name_in",
    "native_bare",
    "write_native",
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


def canonical(dex: str) -> str:
    """Return the name of a dex that the project uses inside; the native dex is ``""``.

    Examples
    --------
    >>> canonical("main_dex"), canonical("hyperliquid"), canonical("flx")
    ('', '', 'flx')
    """
    return "" if dex in NATIVE_ALIASES else dex


def name_in(place: str, dex: str) -> str:
    """Return the name of a dex as `place`, a key of `NATIVE_NAMES`, writes it.

    Examples
    --------
    >>> name_in("fills", ""), name_in("rows", "native"), name_in("rows", "flx")
    ('main_dex', 'hyperliquid', 'flx')
    """
    return canonical(dex) or NATIVE_NAMES[place]


def coin_dex(coin: str) -> str:
    """Return the dex of a coin: the part before the colon, ``""`` for all native coins.

    Examples
    --------
    >>> coin_dex("BTC"), coin_dex("main:BTC"), coin_dex("flx:TSLA")
    ('', '', 'flx')
    """
    dex, colon, _ = coin.partition(":")
    return canonical(dex) if colon else ""


def join(dex: str, coin: str) -> str:
    """Return a coin with its dex in front, whether or not the dex already stands there.

    Examples
    --------
    >>> join("main", "BTC"), join("flx", "TSLA"), join("flx", "flx:TSLA")
    ('BTC', 'flx:TSLA', 'flx:TSLA')
    """
    dex, coin = canonical(dex), native_bare(coin)
    return coin if not dex or coin.startswith(f"{dex}:") else f"{dex}:{coin}"


def native_bare(coin: str) -> str:
    """Return a coin as fills and samples write it: without any name of the native dex.

    Examples
    --------
    >>> native_bare("main:BTC"), native_bare("flx:TSLA"), native_bare("BTC")
    ('BTC', 'flx:TSLA', 'BTC')
    """
    dex, colon, symbol = coin.partition(":")
    return symbol if colon and dex in NATIVE_ALIASES else coin


def write_native(form: str, value: str) -> str:
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
    >>> write_native("fills", "hyperliquid"), write_native("coin", "main:BTC")
    ('main_dex', 'BTC')
    >>> write_native("token", "native:USDC"), write_native("market", "ALL:main")
    ('hyperliquid:USDC', 'ALL')
    """
    if form in NATIVE_NAMES:
        return name_in(form, value)
    return _FORMS[form](value) if form else value


def _token(value: str) -> str:
    dex, colon, token = value.rpartition(":")
    return f"{name_in('rows', dex)}:{token}" if colon else value


def _market(value: str) -> str:
    every, colon, dex = value.partition(":")
    if colon and every == "ALL":
        return "ALL" if dex in NATIVE_ALIASES else value
    return native_bare(value)


_FORMS: Final[dict[str, Callable[[str], str]]] = {
    "coin": native_bare,
    "token": _token,
    "market": _market,
}
