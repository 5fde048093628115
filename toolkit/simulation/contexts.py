"""The market at the end of history: asset contexts, and the depth of every book."""

from collections import defaultdict

import numpy as np

from toolkit.contract.dexes import dex_name_in
from toolkit.contract.records import (
    AssetContext,
    BookLevel,
    Depth,
    DepthLevel,
    FundingRate,
    L2Book,
    MarketDepth,
)
from toolkit.rules.depth import Book, Levels, bands
from toolkit.simulation.draws import stream
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.ladders import Ladders, draw_ladders, sampled_minutes
from toolkit.simulation.markets import DEXES, PERPS
from toolkit.simulation.prices import RATE_DECIMALS
from toolkit.simulation.quantities import MICRO, text, units
from toolkit.times import DAY, HOUR, MINUTE

__all__ = ["asset_contexts", "book_at", "books_now", "depth_now", "funding_rates"]

_IMPACT_LEVEL = 3
_MOST_ORDERS = 6  # on one level of a book


def asset_contexts(exchange: Exchange) -> dict[str, list[AssetContext]]:
    """Give the context of every perp, by dex, in the order of `metas`."""
    volumes = _day_volumes(exchange)
    contexts: dict[str, list[AssetContext]] = {dex: [] for dex in DEXES}
    for coin, perp in enumerate(PERPS):
        contexts[perp.dex].append(_context(exchange, coin, *volumes[perp.coin]))
    return contexts


def depth_now(exchange: Exchange) -> Depth:
    """Give the depth of every market that is not delisted."""
    return Depth(
        timestamp_ms=exchange.end_ms,
        data=[
            MarketDepth(
                coin=perp.coin.rpartition(":")[2],
                dex=dex_name_in("rows", perp.dex),
                levels=[
                    DepthLevel(bps=bps, bid_depth_usd=bid, ask_depth_usd=ask)
                    for bps, bid, ask in bands(_book_now(exchange, coin))
                ],
            )
            for coin, perp in enumerate(PERPS)
            if not perp.delisted
        ],
    )


def books_now(exchange: Exchange) -> dict[str, L2Book]:
    """Return the book of every coin that is not delisted: that which `depth_now` sums up."""
    books = {}
    for coin, perp in enumerate(PERPS):
        if not perp.delisted:
            rng = stream(exchange.prices.seed, "orders on levels", perp.coin)
            levels = [
                _levels(side, perp.px_decimals, perp.sz_decimals, rng)
                for side in _book_now(exchange, coin)
            ]
            books[perp.coin] = L2Book(coin=perp.coin, time=exchange.end_ms, levels=levels)
    return books


def _levels(
    side: Levels, px_decimals: int, sz_decimals: int, rng: np.random.Generator
) -> list[BookLevel]:
    """Return one side of a book as the wire has it; levels of one price are one level."""
    sizes: dict[int, int] = {}
    for px, sz in side:
        price = round(float(px) * 10**px_decimals)
        sizes[price] = sizes.get(price, 0) + round(float(sz) * 10**sz_decimals)
    return [
        BookLevel(
            px=text(price, px_decimals),
            sz=text(lots, sz_decimals),
            orders=min(lots, int(rng.integers(1, _MOST_ORDERS + 1))),
        )
        for price, lots in sizes.items()
    ]


def funding_rates(exchange: Exchange) -> dict[str, list[FundingRate]]:
    """Return the rate of every hour by coin, oldest first; a delisted perp's end with it."""
    last_paid = {row.delta.coin: row.time for row in exchange.funding}
    rates: dict[str, list[FundingRate]] = {}
    for coin, perp in enumerate(PERPS):
        end = last_paid.get(perp.coin, 0) if perp.delisted else exchange.end_ms
        hours = range(1, (end - exchange.start_ms) // HOUR + 1)
        rates[perp.coin] = [
            FundingRate(
                coin=perp.coin,
                funding_rate=text(int(exchange.prices.rate[coin, hour]), RATE_DECIMALS),
                premium=text(round(float(exchange.prices.premium[coin, hour]) * 10**10), 10),
                time=exchange.start_ms + hour * HOUR,
            )
            for hour in hours
        ]
    return rates


def book_at(ladders: Ladders, moment: int) -> Book:
    """Give one of the ladders as `toolkit.rules` takes books."""
    return Book(
        bids=np.stack([ladders.bid_px[moment], ladders.bid_sz[moment]], axis=1),
        asks=np.stack([ladders.ask_px[moment], ladders.ask_sz[moment]], axis=1),
    )


def _book_now(exchange: Exchange, coin: int) -> Book:
    """Give the book of the last slippage sample: it stands at the end of history, too."""
    prices = exchange.prices
    minutes = sampled_minutes(prices)
    if minutes[-1] != prices.mid.shape[1] - 1:
        raise ValueError("history must end on a quarter of an hour")
    return book_at(draw_ladders(prices.seed, prices, coin, minutes), -1)


def _context(exchange: Exchange, coin: int, usd: int, lots: int) -> AssetContext:
    """Give one context; a delisted perp has no book, so no mid, premium and impact prices."""
    perp, prices = PERPS[coin], exchange.prices
    last = prices.mid.shape[1] - 1
    day_ago = max(0, last - DAY // MINUTE)
    decimals = perp.px_decimals
    mark = int(prices.mark[coin, last])
    bid, ask = int(prices.bid[coin, last]), int(prices.ask[coin, last])
    step = ask - bid
    size = sum(max(0, size) for size, _ in exchange.positions[coin].values())
    impact = [bid - _IMPACT_LEVEL * step, ask + _IMPACT_LEVEL * step]
    oracle = int(prices.oracle[coin, -1])
    return AssetContext(
        funding=text(int(prices.rate[coin, -1]), RATE_DECIMALS),
        open_interest=text(size, perp.sz_decimals),
        prev_day_px=text(int(prices.mark[coin, day_ago]), decimals),
        day_ntl_vlm=text(usd, MICRO),
        premium=None if perp.delisted else text((mark - oracle) * 10**10 // oracle, 10),
        oracle_px=text(oracle, decimals),
        mark_px=text(mark, decimals),
        mid_px=None if perp.delisted else text((bid + ask) * 5, decimals + 1),
        impact_pxs=None if perp.delisted else [text(max(px, 1), decimals) for px in impact],
        day_base_vlm=text(lots, perp.sz_decimals),
    )


def _day_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Give the last day's volume of each coin: micro-dollars and lots."""
    decimals = {perp.coin: perp.sz_decimals for perp in PERPS}
    volumes: dict[str, tuple[int, int]] = defaultdict(_nothing)
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        if fill.crossed and fill.coin in decimals:
            lots = units(fill.sz, decimals[fill.coin])
            usd, before = volumes[fill.coin]
            px = units(fill.px, 6 - decimals[fill.coin])
            volumes[fill.coin] = usd + lots * px, before + lots
    return volumes


def _nothing() -> tuple[int, int]:
    return 0, 0
