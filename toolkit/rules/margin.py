"""Maintenance margin in one tier or in several, and the distance to a liquidation.

In one tier, maintenance margin is half of what opening at the largest leverage requires:
``notional / (2 * max_leverage)``. A table of margin tiers gives a smaller largest leverage to
larger positions: in a tier the margin is ``notional * rate - deduction``, with
``rate = 1 / (2 * max_leverage)`` of the tier and
``deduction(n) = deduction(n - 1) + lower_bound(n) * (rate(n) - rate(n - 1))``, so that the margin
has no jump at a lower bound (docs/live_service.md, section 4; specification, `meta`:
maxLeverage). An account, or an isolated position, is liquidated when its equity falls below the
sum of the maintenance margins of its positions.

Tiers are two arrays whose last axis is the tier: largest leverages, and lower bounds that begin
with 0 and rise. `pad_tiers` makes both from tables of different lengths.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor

import numpy as np
import numpy.typing as npt

from toolkit.arrays import Floats

ExactTiers = Sequence[tuple[int, int]]
"""Lower bound and largest leverage of each tier; the first lower bound is 0."""

_MOST_STEPS = 200


def maintenance(
    notional: npt.ArrayLike, max_leverage: npt.ArrayLike, lower_bound: npt.ArrayLike | None = None
) -> Floats:
    """Return the maintenance margin of positions.

    Parameters
    ----------
    notional : array_like of float
        Unsigned position values at mark, USD.
    max_leverage : array_like of float
        The largest leverage of each position's asset. With `lower_bound` it has one more axis
        than `notional`: the largest leverage of each tier. One row is one table for all
        positions.
    lower_bound : array_like of float, optional
        The notional at which each tier begins, USD, in the shape of `max_leverage`. Without it
        every asset has one tier.

    Returns
    -------
    array of float
        USD; NaN if the notional or the largest leverage is unknown.

    Examples
    --------
    >>> maintenance([1000.0, 1000.0], [50, 10]).tolist()
    [10.0, 50.0]

    Ten million of a coin with tiers of 10x, and of 5x from three million on:

    >>> maintenance(10e6, [10, 5], [0.0, 3e6]).item()  # 0.1 * 10e6 - 3e6 * 0.05
    850000.0
    """
    notional = np.asarray(notional, np.float64)
    if lower_bound is None:
        return notional / (2 * np.asarray(max_leverage, np.float64))
    # Each tier applies its own rate to the part of the notional that lies in it. The first tier
    # continues below 0, so that one tier gives the same as no tiers for every number.
    above = notional[..., None] - np.asarray(lower_bound, np.float64)
    above[..., 1:] = np.maximum(above[..., 1:], 0.0)
    part = -np.diff(above, axis=-1, append=0.0)
    return np.asarray((part / (2 * np.asarray(max_leverage, np.float64))).sum(axis=-1))


def pad_tiers(tables: Sequence[Sequence[tuple[float, float]]]) -> tuple[Floats, Floats]:
    """Return tables of different lengths as two arrays, for the other functions.

    Parameters
    ----------
    tables : sequence of sequence of (float, float)
        Tables of (lower bound, largest leverage); one table for each row of the result.

    Returns
    -------
    max_leverage, lower_bound : array of float, (tables, most tiers)
        A shorter table is filled up with tiers that begin at infinity. An empty table is
        unknown: it is NaN.

    Raises
    ------
    ValueError
        If a table does not begin at 0, or its lower bounds do not rise.

    Examples
    --------
    >>> most, low = pad_tiers([[(0, 10), (3e6, 5)], [(0, 3)]])
    >>> most.tolist(), low.tolist()
    ([[10.0, 5.0], [3.0, 3.0]], [[0.0, 3000000.0], [0.0, inf]])
    """
    width = max((len(table) for table in tables), default=0) or 1
    most = np.full((len(tables), width), np.nan)
    low = np.full((len(tables), width), np.inf)
    low[:, 0] = 0.0
    for row, table in enumerate(tables):
        if not table:
            continue
        bounds, leverages = zip(*table, strict=True)
        if bounds[0] != 0 or any(after <= before for before, after in pairwise(bounds)):
            raise ValueError(
                f"margin tiers must begin at 0 and increase, but the lower bounds of table {row} "
                f"are {bounds}"
            )
        low[row, : len(table)] = bounds
        most[row, : len(table)] = leverages
        most[row, len(table) :] = leverages[-1]
    return most, low


def tiered_adverse_move(
    equity: npt.ArrayLike,
    owner: npt.ArrayLike,
    notional: npt.ArrayLike,
    max_leverage: npt.ArrayLike,
    lower_bound: npt.ArrayLike,
) -> Floats:
    """Return how far all prices may move against each account until it is liquidated.

    Everything that is long falls by the share d, and everything that is short rises by it. The
    result is the largest d with
    ``equity - d * sum(|notional|) >= sum(maintenance(notional moved by d))``. Both sides are
    piecewise linear in d and their difference falls, so there is only one such d. A position may
    change its tier on the way. No price falls below 0: from d = 1 on, a long loses its notional and
    needs no margin, and only shorts continue to lose.

    Parameters
    ----------
    equity : array_like of float, (accounts,)
        Account values now, USD.
    owner : array_like of int, (positions,)
        Place of each position's account in `equity`.
    notional : array_like of float, (positions,)
        Position values now, USD; negative for short positions.
    max_leverage, lower_bound : array_like of float, (positions, tiers)
        As in `maintenance`.

    Returns
    -------
    array of float, (accounts,)
        As a fraction; negative below maintenance; NaN without positions, if a value of the account
        is unknown, or if no d liquidates it: its longs are paid in full, and it has no shorts.

    Examples
    --------
    Ten million long with an equity of 1,850,000 falls by a tenth and is nine million: its
    margin is then 750,000, and the equity 850,000. It can fall a bit more:

    >>> tiered_adverse_move([1.85e6], [0], [10e6], [[10, 5]], [[0, 3e6]]).round(4).tolist()
    [0.1111]

    With an equity of 300, a long and a short of 100 at 10x: at d = 1 the long is worth 0, and the
    equity is 100. The short can lose 85.71 more, because its margin is then 14.29:

    >>> tiered_adverse_move([300.0], [0, 0], [100, -100], [[10]] * 2, [[0]] * 2).round(4).tolist()
    [1.8571]
    """
    equity, notional = np.asarray(equity, np.float64), np.asarray(notional, np.float64)
    owner, count = np.asarray(owner, np.int64), len(equity)
    most, low = np.asarray(max_leverage, np.float64), np.asarray(lower_bound, np.float64)
    size, sign = np.abs(notional), np.sign(notional)
    gross, shorts = (np.bincount(owner, part, count) for part in (size, size * (sign < 0)))
    # Without shorts, an account loses no more than all of its longs.
    is_liquidated = (gross > 0) & ((shorts > 0) | (equity < gross))
    move = np.where(is_liquidated, 0.0, np.nan)
    # Newton's method between bounds.
    least, largest = np.full(count, -np.inf), np.full(count, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_MOST_STEPS):
            moved = size * (1.0 - sign * move[owner])
            moved = np.where(sign > 0, np.maximum(moved, 0.0), moved)
            used = sign * (size - moved) + maintenance(moved, most, low)
            left = equity - np.bincount(owner, used, count)
            tier = (moved[:, None] >= low).sum(axis=1, keepdims=True).clip(1) - 1
            slope = size - notional / (2 * np.take_along_axis(most, tier, 1)[:, 0])
            slope = np.bincount(owner, np.where((sign > 0) & (moved == 0), 0.0, slope), count)
            least = np.where(left >= 0, np.maximum(least, move), least)
            largest = np.where(left <= 0, np.minimum(largest, move), largest)
            step = move + left / slope
            inside = (step >= least) & (step <= largest)
            step = np.where(inside, step, (least + largest) / 2)
            close = np.allclose(step, move, rtol=1e-14, atol=1e-15, equal_nan=True)
            move = step
            if close:
                break
    return move


def liquidation_price(
    mark: npt.ArrayLike,
    szi: npt.ArrayLike,
    equity: npt.ArrayLike,
    max_leverage: npt.ArrayLike,
    lower_bound: npt.ArrayLike,
) -> Floats:
    """Return the mark prices at which positions are liquidated, if all other prices stay.

    Parameters
    ----------
    mark, szi : array_like of float, (positions,)
        Mark prices now, and signed sizes.
    equity : array_like of float, (positions,)
        The equity behind each position: the account value less the maintenance margins of the
        account's other cross positions, or an isolated position's margin with its PnL.
    max_leverage, lower_bound : array_like of float, (positions, tiers)
        As in `maintenance`.

    Returns
    -------
    array of float, (positions,)
        NaN if no price above zero liquidates it, or if a value is unknown.

    Examples
    --------
    >>> liquidation_price([100.0], [2.0], [19.5], [[10]], [[0]]).round(4).tolist()  # 190 * 0.95
    [95.0]
    """
    mark, szi = np.asarray(mark, np.float64), np.asarray(szi, np.float64)
    alone = np.arange(len(mark))
    move = tiered_adverse_move(equity, alone, mark * szi, max_leverage, lower_bound)
    price = mark * (1.0 - np.sign(szi) * move)
    return np.where(price > 0, price, np.nan)


def exact_maintenance(notional: int, tiers: ExactTiers) -> int:
    """Return the maintenance margin of one position in whole units, rounded down.

    Parameters
    ----------
    notional : int
        Unsigned, in units of the smallest money, such as millionths of a USD.
    tiers : sequence of (int, int)
        Lower bound, in the same units, and largest leverage of each tier.

    Returns
    -------
    int
        In the same units.

    Examples
    --------
    >>> exact_maintenance(10_000_000, [(0, 10), (3_000_000, 5)])
    850000
    >>> exact_maintenance(1_000_001, [(0, 10)])
    50000
    """
    if len(tiers) == 1 or notional < tiers[1][0]:
        return notional // (2 * tiers[0][1])
    rate, deduction = _tier_terms(notional, tiers)
    return floor(notional * rate - deduction)


def exact_liquidation_price(mark: int, szi: int, equity: int, tiers: ExactTiers) -> Fraction:
    """Return the mark price at which one position is liquidated, if all other prices stay.

    Parameters
    ----------
    mark, szi : int
        Mark price now, and signed size: their product is in units of the money.
    equity : int
        The equity behind the position, as in `liquidation_price`.
    tiers : sequence of (int, int)
        As in `exact_maintenance`.

    Returns
    -------
    Fraction
        In the units of `mark`; 0 or below if no price liquidates it.

    Examples
    --------
    >>> exact_liquidation_price(1000, 2, 195, [(0, 10)])
    Fraction(950, 1)
    """
    size, sign = abs(szi), 1 if szi > 0 else -1
    # Equity less margin falls along the way. Its sign at the lower bounds therefore shows the
    # tier in which it is 0.
    px = Fraction(0)
    for place, (bound, _) in enumerate(tiers):
        rate, deduction = _tier_terms(bound, tiers)
        away = (equity + deduction - rate * size * mark) / (size * (1 - sign * rate))
        px = mark - sign * away
        if place + 1 == len(tiers) or size * px < tiers[place + 1][0]:
            break
    return px


def _tier_terms(notional: int, tiers: ExactTiers) -> tuple[Fraction, Fraction]:
    """Return rate and deduction of the tier of a notional."""
    rate, deduction = Fraction(1, 2 * tiers[0][1]), Fraction(0)
    for lower_bound, leverage in tiers[1:]:
        if notional < lower_bound:
            break
        before, rate = rate, Fraction(1, 2 * leverage)
        deduction += lower_bound * (rate - before)
    return rate, deduction
