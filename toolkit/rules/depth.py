"""Depth of a book: cumulative USD within given basis points of mid.

Specification, "Depth response": levels at 10, 25, 50, 100, 200 and 500 bps. A book consists of
two arrays of levels, best first: prices and sizes of the bids (falling) and asks (rising).
"""

from typing import NamedTuple

import numpy as np

from toolkit.arrays import Floats

BANDS_BPS = (10, 25, 50, 100, 200, 500)


class Book(NamedTuple):
    """Both sides of a book: each an array of rows (price, size), best price first."""

    bids: Floats
    asks: Floats


def mid_price(book: Book) -> float | None:
    """Return the price half-way between best bid and best ask; None for a one-sided book.

    Examples
    --------
    >>> mid_price(Book(np.array([[99.0, 1.0]]), np.array([[101.0, 2.0]])))
    100.0
    """
    if not len(book.bids) or not len(book.asks):
        return None
    return float(book.bids[0, 0] + book.asks[0, 0]) / 2


def depth_bands(book: Book, bps: tuple[int, ...] = BANDS_BPS) -> list[tuple[int, float, float]]:
    """Return the cumulative depth of both sides within each band around mid.

    Parameters
    ----------
    book : Book
        Both sides, best first.
    bps : tuple of int, optional
        Widths of the bands, basis points of mid.

    Returns
    -------
    list of (bps, bid_depth_usd, ask_depth_usd)
        Price times size, summed over the levels whose distance from mid is at most the width of
        the band; 0 for a one-sided book, which has no mid.

    Examples
    --------
    >>> book = Book(np.array([[99.9, 1.0], [99.0, 1.0]]), np.array([[100.1, 2.0]]))
    >>> depth_bands(book, (10, 100))
    [(10, 99.9, 200.2), (100, 198.9, 200.2)]
    """
    mid = mid_price(book)
    if mid is None:
        return [(width, 0.0, 0.0) for width in bps]
    # The small number makes a level at the edge of a band belong to it in spite of rounding.
    sides = [(np.abs(side[:, 0] / mid - 1) * 1e4 - 1e-9, side[:, 0] * side[:, 1]) for side in book]
    bids, asks = ([float(usd[away <= width].sum()) for width in bps] for away, usd in sides)
    return list(zip(bps, bids, asks, strict=True))


def slippage_bounds(
    usd: Floats, depth: Floats, bps: Floats, half_spread: Floats, sign: int
) -> tuple[Floats, Floats]:
    """Return the least and the most that orders can cost in books of known depth.

    The depth that a band adds to the next narrower band lies between the two widths, and not
    nearer to the mid price than the best price.

    Parameters
    ----------
    usd : array of float, (n,)
        Notional of each order.
    depth : array of float, (n, bands)
        Cumulative depth of the side that the order takes from, USD, the narrowest band first.
    bps : array of float, (bands,)
        Widths of the bands, rising.
    half_spread : array of float, (n,)
        Distance of the best price from mid, bps.
    sign : int
        1 for buying, -1 for selling.

    Returns
    -------
    least, most : array of float, (n,)
        Slippage in bps of mid; `most` is infinite if the order is larger than the depth.

    Examples
    --------
    1000 USD within 10 bps, 3000 within 25, best price 2 bps from mid. Buying 2000 costs at least
    1000 at 2 and 1000 at 10 bps, at most 1000 at 10 and 1000 at 25. 4000 may cost anything above
    1000 at 2, 2000 at 10 and 1000 at 25.

    >>> books, widths = np.array([[1000.0, 3000.0]] * 2), np.array([10.0, 25.0])
    >>> least, most = slippage_bounds(np.array([2e3, 4e3]), books, widths, np.array([2.0] * 2), 1)
    >>> least.round(1), most.round(1)
    (array([ 6. , 11.7]), array([17.5,  inf]))
    """
    before = np.concatenate([np.zeros((len(usd), 1)), depth], axis=1)
    taken = np.clip(usd[:, None] - before[:, :-1], 0.0, np.diff(before))
    rest = usd - taken.sum(axis=1)
    outer = np.broadcast_to(bps, depth.shape)
    inner = np.maximum(
        np.concatenate([np.zeros((len(usd), 1)), outer], axis=1), half_spread[:, None]
    )
    least = _average_slippage(usd, np.column_stack([taken, rest]), inner, sign)
    # The best price may be beyond the narrowest band, which is then empty.
    most = _average_slippage(usd, taken, np.maximum(outer, half_spread[:, None]), sign)
    return least, np.where(rest > 0, np.inf, most)


def _average_slippage(usd: Floats, parts: Floats, bps: Floats, sign: int) -> Floats:
    """Return the slippage of an order whose parts are filled at these distances."""
    size = (parts / (1 + sign * bps / 1e4)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sign * (usd / size - 1) * 1e4)
