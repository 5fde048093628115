"""The names of the native dex, and the dex that a coin belongs to.

The specification names the native dex differently in different places; this table is the
one home of those names.
"""

from typing import Final

__all__ = ["ALL_DEXES", "NATIVE_NAMES", "canonical", "coin_dex", "join", "name_in", "native_bare"]

ALL_DEXES: Final = "ALL_DEXES"
"""Asks `batchClearinghouseStates` for the native dex and every builder-deployed one."""

NATIVE_NAMES: Final[dict[str, str]] = {
    "request": "",  # meta, perpDexLimits, batchClearinghouseStates
    "states": "native",  # key of an ALL_DEXES answer
    "fills": "main_dex",  # the dex filter of fills
    "rows": "main",  # ASSUMED: depth and slippage rows call the native dex `main`.
    "live rows": "hyperliquid",  # what the live service is known to write in those rows
}
"""Where a name of the native dex stands -> the name."""


def canonical(dex: str) -> str:
    """Turn any name of a dex into the one used inside the project; the native dex is ``""``.

    Examples
    --------
    >>> canonical("main_dex"), canonical("native"), canonical("flx")
    ('', '', 'flx')
    """
    return "" if dex in NATIVE_NAMES.values() else dex


def name_in(place: str, dex: str) -> str:
    """Write a dex the way that `place`, a key of `NATIVE_NAMES`, writes it.

    Examples
    --------
    >>> name_in("fills", ""), name_in("rows", "flx")
    ('main_dex', 'flx')
    """
    return canonical(dex) or NATIVE_NAMES[place]


def coin_dex(coin: str) -> str:
    """Give the dex of a coin: the part before the colon, ``""`` for all native coins.

    Examples
    --------
    >>> coin_dex("BTC"), coin_dex("flx:TSLA")
    ('', 'flx')
    """
    dex, colon, _ = coin.partition(":")
    return dex if colon else ""


def join(dex: str, coin: str) -> str:
    """Write a coin with its dex in front, whether or not it already stands there.

    Examples
    --------
    >>> join("main", "BTC"), join("flx", "TSLA"), join("flx", "flx:TSLA")
    ('BTC', 'flx:TSLA', 'flx:TSLA')
    """
    dex = canonical(dex)
    return coin if not dex or coin.startswith(f"{dex}:") else f"{dex}:{coin}"


def native_bare(coin: str) -> str:
    """Write a coin as it is stored, whichever name of the native dex stands in front.

    Examples
    --------
    >>> native_bare("main:BTC"), native_bare("flx:TSLA"), native_bare("BTC")
    ('BTC', 'flx:TSLA', 'BTC')
    """
    dex = coin_dex(coin)
    return join(dex, coin.removeprefix(f"{dex}:")) if dex else coin
