"""Users of a builder over time: weekly cohorts, and the lifetime value of a user."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.builders._revenue import NEEDED, read_builder_trades
from toolkit.prepare.door import Frame, utc_times
from toolkit.prepare.groups import sum_groups
from toolkit.prepare.provenance import finish, state_provenance
from toolkit.statistics import Estimate, check_count, check_level, student
from toolkit.times import FIRST_MONDAY, WEEK, Time, to_ms


def cohorts(
    fills: Frame, builder: str, *, since: Time | None = None, until: Time | None = None
) -> pd.DataFrame:
    """Count a builder's active users by the week of their first routed fill.

    Parameters
    ----------
    fills : DataFrame
        As for `revenue`, with ``user``. Repeated rows count once.
    builder : str
        Address of the builder.
    since, until : time, optional
        First time (inclusive) and end time (exclusive) of the fills. Without them, the first and
        the last fill of any user in the frame. Fills before `since` are not counted, but they show
        which users are older: these users are in no cohort, as they are not ``new`` in `activity`.

    Returns
    -------
    DataFrame
        One row for each cohort and age, also without activity:

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
    fills, rows, _, begin, end = read_builder_fills(fills, builder, since, until)
    rows = rows[rows["first"] >= begin]
    begin, end = begin - FIRST_MONDAY, end - FIRST_MONDAY
    week, cohort = ((rows[name] - FIRST_MONDAY) // WEEK for name in ("ms", "first"))
    rows = rows.assign(cohort=cohort, week=week).rename(columns={"usd": "revenue"})
    cells = rows.groupby(["cohort", "week"])
    sums = cells[["volume", "revenue"]].sum().assign(active=cells["user"].nunique())
    # Every cohort at every age that has begun; the last week may still run.
    made = fill_periods(sums, -(-end // WEEK))
    over, start = (made["week"] + 1) * WEEK <= end, made["cohort"]
    users = made.groupby("cohort")["active"].transform("first")
    known = (
        made[["active"]].assign(retention=made["active"] / users).join(made[["volume", "revenue"]])
    )
    columns = {
        "cohort": utc_times(start.to_numpy() * WEEK + FIRST_MONDAY),
        "age": made["week"] - start,
        "users": users,
        **known.astype("float64").where(over),
        "complete": over,
        "earlier": start <= begin // WEEK,
    }
    return finish(pd.DataFrame(columns), {"fills": fills}, helper="builders.cohorts")


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


def lifetime_value(
    fills: Frame, builder: str, *, weeks: int = 12, until: Time | None = None, level: float = 0.95
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
    check_count(weeks, "weeks")
    fills, rows, _, _, end = read_builder_fills(fills, builder, None, until)
    first = rows.groupby("user")["first"].min()
    user, number = np.searchsorted(first.index, rows["user"]), len(first)
    watched = ((end - first) // WEEK).to_numpy(np.float64)
    age = ((rows["ms"] - rows["first"]) // WEEK).to_numpy()
    inside = age < weeks
    place, usd = user[inside] * weeks + age[inside], rows["usd"].to_numpy()[inside]
    money = sum_groups(place, usd, number * weeks).reshape(number, weeks)
    seen = watched[:, None] > np.arange(weeks)
    at_risk = seen.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        means = np.where(seen, money, 0.0).sum(axis=0) / at_risk
        pull = np.where(seen, money - means, 0.0) * (number / np.maximum(at_risk, 1))
        influence, value = np.cumsum(pull, axis=1), np.cumsum(means)
        error = np.sqrt((influence**2).sum(axis=0) / max(number - 1, 1) / max(number, 1))
        factor = np.exp(error * student(level, np.maximum(at_risk - 1, 1)) / value)
    # An infinite bound means that the interval is not known.
    factor = np.where((at_risk > 1) & (value > 0) & np.isfinite(factor), factor, np.nan)
    ages = np.arange(1, weeks + 1)
    figures = {"value": value, "low": value / factor, "high": value * factor}
    curve = pd.DataFrame({"weeks": ages, **figures, "at_risk": at_risk.astype("int64")})
    facts = {"helper": "builders.lifetime_value", "level": level}
    names = [f"within {k} week{'s' if k > 1 else ''}" for k in curve["weeks"]]
    params = curve[["low", "high"]].copy()
    params.insert(0, "estimate", curve["value"])
    params.insert(0, "name", pd.Series(names, dtype="str"))
    state_provenance((params, curve), {"fills": fills}, **facts)
    return LifetimeValue(
        params=params,
        n=number,
        level=level,
        method="mean revenue by week of age over the users watched so long, added up",
        curve=curve,
    )


def read_builder_fills(
    fills: Frame, builder: str | None, since: Time | None, until: Time | None
) -> tuple[pd.DataFrame, pd.DataFrame, list[str], int, int]:
    """Return all fills as pandas, those of a builder or of all (None), builders, begin and end.

    Fills before `since` are included, because they show which users are not new.
    """
    table, trades, volume, usd, _ = read_builder_trades(fills, builder, ("user", *NEEDED))
    every, names = table.known_ms(), trades.text("builder").sorted()
    rows = pd.DataFrame(
        {
            "user": trades.text("user").codes,
            "builder": names.codes,
            "ms": trades.ms(),
            "volume": volume,
            "usd": usd,
        }
    )
    begin = to_ms(since) if since is not None else int(every.min()) if len(every) else 0
    end = to_ms(until) if until is not None else int(every.max(initial=-1)) + 1
    rows = rows[rows["ms"] < end]
    rows = rows.assign(first=rows.groupby("user")["ms"].transform("min"))
    return table.frame, rows, names.values, begin, end


def fill_periods(sums: pd.DataFrame, after: int) -> pd.DataFrame:
    """Return sums by a key and a period for all periods before `after`, from the key's first on."""
    key, period = map(str, sums.index.names)
    first = sums.reset_index().groupby(key)[period].min()
    every = first.map(lambda start: range(start, after)).explode().astype("int64")
    index = pd.MultiIndex.from_arrays([every.index, every], names=[key, period])
    return sums.reindex(index, fill_value=0).reset_index()
