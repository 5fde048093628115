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
user = None  # address; None: the example account of a simulated exchange
start = 0
end = None

# %%
from toolkit import plots
from toolkit.reports import (
    blocks,
    wallet_performance,
    wallet_reasons,
    wallet_report,
    wallet_tables,
    wallet_text,
)

# %%
results = wallet_report.fetch_results(session, user, start, end)
sources = results.source_frames()
tables = wallet_tables.make_tables(results)
user = results.account.address

# %%
results.title()

# %% [markdown]
# ## Summary

# %%
blocks.words(wallet_text.list_summaries(results), lead=True)

# %%
blocks.words(wallet_reasons.explain_result(results))

# %%
blocks.tiles(wallet_text.list_headlines(results))

# %% [markdown]
# ## Attribution
#
# Positive amounts are good for the account. The fee of a fill, as the exchange states it, contains
# the builder fee and the deployer fee. Here the three fees are separate, and each is counted once.
# Net does not contain unrealised PnL.

# %%
blocks.draw_rows(plots.waterfall, results.plot_rows(), "From closed PnL to net, in USD.")

# %%
tables["parts"]

# %%
tables["builders"]

# %%
blocks.checks(wallet_text.list_checks(results))

# %% [markdown]
# ## Value now

# %%
blocks.words(wallet_text.describe_value(results))

# %%
tables["open"]

# %% [markdown]
# ## Over time

# %%
blocks.draw_rows(
    plots.cumulative_pnl,
    results.plot_rows(by="hour"),
    "Cumulative PnL: closed PnL, the same after fees, and after funding if it is covered. "
    "Sums by hour.",
)

# %%
tables["days"]

# %% [markdown]
# ## Performance
#
# A return is the gain of the account's value as a share of its capital, linked over deposits and
# withdrawals (time-weighted), so that they change no return. Figures per year extrapolate.

# %%
blocks.words(wallet_performance.describe_performance(results))

# %%
wallet_performance.draw_returns(results)

# %%
wallet_performance.make_figure_table(results)

# %% [markdown]
# ## Round trips
#
# A round trip leads from no position to no position.

# %%
blocks.draw_rows(
    plots.trip_returns, results.trips, "Net return of each round trip over its duration."
)

# %%
wallet_performance.make_trip_table(results)

# %% [markdown]
# ## By coin

# %%
tables["coins"]

# %% [markdown]
# ## Funding

# %%
blocks.words(wallet_text.describe_coverage(results))

# %%
wallet_report.draw_funding(results)

# %% [markdown]
# ## Slippage
#
# Slippage is the cost of a market order against the mid price. It was sampled every 15 minutes over
# the last 30 days of the period, for the coins that the account traded most. If the book was too
# thin for the size, the cost of the sample counts as infinite; the sample is not dropped.

# %%
blocks.draw_rows(
    plots.slippage_curve,
    results.slippage,
    "Median slippage by size, with the band from the 10 % to the 90 % quantile. If "
    "books were too thin for a size, a panel below shows the share of these samples.",
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
