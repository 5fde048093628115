"""Implementation shortfall: the parts of what orders cost."""

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from toolkit.execution import Shortfall
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import ThemeName

_PARTS: Final = ("delay", "trading", "opportunity", "fees", "total")


@draws_result
def shortfall(
    shortfall: Shortfall,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the parts of the implementation shortfall, with intervals.

    Parameters
    ----------
    shortfall : Shortfall
        `tk.execution.shortfall`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A bar for each part and one for the total, in basis points of the decided value. Costs are
        negative. Lines are intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> at = pd.to_datetime([1000, 9000], unit="ms", utc=True)
    >>> orders = pd.DataFrame({"oid": 1, "status": ["open", "filled"], "coin": "XYZ", "side": "B",
    ...     "status_timestamp": at, "timestamp": at[[0, 0]], "orig_sz": 1.0})
    >>> fills = pd.DataFrame({"oid": 1, "coin": "XYZ", "px": [101.0], "sz": 1.0, "side": "B",
    ...     "time": at[1:], "crossed": True, "fee": 0.1})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0], "time": at[:1]})
    >>> found = execution.shortfall(orders, fills, mids)
    >>> [text.get_text() for text in shortfall(found).get_xticklabels()]
    ['delay', 'trading', 'opportunity', 'fees', 'total']
    """
    rows = shortfall.params.set_index("name").loc[list(_PARTS)]
    ax, colours = style.new_axes(ax, theme, transparent)
    values, low, high = (rows[key].to_numpy(np.float64) for key in ("estimate", "low", "high"))
    if not np.isfinite(values).any():
        style.draw_no_data(ax, colours)
        words = "Implementation shortfall: no data."
        return style.finish_axes(ax, colours, words, shortfall.params)
    places = np.arange(len(rows))
    bars = [colours.good if value >= 0 else colours.bad for value in values[:-1]]
    ax.bar(places, values, width=0.62, color=[*bars, colours.total], linewidth=0)
    ax.vlines(places, low, high, color=colours.text, linewidth=1.3)
    axes.add_zero_line(ax, colours)
    for place, value, upper, lower in zip(places, values, high, low, strict=True):
        is_up = value >= 0
        end = np.nanmax([value, upper]) if is_up else np.nanmin([value, lower])
        text = formats.signed_number(round(value, 2))
        axes.label_point(ax, colours, text, (place, end), (0, 4 if is_up else -12))
    ax.margins(y=0.16)
    ax.set_xticks(places, _PARTS)
    ax.yaxis.set_major_formatter(FuncFormatter(formats.signed_number))
    ax.set_ylabel("gain of the account (below 0: a cost),\nbps of the decided value")
    n, missing = int(rows["n"].iloc[0]), int(rows["missing"].iloc[0])
    ax.set_xlabel(f"part of the shortfall of {n:,} orders; {missing:,} more have no price")
    parts = ", ".join(
        f"{name} {formats.signed_number(round(value, 2))} bps"
        for name, value in zip(_PARTS, values, strict=True)
    )
    words = f"Implementation shortfall of {n:,} orders: {parts}."
    return style.finish_axes(ax, colours, words, shortfall.params)
