"""Numbers, days and addresses as text: the same below a figure, in a report and in a widget."""

from decimal import Decimal
from typing import Any, Final

from toolkit.display import short_amount

MINUS: Final = "\N{MINUS SIGN}"
MISSING: Final = "\N{EM DASH}"
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_ROUNDING: Final = 1e-9
"""A share this close to 1 is 1: the rest is the error of floats."""


def true_minus(text: str) -> str:
    """Return a number with a true minus sign; a number that is rounded to 0 has no sign."""
    return text.replace("-", MINUS if text.strip("-0.,% ") else "")


def signed_tick(value: float, _: object = None) -> str:
    """Return the label of a tick with its sign; 0 has none."""
    return f"{value:+g}".replace("-", MINUS) if value else "0"


def usd_tick(value: float, _: object = None) -> str:
    """Return the label of a tick in USD, with thousands separators and a true minus sign."""
    text = f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:,.4g}"
    return text.replace("-", MINUS)


def usd_amount(value: Any, signed: bool = False) -> str:
    """Return an amount: with cents below 10,000, in whole dollars above.

    Examples
    --------
    >>> usd_amount(1234.5), usd_amount(1234567.8), usd_amount(12, signed=True)
    ('1,234.50', '1,234,568', '+12.00')
    >>> usd_amount(0, signed=True)
    '0.00'
    """
    digits = 2 if abs(value) < 10_000 else 0
    text = f"{abs(value):,.{digits}f}"
    is_zero = not text.strip("0.,")
    sign = "" if is_zero else MINUS if value < 0 else "+" if signed else ""
    return sign + text


def short_usd(value: float, _: object = None) -> str:
    """Return the size of an order in as few characters as possible.

    Examples
    --------
    >>> [short_usd(size) for size in (500, 1_000, 250_000, 1_000_000)]
    ['500', '1k', '250k', '1M']
    """
    return short_amount(value).replace("-", MINUS)


def whole_dollars(value: Any) -> str:
    """Return an amount in whole dollars, such as a volume or a notional.

    Examples
    --------
    >>> whole_dollars(1234.5), whole_dollars(0.4), whole_dollars(-0.4)
    ('1,234', '0', '0')
    """
    return true_minus(f"{value:,.0f}")


def whole_number(value: Any) -> str:
    """Return a count with thousands separators."""
    return f"{int(value):,}"


def exact_number(value: Any) -> str:
    """Return a price or a size with all of its digits.

    Examples
    --------
    >>> exact_number(0.1), exact_number(Decimal("1234.500")), exact_number(-3.0)
    ('0.1', '1,234.5', '\N{MINUS SIGN}3')
    """
    whole, _, digits = f"{Decimal(str(value)):,f}".partition(".")
    digits = digits.rstrip("0")
    return true_minus(f"{whole}{'.' if digits else ''}{digits}")


def plain_number(value: float, _: object = None) -> str:
    """Return a number with up to six significant digits."""
    return f"{value:g}"


def signed_number(value: float, _: object = None) -> str:
    """Return a number in short form with a true minus sign, for the ticks of an axis."""
    return f"{value + 0.0:g}".replace("-", MINUS)  # -0.0 has no sign


def basis_points(value: Any) -> str:
    """Return basis points with two decimals.

    Examples
    --------
    >>> basis_points(12.5), basis_points(-0.5), basis_points(-0.001)
    ('12.50', '\N{MINUS SIGN}0.50', '0.00')
    """
    return true_minus(f"{value:,.2f}")


def percent_share(value: Any) -> str:
    """Return a share in percent; a share between 0 and 1 is never written as 0 or as all.

    Examples
    --------
    >>> percent_share(0.1249), percent_share(0.0004), percent_share(-0.05)
    ('12.5 %', 'under 0.1 %', '\N{MINUS SIGN}5.0 %')
    >>> percent_share(0.9998), percent_share(1)
    ('over 99.9 %', '100.0 %')
    """
    if 0 < value < 0.001:
        return "under 0.1 %"
    if 0.9995 <= value < 1 - _ROUNDING:
        return "over 99.9 %"
    return true_minus(f"{value:,.1%}").replace("%", " %")


def signed_rate(value: Any) -> str:
    """Return a change in percent with its sign.

    It has one digit after the point, or two or three if fewer would show 0 or a loss of all.

    Examples
    --------
    >>> signed_rate(0.0123), signed_rate(0.0002), signed_rate(-0.9998), signed_rate(-1)
    ('+1.2 %', '+0.02 %', '\N{MINUS SIGN}99.98 %', '\N{MINUS SIGN}100.0 %')
    """
    for digits in (1, 2, 3):
        percent = round(100 * float(value), digits)
        if percent not in (0.0, -100.0) or abs(percent - 100 * value) < _ROUNDING:
            break
    return true_minus(f"{percent:+,.{digits}f} %")


_UNKNOWN = {
    "no law": "not known (no curve fits the samples)",
    "one size": "not known (only one size was filled)",
    "never filled": "not known (no order could be filled)",
}
"""Why a capacity is missing, by the ``range`` of `tk.slippage.capacity`."""


def order_capacity(row: Any) -> str:
    """Return a row of `tk.slippage.capacity` in USD, never beyond the sampled sizes.

    Examples
    --------
    >>> row = {"capacity_usd": 4e6, "range": "above", "smallest_usd": 1e3, "largest_usd": 1e6}
    >>> order_capacity(row), order_capacity({**row, "capacity_usd": 5e4, "range": "between"})
    ('> 1,000,000 USD (largest sampled)', '50,000 USD')
    >>> order_capacity({**row, "capacity_usd": float("nan"), "range": "no law"})
    'not known (no curve fits the samples)'
    """
    if row["range"] == "above":
        return f"> {whole_dollars(row['largest_usd'])} USD (largest sampled)"
    if row["range"] == "below":
        return f"< {whole_dollars(row['smallest_usd'])} USD (smallest sampled)"
    if row["capacity_usd"] >= 0:
        return f"{whole_dollars(row['capacity_usd'])} USD"
    return _UNKNOWN.get(row["range"], "not known")


def utc_day(value: Any) -> str:
    """Return the day of a time."""
    return f"{value:%Y-%m-%d}"


def time_span(seconds: float, _: object = None) -> str:
    """Return a span of time in seconds, minutes or hours.

    Examples
    --------
    >>> [time_span(seconds) for seconds in (0.5, 30, 300, 7200)]
    ['0.5 s', '30 s', '5 min', '2 h']
    """
    if seconds < 0:
        return f"{MINUS}{time_span(-seconds)}"
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"


def short_address(value: Any) -> str:
    """Return the first and the last characters of an address or a hash."""
    text = str(value)
    return text if len(text) <= 14 else f"{text[:8]}\N{HORIZONTAL ELLIPSIS}{text[-4:]}"


def short_name(name: str) -> str:
    """Return a name, or an address in short form."""
    return f"{name[:6]}...{name[-4:]}" if name[:2] == "0x" and len(name) > 14 else name


def two_decimals(value: Any) -> str:
    """Return a number with two decimals and without a plus sign, such as a cost in USD.

    >>> two_decimals(12345.678), two_decimals(0)
    ('12,345.68', '0.00')
    """
    return true_minus(f"{value:,.2f}")


def signed_cents(value: Any) -> str:
    """Return an amount of USD with two decimals and its sign.

    >>> signed_cents(12345.678), signed_cents(-0.001)
    ('+12,345.68', '0.00')
    """
    text = f"{abs(value):,.2f}"
    return text if text == "0.00" else f"{MINUS if value < 0 else '+'}{text}"


def exact_usd(value: Any) -> str:
    """Return an amount to a millionth of a USD, with at least two digits after the point.

    >>> exact_usd(1234.500000), exact_usd(0.000001)
    ('1,234.50', '0.000001')
    """
    whole, _, digits = f"{abs(value):,.6f}".partition(".")
    return f"{MINUS if value < 0 else ''}{whole}.{digits.rstrip('0').ljust(2, '0')}"


def clock_time(value: Any) -> str:
    """Return a time with milliseconds."""
    return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}"
