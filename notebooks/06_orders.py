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
# # 06 Order lifecycle: what becomes of an order?
#
# An order is filled, cancelled or rejected, and each of these in several ways. We follow the orders
# of all accounts from status to status, ask what share is filled and how fast, and meet two traps
# on the way: an order history that begins in the middle, and cancelled orders that are counted as
# if they might still be filled.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

accounts = session.world["users"]  # of a live service: the addresses that you know

# %% [markdown]
# ## The events
#
# Each row says that an order came into a status. The service gives the latest 2,000 events of an
# account. Of those who have that many, older orders are missing, and not at random: an order that
# was filled long ago is gone, one that rested until yesterday is there. So they are left out.

# %%
rows = tk.many(tk.historical_orders, accounts)
events = rows.groupby("user")["oid"].transform("size")
orders = rows[events < 2000]
kept, all_users = orders["user"].nunique(), rows["user"].nunique()
f"{orders['oid'].nunique():,} orders of {kept} accounts; {all_users - kept} accounts left out"

# %% [markdown]
# ## The ways
#
# Most orders are filled at once, or rejected at once. Of those that were open for a while, in the
# book or waiting for a trigger, how many went from each status to which other one?

# %%
rested = orders[orders["oid"].isin(orders.loc[orders["status"] == "open", "oid"])]
ways = tk.orders.transitions(rested)
tk.plots.order_transitions(ways)

# %% [markdown]
# ## How they end
#
# Limit orders alone (`Gtc`: good until cancelled), those rejected at once among them. The simulated
# exchange gives every reason to reject about equally often, so that each can be seen; a real one
# will not.

# %%
limits = orders[(orders["tif"] == "Gtc") & ~orders["is_trigger"]]
ends = tk.orders.mix(limits)
tk.plots.order_mix(ends)

# %%
ends.groupby("group")["share"].sum().map("{:.1%}".format).to_frame()

# %% [markdown]
# ## How much is filled?
#
# By number, or by value? The fill ratio is of what was asked for in USD, of orders that were not
# rejected.

# %%
ratio = tk.orders.fill_ratio(orders, by="tif").set_index("tif")
ratio["by_number"] = ratio["filled"] / (ratio["orders"] - ratio["rejected"])
ratio[["orders", "filled", "canceled", "rejected", "asked_usd", "by_number", "ratio"]].round(3)

# %% [markdown]
# ## How fast?
#
# An order that rests may be filled or cancelled, whichever comes first. The curves show how
# probable each end is by an age; what is left is still open.

# %%
resting = rested[~rested["is_trigger"]]
times = tk.orders.time_to_fill(resting)
times.plot()

# %%
table = times.params.set_index("name")
table.filter(regex="filled|canceled", axis=0).round(3)

# %% [markdown]
# ## Stops and targets: the trap of competing ends
#
# A stop waits for hours, and most are cancelled before, by the account or because its sibling was
# filled. The textbook curve (Kaplan and Meier) takes a cancelled order for one that we only lost
# sight of. How much does it overstate?

# %%
triggers = orders[orders["is_trigger"]]
waiting = tk.orders.time_to_fill(triggers, horizons=[3600, 86400, 7 * 86400])
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
# Once the price is reached, a stop is at the mercy of the book. How long from trigger to fill?

# %%
delays = tk.orders.trigger_delay(triggers)
delays.drop(columns=["wait_q50_secs"]).round(3)

# %% [markdown]
# ## Conclusions
#
# - One limit order in five is rejected at once. Of those that come to rest, two in five are filled,
#   and these within a minute; whatever is older is only waiting to be cancelled.
# - By number two in five limit orders are filled, by value one dollar in thirty: what is filled is
#   small. Either figure is true, and neither stands for the other.
# - One stop or target in five is ever filled. The textbook curve says two in three, because it
#   takes the cancelled ones for lost from sight.
# - Once its trigger is reached, an order is filled within a second, and limit orders no later than
#   market orders: the intervals overlap.
# - The interval of a share tells how many orders there are, not how many accounts. Where a few
#   accounts place most orders, it is too narrow.

# %%
arrived = ways[ways["after"] != "(last)"].groupby("after")["orders"].sum()
left = ways[ways["before"] != "(placed)"].groupby("before")["orders"].sum()

# %%
assert (arrived == left).all()  # as many come into a status as leave it
assert abs(ends["share"].sum() - 1) < 1e-9
assert 0.15 < ends.loc[ends["group"] == "rejected", "share"].sum() < 0.25
assert 0.35 < times["filled within 60 s"] == times["filled within 86400 s"] < 0.45
assert ratio.loc["Gtc", "by_number"] > 10 * ratio.loc["Gtc", "ratio"]
assert naive > 0.6 > 3 * waiting["filled within 604800 s"]
assert (delays["delay_q90_secs"] < 1).all()
assert delays["low"].max() < delays["high"].min()
