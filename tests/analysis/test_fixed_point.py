"""Number columns as whole numbers: no digit is lost, however large or fine."""

import narwhals as nw
import pandas as pd
import pytest

from toolkit.analysis.common.fixed_point import rescale, to_float, to_integers
from toolkit.errors import MissingColumns

#  values, least decimals, integers and their decimals
READ = [
    ([], 0, ([], 0)),
    ([], 3, ([], 3)),
    ([1.0, 2.0], 0, ([1, 2], 0)),
    ([1.0, 2.0], 2, ([100, 200], 2)),
    ([0.1, -0.25], 0, ([10, -25], 2)),
    ([0.30000000000000004], 0, ([30000000000000004], 17)),
    ([0.000000000001, 3.0], 0, ([1, 3 * 10**12], 12)),
    ([123456789012345000.0, 0.5], 0, ([1234567890123450000, 5], 1)),
    ([-123456789012345000.0], 2, ([-12345678901234500000], 2)),
    ([-123456789012.0, 0.00000001], 0, ([-12345678901200000000, 1], 8)),
]


def read(values, least=0):
    series = pd.Series(values, dtype="float64", name="px")
    return to_integers(nw.from_native(series, series_only=True), least)


def test_integers_by_hand():
    assert [(values, least, read(values, least)) for values, least, _ in READ] == READ
    assert rescale([1, -2], 1, 3) == [100, -200]
    assert to_float([1, None, -25], 2).tolist()[::2] == [0.01, -0.25]


def test_missing_values_are_refused():
    for missing in (float("nan"), float("inf")):
        with pytest.raises(MissingColumns, match="px"):
            read([1.0, missing])
