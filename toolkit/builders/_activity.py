"""Users, volume and fees of builders over time, and their shares of the market."""

from typing import Final, Literal

import numpy as np
import pandas as pd

from toolkit.arrays import Ints
from toolkit.builders._cohorts import read_builder_fills
from toolkit.prepare.door import Frame, Names, utc_times
from toolkit.prepare.groups import CALENDAR, sum_groups
from toolkit.prepare.provenance import finish
from toolkit.statistics.estimate import check_level, wilson_interval
from toolkit.statistics.quantiles import normal
from toolkit.times import Time

PeriodName = Literal["day", "week", "month"]
_PERIODS: Final = ("day", "week", "month")
_EARLIER: Final = -(10**9)
"""The number of the period of all fills before the first period."""


def activity(
    fills: Frame,
    by: PeriodName = "week",
    *,
    builder: str | None = None,
    since: Time | None = None,
    until: Time | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Count the active, new and returning users of each builder per day, week or month.

    Parameters
    ----------
    fills : DataFrame
        As for `cohorts`, of all users of the builders. Repeated rows count once.
    by : {"day", "week", "month"}, default "week"
        Length of a period, UTC; weeks begin on Monday.
    builder : str, optional
        Only rows of this builder. Shares are of all builders in the frame.
    since, until : time, optional
        First time (inclusive) and end time (exclusive) of the fills. Without them, the
        first and the last fill in the frame.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    DataFrame
        One row for each builder and period from its first to the last period:

        - ``builder``: address of the builder.
        - ``time``: start of the period, UTC.
        - ``active``: number of users with a routed fill in the period.
        - ``new``: number of active users without an earlier routed fill in the frame. Fills before
          `since` count here; without such fills all users of the first period are new.
        - ``returning``: number of active users with an earlier routed fill.
        - ``before``: number of users active in the period before.
        - ``kept``: number of users that are active in the period before and in this one.
        - ``retention``: ``kept / before``; missing without users before, or if the period is not
          complete.
        - ``low``: lower end of Wilson's interval (1927) of the retention.
        - ``high``: upper end of Wilson's interval (1927) of the retention.
        - ``fills``: number of routed fills.
        - ``volume``: volume of the routed fills, in USD.
        - ``revenue``: builder fees of the routed fills, in USD.
        - ``volume_share``: share of the routed volume of all builders in the period.
        - ``revenue_share``: share of the builder fees of all builders in the period.
        - ``complete``: whether the fills cover the whole period.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no user, px or sz.
    ValueError
        If `by` or `level` is not valid.

    Examples
    --------
    User a trades in both weeks, user b only in the first.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "user": ["a", "b", "a"], "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B",
    ...     "time": pd.to_datetime(["2025-09-01", "2025-09-02", "2025-09-09"], utc=True),
    ...     "fee": 0.2, "builder": "0xb", "builder_fee": 0.1})
    >>> activity(fills, until="2025-09-15")[["active", "new", "returning", "kept", "retention"]]
       active  new  returning  kept  retention
    0       2    2          0     0        NaN
    1       1    0          1     1        0.5
    """
    check_level(level)
    if by not in _PERIODS:
        raise ValueError(f"unknown by={by!r}; choose one of {', '.join(_PERIODS)}")
    fills, rows, names, begin, end = read_builder_fills(fills, None, since, until)
    ms, codes = rows["ms"].to_numpy(), rows["builder"].to_numpy()
    is_inside = ms >= begin
    period = np.where(is_inside, _period_codes(ms, by), _EARLIER)
    # One row for each builder and period, from the first period of the builder on.
    after = int(_period_codes(np.array([max(end - 1, begin)]), by)[0]) + 1
    first = np.full(len(names), after)
    np.minimum.at(first, codes[is_inside], period[is_inside])
    length = after - first
    offset = np.cumsum(length) - length
    number = int(length.sum())
    code = np.repeat(np.arange(len(length)), length)
    periods = first[code] + np.arange(number) - offset[code]

    def place(codes: Ints, at: Ints) -> Ints:
        return np.asarray(offset[codes] + at - first[codes])

    # Each user of a builder once in each period.
    builders, users, at = np.unique(np.stack([codes, rows["user"], period]), axis=1)
    is_new = (np.diff(builders, prepend=-1) != 0) | (np.diff(users, prepend=-1) != 0)
    is_kept = ~is_new & (np.diff(at, prepend=_EARLIER) == 1)
    is_cell = at != _EARLIER
    cell = place(builders[is_cell], at[is_cell])
    active, new, kept = (
        np.bincount(cell[flags[is_cell]], minlength=number) for flags in (is_cell, is_new, is_kept)
    )
    before = np.append(0, active[:-1])[:number]
    before[offset[length > 0]] = 0
    row = place(codes[is_inside], period[is_inside])
    volume, usd = (
        sum_groups(row, rows[name].to_numpy()[is_inside], number) for name in ("volume", "usd")
    )
    # The sums of all builders in the period.
    same = periods - periods.min(initial=after)
    volumes, fees = (np.bincount(same, each)[same] for each in (volume, usd))
    start, stop = _period_starts(periods, by), _period_starts(periods + 1, by)
    is_complete = (stop <= end) & (start >= begin)
    n = np.where((before > 0) & is_complete, before, np.nan)
    low, high = wilson_interval(kept / n, n, normal(level))
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "builder": Names(code, names).texts(),
            "time": utc_times(start),
            "active": active,
            "new": new,
            "returning": active - new,
            "before": before,
            "kept": kept,
            "retention": kept / n,
            "low": low,
            "high": high,
            "fills": np.bincount(row, minlength=number),
            "volume": volume,
            "revenue": usd,
            "volume_share": np.where(volumes > 0, volume / volumes, np.nan),
            "revenue_share": np.where(fees > 0, usd / fees, np.nan),
            "complete": is_complete,
        }
    result = pd.DataFrame(columns)
    if builder is not None:
        result = result[result["builder"] == builder.lower()]
    return finish(result, {"fills": fills}, helper="builders.activity", by=by)


def _period_codes(ms: Ints, by: PeriodName) -> Ints:
    """Return the number of each time's period."""
    if by == "month":
        return ms.view("M8[ms]").astype("M8[M]").astype(np.int64)
    length, into = CALENDAR[by]
    return (ms + into) // length


def _period_starts(codes: Ints, by: PeriodName) -> Ints:
    """Return the start of each period, in milliseconds."""
    if by == "month":
        return codes.astype("M8[M]").astype("M8[ms]").astype(np.int64)
    length, into = CALENDAR[by]
    return codes * length - into
