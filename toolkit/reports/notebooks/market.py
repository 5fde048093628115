# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Market report: what does it cost to trade this perp, and when?

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
coin = "BTC"  # <dex>:<symbol> on a builder-deployed dex
start = "30d"
end = None

# %%
from toolkit import plots
from toolkit.reports import blocks, market_report

market = market_report.gather(session, coin, start, end)
sources = market.frames()

# %%
market.title()

# %% [markdown]
# ## Summary

# %%
blocks.words(market.summary(), lead=True)

# %%
blocks.tiles(market.headlines())

# %% [markdown]
# ## What size costs
#
# Slippage of a market order against the mid price, sampled every 15 minutes. Samples of a book too
# thin for the size count as infinitely dear: they are not dropped.

# %%
blocks.figure(
    plots.slippage_curve,
    market.curve,
    caption="Median slippage by size, with the band from the 10 % to the 90 % quantile; below, "
    "the share of samples whose book was too thin.",
)

# %% [markdown]
# How fast does cost grow? The law fitted here is half the spread, and a power of the size beyond
# it. Samples too thin are right-censored, samples rounded to two decimals are intervals; the
# interval of each parameter comes from resampling whole days. Liquid books are flat, then rise:
# no one power describes them, and the legend says so where it misses. The table goes by the mean
# of each size instead, resampled in the same way; where books were too thin that is a lower bound.

# %%
blocks.figure(
    plots.slippage_fit,
    market.fit,
    caption="The fitted law of cost by size and side, with its 95 % band, over the medians.",
)

# %%
market.costs()

# %% [markdown]
# ## When it is cheap

# %%
blocks.figure(
    plots.slippage_heatmap,
    market.heat,
    caption="Median slippage of 100,000 USD by hour of the week, UTC.",
)

# %% [markdown]
# ## The book now

# %%
blocks.figure(
    plots.depth_profile,
    market.book,
    caption="What rests within each distance of the mid price, on either side.",
)

# %% [markdown]
# ## Who trades on a schedule

# %%
blocks.words(market.twap_words())

# %%
market.orders()

# %% [markdown]
# ## Limits

# %%
blocks.words(market.limit_words())
