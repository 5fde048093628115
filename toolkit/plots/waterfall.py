"""Where the money came from and went: closed PnL, fees, funding, step by step to net."""

from typing import Any, Final, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import style
from toolkit.plots.style import Theme, ThemeName

STEPS: Final = {
    "closed_pnl": "closed PnL",
    "trading_fee": "trading fees",
    "builder_fee": "builder fees",
    "deployer_fee": "deployer fees",
    "rebate": "rebates",
    "funding": "funding",
    "net": "net",
}


class _Bar(NamedTuple):
    label: str
    value: Any  # float or Decimal; None where not covered
    bottom: float
    top: float
    total: bool


def waterfall(
    attribution: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw an attribution as a waterfall, from closed PnL to net.

    Parameters
    ----------
    attribution : DataFrame
        One row of `tk.pnl.attribution`, float or exact. USD; positive is good for the account.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        What is not covered is written as such, never drawn as 0.

    Raises
    ------
    ValueError
        If the frame has several rows: pick one, or leave out ``by``.

    Examples
    --------
    >>> row = {"closed_pnl": 10.0, "trading_fee": -2.0, "builder_fee": -1.0, "deployer_fee": 0.0,
    ...        "rebate": 0.0, "funding": None, "net": 7.0}
    >>> figure = waterfall(pd.DataFrame([row]))
    >>> [text.get_text() for text in figure.axes[0].texts][0]
    '+10.00'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    if len(attribution) > 1:
        raise ValueError(
            f"a waterfall shows one account or group, not {len(attribution)} rows: pick one"
        )
    bars = _bars(attribution.iloc[0]) if len(attribution) else []
    _draw(ax, colours, bars) if bars else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _words(bars), style.is_simulated(attribution))


def _bars(row: pd.Series) -> list[_Bar]:
    """Let each step begin where the one before ended; the total begins at 0."""
    bars, level = [], 0.0
    for column, label in STEPS.items():
        value = row[column]
        if column == "net" and pd.isna(row["funding"]):
            label = "net, without\nfunding"
        if pd.isna(value):
            bars.append(_Bar(label, None, level, level, False))
            continue
        end = float(value) if column == "net" else level + float(value)
        start = 0.0 if column == "net" else level
        bars.append(_Bar(label, value, start, end, column == "net"))
        level = end
    return bars


def _draw(ax: Axes, theme: Theme, bars: list[_Bar]) -> None:
    for x, bar in enumerate(bars):
        if bar.value is not None:
            height = bar.top - bar.bottom
            ax.bar(x, height, bottom=bar.bottom, width=0.62, color=_colour(bar, theme))
        _label(ax, theme, x, bar)
        if x + 1 < len(bars):
            begin = x + 0.31 if bar.value else x - 0.31
            ax.plot([begin, x + 0.69], [bar.top, bar.top], color=theme.muted, linewidth=0.9)
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.set_xticks(range(len(bars)), [bar.label for bar in bars])
    ax.set_xlim(-0.6, len(bars) - 0.4)
    _leave_room(ax, bars)
    ax.spines["bottom"].set_visible(False)
    ax.set_ylabel("USD")
    style.usd_axis(ax.yaxis.set_major_formatter)


def _leave_room(ax: Axes, bars: list[_Bar]) -> None:
    """Leave room for the values above the bars, and below where a total is negative."""
    levels = [0.0, *(end for bar in bars for end in (bar.bottom, bar.top))]
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0
    ax.set_ylim(low - 0.1 * span if low < 0 else 0.0, high + 0.14 * span)


def _colour(bar: _Bar, theme: Theme) -> str:
    if bar.total:
        return theme.total
    return theme.good if bar.value >= 0 else theme.bad


def _label(ax: Axes, theme: Theme, x: int, bar: _Bar) -> None:
    """Write a value above its bar, below a total that is negative."""
    covered = bar.value is not None
    below = covered and bar.total and bar.top < 0
    ax.annotate(
        style.usd(bar.value, signed=True) if covered else "not\ncovered",
        (x, min(bar.bottom, bar.top) if below else max(bar.bottom, bar.top)),
        xytext=(0, -3 if below else 3),
        textcoords="offset points",
        ha="center",
        va="top" if below else "bottom",
        fontsize=9,
        fontweight="bold" if bar.total else "normal",
        style="normal" if covered else "italic",
        color=theme.text if covered else theme.muted,
    )


def _words(bars: list[_Bar]) -> str:
    if not bars:
        return "Attribution of PnL: no data."
    parts = [
        f"{' '.join(bar.label.split())} "
        + ("not covered" if bar.value is None else style.usd(bar.value, signed=True))
        for bar in bars
    ]
    return f"Waterfall of PnL in USD: {', '.join(parts)}."
