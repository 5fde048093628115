# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Market quality: which perps are cheap to trade, and how much of them?

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
dex = ""  # the native dex
coins = None  # the 12 traded most when None
start = "7d"
end = None

# %%
from toolkit import plots
from toolkit.reports import blocks, quality_report

quality = quality_report.gather(session, dex, start, end, coins)
sources = quality.frames()

# %%
quality.title()

# %% [markdown]
# ## Summary

# %%
blocks.words(quality.summary(), lead=True)

# %%
blocks.tiles(quality.headlines())

# %% [markdown]
# ## The ranking
#
# What a market order to buy 100,000 USD costs against the mid price in the mean of the samples,
# with the 95 % interval from resampling whole days (a lower bound where the book was too thin for
# it at times); the exponent of the power of size that fits best; the largest order whose expected
# cost is 10 bps or less, by the means of the sizes, and where that lies beyond the sampled sizes,
# the largest of these; and how often the book was too thin for a million. Such an order may reach
# deeper into the book than 10 bps from mid: its cost is a mean.

# %%
quality.table()

# %%
blocks.figure(
    plots.slippage_curve,
    quality.drawn(),
    caption="Four of them, the cheapest and the dearest included: median slippage by size, with "
    "the band from the 10 % to the 90 % quantile; below, the share of samples whose book "
    "was too thin.",
)

# %% [markdown]
# ## The books now

# %%
quality.book_table()

# %% [markdown]
# ## Do samples and books agree?
#
# Depth within a distance of mid bounds what an order can cost: one that fits into the band cannot
# cost more than the band is wide.

# %%
blocks.words(quality.check_words())
