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
# # 05 Execution: what did trading cost, and who earned it?
#
# A fill shows the price of a trade. The quotes before the fill show whether it was expensive. The
# prices after the fill show whether it was a good trade. This notebook uses three weeks of fills of
# every account, so it has both sides of each trade. What did takers pay? Did makers keep it? How
# good were TWAP orders?
#
# The notebook also shows how far you can trust such numbers. On average, one 95 % interval in
# twenty misses the true value. There are many intervals here, so all of them have a level of 99 %.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

COINS = ["BTC", "ETH", "SOL", "HYPE"]  # traded often enough to have a price at most times
LEVEL = 0.99
accounts = session.world["users"]  # on a live service: your own list of addresses
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex

# %% [markdown]
# ## The tape
#
# The service has no list of trades. The fills of all accounts together are such a list: each trade
# is in it twice, once from each side. (Settlements and conversions of dust have only one side, but
# they are in coins that the notebook does not use.)

# %%
tape = tk.many(tk.user_fills_by_time, accounts, "21d")
fills = tape[tape["coin"].isin(COINS)]
f"{len(tape):,} fills, {tape['tid'].nunique():,} trades, {len(fills):,} fills in {len(COINS)} coins"

# %% [markdown]
# ## The price of a trade is not a mid price
#
# A trade happens at the bid or at the ask. Buys often follow buys. If the price of the last trade
# were used as the mid price, two buys in a row would seem to have no spread. So the helpers do not
# accept trade prices as mid prices:

# %%
try:
    tk.execution.fill_quality(fills, tape)
except ValueError as refused:
    print(refused)

# %% [markdown]
# `crossed` and `side` show whether the taker bought or sold. A regression of price changes on these
# signs, +1 and -1 (Glosten and Harris, 1988), estimates the half-spread and its two parts. The
# realised part is what the maker earns from the trade. The impact is how far a trade moves the
# quotes permanently. The estimate is also right if several buys, or several sells, follow each
# other.

# %%
regression = tk.execution.spreads(fills, level=LEVEL)
regression.coins.round(3)

# %% [markdown]
# ## Against the books
#
# The slippage samples state the half-spread of each book. They do not come from the fills, so they
# can check the tape. What is the half-spread, weighted by traded volume?

# %%
books = tk.many(tk.slippage_history, COINS, 1e3, "21d", page_size=2000)
half_spreads = books.groupby("coin")["half_spread_bps"].mean()
coins = regression.coins.set_index("coin")
expected = (half_spreads * coins["volume_usd"]).sum() / coins["volume_usd"].sum()
pd.DataFrame({"books": half_spreads, "tape": coins["half_spread"]}).round(2)

# %%
parts = regression.params.set_index(["liquidity", "name"])
print(f"half-spread by the books: {expected:.2f} bps")
parts.loc["taker", ["estimate", "low", "high", "n", "missing"]].round(2)

# %%
regression.plot()

# %% [markdown]
# ## How old is a price?
#
# `tk.execution.quotes` uses the same regression to estimate the mid price at each trade. The price
# before a fill is the last of these mid prices. This price may be old. Then the difference between
# it and the price of the fill also contains the move of the market in between. Every result
# therefore states the maximum age of a price, and the share of the volume that has a price.

# %%
quotes = tk.execution.quotes(fills)
quotes[["coin", "time", "bid_px", "mid_px", "ask_px", "buy_px", "sell_px"]].head()

# %%
AGES = ["10s", "60s", "300s"]
taker_fills = fills[fills["crossed"]]
rows = [tk.execution.fill_quality(taker_fills, quotes, max_age=age, by="liquidity") for age in AGES]
fresh = pd.concat(rows, keys=AGES, names=["max_age", None]).droplevel(1)
fresh[["fills", "priced", "covered", "improvement_bps", "age_seconds"]]

# %% [markdown]
# From here on, the maximum age is one minute. A fill without such a price does not count as 0: it
# is left out, and `missing` counts it.
#
# ## After the trade
#
# The markout is the price change after a fill. It is positive if it is good for the account. Fills
# of one day depend on each other, so the intervals are from a bootstrap of days, not of fills.

# %%
horizons = ["10s", "30s", "1m", "5m", "30m"]
after = tk.execution.markout(fills, quotes, horizons, level=LEVEL)
after.params[["liquidity", "seconds", "estimate", "low", "high", "n", "missing"]].round(2)

# %%
after.plot()

# %% [markdown]
# ## Who earned the spread?
#
# Here the same question is answered fill by fill, with the quotes one minute later. A taker pays
# the effective half-spread. The maker keeps the realised part, and loses the impact because the
# price moves against the maker. The realised part and the impact sum to the effective half-spread.
# For each of the three amounts, the sum over takers and makers is zero.

# %%
split = tk.execution.spreads(fills, quotes, "1m", level=LEVEL)
one_minute = split.params.set_index(["liquidity", "name"])
one_minute.loc["taker", ["estimate", "low", "high", "usd", "n", "missing"]].round(2)

# %%
split.plot()

# %% [markdown]
# ## Do larger orders move the price more?
#
# Many studies find that impact grows with the square root of an order's size. `tk.execution.impact`
# joins the fills of each order and fits `c * (size / volume of a day)**d`. If the interval of the
# exponent `d` contains 1/2, the data do not contradict this law. Only a narrow interval confirms
# it. The other panels show how far the price moves during the next orders, and how often the next
# order has the same side.

# %%
impact = tk.execution.impact(fills, quotes, level=LEVEL)
impact.plot()

# %%
law = impact.params.set_index("name")
print(f"exponent {law.loc['exponent', 'low']:.2f} to {law.loc['exponent', 'high']:.2f}", end=", ")
print(f"from {law.loc['exponent', 'n']:,} orders with prices before and after")

# %% [markdown]
# ## Who trades against whom?
#
# The two fills of a trade have the same trade id. So for each taker we know the makers. The gain of
# a taker is the price change in the minute after the trade. If the takers of a maker gain, they are
# better informed than the maker.

# %%
pairs = tk.execution.counterparties(fills, quotes, "1m", level=LEVEL)
columns = ["taker", "maker", "trades", "priced", "volume_usd", "gain_bps", "low", "high"]
pairs[columns].head().round(2)

# %%
tk.plots.counterparties(pairs)

# %% [markdown]
# Many of these gains are luck. Shrinkage moves each gain towards the mean of all takers. It moves
# uncertain gains more. Which takers trade before the price moves in their favour?

# %%
ranked = tk.execution.toxicity(fills, quotes, "1m", level=LEVEL)
tk.plots.toxicity(ranked)

# %% [markdown]
# ## TWAP orders
#
# A TWAP order splits a size into slices. How does its price compare with three benchmarks: the
# volume-weighted price and the time-weighted price while it ran, and the price on arrival? A
# positive difference is good for the account.

# %%
orders = tk.twaps.quality(tape, tape)
orders[["coin", "side", "fills", "px", "vwap", "arrival_px", "share", "vs_vwap_bps"]].head()

# %% [markdown]
# `share` is a warning: if an order has half of the volume of its market, half of its benchmark is
# the order itself. The notebook uses the orders with less than half. With many orders, three
# standard errors on each side give a level of 99.7 %. Here there are few orders, so the level is
# about 99 %.

# %%
small = orders[orders["share"] < 0.5]
against = small[["vs_vwap_bps", "vs_twap_bps", "vs_arrival_bps"]].agg(["count", "mean", "sem"]).T
against.assign(low=against["mean"] - 3 * against["sem"], high=against["mean"] + 3 * against["sem"])

# %%
tk.plots.twap_quality(small)

# %% [markdown]
# ## Running TWAP orders
#
# A snapshot states the progress of each order. The notebook compares it with the elapsed time and
# with the fills. Orders that wait for their trigger have no schedule yet.

# %%
running = tk.perp_twap_snapshots("ALL:ALL_DEXES")
schedule = tk.twaps.adherence(running).dropna(subset="elapsed")
schedule[["market", "total_sz", "elapsed", "progress", "behind", "slices_due", "slice_number"]]

# %%
tk.plots.twap_adherence(schedule)

# %% [markdown]
# The remaining size of all running orders shows the expected net flow of the next hours. Will they
# buy or sell?

# %%
marks = tk.many(tk.meta_and_asset_ctxs, dexes)
pressure = tk.twaps.pressure(running, marks)
tk.plots.twap_pressure(pressure)

# %% [markdown]
# Does the tape have all fills of each order? `missing_sz` is the executed size without a fill. If
# it is 0, an order behind its schedule is really late.

# %%
linked = tk.twaps.linked(running, tape)
linked.loc[linked["fills"] > 0, ["market", "executed_sz", "fills", "filled_sz", "missing_sz"]]

# %% [markdown]
# ## The live monitor
#
# This widget shows the depth of a market and the progress of its TWAP orders. "Start" updates it
# every few seconds in its own thread, so cells can run at the same time. Here it updates once,
# because the clock of the simulated exchange does not run. With `tk.local(clock="live")` or a live
# service, the view changes.

# %%
monitor = tk.widgets.live_monitor(schedule["market"].iloc[0]).look()
monitor

# %% [markdown]
# ## Conclusions
#
# The tape shows:

# %%
taker, minute = parts.loc["taker"], one_minute.loc["taker"]
low, high = taker.loc["effective", ["low", "high"]]
maker_share = taker.loc["realised", "estimate"] / taker.loc["effective", "estimate"]
width = ((minute["high"] - minute["low"]) / (taker["high"] - taker["low"]))["effective"]
print(f"half-spread of takers {low:.2f} to {high:.2f} bps, by the books {expected:.2f} bps")
print(f"makers keep {maker_share:.0%} of it, at least {taker.loc['realised', 'low']:.2f} bps")
print(f"fill by fill the interval is {width:.1f} times as wide as that of the regression")

# %%
takers = after.params[after.params["liquidity"] == "taker"].set_index("seconds")
spans = (takers["high"] - takers["low"]).astype(float)
loss_times = ", ".join(f"{seconds:.0f}" for seconds in takers.index[takers["high"] < 0])
five, thirty = (spans / spans[60]).loc[[300, 1800]]
print(f"takers lose (99 % interval below 0) at these seconds after the trade: {loss_times}")
print(f"after 5 minutes the interval is {five:.1f} times as wide as after one minute,", end=" ")
print(f"after 30 minutes {thirty:.1f} times")
print(f"largest gain of a taker {ranked['gain_bps'].max():.1f} bps,", end=" ")
print(f"after shrinkage {ranked['shrunk_bps'].max():.1f} bps")

# %%
late = schedule[schedule["behind"] > 0.05]
spread = (6 * against["sem"]).round(1)
print(f"{len(small)} TWAP orders: the interval against the volume-weighted price is", end=" ")
print(f"{spread['vs_vwap_bps']} bps wide,")
print(f"against the price on arrival {spread['vs_arrival_bps']} bps")
print(f"{len(late)} of {len(schedule)} running orders are more than 5 % behind their schedule;")
print(f"the tape has all fills of the running orders: {bool(linked['whole'].all())}")

# %% [markdown]
# - The regression uses every trade. The price one minute later also contains the moves of the
#   market, which may be much larger than the effect of a single trade.
# - If older prices are allowed, more volume has a price, but the result is less precise. State the
#   age with the figure.
# - The interval of a markout grows with the time after the trade. A wide interval means that the
#   markout mostly measures luck, not execution.
# - The older the benchmark of a TWAP order, the more the difference contains moves of the market.
#   So its interval is wider.
# - The best of many pairs owes its gain partly to luck. Compare gains after shrinkage.
# - If the interval of the exponent contains all plausible values, it says nothing about the law.
#   The impact of the orders is then too small compared with the moves of the market.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `accounts` to your own list
# of addresses. The live monitor needs the add-on of `currentDepth`. The fills of some accounts are
# an incomplete tape: of many trades it has one side or none. The quotes are then less precise.
#
# The simulation determines three results: what a taker pays, who makes the market, and that no
# taker predicts the price well. Its agents follow simple rules, and their orders do not change
# later prices. On a live service, the same cells measure these results.

# %% [markdown]
# These asserts hold for the fills of all accounts:

# %%
assert abs(minute["usd"] @ [1, -1, -1]) < 1e-6  # effective = realised + impact
sides = after.params.pivot(index="seconds", columns="liquidity", values="estimate")
assert abs(sides["maker"] + sides["taker"]).max() < 1e-6  # one side's gain is the other's loss
assert len(fills) == 2 * fills["tid"].nunique()
assert pairs["trades"].sum() > 0.999 * fills["tid"].nunique()
assert (abs(pressure["buy_usd"] - pressure["sell_usd"] - pressure["net_usd"]).dropna() < 1e-6).all()
assert linked["whole"].all()

# %% [markdown]
# The live monitor has stopped:

# %%
assert not monitor.running

# %% [markdown]
# The other asserts hold for the simulated exchange, and may fail with other data:

# %%
assert taker.loc["effective", "low"] > 0
assert taker.loc["effective", "low"] < expected < taker.loc["effective", "high"]
assert taker.loc["realised", "estimate"] > taker.loc["effective", "estimate"] / 2
assert taker.loc["realised", "low"] > 0
assert width > 2

# %%
assert fresh.loc["300s", "covered"] > 2 * fresh.loc["60s", "covered"]
assert fresh.loc["300s", "age_seconds"] > 2 * fresh.loc["60s", "age_seconds"]

# %%
assert takers.loc[60, "high"] < 0
assert spans[300] > 3 * spans[60]
assert spans[1800] > 8 * spans[60]
assert takers.loc[1800, "low"] < 0 < takers.loc[1800, "high"]

# %%
ahead = ranked.dropna(subset="shrunk_bps")
assert len(ahead) > 10
assert ahead["shrunk_bps"].abs().max() < ahead["gain_bps"].abs().max() / 2
assert law.loc["exponent", "low"] < 0.5 < law.loc["exponent", "high"]
assert pressure["orders"].sum() == len(schedule)

# %%
assert against.loc["vs_vwap_bps", "sem"] < against.loc["vs_arrival_bps", "sem"]
assert 6 * against.loc["vs_arrival_bps", "sem"] > 10
assert against["count"].between(12, 100).all()
assert schedule["behind"].between(-0.01, 0.05).sum() == len(schedule) - 1
assert 0.3 < schedule["behind"].max() < 0.4
assert monitor.view.depth is not None
