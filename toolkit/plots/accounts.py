"""Accounts: the distribution of values, moves between classes of value, positioning by size."""

from typing import Any, Final, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import axes, formats, style
from toolkit.plots.style import Look, PanelLook

_NOT_GROUPS: Final = {
    "time", "size", "accounts", "positions", "missing", "long_usd", "short_usd", "net_share", "low",
    "high", "long_accounts", "gain_bps", "crowded_side", "effective_accounts", "top_share",
}  # fmt: skip


@style.draws_result("Lorenz curve of account values")
def lorenz_curve(lorenz: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw the share of all value that the poorest accounts have together.

    Parameters
    ----------
    lorenz : DataFrame
        `tk.accounts.lorenz`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Both shares in percent. On the diagonal all accounts have the same value. Twice the area
        between the curve and the diagonal is Gini's coefficient.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"accounts": [0.0, 0.5, 1.0], "value": [0.0, 0.25, 1.0]})
    >>> lorenz_curve(rows).get_xlabel()
    'accounts, poorest first, %'
    """
    panel = style.open_panel(lorenz, look, (4.8, 4.4))
    ax, theme = panel.ax, panel.theme
    x, y = 100 * lorenz["accounts"].to_numpy(), 100 * lorenz["value"].to_numpy()
    ax.plot([0, 100], [0, 100], color=theme.muted, linestyle="--", linewidth=1, label="all equal")
    panel.draw_band(x, y, x, theme.good, alpha=0.15)
    ax.plot(x, y, color=theme.good, linewidth=2, label="accounts")
    ax.grid(True, axis="x", color=theme.grid, linewidth=0.8)
    ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    panel.label_axes("accounts, poorest first, %", "share of all value, %", legend=2)
    half, most = np.interp([50, 90], x, y)
    gini = 1 - 2 * np.trapezoid(lorenz["value"], lorenz["accounts"])
    return panel.finish(
        f"Lorenz curve of account values: the poorer half of the accounts holds {half:.1f} % of "
        f"all value, the richest tenth {100 - most:.1f} %; Gini about {gini:.2f}."
    )


@style.draws_result("Moves of accounts between classes of value")
def migration_map(migration: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw the moves of accounts between classes of value.

    Parameters
    ----------
    migration : DataFrame
        `tk.accounts.migration`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        One row for each class in the first snapshot, one column for each class in the second, in
        USD. A cell has the number of accounts and is shaded by its share of the row. Classes
        without accounts are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"from_class": ["0 to 1k"], "to_class": ["0 to 1k"], "accounts": [3],
    ...     "share": [1.0]})
    >>> [text.get_text() for text in migration_map(rows).texts]
    ['3']
    """
    panel = style.open_panel(migration, look, (6.4, 4.4))
    rows = style.not_empty(migration[migration["accounts"] > 0])
    # The classes are in their order in the result, which has all of them.
    classes = dict.fromkeys([*migration["from_class"], *migration["to_class"]])
    wide: Any = rows.pivot(index="from_class", columns="to_class")
    first, second = (
        [name for name in classes if name in names]
        for names in (wide.index, wide["accounts"].columns)
    )
    share, count = (
        wide[name].reindex(index=first, columns=second).fillna(0) for name in ("share", "accounts")
    )
    texts = count.map(lambda number: f"{number:,.0f}" if number else "")
    panel.draw_cells(share, texts, ("background", "good"), 0, 1, fontsize=9)
    panel.ax.tick_params(axis="x", rotation=20 if count.shape[1] > 5 else 0)
    panel.label_axes("value afterwards, USD", "value at first, USD")
    both = rows[(rows["from_class"] != "absent") & (rows["to_class"] != "absent")]
    stayed = both.loc[both["from_class"] == both["to_class"], "accounts"].sum()
    return panel.finish(
        f"Moves of accounts between classes of value: {int(stayed)} of "
        f"{int(both['accounts'].sum())} accounts in both snapshots stayed in their class; "
        f"{int(rows['accounts'].sum())} accounts in all."
    )


@overload
def positioning(positioning: pd.DataFrame, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def positioning(positioning: pd.DataFrame, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Positioning")
def positioning(positioning: pd.DataFrame, **look: Unpack[PanelLook]) -> Figure | Axes:
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
    for group in groups:
        axes.check_one_part("positioning", group, "positioning", rows, [group])
    panels = style.open_panels(rows, look, (7.2, 4.6), heights=(1.7, 1))
    name = ", ".join(str(rows[group].iloc[0]) for group in groups) or "all coins"
    sizes = [size for size in dict.fromkeys(rows["size"]) if size != "all"] or ["all"]
    axes.check_drawable(len(sizes), axes.MAX_LINES, "size classes")
    upper, *others = panels
    last = rows[rows["time"] == rows["time"].max()] if "time" in rows else rows
    if "time" in rows and rows["time"].nunique() > 1:
        for number, size in enumerate(sizes):
            own = rows[rows["size"] == size].sort_values("time")
            line = upper.line_style(number, marks=False)
            low, high, share = (100 * own[name] for name in ("low", "high", "net_share"))
            upper.draw_band(own["time"], low, high, line["color"], alpha=0.12)
            label = f"{size} (n = {int(own['accounts'].max()):,})"
            for panel, values in zip(panels, (share, own["gain_bps"] / 100), strict=False):
                panel.ax.plot(own["time"], values, **line, linewidth=1.7, label=label)
        panels[-1].set_time_axis(rows["time"])
    else:
        theme, table, places = upper.theme, rows.set_index("size").loc[sizes], range(len(sizes))
        shares = 100 * table[["net_share", "low", "high"]].set_axis(axes.INTERVAL, axis=1)
        upper.draw_errors(
            places, shares, fmt="o", color=theme.good, markersize=6, capsize=4,
            label=f"{table['accounts'].sum():,} accounts",
        )  # fmt: skip
        for panel in others:
            gain = table["gain_bps"].to_numpy(np.float64) / 100
            colours = [theme.good if value >= 0 else theme.bad for value in gain]
            panel.ax.bar(places, gain, width=0.5, color=colours, linewidth=0)
        counts = table.groupby(level=0, sort=False)["accounts"].max().astype(int)
        panels[-1].ax.set_xticks(places, [f"{size}\n(n = {counts[size]:,})" for size in sizes])
        panels[-1].ax.set(xlim=(-0.6, len(sizes) - 0.4), xlabel="size of the account, USD")
    for panel, label in zip(panels, ("net long share, %", "gain since entry, %"), strict=False):
        panel.add_zero_line(is_edge=True)
        panel.label_axes(y=label, y_ticks=formats.signed_number)
    upper.add_legend(3)
    upper.set_title(name, right=True)
    parts = [
        f"{row['size']}: {formats.percent_share(row['net_share'])} net long, "
        f"{int(row['accounts']):,} accounts, {row['effective_accounts']:.1f} effective ones on the "
        f"{row['crowded_side']} side"
        for row in last[last["size"].isin(sizes)].to_dict("records")
    ]
    return upper.finish(f"Positioning of {name} by size of accounts. {'; '.join(parts)}.")
