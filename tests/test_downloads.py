"""CSV and Excel files of tables, read again by another library."""

import datetime as dt
import io
import random
from decimal import Decimal

import openpyxl
import pandas as pd
import pytest

import toolkit as tk
from toolkit.downloads import downloads, write_excel


def read_sheet(frame):
    file = io.BytesIO()
    write_excel(frame, file)
    return list(openpyxl.load_workbook(file).worksheets[0].iter_rows(values_only=True))


def test_excel_has_all_values():
    frame = pd.DataFrame(
        {
            "coin": ["BTC", "=1+1", None],
            "px": [0.1, 61_234.5, float("nan")],
            "at": pd.to_datetime(["2025-09-01T00:00:00.250Z", None, "2025-09-02T10:00:00.000Z"]),
            "crossed": pd.array([True, None, False], dtype="boolean"),
            "oid": pd.array([7, None, 10**14], dtype="Int64"),
            "parts": [[{"sz": 1}], None, []],
        }
    )
    assert read_sheet(frame) == [
        ("coin", "px", "at", "crossed", "oid", "parts"),
        ("BTC", 0.1, dt.datetime(2025, 9, 1, 0, 0, 0, 250_000), True, 7, '[{"sz":1}]'),
        ("=1+1", 61_234.5, None, None, None, None),
        (None, None, dt.datetime(2025, 9, 2, 10), False, 10**14, "[]"),
    ]


def test_long_numbers_are_text():
    cases = [
        ([Decimal("1.50"), None], [1.5, None]),
        ([Decimal("1.50"), Decimal("1234567890.1234567")], ["1.50", "1234567890.1234567"]),
        (pd.array([5, 10**15 + 1, None], dtype="Int64"), ["5", "1000000000000001", None]),
        (pd.array([-(10**15)], dtype="int64"), ["-1000000000000000"]),
        (pd.array([10**15 - 1], dtype="int64"), [10**15 - 1]),
    ]
    for values, expected in cases:
        frame = pd.DataFrame({"value": values, "row": 1})
        assert read_sheet(frame)[1:] == [(value, 1) for value in expected]


@pytest.mark.parametrize("numbers", ["float", "exact"])
def test_fetched_fills_survive_excel(numbers):
    with tk.local(seed=7, size="tiny", default=False) as session:
        user = session.world["users"][0]
        fills = tk.user_fills_by_time(user, 0, numbers=numbers, session=session).head(300)
    head, *rows = read_sheet(fills)
    assert head == tuple(fills.columns)
    for name, kept in zip(head, zip(*rows, strict=True), strict=True):
        for value, written in zip(fills[name], kept, strict=True):
            if pd.isna(value):
                assert written is None
            elif isinstance(value, pd.Timestamp):
                assert pd.Timestamp(written, tz="UTC") == value
            elif isinstance(value, Decimal):
                assert Decimal(str(written)) == value
            else:
                assert type(value)(written) == value


def test_equal_tables_are_equal_files():
    frame = pd.DataFrame({"net": [random.Random(7).random()]})
    assert downloads("Net", frame, ["net"]) == downloads("Net", frame.copy(), ["net"])


def test_too_many_rows_for_excel_are_refused():
    frame = pd.DataFrame({"a": range(2**20)})
    with pytest.raises(ValueError, match="1,048,576 rows"):
        write_excel(frame, io.BytesIO())
