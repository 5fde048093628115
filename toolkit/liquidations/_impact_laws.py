"""Power laws of price impact: how far a forced trade of a size moves the price of a coin."""

from typing import Final, NamedTuple

import numpy as np

from toolkit.arrays import Floats
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.money import join_names
from toolkit.slippage._fit import SlippageFit
from toolkit.slippage._means import UNIT_USD
from toolkit.statistics.bootstrap import Sampling
from toolkit.times import DAY

_SIDES: Final = ("sell", "buy")
_DEPTHS: Final = ("bid_depth_usd", "ask_depth_usd")


class ImpactLaws(NamedTuple):
    """Laws ``move = a * (Q / 100,000 USD)**k`` of coins, for sells and buys, as shares.

    - ``a``, ``k`` (array of float, (1 + draws, coins, 2)): the estimate, then the resamples; NaN if
      not known
    - ``largest`` (array of float, (coins, 2)): the largest trade that the data shows, in USD
    - ``blocks``: number of days (or blocks of days) that were resampled
    - ``source``: the data from which the laws were estimated, in words
    """

    a: Floats
    k: Floats
    largest: Floats
    blocks: int
    source: str

    def moves(self, usd: Floats, draw: int) -> Floats:
        """Return the signed price changes after signed trades of all coins; 0 without a trade."""
        place = np.arange(len(usd))
        side = (usd > 0).astype(np.int64)
        a, k = self.a[draw, place, side], self.k[draw, place, side]
        with np.errstate(over="ignore"):
            size = a * (np.abs(usd) / UNIT_USD) ** k
        return np.where(usd == 0, 0.0, np.sign(usd) * size)

    def beyond(self, usd: Floats) -> float:
        """Return how much of signed trades is beyond the largest that the data shows, in USD."""
        largest = self.largest[np.arange(len(usd)), (usd > 0).astype(np.int64)]
        return float(np.nansum(np.maximum(np.abs(usd) - largest, 0.0)))


def estimate_laws(
    impact: Frame | SlippageFit, coins: list[str], draws: int, seed: int
) -> ImpactLaws:
    """Return the laws of coins, from depth or from a fit of slippage.

    The marginal price of a fitted cost ``a * Q**k`` is ``a * (1 + k) * Q**k``: the derivative of
    the amount ``Q * cost`` that an order pays.
    """
    if isinstance(impact, SlippageFit):
        count = min([draws, *(len(values) - 1 for _, values in impact.draws.values())])
        a, k = np.full((2, 1 + count, len(coins), 2), np.nan)
        largest, blocks = a[0].copy(), 0
        sampled = impact.groups.set_index(["coin", "side"])["largest_usd"]
        for (coin, side), (clusters, values) in impact.draws.items():
            if coin in coins:
                at, blocks = (coins.index(coin), _SIDES.index(side)), clusters
                _, scale, power, _ = values[: 1 + count].T
                a[:, *at], k[:, *at] = scale * (1 + power) / 1e4, power
                largest[at] = sampled[coin, side]
        return ImpactLaws(a, k, largest, blocks, f"fitted slippage of {impact.n:,} samples")
    table = Table(impact, "impact", "depth")
    table.require(("coin", "timestamp_ms", "bps", *_DEPTHS))
    names = join_names(table.text("dex", blank=True), table.text("coin"))
    distance, ms = table.number("bps"), table.ms("timestamp_ms")
    days, codes = np.unique(ms // DAY, return_inverse=True)
    # Without resamples of several days there is no interval.
    how = Sampling(0.5, draws if len(days) > 1 else 0, seed)
    a, k = np.full((2, 1 + how.draws, len(coins), 2), np.nan)
    largest = a[0].copy()
    for place, coin in enumerate(coins):
        for number, column in enumerate(_DEPTHS):
            usd = table.number(column)
            use = names.facts(coin.__eq__) & (usd > 0) & (distance > 0)
            if not use.any():
                continue
            largest[place, number] = usd[use].max()
            # A regression of logarithms.
            x, y = np.log(usd[use] / UNIT_USD), np.log(distance[use] / 1e4)
            parts = (np.ones(len(x)), x, y, x * x, x * y)
            sums = np.stack([np.bincount(codes[use], part, len(days)) for part in parts], axis=1)
            n, sx, sy, sxx, sxy = how.sums(sums.astype(np.float64)).T
            spread = n * sxx - sx**2
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.where(spread > 1e-9 * n * sxx, (n * sxy - sx * sy) / spread, np.nan)
                # The impact of a larger trade is never smaller.
                k[:, place, number] = slope = np.maximum(slope, 0.0)
                a[:, place, number] = np.exp((sy - slope * sx) / n)
    return ImpactLaws(a, k, largest, len(days), f"depth of {len(np.unique(ms)):,} batches")
