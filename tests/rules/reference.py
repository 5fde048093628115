"""Reference calculations that only tests use: plain loops and closed formulas."""

from fractions import Fraction

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
    left, size = usd, 0.0
    for px, sz in levels.tolist():
        taken = min(left, px * sz)
        size += taken / px
        left -= taken
        if left <= 0:
            return round(abs(usd / size / mid - 1) * 1e4, _BPS_DECIMALS)
    return None


def funding_payment(szi, oracle, rate, decimals):
    """Return the payment of one position in millionths of a USD, halves away from zero.

    `decimals` are those of the product of the three integers.
    """
    owed = abs(szi * oracle * rate)
    unit = 10 ** (decimals - USDC_DECIMALS) if decimals > USDC_DECIMALS else 1
    finer = 10 ** (USDC_DECIMALS - decimals) if decimals < USDC_DECIMALS else 1
    paid = (2 * owed * finer + unit) // (2 * unit)
    return paid if szi * oracle * rate < 0 else -paid


def exact_oracle_range(usdc, szi, rate):
    """Return the lowest and the highest oracle price of a funding row, in exact fractions."""
    ends = implied_range(-usdc, szi * rate, Fraction(1, 10**USDC_DECIMALS))
    return min(ends), max(ends)
