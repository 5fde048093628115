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


def implied_oracle(
    usdc: Fraction, szi: Fraction, rate: Fraction, samples: int = 1
) -> tuple[Fraction, Fraction]:
    """Return the range of oracle prices that a recorded row allows.

    Parameters
    ----------
    usdc : Fraction
        The payment, USD, as recorded with six decimals.
    szi, rate : Fraction
        Position size and funding rate, both not 0.
    samples : int, default 1
        How many payments the row sums, each at this rate (docs/live_service.md, section 5).

    Returns
    -------
    lowest, highest : Fraction
        However it was rounded, a payment is less than a millionth of a USD from the exact one.
        Of several payments, their mean oracle price.

    Raises
    ------
    ValueError
        If size or rate is 0, since then any price fits; or if there is no sample.

    Examples
    --------
    >>> low, high = implied_oracle(Fraction("-0.002513"), Fraction(2), Fraction("0.0000125"))
    >>> float(low), float(high)
    (100.48, 100.56)

    Three payments in one row, of 2.9 USD on 0.1 BTC at 0.0003333: not 87,009, but

    >>> low, high = implied_oracle(Fraction("-2.9"), Fraction("0.1"), Fraction("0.0003333"), 3)
    >>> round((low + high) / 2, 2) == Fraction("29002.90")
    True
    """
    if not szi or not rate:
        raise ValueError("a payment on no position or at no rate implies no price")
    if samples < 1:
        raise ValueError(f"samples must be at least 1, not {samples!r}")
    last_digit = Fraction(samples, 10**USDC_DECIMALS)
    ends = [-(usdc + shift) / (szi * rate * samples) for shift in (-last_digit, last_digit)]
    return min(ends), max(ends)
