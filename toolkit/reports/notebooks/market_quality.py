# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Market quality: the costs of trading perps

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
dex = ""  # the native dex
coins = None  # None: the 12 with the largest volume
start = "7d"
end = None

# %%
from toolkit import plots
from toolkit.reports import blocks, quality_report

quality = quality_report.QualityReport(session, dex, start, end, coins)
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
# The table shows for each market:
#
# - the mean cost of a market order to buy 100,000 USD against the mid price, with its 95 % interval
#   from a bootstrap of days; it is a lower bound if the book was at times too thin for the order;
# - the exponent of the best fit of cost as a power of size;
# - the largest order with an expected cost of 10 bps or less, by the mean costs of the sizes, but
#   at most the largest sampled size; such an order may reach deeper into the book than 10 bps from
#   mid, since its cost is a mean;
# - the share of samples whose book was too thin for a million USD.

# %%
quality.table()

# %%
blocks.figure(
    plots.slippage_curve,
    quality.drawn_curves(),
    caption="Four markets, from the cheapest to the most expensive: median slippage by size, with "
    "the band from the 10 % to the 90 % quantile. If books were too thin for a size, a "
    "panel below shows the share of these samples.",
)

# %% [markdown]
# ## The books now

# %%
quality.book_table()

# %% [markdown]
# ## Do samples and books agree?
#
# Depth within a distance of mid limits the cost of an order: if the book has enough within this
# distance, the cost cannot be larger than the distance.

# %%
blocks.words(quality.describe_checks())
