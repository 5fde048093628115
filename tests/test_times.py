"""Times: whatever a person types, to milliseconds and back."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.times import DAY, FIRST_MS, HOUR, LAST_MS, MINUTE, SECOND, to_iso, to_ms

NOON = 1_756_728_000_000  # 2025-09-01 12:00 UTC
milliseconds = st.integers(-2_000_000_000_000, 32_000_000_000_000)


def assert_refused(times, named):
    """Check that `to_ms` refuses each time, and that its message names something."""
    for time in times:
        with pytest.raises(ValueError, match=named):
            to_ms(time, now_ms=NOON)


def test_time_forms_are_equal():
    forms = [
        NOON,
        str(NOON),
        float(NOON),
        np.int64(NOON),
        "2025-09-01T12:00",
        "2025-09-01 12:00",
        "2025-09-01T12:00:00.000Z",
        "2025-09-01T06:00:00-06:00",
        " 2025-09-01T12:00 ",
        "2025-09-01T12:00:00.000999",
        dt.datetime(2025, 9, 1, 12),
        dt.datetime(2025, 9, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        pd.Timestamp("2025-09-01 12:00"),
        np.datetime64("2025-09-01T12:00"),
    ]
    assert [(to_ms(form), type(to_ms(form))) for form in forms] == [(NOON, int)] * len(forms)


def test_times_become_milliseconds():
    cases = [
        ("2025-09-01", NOON - 12 * HOUR),
        (dt.date(2025, 9, 1), NOON - 12 * HOUR),
        ("2025-09-01T12:00:00.123456789", NOON + 123),
        (0, 0),
        ("0", 0),
        (-1, -1),
        ("1969-12-31T23:59:59.999", -1),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
    ]
    assert [to_ms(time) for time, _ in cases] == [expected for _, expected in cases]


def test_ages_count_back():
    gaps = {
        "90s": 90 * SECOND,
        "15m": 15 * MINUTE,
        "4h": 4 * HOUR,
        "7d": 7 * DAY,
        "2w": 14 * DAY,
        " 7 d ": 7 * DAY,
        "0s": 0,
    }
    assert {age: NOON - to_ms(age, now_ms=NOON) for age in gaps} == gaps
    with pytest.raises(ValueError, match="'7d' is an age"):
        to_ms("7d")


def test_invalid_times_are_refused():
    times = [
        *("", "yesterday", "7y", "-7d", "2025-13-01", "2025-02-30"),
        *(1.5, float("nan"), float("inf"), Decimal("1.5"), Fraction(1, 2), np.float64(1.5)),
        *(None, True, np.bool_(True), np.datetime64("NaT"), pd.NaT, np.timedelta64(7, "D")),
        *(np.array([NOON, NOON]), [], {}, b"2025-09-01"),
    ]
    assert_refused(times, "is not a time")


@given(milliseconds, st.integers(0, 999))
def test_time_forms_round_trip(time_ms, microseconds):
    assert to_ms(to_iso(time_ms)) == time_ms
    text = to_iso(time_ms).removesuffix("Z") + f"{microseconds:03d}Z"  # finer digits are cut
    stamp = pd.Timestamp(time_ms, unit="ms", tz="UTC")
    forms = [
        text,
        pd.Timestamp(text),
        pd.Timestamp(text).to_pydatetime(),
        stamp,
        stamp.tz_convert("Asia/Kolkata"),
        stamp.tz_localize(None).to_datetime64(),
    ]
    if not 10**9 <= time_ms < 10**10:  # such a number looks like seconds, and is refused
        forms.append(time_ms)
    assert {to_ms(form) for form in forms} == {time_ms}


def test_other_units_are_refused():
    units = {"seconds": 1, "microseconds": 10**6, "nanoseconds": 10**9}
    for number in (int, str, float, np.int64, np.float64):
        for unit, factor in units.items():
            assert_refused(
                [number(1_756_684_800 * factor)], rf"looks like {unit}, .*1756684800000\b"
            )
        assert to_ms(number(0)) == 0


def test_times_without_a_date_are_refused():
    times = [
        FIRST_MS - 1,
        LAST_MS + 1,
        1e300,
        "99999999d",
        np.datetime64("20000-01-01"),
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-2))),
    ]
    assert_refused(times, "outside the years 1 to 9999")
    assert to_ms(dt.date(1, 1, 1)) == FIRST_MS
    assert to_ms(to_iso(LAST_MS)) == to_ms(LAST_MS) == LAST_MS
