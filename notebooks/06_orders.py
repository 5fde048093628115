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
# # 06 Order lifecycle: how do orders end?
#
# An order can be filled. It can also be cancelled or rejected, for several reasons. This notebook
# follows the orders of all accounts from status to status. Which share is filled, and how fast?
# There are two traps: an order history whose oldest orders are missing, and cancelled orders that
# count as if they could still be filled.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

accounts = session.world["users"]  # on a live service: your own list of addresses

# %% [markdown]
# ## The events
#
# Each row states that an order got a new status. The service returns only the latest 2,000 events
# of an account. For accounts with that many events, older orders are missing, and not at random: an
# order that was filled long ago is missing, but an order that was open until yesterday is there. So
# the cell leaves out these accounts.

# %%
rows = tk.many(tk.historical_orders, accounts)
events = rows.groupby("user")["oid"].transform("size")
orders = rows[events < 2000]
kept, all_users = orders["user"].nunique(), rows["user"].nunique()
f"{orders['oid'].nunique():,} orders of {kept} accounts; {all_users - kept} accounts left out"

# %% [markdown]
# ## Transitions between statuses
#
# An order that is filled or rejected at once has one status only. Other orders were open for a
# while, in the book or before their trigger. How many of them went from each status to each other
# status?

# %%
rested = orders[orders["oid"].isin(orders.loc[orders["status"] == "open", "oid"])]
ways = tk.orders.transitions(rested)
tk.plots.order_transitions(ways)

# %% [markdown]
# ## Last statuses
#
# These are limit orders only (`Gtc`: good until cancelled), including those that were rejected at
# once. On the simulated exchange all reasons for a rejection are about equally frequent, so that
# each is visible; on a real exchange, some reasons are much more frequent than others.

# %%
limits = orders[(orders["tif"] == "Gtc") & ~orders["is_trigger"]]
ends = tk.orders.mix(limits)
tk.plots.order_mix(ends)

# %%
ends.groupby("group")["share"].sum().map("{:.1%}".format).to_frame()

# %% [markdown]
# ## How much is filled?
#
# By number of orders, or by value? The fill ratio (`ratio`) is the filled share of the ordered USD,
# for orders that were not rejected.

# %%
ratio = tk.orders.fill_ratio(orders, by="tif").set_index("tif")
ratio["by_number"] = ratio["filled"] / (ratio["orders"] - ratio["rejected"])
ratio[["orders", "filled", "canceled", "rejected", "asked_usd", "by_number", "ratio"]].round(3)

# %% [markdown]
# ## How fast?
#
# An open order is filled or cancelled, whichever comes first. The curves show the probability of
# each end by the time since the order was placed. The rest is still open.

# %%
resting = rested[~rested["is_trigger"]]
times = tk.orders.time_to_fill(resting)
times.plot()

# %%
table = times.params.set_index("name")
table.filter(regex="filled|canceled", axis=0).round(3)

# %% [markdown]
# ## Stops and targets: the trap of competing risks
#
# A stop may wait for days. Many are cancelled before that, some by the account and some by the
# exchange. A stop and a target often belong together: if one of them is filled, the exchange
# cancels the other. The usual curve (Kaplan and Meier) assumes that a cancelled
# order could still be filled later, when nobody observes it. How far is this curve too high?

# %%
triggers = orders[orders["is_trigger"]]
waiting = tk.orders.time_to_fill(triggers, horizons=[3600, 86400, 7 * 86400]).triggers
waiting.plot()

# %%
from statsmodels.duration.survfunc import SurvfuncRight

final = triggers.sort_values("status_timestamp").drop_duplicates("oid", keep="last")
age = (final["status_timestamp"] - final["timestamp"]).dt.total_seconds()
textbook = SurvfuncRight(age, final["status"] == "filled")
naive = 1 - textbook.surv_prob[textbook.surv_times <= 7 * 86400][-1]
pd.Series({"competing ends": waiting["filled within 604800 s"], "textbook": naive}).round(3)

# %% [markdown]
# ## From the trigger to the fill
#
# At the trigger price a stop becomes an order in the book. How long does it take from trigger to
# fill?

# %%
delays = tk.orders.trigger_delay(triggers)
delays.drop(columns=["wait_q50_secs"]).round(3)

# %% [markdown]
# ## What did waiting cost?
#
# The implementation shortfall (Perold, 1988) compares an order with an ideal order: filled at once,
# at the mid price when the decision was made. It has four parts: the delay to the first fill, the
# trading itself, the missed gain of what was not filled, and fees. Costs are negative. The mid
# prices are from the tape of four markets that trade often. An order without a recent price has no
# figures. The cell uses the account with the most market orders.

# %%
COINS = ["BTC", "ETH", "SOL", "HYPE"]
tape = tk.many(tk.user_fills_by_time, accounts, "7d")
tape = tape[tape["coin"].isin(COINS)]
placed = rows[rows["coin"].isin(COINS) & (rows["timestamp"] >= tape["time"].min())]
taker = placed.loc[placed["order_type"] == "Market", "user"].mode()[0]
placed = placed[placed["user"] == taker]
fills = tape[tape["oid"].isin(placed["oid"])]
lost = tk.execution.shortfall(placed, fills, tk.execution.quotes(tape), max_age="300s")
lost.params[["name", "estimate", "low", "high", "usd", "n", "missing"]].round(2)

# %%
lost.plot()

# %%
cost = lost.params.set_index("name")
clear = cost[(cost["low"] > 0) | (cost["high"] < 0)].index.tolist()
total = cost.loc["total"]
f"{total['n']:,} orders: {total['estimate']:.1f} bps; interval without 0: {clear}"

# %% [markdown]
# ## Conclusions

# %%
shares = ends.groupby("group")["share"].sum()
minute, day = times["filled within 60 s"], times["filled within 86400 s"]
number, value = ratio.loc["Gtc", ["by_number", "ratio"]]
stops = waiting["filled within 604800 s"]
print(f"rejected at once: {shares['rejected']:.0%} of the limit orders")
print(f"open orders filled within a minute {minute:.0%}, within a day {day:.0%}")
print(f"limit orders filled: {number:.0%} by number, {value:.1%} by value")
print(f"stops and targets filled within a week: {stops:.0%}; by the usual curve {naive:.0%}")
print(f"from trigger to fill at most {delays['delay_q90_secs'].max():.2f} s in nine of ten cases")

# %% [markdown]
# - If the share by number is far above the share by value, the filled orders are mostly small. Both
#   numbers are right, and neither can replace the other.
# - The usual curve is too high wherever orders are cancelled: it treats them as if they could still
#   be filled.
# - If the intervals of two kinds of orders do not overlap, their delays differ clearly.
# - The interval of a share depends on the number of orders, not of accounts. If a few accounts
#   place most orders, it is too narrow.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `accounts` to your own list
# of addresses (notebook 01 shows how to find some). One address is enough for most sections; the
# intervals are then wider. The section about the cost of waiting needs the fills of many accounts,
# because its mid prices come from them.
#
# The mix of reasons, the delay after a trigger and the speed of fills come from the simulation, and
# say nothing about the real exchange. On the live service the same cells measure how your orders
# end. The asserts about these figures may fail there.

# %%
arrived = ways[ways["after"] != "(last)"].groupby("after")["orders"].sum()
left = ways[ways["before"] != "(placed)"].groupby("before")["orders"].sum()

# %%
assert (arrived == left).all()  # as many orders enter a status as leave it
assert abs(ends["share"].sum() - 1) < 1e-9
assert 0.15 < ends.loc[ends["group"] == "rejected", "share"].sum() < 0.25
assert 0.35 < times["filled within 60 s"] == times["filled within 86400 s"] < 0.45
assert ratio.loc["Gtc", "by_number"] > 10 * ratio.loc["Gtc", "ratio"]
assert naive > 0.6 > 3 * waiting["filled within 604800 s"]
assert (delays["delay_q90_secs"] < 1).all()
assert delays["low"].max() < delays["high"].min()
assert abs(cost["usd"].drop("total").sum() - cost.loc["total", "usd"]) < 1e-6
assert cost.loc["fees", "high"] < 0
