"""Maximum likelihood of a cost curve whose values are known only between bounds.

The model: log cost = log(spread + a * Q**k) + sigma * a standard normal. A value that was rounded
lies between its bounds; a missing value lies above a bound. (Interval censoring: Turnbull, 1976.)
Likelihood, score and Hessian of each row are in closed form.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.statistics import Sampling, scipy_part

_OPTIONS = {"gtol": 1e-10, "maxiter": 100, "max_trust_radius": 2.0}
_TOO_MANY_STEPS = 1  # a status of scipy's optimiser
_FLATTEST = -7.0  # log sigma: below a thousandth, every value is on the curve
_FARTHEST = 40.0  # log a and k stay where their exponentials are numbers


class BoundedCosts(NamedTuple):
    """Bounds on the cost of each row.

    - ``low``, ``high`` (array of float): logarithms of the bounds of the cost; minus infinity and
      infinity if there is none
    - ``size`` (array of float): logarithm of the size, in units of the size that `a` is for
    - ``spread`` (array of float): cost of the smallest size, which is known
    """

    low: Floats
    high: Floats
    size: Floats
    spread: Floats


def maximise_likelihood(rows: BoundedCosts) -> Floats | None:
    """Return (log a, k, log sigma) of the highest likelihood; None if the search finds none."""
    theta = _search(_start_values(rows), rows, free=3)
    if theta is None or theta[2] > _FLATTEST:
        return theta
    # Rows that all lie on the curve push sigma to the end of its range. Search a and k there.
    return _search(_clip_to_range(theta), rows, free=2)


def _search(start: Floats, rows: BoundedCosts, free: int) -> Floats | None:
    """Return the best values of the first `free` parameters, from a start value.

    The search stops early if a parameter leaves its range. The result is None if it does not
    converge.
    """
    fixed = start[free:]

    # The optimiser asks for value, score and Hessian of a point one after the other.
    @lru_cache(maxsize=2)
    def derivatives(point: tuple[float, ...]) -> tuple[float, Floats, Floats]:
        value, scores, hessian = _likelihood_of_rows(np.array([*point, *fixed]), rows)
        scale = -1.0 / len(rows.size)
        score = scale * scores.sum(axis=1)[:free]
        return scale * float(value.sum()), score, scale * hessian[:free, :free]

    def stop_outside(point: Floats) -> None:
        if is_at_an_end(point) or (free == 3 and point[2] <= _FLATTEST):
            raise StopIteration

    found = scipy_part("optimize").minimize(
        lambda point: derivatives(tuple(point))[:2],
        start[:free],
        jac=True,
        hess=lambda point: derivatives(tuple(point))[2],
        method="trust-exact",
        callback=stop_outside,
        options=_OPTIONS,
    )
    return None if found.status == _TOO_MANY_STEPS else np.array([*found.x, *fixed])


def resample_estimates(theta: Floats, rows: BoundedCosts, clusters: Ints, how: Sampling) -> Floats:
    """Return the estimates of draws of clusters: one step each from the full estimate.

    A draw changes the score. The curvature stays that of all rows, so a draw of few distinct
    clusters cannot fail (the score bootstrap of Kline and Santos, 2012).

    - ``theta`` (array of float, (3,)): the estimate
    - ``clusters`` (array of int): cluster of each row, from 0
    - ``how``: how the clusters are drawn
    """
    _, scores, hessian = _likelihood_of_rows(theta, rows)
    score = np.stack([np.bincount(clusters, each) for each in scores], axis=1).astype(np.float64)
    return _clip_to_range(theta - how.sums(score)[1:] @ np.linalg.pinv(hessian, hermitian=True))


def is_at_an_end(theta: Floats) -> bool:
    """Return whether a or k is at the end of its range, so that no finite value is most likely."""
    return bool(np.any(np.abs(theta[:2]) >= [_FARTHEST, _FARTHEST / 10]))


def _clip_to_range(theta: Floats) -> Floats:
    low = np.array([-_FARTHEST, -_FARTHEST / 10, _FLATTEST])
    high = np.array([_FARTHEST, _FARTHEST / 10, 3.0])
    return np.asarray(np.clip(theta, low, high))


def _start_values(rows: BoundedCosts) -> Floats:
    """Return a start value: a line through the logarithms of the cost above the spread."""
    known = np.isfinite(rows.low) & np.isfinite(rows.high)
    middle = np.exp((rows.low[known] + rows.high[known]) / 2)
    over = middle - rows.spread[known]
    clear = over > np.maximum(0.02, 0.2 * rows.spread[known])
    x, y = rows.size[known][clear], np.log(over[clear])
    if len(x) < 2 or np.ptp(x) == 0:
        return np.array([float(y.mean()) if len(y) else 0.0, 0.5, -1.0])
    k, log_a = np.polyfit(x, y, 1)
    spread = float(np.std(y - log_a - k * x))
    return _clip_to_range(np.array([log_a, k, np.log(max(spread, 0.01))]))


def _likelihood_of_rows(theta: Floats, rows: BoundedCosts) -> tuple[Floats, Floats, Floats]:
    """Return log likelihood and score of each row, (n,) and (3, n), and the Hessian of all rows.

    With z the standardised bounds, P the probability between them and f the normal density, ``r[n]
    = (high z**n f - low z**n f) / P``. All derivatives are polynomials in these.
    """
    log_a, k, log_sigma = theta
    impact = np.exp(np.clip(log_a + k * rows.size, -700.0, 700.0))
    centre = np.log(np.maximum(rows.spread + impact, 1e-300))
    share = impact / np.maximum(rows.spread + impact, 1e-300)
    sigma = np.exp(log_sigma)
    low, high = bounds = (np.stack([rows.low, rows.high]) - centre) / sigma
    # In the upper tail both probabilities round to 1, so compute in the lower tail.
    mirrored = low > 0
    far, near = np.where(mirrored, -low, high), np.where(mirrored, -high, low)
    top, bottom = map(scipy_part("special").log_ndtr, (far, near))
    with np.errstate(invalid="ignore"):
        between = np.where(np.isfinite(bottom), np.minimum(bottom - top, -1e-300), -np.inf)
    value = top + np.log(np.maximum(-np.expm1(between), 1e-300))
    # All of z**n f / P is 0 at an infinite bound.
    finite = np.isfinite(bounds)
    z = np.where(finite, bounds, 0.0)
    exponent = np.clip(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi) - value, -700.0, 700.0)
    powers = [np.where(finite, np.exp(exponent), 0.0)]
    for _ in range(3):
        powers.append(powers[-1] * z)
    r0, r1, r2, r3 = (upper - lower for lower, upper in powers)
    by_a = -r0 / sigma * share
    both = (r0 - r2 - r0 * r1) / sigma * share
    aa = -(r1 + r0 * r0) / sigma**2 * share**2 + by_a * (1.0 - share)
    x, hessian = rows.size, np.empty((3, 3))
    entries = (aa, aa * x, both, aa * x * x, both * x, r1 - r3 - r1 * r1)
    for i, j, entry in zip(*np.triu_indices(3), entries, strict=True):
        hessian[i, j] = hessian[j, i] = entry.sum()
    return value, np.stack([by_a, by_a * x, -r1]), hessian
