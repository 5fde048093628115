# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Market report: the cost of trading a perp, and who holds it

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
coin = "BTC"  # <dex>:<symbol> on a builder-deployed dex
start = "30d"
end = None
accounts = None  # None: the accounts with the largest positions, or all that the source names

# %%
from toolkit import plots
from toolkit.reports import blocks, market_positions, market_report

market = market_report.MarketReport(session, coin, start, end, accounts)
positions = market_positions.MarketPositions(market)
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
# ## Cost of a size
#
# Slippage is the cost of a market order against the mid price, sampled every 15 minutes. If the
# book was too thin for the size, the cost of the sample counts as infinite; the sample is not
# dropped.

# %%
blocks.figure(
    plots.slippage_curve,
    market.curve,
    caption="Median slippage by size, with the band from the 10 % to the 90 % quantile. If "
    "books were too thin for a size, a panel below shows the share of these samples.",
)

# %% [markdown]
# How fast does the cost grow? The fitted cost is half the spread plus a power of the size. Samples
# of too thin a book are right-censored. Other samples are intervals, since they are rounded to two
# decimals. The interval of each parameter is from a bootstrap of days. The cost in a liquid book is
# flat for small sizes and then rises: one power cannot describe it, and the legend states a misfit.
# The table has the mean of each size instead, with the same bootstrap. If books were too thin, this
# mean is a lower bound.

# %%
blocks.figure(
    plots.slippage_fit,
    market.fit,
    caption="The fitted cost by size and side, with its 95 % band, and the medians.",
)

# %%
market.costs()

# %% [markdown]
# ## Cost by hour

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
    caption="Depth within each distance of the mid price, on both sides.",
)

# %% [markdown]
# ## Liquidations
#
# The exchange liquidates an account whose margin is too small. Its forced trades move the price,
# which may take the margin of the next account. Accounts are valued as a whole, in the margin tiers
# of each coin. The fitted cost of a size says how far forced trades move the price. Books do not
# refill here and nobody adds margin, so this is a bound for a fast fall.

# %%
blocks.words(market_positions.describe_accounts(positions))

# %%
blocks.words(market_positions.describe_cascade(positions))

# %%
market_positions.draw_liquidations(positions)

# %%
market_positions.list_liquidations(positions)

# %% [markdown]
# ## Positioning
#
# For each contract there is a long and a short, so all accounts together are as long as they are
# short. Which accounts are long, how few of them have most of a side, and what they gained is the
# question. The net long share is (long - short) / (long + short). The interval treats the accounts
# as drawn from many like them. Effective accounts are the number of equally large accounts that
# would be as concentrated as the larger side.

# %%
blocks.words(market_positions.describe_positioning(positions))

# %%
market_positions.draw_positioning(positions)

# %%
market_positions.list_classes(positions)

# %% [markdown]
# ## TWAP orders

# %%
blocks.words(market.describe_twaps())

# %%
market.orders()

# %% [markdown]
# ## Limits

# %%
blocks.words(market.describe_limits())
