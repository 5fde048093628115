"""Decimal numbers as the service writes them."""

from decimal import Decimal


def format_decimal(number: Decimal) -> str:
    """Return a decimal as text: no exponent, no trailing zeros, at least one decimal place.

    Examples
    --------
    >>> format_decimal(Decimal("12.500")), format_decimal(Decimal("1E+2"))
    ('12.5', '100.0')
    >>> format_decimal(Decimal("-0.0"))
    '0.0'
    """
    if not number:
        return "0.0"
    integer, _, fraction = f"{number:f}".partition(".")
    return f"{integer}.{fraction.rstrip('0') or '0'}"
