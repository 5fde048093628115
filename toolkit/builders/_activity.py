"""Users, volume and fees of builders over time, and when users had approved a builder."""

from typing import Final, Literal

import numpy as np
import pandas as pd

from toolkit.builders._cohorts import read_builder_fills
from toolkit.prepare.door import NO_TIME, Frame, Names, Table, utc_times
from toolkit.prepare.groups import starts_group, sum_groups
from toolkit.prepare.provenance import finish
from toolkit.statistics import check_level, normal, wilson_interval
from toolkit.times import FIRST_MONDAY, Time

PeriodName = Literal["day", "week", "month"]
_PERIODS: Final = {"day": ("M8[D]", 0), "week": ("M8[W]", FIRST_MONDAY), "month": ("M8[M]", 0)}
"""Unit of a period, and the start of the first one in milliseconds."""
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
    unit, begins = _PERIODS[by]
    # The number of the period of each fill, and of the last moment.
    times = np.append(ms, max(end - 1, begin)) - begins
    numbers = times.view("M8[ms]").astype(unit).astype(np.int64)
    period, after = np.where(is_inside, numbers[:-1], _EARLIER), int(numbers[-1]) + 1
    # One row for each builder and period, from the first period of the builder on.
    first = np.full(len(names), after)
    np.minimum.at(first, codes[is_inside], period[is_inside])
    length = after - first
    offset = np.cumsum(length) - length
    number = int(length.sum())
    code = np.repeat(np.arange(len(length)), length)
    periods = first[code] + np.arange(number) - offset[code]

    # Each user of a builder once in each period.
    builders, users, at = np.unique(np.stack([codes, rows["user"], period]), axis=1)
    is_new = (np.diff(builders, prepend=-1) != 0) | (np.diff(users, prepend=-1) != 0)
    is_kept = ~is_new & (np.diff(at, prepend=_EARLIER) == 1)
    is_cell = at != _EARLIER
    cell = (offset - first)[builders[is_cell]] + at[is_cell]
    active, new, kept = (
        np.bincount(cell[flags[is_cell]], minlength=number) for flags in (is_cell, is_new, is_kept)
    )
    before = np.append(0, active[:-1])[:number]
    before[offset[length > 0]] = 0
    row = (offset - first)[codes[is_inside]] + period[is_inside]
    volume, usd = (
        sum_groups(row, rows[name].to_numpy()[is_inside], number) for name in ("volume", "usd")
    )
    # The sums of all builders in the period.
    same = periods - periods.min(initial=after)
    volumes, fees = (np.bincount(same, each)[same] for each in (volume, usd))
    start, stop = (
        each.astype(unit).astype("M8[ms]").astype(np.int64) + begins
        for each in (periods, periods + 1)
    )
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


FILL_KEYS = ("user", "time", "oid", "tid", "sz")
"""What a fill of one frame has in common with the same fill in another."""

PAYMENT_KEYS = ("user", "time", "coin")
"""Columns that distinguish funding payments."""


def approval_spans(
    approved: Frame, fills: Frame | None = None, funding: Frame | None = None
) -> pd.DataFrame:
    """Find the time ranges in which each user is known to have approved a builder.

    The service does not list approvals. It attributes to a builder every fill and every funding
    payment that its users made while they had approved it. Any other fill of such a user happened
    without an approval.

    Parameters
    ----------
    approved : DataFrame
        `tk.builder_approved_fills_by_time` of one builder: ``user, time, oid``. Repeated rows
        count once.
    fills : DataFrame, optional
        All fills of these users, from `tk.many` with `tk.user_fills_by_time`; ``tid`` and ``sz``
        distinguish fills of one millisecond. Without it no gap is found.
    funding : DataFrame, optional
        `tk.builder_approved_funding_by_time` of the builder: ``user, time``; ``coin`` distinguishes
        payments of one hour. Repeated rows count once; without ``coin`` every row counts.

    Returns
    -------
    DataFrame
        One row for each span, sorted by user and time. Spans are merged if no row lies
        between them.

        - ``user``: account that approved the builder.
        - ``span``: number of the span; 1 is the first of the user.
        - ``after``: last known moment without the approval before the span, UTC; missing if there
          is none. The user approved the builder after it, and at ``first`` at the latest.
        - ``first``: first known moment with the approval, UTC.
        - ``last``: last known moment with the approval, UTC.
        - ``before``: first known moment without the approval after the span, UTC; missing if there
          is none. The user revoked it after ``last``, and before this moment or at it.
        - ``seen``: number of fills and payments in the span; each coin has its own payment.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Notes
    -----
    An approval applies from the block that contains it, and so does a revocation (specification,
    "Builder approval").

    Examples
    --------
    >>> import pandas as pd
    >>> times = pd.to_datetime([1, 2, 3, 4], unit="h", utc=True)
    >>> fills = pd.DataFrame({"user": "a", "time": times, "oid": [1, 2, 3, 4]})
    >>> spans = approval_spans(fills.iloc[[0, 1, 3]], fills)
    >>> spans[["span", "seen"]].assign(until=spans["before"].dt.hour)
       span  seen  until
    0     1     2    3.0
    1     2     1    NaN
    """
    inputs = {"approved": Table(approved, "approved", "fills")}
    known = _read_rows(inputs["approved"], ("oid",), FILL_KEYS)
    seen = [known[["user", "ms"]].assign(held=True)]
    if funding is not None:
        inputs["funding"] = Table(funding, "funding")
        paid = _read_rows(inputs["funding"], (), PAYMENT_KEYS)
        seen.append(paid[["user", "ms"]].assign(held=True))
    if fills is not None:
        inputs["fills"] = Table(fills, "fills")
        every = _read_rows(inputs["fills"], ("oid",), FILL_KEYS)
        every = every[every["user"].isin(known["user"])]
        keys = [name for name in every.columns if name in known]
        is_approved = pd.concat([known[keys], every[keys]]).duplicated().to_numpy()[len(known) :]
        seen.append(every.loc[~is_approved, ["user", "ms"]].assign(held=False))
    rows = pd.concat(seen, ignore_index=True)
    user, names = pd.factorize(rows["user"], sort=True)
    ms, held = rows["ms"].to_numpy(), rows["held"].to_numpy(dtype=bool)
    # A block is one millisecond. Within a block, all or none of a user's fills have the approval.
    order = np.lexsort((held, ms, user))
    user, ms, held = user[order], ms[order], held[order]
    begin = np.flatnonzero(starts_group(user, held))
    end = np.append(begin[1:], len(user)) - 1
    # The runs of one user alternate: with the approval, and without it.
    same = user[begin[1:]] == user[begin[:-1]]
    after = np.append(NO_TIME, np.where(same, ms[end[:-1]], NO_TIME))[: len(begin)]
    before = np.append(np.where(same, ms[begin[1:]], NO_TIME), NO_TIME)[: len(begin)]
    kept = np.flatnonzero(held[begin])
    owner = user[begin[kept]]
    columns = {
        "user": Names(owner % (len(names) + 1), [*names, ""]).texts(),
        "span": np.arange(len(kept)) - np.searchsorted(owner, owner) + 1,
        "after": utc_times(after[kept]),
        "first": utc_times(ms[begin[kept]]),
        "last": utc_times(ms[end[kept]]),
        "before": utc_times(before[kept]),
        "seen": (end - begin + 1)[kept],
    }
    frames = {name: table.frame for name, table in inputs.items()}
    return finish(pd.DataFrame(columns), frames, helper="builders.approval_spans")


def _read_rows(table: Table, needed: tuple[str, ...], keys: tuple[str, ...]) -> pd.DataFrame:
    """Return the columns `keys` with ``ms``; rows that are equal in them are one row."""
    table.require(("user", "time", *needed))
    table.require_some("user", "says whose each row is")
    others = [name for name in keys if name not in ("user", "time") and table.has(name)]
    amounts = [name for name in others if name == "sz"]
    rows = table.columns(("user", *others), (), amounts).assign(ms=table.ms())
    if table.what == "funding" and "coin" not in rows:
        return rows  # payments of several coins would look equal
    return rows.drop_duplicates(ignore_index=True)
