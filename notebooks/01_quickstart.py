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
# From a question to a figure in five steps: connect, fetch, look, compute, draw. Everything runs
# offline, on a simulated exchange that lives inside this process and answers as the real service
# does. It is the same on every machine, so the numbers below are too.

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
# Every operation of the service is a function, its name in snake case. It reads all pages and
# gives one typed frame, oldest row first. We look at an account that traded through a builder
# (of a live service, put an address of your own here; if you have none, see "I have a key and no
# addresses" below).

# %%
user = tk.reports.example_account()
fills = tk.user_fills_by_time(user, "2025-09-01")
fills.iloc[:5, :10]

# %% [markdown]
# Times are UTC, prices and sizes are numbers, and the columns are always all there, whether the
# answer is empty or full. `tk.describe` says what each one means.

# %%
tk.describe(fills)[["column", "dtype", "unit", "meaning"]].head(10)

# %% [markdown]
# ## Compute
#
# `tk.pnl.attribution` splits what happened to the account into its causes. Money is positive where
# it is good for the account, so fees are negative. The fee of a fill already contains the
# builder's share: it is taken out, not added again.

# %%
earned = tk.pnl.attribution(fills)
earned.loc[:, "fills":"net"]

# %% [markdown]
# Funding is missing there, not 0: fills say nothing about it. Funding rows come from the builders
# that an account has approved, one row for each position and hour.

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
# Every frame knows what was asked, of whom, and whether it is complete. Figures of simulated data
# say so in their corner.

# %%
tk.provenance(fills)

# %% [markdown]
# ## I have a key and no addresses
#
# On the live service nobody names an account for you. The snapshot of account values does: it
# lists every account with its value (an add-on that the key must have bought). The largest first:

# %%
snapshot = tk.account_value_snapshots(["ALL"])
values = tk.accounts.values(snapshot).sort_values("value", ascending=False, ignore_index=True)
values[["user", "mode", "value", "long", "short"]].head().round(0)

# %% [markdown]
# The value of the largest accounts is known; what they do is in their fills. A snapshot may be
# asked 5 times in 10 minutes, so keep it, and ask for the fills of those that you choose.

# %%
largest = values["user"].head(5).tolist()
theirs = tk.many(tk.user_fills_by_time, largest, "2d")
usd = (theirs["px"] * theirs["sz"]).groupby(theirs["user"]).sum()
pd.DataFrame({"value": values.set_index("user")["value"], "traded": usd}).loc[largest].round(0)

# %% [markdown]
# Without the add-on: every running TWAP order names its account, and so does every fill and order
# that a builder is shown of its users.

# %%
orders = tk.perp_twap_snapshots(["ALL:ALL_DEXES"])
clients = tk.builder_orders_by_time(builder, "2d")["user"].unique()
f"{orders['address'].nunique()} accounts by their TWAP orders, {len(clients)} clients of a builder"

# %% [markdown]
# ## What we learned
#
# How much of the volume, and of the gross result, went where:

# %%
net = earned[[*parts, "net"]].T[0]
shares = {"USD": net, "bps of volume": net / earned["volume"].item() * 1e4}
pd.DataFrame(shares).round(2)

# %% [markdown]
# Closed PnL is what exchanges show first, and it is not what an account earned. Fees are certain
# and come with every trade, whichever way it goes: in basis points of volume they are the hurdle
# that trading has to clear. The builder's share of them is paid for an interface, not for trading,
# and is as good as invisible in a list of fills. Funding goes both ways. The next notebook takes
# this account apart and checks every figure.

# %%
assert tk.provenance(fills)["complete"] == "yes"
assert fills["time"].is_monotonic_increasing
assert earned["covers"].item() == "fills, funding"
assert abs(net[parts].sum() - net["net"]) < 1e-6
assert earned["net"].item() < earned["closed_pnl"].item() + max(0, earned["funding"].item())
assert values["value"].is_monotonic_decreasing
assert set(theirs["user"]) <= set(largest)
assert len(clients) > 0
