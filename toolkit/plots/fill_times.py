"""How soon orders end, and how: by age, filling, cancelling and rejecting against each other."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from toolkit.plots import series, style
from toolkit.plots.style import Theme, ThemeName

if TYPE_CHECKING:
    from toolkit.orders import FillTimes


class _Cause(NamedTuple):
    name: str
    line: str
    word: str


_CAUSES: Final = (
    _Cause("filled", "-", "filled"),
    _Cause("canceled", "--", "cancelled"),
    _Cause("rejected", ":", "rejected"),
)
_OWN: Final = ("cause", "seconds", "probability", "name", "estimate", "low", "high")
_AGES: Final = {
    0.001: "1 ms",
    0.1: "0.1 s",
    1: "1 s",
    10: "10 s",
    60: "1 min",
    600: "10 min",
    3600: "1 h",
    21_600: "6 h",
    86_400: "1 d",
    864_000: "10 d",
}


def fill_times(
    times: "FillTimes",
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how probable each end of an order is by its age.

    Parameters
    ----------
    times : FillTimes
        `tk.orders.time_to_fill`; with groups, of at most six.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Steps of the cumulative incidence of filling, cancelling and rejecting over seconds on a
        logarithmic axis, with bands of the intervals. With groups: filling alone, a line each.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> from toolkit.orders import time_to_fill
    >>> stamps = pd.to_datetime([0, 1, 2], unit="s", utc=True)
    >>> orders = pd.DataFrame({"oid": [1, 2, 3], "status": "filled", "timestamp": stamps[0],
    ...                        "status_timestamp": stamps})
    >>> fill_times(time_to_fill(orders)).axes[0].get_ylabel()
    'share of orders'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    curves = times.curves
    _draw_times(ax, colours, _lines(curves, colours)) if len(curves) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _times_words(times), style.is_simulated(curves))


def _keys(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if name not in _OWN]


def _lines(curves: pd.DataFrame, theme: Theme) -> list[tuple[series.Look, str, pd.DataFrame]]:
    """Return the look, the label and the points of each line: a cause each, or a group each."""
    keys, last = _keys(curves), float(curves["seconds"].max())
    if not keys:
        looks = (theme.good, theme.accent, theme.bad)
        return [
            (series.Look(colour, cause.line, "", False), cause.word, own)
            for cause, colour in zip(_CAUSES, looks, strict=True)
            if len(own := curves[curves["cause"] == cause.name])
        ]
    split = curves.groupby(keys, sort=True, dropna=False)
    if split.ngroups > series.MOST:
        raise ValueError(
            f"at most {series.MOST} groups can be drawn, not {split.ngroups}: pick some"
        )
    return [
        (series.look(theme, number), series.named(key), _extended(own, whole, last))
        for number, (key, whole) in enumerate(split)
        if len(own := whole[whole["cause"] == "filled"])
    ]


def _extended(own: pd.DataFrame, whole: pd.DataFrame, last: float) -> pd.DataFrame:
    """Return a line that goes on to the last age if all orders of its group have ended."""
    ended = whole.groupby("cause")["probability"].last().sum()
    end = own.iloc[[-1]]
    if ended < 1 - 1e-9 or end["seconds"].item() >= last:
        return own
    return pd.concat([own, end.assign(seconds=last)], ignore_index=True)


def _draw_times(ax: Axes, theme: Theme, lines: list[tuple[series.Look, str, pd.DataFrame]]) -> None:
    ages = np.concatenate([own["seconds"].to_numpy(dtype="float64") for *_, own in lines])
    positive = ages[ages > 0]
    # A logarithmic axis has no 0: what ended at once stands at its left edge.
    edge = max(float(positive.min()) / 2, 0.001) if len(positive) else 0.001
    last = max(float(ages.max()), 2 * edge)
    for look, label, own in lines:
        x: Any = np.maximum(own["seconds"].to_numpy(dtype="float64"), edge)
        ax.fill_between(
            x, own["low"], own["high"], step="post", color=look.colour, alpha=0.18, linewidth=0
        )
        ax.step(
            x, own["probability"], where="post", color=look.colour, linestyle=look.line, label=label
        )
    ax.set_xscale("log")
    ticks = [age for age in _AGES if edge <= age <= last]
    ax.set_xlim(edge, last)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(_age))
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("time since the order was placed")
    ax.set_ylabel("share of orders")
    style.legend(ax, theme, ncols=3)


def _age(seconds: float, _: int | None = None) -> str:
    return _AGES.get(seconds, f"{seconds:g} s")


def _times_words(times: "FillTimes") -> str:
    if not len(times.curves):
        return "How orders end by age: no data."
    keys = _keys(times.params)
    parts = [
        " ".join([*(f"{row[key]}:" for key in keys), f"{row['name']} {row['estimate']:.0%}"])
        for row in times.params.dropna(subset="estimate").to_dict("records")
        if row["name"].startswith("filled")
    ]
    return f"How {times.n:,} orders end by age, {times.open:,} still open: {', '.join(parts)}."
