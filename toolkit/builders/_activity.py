"""Users, volume and fees of builders over time, and when users had approved a builder."""

from typing import Final, Literal

import numpy as np
import pandas as pd

from toolkit.builders._cohorts import fill_periods, read_builder_fills
from toolkit.prepare.door import NO_TIME, Frame, Names, Table, utc_times
from toolkit.prepare.groups import ratio, starts_group
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
    unit, begins = _PERIODS[by]
    # The number of the period of each fill, and of the last moment.
    times = np.append(rows["ms"], max(end - 1, begin)) - begins
    numbers = times.view("M8[ms]").astype(unit).astype(np.int64)
    rows = rows.assign(period=np.where(rows["ms"] >= begin, numbers[:-1], _EARLIER))
    # Each user of a builder once in each period.
    keys = ["builder", "period"]
    users = rows[["builder", "user", "period"]].drop_duplicates().sort_values("period")
    since_before = users.groupby(["builder", "user"])["period"].diff()
    users = users.assign(active=1, new=since_before.isna(), kept=since_before == 1)
    counts = users.groupby(keys)[["active", "new", "kept"]].sum()
    rows = rows.assign(fills=1).rename(columns={"usd": "revenue"})
    sums = rows.groupby(keys)[["fills", "volume", "revenue"]].sum()
    made = fill_periods(
        counts.join(sums).drop(_EARLIER, level="period", errors="ignore"), int(numbers[-1]) + 1
    )
    periods = made["period"].to_numpy()
    start, stop = (
        each.astype(unit).astype("M8[ms]").astype(np.int64) + begins
        for each in (periods, periods + 1)
    )
    before = made.groupby("builder")["active"].shift(fill_value=0).to_numpy()
    is_complete = (stop <= end) & (start >= begin)
    n = np.where((before > 0) & is_complete, before, np.nan)
    low, high = wilson_interval(made["kept"] / n, n, normal(level))
    whole = made.groupby("period")[["volume", "revenue"]].transform("sum")
    columns = {
        "builder": Names(made["builder"].to_numpy(), names).texts(),
        "time": utc_times(start),
        "active": made["active"],
        "new": made["new"],
        "returning": made["active"] - made["new"],
        "before": before,
        "kept": made["kept"],
        "retention": made["kept"] / n,
        "low": low,
        "high": high,
        **{name: made[name] for name in ("fills", "volume", "revenue")},
        **{f"{name}_share": ratio(made[name], whole[name]) for name in whole},
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
    rows["user"], names = pd.factorize(rows["user"], sort=True)
    # A block is one millisecond. Within a block, all or none of a user's fills have the approval.
    rows = rows.sort_values(["user", "ms", "held"])
    # The runs of one user alternate: with the approval, and without it.
    begin = np.flatnonzero(starts_group(rows["user"].to_numpy(), rows["held"].to_numpy(bool)))
    stop = np.append(begin, len(rows))[1:]
    runs = rows.iloc[begin].rename(columns={"ms": "first"})
    runs = runs.assign(last=rows["ms"].to_numpy()[stop - 1], seen=stop - begin)
    by_user = runs.groupby("user")
    runs["after"] = by_user["last"].shift(fill_value=NO_TIME)
    runs["before"] = by_user["first"].shift(-1, fill_value=NO_TIME)
    spans = runs[runs["held"].astype(bool)]
    columns = {
        "user": Names(spans["user"].to_numpy() % (len(names) + 1), [*names, ""]).texts(),
        "span": spans.groupby("user").cumcount().to_numpy() + 1,
        **{
            name: utc_times(spans[name].to_numpy()) for name in ("after", "first", "last", "before")
        },
        "seen": spans["seen"].to_numpy(),
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
