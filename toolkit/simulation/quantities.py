"""Exact quantities: scaled integers inside, decimal text at the edge.

Money and sizes are Python integers in units of a power of ten, so that every sum is exact.
A price of a perp with ``sz_decimals`` has ``6 - sz_decimals`` decimals and a size has
``sz_decimals``, so price times size is a whole number of micro-dollars (`MICRO` decimals).
"""

from functools import lru_cache

__all__ = ["MICRO", "WEI", "money", "rounded_share", "text", "units"]

MICRO = 6
"""Decimals of money: one unit is a millionth of a dollar."""

WEI = 8
"""Decimals of spot balances: one unit is 1e-8 of a token."""


def money(micro: int) -> str:
    """Write micro-dollars as `text` does, without looking whether they were written before.

    Examples
    --------
    >>> money(1_250_000), money(-7), money(0)
    ('1.25', '-0.000007', '0.0')
    """
    if not micro:
        return "0.0"
    digits = str(abs(micro)).zfill(MICRO + 1)
    sign = "-" if micro < 0 else ""
    return f"{sign}{digits[:-MICRO]}.{digits[-MICRO:].rstrip('0') or '0'}"


@lru_cache(maxsize=1 << 16)  # a size is written in several events, fills and funding rows
def text(units: int, decimals: int) -> str:
    """Write a scaled integer as the exchange writes numbers: at least one decimal.

    Examples
    --------
    >>> text(1250, 3), text(-7, 2), text(40, 0), text(0, 6)
    ('1.25', '-0.07', '40.0', '0.0')
    """
    if not decimals:
        return f"{units}.0"
    digits = str(abs(units)).zfill(decimals + 1)
    sign = "-" if units < 0 else ""
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:].rstrip('0') or '0'}"


def units(number: str, decimals: int) -> int:
    """Read what `text` wrote with as many decimals.

    Examples
    --------
    >>> units("1.25", 3), units("-0.07", 2), units("40.0", 0)
    (1250, -7, 40)
    """
    whole, _, part = number.partition(".")
    return int(whole + part[:decimals].ljust(decimals, "0"))


def rounded_share(amount: int, part: int, whole: int) -> int:
    """Give ``amount * part / whole``, rounded half away from zero.

    Examples
    --------
    >>> rounded_share(5, 1, 2), rounded_share(-5, 1, 2), rounded_share(7, 1, 3)
    (3, -3, 2)
    """
    product = amount * part
    if product < 0:
        return -((-product * 2 + whole) // (2 * whole))
    return (product * 2 + whole) // (2 * whole)
