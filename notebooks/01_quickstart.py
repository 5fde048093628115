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
# # 01 Quickstart: what did one account earn in a month, and what did trading cost it?
#
# This notebook goes from a question to an answer in five steps: connect, fetch, look, compute,
# draw. It runs offline: a simulated exchange inside this process answers like the live service. The
# simulated exchange is the same on every machine, so you get the same numbers.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead (the key is read from TOOLKIT_API_KEY, and never shown):
# session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

session

# %% [markdown]
# ## Fetch
#
# Each of the 22 operations of the specification has a function with its name in snake case. This
# one reads all pages and returns one typed frame, oldest row first. The account traded through a
# builder. On a live service, use your own address; if you have none, see "I have a key and no
# addresses" below.

# %%
user = tk.reports.example_account()  # on a live service: your own address
START = "2025-09-01"  # on a live service: for example "30d", the last 30 days
fills = tk.user_fills_by_time(user, START)
fills.iloc[:5, :10]

# %% [markdown]
# Times are UTC, and prices and sizes are numbers. The frame always has the same columns, even if it
# is empty. `tk.describe` explains each column.

# %%
tk.describe(fills)[["column", "dtype", "unit", "meaning"]].head(10)

# %% [markdown]
# ## Compute
#
# `tk.pnl.attribution` splits the result of the account into its causes. Positive amounts are good
# for the account, so fees are negative. The fee of a fill contains the builder fee. The attribution
# shows it separately and counts it once.

# %%
earned = tk.pnl.attribution(fills)
earned.loc[:, "fills":"net"]

# %% [markdown]
# Funding is missing in this table, not 0, because fills do not contain funding. `tk.user_funding`
# returns the payments of the account. Usually there is one row for each position and hour.

# %%
funding = tk.user_funding(user, START)
earned = tk.pnl.attribution(fills, funding)
parts = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]
earned[[*parts, "net", "covers"]]

# %% [markdown]
# ## Draw

# %%
tk.plots.waterfall(earned)

# %%
tk.plots.cumulative_pnl(tk.pnl.attribution(fills, funding, by="hour"))

# %% [markdown]
# ## Where the numbers come from
#
# Every frame knows its request, its source, and whether it is complete. Plots of simulated data
# have a mark in the corner.

# %%
tk.provenance(fills)

# %% [markdown]
# ## I have a key and no addresses
#
# A new user has no list of addresses. The snapshot of account values is such a list: it has every
# account and its value. The key needs an add-on for it. These are the largest accounts:

# %%
snapshot = tk.account_value_snapshots(["ALL"])
values = tk.accounts.values(snapshot).sort_values("value", ascending=False, ignore_index=True)
values[["user", "mode", "value", "long", "short"]].head().round(0)

# %% [markdown]
# The snapshot has values only; the trades of an account are in its fills. You can request the
# snapshot 5 times in 10 minutes, so store it. Then fetch the fills of the accounts that you choose.

# %%
largest = values["user"].head(5).tolist()
theirs = tk.many(tk.user_fills_by_time, largest, "2d")
usd = (theirs["px"] * theirs["sz"]).groupby(theirs["user"]).sum()
pd.DataFrame({"value": values.set_index("user")["value"], "traded": usd}).loc[largest].round(0)

# %% [markdown]
# You can also find addresses without the add-on. The snapshot of TWAP orders names the account of
# each order. If you know the address of a builder, the fills and orders of its users name their
# accounts, too.

# %%
orders = tk.perp_twap_snapshots(["ALL:ALL_DEXES"])
builder = tk.user_fills(user)["builder"].dropna().iloc[0]
clients = tk.builder_orders_by_time(builder, "2d")["user"].unique()
f"{orders['address'].nunique()} accounts by their TWAP orders, {len(clients)} clients of a builder"

# %% [markdown]
# ## What we learned
#
# Each part in USD, and in basis points of the volume:

# %%
net = earned[[*parts, "net"]].T[0]
shares = {"USD": net, "bps of volume": net / earned["volume"].item() * 1e4}
pd.DataFrame(shares).round(2)

# %% [markdown]
# Exchanges show closed PnL first, but this is not what an account earns. Most trades cost a fee,
# whether they gain or lose. To make a profit, trading must earn more than its fees; the table shows
# them in basis points of the volume. The builder fee is the price of an interface, and it is hard
# to see in a list of fills. Funding can be positive or negative. The next notebook checks every
# number of this account.
#
# The amounts come from the simulation, and say nothing about the real exchange. Their parts, and
# how the parts add up, are the same on a live service.
#
# ## With your own key
#
# Change three lines: `session = tk.connect(...)` in the first cell, `user` and `START`. Then run
# all cells again. The account must have traded through a builder. A page of a builder's rows costs
# 100 points, so a late `START` saves points. `tk.plan` with `probe=True` estimates what a call
# costs; the probe requests one or two pages.

# %%
assert tk.provenance(fills)["complete"] == "yes"
assert fills["time"].is_monotonic_increasing
assert earned["covers"].item() == "fills, funding"
assert abs(net[parts].sum() - net["net"]) < 1e-6
assert earned["net"].item() < earned["closed_pnl"].item() + max(0, earned["funding"].item())
assert values["value"].is_monotonic_decreasing
assert set(theirs["user"]) <= set(largest)
assert len(clients) > 0
