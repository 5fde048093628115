"""Numbers and addresses as text: a true minus sign, and no value above 0 written as 0."""

from decimal import Decimal

from toolkit.plots import formats
from toolkit.plots.formats import MINUS

NUMBERS = [
    (formats.exact_number, Decimal("0.009611000"), "0.009611"),
    (formats.exact_number, Decimal("1E+3"), "1,000"),
    (formats.exact_number, 1e-7, "0.0000001"),
    (formats.exact_number, -100.0, f"{MINUS}100"),
    (formats.exact_number, -0.0, "0"),
    (formats.percent_share, 0.0004, "under 0.1 %"),
    (formats.percent_share, 0.0002, "under 0.1 %"),
    (formats.percent_share, 0.9994, "99.9 %"),
    (formats.percent_share, 0.9998, "over 99.9 %"),
    (formats.percent_share, 1 - 1e-12, "100.0 %"),
    (formats.percent_share, 1.0002, "100.0 %"),
    (formats.percent_share, 0, "0.0 %"),
    (formats.percent_share, 0.1249, "12.5 %"),
    (formats.percent_share, 12.5, "1,250.0 %"),
    (formats.percent_share, -0.05, f"{MINUS}5.0 %"),
    (formats.signed_rate, 0.0123, "+1.2 %"),
    (formats.signed_rate, -0.0002, f"{MINUS}0.02 %"),
    (formats.signed_rate, -0.9998, f"{MINUS}99.98 %"),
    (formats.signed_rate, -1, f"{MINUS}100.0 %"),
    (formats.signed_rate, 12.5, "+1,250.0 %"),
    (formats.signed_rate, 0, "+0.0 %"),
    (formats.basis_points, -0.5, f"{MINUS}0.50"),
    (formats.basis_points, -0.004, "0.00"),
    (formats.signed_number, -0.0, "0"),
    (formats.signed_number, -2.5, f"{MINUS}2.5"),
    (formats.whole_dollars, -1234.5, f"{MINUS}1,234"),
    (formats.whole_dollars, -0.4, "0"),
    (formats.whole_number, 1234.0, "1,234"),
    (formats.short_address, "0x" + "a" * 40, "0xaaaaaa\N{HORIZONTAL ELLIPSIS}aaaa"),
    (formats.short_address, "0xaaaaaaaaaaaa", "0xaaaaaaaaaaaa"),
]
AMOUNTS = [
    (0, True, "0.00"),
    (-0.001, True, "0.00"),
    (1234.5, True, "+1,234.50"),
    (-1234.5, False, f"{MINUS}1,234.50"),
    (12_345.6, False, "12,346"),
]
CAPACITIES = [
    (float("nan"), "no law", "not known (no curve fits the samples)"),
    (float("nan"), "one size", "not known (only one size was filled)"),
    (float("nan"), "never filled", "not known (no order could be filled)"),
    (0.0, "no law", "0 USD"),
]


def test_values_are_formatted_as_text():
    wrong = [(write.__name__, value) for write, value, text in NUMBERS if write(value) != text]
    wrong += [
        (value, signed)
        for value, signed, text in AMOUNTS
        if formats.usd_amount(value, signed=signed) != text
    ]
    ends = {"smallest_usd": 1e3, "largest_usd": 1e6}
    wrong += [
        (usd, reason)
        for usd, reason, text in CAPACITIES
        if formats.order_capacity({"capacity_usd": usd, "range": reason, **ends}) != text
    ]
    assert wrong == []
