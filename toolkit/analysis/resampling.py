"""Intervals by resampling what is independent: days, accounts, shocks, blocks of hours.

Observations of one cluster move together, so whole clusters are drawn, with replacement, and
each draw is a vector of weights: how often each cluster came.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DRAWS = 999
LEAST_CLUSTERS = 2


def cluster_weights(clusters: int, draws: int, seed: int) -> Floats:
    """Draw how often each of the clusters comes: an array (draws, clusters), rows sum to clusters.

    The same for the same `seed`, whatever was drawn before.
    """
    if not clusters:
        return np.zeros((draws, 0))
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(clusters, np.full(clusters, 1.0 / clusters), size=draws)
    return np.asarray(counts, dtype=np.float64)


def interval(values: Floats, clusters: int, level: float) -> tuple[float, float]:
    """Give the interval of bootstrap values, widened for few clusters.

    The plain percentile interval is too short by the factor of a normal to a Student
    distribution and of n to n - 1; the percentiles are moved outwards to make good for both
    (the expanded percentile interval of Hesterberg, 2015). Missing for fewer than two clusters.
    """
    from scipy import stats

    kept = values[np.isfinite(values)]
    if clusters < LEAST_CLUSTERS or not len(kept):
        return float("nan"), float("nan")
    wide = stats.t.ppf((1 + level) / 2, clusters - 1) * np.sqrt(clusters / (clusters - 1))
    tail = float(stats.norm.cdf(-wide))
    low, high = np.quantile(kept, [tail, 1 - tail])
    return float(low), float(high)


def ratio(
    above: Floats, below: Floats, clusters: Ints, *, draws: int, seed: int
) -> tuple[float, Floats, int]:
    """Estimate sum(above) / sum(below): the ratio, its bootstrap values, how many clusters.

    Parameters
    ----------
    above, below : array of float
        One value an observation; a mean has 1 below, a weighted mean the weights.
    clusters : array of int
        Which cluster each observation belongs to: codes from 0, or -1 for none.
    """
    kept = clusters >= 0
    _, codes = np.unique(clusters[kept], return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    tops = np.bincount(codes, above[kept], minlength=count)
    bottoms = np.bincount(codes, below[kept], minlength=count)
    weights = cluster_weights(count, draws, seed)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = float(np.divide(tops.sum(), bottoms.sum()))
        return whole, np.asarray((weights @ tops) / (weights @ bottoms)), count


def circular_blocks(values: Floats, length: int, *, draws: int, seed: int) -> Ints:
    """Draw positions of circular blocks (Politis and Romano, 1992): an array (draws, len(values)).

    A block starts anywhere and runs on at the beginning where the values end, so that each value
    is as likely as any other.
    """
    n = len(values)
    length = max(1, min(length, n))
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n, size=(draws, -(-n // length)))
    places = (starts[:, :, None] + np.arange(length)).reshape(draws, -1)[:, :n]
    return np.asarray(places % n, dtype=np.int64)
