"""Time along an axis: the hours, days or weeks that results are grouped by."""

from typing import Final

import matplotlib.dates as mdates
import pandas as pd
from matplotlib.axes import Axes

LENGTHS: Final = {
    "hour": pd.Timedelta(hours=1),
    "day": pd.Timedelta(days=1),
    "week": pd.Timedelta(days=7),
}
# Years, months, days, hours, minutes, seconds: a tick, and a tick where the next longer one begins.
_TICKS: Final = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S"]
_ROUND: Final = ["", "%Y", "%d %b", "%d %b", "%H:%M", "%H:%M"]


def period_of(frame: pd.DataFrame) -> str:
    """Name the column of a result that holds its hours, days or weeks.

    Raises
    ------
    ValueError
        If there is none.
    """
    for name in LENGTHS:
        if name in frame.columns:
            return name
    raise ValueError('a figure over time needs a result by="hour", by="day" or by="week"')


def time_axis(ax: Axes, first: pd.Timestamp, last: pd.Timestamp) -> None:
    """Give the x axis few, short dates, and the whole period as its label."""
    locator = mdates.AutoDateLocator(minticks=3, maxticks=8)
    formatter = mdates.ConciseDateFormatter(
        locator, formats=_TICKS, zero_formats=_ROUND, show_offset=False
    )
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)
    ax.set_xlabel(f"{first:%d %b %Y} to {last:%d %b %Y}, UTC")
