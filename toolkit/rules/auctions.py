"""The price of a deploy auction: exact, as the service shows it, and as a float at any time.

Source: specification, "Deploy auction status".
"""

from fractions import Fraction
from typing import Any

GAS_DECIMALS = 8


def auction_price(start: Fraction, floor: Fraction, elapsed: int, duration: int) -> int:
    """Return the exact price of an auction without a buyer.

    Parameters
    ----------
    start, floor : Fraction
        Prices at its start and at its end, in tokens.
    elapsed, duration : int
        Time since its start and its total length, in seconds. Afterwards it stays at its floor.

    Returns
    -------
    int
        10**-8 of a token, rounded to the nearest, halves to even.

    Examples
    --------
    A quarter of the way from 600 to 500:

    >>> auction_price(Fraction(600), Fraction(500), 25, 100)
    57500000000
    """
    # ASSUMED: The price of a deploy auction falls in a straight line.
    price = price_at(start, floor, min(elapsed, duration), duration)
    exact_price: int = round(price * 10**GAS_DECIMALS)
    return exact_price


def price_at(start: Any, floor: Any, elapsed: Any, duration: Any) -> Any:
    """Return the price after `elapsed` of `duration`.

    Examples
    --------
    >>> price_at(600.0, 500.0, 25, 100)
    575.0
    """
    return start - (start - floor) * elapsed / duration


def floor_price(start: Any, current: Any, elapsed: Any, duration: Any) -> Any:
    """Return the price at the end of the line that is at `current` after `elapsed`.

    Examples
    --------
    >>> floor_price(600.0, 575.0, 25, 100)
    500.0
    """
    return start - (start - current) * duration / elapsed


def elapsed_at(start: Any, floor: Any, price: Any, duration: Any) -> Any:
    """Return the elapsed time when the line is at `price`.

    Examples
    --------
    >>> elapsed_at(600.0, 500.0, 575.0, 100)
    25.0
    """
    return (start - price) * duration / (start - floor)
