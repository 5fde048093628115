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
# # 09 Liquidation map: where would a falling price meet forced sellers?
#
# Every open position has a price at which it would be liquidated. Put together they make a map: how
# much would be sold if the price fell by so much. Maps like that are popular and often wrong, for
# two reasons: they show the positions that somebody knows, not all; and they take each position
# alone, though only isolated positions stand alone: cross-margined ones stand and fall with their
# account. Here we measure both.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

accounts = session.world["users"]  # of a live service: the addresses that you know
dexes = session.world["dexes"]

# %% [markdown]
# ## All positions
#
# The states of all accounts on each dex, and the market's own figures: mark price, open interest,
# the largest leverage, and the margin tables, since large positions must hold more margin.

# %%
states = [tk.batch_clearinghouse_states(accounts, dex=dex) for dex in dexes]
positions = tk.concat(one.positions for one in states)
equity = tk.concat(one.accounts for one in states)
markets = tk.concat(tk.meta_and_asset_ctxs(dex=dex) for dex in dexes)
tiers = tk.concat(tk.margin_tables(dex=dex) for dex in dexes)
f"{len(positions)} positions of {positions['user'].nunique()} accounts"

# %% [markdown]
# ## Which market has a map?
#
# In steps of five per cent, for every market. A map can answer the question only if it shows the
# market: `covered` is the share of open interest that is on it, `accounts` how many stand there.
# What no price within reach would liquidate is not on it: positions with so much margin behind them
# that the price would have to double.

# %%
levels = tk.liquidations.levels(
    positions, markets, width=0.05, reach=1.0,
    accounts=equity, max_leverage=markets, margin_tables=tiers,
)  # fmt: skip
longs = levels[levels["side"] == "long"].groupby("coin")
mapped = pd.DataFrame({"accounts": longs["accounts"].sum(), "covered": longs["covered"].first()})
mapped.sort_values("accounts", ascending=False).head(10).round(2)

# %% [markdown]
# Nearly all whole maps are of markets with isolated positions alone. Of them we take the one with
# most accounts.

# %%
whole = mapped[mapped["covered"] > 0.9]
COIN = whole["accounts"].idxmax()
one = levels[levels["coin"] == COIN]
one[["side", "distance", "accounts", "notional", "cumulative", "unplaced", "covered"]].round(2)

# %%
tk.plots.liquidation_map(one)

# %% [markdown]
# ## Where would a falling price meet forced sellers?
#
# What a fall would make the exchange sell, beside all that is held long:

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
# `known` compares the positions we have with open interest, `covered` those that are on the map.
# Here we know every account, so `known` is 1. Had we followed fifty accounts, as anybody with a
# list of addresses does, how much would we know?

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
# ## Accounts, not positions
#
# The liquidation price of a cross position holds while the account's other positions stay where
# they are. In a crash they do not. `buffers` takes each account as a whole: by how much may all its
# prices move against it at once?

# %%
buffers = tk.liquidations.buffers(equity, positions, markets, margin_tables=tiers)
cross = buffers[buffers["margin"] == "cross"].sort_values("distance")
cross[["user", "dex", "positions", "equity", "notional", "buffer", "distance"]].head().round(3)

# %% [markdown]
# Against the nearest liquidation price of each account's own positions: how much nearer is the
# account than the map says?

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
# Each has a margin of its own: nothing else backs it, and nothing else falls with it. For them map
# and buffer must be the same.

# %%
isolated = buffers[buffers["margin"] == "isolated"].merge(
    rows[["user", "coin", "alone"]], on=["user", "coin"]
)
isolated.sort_values("distance")[["coin", "equity", "notional", "distance", "alone"]].head().round(
    3
)

# %% [markdown]
# ## Does a state show all that stands behind a position?
#
# A portfolio-margin account backs its positions by all that it has. What its state on one dex shows
# is a share of what the snapshot of account values counts:

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
# Of the notional of all cross accounts, and of all isolated positions: how much would a move of so
# much against them liquidate?

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
# ## Conclusions
#
# - Where every position is isolated the map is whole and answers: the forced selling that each fall
#   meets is in the table; deeper falls meet no less. In the largest market less than half of the
#   longs are on the map; there it does not answer, and one that does not say so looks like a
#   warning.
# - Fifty accounts, market makers among them, hold a large part of a typical side, and of what is on
#   its map much less. How much of a market one knows says little of how much of its map one knows.
# - Taken as a whole, cross accounts with several positions are nearer to liquidation than the map
#   says: on the median a common move has to be well smaller. A map of positions is an upper bound
#   on safety.
# - Isolated positions are where the map says, and they are near: a move of 5 % liquidates a much
#   larger share of their notional than of that of cross accounts.
# - A state of a portfolio-margin account may show a part of what backs its positions. Mode matters
#   more than the last digit of a price.

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
ratio = shares["fifty"]["covered"] / shares["everybody"]["covered"].where(lambda x: x > 0)
assert ratio.median() < shares["fifty"]["known"].median()
assert several["ratio"].median() < 0.8
assert ((isolated["alone"] / isolated["distance"] - 1).abs() < 0.001).all()
assert risk["isolated"]["5%"] > 3 * risk["cross"]["5%"]
assert backed["shown"].between(0, 1).all()
