"""Numbers and addresses as text: a true minus sign, and no value above 0 written as 0."""

from decimal import Decimal

import pytest

from toolkit.plots import formats
from toolkit.plots.formats import MINUS


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
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
    ],
)
def test_numbers_are_formatted_as_text(write, value, text):
    assert write(value) == text


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (0, True, "0.00"),
        (-0.001, True, "0.00"),
        (1234.5, True, "+1,234.50"),
        (-1234.5, False, f"{MINUS}1,234.50"),
        (12_345.6, False, "12,346"),
    ],
)
def test_usd_amounts_are_formatted_as_text(value, signed, text):
    assert formats.usd_amount(value, signed=signed) == text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("no law", "not known (no curve fits the samples)"),
        ("one size", "not known (only one size was filled)"),
        ("never filled", "not known (no order could be filled)"),
    ],
)
def test_missing_capacity_has_reason(reason, text):
    row = {"capacity_usd": float("nan"), "range": reason, "smallest_usd": 1e3, "largest_usd": 1e6}
    assert formats.order_capacity(row) == text
    assert formats.order_capacity({**row, "capacity_usd": 0.0, "range": "no law"}) == "0 USD"
