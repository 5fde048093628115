"""The price of a deploy auction.

Source: specification, "Deploy auction status".
"""

from fractions import Fraction

__all__ = ["GAS_DECIMALS", "auction_price"]

GAS_DECIMALS = 8


def auction_price(start: Fraction, floor: Fraction, elapsed: int, duration: int) -> int:
    """Give the price of an auction while nobody has bought.

    Parameters
    ----------
    start, floor : Fraction
        Prices at its start and at its end, in tokens.
    elapsed, duration : int
        Time since its start and its whole length, in seconds; it stays at its floor afterwards.

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
    # ASSUMED: the price of a deploy auction falls in a straight line.
    fallen = (start - floor) * Fraction(min(elapsed, duration), duration)
    price: int = round((start - fallen) * 10**GAS_DECIMALS)
    return price
