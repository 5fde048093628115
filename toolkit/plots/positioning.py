"""Positioning: the net long share of size classes, and the gain since entry."""

from typing import Final, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_ALL: Final = "all"
_NOT_GROUPS: Final = {
    "time", "size", "accounts", "positions", "missing", "long_usd", "short_usd", "net_share", "low",
    "high", "long_accounts", "gain_bps", "crowded_side", "effective_accounts", "top_share",
}  # fmt: skip


@overload
def positioning(
    positioning: pd.DataFrame,
    *,
    ax: None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure: ...


@overload
def positioning(
    positioning: pd.DataFrame, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def positioning(
    positioning: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
    """Draw the net long share of accounts of each size, and the gain of their open positions.

    Parameters
    ----------
    positioning : DataFrame
        `tk.accounts.positioning` of one coin, or of all coins together.
    ax : Axes, optional
        Axes to draw the net long share on, without the panel below.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with both panels; or `ax`. Above: the net long share in percent for each size
        class, with its interval. Below: the gain of open positions since their entry, in percent.
        The x axis is time (UTC); for a single moment it is the size class.

    Raises
    ------
    ValueError
        If there are several coins or other groups, or more than six size classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import accounts
    >>> rows = pd.DataFrame({"user": ["a", "b"], "coin": "X", "szi": [3.0, -2.0],
    ...     "position_value": [330.0, 220.0], "entry_px": [100.0, 110.0]})
    >>> len(positioning(accounts.positioning(rows)).axes)
    2
    """
    rows = positioning
    groups = [name for name in rows.columns if name not in _NOT_GROUPS]
    several = [name for name in groups if rows[name].nunique() > 1]
    if several:
        parts = rows[several[:1]].drop_duplicates()
        raise axes.several_parts_error("positioning", several[0], "positioning", parts)
    has_values = len(rows) > 0
    ratios = (1.7, 1) if has_values else (1,)
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, size=(7.2, 4.6), ratios=ratios
    )
    words = "Positioning: no data."
    if has_values:
        name = axes.group_name(tuple(rows[group].iloc[0] for group in groups)) or "all coins"
        sizes = [size for size in dict.fromkeys(rows["size"]) if size != _ALL] or [_ALL]
        axes.check_drawable(len(sizes), axes.MAX_LINES, "size classes")
        is_series = "time" in rows and rows["time"].nunique() > 1
        draw = _draw_series if is_series else _draw_moment
        draw(panels, colours, rows, sizes)
        axes.set_title(panels[0], colours, name, right=True)
        words = _describe_positioning(rows, sizes, name)
    else:
        style.draw_no_data(panels[0], colours)
    style.finish_axes(panels[0], colours, words, rows)
    return panels[0] if figure is None else figure


def _draw_series(panels: list[Axes], theme: Theme, rows: pd.DataFrame, sizes: list[str]) -> None:
    for number, size in enumerate(sizes):
        own = rows[rows["size"] == size].sort_values("time")
        line = axes.line_style(theme, number)
        low, high = (100 * own[bound].to_numpy(np.float64) for bound in ("low", "high"))
        panels[0].fill_between(own["time"], low, high, color=line.colour, alpha=0.12, linewidth=0)
        columns = zip(panels, (100 * own["net_share"], own["gain_bps"] / 100), strict=False)
        for panel, values in columns:
            panel.plot(
                own["time"], values, color=line.colour, linestyle=line.dashes, linewidth=1.7,
                label=_size_text(size, own),
            )  # fmt: skip
    axes.set_time_axis(panels[-1], rows["time"].min(), rows["time"].max())
    _finish_panels(panels, theme)


def _draw_moment(panels: list[Axes], theme: Theme, rows: pd.DataFrame, sizes: list[str]) -> None:
    table = rows.set_index("size").loc[sizes]
    share, low, high = (
        100 * table[column].to_numpy(np.float64) for column in ("net_share", "low", "high")
    )
    places = np.arange(len(sizes))
    panels[0].errorbar(
        places, share, yerr=np.maximum(np.nan_to_num([share - low, high - share]), 0.0),
        color=theme.good, linestyle="", marker="o", markersize=6, capsize=4,
        label=f"{table['accounts'].sum():,} accounts",
    )  # fmt: skip
    for panel in panels[1:]:
        gain = table["gain_bps"].to_numpy(np.float64) / 100
        colours = [theme.good if value >= 0 else theme.bad for value in gain]
        panel.bar(places, gain, width=0.5, color=colours, linewidth=0)
    names = [_size_text(size, table.loc[[size]], "\n") for size in sizes]
    panels[-1].set_xticks(places, names)
    panels[-1].set_xlim(-0.6, len(sizes) - 0.4)
    panels[-1].set_xlabel("size of the account, USD")
    _finish_panels(panels, theme)


def _size_text(size: str, rows: pd.DataFrame, gap: str = " ") -> str:
    """Return the name of a class, with its number of accounts."""
    return f"{size}{gap}(n = {int(rows['accounts'].max()):,})"


def _finish_panels(panels: list[Axes], theme: Theme) -> None:
    labels = ("net long share, %", "gain since entry, %")
    for panel, label in zip(panels, labels, strict=False):
        axes.add_zero_line(panel, theme)
        panel.spines["bottom"].set_visible(False)
        panel.set_ylabel(label)
        panel.yaxis.set_major_formatter(FuncFormatter(formats.signed_number))
    axes.add_legend(panels[0], theme, ncols=3)


def _describe_positioning(rows: pd.DataFrame, sizes: list[str], name: str) -> str:
    last = rows[rows["time"] == rows["time"].max()] if "time" in rows else rows
    parts = [
        f"{row['size']}: {formats.percent_share(row['net_share'])} net long, "
        f"{int(row['accounts']):,} accounts, {row['effective_accounts']:.1f} effective ones on the "
        f"{row['crowded_side']} side"
        for row in last[last["size"].isin(sizes)].to_dict("records")
    ]
    return f"Positioning of {name} by size of accounts. {'; '.join(parts)}."
