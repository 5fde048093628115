"""How account values are spread over accounts, and how accounts move between classes of value."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from toolkit.plots import style
from toolkit.plots.style import Theme, ThemeName


def lorenz_curve(
    lorenz: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw which share of all value the poorest accounts hold together.

    Parameters
    ----------
    lorenz : DataFrame
        `tk.accounts.lorenz`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Both shares in percent. Twice the area between the curve and the diagonal, where all had
        the same, is Gini's coefficient.

    Examples
    --------
    >>> rows = pd.DataFrame({"accounts": [0.0, 0.5, 1.0], "value": [0.0, 0.25, 1.0]})
    >>> lorenz_curve(rows).axes[0].get_xlabel()
    'accounts, poorest first, %'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, size=(4.8, 4.4), transparent=transparent)
    _lorenz(ax, colours, lorenz) if len(lorenz) else style.nothing(ax, colours)
    words = _lorenz_words(lorenz)
    return style.finish(figure, ax, colours, words, style.is_simulated(lorenz))


def migration_map(
    migration: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how accounts moved between classes of value.

    Parameters
    ----------
    migration : DataFrame
        `tk.accounts.migration`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        One row for each class at first, one column for each class afterwards, USD; counts of
        accounts, shaded by their share of the row. Classes without accounts are left out.

    Examples
    --------
    >>> rows = pd.DataFrame({"from_class": ["0 to 1k"], "to_class": ["0 to 1k"], "accounts": [3],
    ...     "share": [1.0]})
    >>> [text.get_text() for text in migration_map(rows).axes[0].texts]
    ['3']
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, size=(6.4, 4.4), transparent=transparent)
    rows = migration[migration["accounts"] > 0] if len(migration) else migration
    _moves(ax, colours, migration, rows) if len(rows) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _move_words(rows), style.is_simulated(migration))


def _lorenz(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
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
    style.legend(ax, theme, ncols=2)


def _gini(rows: pd.DataFrame) -> float:
    return float(1 - 2 * np.trapezoid(rows["value"], rows["accounts"]))


def _lorenz_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Lorenz curve of account values: no data."
    half = 100 * float(np.interp(0.5, rows["accounts"], rows["value"]))
    top = 100 * (1 - float(np.interp(0.9, rows["accounts"], rows["value"])))
    return (
        f"Lorenz curve of account values: the poorer half of the accounts holds {half:.1f} % of "
        f"all value, the richest tenth {top:.1f} %; Gini about {_gini(rows):.2f}."
    )


def _moves(ax: Axes, theme: Theme, migration: pd.DataFrame, rows: pd.DataFrame) -> None:
    names = list(dict.fromkeys(migration["from_class"]))
    names += [name for name in dict.fromkeys(migration["to_class"]) if name not in names]
    begun = [name for name in names if name in set(rows["from_class"])]
    ended = [name for name in names if name in set(rows["to_class"])]
    table = rows.pivot(index="from_class", columns="to_class", values="share")
    shares = table.reindex(index=begun, columns=ended).fillna(0.0).to_numpy()
    red, green, blue = to_rgb(theme.good)
    ends = [(red, green, blue, 0.0), (red, green, blue, 1.0)]
    shades = LinearSegmentedColormap.from_list("share", ends)
    ax.imshow(shares, cmap=shades, vmin=0, vmax=1, aspect="auto")
    ax.grid(False)
    cells = zip(rows["from_class"], rows["to_class"], rows["accounts"], strict=True)
    for one, other, count in cells:
        y, x = begun.index(one), ended.index(other)
        strong = shares[y, x] > 0.55
        ax.text(
            x, y, f"{count:,}", ha="center", va="center", fontsize=9,
            color=theme.background if strong else theme.text,
        )  # fmt: skip
    ax.set_xticks(range(len(ended)), ended, rotation=20 if len(ended) > 5 else 0)
    ax.set_yticks(range(len(begun)), begun)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel("value afterwards, USD")
    ax.set_ylabel("value at first, USD")


def _move_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Accounts between classes of value: no data."
    both = rows[~rows["from_class"].isin(["absent"]) & ~rows["to_class"].isin(["absent"])]
    stayed = int(both.loc[both["from_class"] == both["to_class"], "accounts"].sum())
    return (
        f"Accounts between classes of value: of {int(both['accounts'].sum())} in both snapshots "
        f"{stayed} stayed in their class; {int(rows['accounts'].sum())} in all."
    )
