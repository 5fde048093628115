"""How often intervals hold a planted truth: quick in the tests, longer as a command.

``python -m tests.analysis.interval_coverage --samples 1000`` prints the share for each helper.
"""

import argparse
from collections.abc import Callable
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

import toolkit as tk
from toolkit.simulation.engine.prices import RATE_DECIMALS, simulate_prices
from toolkit.simulation.markets import PERPS

Held = npt.NDArray[np.bool_]

DAY = pd.Timedelta(days=1)
START = pd.Timestamp("2025-09-01", tz="UTC")
LEVERAGES = {"X": 10.0, "Y": 5.0}


def held(*rows):
    """Return cross positions from (user, coin, signed value); every mark price is 1."""
    user, coin, value = zip(*rows, strict=True)
    return pd.DataFrame(
        {"user": user, "coin": coin, "szi": value, "position_value": np.abs(value),
         "leverage_type": "cross", "margin_used": 0.0}
    )  # fmt: skip


def owners(**values):
    return pd.DataFrame({"user": list(values), "cross_account_value": list(values.values())})


def books(a, k, coins="XY", days=1, noise=None):
    """Return depth of the law a * (Q / 100,000)**k, as shares; `noise` scales it by day."""
    band = np.array([10.0, 50.0, 200.0])
    usd = 1e5 * (band / 1e4 / a) ** (1 / k)
    factor = np.ones(days) if noise is None else noise
    return pd.concat(
        [
            pd.DataFrame({"coin": coin, "bps": band, "bid_depth_usd": usd * factor[day],
                          "ask_depth_usd": usd * factor[day], "timestamp_ms": START + day * DAY})
            for coin in coins for day in range(days)
        ]
    )  # fmt: skip


def random_market(seed, n=60):
    rng = np.random.default_rng(seed)
    value = rng.lognormal(10, 1, (n, 2)) * rng.choice([-1, 1], (n, 2), p=[0.3, 0.7])
    rows = [(f"u{i}", coin, value[i, j]) for i in range(n) for j, coin in enumerate("XY")]
    money = np.abs(value).sum(axis=1) * rng.uniform(0.1, 0.6, n)
    return held(*rows), owners(**{f"u{i}": each for i, each in enumerate(money)})


def _final_moves(depth):
    return tk.liquidations.cascade(
        *random_market(1), depth, "X", [-0.12], betas=0.5, max_leverage=LEVERAGES, draws=59
    ).params


@cache
def _planted_move():
    return float(_final_moves(books(0.004, 0.6))["estimate"].iloc[0])


def cascade_sample(rng):
    """A cascade whose impact is estimated from 12 days of books, which vary from day to day."""
    made = _final_moves(books(0.004, 0.6, days=12, noise=np.exp(0.5 * rng.normal(size=12))))
    return made["low"].le(_planted_move()).to_numpy() & made["high"].ge(_planted_move()).to_numpy()


KERNEL = np.array([2.0, -0.5, -0.3, -0.2])
"""By how much an order moves the price between it and the next, that and the one after, ..."""


def impact_tape(rng, days=40, orders=100, exponent=0.5):
    """Return taker fills and mids in which each order moves the price by a law of its size.

    Right after an order the price has moved by 10 bps for 1 % of a day's volume, times noise of the
    day, plus noise of the order. Before later orders it has moved by `KERNEL`. Sides persist.
    """
    n = days * orders
    day, place = np.divmod(np.arange(n), max(orders, 1))
    share = 0.01 * np.exp(rng.normal(0.0, 1.0, n))
    sign = np.ones(n)
    keeps = rng.random(n) < 0.7
    flips = rng.choice([-1.0, 1.0], n)
    for order in range(n):
        sign[order] = sign[order - 1] if order and keeps[order] else flips[order]
    noise = np.repeat(rng.normal(1.0, 0.2, days), orders)
    moved = sign * noise * 10 * (share / 0.01) ** exponent + rng.normal(0.0, 6.0, n)
    drift = np.convolve(sign, KERNEL)[:n] + rng.normal(0.0, 3.0, n) if n else sign
    at = START.value // 10**6 + 86_400_000 * day + 600_000 * place
    before = 100.0 * np.exp((np.cumsum(drift) - drift) / 1e4)
    fills = pd.DataFrame(
        {"oid": 1 + np.arange(n), "coin": "XYZ", "px": 100.0, "sz": 1e4 * share, "crossed": True,
         "side": np.where(sign > 0, "B", "A"), "tid": 1 + np.arange(n),
         "time": pd.to_datetime(at, unit="ms", utc=True)}
    ).astype({"coin": "str", "side": "str"})  # fmt: skip
    mids = pd.DataFrame(
        {"coin": "XYZ", "time": pd.to_datetime(np.repeat(at, 2) + np.tile([-9_000, 1_000], n),
                                              unit="ms", utc=True),
         "mid_px": np.stack([before, before * (1 + moved / 1e4)], axis=1).ravel()}
    ).astype({"coin": "str"})  # fmt: skip
    return fills, mids


def impact_sample(rng):
    """The law, and the kernel up to the fourth order after, from 40 days of orders."""
    fills, mids = impact_tape(rng)
    found = tk.execution.impact(fills, mids, volume={"XYZ": 1e6}, lags=6, draws=199)
    rows = pd.concat(
        [
            found.params[["low", "high"]].assign(truth=[0.5, 10.0, 10.0]),
            found.lags.head(4)[["kernel_low", "kernel_high"]]
            .set_axis(["low", "high"], axis=1)
            .assign(truth=np.cumsum(KERNEL)),
        ]
    )
    return rows["low"].le(rows["truth"]).to_numpy() & rows["high"].ge(rows["truth"]).to_numpy()


def premium_contexts(seed, hours):
    """Return hourly contexts of all perps of the simulated exchange: 0.9 of a premium remains."""
    prices = simulate_prices(seed, max(hours, 1))
    oracle = np.full((len(PERPS), hours), 100.0)
    names = np.repeat([perp.coin for perp in PERPS], hours)
    rows = {
        "name": pd.array(names, dtype="str"),
        "mark_px": (oracle * (1 + prices.premium[:, :hours])).ravel(),
        "oracle_px": oracle.ravel(),
        "funding": prices.rate[:, :hours].ravel() / 10**RATE_DECIMALS,
        "open_interest": np.repeat(1e5 / (1.0 + np.arange(len(PERPS))), hours),
        "time": START + pd.to_timedelta(np.tile(np.arange(hours), len(PERPS)), unit="h"),
    }
    return pd.DataFrame(rows)


def basis_sample(rng):
    """Ten days of all perps of the simulated exchange, which plants a persistence of 0.9."""
    found = tk.funding.basis(premium_contexts(int(rng.integers(10**6)), 240), draws=2).params
    rows = found[found["name"] == "persistence"]
    return rows["low"].le(0.9).to_numpy() & rows["high"].ge(0.9).to_numpy()


def positioning_sample(rng):
    """Accounts of very different sizes, of which 65 % are long, at twenty moments."""
    n, moments = 120, 20
    value = rng.lognormal(10, 1, n * moments)
    sign = rng.choice([-1.0, 1.0], n * moments, p=[0.35, 0.65])
    place, moment = np.divmod(np.arange(n * moments), moments)
    rows = pd.DataFrame(
        {"user": place.astype(str), "coin": "X", "szi": sign * value, "position_value": value,
         "entry_px": 1.0, "time": START + pd.to_timedelta(moment, unit="h")}
    )  # fmt: skip
    made = tk.accounts.positioning(rows, edges=[1e12])
    made = made[made["size"] == "all"]
    return made["low"].le(0.3).to_numpy() & made["high"].ge(0.3).to_numpy()


def asymmetry_sample(rng):
    """Buying costs 0.5 bps more than selling; the gap varies by day and by book, in 30 days.

    Days have different numbers of books. The cost itself varies more than the gap, on both sides.
    """
    day = np.repeat(np.arange(30), rng.integers(1, 9, 30))
    n = len(day)
    cost = 10 * np.exp(0.3 * rng.normal(size=30)[day] + 0.2 * rng.normal(size=n))
    gap = 0.5 + rng.normal(0.0, 1.0, 30)[day] + rng.normal(0.0, 1.0, n)
    at = START + pd.to_timedelta(day, unit="D") + pd.to_timedelta(np.arange(n), unit="min")
    rows = pd.DataFrame(
        {"timestamp": at, "coin": "XYZ", "amount_usd": 1e5, "half_spread_bps": 1.0,
         "buy_slippage_bps": (cost + gap / 2).round(2),
         "sell_slippage_bps": (cost - gap / 2).round(2)}
    )  # fmt: skip
    found = tk.slippage.asymmetry(rows, draws=399, seed=int(rng.integers(10**6)))
    return found["low"].le(0.5).to_numpy() & found["high"].ge(0.5).to_numpy()


def carry_sample(rng):
    """Ten days of a short: 240 hours at a mean rate of 1e-5, less twice 11 bps and 1 bps.

    The rate reverts over 40 days of hours. The cost of both sides has a factor of the day with
    mean 1, in 20 days. Both errors of the net are about as large.
    """
    shocks, kept = rng.normal(size=50 + 960), 0.8
    path = np.zeros(len(shocks))
    for hour in range(1, len(shocks)):
        path[hour] = kept * path[hour - 1] + shocks[hour]
    hours = START + pd.to_timedelta(np.arange(960), unit="h")
    rates = pd.DataFrame({"coin": "XYZ", "time": hours, "funding_rate": 1e-5 + 3e-6 * path[50:]})
    usd = np.array([1e3, 1e4, 1e5, 1e6])
    factor = np.exp(0.2 * rng.normal(size=20) - 0.2**2 / 2)
    bps = (factor[:, None] * (1 + 10 * (usd / 1e5) ** 0.6)).ravel()
    samples = pd.DataFrame(
        {"timestamp": np.repeat(START + pd.to_timedelta(np.arange(20), unit="D"), len(usd)),
         "coin": "XYZ", "amount_usd": np.tile(usd, 20), "half_spread_bps": np.repeat(factor, 4),
         "buy_slippage_bps": bps.round(2), "sell_slippage_bps": bps.round(2)}
    )  # fmt: skip
    found = tk.funding.carry(
        rates, samples, 1e5, days=10, fee_bps=1.0, draws=299, seed=int(rng.integers(10**6))
    )
    net = 240 * 1e-5 * 1e4 - 2 * 11 - 2 * 1
    return found["low"].le(net).to_numpy() & found["high"].ge(net).to_numpy()


def trip_sample(rng, n):
    """Of n round trips 90 % gain 1 in the mean, and 10 % lose 10; sizes are exponential."""
    is_loss = rng.random(n) < 0.1
    net = rng.exponential(1.0, n) * np.where(is_loss, -10.0, 1.0)
    closed = START + pd.to_timedelta(np.arange(n), unit="h")
    trips = pd.DataFrame({"status": "closed", "net": net, "closed": closed, "duration_hours": 1.0})
    rows = tk.performance.trip_sheet(trips).set_index("figure")
    truth = pd.Series({"payoff_ratio": 0.1, "profit_factor": 0.9, "expectancy": -0.1})
    rows = rows.loc[truth.index].dropna(subset=["low"])
    truth = truth[rows.index]
    return rows["low"].le(truth).to_numpy() & rows["high"].ge(truth).to_numpy()


LUCK: Final[dict[str, Callable[[np.random.Generator], npt.NDArray[np.float64]]]] = {
    "normal": lambda rng: rng.normal(size=(20, 60)),
    "autocorrelation of 0.3": lambda rng: _persistent(rng.normal(size=(20, 90)))[:, 30:],
    "rare large losses": lambda rng: (
        np.where(rng.random((20, 60)) < 0.1, -9.0, 1.0) * rng.exponential(size=(20, 60))
    ),
}
"""Returns of 20 accounts without skill on 60 days, in hundredths."""


def _persistent(shocks):
    made = shocks.copy()
    for day in range(1, made.shape[1]):
        made[:, day] += 0.3 * made[:, day - 1]
    return made


def discovery_share(name, worlds, seed=0):
    """Return the share of worlds without skill in which an account has q <= 5 %."""
    rng = np.random.default_rng(seed)
    return float(np.mean([_has_discovery(LUCK[name](rng) / 100) for _ in range(worlds)]))


def _has_discovery(returns):
    users = np.repeat([f"0x{k:02d}" for k in range(len(returns))], returns.shape[1])
    times = START + pd.to_timedelta(np.tile(np.arange(returns.shape[1]), len(returns)), unit="D")
    rows = pd.DataFrame({"user": users, "time": times, "return_": returns.ravel()})
    return bool((tk.performance.skill(rows).accounts["q"] <= 0.05).any())


SAMPLES: Final[dict[str, Callable[[np.random.Generator], Held]]] = {
    "asymmetry": asymmetry_sample,
    "basis": basis_sample,
    "carry": carry_sample,
    "cascade": cascade_sample,
    "impact": impact_sample,
    "positioning": positioning_sample,
    "25 trips": partial(trip_sample, n=25),
    "60 trips": partial(trip_sample, n=60),
}


def hold_share(name, samples, seed=0):
    """Return the share of intervals of 95 % that hold the truth."""
    rng = np.random.default_rng(seed)
    return float(np.mean(np.concatenate([SAMPLES[name](rng) for _ in range(samples)])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--only", choices=sorted(SAMPLES))
    options = parser.parse_args()
    for each in [options.only] if options.only else SAMPLES:
        print(f"{each}: {hold_share(each, options.samples):.3f}")
    for each in [] if options.only else LUCK:
        print(f"discovery without skill, {each}: {discovery_share(each, options.samples):.3f}")
