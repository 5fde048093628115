"""What the sheets share: rows of returns and trips, the figures of round trips, the result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.performance import _ratios as ratios
from toolkit.performance._ratios import NAN, Figure
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.groups import split_groups
from toolkit.prepare.provenance import finish
from toolkit.statistics import check_level
from toolkit.times import DAY, HOUR

YEAR = 365 * DAY
"""Milliseconds of a year, for figures per year."""

Group = tuple[object, ...]
"""The values of the keys of a group."""

_COMPLETE = ("closed", "liquidated")
_DTYPES = {
    "figure": "str", "value": "float64", "low": "float64", "high": "float64", "n": "int64",
    "unit": "str", "basis": "str", "method": "str",
}  # fmt: skip
_KEY_DTYPES = {"month": "datetime64[ms, UTC]", "hour": "int64", "forced": "bool"}


def complete_trips(trips: Frame, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return the complete trips with the month in which they closed, and warn of the others.

    `more` names further columns.
    """
    table = Table(trips, "trips")
    needed = ("status", "net", "duration_hours", "closed", *more)
    rows = table.columns(needed, ("user",), ("net", "duration_hours"))
    rows["month"] = month_start(table.ms("closed"))
    complete = rows["status"].isin(_COMPLETE) & rows["net"].notna()
    if missing := int((~complete).sum()):
        warn_caller(
            f"trips: {missing:,} of {count_text(len(rows), 'trip')} "
            f"{'does' if missing == 1 else 'do'} not count: not complete, or without a known net. "
            "The columns status and funded_hours say why",
            HistoryWarning,
        )
    # Rows in any order must come in the same one, for the dependence between neighbours.
    keys = ["closed", "net", "duration_hours"]
    return rows[complete].sort_values(keys, kind="stable", ignore_index=True)


def month_start(ms: Ints) -> pd.DatetimeIndex:
    """Return the start of the month of each time, UTC."""
    return utc_times(ms.view("M8[ms]").astype("M8[M]").astype("M8[ms]").view(np.int64))


Columns = dict[str, Any]
"""Columns of returns as arrays, sorted by account and time."""


def read_returns(
    returns: Frame, needed: Sequence[str] = (), optional: Sequence[str] = ()
) -> tuple[Table, Columns, list[str]]:
    """Return the table of returns, its columns by account and time, and the accounts.

    ``ms`` is the start of a period, ``user`` the number of the account; ``step`` and ``usual`` are
    the distances of all rows and of those with a known return, in milliseconds: those of the other
    accounts for an account with one row, and a day if no distance is known.
    """
    table = Table(returns, "returns")
    table.require(("time", "return_", *needed))
    users, ms = table.text("user", blank=True).sorted(), table.known_ms()
    order = np.lexsort((ms, users.codes))
    refuse_repeated_times(table, users.codes[order], ms[order])
    numbers = ["return_", *(name for name in ("hours", *optional) if table.has(name))]
    columns = {name: table.number(name)[order] for name in numbers}
    ms, user = ms[order], users.codes[order]
    known, (step, usual) = ~np.isnan(columns["return_"]), np.zeros((2, len(ms)))
    for mine in split_groups(user, len(users.values)):
        step[mine] = np.diff(ms[mine]).min() if len(mine) > 1 else 0
        usual[mine] = usual_length(ms[mine[known[mine]]], weekdays=not table.has("hours"))
    for each in (step, usual):
        each[each == 0] = each[each > 0].min() if each.any() else DAY
    return table, columns | {"ms": ms, "user": user, "step": step, "usual": usual}, users.values


def usual_length(ms: Ints, *, weekdays: bool) -> float:
    """Return the usual distance of sorted times in milliseconds, without gaps; 0 for one time.

    With `weekdays`, days without weekends stand for 7 / 5 days each.
    """
    gaps = np.diff(ms)
    if not len(gaps):
        return 0.0
    usual = float(np.median(gaps))
    is_weekday = (ms // DAY + 3) % 7 < 5  # 1970-01-01 was a Thursday
    if weekdays and usual == DAY and ms[-1] - ms[0] >= 7 * DAY and is_weekday.all():
        return 7 / 5 * DAY
    return float(gaps[gaps <= 1.5 * usual].mean())


def known_returns(rows: Columns) -> tuple[Floats, Ints, Floats, Flags, float, float]:
    """Return the known returns of one account, and how many of its periods are in a year.

    - returns, and the begins and lengths of their periods in milliseconds
    - whether each period is whole; the first and the last one may not be
    - usual length of a period in milliseconds, and whole periods in a year
    """
    known = ~np.isnan(rows["return_"])
    returns, begins, usual = (rows[name][known] for name in ("return_", "ms", "usual"))
    lengths, is_whole, length = usual, np.ones(len(returns), dtype=bool), float(DAY)
    if "hours" in rows:
        hours = rows["hours"][known]
        lengths = np.where(hours > 0, hours * HOUR, usual)
        for edge in (slice(0, 1), slice(-1, None)):
            is_whole[edge] = (lengths >= 0.9 * usual)[edge]
    if len(usual):
        length = float(usual[0])
    whole = lengths[is_whole]
    periods = YEAR / float(whole.mean() if len(whole) else length)
    return returns, begins, lengths, is_whole, length, periods


def refuse_repeated_times(table: Table, users: Ints, ms: Ints) -> None:
    """Raise ValueError if an account has two rows at a time; rows are by account and time."""
    repeated = np.flatnonzero((np.diff(ms) == 0) & (np.diff(users) == 0))
    if len(repeated):
        raise ValueError(
            f"{table.what}: an account has two different rows at {utc_times(ms[repeated])[0]}. "
            "Keep one row for each time. Rows of several accounts need a column user"
        )


def figure_table(made: Sequence[tuple[Group, str, Figure]], keys: Sequence[str]) -> pd.DataFrame:
    """Return figures as a table: the keys of the group, its basis, and the figure.

    An interval without width is missing: it would claim to be certain.
    """
    rows = [(*group, basis, *figure) for group, basis, figure in made]
    names = [*keys, "basis", "figure", *Figure._fields[1:]]
    columns = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    dtypes = {key: _KEY_DTYPES.get(key, "str") for key in keys} | _DTYPES
    table = pd.DataFrame({n: pd.Series(columns[n], dtype=dtype) for n, dtype in dtypes.items()})
    low, high = table["low"].to_numpy(), table["high"].to_numpy()
    with np.errstate(invalid="ignore"):
        has_width = high - low > 1e-6 * np.abs(high)
    return table.assign(low=np.where(has_width, low, NAN), high=np.where(has_width, high, NAN))


_TRIP_GROUPS = ("user", "side", "coin", "hour", "month", "forced", "status")


def trip_sheet(
    trips: Frame, by: str | Sequence[str] | None = None, *, level: float = 0.95
) -> pd.DataFrame:
    """Compute the figures of round trips: win rate, payoff, expectancy, holding time.

    Parameters
    ----------
    trips : DataFrame
        As `tk.pnl.round_trips` returns them: ``status, net, duration_hours, closed`` and the
        columns of `by`. Only complete trips count.
    by : str or list of str, optional
        ``"user"``, ``"side"``, ``"coin"``, ``"forced"``, ``"status"``, ``"hour"`` (of the day in
        which the trip opened, 0 to 23, UTC) or ``"month"`` in which it closed. A column ``user``
        always groups.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    DataFrame
        One row per group and figure, with the columns of `by`, and:

        - ``figure`` text: name of the figure, see below
        - ``value`` float64: value of the figure, in the unit of the figure; missing if it cannot be
          computed
        - ``low`` float64: lower end of the interval; missing for facts, for few trips, and for
          an interval without width
        - ``high`` float64: upper end of the interval; missing as ``low``
        - ``n`` int64: number of trips that the figure rests on
        - ``unit`` text: unit of the figure: ``"share"``, ``"ratio"``, ``"USD"``, ``"hours"``,
          ``"count"``
        - ``basis`` text: source of the figure, always ``"trips"``
        - ``method`` text: method of the interval, or ``"fact"`` for what happened itself

        The figures:

        - ``trips``: number of complete trips
        - ``win_rate``: share of trips with a net gain; interval of Wilson
        - ``payoff_ratio``: mean gain / mean loss of a trip
        - ``profit_factor``: sum of gains / sum of losses
        - ``expectancy``: mean net of a trip, in USD
        - ``median_hours``: median holding time; its interval is between two ordered values
        - ``best_trip``: highest net of a trip, in USD
        - ``worst_trip``: lowest net of a trip, in USD

    Raises
    ------
    MissingColumns
        If a column is missing or contains text.
    ValueError
        If `by` or `level` is not valid.

    Warns
    -----
    HistoryWarning
        If trips are not complete, or their net is not known, with their number.

    Notes
    -----
    A trip with a net of exactly 0 is neither a win nor a loss, but counts in ``n``. Ratios need a
    gain and a loss. Intervals of gains and losses are Student's of logarithms, with as many degrees
    of freedom as there are losses (or gains, if they are fewer), and need two of each: rare large
    losses make other intervals too short. Of 25 and of 60 trips with 90 % gains of mean 1 and 10 %
    losses of mean 10, an interval of 95 % held the truth in 91 to 99 % of cases, whatever the
    distribution of the sizes; Student's of the mean in 75 to 94 %. Trips of one account may depend
    on each other: two coins fall together. The intervals know it only of trips that follow each
    other.

    Examples
    --------
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"status": "closed", "net": [4.0, -2.0, 3.0, -1.0],
    ...     "duration_hours": [1.0, 2.0, 3.0, 10.0],
    ...     "closed": pd.date_range("2025-09-01", periods=4, tz="UTC")})
    >>> figures = trip_sheet(trips).set_index("figure")["value"]
    >>> figures[["win_rate", "payoff_ratio", "profit_factor", "expectancy"]].round(2).tolist()
    [0.5, 2.33, 2.33, 1.0]
    """
    check_level(level)
    wanted = [] if by is None else [by] if isinstance(by, str) else list(by)
    if wrong := [name for name in wanted if name not in _TRIP_GROUPS]:
        raise ValueError(f"by must be among {', '.join(_TRIP_GROUPS)}, not {wrong[0]!r}")
    own = [name for name in wanted if name not in ("hour", "month")]
    rows = complete_trips(trips, (*own, *(["opened"] if "hour" in wanted else [])))
    if "hour" in wanted:
        rows = rows.assign(hour=rows["opened"].dt.hour).dropna(subset=["hour"])
    keys = list(dict.fromkeys([*(["user"] if "user" in rows.columns else []), *wanted]))
    groups = rows.groupby(keys, sort=True) if keys else [((), rows)]
    made = [(key, "trips", each) for key, part in groups for each in trip_figures(part, level)]
    return finish(
        figure_table(made, keys), {"trips": trips}, helper="performance.trip_sheet", level=level
    )


def trip_figures(trips: pd.DataFrame, level: float) -> list[Figure]:
    """Return the figures of the complete trips of one group."""
    net = trips["net"].to_numpy(np.float64)
    n = len(net)
    hours = trips["duration_hours"].dropna().to_numpy(np.float64)
    return [
        ratios.plain_figure("trips", n, n, "count"),
        ratios.share_figure("win_rate", int((net > 0).sum()), n, level),
        *ratios.gain_figures(net, level),
        ratios.quantile_figure("median_hours", hours, 0.5, "hours", level),
        ratios.plain_figure("best_trip", net.max() if n else NAN, n, "USD"),
        ratios.plain_figure("worst_trip", net.min() if n else NAN, n, "USD"),
    ]
