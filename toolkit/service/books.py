"""Books as they are asked for: prices rounded, and no more levels than the exchange shows."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from msgspec.structs import replace

from toolkit.contract.records import BookLevel, L2Book
from toolkit.service.merging import plain

__all__ = ["MOST_LEVELS", "cut", "grouped"]

MOST_LEVELS: Final = 20
"""Levels of one side that are shown."""


def cut(book: L2Book) -> L2Book:
    """Return a book with the best levels of each side, as many as are shown."""
    return replace(book, levels=[levels[:MOST_LEVELS] for levels in book.levels])


def grouped(book: L2Book, digits: int | None, mantissa: int | None) -> L2Book:
    """Return a book whose prices are rounded, and whose levels of one price are one.

    Parameters
    ----------
    book : L2Book
        All levels of it, bids first, best price first.
    digits : int or None
        Significant digits of a price; None leaves prices as they are.
    mantissa : int or None
        What the last digit is a multiple of; None means 1.

    Returns
    -------
    L2Book
        Bids are rounded down and asks up, so that nobody is shown a better price than there is.

    Examples
    --------
    >>> best = BookLevel(px="99.96", sz="1.5", orders=1)
    >>> next_ = BookLevel(px="99.91", sz="2", orders=3)
    >>> book = grouped(L2Book(coin="X", time=0, levels=[[best, next_], []]), 3, None)
    >>> [(one.px, one.sz, one.orders) for one in book.levels[0]]
    [('99.9', '3.5', 4)]
    """
    if digits is None:
        return book
    roundings = (ROUND_FLOOR, ROUND_CEILING)
    levels = [
        _grouped(side, digits, mantissa or 1, rounding)
        for side, rounding in zip(book.levels, roundings, strict=True)
    ]
    return replace(book, levels=levels)


def _grouped(levels: list[BookLevel], digits: int, mantissa: int, rounding: str) -> list[BookLevel]:
    sizes: dict[Decimal, Decimal] = {}
    orders: dict[Decimal, int] = {}
    for level in levels:
        price = Decimal(level.px)
        step = Decimal(mantissa).scaleb(price.adjusted() + 1 - digits)
        rounded = (price / step).to_integral_value(rounding=rounding) * step
        sizes[rounded] = sizes.get(rounded, Decimal(0)) + Decimal(level.sz)
        orders[rounded] = orders.get(rounded, 0) + level.orders
    return [
        BookLevel(px=plain(price), sz=plain(size), orders=orders[price])
        for price, size in sizes.items()
    ]
