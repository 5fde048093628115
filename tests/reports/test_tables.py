"""Numbers and times as text: nothing rounded away unsaid, nothing missing written as 0."""

from decimal import Decimal

import pandas as pd
import pytest

from toolkit.plots.style import MINUS
from toolkit.reports import tables
from toolkit.reports.tables import Column, table


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (tables.exact_usd, Decimal("-288.070111000000000000"), f"{MINUS}288.070111"),
        (tables.exact_usd, Decimal("0E-18"), "0.00"),
        (tables.number, Decimal("0.009611000"), "0.009611"),
        (tables.number, Decimal("1E+3"), "1,000"),
        (tables.share, 0.0004, "< 0.1 %"),
        (tables.share, 0, "0.0 %"),
        (tables.share, 0.1249, "12.5 %"),
        (tables.bps, -0.5, f"{MINUS}0.50"),
        (tables.moment, pd.Timestamp("2025-09-01T00:00:00.007Z"), "2025-09-01 00:00:00.007"),
        (tables.short_hash, "0x" + "a" * 40, "0xaaaaaa\N{HORIZONTAL ELLIPSIS}aaaa"),
        (tables.yes_no, False, "no"),
    ],
)
def test_values_are_written(write, value, written):
    assert write(value) == written


def test_missing_is_a_dash():
    frame = pd.DataFrame({"net": [None, 0.0]}, dtype="float64")
    made = table("Net", frame, [Column("net", "net", tables.usd)])
    assert [row[0] for row in made.rows] == [tables.MISSING, "0"]
