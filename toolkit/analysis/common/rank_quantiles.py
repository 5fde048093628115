"""Quantiles by rank: equal on every engine, and always one of the values."""

import math

import narwhals as nw


def rank_in_group(name: str, groups: list[str]) -> nw.Expr:
    """Return each row's rank in its group; equal values have different ranks in any order."""
    return nw.col(name).rank("ordinal").over(*groups).cast(nw.Float64())


def value_at_rank(name: str, ranks: str, counts: str, quantile: float) -> nw.Expr:
    """Return the value at the rank of the quantile, and null in all other rows of the group.

    This is the k-th smallest of n values with k = max(1, ceil(quantile * n)), which is the only
    rank in [quantile * n, quantile * n + 1). The maximum over the group is then the quantile.
    """
    # The small number corrects products that are rounded up: 0.7 * 10 = 7.000000000000001.
    wanted = nw.col(counts) * quantile - 1e-9
    here = (nw.col(ranks) >= wanted) & (nw.col(ranks) < wanted + 1)
    if quantile == 0:
        here = nw.col(ranks) == 1
    return nw.when(here).then(nw.col(name))


def finite_value(name: str) -> nw.Expr:
    """Return the value, or missing if it is infinite."""
    return nw.when(nw.col(name) < math.inf).then(nw.col(name))


def name_quantiles(quantiles: tuple[float, ...] | list[float]) -> dict[str, float]:
    """Return the names of quantiles: 0.1 is ``q10``.

    Raise ValueError if a quantile is not between 0 and 1.
    """
    if not all(0 <= q <= 1 for q in quantiles):
        raise ValueError(f"quantiles must be between 0 and 1, not {list(quantiles)}")
    return {f"q{100 * q:g}": q for q in quantiles}
