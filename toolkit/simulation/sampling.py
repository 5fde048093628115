"""Slippage samples: what orders of nine sizes would have cost, every quarter of an hour."""

import numpy as np

from toolkit.contract.dexes import dex_name_in
from toolkit.contract.records import SlippageSample
from toolkit.contract.requests import AMOUNTS
from toolkit.simulation.ladders import Floats, Ladders, draw_ladders, sampled_minutes
from toolkit.simulation.markets import PERPS, delisting_time
from toolkit.simulation.prices import Prices
from toolkit.times import MINUTE

__all__ = ["slippage_samples", "walk"]


def slippage_samples(seed: int, prices: Prices, start_ms: int) -> list[SlippageSample]:
    """Sample every perp, as long as it is listed, by coin, amount and time."""
    every = sampled_minutes(prices)
    ended = delisting_time(start_ms, start_ms + int(every[-1]) * MINUTE)
    samples: list[SlippageSample] = []
    for coin, perp in enumerate(PERPS):
        minutes = every[start_ms + every * MINUTE < ended] if perp.delisted else every
        times = (start_ms + minutes * MINUTE).tolist()
        ladders = draw_ladders(seed, prices, coin, minutes)
        spread = _hundredths((ladders.ask_px[:, 0] / ladders.mid - 1.0) * 10_000.0)
        dex = dex_name_in("rows", perp.dex)
        for usd in AMOUNTS:
            buys, sells = _costs(ladders, float(usd))
            samples += [
                SlippageSample(
                    timestamp=time,
                    dex=dex,
                    coin=perp.coin,
                    half_spread_bps=half,
                    amount_usd=float(usd),
                    buy_slippage_bps=buy,
                    sell_slippage_bps=sell,
                )
                for time, half, buy, sell in zip(times, spread, buys, sells, strict=True)
            ]
    return samples


def _costs(ladders: Ladders, usd: float) -> tuple[list[float | None], list[float | None]]:
    buys = walk(ladders.ask_px, ladders.ask_sz, usd) / ladders.mid - 1.0
    sells = 1.0 - walk(ladders.bid_px, ladders.bid_sz, usd) / ladders.mid
    return _rounded(buys * 10_000.0), _rounded(sells * 10_000.0)


def walk(px: Floats, sz: Floats, usd: float) -> Floats:
    """Give the average price of an order; NaN where the book is too thin.

    The same as `toolkit.rules.slippage.walk_bps`, for many books at once.

    Parameters
    ----------
    px, sz : array of float, (moments, levels)
        One side of the books, best level first.
    usd : float
        Notional of the order.

    Returns
    -------
    array of float, (moments,)
        Average prices, USD.
    """
    notional = px * sz
    before = np.cumsum(notional, axis=1) - notional
    taken = np.clip(usd - before, 0.0, notional)
    coins = np.cumsum(taken / px, axis=1)[:, -1]
    enough = before[:, -1] + notional[:, -1] >= usd
    return np.asarray(np.where(enough, usd / coins, np.nan))


def _rounded(bps: Floats) -> list[float | None]:
    return [None if value != value else value for value in _hundredths(bps)]


def _hundredths(bps: Floats) -> list[float]:
    rounded: list[float] = (np.floor(bps * 100.0 + 0.5) / 100.0).tolist()
    return rounded
