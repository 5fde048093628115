"""Numbers, days and names as text, the same below a figure, in a report and in a widget."""

from decimal import Decimal
from typing import Any, Final

__all__ = [
    "MINUS",
    "bps",
    "capacity",
    "count",
    "day",
    "dollars",
    "number",
    "share",
    "short",
    "signed",
]

MINUS: Final = "\N{MINUS SIGN}"


def signed(text: str) -> str:
    """Give a number with a true minus sign, and with none where it is rounded to nothing."""
    return text.replace("-", MINUS if text.strip("-0.,% ") else "")


def dollars(value: Any) -> str:
    """Write an amount to the dollar: a volume, a notional.

    Examples
    --------
    >>> dollars(1234.5), dollars(0.4), dollars(-0.4)
    ('1,234', '0', '0')
    """
    return signed(f"{value:,.0f}")


def count(value: Any) -> str:
    """Write a whole number."""
    return f"{int(value):,}"


def number(value: Any) -> str:
    """Write a price or size with the digits it has.

    Examples
    --------
    >>> number(0.1), number(Decimal("1234.500")), number(-3.0)
    ('0.1', '1,234.5', '\N{MINUS SIGN}3')
    """
    whole, _, digits = f"{Decimal(str(value)):,f}".partition(".")
    digits = digits.rstrip("0")
    return signed(f"{whole}{'.' if digits else ''}{digits}")


def bps(value: Any) -> str:
    """Write basis points.

    Examples
    --------
    >>> bps(12.5), bps(-0.5), bps(-0.001)
    ('12.50', '\N{MINUS SIGN}0.50', '0.00')
    """
    return signed(f"{value:,.2f}")


def share(value: Any) -> str:
    """Write a share in percent; what is not quite none is not written as none.

    Examples
    --------
    >>> share(0.1249), share(0.0004), share(-0.05)
    ('12.5 %', '< 0.1 %', '\N{MINUS SIGN}5.0 %')
    """
    if 0 < value < 0.001:
        return "< 0.1 %"
    return signed(f"{value:,.1%}").replace("%", " %")


_UNKNOWN = {
    "no law": "not known (no curve fits the samples)",
    "one size": "not known (only one size was filled)",
    "never filled": "not known (no order could be filled)",
}
"""Why a capacity is missing, by the ``range`` of `tk.slippage.capacity`."""


def capacity(row: Any) -> str:
    """Write a row of `tk.slippage.capacity` in USD; beyond the sampled sizes only what was seen.

    Examples
    --------
    >>> row = {"capacity_usd": 4e6, "range": "above", "smallest_usd": 1e3, "largest_usd": 1e6}
    >>> capacity(row), capacity({**row, "capacity_usd": 5e4, "range": "between"})
    ('> 1,000,000 USD (largest sampled)', '50,000 USD')
    >>> capacity({**row, "capacity_usd": float("nan"), "range": "no law"})
    'not known (no curve fits the samples)'
    """
    if row["range"] == "above":
        return f"> {dollars(row['largest_usd'])} USD (largest sampled)"
    if row["range"] == "below":
        return f"< {dollars(row['smallest_usd'])} USD (smallest sampled)"
    if row["capacity_usd"] >= 0:
        return f"{dollars(row['capacity_usd'])} USD"
    return _UNKNOWN.get(row["range"], "not known")


def day(value: Any) -> str:
    """Write a day."""
    return f"{value:%Y-%m-%d}"


def short(value: Any) -> str:
    """Write the ends of an address or hash."""
    words = str(value)
    return words if len(words) <= 14 else f"{words[:8]}\N{HORIZONTAL ELLIPSIS}{words[-4:]}"
