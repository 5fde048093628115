"""Bootstrap intervals: clusters are resampled, such as days, accounts, shocks or blocks of hours.

Observations of one cluster are dependent, so entire clusters are drawn with replacement. If
neighbouring clusters are dependent, too, they are drawn in blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.statistics.estimate import check_level
from toolkit.statistics.quantiles import scipy_part, student

DRAWS = 999
_FEW_CLUSTERS = 10
MIN_CLUSTERS = 2
_WEIGHTS = 4_000_000


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
    wide, tail = _expanded_tail(max(clusters, MIN_CLUSTERS), level)
    kept = values[np.isfinite(values)]
    if clusters < MIN_CLUSTERS or not len(kept):
        return float("nan"), float("nan")
    low, high = np.quantile(kept, [tail, 1 - tail])
    if clusters < _FEW_CLUSTERS:
        by_logs = positive and bool((kept > 0).all())
        scale = np.log(kept) if by_logs else kept
        ends = np.median(scale) + wide * float(scale.std()) * np.array([-1.0, 1.0])
        with np.errstate(over="ignore"):
            under, over = np.exp(ends) if by_logs else ends
        low, high = min(low, under), max(high, over)
    return float(low), float(high)


@lru_cache
def _expanded_tail(clusters: int, level: float) -> tuple[float, float]:
    """Return the half width of an interval in standard deviations, and the share beyond it."""
    wide = float(student(level, clusters - 1)) * sqrt(clusters / (clusters - 1))
    return wide, float(scipy_part("special").ndtr(-wide))


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
