"""Order books as ladders of price levels: what stands there before anybody trades.

A ladder is drawn from its market's typical depth, thinner in stress and in the quiet hours.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.simulation.draws import stream
from toolkit.simulation.markets import PERPS, tick
from toolkit.simulation.prices import MINUTES_AN_HOUR, Prices

__all__ = ["SLIPPAGE_EXPONENT", "Ladders", "draw_ladders", "sampled_minutes"]

_QUARTER = 15

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DISTANCES_BPS = (0, 1, 2, 4, 6, 10, 15, 22, 32, 46, 66, 95, 135, 190, 270, 380, 540)
"""How far the levels stand from the best price."""

_SHARES = (
    0.03, 0.03, 0.06, 0.13, 0.21, 0.54, 0.84, 1.42, 2.46, 4.14, 7.1, 12.3, 20.3, 33.2, 57.5, 94.0,
    163.0,
)  # fmt: skip
"""What stands on each level, over the depth within 10 bps.

The sums grow like the distance to the power of 1.5, so that an order of size Q moves the price
by about Q to the power of two thirds."""

SLIPPAGE_EXPONENT = 2.0 / 3.0


@dataclass(frozen=True, slots=True)
class Ladders:
    """The books of one perp at some moments, best level first.

    Parameters
    ----------
    mid : array of float, (moments,)
        Half-way between the best prices, USD.
    bid_px, ask_px : array of float, (moments, levels)
        Prices, USD.
    bid_sz, ask_sz : array of float, (moments, levels)
        Sizes, in coins.
    """

    mid: Floats
    bid_px: Floats
    bid_sz: Floats
    ask_px: Floats
    ask_sz: Floats


def draw_ladders(seed: int, prices: Prices, coin: int, minutes: Ints) -> Ladders:
    """Draw the books of one perp at the given minutes of history."""
    perp = PERPS[coin]
    bid, ask = prices.bid[coin, minutes], prices.ask[coin, minutes]
    hour = minutes // MINUTES_AN_HOUR
    quiet = np.where(hour % 24 < 6, 0.75, 1.0)
    thickness = perp.depth_usd * quiet / np.sqrt(prices.stress[coin, hour])
    rng = stream(seed, "ladders", perp.coin)
    unit = float(10**perp.px_decimals)
    bid_px = _levels(bid, -1, perp.px_decimals) / unit
    ask_px = _levels(ask, 1, perp.px_decimals) / unit
    return Ladders(
        mid=(bid + ask) / (2.0 * unit),
        bid_px=bid_px,
        bid_sz=_sizes(rng, thickness, bid_px, perp.sz_decimals),
        ask_px=ask_px,
        ask_sz=_sizes(rng, thickness, ask_px, perp.sz_decimals),
    )


def sampled_minutes(prices: Prices) -> Ints:
    """Give the minutes of history at which books are sampled: every quarter of an hour."""
    return np.arange(0, prices.mid.shape[1], _QUARTER)


def _levels(best: Ints, sign: int, px_decimals: int) -> Ints:
    """Give price levels away from the best price: on ticks, no two alike, never below one."""
    step = np.array([tick(int(px), px_decimals) for px in best])
    away = np.zeros_like(best)
    columns = []
    for distance in _DISTANCES_BPS:
        wanted = best * distance // (10_000 * step)
        away = np.maximum(wanted, away + 1) if distance else away
        columns.append(np.maximum(best + sign * away * step, 1))
    return np.stack(columns, axis=1)


def _sizes(rng: np.random.Generator, thickness: Floats, px: Floats, sz_decimals: int) -> Floats:
    """Give the sizes on the levels, in whole lots."""
    noise = 0.4 + 1.2 * rng.random(px.shape)
    usd = thickness[:, None] * np.array(_SHARES) * noise
    lots = float(10**sz_decimals)
    return np.asarray(np.maximum(np.floor(usd / px * lots), 1.0) / lots)
