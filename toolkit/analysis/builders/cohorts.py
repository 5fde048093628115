"""Users of a builder over time: weekly cohorts, and the lifetime value of a user."""

from dataclasses import dataclass
from typing import ClassVar

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.builders.revenue import NUMBERS, add_earnings, has_builder
from toolkit.analysis.common import fill_kinds, frame_access, grouping, timestamps, usd_values
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.arrays import Floats
from toolkit.installation import explain_missing
from toolkit.times import FIRST_MONDAY, WEEK, Time, to_ms

NEEDED = ("user", "coin", "px", "sz", "side", "time", "fee", "builder", "builder_fee")


def cohorts(
    fills: IntoFrame, builder: str, *, since: Time | None = None, until: Time | None = None
) -> pd.DataFrame:
    """Count a builder's active users by the week of their first routed fill.

    Parameters
    ----------
    fills : DataFrame
        As for `revenue`, with ``user`` (any engine). Repeated rows count once.
    builder : str
        Address of the builder.
    since, until : time, optional
        First time (inclusive) and end time (exclusive) of the fills. Without them, the first and
        the last fill of any user in the frame. Fills before `since` are not counted, but they show
        which users are older: these users are in no cohort, as they are not ``new`` in `activity`.

    Returns
    -------
    DataFrame
        pandas, one row for each cohort and age, also without activity:

        - ``cohort``: Monday of the week of the first routed fill, UTC.
        - ``age``: weeks since the week of the first routed fill.
        - ``users``: number of users in the cohort, the same at every age.
        - ``active``: number of users with a routed fill in the week; missing if the week is not
          over.
        - ``retention``: ``active / users``; missing if the week is not over.
        - ``volume``: volume of the cohort's routed fills in the week, in USD; missing if the week
          is not over.
        - ``revenue``: builder fees of the cohort's routed fills in the week, in USD; missing if the
          week is not over.
        - ``complete``: whether the week is over.
        - ``earlier``: whether the cohort is that of the first week of the fills, or of the week of
          `since`; its users may have traded before.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no user, px or sz.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "user": ["a", "b", "a"], "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B",
    ...     "time": pd.to_datetime(["2025-09-01", "2025-09-02", "2025-09-09"], utc=True),
    ...     "fee": 0.2, "builder": "0xb", "builder_fee": 0.1})
    >>> cohorts(fills, "0xb", until="2025-09-15")[["age", "users", "active", "retention"]]
       age  users  active  retention
    0    0      2     2.0        1.0
    1    1      2     1.0        0.5
    """
    rows, begin, end = read_builder_fills(fills, builder, since, until)
    rows = rows[rows["ms"].groupby(rows["user"]).transform("min") >= begin]
    week = (rows["ms"] - FIRST_MONDAY) // WEEK
    first = week.groupby(rows["user"]).transform("min")
    rows = rows.assign(cohort=first, age=week - first)
    sizes = rows.groupby("cohort")["user"].nunique()
    last = (end - FIRST_MONDAY) // WEEK  # the week that runs at the end
    if (end - FIRST_MONDAY) % WEEK == 0:
        last -= 1
    grid = _cohort_grid(sizes, last)
    each = rows.groupby(["cohort", "age"])
    found = each.agg(active=("user", "nunique"), volume=("volume", "sum"), revenue=("usd", "sum"))
    made = grid.join(found, on=["cohort", "age"])
    over = ((made["cohort"] + made["age"] + 1) * WEEK + FIRST_MONDAY <= end).astype(bool)
    known = made[["active", "volume", "revenue"]].astype("float64").fillna(0.0).where(over)
    made = pd.DataFrame(
        {
            "cohort": timestamps.timestamps_from_ms(made["cohort"] * WEEK + FIRST_MONDAY),
            "age": made["age"].astype("int64"),
            "users": made["users"].astype("int64"),
            "active": known["active"],
            "retention": known["active"] / made["users"].astype("float64"),
            "volume": known["volume"],
            "revenue": known["revenue"],
            "complete": over,
            "earlier": (made["cohort"] <= (begin - FIRST_MONDAY) // WEEK).astype(bool),
        }
    )
    made.attrs["toolkit"] = {**result_provenance({"fills": fills}), "helper": "builders.cohorts"}
    return made


def _cohort_grid(sizes: pd.Series, last: float) -> pd.DataFrame:
    """Return every cohort at every age that has begun."""
    starts = sizes.index.to_numpy(dtype="float64")
    ages = np.maximum(last - starts, 0).astype("int64") + 1 if len(starts) else np.zeros(0, "int64")
    age = np.concatenate([np.arange(n) for n in ages]) if len(ages) else np.zeros(0)
    return pd.DataFrame(
        {
            "cohort": np.repeat(starts, ages),
            "age": age.astype("float64"),
            "users": np.repeat(sizes.to_numpy(dtype="int64"), ages),
        }
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class LifetimeValue(Estimate):
    """Revenue of a builder from one user, in USD, by weeks since the first routed fill.

    Attributes
    ----------
    params : DataFrame
        One row per week:

        - ``name``: name of the figure
        - ``estimate``: mean revenue of one user, in USD
        - ``low``: lower end of the interval of the mean
        - ``high``: upper end of the interval of the mean

        The figures:

        - ``within 1 week``: mean revenue of one user within the first week, in USD
        - ``within N weeks``: mean revenue of one user within the first N weeks, in USD
    curve : DataFrame
        One row per week:

        - ``weeks``: number of weeks since the first routed fill
        - ``value``: cumulative mean revenue of one user, in USD
        - ``low``: lower end of the interval of the value
        - ``high``: upper end of the interval of the value
        - ``at_risk``: number of users whose first ``weeks`` weeks are within the data
    """

    curve: pd.DataFrame

    picture: ClassVar[str] = "lifetime_value"


def lifetime_value(
    fills: IntoFrame,
    builder: str,
    *,
    weeks: int = 12,
    until: Time | None = None,
    level: float = 0.95,
) -> LifetimeValue:
    """Estimate the builder fees that a new user brings, from the weeks that are observed.

    Parameters
    ----------
    fills : DataFrame
        As for `cohorts`. Repeated rows count once.
    builder : str
        Address of the builder.
    weeks : int, default 12
        Number of weeks, from each user's own first routed fill.
    until : time, optional
        End of the fills, exclusive. Without it, the last fill of any user in the frame.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    LifetimeValue
        ``params`` has a row for each week, named like ``within 4 weeks``: the mean revenue in USD;
        missing beyond the age of the oldest user. ``n`` is the number of users. Intervals are above
        0, as revenue is. They are missing for a single user, and as long as the revenue is 0.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no user, px or sz.
    ValueError
        If `weeks` is less than 1, or `level` is not between 0 and 1.

    Notes
    -----
    The estimate is the sum over the weeks of age of the mean over the users observed through that
    week. So recent users count for their observed weeks only (the partitioned estimator of Lin,
    Feuer, Etzioni and Wax, 1997, if only the end of the data censors). The standard error comes
    from the influence of each user, so that a user's weeks stay together. The interval is computed
    on the logarithmic scale (as for cumulative hazards: Bie, Borgan and Liestøl, 1987), because
    revenue is skewed and cannot be negative. For few users, such intervals contain the mean more
    often than plain ones. Users with a first fill before the data begins look younger than they
    are.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "user": ["a", "b", "a"], "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B",
    ...     "time": pd.to_datetime(["2025-09-01", "2025-09-02", "2025-09-09"], utc=True),
    ...     "fee": 0.2, "builder": "0xb", "builder_fee": [0.1, 0.3, 0.2]})
    >>> made = lifetime_value(fills, "0xb", until="2025-09-16")
    >>> round(made["within 1 week"], 2), round(made["within 2 weeks"], 2)
    (0.2, 0.3)
    """
    check_level(level)
    if weeks < 1:
        raise ValueError(f"weeks must be at least 1, not {weeks}")
    rows, _, end = read_builder_fills(fills, builder, None, until)
    first = rows["ms"].groupby(rows["user"]).transform("min")
    age = ((rows["ms"] - first) // WEEK).astype("int64")
    users, codes = np.unique(rows["user"].to_numpy(dtype=str), return_inverse=True)
    watched = np.zeros(len(users))
    watched[codes] = (end - first.to_numpy(dtype="float64")) // WEEK
    inside = (age < weeks).to_numpy()
    money = np.zeros((len(users), weeks))
    spent = rows["usd"].to_numpy(dtype="float64")
    np.add.at(money, (codes[inside], age.to_numpy()[inside]), spent[inside])
    curve = _value_curve(money, watched, level)
    facts = {
        **result_provenance({"fills": fills}),
        "helper": "builders.lifetime_value",
        "level": level,
    }
    names = [f"within {k} week{'s' if k > 1 else ''}" for k in curve["weeks"]]
    params = curve[["low", "high"]].copy()
    params.insert(0, "estimate", curve["value"])
    params.insert(0, "name", pd.Series(names, dtype="str"))
    for frame in (params, curve):
        frame.attrs["toolkit"] = facts
    return LifetimeValue(
        params=params,
        n=len(users),
        level=level,
        method="mean revenue by week of age over the users watched so long, added up",
        curve=curve,
    )


def _value_curve(money: Floats, watched: Floats, level: float) -> pd.DataFrame:
    """Return the sums of the weekly means over the users observed in each week, with intervals."""
    with explain_missing("analysis"):
        from scipy import stats

    n, weeks = money.shape
    seen = watched[:, None] > np.arange(weeks)
    at_risk = seen.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(seen, money, 0.0).sum(axis=0) / at_risk
        pull = np.where(seen, money - means, 0.0) * (n / np.maximum(at_risk, 1))
    influence = np.cumsum(pull, axis=1)
    spread = np.sqrt((influence**2).sum(axis=0) / max(n - 1, 1) / max(n, 1))
    value = np.cumsum(means)
    half = spread * stats.t.ppf((1 + level) / 2, np.maximum(at_risk - 1, 1))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = np.exp(half / value)
    # An infinite bound means that the interval is not known.
    factor = np.where((at_risk > 1) & (value > 0) & np.isfinite(factor), factor, np.nan)
    return pd.DataFrame(
        {
            "weeks": np.arange(1, weeks + 1),
            "value": value,
            "low": value / factor,
            "high": value * factor,
            "at_risk": at_risk.astype("int64"),
        }
    )


def read_builder_fills(
    fills: IntoFrame, builder: str | None, since: Time | None, until: Time | None
) -> tuple[pd.DataFrame, float, float]:
    """Return the fills of a builder, or of all (None), and when all fills begin and end.

    The rows have `user`, `builder`, `ms`, `volume` and `usd`. Rows before `since` are included,
    because they show which users are not new.
    """
    fills = drop_repeated_rows(fills, "fills")
    frame = frame_access.open_as_floats(fills, "fills", ["px", "sz", "fee", "builder_fee"])
    frame_access.require_columns(frame, NEEDED, "fills")
    frame_access.number_kind(frame, NUMBERS, "fills")
    frame_access.require_some_values(frame, "user", "fills", "says whose each fill is")
    fill_kinds.warn_missing_directions(frame, "fills", outcomes_alone=True)
    frame = grouping.add_ms(frame)
    ends = frame.select(_first=nw.col("_ms").min(), _last=nw.col("_ms").max())
    found = frame_access.pandas_columns(nw.to_native(ends), "fills", ["_first", "_last"])
    begin = float(to_ms(since)) if since is not None else float(found["_first"].iloc[0])
    end = float(to_ms(until)) if until is not None else float(found["_last"].iloc[0]) + 1
    conversion = fill_kinds.is_conversion(frame.columns)
    frame = frame.filter(has_builder(builder) & ~conversion)
    frame_access.require_values(frame, ("user", "px", "sz"), "fills")
    usd_values.warn_missing_builder_fees(frame, "fills")
    usd_values.warn_missing_tokens(frame, "fills")
    frame = add_earnings(frame, "float")
    kept = frame.select(
        "user", "builder", ms=nw.col("_ms"), volume=nw.col("volume"), usd=nw.col("_revenue")
    )
    rows = frame_access.pandas_columns(nw.to_native(kept), "fills", kept.columns)
    rows["ms"] = rows["ms"].astype("float64")
    return rows[rows["ms"] < end].reset_index(drop=True), begin, end
