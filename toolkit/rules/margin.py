"""How the exchange asks for margin: when an account is liquidated, and how far that is.

Maintenance margin is half of what opening at the largest leverage asks for:
``notional / (2 * max_leverage)`` (specification, `meta`: maxLeverage; the exchange's public
documentation on margining). An account, or an isolated position, is liquidated when its equity
falls below the sum over what it stands behind.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["adverse_move", "maintenance"]

Floats = npt.NDArray[np.float64]


def maintenance(notional: npt.ArrayLike, max_leverage: npt.ArrayLike) -> Floats:
    """Give the maintenance margin of positions.

    Parameters
    ----------
    notional : array_like of float
        Unsigned position values at mark, USD.
    max_leverage : array_like of float
        The largest leverage of their assets.

    Returns
    -------
    array of float
        USD; NaN where either is not known.

    Examples
    --------
    >>> maintenance([1000.0, 1000.0], [50, 10]).tolist()
    [10.0, 50.0]
    """
    return np.asarray(notional, np.float64) / (2 * np.asarray(max_leverage, np.float64))


def adverse_move(
    equity: npt.ArrayLike,
    long: npt.ArrayLike,
    short: npt.ArrayLike,
    long_margin: npt.ArrayLike,
    short_margin: npt.ArrayLike,
) -> Floats:
    """Give how far all prices may move against an account until it is liquidated.

    The share d by which everything it holds long falls, and everything it holds short rises:
    ``equity - d (long + short) = long_margin (1 - d) + short_margin (1 + d)``.

    Parameters
    ----------
    equity : array_like of float
        Account value now, USD.
    long, short : array_like of float
        Unsigned notionals now, USD.
    long_margin, short_margin : array_like of float
        Their maintenance margins now, USD.

    Returns
    -------
    array of float
        As a fraction: 0.1 is 10 %; negative below maintenance; NaN without positions.

    Examples
    --------
    >>> adverse_move(100.0, 400.0, 0.0, 4.0, 0.0).round(4).item()  # 0.2424 * 396 = 96
    0.2424
    >>> bool(np.isnan(adverse_move(100.0, 0.0, 0.0, 0.0, 0.0)))
    True
    """
    equity, long, short, long_margin, short_margin = (
        np.asarray(one, np.float64) for one in (equity, long, short, long_margin, short_margin)
    )
    slope = np.asarray(long + short - long_margin + short_margin)
    room = equity - long_margin - short_margin
    move: Floats = np.divide(room, slope, out=np.full(slope.shape, np.nan), where=slope > 0)
    return move
