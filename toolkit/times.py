"""Times and whole numbers: the forms that users type, to Unix milliseconds and back.

The wire carries whole milliseconds. Times use integer arithmetic only, because a float of seconds
cannot represent every millisecond.
"""

import datetime as dt
import operator
import re
from numbers import Integral, Real
from typing import Any, Final, Protocol, SupportsIndex

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

FIRST_MONDAY = 4 * DAY
"""1970-01-05. Weeks begin on Monday, and the epoch was a Thursday."""


class NumpyTime(Protocol):
    """A numpy scalar: a datetime64, or a whole number of milliseconds."""

    @property
    def dtype(self) -> Any:
        """The type of the scalar."""

    def astype(self, dtype: str, /) -> Any:
        """Return the scalar in another type."""


Time = int | str | dt.date | NumpyTime
"""A time as users type it: see `to_ms`. A datetime and a pandas Timestamp are dates, too."""

FIRST_MS: Final = -62_135_596_800_000
"""The first millisecond that a date has: 0001-01-01."""

LAST_MS: Final = 253_402_300_799_999
"""The last millisecond that a date has: 9999-12-31."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_AGO = re.compile(r"\s*(\d{1,20})\s*([smhdw])\s*")
_DIGITS = re.compile(r"\s*-?\d{1,20}\s*")
_FINE = re.compile(r"(\.\d{3})\d+")


def to_ms(time: Time, *, now_ms: int | None = None) -> int:
    """Return a time as Unix milliseconds.

    Parameters
    ----------
    time : int, str, date, datetime, pandas.Timestamp or numpy.datetime64
        Whole milliseconds since 1970 (as a number, also of numpy, or as text of 13 digits or more,
        or ``"0"``); ISO text (``"2025-09-01"``, ``"2025-09-01T12:30:00+02:00"``); an age such as
        ``"90s"``, ``"15m"``, ``"4h"``, ``"7d"``, ``"2w"``, which is subtracted from `now_ms`. A
        time without a zone is UTC.
    now_ms : int, optional
        The present. It is required for ages.

    Returns
    -------
    int
        Milliseconds; finer parts are cut off.

    Raises
    ------
    ValueError
        If the value is not a time, if it looks like seconds, microseconds or nanoseconds, or if it
        is outside the years 1 to 9999.

    Examples
    --------
    >>> to_ms("2025-09-01")
    1756684800000
    >>> to_ms("7d", now_ms=1756684800000)
    1756080000000
    """
    value: Any = time
    ms: int | None = None
    if isinstance(value, str):
        ms = _text_to_ms(value, now_ms)
    elif isinstance(value, dt.date):
        ms = _date_to_ms(value)
    elif (number := whole_number(value)) is not None:
        ms = _check_unit(number)
    elif getattr(value, "ndim", None) == 0 and getattr(value, "dtype", value).kind == "M":
        numpy_ms = int(value.astype("M8[ms]").astype("i8"))
        ms = None if numpy_ms == -(2**63) else numpy_ms  # NaT
    if ms is None:
        raise ValueError(_not_a_time_message(time))
    if not FIRST_MS <= ms <= LAST_MS:
        raise ValueError(
            f"{time!r} is outside the years 1 to 9999. Use a shorter age, a date such as "
            "'2025-09-01', or whole milliseconds"
        )
    return ms


def is_date(time: Time | None) -> bool:
    """Return whether a time is a date without a time of day."""
    if isinstance(time, str):
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", time.strip()))
    return isinstance(time, dt.date) and not isinstance(time, dt.datetime)


def to_iso(time_ms: int) -> str:
    """Return Unix milliseconds as ISO text in UTC.

    Examples
    --------
    >>> to_iso(1756684800000)
    '2025-09-01T00:00:00.000Z'
    """
    moment = _EPOCH + dt.timedelta(milliseconds=time_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % SECOND:03d}Z"


def whole_number(value: object) -> int | None:
    """Return a whole number as an int; None for any other value.

    A number of numpy counts as the Python number that it equals. A float counts if it has no
    fraction. True and False do not count.

    >>> whole_number(2), whole_number(2.0), whole_number(2.5), whole_number(True)
    (2, 2, None, None)
    """
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:  # such as an array
            return None
    # True and numpy.timedelta64 are instances of Integral, too.
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        return int(float(value))
    return None


def _text_to_ms(text: str, now_ms: int | None) -> int | None:
    if age := _AGO.fullmatch(text):
        if now_ms is None:
            raise ValueError(
                f"{text!r} is an age, but the present is not known. Use a date or milliseconds"
            )
        return now_ms - int(age[1]) * _UNITS[age[2]]
    if _DIGITS.fullmatch(text):
        number = _check_unit(int(text))
        if number == 0 or len(text.strip()) >= len("1000000000000"):
            return number
    try:
        return _date_to_ms(dt.datetime.fromisoformat(_FINE.sub(r"\1", text.strip())))
    except ValueError:
        raise ValueError(_not_a_time_message(text)) from None


def _date_to_ms(date: dt.date) -> int | None:
    if date != date:  # pandas.NaT is an instance of datetime
        return None
    if not isinstance(date, dt.datetime):
        date = dt.datetime(date.year, date.month, date.day)
    if date.tzinfo is None:
        date = date.replace(tzinfo=dt.UTC)
    gap = date - _EPOCH
    return gap.days * DAY + gap.seconds * SECOND + gap.microseconds // 1_000


def _check_unit(time: int) -> int:
    """Raise if the number looks like another unit: as milliseconds it would be another date."""
    units = {"seconds": time * SECOND, "microseconds": time // 10**3, "nanoseconds": time // 10**6}
    for unit, ms in units.items():
        if 10**12 <= ms < 10**13:  # from 2001 to 2286
            raise ValueError(
                f"{time} looks like {unit}, but times are milliseconds. Use {ms} or {to_iso(ms)!r}"
            )
    return time


def _not_a_time_message(time: object) -> str:
    return (
        f"{time!r} is not a time. Use whole milliseconds, ISO text such as '2025-09-01' or "
        "'2025-09-01T12:30Z', a date, a datetime, or an age such as '7d'"
    )


def week_begin(time: int) -> int:
    """Return the Monday, 00:00 UTC, before a time; both in Unix milliseconds.

    >>> to_iso(week_begin(to_ms("2025-09-03T12:00Z")))
    '2025-09-01T00:00:00.000Z'
    """
    return (time - FIRST_MONDAY) // WEEK * WEEK + FIRST_MONDAY
