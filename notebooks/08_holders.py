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
# # 08 Who holds the exchange: how few accounts is it?
#
# A snapshot gives the value of every account with a collateral token. We ask how unevenly value is
# spread, who is long and who is short, how levered each kind of account is, and what we would have
# said, had we looked at perp equity alone.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

tokens = session.world["collateral_tokens"]  # of a live service: the ones that you care about

# %% [markdown]
# ## The snapshot
#
# One row for each account, dex and token. What an account is worth is the sum of its rows: for
# unified and portfolio-margin accounts they count what lies in the spot wallet.

# %%
snapshot = tk.account_value_snapshots(tokens)
values = tk.accounts.values(snapshot)
f"{len(snapshot)} rows of {len(values)} accounts, {values['value'].sum():,.0f} USD"

# %%
values.groupby("mode")["value"].agg(["size", "median", "max", "sum"]).round(0)

# %% [markdown]
# ## Concentration
#
# Gini's coefficient is 0 where all have the same, and near 1 where one has all. The effective
# number of accounts says of how many equal ones an exchange as concentrated would be.

# %%
whole = tk.accounts.concentration(snapshot)
whole[["accounts", "value", "gini", "hhi", "effective", "top_1", "top_10"]].round(3)

# %%
tk.plots.lorenz_curve(tk.accounts.lorenz(snapshot))

# %% [markdown]
# A single number mixes two populations: a few market makers, who bring the capital, and everybody
# else. How uneven are the others among themselves?

# %%
others = values[values["value"] < 1e6]
rest = tk.accounts.concentration(others)
both = pd.concat([whole, rest], keys=["all", "below a million"]).droplevel(1)
both[["accounts", "value", "gini", "effective", "top_1", "top_10"]].round(3)

# %% [markdown]
# ## Long and short, by mode
#
# Every contract that somebody is long, somebody is short. So over all accounts the two must be
# equal; `net` says which side each kind of account takes.

# %%
modes = tk.accounts.leverage(snapshot)
modes.drop(columns=["missing"]).round(3)

# %%
everybody = tk.accounts.leverage(snapshot, by=None)
everybody[["long", "short", "leverage", "net", "median_leverage"]].round(3)

# %% [markdown]
# The leverage of the sum says how safe the capital is, the median what a typical account does. They
# are far apart, because the capital and the positions belong to different accounts.
#
# ## What perp equity alone would have said
#
# A clearinghouse state gives the equity of one dex. Add the dexes up, and for most accounts that is
# all; but not for those that keep their money in the spot wallet. `migration` counts the accounts
# by class in either source. (Two snapshots of different times go in the same way.)

# %%
dexes = session.world["dexes"]
states = [tk.batch_clearinghouse_states(values["user"].tolist(), dex=dex) for dex in dexes]
perps = tk.accounts.values(pd.concat([one.accounts for one in states], ignore_index=True))

# %%
moved = tk.accounts.migration(perps, values)
tk.plots.migration_map(moved)

# %%
compared = values.merge(perps[["user", "value"]], on="user", suffixes=("", "_perps"))
compared["hidden"] = compared["value"] - compared["value_perps"]
hidden = compared.groupby("mode")[["value", "hidden"]].sum()
hidden.assign(share=hidden["hidden"] / hidden["value"]).round(3)

# %% [markdown]
# ## Conclusions
#
# - Nearly all the capital belongs to one account in twenty-five: 250 accounts are as concentrated
#   as eight equal ones would be. Without those above a million, Gini's coefficient is still 0.7.
# - Long and short are equal over all accounts, to the cent: the snapshot leaves nobody out.
# - The capital is hardly used, less than 5 % of it, while the median account with a position is
#   levered a quarter. An average over the exchange describes neither side.
# - Perp equity alone misses up to a few per cent of unified and portfolio-margin accounts and
#   nothing of the others. Here that moves one account into another class; where people keep more in
#   spot wallets it would move more, so values come from snapshots.

# %%
assert values["value"].notna().all()
assert values["user"].is_unique
assert whole["gini"].item() > 0.9 > rest["gini"].item() > 0.6
assert 5 < whole["effective"].item() < 10
assert abs(everybody["long"].item() - everybody["short"].item()) < 0.01
assert 0 < everybody["leverage"].item() < 0.05
assert everybody["median_leverage"].item() > 5 * everybody["leverage"].item()
assert moved["accounts"].sum() == len(values)
assert hidden.loc[["standard", "dex abstraction"], "hidden"].abs().max() < 0.01
assert (hidden.loc[["unified", "portfolio margin"], "hidden"] > 0).all()
