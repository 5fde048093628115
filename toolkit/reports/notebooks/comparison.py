# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Comparison: several accounts side by side

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
users = None  # addresses; None: some accounts of a simulated exchange
start = 0
end = None

# %%
from toolkit.reports import blocks, comparison_report

# %%
results = comparison_report.fetch_comparison(session, users, start, end)
sources = comparison_report.source_frames(results)
users = [wallet.account.address for wallet in results.wallets]

# %%
comparison_report.make_title(results)

# %% [markdown]
# ## Summary
#
# The gain is the change of an account's value, without deposits and withdrawals. Net PnL is closed
# PnL after fees and funding, without the PnL of open positions, so it can have another sign.

# %%
blocks.words(comparison_report.summarize_comparison(results), lead=True)

# %%
blocks.tiles(comparison_report.list_headlines(results))

# %% [markdown]
# ## Accounts

# %%
comparison_report.make_account_table(results)

# %%
comparison_report.list_addresses(results)

# %% [markdown]
# ## Returns
#
# A return is the gain of an account's value as a share of its capital, linked over deposits and
# withdrawals (time-weighted). They change no return. Here positions count at the prices of all
# fills of these accounts and of the account's own funding payments. A wallet report has the prices
# of its own account only, so its return may differ a little.

# %%
comparison_report.draw_growth(results)

# %% [markdown]
# ## Skill or luck
#
# The best of many accounts is partly lucky. Shrinkage moves each value towards the mean of all
# accounts, the more the less certain it is. Accounts that hold the same coin win and lose together;
# then the false discovery rate is too low.

# %%
blocks.words(comparison_report.describe_ranks(results))

# %%
comparison_report.draw_ranks(results)
