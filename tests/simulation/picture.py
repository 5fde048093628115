"""Draw the page that shows the simulated exchange: ``build/simulation.png``.

Run it after a change to prices, spreads, books or accounts, and look at it::

    python tests/simulation/picture.py
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from toolkit.contract.requests import AMOUNTS
from toolkit.rules.slippage import average_prices
from toolkit.simulation.agents.population import draw_accounts
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output.depth import draw_books

DAYS = 30
SHOWN = ("BTC", "SOL", "kPEPE", "PURR", "eqx:TSLA", "pre:OPENAI")
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
COINS = [next(n for n, perp in enumerate(PERPS) if perp.coin == name) for name in SHOWN]


def draw_prices(axes, prices):
    days = np.arange(prices.mid.shape[1]) / 1440
    for coin, colour in zip(COINS, COLOURS, strict=True):
        path = prices.mid[coin] / prices.mid[coin, 0]
        axes.plot(days, path, color=colour, lw=0.7, label=PERPS[coin].coin)
    axes.set(title="Price over its start", xlabel="day", ylabel="ratio", yscale="log")
    axes.yaxis.set_major_formatter("{x:.1f}")
    axes.yaxis.set_minor_formatter("{x:.1f}")
    axes.legend(fontsize=7, ncols=2)


def draw_returns(axes, prices):
    moves = np.diff(np.log(prices.mid[0, ::60])) * 100
    axes.bar(np.arange(len(moves)) / 24, moves, width=1 / 24, color=COLOURS[0])
    axes.set(title="BTC, hourly return: calm and storm", xlabel="day", ylabel="percent")


def draw_memory(axes, prices):
    moves = np.diff(np.log(prices.mid[:, ::60]), axis=1)
    lags = np.arange(1, 25)
    for name, rows, colour in (("|return|", np.abs(moves), 5), ("return", moves, 0)):
        means = [np.mean([np.corrcoef(r[lag:], r[:-lag])[0, 1] for r in rows]) for lag in lags]
        axes.plot(lags, means, "o-", ms=3, color=COLOURS[colour], label=name)
    axes.axhline(0, color="grey", lw=0.5)
    axes.set(title="Autocorrelation, mean of all perps", xlabel="lag, hours")
    axes.legend()


def draw_spreads(axes, prices):
    depth = [perp.depth_usd for perp in PERPS]
    low, middle, high = np.quantile(prices.half_spread_bps, (0.1, 0.5, 0.9), axis=1)
    axes.vlines(depth, low, high, color="grey")
    axes.plot(depth, middle, "o", color=COLOURS[0])
    axes.set(
        title="Half spread by depth (10 %, median, 90 %)", xlabel="depth within 10 bps, USD",
        ylabel="bps", xscale="log", yscale="log",
    )  # fmt: skip


def draw_depth(axes, prices):
    for coin, colour in zip(COINS, COLOURS, strict=True):
        ladder = draw_books(7, prices, coin, np.array([30_000]))
        for px, sz, sign in (
            (ladder.bid_px[0], ladder.bid_sz[0], -1),
            (ladder.ask_px[0], ladder.ask_sz[0], 1),
        ):
            away = sign * np.abs(px / ladder.mid[0] - 1) * 1e4
            axes.step(away, np.cumsum(px * sz), where="post", color=colour, lw=1)
    axes.set(
        title="Cumulative depth",
        xlabel="bps from mid",
        ylabel="USD",
        yscale="log",
        xlim=(-300, 300),
    )


def draw_slippage(axes, prices):
    minutes = np.arange(0, DAYS * 1440, 240)
    for coin, colour in zip(COINS, COLOURS, strict=True):
        ladders = draw_books(7, prices, coin, minutes)
        costs = np.array([average_prices(ladders.ask_px, ladders.ask_sz, usd) for usd in AMOUNTS])
        bps = (costs / ladders.mid - 1) * 1e4
        whole = ~np.isnan(bps).any(axis=1)
        axes.plot(np.array(AMOUNTS)[whole], bps[whole].mean(axis=1), "o-", ms=3, color=colour)
    axes.set(
        title="Mean slippage of buying", xlabel="USD", ylabel="bps", xscale="log", yscale="log"
    )


def draw_funding(axes, prices):
    for coin, colour in zip(COINS, COLOURS, strict=True):
        rates = prices.rate[coin] / 1e10 * 8_760 * 100
        axes.plot(np.arange(len(rates)) / 24, rates, color=colour, lw=0.6)
    axes.set(title="Funding rate, percent a year", xlabel="day")


def draw_sizes(axes):
    funds = np.sort([a.funds / 1e6 for a in draw_accounts(7, 8, 242, 5) if a.strategy != "maker"])
    share = 1 - np.arange(len(funds)) / len(funds)
    axes.loglog(funds, share, ".", color=COLOURS[0], label="accounts")
    axes.loglog(funds, (funds / funds[0]) ** (-4 / 3), color="grey", lw=1, label="exponent 4/3")
    axes.set(title="First deposits larger than x", xlabel="USD", ylabel="share of accounts")
    axes.legend()


def draw_page(file):
    prices = simulate_prices(7, DAYS * 24)
    figure, grid = plt.subplots(4, 2, figsize=(11, 14), layout="constrained")
    panels = (
        draw_prices, draw_returns, draw_memory, draw_spreads, draw_depth, draw_slippage,
        draw_funding,
    )  # fmt: skip
    for draw, axes in zip(panels, grid.flat, strict=False):
        draw(axes, prices)
    draw_sizes(grid.flat[-1])
    figure.suptitle("The simulated exchange, seed 7 (simulated)")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)


if __name__ == "__main__":
    draw_page(Path(sys.argv[1] if len(sys.argv) > 1 else "build/simulation.png"))
