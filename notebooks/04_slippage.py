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
# The service samples every market every 15 minutes: what would a market order of this size have
# cost against the mid price? How does the cost grow with size, how do markets differ, and when is
# the book too thin? The last question is easy to get wrong. A sample of too thin a book has no
# cost, and dropping such samples makes the thinnest markets look best.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

COINS = ["BTC", "eqx:TSLA", "FARTCOIN"]  # deep, middle, thin
SIZES = [1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6]

# %% [markdown]
# ## The samples
#
# One request has one coin and one size. So we fetch each pair and concatenate the frames.

# %%
frames = [tk.slippage_history(c, s, "30d", page_size=2000) for c in COINS for s in SIZES]
samples = tk.concat(frames)  # its provenance: tk.provenance(samples)
f"{len(samples):,} samples"

# %%
samples[["buy_slippage_bps", "sell_slippage_bps"]].isna().groupby(samples["coin"]).mean()

# %% [markdown]
# ## The curve
#
# A missing sample counts as an infinite cost. The median is then the cost that half of all samples
# do not exceed. A quantile among the missing samples has no value: this size could not be bought.

# %%
curve = tk.slippage.curve(samples)
tk.plots.slippage_curve(curve)

# %% [markdown]
# ## How does cost grow?
#
# Small orders pay half the spread. For larger orders the cost may grow as a power of size. The fit
# uses every sample, also those of too thin a book: half spread + a * (size / 100,000)^k, in basis
# points. The intervals are from a bootstrap of days. They show how precise the fit is, not whether
# its form is right. `misfit` shows that: it is the largest error of the fit at the mean of a
# sampled size.

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
# The expected cost of an order is therefore not from the fit. At a sampled size it is the mean of
# the samples; between two sizes it is interpolated. A sample of too thin a book counts with its
# minimum cost, so the mean is then a lower bound.

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
# ## The result without the missing samples
#
# The 90 % quantile of the cost of a million, with all samples, and without the missing samples:

# %%
million = samples[samples["amount_usd"] == 1e6]
dropped = million.groupby("coin")["buy_slippage_bps"].quantile(0.9)
honest = curve[(curve["side"] == "buy") & (curve["amount_usd"] == 1e6)].set_index("coin")
both = honest[["q90", "missing_share"]].assign(dropped=dropped)
both.loc[COINS]

# %% [markdown]
# ## The slippage explorer
#
# This widget answers the same question for any coin, size, side and period. "Code of this view"
# shows the code. An exported page shows the view without the controls.

# %%
explorer = tk.widgets.slippage_explorer("FARTCOIN", 1e5, side="buy", period="30d")
explorer

# %% [markdown]
# ## Conclusions
#
# - Up to some tens of thousands of dollars the deep market costs half the spread. On the thin
#   market the cost grows as a power of size, with an error of a few percent. On the middle market
#   the fit misses the smallest size by a fifth.
# - On the deep market the power law is wrong: the exponent above 1 is a compromise between the flat
#   part and the rise, and misses the mean of a size by more than a tenth. A narrow interval does
#   not show that the form is right; `misfit` and the figure show it. The expected cost uses the
#   means.
# - At 100,000 USD the thin market is a hundred times as expensive as the deep one. The cost grows
#   more slowly than size there, but splitting the order saves most of it, if one can wait.
# - In the thin market a million could not be bought at all in about one sample out of nine. Its 90
#   % quantile does not exist; without the missing samples there would be a wrong number instead.
# - For ten basis points one buys a few thousand dollars of the thin market and tens of thousands of
#   the middle one. For the deep market the answer is above the largest sampled size: `range` is
#   "above".
# - Buying and selling cost the same: over a month the books have no preferred side.
#
# ## With your own key
#
# Change `session = tk.connect(...)` in the first cell, and `COINS` to the markets that you trade.
# The samples are public: they need no address.
#
# How deep the three books are, and that buying costs as much as selling, are facts of the
# simulation. On the live service the same cells measure the cost of your sizes, and `misfit` says
# whether a power law describes them.

# %%
assert abs(median.loc["BTC", 1e4] - honest.loc["BTC", "half_spread_bps"]) < 0.05
assert named.xs("k", level="name")["estimate"].between(0.3, 1.5).all()
assert capacity.loc["BTC", "capacity_usd"] > 100 * capacity.loc["FARTCOIN", "capacity_usd"]
assert capacity.loc["BTC", "range"] == "above"
assert misfit["BTC"] > 0.1 > misfit["FARTCOIN"]
bought = samples[samples["amount_usd"] == 1e5].groupby("coin")["buy_slippage_bps"]

# %%
assert (abs(cost.xs(1e5, level="amount_usd")["cost_bps"] / bought.mean() - 1) < 1e-9).all()
assert (dollars["in ten parts"] < dollars["at once"]).all()
assert median.loc["FARTCOIN", 1e5] > 50 * median.loc["BTC", 1e5]
assert 0.1 < honest.loc["FARTCOIN", "missing_share"] < 0.2
assert pd.isna(honest.loc["FARTCOIN", "q90"])
assert pd.notna(dropped["FARTCOIN"])
assert (explorer.view.at_size["q50"] == median.loc["FARTCOIN", 1e5]).all()
