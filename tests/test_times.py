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


@pytest.mark.parametrize(
    "time",
    [
        NOON,
        str(NOON),
        float(NOON),
        np.int64(NOON),
        np.uint64(NOON),
        np.float64(NOON),
        "2025-09-01T12:00",
        "2025-09-01 12:00",
        "2025-09-01T12:00:00Z",
        "2025-09-01T12:00:00.000Z",
        "2025-09-01T14:00:00+02:00",
        "2025-09-01T06:00:00-06:00",
        " 2025-09-01T12:00 ",
        "2025-09-01T12:00:00.000999",
        dt.datetime(2025, 9, 1, 12),
        dt.datetime(2025, 9, 1, 12, tzinfo=dt.UTC),
        dt.datetime(2025, 9, 1, 14, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        pd.Timestamp("2025-09-01 12:00"),
        pd.Timestamp("2025-09-01 12:00", tz="UTC"),
        pd.Timestamp("2025-09-01 14:00", tz="Europe/Berlin"),
        np.datetime64("2025-09-01T12:00"),
        np.datetime64("2025-09-01T12:00:00.000000000"),
    ],
    ids=repr,
)
def test_time_forms_are_equal(time):
    assert to_ms(time) == NOON
    assert type(to_ms(time)) is int


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2025-09-01", NOON - 12 * HOUR),
        (dt.date(2025, 9, 1), NOON - 12 * HOUR),
        ("2025-09-01T12:00:00.123456789", NOON + 123),
        (0, 0),
        ("0", 0),
        (-1, -1),
        ("1969-12-31T23:59:59.999", -1),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
    ],
)
def test_times_become_milliseconds(time, expected):
    assert to_ms(time) == expected


@pytest.mark.parametrize(
    ("age", "gap"),
    [
        ("90s", 90 * SECOND),
        ("15m", 15 * MINUTE),
        ("4h", 4 * HOUR),
        ("7d", 7 * DAY),
        ("2w", 14 * DAY),
        (" 7 d ", 7 * DAY),
        ("0s", 0),
    ],
)
def test_ages_count_back(age, gap):
    assert to_ms(age, now_ms=NOON) == NOON - gap


def test_age_without_present_is_refused():
    with pytest.raises(ValueError, match="'7d' is an age"):
        to_ms("7d")


@pytest.mark.parametrize(
    "time",
    [
        None,
        True,
        "",
        "yesterday",
        "7y",
        "-7d",
        "2025-13-01",
        "2025-02-30",
        1.5,
        float("nan"),
        float("inf"),
        Decimal("1.5"),
        Fraction(1, 2),
        np.datetime64("NaT"),
        pd.NaT,
        np.float64(1.5),
        np.bool_(True),
        np.timedelta64(7, "D"),
        np.array([NOON, NOON]),
        [],
        {},
        b"2025-09-01",
    ],
    ids=repr,
)
def test_invalid_time_is_refused(time):
    with pytest.raises(ValueError, match=r"is not a time\. Use whole milliseconds, ISO text"):
        to_ms(time, now_ms=NOON)


@given(milliseconds)
def test_iso_text_round_trip(time_ms):
    assert to_ms(to_iso(time_ms)) == time_ms


@given(milliseconds, st.integers(0, 999))
def test_finer_digits_are_cut(time_ms, microseconds):
    text = to_iso(time_ms).removesuffix("Z") + f"{microseconds:03d}Z"
    assert to_ms(text) == time_ms
    assert to_ms(pd.Timestamp(text)) == time_ms
    assert to_ms(pd.Timestamp(text).to_pydatetime()) == time_ms


@given(milliseconds)
def test_time_types_are_equal(time_ms):
    stamp = pd.Timestamp(time_ms, unit="ms", tz="UTC")
    assert to_ms(stamp) == time_ms
    assert to_ms(stamp.tz_convert("Asia/Kolkata")) == time_ms
    assert to_ms(stamp.tz_localize(None).to_datetime64()) == time_ms
    if not 10**9 <= time_ms < 10**10:  # such a number looks like seconds, and is refused
        assert to_ms(time_ms) == time_ms


@pytest.mark.parametrize("number", [int, str, float, np.int64, np.float64])
@pytest.mark.parametrize(
    ("time", "unit"),
    [
        (1_756_684_800, "seconds"),
        (1_756_684_800_000_000, "microseconds"),
        (1_756_684_800_000_000_000, "nanoseconds"),
    ],
)
def test_other_units_are_refused(number, time, unit):
    with pytest.raises(ValueError, match=f"looks like {unit}, .* Use 1756684800000 or '2025-09-01"):
        to_ms(number(time))
    assert to_ms(number(0)) == 0


@pytest.mark.parametrize(
    "time",
    [
        FIRST_MS - 1,
        LAST_MS + 1,
        1e300,
        "99999999d",
        np.datetime64("20000-01-01"),
        dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-2))),
    ],
    ids=repr,
)
def test_times_without_a_date_are_refused(time):
    with pytest.raises(ValueError, match=r"is outside the years 1 to 9999\. Use a shorter age"):
        to_ms(time, now_ms=NOON)


def test_first_and_last_time_have_dates():
    assert to_ms(dt.date(1, 1, 1)) == FIRST_MS
    assert to_ms(to_iso(LAST_MS)) == to_ms(LAST_MS) == LAST_MS
