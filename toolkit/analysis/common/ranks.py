"""Quantiles by rank: the same on every engine, and always a value that was there."""

import math

import narwhals as nw


def rank_in_group(name: str, groups: list[str]) -> nw.Expr:
    """Give each row's rank in its group; equal values may take each other's, which is the same."""
    return nw.col(name).rank("ordinal").over(*groups).cast(nw.Float64())


def value_at_rank(name: str, ranks: str, counts: str, quantile: float) -> nw.Expr:
    """Give the value where its rank is that of the quantile, null elsewhere: for a maximum.

    The k-th smallest of n, k = max(1, ceil(quantile * n)): the one rank in
    [quantile * n, quantile * n + 1).
    """
    # The bit taken off undoes what the product rounds up, as in 0.7 * 10 = 7.000000000000001.
    wanted = nw.col(counts) * quantile - 1e-9
    here = (nw.col(ranks) >= wanted) & (nw.col(ranks) < wanted + 1)
    if quantile == 0:
        here = nw.col(ranks) == 1
    return nw.when(here).then(nw.col(name))


def finite_value(name: str) -> nw.Expr:
    """Give a value, missing where it is infinite."""
    return nw.when(nw.col(name) < math.inf).then(nw.col(name))


def name_quantiles(quantiles: tuple[float, ...] | list[float]) -> dict[str, float]:
    """Name quantiles: 0.1 is ``q10``.

    Raises
    ------
    ValueError
        If one is not between 0 and 1.
    """
    if not all(0 <= q <= 1 for q in quantiles):
        raise ValueError(f"quantiles must lie between 0 and 1: {list(quantiles)}")
    return {f"q{100 * q:g}": q for q in quantiles}
