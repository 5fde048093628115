"""Figures of round trips: win rate, payoff, expectancy, holding time."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from toolkit.performance import _ratios as ratios
from toolkit.performance._ratios import NAN, Figure
from toolkit.performance._sheet_tables import complete_trips, figure_table
from toolkit.prepare.door import Frame
from toolkit.prepare.provenance import finish
from toolkit.statistics.estimate import check_level

_TRIP_GROUPS = ("user", "side", "coin", "hour", "month", "forced", "status")


def trip_sheet(
    trips: Frame,
    by: str | Sequence[str] | None = None,
    *,
    level: float = 0.95,
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
        ratios.median_figure("median_hours", hours, "hours", level),
        ratios.plain_figure("best_trip", net.max() if n else NAN, n, "USD"),
        ratios.plain_figure("worst_trip", net.min() if n else NAN, n, "USD"),
    ]
