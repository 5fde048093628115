"""Rankings: one row per account with a value and its interval, the first at the top."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.plots.themes import Theme


def draw_measured(ax: Axes, theme: Theme, values: "pd.Series[Any]") -> None:
    """Draw measured values as hollow dots, one row each."""
    ax.plot(
        values, np.arange(len(values)), "o", color=theme.muted, markerfacecolor=theme.background,
        markersize=5, label="measured",
    )  # fmt: skip


def draw_intervals(
    ax: Axes, rows: pd.DataFrame, value: str, colour: str, label: str | None = None
) -> None:
    """Draw the column `value` as full dots, with the intervals from ``low`` to ``high``."""
    places = np.arange(len(rows))
    ax.hlines(places, rows["low"], rows["high"], color=colour, linewidth=1.6)
    ax.plot(rows[value], places, "o", color=colour, markersize=5, label=label)


def name_ranks(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows, the first at the top."""
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
