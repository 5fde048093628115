"""Slippage: the cost of taking from a book against mid (specification, "Slippage sample")."""

import numpy as np

from toolkit.arrays import Floats, Ints


def average_prices(px: Floats, sz: Floats, usd: float) -> Floats:
    """Return the average price of an order in each book, or NaN if a book is too thin.

    The average price is the notional over the size that the order buys or sells, level by level.

    Parameters
    ----------
    px, sz : array of float, (moments, levels)
        One side of the books, best level first.
    usd : float
        Notional of the order.

    Returns
    -------
    array of float, (moments,)
        Average prices, USD.

    Examples
    --------
    >>> px, sz = np.array([[101.0, 102.0]] * 2), np.array([[1.0, 10.0], [1.0, 0.5]])
    >>> average_prices(px, sz, 203.0)
    array([101.5,   nan])
    """
    # ASSUMED: The notional of a slippage sample is the amount paid or received, not the size times
    # the mid price.
    notional = px * sz
    before = np.cumsum(notional, axis=1) - notional
    taken = np.clip(usd - before, 0.0, notional)
    coins = np.cumsum(taken / px, axis=1)[:, -1]
    is_enough = before[:, -1] + notional[:, -1] >= usd
    return np.asarray(np.where(is_enough, usd / coins, np.nan))


def least_beyond_bps(
    usd: Floats, larger: tuple[Floats, Floats], smaller: tuple[Floats, Floats], sign: int | Ints
) -> Floats:
    """Return the least possible slippage of an order, from two smaller ones in the same book.

    A taker meets worse and worse prices. Each dollar beyond the larger of the two sizes
    therefore costs at least as much as the dollars between them did on average.

    Parameters
    ----------
    usd : array of float
        Notional, above both sizes.
    larger, smaller : tuple of two arrays of float
        Notional and slippage in bps of two sizes; for the smaller one both may be 0.
    sign : int or array of int
        1 for buying, -1 for selling.

    Returns
    -------
    array of float
        Basis points of mid.

    Examples
    --------
    Buying 1000 USD costs 10 bps and 3000 USD 20 bps, so the last 2000 USD cost 25 bps, and
    another 1000 USD at least as much: 4000 USD cost (3000 * 20 + 1000 * 25) / 4000 bps or more.

    >>> pair = (np.array([3000.0]), np.array([20.0])), (np.array([1000.0]), np.array([10.0]))
    >>> least_beyond_bps(np.array([4000.0]), *pair, 1).round(2)
    array([21.25])
    """
    (large_usd, large_bps), (small_usd, small_bps) = larger, smaller
    # Sizes at mid: notional over the average price.
    large_size = large_usd / (1 + sign * large_bps / 1e4)
    small_size = small_usd / (1 + sign * small_bps / 1e4)
    size = large_size + (usd - large_usd) * (large_size - small_size) / (large_usd - small_usd)
    return np.asarray(sign * (usd / size - 1) * 1e4)
