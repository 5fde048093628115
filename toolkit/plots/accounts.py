"""Account values: their distribution over accounts, and moves between classes of value."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.plots import axes, style, themes
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName


@draws_result
def lorenz_curve(
    lorenz: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent, (4.8, 4.4))
    _draw_lorenz(ax, colours, lorenz) if len(lorenz) else style.draw_no_data(ax, colours)
    words = _describe_lorenz(lorenz)
    return style.finish_axes(ax, colours, words, lorenz)


@draws_result
def migration_map(
    migration: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent, (6.4, 4.4))
    rows = migration[migration["accounts"] > 0] if len(migration) else migration
    _draw_moves(ax, colours, migration, rows) if len(rows) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_moves(rows), migration)


def _draw_lorenz(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    x, y = 100 * rows["accounts"].to_numpy(), 100 * rows["value"].to_numpy()
    ax.plot([0, 100], [0, 100], color=theme.muted, linestyle="--", linewidth=1, label="all equal")
    ax.fill_between(x, y, x, color=theme.good, alpha=0.15, linewidth=0)
    ax.plot(x, y, color=theme.good, linewidth=2, label="accounts")
    ax.grid(True, axis="x", color=theme.grid, linewidth=0.8)
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 100)
    ax.set_aspect("equal")
    ax.set_xlabel("accounts, poorest first, %")
    ax.set_ylabel("share of all value, %")
    axes.add_legend(ax, theme, ncols=2)


def _describe_lorenz(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Lorenz curve of account values: no data."
    half = 100 * float(np.interp(0.5, rows["accounts"], rows["value"]))
    top = 100 * (1 - float(np.interp(0.9, rows["accounts"], rows["value"])))
    gini = 1 - 2 * np.trapezoid(rows["value"], rows["accounts"])
    return (
        f"Lorenz curve of account values: the poorer half of the accounts holds {half:.1f} % of "
        f"all value, the richest tenth {top:.1f} %; Gini about {gini:.2f}."
    )


def _draw_moves(ax: Axes, theme: Theme, migration: pd.DataFrame, rows: pd.DataFrame) -> None:
    classes = list(dict.fromkeys(migration["from_class"]))
    classes += [name for name in dict.fromkeys(migration["to_class"]) if name not in classes]
    from_classes = [name for name in classes if name in set(rows["from_class"])]
    to_classes = [name for name in classes if name in set(rows["to_class"])]
    table = rows.pivot(index="from_class", columns="to_class", values="share")
    shares = table.reindex(index=from_classes, columns=to_classes).fillna(0.0).to_numpy()
    shades = themes.colour_map(theme, "background", "good")
    ax.imshow(shares, cmap=shades, vmin=0, vmax=1, aspect="auto")
    ax.grid(False)
    cells = zip(rows["from_class"], rows["to_class"], rows["accounts"], strict=True)
    for first, second, count in cells:
        y, x = from_classes.index(first), to_classes.index(second)
        is_dark = shares[y, x] > 0.55
        ax.text(
            x, y, f"{count:,}", ha="center", va="center", fontsize=9,
            color=theme.background if is_dark else theme.text,
        )  # fmt: skip
    ax.set_xticks(range(len(to_classes)), to_classes, rotation=20 if len(to_classes) > 5 else 0)
    ax.set_yticks(range(len(from_classes)), from_classes)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("value afterwards, USD")
    ax.set_ylabel("value at first, USD")


def _describe_moves(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Moves of accounts between classes of value: no data."
    both = rows[~rows["from_class"].isin(["absent"]) & ~rows["to_class"].isin(["absent"])]
    stayed = int(both.loc[both["from_class"] == both["to_class"], "accounts"].sum())
    return (
        f"Moves of accounts between classes of value: {stayed} of {int(both['accounts'].sum())} "
        f"accounts in both snapshots stayed in their class; {int(rows['accounts'].sum())} accounts "
        "in all."
    )
