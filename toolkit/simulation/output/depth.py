"""Books of the market: drawn price levels, slippage samples, depth, and books of levels.

The books are drawn from each market's typical depth, thinner in stress and in the quiet hours.
They show the levels before anybody trades.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.contract import records as r
from toolkit.contract.dexes import dex_name_in
from toolkit.contract.requests import AMOUNTS
from toolkit.rules.depth import Book, depth_bands
from toolkit.rules.slippage import average_prices
from toolkit.simulation.engine.prices import MINUTES_AN_HOUR, Prices
from toolkit.simulation.exact import decimal_text, random_stream
from toolkit.simulation.markets import PERPS, delisting_time, tick_size
from toolkit.times import MINUTE

_SAMPLE_MINUTES = 15

_DISTANCES_BPS = (0, 1, 2, 4, 6, 10, 15, 22, 32, 46, 66, 95, 135, 190, 270, 380, 540)
"""Distances of the levels from the best price."""

_SHARES = (
    0.03, 0.03, 0.06, 0.13, 0.21, 0.54, 0.84, 1.42, 2.46, 4.14, 7.1, 12.3, 20.3, 33.2, 57.5, 94.0,
    163.0,
)  # fmt: skip
"""The depth of each level, over the depth within 10 bps.

The sums grow like the distance to the power of 1.5. An order of size Q therefore moves the price
by about Q to the power of two thirds."""

_LARGEST_ORDER_COUNT = 6  # on one level of a book


@dataclass(frozen=True, slots=True)
class DrawnBooks:
    """The books of one perp at some moments, best level first.

    - ``mid`` (array of float, (moments,)): half-way between the best prices, USD
    - ``bid_px``, ``ask_px`` (array of float, (moments, levels)): prices, USD
    - ``bid_sz``, ``ask_sz`` (array of float, (moments, levels)): sizes, in coins
    """

    mid: Floats
    bid_px: Floats
    bid_sz: Floats
    ask_px: Floats
    ask_sz: Floats

    def book_at(self, moment: int) -> Book:
        """Return the book of one moment."""
        return Book(
            bids=np.stack([self.bid_px[moment], self.bid_sz[moment]], axis=1),
            asks=np.stack([self.ask_px[moment], self.ask_sz[moment]], axis=1),
        )


def draw_books(seed: int, prices: Prices, coin: int, minutes: Ints) -> DrawnBooks:
    """Draw the books of one perp at the given minutes of history."""
    perp = PERPS[coin]
    bid, ask = prices.bid[coin, minutes], prices.ask[coin, minutes]
    hour = minutes // MINUTES_AN_HOUR
    quiet = np.where(hour % 24 < 6, 0.75, 1.0)
    thickness = perp.depth_usd * quiet / np.sqrt(prices.stress[coin, hour])
    rng = random_stream(seed, "ladders", perp.coin)
    unit = float(10**perp.px_decimals)
    bid_px = _level_prices(bid, -1, perp.px_decimals) / unit
    ask_px = _level_prices(ask, 1, perp.px_decimals) / unit
    return DrawnBooks(
        mid=(bid + ask) / (2.0 * unit),
        bid_px=bid_px,
        bid_sz=_draw_sizes(rng, thickness, bid_px, perp.sz_decimals),
        ask_px=ask_px,
        ask_sz=_draw_sizes(rng, thickness, ask_px, perp.sz_decimals),
    )


def tables(prices: Prices, start_ms: int) -> dict[str, Any]:
    """Return slippage samples, and depth and books at the end of history.

    While a perp is listed, every quarter of an hour a sample says what orders of nine sizes would
    have cost. The book at the end is that of the last sample; levels of one price are one level.
    """
    minutes = np.arange(0, prices.mid.shape[1], _SAMPLE_MINUTES)
    end_ms = start_ms + int(minutes[-1]) * MINUTE
    delisted = minutes[start_ms + minutes * MINUTE < delisting_time(start_ms, end_ms)]
    samples: list[r.SlippageSample] = []
    depths, books = [], {}
    for coin, perp in enumerate(PERPS):
        sampled = delisted if perp.delisted else minutes
        drawn = draw_books(prices.seed, prices, coin, sampled)
        times = (start_ms + sampled * MINUTE).tolist()
        spread = _rounded_bps(drawn.ask_px[:, 0] / drawn.mid - 1.0)
        dex = dex_name_in("rows", perp.dex)
        for usd in AMOUNTS:
            amount = float(usd)
            buys = average_prices(drawn.ask_px, drawn.ask_sz, amount) / drawn.mid - 1.0
            sells = 1.0 - average_prices(drawn.bid_px, drawn.bid_sz, amount) / drawn.mid
            samples += [
                r.SlippageSample(
                    timestamp=time,
                    dex=dex,
                    coin=perp.coin,
                    half_spread_bps=half_spread,
                    amount_usd=amount,
                    buy_slippage_bps=None if isnan(buy) else buy,
                    sell_slippage_bps=None if isnan(sell) else sell,
                )
                for time, half_spread, buy, sell in zip(
                    times, spread, _rounded_bps(buys), _rounded_bps(sells), strict=True
                )
            ]
        if perp.delisted:
            continue
        book = drawn.book_at(-1)
        bands = [
            r.DepthLevel(bps=bps, bid_depth_usd=bid, ask_depth_usd=ask)
            for bps, bid, ask in depth_bands(book)
        ]
        depths.append(r.MarketDepth(coin=perp.coin.rpartition(":")[2], dex=dex, levels=bands))
        rng = random_stream(prices.seed, "orders on levels", perp.coin)
        levels = []
        for side in book:
            sizes: dict[int, int] = defaultdict(int)
            for px, sz in side.tolist():
                sizes[round(px * 10**perp.px_decimals)] += round(sz * 10**perp.sz_decimals)
            rows = [
                r.BookLevel(
                    px=decimal_text(ticks, perp.px_decimals),
                    sz=decimal_text(lots, perp.sz_decimals),
                    orders=min(lots, int(rng.integers(1, _LARGEST_ORDER_COUNT + 1))),
                )
                for ticks, lots in sizes.items()
            ]
            levels.append(rows)
        books[perp.coin] = r.L2Book(coin=perp.coin, time=end_ms, levels=levels)
    depth = r.Depth(timestamp_ms=end_ms, data=depths)
    return {"slippage": samples, "depth": depth, "books": books}


def _level_prices(best: Ints, sign: int, px_decimals: int) -> Ints:
    """Return price levels away from the best price: on ticks, different, at least one."""
    step = np.array([tick_size(int(px), px_decimals) for px in best])
    ticks_away = np.zeros_like(best)
    columns = []
    for distance in _DISTANCES_BPS:
        ticks = best * distance // (10_000 * step)
        ticks_away = np.maximum(ticks, ticks_away + 1) if distance else ticks_away
        columns.append(np.maximum(best + sign * ticks_away * step, 1))
    return np.stack(columns, axis=1)


def _draw_sizes(
    rng: np.random.Generator, thickness: Floats, px: Floats, sz_decimals: int
) -> Floats:
    """Draw the sizes on the levels, in integer lots."""
    noise = 0.4 + 1.2 * rng.random(px.shape)
    usd = thickness[:, None] * np.array(_SHARES) * noise
    lots = float(10**sz_decimals)
    return np.asarray(np.maximum(np.floor(usd / px * lots), 1.0) / lots)


def _rounded_bps(share: Floats) -> list[float]:
    """Return basis points, rounded to hundredths."""
    rounded: list[float] = (np.floor(share * 10_000.0 * 100.0 + 0.5) / 100.0).tolist()
    return rounded
