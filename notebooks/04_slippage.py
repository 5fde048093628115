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
# # 04 Slippage: what does size cost?
#
# The service samples every market every 15 minutes: what would a market order of this size have
# cost against the mid price? We ask how cost grows with size, how markets differ, and where the
# book simply ends. The last is easy to get wrong: a sample without enough liquidity has no cost,
# and dropping it makes the thinnest markets look best.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

COINS = ["BTC", "eqx:TSLA", "FARTCOIN"]  # deep, middling, thin
SIZES = [1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6]

# %% [markdown]
# ## The samples
#
# One request names one coin and one size, so we ask for each pair and put the answers together.

# %%
frames = [tk.slippage_history(c, s, "30d", page_size=2000) for c in COINS for s in SIZES]
samples = tk.concat(frames)  # and what they prove together: tk.provenance(samples)
f"{len(samples):,} samples"

# %%
samples[["buy_slippage_bps", "sell_slippage_bps"]].isna().groupby(samples["coin"]).mean()

# %% [markdown]
# ## The curve
#
# A missing sample counts as infinitely dear. The median is then the cost that half of all moments
# beat, and a quantile that falls among the missing has no value: that much could not be bought.

# %%
curve = tk.slippage.curve(samples)
tk.plots.slippage_curve(curve)

# %% [markdown]
# ## How does cost grow?
#
# Small orders pay half the spread and no more; beyond, cost may grow as a power of size. The fit is
# over every sample, those without enough liquidity included: half spread + a * (size / 100,000)^k,
# in basis points. The intervals draw whole days again. They say how sure the fit is, not that its
# form is right; `misfit` does: by how much, at worst, it misses the mean of a sampled size.

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
# So what an order is expected to cost does not come from the law: at a sampled size it is the mean
# of the samples, between two sizes it is interpolated. Where a book was too thin at times, that
# counts such a sample as the least it can have cost, and the mean is a lower bound.

# %%
cost = tk.slippage.cost(fit, [1e5, 2e5], side="buy").set_index(["coin", "amount_usd"])
cost.loc[COINS, ["cost_bps", "low", "high", "range", "too_thin"]].round(2)

# %% [markdown]
# The other way round: how much can be bought at once for ten basis points?

# %%
capacity = tk.slippage.capacity(fit, 10, side="buy").set_index("coin")
capacity.loc[COINS].round(0)

# %% [markdown]
# ## In dollars
#
# Basis points hide what one pays. The median cost of buying 100,000 USD at once, and of buying it
# in ten parts, far enough apart for the book to refill:

# %%
median = curve[curve["side"] == "buy"].set_index(["coin", "amount_usd"])["q50"].unstack()
dollars = pd.DataFrame({"at once": median[1e5] * 10, "in ten parts": median[1e4] * 10})
dollars.loc[COINS].round(2)

# %% [markdown]
# ## What dropping missing samples would say
#
# The 90 % quantile of buying a million, honestly and with the missing samples dropped:

# %%
million = samples[samples["amount_usd"] == 1e6]
dropped = million.groupby("coin")["buy_slippage_bps"].quantile(0.9)
honest = curve[(curve["side"] == "buy") & (curve["amount_usd"] == 1e6)].set_index("coin")
both = honest[["q90", "missing_share"]].assign(dropped=dropped)
both.loc[COINS]

# %% [markdown]
# ## To try other sizes
#
# The same question with controls: coin, size, side and period. "Code of this view" gives the cell
# that makes it. In an exported page the view stays, without its controls.

# %%
explorer = tk.widgets.slippage_explorer("FARTCOIN", 1e5, side="buy", period="30d")
explorer

# %% [markdown]
# ## Conclusions
#
# - Up to some tens of thousands of dollars the deep market costs half the spread and nothing more.
#   Beyond, cost grows as a power of size on the thin market, to within a few per cent. On the
#   middling one the law misses the smallest size by a fifth.
# - On the deep market it does not hold: the exponent above 1 is a compromise between the flat part
#   and the rise, and misses the mean of a size by more than a tenth. A narrow interval says that
#   the fit is sure, not that its form is right; `misfit` and the picture say that. The expected
#   cost goes by the means.
# - At 100,000 USD the thin market is a hundred times as dear as the deep one. Cost grows more
#   slowly than size there, yet splitting the order saves most of it, if one can wait.
# - In the thin market a million could not be bought at all in about one sample out of nine. Its
#   90 % quantile does not exist; dropping the missing samples would have put a number in its place.
# - For ten basis points one buys a few thousand dollars of the thin market and tens of thousands of
#   the middling one. For the deep one the answer lies above the largest size sampled, and says so:
#   `range` is "above".
# - Buying and selling cost the same: over a month the books lean to neither side.

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
