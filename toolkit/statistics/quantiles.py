"""Quantiles of laws, and by rank: the k-th smallest value of each group, not interpolated."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.installation import explain_missing


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
