"""Users, volume and fees of builders over time, and their shares of the market."""

from typing import Final, Literal

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.builders.cohorts import read_builder_fills
from toolkit.analysis.common.estimate import check_level, wilson_interval
from toolkit.analysis.common.grouping import CALENDAR
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.timestamps import timestamps_from_ms
from toolkit.installation import explain_missing
from toolkit.times import Time

PeriodName = Literal["day", "week", "month"]
_PERIODS: Final = ("day", "week", "month")
_COLUMNS: Final = {
    "builder": "str", "time": "datetime64[ms, UTC]", "active": "int64", "new": "int64",
    "returning": "int64", "before": "int64", "kept": "int64", "retention": "float64",
    "low": "float64", "high": "float64", "fills": "int64", "volume": "float64",
    "revenue": "float64", "volume_share": "float64", "revenue_share": "float64",
    "complete": "bool",
}  # fmt: skip


def activity(
    fills: IntoFrame,
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
        As for `cohorts`, of all users of the builders (any engine). Repeated rows count once.
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
        pandas, one row for each builder and period from its first to the last period:

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
    rows, begin, end = read_builder_fills(fills, None, since, until)
    rows = rows.astype({"user": "str", "builder": "str"})
    earlier = rows[rows["ms"] < begin].groupby("builder")["user"].agg(set)
    rows = rows[rows["ms"] >= begin]
    rows = rows.assign(period=_period_codes(rows["ms"], by))
    last = int(_period_codes(pd.Series([max(end - 1, begin)]), by).iloc[0]) if len(rows) else 0
    totals = rows.groupby("period")[["volume", "usd"]].sum()
    parts = [
        _builder_periods(str(name), part, last, earlier.get(name, set()))
        for name, part in rows.groupby("builder", sort=True)
        if builder is None or name == builder.lower()
    ]
    made = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["period"])
    table = made.reindex(columns=["period", *_COLUMNS])
    whole = totals.reindex(table["period"]).reset_index(drop=True)
    table["volume_share"] = table["volume"] / whole["volume"].where(whole["volume"] > 0)
    table["revenue_share"] = table["revenue"] / whole["usd"].where(whole["usd"] > 0)
    start, after = (_period_start(table["period"] + step, by) for step in (0, 1))
    table["time"] = timestamps_from_ms(start)
    table["complete"] = (after <= end) & (start >= begin)
    _add_retention(table, level)
    table = table[list(_COLUMNS)].astype(_COLUMNS)
    facts = {**result_provenance({"fills": fills}), "helper": "builders.activity", "by": by}
    table.attrs["toolkit"] = facts
    return table


def _period_codes(ms: pd.Series, by: PeriodName) -> pd.Series:
    """Return the number of each time's period."""
    if by != "month":
        length, into = CALENDAR[by]
        return ((ms + into) // length).astype("int64")
    months = ms.to_numpy().astype("int64").astype("datetime64[ms]").astype("datetime64[M]")
    return pd.Series(months.astype("int64"), index=ms.index)


def _period_start(codes: pd.Series, by: PeriodName) -> pd.Series:
    """Return the start of each period, in milliseconds."""
    if by != "month":
        length, into = CALENDAR[by]
        return codes.astype("float64") * length - into
    months = codes.to_numpy().astype("int64").astype("datetime64[M]").astype("datetime64[ms]")
    return pd.Series(months.astype("int64").astype("float64"), index=codes.index)


def _builder_periods(name: str, rows: pd.DataFrame, last: int, known: set[str]) -> pd.DataFrame:
    """Return one row for each period from the first fill of a builder to the last period.

    The users of `known` have earlier fills.
    """
    users = rows.groupby("period")["user"].agg(set)
    sums = rows.groupby("period").agg(
        fills=("ms", "size"), volume=("volume", "sum"), revenue=("usd", "sum")
    )
    before: set[str] = set()
    made = []
    for period in range(int(users.index.min()), last + 1):
        active = users.get(period, set())
        fresh = len(active - known)
        made.append(
            (name, period, len(active), fresh, len(active) - fresh, len(before),
             len(active & before))
        )  # fmt: skip
        known = known | active
        before = active
    names = ["builder", "period", "active", "new", "returning", "before", "kept"]
    table = pd.DataFrame(made, columns=names)
    return table.join(sums, on="period").fillna({"fills": 0, "volume": 0.0, "revenue": 0.0})


def _add_retention(table: pd.DataFrame, level: float) -> None:
    with explain_missing("analysis"):
        from scipy import stats

    before, kept = (table[name].to_numpy(np.float64) for name in ("before", "kept"))
    n = np.where((before > 0) & table["complete"].to_numpy(bool), before, np.nan)
    table["retention"] = kept / n
    z = float(stats.norm.ppf((1 + level) / 2))
    table["low"], table["high"] = wilson_interval(kept / n, n, z)
