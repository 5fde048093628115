# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: "1.3"
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 Slippage: what does a large order cost?
#
# The service samples every market every 15 minutes: what would a market order of a given size have
# cost against the mid price? How does the cost grow with size, how do markets differ, and when is
# the book too thin? The last question is easy to get wrong. If the book is too thin, the cost in
# the sample is missing. If you drop such samples, the thinnest markets look best.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import numpy as np
import pandas as pd

COINS = ["BTC", "eqx:TSLA", "FARTCOIN"]  # deep, middle, thin
SIZES = [1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6]

# %% [markdown]
# ## The samples
#
# One request has one coin and one size. So the cell fetches each pair, and concatenates the frames.

# %%
frames = [tk.slippage_history(c, s, "30d", page_size=2000) for c in COINS for s in SIZES]
samples = tk.concat(frames)  # its provenance: tk.provenance(samples)
f"{len(samples):,} samples"

# %%
samples[["buy_slippage_bps", "sell_slippage_bps"]].isna().groupby(samples["coin"]).mean()

# %% [markdown]
# ## The curve
#
# A missing cost counts as infinite. The median is then the cost that half of all samples do not
# exceed. If a quantile falls on a missing cost, the quantile is missing: in too many samples, the
# book was too thin for this size.

# %%
curve = tk.slippage.curve(samples)
tk.plots.slippage_curve(curve)

# %% [markdown]
# ## How does cost grow?
#
# Small orders pay half the spread. For larger orders the cost may grow as a power of size. The fit
# is half spread + a * (size / 100,000)^k, in basis points. It uses every sample, also those in
# which the book was too thin. The intervals are from a bootstrap of days. They show how precise the
# fit is, not whether its form is right. `misfit` shows whether the form is right: it is the largest
# relative error of the fit. The error is the difference from the mean cost of a sampled size, as a
# share of this mean. (Sizes with a missing cost do not count.)

# %%
fit = tk.slippage.fit(samples)
named = fit.params[fit.params["side"] == "buy"].set_index(["coin", "name"])
named.loc[COINS, ["estimate", "low", "high"]].round(2)

# %%
misfit = fit.groups[fit.groups["side"] == "buy"].set_index("coin")["misfit"]
misfit.loc[COINS].round(2)

# %%
fit.plot()

# %% [markdown]
# The form of the fit may be wrong. So `tk.slippage.cost` does not use the fit between the smallest
# and the largest sampled size. At a sampled size, the expected cost is the mean of the samples.
# Between two sampled sizes, it is interpolated. If the book was too thin in a sample, this sample
# counts with its smallest possible cost. The mean is then a lower bound.

# %%
cost = tk.slippage.cost(fit, [1e5, 2e5], side="buy").set_index(["coin", "amount_usd"])
cost.loc[COINS, ["cost_bps", "low", "high", "range", "too_thin"]].round(2)

# %% [markdown]
# The reverse question: how much can be bought at once for ten basis points?

# %%
capacity = tk.slippage.capacity(fit, 10, side="buy").set_index("coin")
capacity.loc[COINS].round(0)

# %% [markdown]
# ## In dollars
#
# Basis points hide the amount that one pays. This is the median cost of buying 100,000 USD at once,
# and of buying it in ten parts with enough time between them for the book to refill:

# %%
median = curve[curve["side"] == "buy"].set_index(["coin", "amount_usd"])["q50"].unstack()
dollars = pd.DataFrame({"at once": median[1e5] * 10, "in ten parts": median[1e4] * 10})
dollars.loc[COINS].round(2)

# %% [markdown]
# ## How fast does the book refill?
#
# "Enough time" depends on the book. `tk.depth.resilience` takes the depth of many batches, finds
# the shocks that took depth away, and estimates the half-life of the missing depth. On a live
# service, poll for an hour:
#
# `pd.concat(tk.poll(tk.current_depth, tk.current_depth, every="5s", rounds=720))`
#
# The clock of the simulated exchange stands still, so no shock comes. The cell makes batches from
# one book, that of the thin market. It adds noise and known shocks: every five minutes 60 % of the
# bids are gone, and half of the missing depth is back after `HALF_LIFE` seconds. Does the interval
# of the estimate contain `HALF_LIFE`?

# %%
HALF_LIFE, rng = 40, np.random.default_rng(7)
depth = tk.current_depth()
book, batches = depth[depth["coin"] == COINS[-1]], []
for second in range(0, 3600, 5):
    lost = 0.6 * 0.5 ** (second % 300 / HALF_LIFE) if second >= 300 else 0.0
    usd = book["bid_depth_usd"] * (1 - lost) * rng.lognormal(0, 0.05)
    time = book["timestamp_ms"] + pd.Timedelta(seconds=second)
    batches.append(book.assign(bid_depth_usd=usd, timestamp_ms=time))

# %%
refill = tk.depth.resilience(pd.concat(batches), bps=100)
refill.plot()

# %%
life = refill.params.set_index("name").loc["half_life"]
wait = np.log2(10) * life["estimate"]  # until a tenth of the missing depth is still missing
print(f"half-life {life['estimate']:.0f} s ({life['low']:.0f} to {life['high']:.0f} s)")
minutes = wait / 60
print(f"nine tenths are back after {minutes:.1f} minutes; nine waits take {9 * minutes:.0f}")

# %% [markdown]
# ## Is buying as expensive as selling?
#
# Each sample has both sides of the same book, so they can be compared in pairs. `difference_bps` is
# the cost of buying minus the cost of selling. The interval is from a bootstrap of days.

# %%
pairs = tk.slippage.asymmetry(samples[samples["amount_usd"].isin([1e4, 1e5, 1e6])])
columns = ["n", "buy_missing", "sell_missing", "difference_bps", "low", "high", "buy_dearer"]
pairs.set_index(["coin", "amount_usd"]).loc[COINS, columns].round(3)

# %% [markdown]
# ## The result without the missing samples
#
# The table has the 90 % quantile of the cost of buying a million USD. `q90` uses all samples.
# `dropped` leaves out the samples with a missing cost.

# %%
million = samples[samples["amount_usd"] == 1e6]
dropped = million.groupby("coin")["buy_slippage_bps"].quantile(0.9)
all_samples = curve[(curve["side"] == "buy") & (curve["amount_usd"] == 1e6)].set_index("coin")
both = all_samples[["q90", "missing_share"]].assign(dropped=dropped)
both.loc[COINS]

# %% [markdown]
# ## The slippage explorer
#
# This widget answers the same question for any coin, size, side and period. "Code of this view"
# shows the code. An exported page shows the view without the controls.

# %%
explorer = tk.widgets.slippage_explorer(COINS[-1], 1e5, side="buy", period="30d")
explorer

# %% [markdown]
# ## Conclusions

# %%
deep, thin = COINS[0], COINS[-1]
ratio = median.loc[thin, 1e5] / median.loc[deep, 1e5]
sure = pairs[(pairs["low"] > 0) | (pairs["high"] < 0)]
print(f"100,000 USD of {thin} cost {ratio:.0f} times as much as of {deep}")
print(f"largest error of the fit: {misfit[deep]:.0%} for {deep}, {misfit[thin]:.0%} for {thin}")
missing = all_samples.loc[thin, "missing_share"]
print(f"samples that could not fill a million of {thin}: {missing:.1%}")
most = capacity.loc[[deep, thin]].apply("{0[capacity_usd]:,.0f} ({0[range]})".format, axis=1)
print(f"USD for 10 bps: {most[deep]} of {deep}, {most[thin]} of {thin}")
print(f"buying and selling differ clearly in {len(sure)} of {len(pairs)} groups")

# %% [markdown]
# - A narrow interval does not show that the form of a fit is right; `misfit` and the plot show it.
#   So the expected cost uses the means of the samples.
# - If cost grows with size, parts are cheaper than the whole, but only if the book refills between
#   them. The half-life shows how long that takes.
# - If a size could not be bought in some samples, a quantile that falls on them has no value. If
#   you drop these samples, you get a wrong number instead.
# - If `range` is "above", the answer is larger than every sampled size. Then sample larger sizes.
# - A sample in which the cost of one side is missing forms no pair. So compare `buy_missing` with
#   `sell_missing` first: if they differ, one side of the book was too thin more often.
#
# ## With your own key
#
# Change `session = tk.connect(...)` in the first cell, and `COINS` to the markets that you trade,
# the deepest first and the thinnest last. The samples do not belong to an account, so you need no
# address. `tk.current_depth` needs an add-on.
#
# The depth of the three books, and that they prefer no side, come from the simulation, and say
# nothing about the real exchange. The notebook itself adds the shocks. On the live service the same
# cells measure the cost of your sizes, and `misfit` shows whether a power law describes them. The
# asserts about single coins may fail there.

# %%
assert abs(median.loc["BTC", 1e4] - all_samples.loc["BTC", "half_spread_bps"]) < 0.05
assert named.xs("k", level="name")["estimate"].between(0.3, 1.5).all()
assert capacity.loc["BTC", "capacity_usd"] > 100 * capacity.loc["FARTCOIN", "capacity_usd"]
assert capacity.loc["BTC", "range"] == "above"
assert misfit["BTC"] > 0.1 > misfit["FARTCOIN"]
bought = samples[samples["amount_usd"] == 1e5].groupby("coin")["buy_slippage_bps"]

# %%
assert (abs(cost.xs(1e5, level="amount_usd")["cost_bps"] / bought.mean() - 1) < 1e-9).all()
assert (dollars["in ten parts"] < dollars["at once"]).all()
assert median.loc["FARTCOIN", 1e5] > 50 * median.loc["BTC", 1e5]
assert 0.1 < all_samples.loc["FARTCOIN", "missing_share"] < 0.2
assert pd.isna(all_samples.loc["FARTCOIN", "q90"])
assert pd.notna(dropped["FARTCOIN"])
assert abs(life["estimate"] / HALF_LIFE - 1) < 0.1
assert refill.n == 11
assert (abs(pairs["buy_bps"] - pairs["sell_bps"] - pairs["difference_bps"]) < 1e-9).all()
assert (explorer.view.at_size["q50"] == median.loc["FARTCOIN", 1e5]).all()
