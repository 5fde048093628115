"""Number columns as whole numbers: no digit is lost, however large or fine."""

from decimal import Decimal

import hypothesis.strategies as st
import narwhals as nw
import pandas as pd
import pytest
from hypothesis import given

from toolkit.analysis.common.fixed_point import rescale, to_decimal, to_float, to_integers
from toolkit.errors import MissingColumns

from .examples import EXACT


def read(values, dtype="float64", least=0):
    return to_integers(
        nw.from_native(pd.Series(values, dtype=dtype, name="px"), series_only=True), least
    )


@pytest.mark.parametrize("dtype", ["float64", EXACT])
@pytest.mark.parametrize(
    ("texts", "least", "expected"),
    [
        ([], 0, ([], 0)),
        ([], 3, ([], 3)),
        (["1", "2"], 0, ([1, 2], 0)),
        (["1", "2"], 2, ([100, 200], 2)),
        (["0.1", "-0.25"], 0, ([10, -25], 2)),
        (["0.30000000000000004"], 0, ([30000000000000004], 17)),
        (["0.000000000001", "3"], 0, ([1, 3 * 10**12], 12)),
        (["123456789012345000", "0.5"], 0, ([1234567890123450000, 5], 1)),
        (["-123456789012345000"], 2, ([-12345678901234500000], 2)),
        (["-123456789012", "0.00000001"], 0, ([-12345678901200000000, 1], 8)),
    ],
)
def test_integers_by_hand(texts, least, expected, dtype):
    values = [Decimal(t) if dtype is EXACT else float(t) for t in texts]
    assert read(values, dtype, least) == expected


@given(
    st.lists(
        st.decimals(-(10**9), 10**9, places=6, allow_nan=False).filter(lambda d: d != 0),
        max_size=20,
    )
)
def test_floats_equal_decimals(numbers):
    floats, exact = read([float(n) for n in numbers]), read(numbers, EXACT)
    assert floats == exact
    values, decimals = floats
    assert [Decimal(v).scaleb(-decimals) for v in values] == numbers


def test_missing_values_are_refused():
    for values, dtype in (
        ([1.0, float("nan")], "float64"),
        ([1.0, float("inf")], "float64"),
        ([Decimal(1), None], EXACT),
    ):
        with pytest.raises(MissingColumns, match="column px is missing"):
            read(values, dtype)


def test_integers_round_trip():
    assert rescale([1, -2], 1, 3) == [100, -200]
    assert to_float([1, None, -25], 2).tolist()[::2] == [0.01, -0.25]
    large = 10**17 + 1
    assert to_decimal([large, None, -25], 2).to_pylist() == [
        Decimal(large).scaleb(-2),
        None,
        Decimal("-0.25"),
    ]
    huge = 10**20 + 1
    assert to_decimal([huge, None, -huge], 3).to_pylist() == [
        Decimal(huge).scaleb(-3),
        None,
        Decimal(-huge).scaleb(-3),
    ]
    assert to_decimal([150, -149, 1000], 20).to_pylist() == [
        Decimal("0.000000000000000002"),
        Decimal("-0.000000000000000001"),
        Decimal("0.00000000000000001"),
    ]
