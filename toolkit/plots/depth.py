"""Depth by distance from mid, and its recovery after a shock."""

from typing import Any, Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.depth import Resilience
from toolkit.plots import axes, formats, style

_SIDES: Final = {"ask": "asks, for buyers", "bid": "bids, for sellers"}


@style.draws_result("Depth by distance from mid")
def depth_profile(profile: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
    """Draw the depth within each distance of mid.

    Parameters
    ----------
    profile : DataFrame
        `tk.depth.profile` of one market.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Cumulative depth in USD over distance in basis points, both on logarithmic axes: the
        middle quantile, and the band from the lowest quantile to the highest.

    Raises
    ------
    ValueError
        If there is more than one market.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "side": ["ask", "bid"], "bps": 10,
    ...                      "n": 5, "q10": 1e3, "q50": 2e3, "q90": 3e3})
    >>> depth_profile(rows).get_ylabel()
    'depth within that distance, USD'
    """
    axes.check_one_part("depth_profile", "market", "profile", profile, ("dex", "coin"))
    panel = style.open_panel(profile, look)
    names = style.not_empty(axes.quantile_columns(profile))
    ax, words = panel.ax, []
    ax.set(xscale="log", yscale="log")
    for number, (side, name) in enumerate(_SIDES.items()):
        rows = profile[profile["side"] == side].sort_values("bps")
        bands = [rows[quantile].where(rows[quantile] > 0) for quantile in names]
        panel.draw_side(number, rows["bps"], bands, name)
        ends = rows.iloc[[0, -1] if len(rows) else []].drop_duplicates()
        texts = [
            f"{formats.usd_amount(row[names[1]])} USD within {row['bps']:g} bps of mid"
            for row in ends.to_dict("records")
        ]
        words.append(f"{name}: {' and '.join(texts) or 'none'}")
    axes.set_ticks(ax.xaxis, sorted(profile["bps"].unique()), formats.plain_number)
    bottom, top = ax.get_ylim()
    if top / bottom < 10:
        ax.set_ylim(bottom / 3, top * 3)
    axes.set_log_ticks(ax.yaxis, formats.short_usd)
    panel.label_axes("distance from mid, bps", "depth within that distance, USD", legend=2)
    coin = str(profile["coin"].iloc[0]) if "coin" in profile else ""
    panel.set_title(coin, right=True)
    return panel.finish(f"Depth by distance from mid, {coin}. {'; '.join(words)}.")


@style.draws_result("Recovery of depth after shocks")
def resilience(resilience: Resilience, **look: Unpack[style.PanelLook]) -> Axes:
    """Draw the recovery of depth after a shock, and its half-life.

    Parameters
    ----------
    resilience : Resilience
        `tk.depth.resilience`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Share of the lost depth that is back, over seconds since the shock: the median, the band
        that contains four fifths of the shocks, the fitted curve, the half-life and its interval.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from toolkit import depth
    >>> seconds = np.arange(-20, 200, 10)
    >>> usd = np.where(seconds < 0, 1000.0, 1000 - 800 * 2.0 ** (-seconds / 30))
    >>> batches = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": 10,
    ...     "timestamp_ms": pd.to_datetime(1000 * (seconds + 20), unit="ms", utc=True),
    ...     "bid_depth_usd": usd, "ask_depth_usd": 5e5})
    >>> resilience(depth.resilience(batches)).get_xlabel()
    'seconds since the shock'
    """
    panel = style.open_panel(resilience.params, look)
    path = style.not_empty(resilience.path)
    ax, theme, times = panel.ax, panel.theme, path["seconds"]
    row: Any = resilience.params.set_index("name").loc["half_life"]
    life, low, high = row["estimate"], row["low"], row["high"]
    band = {"alpha": 0.2, "label": "four fifths of the recoveries"}
    panel.draw_band(times, path["q10"], path["q90"], theme.good, **band)
    ax.plot(times, path["q50"], "o", markersize=4, color=theme.good, label="median")
    interval = ""
    if pd.notna(low):
        interval = f" ({low:.1f} to {high:.1f})"
        ax.axvspan(low, high, color=theme.bad, alpha=0.25, linewidth=0)
    seconds, label = np.linspace(0, times.max(), 200), f"half-life {life:.1f} s{interval}"
    ax.plot(seconds, 1 - 2 ** (-seconds / life), "--", color=theme.bad, label=label)
    ax.plot([life, life], [0, 0.5], ":", color=theme.bad)
    ax.set_xlim(0, seconds[-1])
    y = f"returned share of the depth\nlost within {resilience.bps} bps of mid"
    panel.label_axes("seconds since the shock", y, y_ticks="{x:.0%}", legend=3)
    return panel.finish(
        f"Recovery of depth within {resilience.bps} bps of mid after {resilience.n} shocks, which "
        f"took {resilience['taken']:.0%} of it on average: half-life {life:.1f} seconds{interval}."
    )
