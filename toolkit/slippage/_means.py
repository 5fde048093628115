"""Mean cost of each sampled size, and the cost between and beyond the sizes."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.statistics import Sampling, block_count

UNIT_USD = 100_000.0
"""`a` is the impact in bps of an order of this size. Its unit does not depend on `k`."""

LEAST_BPS = 0.005
"""Samples have two decimals, so logarithms use this value instead of 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SizeMeans:
    """Mean cost by size, as sampled (first row) and as resampled (other rows).

    - ``sizes`` (array of float, (sizes,)): sampled sizes in USD, rising, without the sizes that no
      book could fill
    - ``blocks`` (array of int, (sizes,)): number of blocks of days on which each size was sampled
    - ``bps`` (array of float, (1 + draws, sizes)): mean costs. A sample for which the book was too
      thin counts as its lower bound.
    - ``law`` (array of float, (1 + draws, 4)): half spread, a, k and sigma, fitted to the same
      samples; missing if there is no fit
    """

    sizes: Floats
    blocks: Ints
    bps: Floats
    law: Floats


def mean_costs(group: pd.DataFrame, law: Floats, how: Sampling) -> SizeMeans:
    """Return the mean costs of one side's samples, and of each resample of days.

    - ``group``: ``day``, ``amount_usd``, ``bps`` and ``least``, the lower bound of a missing sample
    - ``law`` (array of float, (1 + draws, 4)): as in `SizeMeans`
    - ``how``: the same as for the law, so that both draw the same days
    """
    known = group["bps"].notna()
    sizes = np.unique(group["amount_usd"][known].to_numpy(dtype=np.float64))
    kept = group["amount_usd"].isin(sizes).to_numpy()
    _, day = np.unique(group["day"].to_numpy(), return_inverse=True)
    paid = group["bps"].where(known, group["least"]).to_numpy(dtype=np.float64)[kept]
    place = np.searchsorted(sizes, group["amount_usd"].to_numpy(dtype=np.float64)[kept])
    days, many = int(day.max()) + 1, len(sizes)
    cell = day[kept] * many + place
    counts, sums = (
        np.bincount(cell, weights, minlength=days * many).reshape(days, many).astype(np.float64)
        for weights in (np.ones(len(paid)), paid)
    )
    parts = np.hstack([sums, counts])
    totals = how.sums(parts)
    with np.errstate(invalid="ignore"):
        bps = totals[:, :many] / totals[:, many:]
    blocks = np.array(
        [block_count(int(sampled), how.block) for sampled in (counts > 0).sum(axis=0)], dtype=int
    )
    return SizeMeans(sizes=sizes, blocks=blocks, bps=bps, law=law)


def expected_cost(means: SizeMeans, usd: float) -> Floats:
    """Return the mean cost of a size in bps, of the samples and of each draw.

    At a sampled size the result is the mean itself. Between two sampled sizes it is on a straight
    line in the logarithms of size and cost. Beyond the sampled sizes it follows the law, scaled so
    that it equals the mean of the outermost size there.
    """
    at, many = int(np.searchsorted(means.sizes, usd)), len(means.sizes)
    where = place_among_sizes(means, usd)
    if where == "sampled":
        return means.bps[:, at]
    if where == "between":
        small, large = np.log(means.sizes[at - 1 : at + 1])
        share = (np.log(usd) - small) / (large - small)
        ends = _log_costs(means)[:, at - 1 : at + 1]
        return np.asarray(np.exp(ends[:, 0] * (1 - share) + ends[:, 1] * share))
    if not many:
        return np.full(len(means.law), np.nan)
    edge = 0 if at == 0 else many - 1
    scale = np.exp(_log_costs(means)[:, edge])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = cost_by_law(means.law, usd) / cost_by_law(means.law, float(means.sizes[edge]))
    return np.asarray(scale * ratio)


def largest_size(means: SizeMeans, bps: float) -> Floats:
    """Return the largest size whose mean cost is within a bound: the inverse of `expected_cost`."""
    many = len(means.sizes)
    if not many:
        return np.full(len(means.law), np.nan)
    costs, sizes = _log_costs(means), np.log(means.sizes)
    within = costs <= np.log(bps)
    # The largest size within the bound. Smaller sizes may cost more, if other books were sampled.
    last = many - 1 - np.argmax(within[:, ::-1], axis=1)
    found = np.where(
        within.any(axis=1),
        _size_beyond(means, bps, many - 1),
        np.minimum(_size_beyond(means, bps, 0), means.sizes[0]),
    )
    inner = within.any(axis=1) & (last < many - 1)
    row, low = np.nonzero(inner)[0], last[inner]
    below, above = costs[row, low], costs[row, low + 1]
    share = (np.log(bps) - below) / (above - below)
    found[inner] = np.exp(sizes[low] + share * (sizes[low + 1] - sizes[low]))
    found[inner] = np.where(share == 0, means.sizes[low], found[inner])
    return np.asarray(np.where(np.isnan(costs).any(axis=1), np.nan, found))


def _size_beyond(means: SizeMeans, bps: float, edge: int) -> Floats:
    """Return the size at which the scaled law reaches a cost; 0 if every size costs more."""
    half, a, k, _ = means.law.T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = np.exp(_log_costs(means)[:, edge]) / cost_by_law(
            means.law, float(means.sizes[edge])
        )
        left = bps / scale - half
        size = np.where(left > 0, UNIT_USD * (np.maximum(left, 0.0) / a) ** (1 / k), 0.0)
    return np.asarray(np.where((k > 0) & np.isfinite(scale), size, np.nan))


def cost_by_law(law: Floats, usd: float) -> Floats:
    """Return the median of the fitted distribution of costs, in bps."""
    half, a, k, _ = law.T
    return np.asarray(half + a * (usd / UNIT_USD) ** k)


def place_among_sizes(means: SizeMeans, usd: float) -> str:
    """Return where a size lies among the sampled sizes."""
    if usd in means.sizes:
        return "sampled"
    if not len(means.sizes) or usd > means.sizes[-1]:
        return "above"
    return "below" if usd < means.sizes[0] else "between"


def blocks_at(means: SizeMeans, usd: float) -> int:
    """Return the number of blocks of days behind the cost of a size.

    Between two sampled sizes, the result is the smaller number of the two.
    """
    if usd != usd or not len(means.sizes):
        return 0
    if usd in means.sizes:
        return int(means.blocks[means.sizes == usd][0])
    at = int(np.searchsorted(means.sizes, usd))
    return int(means.blocks[max(at - 1, 0) : at + 1].min())


def largest_misfit(means: SizeMeans, whole: Flags) -> float:
    """Return the largest relative error of the law at the chosen sampled means.

    Do not choose sizes for which the book was sometimes too thin: their mean is not known.
    """
    sizes, seen = means.sizes[whole], np.maximum(means.bps[0, whole], LEAST_BPS)
    if not len(sizes) or not np.isfinite(means.law[0]).all():
        return float("nan")
    middle = np.array([cost_by_law(means.law[:1], float(usd))[0] for usd in sizes])
    return float(np.abs(middle * np.exp(means.law[0, 3] ** 2 / 2) / seen - 1).max())


def _log_costs(means: SizeMeans) -> Floats:
    return np.asarray(np.log(np.maximum(means.bps, LEAST_BPS)))
