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
# # 08 Holders: how many accounts own most of the money?
#
# A snapshot has the value of every account, by collateral token. How unequal are the values, who is
# long and who is short, and how much leverage does each kind of account have? What would the result
# be with perp equity alone?

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

tokens = session.world["collateral_tokens"]  # on a live service: your own list of tokens

# %% [markdown]
# ## The snapshot
#
# There is one row for each account, dex and token. The value of an account is the sum of its rows.
# The value of a unified or portfolio-margin account includes its spot wallet.

# %%
snapshot = tk.account_value_snapshots(tokens)
values = tk.accounts.values(snapshot)
f"{len(snapshot)} rows of {len(values)} accounts, {values['value'].sum():,.0f} USD"

# %%
values.groupby("mode")["value"].agg(["size", "median", "max", "sum"]).round(0)

# %% [markdown]
# ## Concentration
#
# Gini's coefficient is 0 if all accounts have the same value, and near 1 if one account has
# everything. The effective number of accounts is the number of equally large accounts that would be
# as concentrated.

# %%
whole = tk.accounts.concentration(snapshot)
whole[["accounts", "value", "gini", "hhi", "effective", "top_1", "top_10"]].round(3)

# %%
tk.plots.lorenz_curve(tk.accounts.lorenz(snapshot))

# %% [markdown]
# One number mixes large and small accounts. How unequal are the accounts below a million USD?

# %%
others = values[values["value"] < 1e6]
rest = tk.accounts.concentration(others)
both = pd.concat([whole, rest], keys=["all", "below a million"]).droplevel(1)
both[["accounts", "value", "gini", "effective", "top_1", "top_10"]].round(3)

# %% [markdown]
# ## Long and short, by mode
#
# Every long contract has a short contract. So over all accounts, long and short must be equal. The
# accounts of one mode may be on one side: `net` is above 0 if they are more long than short.

# %%
modes = tk.accounts.leverage(snapshot)
modes.drop(columns=["missing"]).round(3)

# %%
everybody = tk.accounts.leverage(snapshot, by=None)
everybody[["long", "short", "leverage", "net", "median_leverage"]].round(3)

# %% [markdown]
# The total leverage (all positions divided by all value) shows how safe the capital is. The median
# shows a typical account. If the two are very different, the capital and the positions belong to
# different accounts.
#
# ## The result with perp equity alone
#
# A clearinghouse state has the equity of an account on one dex. The sum over the dexes is the whole
# value of an account, unless its collateral includes money in the spot wallet. `migration` compares
# the two values: it counts accounts by their class in each. (It can also compare two snapshots.)

# %%
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex
users = values.nlargest(1_000, "value")["user"].tolist()  # one request takes at most 1,000
states = [tk.batch_clearinghouse_states(users, dex=dex) for dex in dexes]
perps = tk.accounts.values(tk.concat(state.accounts for state in states))

# %%
moved = tk.accounts.migration(perps, values)
tk.plots.migration_map(moved)

# %%
compared = values.merge(perps[["user", "value"]], on="user", suffixes=("", "_perps"))
compared["hidden"] = compared["value"] - compared["value_perps"]
hidden = compared.groupby("mode")[["value", "hidden"]].sum()
hidden.assign(share=hidden["hidden"] / hidden["value"]).round(3)

# %% [markdown]
# ## Are large accounts on the other side of small ones?
#
# The table groups accounts by value. It shows the net long share of their open positions, the gain
# of these positions since entry, and the number of equally large accounts that would be as
# concentrated as the larger side.

# %%
held = tk.concat(one.positions for one in states)
sides = tk.accounts.positioning(held, snapshot, by=[])
columns = ["accounts", "net_share", "low", "high", "gain_bps", "crowded_side", "effective_accounts"]
sides.set_index("size")[columns].round(2)

# %%
tk.plots.positioning(sides)

# %%
classes = sides[sides["size"] != "all"].set_index("size")
leaning = classes[(classes["low"] > 0) | (classes["high"] < 0)].index.tolist()
f"Size classes whose net side differs from 0: {leaning or 'none'} of {len(classes)}"

# %% [markdown]
# ## Conclusions

# %%
count = whole["effective"].item()
hides = (hidden["hidden"] / hidden["value"]).map("{:.1%}".format).to_dict()
print(f"{len(values)} accounts are as concentrated as {count:.0f} equal ones;", end=" ")
print(f"the ten largest have {whole['top_10'].item():.1%}")
print(f"Gini {whole['gini'].item():.2f}, below a million still {rest['gini'].item():.2f}")
print(f"long minus short: {everybody['long'].item() - everybody['short'].item():.2f} USD")
print(f"leverage {everybody['leverage'].item():.1%} of the capital,", end=" ")
print(f"of the median account {everybody['median_leverage'].item():.1%}")
print(f"value that perp equity does not show: {hides}")

# %% [markdown]
# - If a few accounts have nearly all the capital, also state the concentration of the others.
# - If long and short differ over all accounts, accounts are missing. If they are equal, this check
#   finds nothing missing.
# - If a few accounts own most of the capital, an average over the exchange does not describe a
#   typical account.
# - Perp equity alone misses the spot wallet of unified and portfolio-margin accounts. So take the
#   values from snapshots.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `tokens` to `["ALL"]` (or
# your own list). The snapshot needs its add-on, and can be requested 5 times in 10 minutes.
#
# The number of market makers, and how much they own, come from the simulation, and say nothing
# about the real exchange. On the live service the same cells measure the concentration of the whole
# exchange. The asserts about these figures may fail there.

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

# %%
assert classes["accounts"].sum() == sides.set_index("size").loc["all", "accounts"]
