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
# This notebook goes from a question to a figure in five steps: connect, fetch, look, compute, draw.
# Everything runs offline, on a simulated exchange inside this process, which answers like the real
# service. It is the same on every machine, so you get the same numbers.

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
# Every operation of the service is a function with its name in snake case. It reads all pages and
# returns one typed frame, oldest row first. This account traded through a builder. On a live
# service, use your own address; if you have none, see "I have a key and no addresses" below.

# %%
user = tk.reports.example_account()  # on a live service: your own address
fills = tk.user_fills_by_time(user, "2025-09-01")
fills.iloc[:5, :10]

# %% [markdown]
# Times are UTC, and prices and sizes are numbers. The columns are always the same, also in an empty
# answer. `tk.describe` explains each column.

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
# Funding is missing in this table, not 0: fills do not contain funding. Funding rows come through
# the builders that an account has approved. There is one row for each position and hour.

# %%
builder = tk.user_fills(user)["builder"].dropna().iloc[0]
funding = tk.builder_approved_funding_by_time(builder, "2025-09-01")
funding = funding[funding["user"] == user]
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
# The live service has no list of addresses for a new user. The snapshot of account values lists
# every account with its value. The key needs an add-on for it. The largest accounts
# are:

# %%
snapshot = tk.account_value_snapshots(["ALL"])
values = tk.accounts.values(snapshot).sort_values("value", ascending=False, ignore_index=True)
values[["user", "mode", "value", "long", "short"]].head().round(0)

# %% [markdown]
# The snapshot has values only; the trades of an account are in its fills. A snapshot may be
# requested 5 times in 10 minutes, so store it, and fetch the fills of the accounts that you choose.

# %%
largest = values["user"].head(5).tolist()
theirs = tk.many(tk.user_fills_by_time, largest, "2d")
usd = (theirs["px"] * theirs["sz"]).groupby(theirs["user"]).sum()
pd.DataFrame({"value": values.set_index("user")["value"], "traded": usd}).loc[largest].round(0)

# %% [markdown]
# There are addresses without the add-on, too. Every running TWAP order names its account. So does
# every fill and every order of a builder's users.

# %%
orders = tk.perp_twap_snapshots(["ALL:ALL_DEXES"])
clients = tk.builder_orders_by_time(builder, "2d")["user"].unique()
f"{orders['address'].nunique()} accounts by their TWAP orders, {len(clients)} clients of a builder"

# %% [markdown]
# ## What we learned
#
# Shares of each cause in volume and in gross PnL:

# %%
net = earned[[*parts, "net"]].T[0]
shares = {"USD": net, "bps of volume": net / earned["volume"].item() * 1e4}
pd.DataFrame(shares).round(2)

# %% [markdown]
# Exchanges show closed PnL first, but an account does not earn closed PnL. Every trade costs fees,
# with a gain or with a loss. Trading must earn at least the fees in basis points of volume. Users
# pay the builder fee for an interface, and it is hard to see in a list of fills. Funding can be
# positive or negative. The next notebook checks every number of this account.
#
# The amounts are facts of the simulation. What they consist of, and how they add up, is the same on
# a live service: replace the session and the address, and run all cells again.

# %%
assert tk.provenance(fills)["complete"] == "yes"
assert fills["time"].is_monotonic_increasing
assert earned["covers"].item() == "fills, funding"
assert abs(net[parts].sum() - net["net"]) < 1e-6
assert earned["net"].item() < earned["closed_pnl"].item() + max(0, earned["funding"].item())
assert values["value"].is_monotonic_decreasing
assert set(theirs["user"]) <= set(largest)
assert len(clients) > 0
