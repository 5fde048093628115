"""Both sides of trades: who gained from whom, and whose trades prices follow."""

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.plots import axes, formats, ranking_rows, style, themes
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MOST_NAMES: Final = 8
_MOST_RANKED: Final = 20


@draws_result
def counterparties(
    pairs: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw what takers gained from makers: one cell for each pair.

    Parameters
    ----------
    pairs : DataFrame
        `tk.execution.counterparties`. The eight takers and the eight makers with the largest
        volume are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Rows are takers, columns are makers. The shade and the first number are the gain of the
        taker in basis points, the second number is the volume in USD.

    Examples
    --------
    >>> import pandas as pd
    >>> pairs = pd.DataFrame({"taker": ["0xa"], "maker": ["0xb"], "volume_usd": [200.0],
    ...     "gain_bps": [50.0]})
    >>> counterparties(pairs).get_ylabel()
    'taker'
    """
    rows = _name_sides(pairs) if len(pairs) else pairs
    takers, makers = (_largest(rows, side) for side in ("taker", "maker"))
    size = (1.9 + 0.85 * max(3, len(makers)), 1.5 + 0.42 * max(3, len(takers)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    if not len(rows):
        style.draw_no_data(ax, colours)
        words = "Who trades against whom: no data."
        return style.finish_axes(ax, colours, words, pairs)
    gains, volumes = (
        rows.pivot_table(
            index="taker", columns="maker", values=name, aggfunc="first", dropna=False
        ).reindex(index=takers, columns=makers)
        for name in ("gain_bps", "volume_usd")
    )
    _draw_gains(ax, colours, gains.to_numpy(np.float64), volumes.to_numpy(np.float64))
    ax.set_yticks(range(len(takers)), takers, parse_math=False)
    ax.set_xticks(range(len(makers)), makers, parse_math=False)
    for label in ax.get_xticklabels():
        label.set(rotation=30, ha="right", rotation_mode="anchor")
    ax.set_ylabel("taker")
    ax.set_xlabel("maker; cells: gain of the taker in bps (below 0: a loss), and volume in USD")
    most = rows.iloc[0]
    words = (
        f"Who trades against whom: {len(rows)} pairs. The largest is {most['taker']} taking from "
        f"{most['maker']}: {formats.usd_amount(most['volume_usd'])} USD, gain of the taker "
        f"{formats.signed_number(round(most['gain_bps'], 2))} bps."
    )
    return style.finish_axes(ax, colours, words, pairs)


def _name_sides(pairs: pd.DataFrame) -> pd.DataFrame:
    names = {
        side: [formats.short_name(name) if isinstance(name, str) else "not known" for name in each]
        for side, each in pairs[["taker", "maker"]].items()
    }
    return pairs.assign(**{str(side): each for side, each in names.items()})


def _largest(rows: pd.DataFrame, side: str) -> list[str]:
    if not len(rows):
        return []
    volume = rows.groupby(side)["volume_usd"].sum().sort_values(ascending=False, kind="stable")
    return [str(name) for name in volume.head(_MOST_NAMES).index]


def _draw_gains(ax: Axes, theme: Theme, gains: Any, volumes: Any) -> None:
    """Draw the cells; gains and losses have the same scale of shades."""
    style.style_axes(ax, theme)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    known = np.abs(gains[np.isfinite(gains)])
    most = float(known.max()) if len(known) and known.max() > 0 else 1.0
    shades = themes.colour_map(theme, "bad", "background", "good")
    ax.imshow(gains, cmap=shades, vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    for (row, column), volume in np.ndenumerate(volumes):
        if not np.isfinite(volume):
            continue
        gain = gains[row, column]
        has_gain = np.isfinite(gain)
        text = formats.signed_number(round(gain, 1)) if has_gain else "no price"
        is_dark = has_gain and abs(gain) > 0.65 * most
        usd = formats.short_usd(float(f"{volume:.3g}"))
        ax.text(
            column, row, f"{text}\n{usd}", ha="center", va="center",
            fontsize=7.5, color=theme.background if is_dark else theme.text, parse_math=False,
        )  # fmt: skip


@draws_result
def toxicity(
    ranking: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw how far prices follow the trades of each account, the most toxic at the top.

    Parameters
    ----------
    ranking : DataFrame
        `tk.execution.toxicity`. The first 20 names are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        One row per name: the measured gain as a hollow dot, the gain after shrinkage as a full dot
        with its interval, in basis points.

    Examples
    --------
    >>> import pandas as pd
    >>> ranking = pd.DataFrame({"name": ["0xa"], "fills": [9], "gain_bps": [3.0],
    ...     "shrunk_bps": [2.0], "low": [1.0], "high": [3.0]})
    >>> toxicity(ranking).get_xlabel()
    'gain after the trade, bps (below 0: a loss)'
    """
    rows = ranking.head(_MOST_RANKED)
    size = (7.2, max(1.9, 0.27 * len(rows) + 1.1))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    if not len(rows) or rows["gain_bps"].isna().all():
        style.draw_no_data(ax, colours)
        words = "Gain after trades by account: no data."
        return style.finish_axes(ax, colours, words, ranking)
    style.style_axes(ax, colours, "x")
    ax.axvline(0, color=colours.muted, linewidth=0.8)
    ranking_rows.draw_measured(ax, colours, rows["gain_bps"])
    if rows["shrunk_bps"].notna().any():
        label = "after shrinkage, with interval"
        ranking_rows.draw_intervals(ax, rows, "shrunk_bps", colours.bad, label)
    names = rows["name"].map(lambda name: formats.short_name(str(name)), na_action="ignore")
    texts = [
        f"{name} ({fills:,})"
        for name, fills in zip(names.fillna("no name"), rows["fills"], strict=True)
    ]
    ranking_rows.name_ranks(ax, texts)
    ax.set_ylabel("name (fills)")
    ax.set_xlabel("gain after the trade, bps (below 0: a loss)")
    axes.add_legend(ax, colours, ncols=2)
    top = rows.iloc[0]
    words = (
        f"Gain after trades of {len(ranking)} names. The highest is {texts[0]} fills: "
        f"{formats.signed_number(round(top['gain_bps'], 2))} bps measured."
    )
    return style.finish_axes(ax, colours, words, ranking)
