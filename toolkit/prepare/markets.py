"""Markets by the name of their coin: perp, spot or outcome; dex, base and quote token."""

import numpy as np

from toolkit.contract.dexes import coin_dex, join_coin
from toolkit.prepare.door import NATIVE_DEX, Names


def is_spot(coin: str) -> bool:
    """Return whether a coin is a spot market: ``@107`` or ``PURR/USDC``."""
    return coin.startswith("@") or "/" in coin


def is_outcome(coin: str) -> bool:
    """Return whether a coin is an outcome token: ``#12340``."""
    return coin.startswith("#")


def is_perp(coin: str) -> bool:
    """Return whether a coin is a perp, on any dex."""
    return not (is_spot(coin) or is_outcome(coin))


def dex_of(coin: str) -> str:
    """Return the dex of a coin: ``<dex>:`` before the symbol, else hyperliquid, spot, outcome.

    >>> dex_of("BTC"), dex_of("flx:TSLA"), dex_of("@107"), dex_of("#10")
    ('hyperliquid', 'flx', 'spot', 'outcome')
    """
    if is_spot(coin):
        return "spot"
    return "outcome" if is_outcome(coin) else coin_dex(coin) or NATIVE_DEX


def pair_of(coin: str) -> tuple[str, str]:
    """Return the base and quote token of a spot pair with a name; "" if the name lacks them.

    >>> pair_of("PURR/USDC"), pair_of("@107")
    (('PURR', 'USDC'), ('', ''))
    """
    base, slash, quote = coin.partition("/")
    return (base, quote) if slash else ("", "")


def join_names(dexes: Names, symbols: Names) -> Names:
    """Return the names of coins from two columns: ``<dex>:<symbol>``, or the symbol alone."""
    width = len(symbols.values)
    pairs, codes = np.unique(dexes.codes * width + symbols.codes, return_inverse=True)
    places = [divmod(pair, width) for pair in pairs.tolist()]
    known = [join_coin(dexes.values[dex], symbols.values[symbol]) for dex, symbol in places]
    return Names(codes, known).renamed(str)
