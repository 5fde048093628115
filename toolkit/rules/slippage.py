"""Slippage: what walking a book costs against mid (specification, "Slippage sample")."""

import numpy as np
import numpy.typing as npt

from toolkit.rules.depth import Book, Levels, mid

__all__ = ["half_spread_bps", "least_beyond_bps", "slippage_bps", "walk_bps"]

Floats = npt.NDArray[np.float64]

_DECIMALS = 2


def half_spread_bps(book: Book) -> float | None:
    """Give half the distance of best ask and best bid, in bps of mid, with two decimals.

    Examples
    --------
    >>> half_spread_bps(Book(np.array([[99.0, 1.0]]), np.array([[101.0, 2.0]])))
    100.0
    """
    middle = mid(book)
    if middle is None:
        return None
    return round(float(book.asks[0, 0] - book.bids[0, 0]) / 2 / middle * 1e4, _DECIMALS)


def slippage_bps(book: Book, usd: float) -> tuple[float | None, float | None]:
    """Give the slippage of buying and of selling a notional at once.

    Parameters
    ----------
    book : Book
        Both sides, best first.
    usd : float
        Notional to trade, positive.

    Returns
    -------
    buy, sell : float or None
        Basis points of mid that the average price is worse than mid, with two decimals; None
        where the side does not hold that notional.

    Examples
    --------
    >>> book = Book(np.array([[99.0, 1.0]]), np.array([[101.0, 1.0], [102.0, 10.0]]))
    >>> slippage_bps(book, 203.0)
    (150.0, None)
    """
    middle = mid(book)
    if middle is None:
        return None, None
    return walk_bps(book.asks, usd, middle), walk_bps(book.bids, usd, middle)


def walk_bps(levels: Levels, usd: float, middle: float) -> float | None:
    """Give the cost of taking `usd` from one side, in bps of mid, or None where it is too thin.

    The average price is the notional over the size that it buys or sells, level by level.
    """
    # ASSUMED: the notional of a slippage sample is what is paid or received, not size at mid.
    notional = levels[:, 0] * levels[:, 1]
    filled = np.cumsum(notional)
    if not len(filled) or filled[-1] < usd:
        return None
    last = int(np.searchsorted(filled, usd))
    before = float(filled[last - 1]) if last else 0.0
    size = float(levels[:last, 1].sum()) + (usd - before) / float(levels[last, 0])
    return round(abs(usd / size / middle - 1) * 1e4, _DECIMALS)


def least_beyond_bps(
    usd: Floats, larger: tuple[Floats, Floats], smaller: tuple[Floats, Floats], sign: int
) -> Floats:
    """Give the least that a size can cost, from what two smaller sizes cost in the same book.

    A taker meets worse and worse prices: every dollar beyond the larger of two sizes buys no
    more than the dollars between them did on average.

    Parameters
    ----------
    usd : array of float
        Notional, above both sizes.
    larger, smaller : tuple of two arrays of float
        Notional and slippage in bps of two sizes; for the smaller one both may be 0.
    sign : int
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
    (usd_two, two), (usd_one, one) = larger, smaller
    # Sizes at mid: notional over the average price.
    size_two = usd_two / (1 + sign * two / 1e4)
    size_one = usd_one / (1 + sign * one / 1e4)
    size = size_two + (usd - usd_two) * (size_two - size_one) / (usd_two - usd_one)
    return np.asarray(sign * (usd / size - 1) * 1e4)
