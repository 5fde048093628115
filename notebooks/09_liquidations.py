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
# Every open position has a liquidation price. All of them together are a map: how much would be
# sold if the price fell by a given percentage? Such maps are popular and often wrong, for two
# reasons. They show the positions that somebody knows, not all. And they treat each position alone,
# although only isolated positions are independent: cross positions depend on the other positions of
# their account. This notebook measures both errors.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

accounts = session.world["users"]  # on a live service: your own list of addresses
dexes = session.world["dexes"]

# %% [markdown]
# ## All positions
#
# These are the states of all accounts on each dex, and the data of the markets: mark price, open
# interest, maximum leverage, and the margin tables, since large positions need more margin.

# %%
states = [tk.batch_clearinghouse_states(accounts, dex=dex) for dex in dexes]
positions = tk.concat(one.positions for one in states)
equity = tk.concat(one.accounts for one in states)
markets = tk.concat(tk.meta_and_asset_ctxs(dex=dex) for dex in dexes)
tiers = tk.concat(tk.margin_tables(dex=dex) for dex in dexes)
f"{len(positions)} positions of {positions['user'].nunique()} accounts"

# %% [markdown]
# ## Which market has a complete map?
#
# The map has steps of five percent, for every market. It can answer the question only if it shows
# most of the market: `covered` is the share of open interest on the map, `accounts` is their
# number. Positions with very much margin are not on the map: they would be liquidated only if the
# price doubled.

# %%
levels = tk.liquidations.levels(
    positions, markets, width=0.05, reach=1.0,
    accounts=equity, max_leverage=markets, margin_tables=tiers,
)  # fmt: skip
longs = levels[levels["side"] == "long"].groupby("coin")
mapped = pd.DataFrame({"accounts": longs["accounts"].sum(), "covered": longs["covered"].first()})
mapped.sort_values("accounts", ascending=False).head(10).round(2)

# %% [markdown]
# A cross position of an account with much margin has no liquidation price near the mark. So a map
# is complete if most positions of its market are isolated. Of these markets we use the one with
# most accounts.

# %%
whole = mapped[mapped["covered"] > 0.9]
COIN = whole["accounts"].idxmax()
one = levels[levels["coin"] == COIN]
one[["side", "distance", "accounts", "notional", "cumulative", "unplaced", "covered"]].round(2)

# %%
tk.plots.liquidation_map(one)

# %% [markdown]
# ## Where would a price fall cause forced sales?
#
# Notional that the exchange would sell after a fall, and the notional of all longs:

# %%
held = one[one["side"] == "long"].sort_values("distance", ascending=False)
falls = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5]
sold = {fall: held.loc[held["distance"] > -fall + 1e-9, "notional"].sum() for fall in falls}
answer = pd.Series(sold, name="forced selling, USD").to_frame()
answer["share of the longs"] = answer.iloc[:, 0] / (held["notional"].sum() + held["unplaced"].max())
answer.round(2)

# %% [markdown]
# ## How much of the market is on the map?
#
# `known` compares our positions with open interest, `covered` compares those on the map. Here we
# know every account, so `known` is 1. How much would we know with a list of fifty addresses?

# %%
known = positions["user"].isin(accounts[:50])
partial = tk.liquidations.levels(
    positions[known], markets, width=0.05, reach=1.0,
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
# The liquidation price of a cross position is right while the account's other positions do not
# change in value. In a crash they do. `buffers` looks at the whole account: how far may all of its
# prices move against it at the same time?

# %%
buffers = tk.liquidations.buffers(equity, positions, markets, margin_tables=tiers)
cross = buffers[buffers["margin"] == "cross"].sort_values("distance")
cross[["user", "dex", "positions", "equity", "notional", "buffer", "distance"]].head().round(3)

# %% [markdown]
# Compared with the nearest liquidation price of the account's own positions: how much closer is the
# account to liquidation than the map shows?

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
# Each isolated position has its own margin and does not depend on others. For them map and buffer
# must be equal.

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
# The collateral of a portfolio-margin account is everything that it has. Its state on one dex shows
# a share of the value in the snapshot of account values:

# %%
snapshot = tk.account_value_snapshots(session.world["collateral_tokens"])
values = tk.accounts.values(snapshot).set_index("user")
modes = cross.join(values[["mode", "value"]], on="user")
backed = modes[modes["mode"] == "portfolio margin"]
backed = backed.assign(shown=backed["equity"] / backed["value"])
backed[["user", "dex", "distance", "equity", "value", "shown"]].head().round(3)

# %% [markdown]
# ## How much is at risk?
#
# Of the notional of all cross accounts and of all isolated positions: which share would a given
# move against them liquidate?

# %%
risk = {
    margin: {
        f"{move:.0%}": held.loc[held["distance"] < move, "notional"].sum() / held["notional"].sum()
        for move in (0.05, 0.1, 0.2, 0.5, 1.0)
    }
    for margin, held in (("cross", cross), ("isolated", isolated))
}
pd.DataFrame(risk).rename_axis("move").map("{:.1%}".format)

# %% [markdown]
# ## A cascade
#
# A forced sale moves the price, and the lower price may force the next account to sell. `cascade`
# repeats this until nobody more lacks margin. Here the other coins fall by 80 % of the first move,
# so cross accounts lose on all of their positions. What do the same falls start in the book of BTC
# and in the thinnest one?

# %%
depth = tk.current_depth()
half = depth.groupby("coin")[["bid_depth_usd", "ask_depth_usd"]].max().sum(axis=1)
THIN = half[half > 0].idxmin()
falls = {"betas": 0.8, "max_leverage": markets, "margin_tables": tiers, "draws": 20}
shocks = [-0.05, -0.1, -0.2, -0.3]
deep = tk.liquidations.cascade(positions, equity, depth, "BTC", shocks, **falls)
thin = tk.liquidations.cascade(positions, equity, depth, THIN, shocks, **falls)

# %%
columns = ["shock", "estimate", "amplification", "rounds", "accounts", "forced_usd", "deficit_usd"]
pd.concat({"BTC": deep.params[columns], THIN: thin.params[columns]}).round(3)

# %%
thin.plot()

# %% [markdown]
# ## Conclusions

# %%
cover = mapped["covered"]
most = markets.assign(usd=markets["open_interest"] * markets["mark_px"]).set_index("name")["usd"]
BIG = most.idxmax()
ratio = shares["fifty"]["covered"] / shares["everybody"]["covered"].where(lambda x: x > 0)
print(f"on the map: {cover[COIN]:.0%} of the longs of {COIN}, {cover[BIG]:.0%} of {BIG}", end=", ")
print("the largest market")
print(f"fifty accounts have {shares['fifty']['known'].median():.0%} of the median side,", end=" ")
print(f"but {ratio.median():.0%} of its map")

# %%
five = {margin: shares_of["5%"] for margin, shares_of in risk.items()}
print("a median cross account with several positions is liquidated at", end=" ")
print(f"{several['ratio'].median():.0%} of the distance on the map")
print(f"a move of 5 % liquidates {five['isolated']:.1%} of isolated, {five['cross']:.1%} of cross")
print(f"portfolio margin: a state shows {backed['shown'].min():.0%} of the value or more")
grown = {"BTC": deep.params["amplification"].max(), THIN: thin.params["amplification"].max()}
print("a shock grows at most by", {coin: f"{times - 1:.0%}" for coin, times in grown.items()})

# %% [markdown]
# - A map answers the question only if it covers the market. A map that does not state its coverage
#   looks like a warning.
# - The known share of a market is not the known share of its map.
# - The map treats each position alone. For an account with several cross positions it is an upper
#   bound on safety, because all of its prices may move together.
# - A state of a portfolio-margin account may show only a part of its collateral. The account mode
#   matters more than the last digit of a price.
# - A cascade needs a thin book: where each liquidation moves the price, it reaches the next one.
#
# How many accounts are close to liquidation and how thin the books are: these are facts of the
# simulation. The steps are the same on a live service; begin with a list of addresses, as in
# notebook 01. The asserts about these figures may fail there.

# %%
assert mapped.loc[COIN, "covered"] > 0.9
assert mapped.loc["BTC", "covered"] < 0.5
assert mapped.loc[COIN, "accounts"] >= 5
assert answer["forced selling, USD"].is_monotonic_increasing
assert answer["share of the longs"].between(0, 1 + 1e-9).all()
assert 0 < sold[0.1] < sold[0.5]

# %%
assert abs(full["known"] - 1).max() < 1e-9  # both sides of every contract, all accounts
assert (shares["fifty"]["known"] <= shares["everybody"]["known"] + 1e-9).all()
assert ratio.median() < shares["fifty"]["known"].median()
assert several["ratio"].median() < 0.8
assert ((isolated["alone"] / isolated["distance"] - 1).abs() < 0.001).all()
assert risk["isolated"]["5%"] > 3 * risk["cross"]["5%"]
assert backed["shown"].between(0, 1).all()
assert deep.params["amplification"].between(1, 1.02).all()
assert thin.params["amplification"].max() > 1.05
