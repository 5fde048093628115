"""Results of estimates: figures with intervals, the number of observations, the method."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """Figures with intervals.

    Attributes
    ----------
    params : DataFrame
        One row per figure: ``name``, ``estimate``, ``low``, ``high``.
    n : int
        The number of observations.
    level : float
        The confidence level of the intervals, between 0 and 1.
    method : str
        The method of the estimate.
    """

    params: pd.DataFrame
    n: int
    level: float
    method: str

    def __getitem__(self, name: str) -> float:
        """Return the estimate of a figure by its name."""
        found = self.params.loc[self.params["name"] == name, "estimate"]
        if found.empty:
            known = ", ".join(map(repr, dict.fromkeys(self.params["name"])))
            raise KeyError(f"unknown figure {name!r}; choose one of {known}")
        return float(found.iloc[0])

    def plot(self, ax: "Axes | None" = None, **options: object) -> "Axes | Figure":
        """Draw the estimate with its function of `toolkit.plots`.

        Returns the Axes of one panel, or the Figure of several panels.
        """
        drawn: Axes | Figure = drawing.plot_of(type(self))(self, ax=ax, **options)
        return drawn

    def _repr_html_(self) -> str:
        words = f"{self.method}; n = {self.n:,}; intervals of {self.level:.0%}"
        look: Any = {"index": False, "border": 0, "na_rep": "", "float_format": "{:.6g}".format}
        with pd.option_context("display.max_colwidth", None):
            shown: str = self.params.to_html(**look)
        return shown.replace("<thead>", f"<caption>{escape(words)}</caption><thead>", 1)


def check_level(level: float) -> float:
    """Return a confidence level.

    Raises
    ------
    ValueError
        If it is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")
    return level


def wilson_interval(share: Any, n: Any, z: float) -> tuple[Any, Any]:
    """Return low and high of a share of `n` cases (Wilson 1927): numbers or arrays.

    Examples
    --------
    >>> [round(end, 3) for end in wilson_interval(0.5, 4, 1.959964)]
    [0.15, 0.85]
    """
    middle, below = share + z * z / (2 * n), 1 + z * z / n
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return (middle - half) / below, (middle + half) / below


def check_count(count: int, name: str) -> int:
    """Return a count.

    Raises
    ------
    ValueError
        If it is less than 1.
    """
    if count < 1:
        raise ValueError(f"{name} must be at least 1, not {count!r}")
    return count
