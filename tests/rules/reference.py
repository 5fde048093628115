"""Reference calculations that only tests use: plain loops and closed formulas."""

from fractions import Fraction

import numpy as np

from toolkit.arrays import Floats
from toolkit.rules.closed_pnl import apply_perp_fill
from toolkit.rules.depth import mid_price
from toolkit.rules.funding import USDC_DECIMALS, implied_range
from toolkit.rules.spot_cost import FLAT, adjust_balance, apply_spot_fill

_BPS_DECIMALS = 2


def replay_perp_fills(fills, tick=1):
    """Return the closed PnL of each fill (change, px) of one account in one coin."""
    closed = []
    size = entry = 0
    for change, px in fills:
        gain, size, entry = apply_perp_fill(size, entry, change, px, tick)
        closed.append(gain)
    return closed


def replay_spot_fills(fills, unit=1, tolerance=1):
    """Return the closed PnL of each fill (start, change, px, fee) of one account in one token."""
    closed, basis = [], FLAT
    for start, change, px, fee in fills:
        _, basis = adjust_balance(basis, start, tolerance, unit)
        gain, basis = apply_spot_fill(basis, change, px, fee, unit)
        closed.append(gain)
    return closed


def half_spread_bps(book):
    """Return half the distance of best ask and best bid, in bps of mid, with two decimals."""
    mid = mid_price(book)
    if mid is None:
        return None
    return round(float(book.asks[0, 0] - book.bids[0, 0]) / 2 / mid * 1e4, _BPS_DECIMALS)


def slippage_bps(book, usd):
    """Return the slippage of buying and of selling a notional at once; None if too thin."""
    mid = mid_price(book)
    if mid is None:
        return None, None
    return walk_bps(book.asks, usd, mid), walk_bps(book.bids, usd, mid)


def walk_bps(levels, usd, mid):
    """Return the cost of taking `usd` from one side, in bps of mid; None if it is too thin."""
    notional = levels[:, 0] * levels[:, 1]
    filled = np.cumsum(notional)
    if not len(filled) or filled[-1] < usd:
        return None
    last = int(np.searchsorted(filled, usd))
    before = float(filled[last - 1]) if last else 0.0
    size = float(levels[:last, 1].sum()) + (usd - before) / float(levels[last, 0])
    return round(abs(usd / size / mid - 1) * 1e4, _BPS_DECIMALS)


def funding_payment(szi, oracle, rate, decimals):
    """Return the payment of one position in millionths of a USD, halves away from zero.

    `decimals` are those of the product of the three integers.
    """
    owed = abs(szi * oracle * rate)
    unit = 10 ** (decimals - USDC_DECIMALS) if decimals > USDC_DECIMALS else 1
    finer = 10 ** (USDC_DECIMALS - decimals) if decimals < USDC_DECIMALS else 1
    paid = (2 * owed * finer + unit) // (2 * unit)
    return paid if szi * oracle * rate < 0 else -paid


def exact_oracle_range(usdc, szi, rate, samples=1):
    """Return the lowest and the highest oracle price of a funding row, in exact fractions."""
    last_digit = Fraction(samples, 10**USDC_DECIMALS)
    ends = implied_range(-usdc, szi * rate * samples, last_digit)
    return min(ends), max(ends)


def tier_deductions(max_leverage, lower_bound):
    """Return what each tier deducts, so that the margin has no jump where the tier begins."""
    most, low = np.broadcast_arrays(
        np.asarray(max_leverage, np.float64), np.asarray(lower_bound, np.float64)
    )
    rate = 1 / (2 * most)
    low = np.where(np.isfinite(low), low, 0.0)
    return np.cumsum(low * np.diff(rate, axis=-1, prepend=rate[..., :1]), axis=-1)


def adverse_move(equity, long, short, long_margin, short_margin):
    """Return how far all prices may move against an account whose assets have one tier.

    Everything that is long falls by the share d, and everything that is short rises by it:
    ``equity - d (long + short) = long_margin (1 - d) + short_margin (1 + d)``.
    """
    equity, long, short, long_margin, short_margin = (
        np.asarray(column, np.float64)
        for column in (equity, long, short, long_margin, short_margin)
    )
    slope = np.asarray(long + short - long_margin + short_margin)
    room = equity - long_margin - short_margin
    move: Floats = np.divide(room, slope, out=np.full(slope.shape, np.nan), where=slope > 0)
    return move
