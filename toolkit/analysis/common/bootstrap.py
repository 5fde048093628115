"""Intervals by resampling what is independent: days, accounts, shocks, blocks of hours or days.

Observations of one cluster move together, so whole clusters are drawn, with replacement; clusters
that resemble their neighbours are drawn in blocks.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DRAWS = 999
_FEW_CLUSTERS = 10
MIN_CLUSTERS = 2
_WEIGHTS = 4_000_000


def resample_sums(parts: Floats, draws: int, seed: int, block: int = 1) -> Floats:
    """Give sums over clusters that are drawn again, with replacement.

    Parameters
    ----------
    parts : array of float, (clusters, figures)
        What each cluster adds to each figure.
    draws : int
        How often as many clusters are drawn as there are.
    seed : int
        The same seed draws the same clusters, whatever the figures.
    block : int, default 1
        How many neighbours are drawn together, as `draw_blocks` does.

    Returns
    -------
    array of float, (draws, figures)
    """
    count = len(parts)
    if not count:
        return np.zeros((draws, parts.shape[1]))
    rng = np.random.default_rng(seed)
    # In portions: thousands of clusters times a thousand draws need not stand in memory at once.
    portion = max(1, _WEIGHTS // count)
    sums = [
        count_draws(rng, min(portion, draws - first), count, block).astype(np.float64) @ parts
        for first in range(0, draws, portion)
    ]
    return np.concatenate(sums) if sums else np.zeros((0, parts.shape[1]))


def count_draws(rng: np.random.Generator, draws: int, count: int, block: int) -> Ints:
    """Give how often each of `count` in a row comes in each draw of blocks: (draws, count)."""
    return count_codes(draw_blocks(rng, draws, count, block), count)


def draw_blocks(rng: np.random.Generator, draws: int, count: int, block: int) -> Ints:
    """Draw places of `count` in a row, as many again, neighbours together: (draws, count).

    The blocks are circular (Politis and Romano, 1992): one starts anywhere and runs on at the
    beginning where the row ends, so that each place is as likely as any other.
    """
    block = max(1, min(block, count))
    starts = rng.integers(0, count, (draws, -(-count // block)))
    if block == 1:
        return starts
    places = (starts[:, :, None] + np.arange(block)).reshape(draws, -1)[:, :count]
    return np.where(places < count, places, places - count)


def count_codes(codes: Ints, many: int) -> Ints:
    """Count in each row how often each code below `many` stands there: (rows, many)."""
    apart = codes + many * np.arange(len(codes))[:, None]
    return np.bincount(apart.ravel(), minlength=len(codes) * many).reshape(len(codes), many)


def bootstrap_interval(
    values: Floats, clusters: int, level: float, *, positive: bool = False
) -> tuple[float, float]:
    """Give the interval of bootstrap values, widened for few clusters.

    The plain percentile interval is too short by the factor of a normal to a Student
    distribution and of n to n - 1; the percentiles are moved outwards to make good for both
    (the expanded percentile interval of Hesterberg, 2015). They cannot reach beyond what was drawn:
    for fewer than ten clusters the interval is at least Student's about the median, so many
    standard deviations of the values wide (of their logarithms, of what is always `positive`).
    Missing for fewer than two.
    """
    from scipy import stats

    kept = values[np.isfinite(values)]
    if clusters < MIN_CLUSTERS or not len(kept):
        return float("nan"), float("nan")
    wide = stats.t.ppf((1 + level) / 2, clusters - 1) * np.sqrt(clusters / (clusters - 1))
    tail = float(stats.norm.cdf(-wide))
    low, high = np.quantile(kept, [tail, 1 - tail])
    if clusters < _FEW_CLUSTERS:
        under, over = _student(kept, float(wide), positive)
        low, high = min(low, under), max(high, over)
    return float(low), float(high)


def _student(values: Floats, deviations: float, positive: bool) -> tuple[float, float]:
    """Give the median and so many standard deviations to both sides; positive stays positive."""
    if not positive or (values <= 0).any():
        middle, reach = float(np.median(values)), deviations * float(values.std())
        return middle - reach, middle + reach
    logs = np.log(values)
    middle, reach = float(np.median(logs)), deviations * float(logs.std())
    with np.errstate(over="ignore"):
        return float(np.exp(middle - reach)), float(np.exp(middle + reach))


def bootstrap_ratio(
    above: Floats, below: Floats, clusters: Ints, *, draws: int, seed: int, block: int = 1
) -> tuple[float, Floats, int]:
    """Estimate sum(above) / sum(below): the ratio, its bootstrap values, how many clusters.

    Of clusters that are drawn in blocks: how many blocks. All else is as in `bootstrap_ratios`.
    """
    whole, values, count = bootstrap_ratios(
        [above], below, clusters, draws=draws, seed=seed, block=block
    )
    return float(whole[0]), values[:, 0], count


def bootstrap_ratios(
    above: Sequence[Floats], below: Floats, clusters: Ints, *, draws: int, seed: int, block: int = 1
) -> tuple[Floats, Floats, int]:
    """Estimate several sums over the same one, all from the same draws.

    Parameters
    ----------
    above : sequence of array of float
        For each ratio, one value an observation.
    below : array of float
        One value an observation; a mean has 1 below, a weighted mean the weights.
    clusters : array of int
        Which cluster each observation belongs to: rising numbers from 0, or -1 for none.
    draws, seed, block : int
        As in `resample_sums`.

    Returns
    -------
    ratios : array of float, (ratios,)
    values : array of float, (draws, ratios)
        The bootstrap values.
    count : int
        How many clusters, or blocks of them.
    """
    kept = clusters >= 0
    _, codes = np.unique(clusters[kept], return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    sides = [np.bincount(codes, one[kept], minlength=count) for one in (*above, below)]
    parts = np.stack(sides, axis=1).astype(np.float64)
    sums = np.vstack([parts.sum(axis=0), resample_sums(parts, draws, seed, block)])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = sums[:, :-1] / sums[:, -1:]
    return values[0], values[1:], block_count(count, block)


def block_count(count: int, block: int) -> int:
    """Give how many blocks it takes to draw as many."""
    return -(-count // block)
