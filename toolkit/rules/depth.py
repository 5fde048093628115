"""Depth of a book: cumulative USD within so many basis points of mid.

Specification, "Depth response": levels at 10, 25, 50, 100, 200 and 500 bps. A book is given as
two arrays of levels, best first: prices and sizes of the bids (falling) and asks (rising).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["BANDS_BPS", "Book", "bands", "mid"]

BANDS_BPS = (10, 25, 50, 100, 200, 500)

Levels = npt.NDArray[np.float64]


class Book(NamedTuple):
    """One side's levels as an array of rows (price, size), best price first."""

    bids: Levels
    asks: Levels


def mid(book: Book) -> float | None:
    """Give the price half-way between best bid and best ask; None for a one-sided book.

    Examples
    --------
    >>> mid(Book(np.array([[99.0, 1.0]]), np.array([[101.0, 2.0]])))
    100.0
    """
    if not len(book.bids) or not len(book.asks):
        return None
    return float(book.bids[0, 0] + book.asks[0, 0]) / 2


def bands(book: Book, bps: tuple[int, ...] = BANDS_BPS) -> list[tuple[int, float, float]]:
    """Give the cumulative depth of both sides within each band of mid.

    Parameters
    ----------
    book : Book
        Both sides, best first.
    bps : tuple of int, optional
        Widths of the bands, basis points of mid.

    Returns
    -------
    list of (bps, bid_depth_usd, ask_depth_usd)
        Price times size summed over the levels not further from mid than the band is wide; 0
        for a one-sided book, which has no mid.

    Examples
    --------
    >>> book = Book(np.array([[99.9, 1.0], [99.0, 1.0]]), np.array([[100.1, 2.0]]))
    >>> bands(book, (10, 100))
    [(10, 99.9, 200.2), (100, 198.9, 200.2)]
    """
    middle = mid(book)
    if middle is None:
        return [(width, 0.0, 0.0) for width in bps]
    # A level that lies on the edge of a band belongs to it, whatever its distance rounds to.
    away = [np.abs(side[:, 0] / middle - 1) * 1e4 - 1e-9 for side in book]
    usd = [side[:, 0] * side[:, 1] for side in book]
    return [
        (
            width,
            float(usd[0][away[0] <= width].sum()),
            float(usd[1][away[1] <= width].sum()),
        )
        for width in bps
    ]
