"""Books of the market: drawn price levels, slippage samples, depth, and books of levels.

The books are drawn from each market's typical depth, thinner in stress and in the quiet hours.
They show the levels before anybody trades.
"""

from dataclasses import dataclass

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.contract.dexes import dex_name_in
from toolkit.contract.records import (
    BookLevel,
    Depth,
    DepthLevel,
    L2Book,
    MarketDepth,
    SlippageSample,
)
from toolkit.contract.requests import AMOUNTS
from toolkit.rules.depth import Book, depth_bands
from toolkit.rules.slippage import average_prices
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import MINUTES_AN_HOUR, Prices
from toolkit.simulation.markets import PERPS, delisting_time, tick_size
from toolkit.simulation.quantities import decimal_text
from toolkit.simulation.random_draws import random_stream
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


def slippage_samples(seed: int, prices: Prices, start_ms: int) -> list[SlippageSample]:
    """Return the samples of every perp while it is listed, by coin, amount and time.

    Every quarter of an hour, a sample says what orders of nine sizes would have cost.
    """
    all_minutes = _sample_minutes(prices)
    end = delisting_time(start_ms, start_ms + int(all_minutes[-1]) * MINUTE)
    samples: list[SlippageSample] = []
    for coin, perp in enumerate(PERPS):
        minutes = all_minutes
        if perp.delisted:
            minutes = minutes[start_ms + minutes * MINUTE < end]
        times = (start_ms + minutes * MINUTE).tolist()
        books = draw_books(seed, prices, coin, minutes)
        spread = _round_to_hundredths((books.ask_px[:, 0] / books.mid - 1.0) * 10_000.0)
        dex = dex_name_in("rows", perp.dex)
        for usd in AMOUNTS:
            amount = float(usd)
            buys = average_prices(books.ask_px, books.ask_sz, amount) / books.mid - 1.0
            sells = 1.0 - average_prices(books.bid_px, books.bid_sz, amount) / books.mid
            rows = zip(times, spread, _bps_values(buys), _bps_values(sells), strict=True)
            samples += [
                SlippageSample(
                    timestamp=time,
                    dex=dex,
                    coin=perp.coin,
                    half_spread_bps=half_spread,
                    amount_usd=amount,
                    buy_slippage_bps=buy,
                    sell_slippage_bps=sell,
                )
                for time, half_spread, buy, sell in rows
            ]
    return samples


def final_books(exchange: Exchange) -> dict[int, Book]:
    """Return the book of every perp that is not delisted: that of the last slippage sample."""
    prices = exchange.prices
    minutes = _sample_minutes(prices)
    return {
        coin: draw_books(prices.seed, prices, coin, minutes).book_at(-1)
        for coin, perp in enumerate(PERPS)
        if not perp.delisted
    }


def sum_depth(end_ms: int, books: dict[int, Book]) -> Depth:
    """Return the depth of books at the end of history."""
    return Depth(
        timestamp_ms=end_ms,
        data=[
            MarketDepth(
                coin=PERPS[coin].coin.rpartition(":")[2],
                dex=dex_name_in("rows", PERPS[coin].dex),
                levels=[
                    DepthLevel(bps=bps, bid_depth_usd=bid, ask_depth_usd=ask)
                    for bps, bid, ask in depth_bands(book)
                ],
            )
            for coin, book in books.items()
        ],
    )


def wire_books(exchange: Exchange, books: dict[int, Book]) -> dict[str, L2Book]:
    """Return books as the wire has them, by coin; levels of one price are one level."""
    records = {}
    for coin, book in books.items():
        perp, levels = PERPS[coin], []
        rng = random_stream(exchange.prices.seed, "orders on levels", perp.coin)
        for side in book:
            sizes: dict[int, int] = {}
            for level_px, level_sz in side:
                px = round(float(level_px) * 10**perp.px_decimals)
                sizes[px] = sizes.get(px, 0) + round(float(level_sz) * 10**perp.sz_decimals)
            rows = [
                BookLevel(
                    px=decimal_text(px, perp.px_decimals),
                    sz=decimal_text(lots, perp.sz_decimals),
                    orders=min(lots, int(rng.integers(1, _LARGEST_ORDER_COUNT + 1))),
                )
                for px, lots in sizes.items()
            ]
            levels.append(rows)
        records[perp.coin] = L2Book(coin=perp.coin, time=exchange.end_ms, levels=levels)
    return records


def _sample_minutes(prices: Prices) -> Ints:
    """Return the minutes of history at which books are sampled: every quarter of an hour."""
    return np.arange(0, prices.mid.shape[1], _SAMPLE_MINUTES)


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


def _bps_values(share: Floats) -> list[float | None]:
    """Return basis points, or None for NaN."""
    rounded = _round_to_hundredths(share * 10_000.0)
    return [None if value != value else value for value in rounded]


def _round_to_hundredths(bps: Floats) -> list[float]:
    rounded: list[float] = (np.floor(bps * 100.0 + 0.5) / 100.0).tolist()
    return rounded
