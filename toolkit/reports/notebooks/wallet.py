# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Wallet report: what one account earned, paid and traded

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
user = None  # address; the example account of a simulated exchange when None
start = 0
end = None
builders = None  # whose funding rows to ask for; found by the fills when None

# %%
from toolkit import plots
from toolkit.reports import blocks, wallet_report, wallet_tables, wallet_words

results = wallet_report.results_of(session, user, start, end, builders)
sources = wallet_report.frames_of(results)
tables = wallet_tables.tables_of(results)
user = results.material.user

# %%
wallet_report.title_of(results)

# %% [markdown]
# ## Summary

# %%
blocks.words(wallet_words.summary(results), lead=True)

# %%
blocks.tiles(wallet_words.headlines(results))

# %% [markdown]
# ## Attribution
#
# Money is positive where it is good for the account. The exchange's fee of a fill already contains
# the builder's and the deployer's; here they stand apart, each counted once. Unrealised PnL is not
# part of net.

# %%
blocks.figure(
    plots.waterfall,
    results.drawn(),
    caption="From closed PnL to net, in USD.",
)

# %%
tables["parts"]

# %%
blocks.checks(wallet_words.checks(results))

# %% [markdown]
# ## What it is worth now

# %%
blocks.words(wallet_words.worth(results))

# %%
tables["open"]

# %% [markdown]
# ## Over time

# %%
blocks.figure(
    plots.cumulative_pnl,
    results.drawn(by="hour"),
    caption="Cumulative PnL: closed PnL, the same less fees, and with funding where it is "
    "covered. Summed by the hour.",
)

# %%
tables["days"]

# %% [markdown]
# ## By coin

# %%
tables["coins"]

# %% [markdown]
# ## Funding

# %%
blocks.words(wallet_words.coverage(results))

# %%
wallet_report.funding_figures(results)

# %% [markdown]
# ## Slippage
#
# Slippage of a market order against the mid price, for the coins that the account traded most,
# sampled every 15 minutes over the last 30 days of the period. Samples of a book too thin for the
# size count as infinitely dear: they are not dropped.

# %%
blocks.figure(
    plots.slippage_curve,
    results.slippage,
    caption="Median slippage by size, with the band from the 10 % to the 90 % quantile; below, "
    "the share of samples whose book was too thin.",
)

# %%
tables["slippage"]

# %% [markdown]
# ## Largest fills

# %%
tables["fills"]

# %% [markdown]
# ## Cash in and out

# %%
tables["ledger"]
