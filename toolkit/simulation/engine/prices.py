"""Prices by the minute: clustered volatility, fat tails, jumps, and a common factor.

Prices are drawn as doubles with exactly rounded operations only
(see `toolkit.simulation.random_draws`). They are then rounded to ticks, as whole numbers. All
accounting starts from those.
"""

from dataclasses import dataclass

import numpy as np

from toolkit.arrays import Floats, Ints
from toolkit.simulation.markets import PERPS, Perp
from toolkit.simulation.random_draws import bell_draws, fat_tailed_draws, random_stream

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
    stress = _volatility_path(seed, hours)
    returns = _minute_returns(seed, hours, stress)
    start = np.array([[perp.start_px] for perp in PERPS])
    fair = start * np.cumprod(1.0 + returns, axis=1)
    hourly_stress = np.concatenate([stress, stress[:, -1:]], axis=1)
    spread = _half_spreads(seed, hourly_stress)
    premium = _premium_path(seed, hours, hourly_stress)
    mid = fair * (1.0 + _repeat_by_minute(premium, fair.shape[1]))
    half = mid * _repeat_by_minute(spread, fair.shape[1]) / 10_000.0
    return Prices(
        seed=seed,
        mid=mid,
        bid=_round_to_ticks(mid - half, down=True),
        ask=_round_to_ticks(mid + half, down=False),
        mark=_round_to_ticks(mid, down=True),
        oracle=_round_to_ticks(fair[:, ::MINUTES_AN_HOUR], down=True),
        rate=_funding_rates(premium),
        premium=premium,
        half_spread_bps=spread,
        stress=hourly_stress,
    )


def _repeat_by_minute(hourly: Floats, minutes: int) -> Floats:
    return np.repeat(hourly, MINUTES_AN_HOUR, axis=1)[:, :minutes]


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


def _half_spreads(seed: int, stress: Floats) -> Floats:
    """Return half spreads: wider in stress, and by a quarter in the quiet hours of the day."""
    hours = stress.shape[1]
    typical = np.array([[perp.half_spread_bps] for perp in PERPS])
    quiet = np.where(np.arange(hours) % 24 < 6, 1.25, 1.0)
    noise = 0.9 + 0.2 * random_stream(seed, "spreads").random(stress.shape)
    return np.asarray(typical * (0.5 + 0.5 * stress) * quiet * noise)


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


def _funding_rates(premium: Floats) -> Ints:
    """Return hourly funding rates: an eighth of premium plus clamped interest, as published."""
    eight_hours = premium + np.clip(_INTEREST - premium, -_CLAMP, _CLAMP)
    hourly = np.clip(eight_hours / 8.0, -0.005, 0.005)
    return np.asarray(np.floor(hourly * float(10**RATE_DECIMALS) + 0.5).astype(np.int64))


def _round_to_ticks(px: Floats, *, down: bool) -> Ints:
    """Return prices rounded to legal ticks, down or up, as whole numbers."""
    rows = [_round_row(perp, row, down) for perp, row in zip(PERPS, px, strict=True)]
    return np.stack(rows)


def _round_row(perp: Perp, px: Floats, down: bool) -> Ints:
    units = np.floor(px * float(10**perp.px_decimals)).astype(np.int64)
    step = np.ones_like(units)
    for power in range(1, perp.px_decimals + 1):
        step = np.where(units >= 10 ** (4 + power), 10**power, step)
    lower = units // step * step
    return np.asarray(np.maximum(lower if down else lower + step, 1))
