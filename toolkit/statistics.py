"""Figures with intervals: results of estimates, laws, ranks, the bootstrap, and shrinkage.

Bootstrap: clusters are resampled, such as days, accounts, shocks or blocks of hours. Observations
of one cluster are dependent, so entire clusters are drawn with replacement. If neighbouring
clusters are dependent, too, they are drawn in blocks.

Shrinkage: estimates of many accounts are drawn towards their common mean by how uncertain each one
is. The true values of the accounts are normal with mean `mean` and standard deviation `spread`, and
each estimate is normal around the true value with its own standard error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit import drawing
from toolkit.arrays import Floats, Ints
from toolkit.installation import explain_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWS = 999
MIN_CLUSTERS = 2
_FEW_CLUSTERS = 10
_WEIGHTS = 4_000_000
MIN_ACCOUNTS = 5
"""With fewer accounts the spread of the true values cannot be estimated."""


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


def check_count(count: int, name: str, least: int = 1) -> int:
    """Return a count.

    Raises
    ------
    ValueError
        If it is less than `least`.
    """
    if count < least:
        raise ValueError(f"{name} must be at least {least}, not {count!r}")
    return count


def check_positive(**numbers: float) -> None:
    """Raise ValueError if one of the numbers is not above 0."""
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name} must be above 0, not {number!r}")


def scipy_part(name: str) -> Any:
    """Return a module of scipy, which is imported when it is needed."""
    with explain_missing("analysis"):
        return import_module(f"scipy.{name}")


def student(level: float, freedom: Any) -> Any:
    """Return the half length of an interval in standard errors, by the degrees of freedom."""
    return scipy_part("special").stdtrit(freedom, (1 + level) / 2)


def normal(level: float) -> float:
    """Return the half length of an interval in standard errors, if these are known exactly."""
    return float(scipy_part("special").ndtri((1 + level) / 2))


def name_quantiles(quantiles: Iterable[float]) -> dict[str, float]:
    """Return quantiles by their names: 0.1 is ``q10``.

    Raise ValueError if a quantile is not between 0 and 1.
    """
    quantiles = list(quantiles)
    if not all(0 <= q <= 1 for q in quantiles):
        raise ValueError(f"quantiles must be between 0 and 1, not {quantiles}")
    return {f"q{100 * q:g}": q for q in quantiles}


def rank_quantiles(
    values: Floats, codes: Ints, n: Ints, quantiles: Iterable[float | Floats]
) -> list[Floats]:
    """Return quantiles by rank of each group: the k-th smallest value with k = ceil(q * n) >= 1.

    - ``values``: missing values come last, so a quantile among them is missing
    - ``codes``: the group of each value, from 0
    - ``n``: number of values of each group that count
    """
    ranked = np.append(values[np.lexsort((values, codes))], np.nan)
    rows = np.bincount(codes, minlength=len(n))
    first = np.cumsum(rows) - rows
    # The small number corrects products that are rounded up: 0.7 * 10 = 7.000000000000001.
    ranks = [np.maximum(np.ceil(n * q - 1e-9), 1).astype(np.int64) for q in quantiles]
    return [np.where(rows > 0, ranked[first + rank - 1], np.nan) for rank in ranks]


def count_draws(rng: np.random.Generator, draws: int, count: int, block: int) -> Ints:
    """Return how often each of `count` clusters is drawn: (draws, count)."""
    return count_codes(draw_blocks(rng, draws, count, block), count)


def draw_blocks(rng: np.random.Generator, draws: int, count: int, block: int) -> Ints:
    """Draw `count` positions out of `count`, in blocks of neighbours: (draws, count).

    The blocks are circular (Politis and Romano, 1992): a block starts anywhere and continues at the
    beginning after the last position, so that all positions are equally likely.
    """
    block = max(1, min(block, count))
    starts = rng.integers(0, count, (draws, -(-count // block)))
    if block == 1:
        return starts
    places = (starts[:, :, None] + np.arange(block)).reshape(draws, -1)[:, :count]
    return np.where(places < count, places, places - count)


def count_codes(codes: Ints, limit: int) -> Ints:
    """Return how often each code below `limit` occurs in each row: (rows, limit)."""
    row_codes = codes + limit * np.arange(len(codes))[:, None]
    counts = np.bincount(row_codes.ravel(), minlength=len(codes) * limit)
    return counts.reshape(len(codes), limit)


def bootstrap_interval(
    values: Floats, clusters: int, level: float, *, positive: bool = False
) -> tuple[float, float]:
    """Return the interval of bootstrap values, expanded for few clusters; NaN for fewer than two.

    The plain percentile interval is too short for two reasons: it uses a normal instead of a
    Student distribution, and n instead of n - 1. The percentiles are moved outwards to correct both
    (the expanded percentile interval of Hesterberg, 2015). Percentiles never exceed the drawn
    values. So for fewer than ten clusters the interval is at least Student's interval around the
    median. If values are always `positive`, this interval is computed from their logarithms.
    """
    kept = values[np.isfinite(values)]
    if clusters < MIN_CLUSTERS or not len(kept):
        return float("nan"), float("nan")
    # The half width in standard deviations, and the share beyond it.
    wide = float(student(level, clusters - 1)) * sqrt(clusters / (clusters - 1))
    tail = float(scipy_part("special").ndtr(-wide))
    low, high = np.quantile(kept, [tail, 1 - tail])
    if clusters < _FEW_CLUSTERS:
        by_logs = positive and bool((kept > 0).all())
        scale = np.log(kept) if by_logs else kept
        ends = np.median(scale) + wide * float(scale.std()) * np.array([-1.0, 1.0])
        with np.errstate(over="ignore"):
            under, over = np.exp(ends) if by_logs else ends
        low, high = min(low, under), max(high, over)
    return float(low), float(high)


@dataclass(frozen=True)
class Sampling:
    """How intervals are computed: level, number of resamples, seed, and neighbours in a block."""

    level: float
    draws: int
    seed: int
    block: int = 1

    def __post_init__(self) -> None:
        check_level(self.level)

    def ratio(
        self, above: Floats, below: Floats, clusters: Ints
    ) -> tuple[float, float, float, int]:
        """Estimate sum(above) / sum(below): return the ratio, low, high and the clusters."""
        whole, values, count = bootstrap_ratios([above], below, clusters, self)
        return float(whole[0]), *bootstrap_interval(values[:, 0], count, self.level), count

    def sums(self, parts: Floats) -> Floats:
        """Return the sums over all clusters, and below them those of each resample.

        A resample draws as many clusters as there are, with replacement. The same seed draws the
        same clusters for all figures.

        - ``parts`` (array of float, (clusters, figures)): what each cluster adds to each figure
        """
        count = len(parts)
        if not count:
            return np.zeros((1 + self.draws, parts.shape[1]))
        sums = [parts.sum(axis=0)[None, :]]
        rng = np.random.default_rng(self.seed)
        # Portions limit the memory: there may be thousands of clusters times a thousand draws.
        portion = max(1, _WEIGHTS // count)
        for first in range(0, self.draws, portion):
            drawn = count_draws(rng, min(portion, self.draws - first), count, self.block)
            sums.append(drawn.astype(np.float64) @ parts)
        return np.concatenate(sums)


def bootstrap_ratios(
    above: Sequence[Floats], below: Floats, clusters: Ints, how: Sampling
) -> tuple[Floats, Floats, int]:
    """Estimate several ratios with the same denominator, from the same draws.

    Parameters
    ----------
    above : sequence of array of float
        The numerators: for each ratio one value per observation.
    below : array of float
        The denominator: one value per observation. It is 1 for a mean, the weight for a weighted
        mean.
    clusters : array of int
        The cluster of each observation: numbers from 0, or -1 for none.
    how : Sampling
        How they are drawn.

    Returns
    -------
    ratios : array of float, (ratios,)
    values : array of float, (draws, ratios)
        The bootstrap values.
    count : int
        The number of clusters, or of blocks.
    """
    kept = clusters >= 0
    _, codes = np.unique(clusters[kept], return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    sides = [np.bincount(codes, side[kept], minlength=count) for side in (*above, below)]
    parts = np.stack(sides, axis=1).astype(np.float64)
    sums = how.sums(parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = sums[:, :-1] / sums[:, -1:]
    return values[0], values[1:], block_count(count, how.block)


def block_count(count: int, block: int) -> int:
    """Return how many blocks are needed to draw `count` clusters."""
    return -(-count // block)


def grid_peaks(values: Floats) -> tuple[Ints, Floats]:
    """Return the place of each row's maximum, and how many steps beside it a parabola has its top.

    >>> place, shift = grid_peaks(np.array([[0.0, 3.0, 4.0, 3.5]]))
    >>> place.tolist(), shift.round(2).tolist()
    ([2], [0.17])
    """
    place, row = values.argmax(axis=1), np.arange(len(values))
    middle = np.clip(place, 1, values.shape[1] - 2)
    left, here, right = (values[row, middle + step] for step in (-1, 0, 1))
    bend, shift = left - 2 * here + right, np.zeros(len(values))
    inside = (place == middle) & (bend < 0)
    return place, np.divide(0.5 * (left - right), bend, out=shift, where=inside)


class Shrinkage(NamedTuple):
    """Estimates after shrinkage, and the two parameters of the model with their intervals."""

    values: Floats
    low: Floats
    high: Floats
    mean: tuple[float, float, float]
    """Mean of the true values: estimate, low, high."""
    spread: tuple[float, float, float]
    """Standard deviation of the true values: estimate, low, high."""


def shrink_estimates(values: Floats, errors: Floats, level: float) -> Shrinkage:
    """Shrink estimates with known standard errors; NaN with fewer than `MIN_ACCOUNTS` estimates.

    The spread is that of Paule and Mandel (1982), its interval the Q-profile (Viechtbauer, 2007).
    The shrunk values and their intervals are those of Morris (1983), which count that mean and
    spread are estimates, too.
    """
    k = len(values)
    if k < MIN_ACCOUNTS:
        unknown = np.full(k, np.nan)
        return Shrinkage(unknown, unknown, unknown, (np.nan,) * 3, (np.nan,) * 3)
    variances = errors**2
    between = _solve_spread(values, variances, k - 1)
    weights = 1 / (variances + between)
    mean = float(weights @ values / weights.sum())
    factor = (k - 3) / (k - 1) * variances * weights
    made = values - factor * (values - mean)
    typical = float(weights @ variances / weights.sum()) + between
    surprise = 2 / (k - 3) * factor**2 * typical * weights * (values - mean) ** 2
    half = normal(level) * np.sqrt(variances * (1 - (k - 1) / k * factor) + surprise)
    # Standard error of the weighted mean by Hartung and Knapp (2001).
    mismatch = float(weights @ (values - mean) ** 2) / (k - 1)
    reach = float(student(level, k - 1) * np.sqrt(mismatch / weights.sum()))
    ends = (
        _solve_spread(values, variances, scipy_part("special").chdtri(k - 1, 1 - share))
        for share in ((1 + level) / 2, (1 - level) / 2)
    )
    low, high = (float(np.sqrt(end)) for end in ends)
    return Shrinkage(
        made,
        made - half,
        made + half,
        (mean, mean - reach, mean + reach),
        (float(np.sqrt(between)), low, high),
    )


def _solve_spread(values: Floats, variances: Floats, wanted: float) -> float:
    """Return the variance between accounts at which the weighted squares sum to `wanted`; or 0."""

    def excess(between: float) -> float:
        weights = 1 / (variances + between)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2) - wanted

    if excess(0.0) <= 0:
        return 0.0
    top = float(values.var()) + float(variances.max())
    while excess(top) > 0:
        top *= 4
    return float(scipy_part("optimize").brentq(excess, 0.0, top, xtol=1e-12 * top, rtol=1e-12))
