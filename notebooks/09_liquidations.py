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
# # 09 Liquidation map: where would a price fall cause forced sales?
#
# Most open positions have a liquidation price. All of these prices together are a map: how much
# would be sold if the price fell by a given percentage? Such maps are popular and often wrong, for
# two reasons. They show only the known positions, not all. And they treat each position alone, but
# only isolated positions are independent: cross positions depend on the other positions of their
# account. This notebook measures both errors.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

accounts = session.world["users"]  # on a live service: your own list of addresses
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex

# %% [markdown]
# ## All positions
#
# These are the states of all accounts on each dex, their values, and the data of the markets: mark
# price, open interest and maximum leverage. The values come from a snapshot, because the states of
# unified and portfolio-margin accounts do not have their collateral. The margin tables are needed
# because large positions need more margin.

# %%
states = [tk.batch_clearinghouse_states(accounts, dex=dex) for dex in dexes]
positions = tk.concat(state.positions for state in states)
equity = tk.account_value_snapshots(["ALL"])
markets = tk.concat(tk.meta_and_asset_ctxs(dex=dex) for dex in dexes)
tiers = tk.concat(tk.margin_tables(dex=dex) for dex in dexes)
f"{len(positions)} positions of {positions['user'].nunique()} accounts"

# %% [markdown]
# ## Which market has a complete map?
#
# The map has steps of five percent, for every market. It can answer the question only if it shows
# most of the market. `covered` is the share of the open interest on the map. `accounts` is the
# number of accounts with a position on the map. Two kinds of positions are not on the map: a long
# without any liquidation price above 0, and a short that is liquidated only if the price more than
# doubles.

# %%
levels = tk.liquidations.levels(
    positions, markets, width=0.05, reach=1.0,
    accounts=equity, max_leverage=markets, margin_tables=tiers,
)  # fmt: skip
longs = levels[levels["side"] == "long"].groupby("coin")
mapped = pd.DataFrame({"accounts": longs["accounts"].sum(), "covered": longs["covered"].first()})
mapped.sort_values("accounts", ascending=False).head(10).round(2)

# %% [markdown]
# A cross position of an account with much margin has no liquidation price near the mark price. A
# map is therefore complete only if most positions of its market are isolated. Of these markets, the
# notebook uses the one with the most accounts.

# %%
complete = mapped[mapped["covered"] > 0.9]
COIN = complete["accounts"].idxmax()
level = levels[levels["coin"] == COIN]
level[["side", "distance", "accounts", "notional", "cumulative", "unplaced", "covered"]].round(2)

# %%
tk.plots.liquidation_map(level)

# %% [markdown]
# ## Where would a price fall cause forced sales?
#
# The table has the notional that the exchange would sell after a fall, and its share of the
# notional of all longs:

# %%
bins = level[level["side"] == "long"].sort_values("distance", ascending=False)
falls = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5]
sold = {fall: bins.loc[bins["distance"] > -fall + 1e-9, "notional"].sum() for fall in falls}
answer = pd.Series(sold, name="forced selling, USD").to_frame()
answer["share of the longs"] = answer.iloc[:, 0] / (bins["notional"].sum() + bins["unplaced"].max())
answer.round(2)

# %% [markdown]
# ## How much of the market is on the map?
#
# `known` is the share of the open interest that is in `positions`. `covered` is the share that is
# also on the map. Here the list has every account, so `known` is 1. How much would be known with a
# list of fifty addresses?

# %%
fifty = positions["user"].isin(accounts[:50])
partial = tk.liquidations.levels(
    positions[fifty], markets, width=0.05, reach=1.0,
    accounts=equity, max_leverage=markets, margin_tables=tiers,
)  # fmt: skip
full = levels.drop_duplicates(["coin", "side"]).set_index(["coin", "side"])
part = partial.drop_duplicates(["coin", "side"]).set_index(["coin", "side"])
columns = ["known", "covered"]

# %%
shares = pd.concat([full[columns], part[columns]], axis=1, keys=["everybody", "fifty"]).fillna(0)
shares.loc[["BTC", "ETH", COIN, "eqx:TSLA"]].round(2)

# %% [markdown]
# ## Accounts instead of positions
#
# The liquidation price of a cross position is right only while the account's other positions keep
# their value. In a crash they do not. `buffers` looks at the whole account: how far must all prices
# move against it before it is liquidated?

# %%
buffers = tk.liquidations.buffers(equity, positions, markets, margin_tables=tiers)
cross = buffers[buffers["margin"] == "cross"].sort_values("distance")
cross[["user", "dex", "positions", "equity", "notional", "buffer", "distance"]].head().round(3)

# %% [markdown]
# `alone` is the distance to the nearest liquidation price of the account's positions, as on the
# map. How much closer to liquidation is the account?

# %%
mark = positions["position_value"] / positions["szi"].abs()
rows = positions.assign(alone=(positions["liquidation_px"] / mark - 1).abs())
shared = rows[rows["leverage_type"] == "cross"].groupby(["user", "dex"], as_index=False)
alone = shared["alone"].min()
several = cross[cross["positions"] > 1].merge(alone, on=["user", "dex"]).dropna(subset="alone")
several[["user", "dex", "positions", "alone", "distance"]].head().round(3)

# %%
several["ratio"] = several["distance"] / several["alone"]
several["ratio"].describe()[["count", "min", "25%", "50%", "75%", "max"]].round(2).to_frame()

# %% [markdown]
# ## Isolated positions
#
# Each isolated position has its own margin and does not depend on other positions. For isolated
# positions, the map and `buffers` must agree.

# %%
isolated = buffers[buffers["margin"] == "isolated"].merge(
    rows[["user", "coin", "alone"]], on=["user", "coin"]
)
isolated.sort_values("distance")[["coin", "equity", "notional", "distance", "alone"]].head().round(
    3
)

# %% [markdown]
# ## Does a state show all collateral of a position?
#
# The collateral of a unified or portfolio-margin account is in its spot wallet, so its states show
# only a part of the value in the snapshot. `shown` is this part as a share, over all dexes:

# %%
values = tk.accounts.values(equity).set_index("user")
in_states = tk.concat(state.accounts for state in states).groupby("user")["account_value"].sum()
backed = values[values["mode"].isin(["unified", "portfolio margin"])].join(in_states)
backed["shown"] = backed["account_value"] / backed["value"]
backed[["mode", "account_value", "value", "shown"]].head().round(3)

# %% [markdown]
# ## How much is at risk?
#
# Which share of the notional would a given move liquidate, if it is against the accounts? The table
# has all cross accounts and all isolated positions.

# %%
risk = {
    margin: {
        f"{move:.0%}": rows.loc[rows["distance"] < move, "notional"].sum() / rows["notional"].sum()
        for move in (0.05, 0.1, 0.2, 0.5, 1.0)
    }
    for margin, rows in (("cross", cross), ("isolated", isolated))
}
pd.DataFrame(risk).rename_axis("move").map("{:.1%}".format)

# %% [markdown]
# ## A cascade
#
# A forced sale moves the price, and the lower price may force the next account to sell. `cascade`
# repeats this until no further account lacks margin. Here each other coin falls by 0.8 times the
# fall of the first coin, so cross accounts lose on all of their positions. How large is the cascade
# after the same shocks in BTC, and in the market with the thinnest book?

# %%
depth = tk.current_depth()
book_usd = depth.groupby("coin")[["bid_depth_usd", "ask_depth_usd"]].max().sum(axis=1)
THIN = book_usd[book_usd > 0].idxmin()
options = {"betas": 0.8, "max_leverage": markets, "margin_tables": tiers, "draws": 20}
shocks = [-0.05, -0.1, -0.2, -0.3]
deep = tk.liquidations.cascade(positions, equity, depth, "BTC", shocks, **options)
thin = tk.liquidations.cascade(positions, equity, depth, THIN, shocks, **options)

# %%
columns = ["shock", "estimate", "amplification", "rounds", "accounts", "forced_usd", "deficit_usd"]
pd.concat({"BTC": deep.params[columns], THIN: thin.params[columns]}).round(3)

# %%
thin.plot()

# %% [markdown]
# ## Conclusions

# %%
cover = mapped["covered"]
interest = markets["open_interest"] * markets["mark_px"]
BIG = interest.set_axis(markets["name"]).idxmax()
ratio = shares["fifty"]["covered"] / shares["everybody"]["covered"].where(lambda x: x > 0)
print(f"on the map: {cover[COIN]:.0%} of the longs of {COIN}, {cover[BIG]:.0%} of {BIG}", end=", ")
print("the largest market")
print("fifty accounts (medians over markets and sides):", end=" ")
print(f"{shares['fifty']['known'].median():.0%} of the open interest,", end=" ")
print(f"{ratio.median():.0%} of the map")

# %%
five = {margin: shares_of["5%"] for margin, shares_of in risk.items()}
print("the median cross account with several positions is liquidated at", end=" ")
print(f"{several['ratio'].median():.0%} of the distance on the map")
print(f"a move of 5 % liquidates {five['isolated']:.1%} of isolated, {five['cross']:.1%} of cross")
print(f"unified and portfolio margin: states show {backed['shown'].median():.0%} of the value")
deep_times, thin_times = (each.params["amplification"].max() for each in (deep, thin))
print(f"liquidations add at most {deep_times - 1:.0%} to a shock in BTC,", end=" ")
print(f"and {thin_times - 1:.0%} in {THIN}")

# %% [markdown]
# - A map answers the question only if it covers the market. A map without its coverage may look
#   complete.
# - A list of accounts may cover much of the open interest of a market, but little of its
#   liquidation map.
# - The map treats each position alone. For an account with several cross positions, the map
#   overestimates the distance to liquidation, because all of its prices may move together.
# - The states of unified and portfolio-margin accounts do not show their collateral. Pass the
#   values of a snapshot, or these accounts are left out.
# - A cascade needs a thin book. There, each liquidation moves the price far enough to reach the
#   next account.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `accounts` to a list of
# addresses, as in notebook 01. The key needs the add-ons of `accountValueSnapshots` and
# `currentDepth`. One request takes at most 1,000 addresses.
#
# The number of accounts close to liquidation and the depth of the books are facts of the
# simulation. With a list of some accounts, `covered` may be below 0.9 in every market, and the
# notebook stops at `COIN`. Then set `COIN` to a market yourself, and state its coverage with the
# map.

# %% [markdown]
# These asserts hold for any data:

# %%
assert answer["forced selling, USD"].is_monotonic_increasing
assert answer["share of the longs"].between(0, 1 + 1e-9).all()
assert (shares["fifty"]["known"] <= shares["everybody"]["known"] + 1e-9).all()

# %% [markdown]
# The other asserts hold for the simulated exchange, and may fail with other data:

# %%
assert mapped.loc[COIN, "covered"] > 0.9
assert mapped.loc["BTC", "covered"] < 0.5
assert mapped.loc[COIN, "accounts"] >= 5
assert 0 < sold[0.1] < sold[0.5]

# %%
assert abs(full["known"] - 1).max() < 1e-9  # both sides of every contract, all accounts
assert ratio.median() < shares["fifty"]["known"].median()
assert (several["ratio"] < 1).all()
assert ((isolated["alone"] / isolated["distance"] - 1).abs() < 0.001).all()
assert risk["isolated"]["5%"] > 3 * risk["cross"]["5%"]
assert backed["shown"].abs().median() < 0.1
assert deep.params["amplification"].between(1, 1.02).all()
assert thin.params["amplification"].max() > 1.05
