"""Funding payments: usdc = -szi * oracle price * rate.

Source: clarifications, "How the exchange accounts".

Whole numbers in, whole numbers out: sizes in 10**-a, prices in 10**-b and rates in 10**-c of
their units, so that the product is in 10**-(a + b + c) USD; payments are millionths of a USD.
"""

from fractions import Fraction

__all__ = ["USDC_DECIMALS", "implied_oracle", "payment"]

USDC_DECIMALS = 6


def payment(szi: int, oracle: int, rate: int, decimals: int) -> int:
    """Give the funding that a position receives (positive) or pays (negative).

    Parameters
    ----------
    szi : int
        Signed position size.
    oracle : int
        Oracle price.
    rate : int
        Funding rate of the hour; positive: longs pay.
    decimals : int
        Decimals of the three together.

    Returns
    -------
    int
        Millionths of a USD, rounded to the nearest, halves away from zero, so that both sides of
        a position pay and receive the same.

    Examples
    --------
    2 long at an oracle price of 100.5 and a rate of 0.0000125:

    >>> payment(2, 1005, 125, 1 + 7)
    -2513
    """
    # ASSUMED: funding is rounded to the nearest millionth of a USD, halves away from zero.
    owed = abs(szi * oracle * rate)
    unit = 10 ** (decimals - USDC_DECIMALS) if decimals > USDC_DECIMALS else 1
    finer = 10 ** (USDC_DECIMALS - decimals) if decimals < USDC_DECIMALS else 1
    paid = (2 * owed * finer + unit) // (2 * unit)
    return paid if szi * oracle * rate < 0 else -paid


def implied_oracle(usdc: Fraction, szi: Fraction, rate: Fraction) -> tuple[Fraction, Fraction]:
    """Give the range of oracle prices that a recorded payment allows.

    Parameters
    ----------
    usdc : Fraction
        The payment, USD, as recorded with six decimals.
    szi, rate : Fraction
        Position size and funding rate, both not 0.

    Returns
    -------
    lowest, highest : Fraction
        However it was rounded, a payment is less than a millionth of a USD from the exact one.

    Raises
    ------
    ValueError
        If size or rate is 0: then any price fits.

    Examples
    --------
    >>> low, high = implied_oracle(Fraction("-0.002513"), Fraction(2), Fraction("0.0000125"))
    >>> float(low), float(high)
    (100.48, 100.56)
    """
    if not szi or not rate:
        raise ValueError("a payment on no position or at no rate implies no price")
    last_digit = Fraction(1, 10**USDC_DECIMALS)
    ends = [-(usdc + shift) / (szi * rate) for shift in (-last_digit, last_digit)]
    return min(ends), max(ends)
