"""Numbers and names as text: a true minus sign, and nothing rounded away unsaid."""

from decimal import Decimal

import pytest

from toolkit.plots import texts
from toolkit.plots.texts import MINUS


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (texts.number, Decimal("0.009611000"), "0.009611"),
        (texts.number, Decimal("1E+3"), "1,000"),
        (texts.number, 1e-7, "0.0000001"),
        (texts.number, -100.0, f"{MINUS}100"),
        (texts.number, -0.0, "0"),
        (texts.share, 0.0004, "< 0.1 %"),
        (texts.share, 0, "0.0 %"),
        (texts.share, 0.1249, "12.5 %"),
        (texts.share, 12.5, "1,250.0 %"),
        (texts.share, -0.05, f"{MINUS}5.0 %"),
        (texts.bps, -0.5, f"{MINUS}0.50"),
        (texts.bps, -0.004, "0.00"),
        (texts.dollars, -1234.5, f"{MINUS}1,234"),
        (texts.dollars, -0.4, "0"),
        (texts.count, 1234.0, "1,234"),
        (texts.short, "0x" + "a" * 40, "0xaaaaaa\N{HORIZONTAL ELLIPSIS}aaaa"),
        (texts.short, "0xaaaaaaaaaaaa", "0xaaaaaaaaaaaa"),
    ],
)
def test_values_are_written(write, value, written):
    assert write(value) == written


@pytest.mark.parametrize(
    ("reason", "written"),
    [
        ("no law", "not known (no curve fits the samples)"),
        ("one size", "not known (only one size was filled)"),
        ("never filled", "not known (no order could be filled)"),
    ],
)
def test_missing_capacity_says_why(reason: str, written: str) -> None:
    row = {"capacity_usd": float("nan"), "range": reason, "smallest_usd": 1e3, "largest_usd": 1e6}
    assert texts.capacity(row) == written
    assert texts.capacity({**row, "capacity_usd": 0.0, "range": "no law"}) == "0 USD"
