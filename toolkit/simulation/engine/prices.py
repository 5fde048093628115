"""Prices by the minute: clustered volatility, fat tails, jumps, and a common factor.

Prices are drawn as doubles with exactly rounded operations only
(see `toolkit.simulation.exact`). They are then rounded to ticks, as whole numbers. All
accounting starts from those.
"""

from dataclasses import dataclass

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.simulation.exact import bell_draws, fat_tailed_draws, random_stream
from toolkit.simulation.markets import PERPS

MINUTES_AN_HOUR = 60
RATE_DECIMALS = 10
"""Decimals of an hourly funding rate."""

_JUMPS_AN_HOUR = 0.002
_LARGEST_RETURN = 0.08
_INTEREST = 0.0001  # per eight hours
_CLAMP = 0.0005


@dataclass(frozen=True, slots=True)
class Prices:
    """Price paths; rows are perps in the order of `PERPS`, columns minutes or hours.

    - ``seed``: the seed of the prices, and also of the books
    - ``mid`` (array of float, (perps, minutes)): mid price, USD
    - ``bid``, ``ask``, ``mark`` (array of int, (perps, minutes)): best prices and mark price, in
      units of ``10**-px_decimals``
    - ``oracle``, ``rate`` (array of int, (perps, hours + 1)): oracle price and hourly funding rate
      (in units of ``10**-RATE_DECIMALS``) of each hour
    - ``premium`` (array of float, (perps, hours + 1)): mark over oracle, less one
    - ``half_spread_bps``, ``stress`` (array of float, (perps, hours + 1)): half spread, and
      volatility over its typical value
    """

    seed: int
    mid: Floats
    bid: Ints
    ask: Ints
    mark: Ints
    oracle: Ints
    rate: Ints
    premium: Floats
    half_spread_bps: Floats
    stress: Floats


def simulate_prices(seed: int, hours: int) -> Prices:
    """Draw the prices of every perp for a number of hours and one minute more."""
    columns = [(perp.start_px, perp.half_spread_bps, 10**perp.px_decimals) for perp in PERPS]
    start, usual_spread, scale = np.array(columns).T[:, :, np.newaxis]
    stress = _volatility_path(seed, hours)
    fair = start * np.cumprod(1.0 + _minute_returns(seed, hours, stress), axis=1)
    stress = np.concatenate([stress, stress[:, -1:]], axis=1)
    # Half spreads are wider in stress, and by a quarter in the quiet hours of the day.
    quiet = np.where(np.arange(hours + 1) % 24 < 6, 1.25, 1.0)
    noise = 0.9 + 0.2 * random_stream(seed, "spreads").random(stress.shape)
    spread = usual_spread * (0.5 + 0.5 * stress) * quiet * noise
    premium = _premium_path(seed, hours, stress)
    # The hourly rate is an eighth of premium plus clamped interest, as published.
    eight_hours = premium + np.clip(_INTEREST - premium, -_CLAMP, _CLAMP)
    rate = np.clip(eight_hours / 8.0, -0.005, 0.005) * float(10**RATE_DECIMALS)

    def repeat_by_minute(hourly: Floats) -> Floats:
        return np.repeat(hourly, MINUTES_AN_HOUR, axis=1)[:, : fair.shape[1]]

    def round_to_ticks(px: Floats, *, down: bool) -> Ints:
        units = np.floor(px * scale).astype(np.int64)
        step = np.ones_like(units)
        for power in range(1, max(perp.px_decimals for perp in PERPS) + 1):
            is_higher = (units >= 10 ** (4 + power)) & (scale >= 10**power)
            np.copyto(step, 10**power, where=is_higher)
        lower = units // step * step
        return np.asarray(np.maximum(lower if down else lower + step, 1))

    mid = fair * (1.0 + repeat_by_minute(premium))
    half = mid * repeat_by_minute(spread) / 10_000.0
    return Prices(
        seed=seed,
        mid=mid,
        bid=round_to_ticks(mid - half, down=True),
        ask=round_to_ticks(mid + half, down=False),
        mark=round_to_ticks(mid, down=True),
        oracle=round_to_ticks(fair[:, ::MINUTES_AN_HOUR], down=True),
        rate=np.floor(rate + 0.5).astype(np.int64),
        premium=premium,
        half_spread_bps=spread,
        stress=stress,
    )


def _volatility_path(seed: int, hours: int) -> Floats:
    """Return volatility over its typical value, by hour: a GARCH(1,1) process."""
    shocks = fat_tailed_draws(random_stream(seed, "volatility"), len(PERPS), hours)
    common = fat_tailed_draws(random_stream(seed, "volatility", "common"), hours)
    variance = np.ones(len(PERPS))
    path = np.empty((len(PERPS), hours))
    for hour in range(hours):
        path[:, hour] = np.sqrt(variance)
        news = 0.6 * shocks[:, hour] + 0.8 * common[hour]
        variance = np.minimum(0.06 + 0.16 * news * news * variance + 0.78 * variance, 16.0)
    return path


def _minute_returns(seed: int, hours: int, stress: Floats) -> Floats:
    """Return returns by the minute; the first is 0, so that history starts at `start_px`."""
    minutes = hours * MINUTES_AN_HOUR
    factor = fat_tailed_draws(random_stream(seed, "factor"), minutes) * 0.016
    beta = np.array([[perp.beta] for perp in PERPS])
    own_vol = np.array([[perp.daily_vol] for perp in PERPS])
    own = fat_tailed_draws(random_stream(seed, "returns"), len(PERPS), minutes)
    moves = 0.8 * own_vol * own + beta * factor
    scale = np.sqrt(1.0 / (24.0 * MINUTES_AN_HOUR))
    returns = moves * scale * np.repeat(stress, MINUTES_AN_HOUR, axis=1)
    rng = random_stream(seed, "jumps")
    chance = _JUMPS_AN_HOUR / MINUTES_AN_HOUR
    jumps = (rng.random(returns.shape) < chance) * bell_draws(rng, *returns.shape) * own_vol * 1.5
    bounded = np.clip(returns + jumps, -_LARGEST_RETURN, _LARGEST_RETURN)
    return np.concatenate([np.zeros((len(PERPS), 1)), bounded], axis=1)


def _premium_path(seed: int, hours: int, stress: Floats) -> Floats:
    """Return the premium of each hour: it reverts to a small mean and moves with stress."""
    shocks = bell_draws(random_stream(seed, "premium"), len(PERPS), hours + 1)
    illiquid = np.sqrt(np.array([perp.half_spread_bps for perp in PERPS]))
    path = np.empty((len(PERPS), hours + 1))
    level = np.zeros(len(PERPS))
    for hour in range(hours + 1):
        level = 0.9 * level + 0.0004 * illiquid * stress[:, hour] * shocks[:, hour]
        path[:, hour] = 0.0002 + level
    return path
