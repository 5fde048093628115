"""PnL over time: gross, after fees, after funding."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import style
from toolkit.plots.periods import LENGTHS, period_of, time_axis
from toolkit.plots.style import Theme, ThemeName

_FEES: Final = ("trading_fee", "builder_fee", "deployer_fee", "rebate")


class _Line(NamedTuple):
    label: str
    values: npt.NDArray[np.float64]
    colour: str
    dashes: str
    marker: str


def cumulative_pnl(
    attribution: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw cumulative PnL: closed PnL, less fees, with funding.

    Parameters
    ----------
    attribution : DataFrame
        `tk.pnl.attribution` by ``"hour"``, ``"day"`` or ``"week"``, float or exact.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        USD over time (UTC); a sum stands at the end of its hour, day or week. Without funding
        rows there is no third line. Unrealised PnL is not part of any.

    Raises
    ------
    ValueError
        If the attribution is not by time.

    Examples
    --------
    >>> hours = pd.DataFrame({"hour": pd.to_datetime([0], unit="ms", utc=True), "funding": [1.0],
    ...     "closed_pnl": [10.0], "trading_fee": [-2.0], "builder_fee": [0.0],
    ...     "deployer_fee": [0.0], "rebate": [0.0]})
    >>> [line.get_label() for line in cumulative_pnl(hours).axes[0].lines[:3]]
    ['gross +10.00', 'after fees +8.00', 'after fees and funding +9.00']
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    times, lines = _lines(attribution, colours) if len(attribution) else ([], [])
    _draw(ax, colours, times, lines) if lines else style.nothing(ax, colours)
    words = _words(times, lines)
    return style.finish(figure, ax, colours, words, style.is_simulated(attribution))


def _lines(rows: pd.DataFrame, theme: Theme) -> tuple[list[pd.Timestamp], list[_Line]]:
    key = period_of(rows)
    rows = rows.sort_values(key, kind="stable")
    times = [rows[key].iloc[0], *(rows[key] + LENGTHS[key])]
    gross = _running(rows, ("closed_pnl",))
    after = gross + _running(rows, _FEES)
    lines = [
        _Line("gross", gross, theme.good, "-", ""),
        _Line("after fees", after, theme.bad, "--", ""),
    ]
    if rows["funding"].notna().any():
        whole = after + _running(rows, ("funding",))
        lines.append(_Line("after fees and funding", whole, theme.total, "-", "o"))
    return times, lines


def _running(rows: pd.DataFrame, names: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Sum columns along time, from 0; a plot is drawn in floats even where the money is exact."""
    steps = sum(rows[name].astype("float64").fillna(0.0).to_numpy() for name in names)
    return np.concatenate([[0.0], np.cumsum(steps)])


def _draw(ax: Axes, theme: Theme, times: list[pd.Timestamp], lines: list[_Line]) -> None:
    moments: Any = [time.to_pydatetime() for time in times]
    for line in lines:
        ax.plot(
            moments,
            line.values,
            drawstyle="steps-post",
            color=line.colour,
            linestyle=line.dashes,
            linewidth=1.9 if line.marker else 1.5,
            marker=line.marker or None,
            markersize=4.5,
            markevery=max(1, len(moments) // 12),
            label=f"{line.label} {style.usd(line.values[-1], signed=True)}",
        )
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01, y=0.08)
    ax.set_ylabel("USD, cumulative")
    time_axis(ax, times[0], times[-1])
    style.usd_axis(ax.yaxis.set_major_formatter)
    style.legend(ax, theme, ncols=3)


def _words(times: list[pd.Timestamp], lines: list[_Line]) -> str:
    if not lines:
        return "Cumulative PnL: no data."
    ends = ", ".join(f"{line.label} {style.usd(line.values[-1], signed=True)}" for line in lines)
    period = f"from {times[0]:%Y-%m-%d %H:%M} to {times[-1]:%Y-%m-%d %H:%M} UTC"
    low, high = min(line.values.min() for line in lines), max(line.values.max() for line in lines)
    return (
        f"Cumulative PnL in USD {period}: it ends at {ends}; "
        f"the lines lie between {style.usd(low)} and {style.usd(high)}."
    )
