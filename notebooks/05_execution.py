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
# A fill shows the price that was paid. Whether it was expensive depends on the quotes before it,
# and whether it was a good trade depends on the prices after it. This notebook uses three weeks of
# fills of every account, both sides of each trade. What did takers pay, did makers keep it, and how
# good were TWAP orders? The notebook also shows how far such numbers can be trusted. At
# 95 %, one interval in twenty is wrong. There are a dozen here, so the notebook uses 99 %.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

COINS = ["BTC", "ETH", "SOL", "HYPE"]  # traded often enough to have a price at most times
LEVEL = 0.99
accounts = session.world["users"]  # on a live service: your own list of addresses

# %% [markdown]
# ## The tape
#
# The service has no list of trades. The fills of all accounts together are one: each trade is in it
# twice, once from each side. (Settlements and conversions of dust have one side only, but they are
# in coins that we do not use.)

# %%
tape = tk.many(tk.user_fills_by_time, accounts, "21d")
fills = tape[tape["coin"].isin(COINS)]
f"{len(tape):,} fills, {tape['tid'].nunique():,} trades, {len(fills):,} fills in {len(COINS)} coins"

# %% [markdown]
# ## The price of a trade is not a mid price
#
# A trade happens at the bid or at the ask. Buys often follow buys. If one uses the last trade as
# the mid price, two buys in a row seem to have no spread. So the helpers refuse it:

# %%
try:
    tk.execution.fill_quality(fills, tape)
except ValueError as refused:
    print(refused)

# %% [markdown]
# `crossed` and `side` show which side was the taker. A regression of price changes on these
# signs (Glosten and Harris, 1988) estimates the half spread and its two parts: what the maker earns
# from the trade (realised), and how far a trade moves the quotes permanently (impact). The estimate
# is also right if equal signs come in a row.

# %%
paid = tk.execution.spreads(fills, level=LEVEL)
paid.coins.round(3)

# %% [markdown]
# ## Against the books
#
# The slippage samples state half the spread of each book. They do not come from the fills, so they
# can check the tape: what is half the spread, weighted by traded volume?

# %%
books = tk.many(tk.slippage_history, COINS, 1e3, "21d", page_size=2000)
half = books.groupby("coin")["half_spread_bps"].mean()
coins = paid.coins.set_index("coin")
expected = (half * coins["volume_usd"]).sum() / coins["volume_usd"].sum()
pd.DataFrame({"books": half, "tape": coins["half_spread"]}).round(2)

# %%
parts = paid.params.set_index(["liquidity", "name"])
print(f"half a spread by the books: {expected:.2f} bps")
parts.loc["taker", ["estimate", "low", "high", "n", "missing"]].round(2)

# %%
paid.plot()

# %% [markdown]
# ## How old is a price?
#
# The same regression gives quotes: the mid price of each trade. The price before a fill is the last
# of them. It may be old, and an old price measures the market's later move, not the cost of the
# trade. So every result states the maximum age of a price and the share of volume that has one.

# %%
quotes = tk.execution.quotes(fills)
quotes[["coin", "time", "bid_px", "mid_px", "ask_px", "buy_px", "sell_px"]].head()

# %%
AGES = ["10s", "60s", "300s"]
taken = fills[fills["crossed"]]
rows = [tk.execution.fill_quality(taken, quotes, max_age=age, by="liquidity") for age in AGES]
fresh = pd.concat(rows, keys=AGES, names=["max_age", None]).droplevel(1)
fresh[["fills", "priced", "covered", "improvement_bps", "age_seconds"]]

# %% [markdown]
# From here on the maximum age is a minute. Fills without a price are counted and left out; they do
# not count as 0.
#
# ## After the trade
#
# The markout is the price change after a fill, positive if it is good for the account. Fills of one
# day depend on each other, so the intervals are from a bootstrap of days, not of fills.

# %%
horizons = ["10s", "30s", "1m", "5m", "30m"]
after = tk.execution.markout(fills, quotes, horizons, level=LEVEL)
after.params[["liquidity", "seconds", "estimate", "low", "high", "n", "missing"]].round(2)

# %%
after.plot()

# %% [markdown]
# ## Who earned the spread?
#
# Here the same question is answered fill by fill, with the quotes of a minute later. A taker pays
# the effective half spread. The maker keeps the realised part, and loses the impact since the price
# moves on. The two parts sum to the effective half spread. Over both sides of all trades each of
# the three sums to zero.

# %%
split = tk.execution.spreads(fills, quotes, "1m", level=LEVEL)
later = split.params.set_index(["liquidity", "name"])
later.loc["taker", ["estimate", "low", "high", "usd", "n", "missing"]].round(2)

# %%
split.plot()

# %% [markdown]
# ## Do larger orders move the price more?
#
# Many studies find that impact grows with the square root of an order's size. `tk.execution.impact`
# joins the fills of each order and fits `c * (size / volume of a day)**d`. If the interval of the
# exponent contains 1/2, the law is not refuted; only a narrow interval confirms it. The other
# panels show how far the price moves in the next orders, and how often the next order has the same
# side.

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
# Trade ids join both sides, so each taker has a list of makers. The gain of a taker is the price
# change of the minute after the trade. A maker whose takers gain meets better informed traders.

# %%
pairs = tk.execution.counterparties(fills, quotes, "1m", draws=99)
columns = ["taker", "maker", "trades", "priced", "volume_usd", "gain_bps", "low", "high"]
pairs[columns].head().round(2)

# %%
tk.plots.counterparties(pairs)

# %% [markdown]
# Many of these numbers are luck. Shrinkage moves each gain towards the mean of all takers, the more
# the less certain it is. Which takers are ahead of the price?

# %%
ranked = tk.execution.toxicity(fills, quotes, "1m")
tk.plots.toxicity(ranked)

# %% [markdown]
# ## TWAP orders
#
# A TWAP order splits a size into slices. What was its price against three benchmarks of the time in
# which it ran: the volume-weighted price, the time-weighted price, and the price on arrival?
# Positive is good for the account.

# %%
orders = tk.twaps.quality(tape, tape)
orders[["coin", "side", "fills", "px", "vwap", "arrival_px", "share", "vs_vwap_bps"]].head()

# %% [markdown]
# `share` is a warning: an order with half of the volume of its market is compared with itself. We
# use orders below half. Three standard errors are about as strict as our 99 %.

# %%
small = orders[orders["share"] < 0.5]
against = small[["vs_vwap_bps", "vs_twap_bps", "vs_arrival_bps"]].agg(["count", "mean", "sem"]).T
against.assign(low=against["mean"] - 3 * against["sem"], high=against["mean"] + 3 * against["sem"])

# %%
tk.plots.twap_quality(small)

# %% [markdown]
# ## Running TWAP orders
#
# A snapshot states the progress of each order. We compare it with the elapsed time and with the
# fills. Orders that wait for their trigger have no schedule yet.

# %%
running = tk.perp_twap_snapshots(session.world["perp_coins"])
schedule = tk.twaps.adherence(running).dropna(subset="elapsed")
schedule[["market", "total_sz", "elapsed", "progress", "behind", "slices_due", "slice_number"]]

# %%
tk.plots.twap_adherence(schedule)

# %% [markdown]
# What is left of all running orders together is a sign of the next hours: will they buy or sell?

# %%
marks = tk.many(tk.meta_and_asset_ctxs, session.world["dexes"])
left = tk.twaps.pressure(running, marks)
tk.plots.twap_pressure(left)

# %% [markdown]
# Are the fills of each order complete? Without them, an order that is late looks like missing data.

# %%
linked = tk.twaps.linked(running, tape)
linked.loc[linked["fills"] > 0, ["market", "executed_sz", "fills", "filled_sz", "missing_sz"]]

# %% [markdown]
# ## The live monitor
#
# This widget shows the depth of a market and the progress of its TWAP orders. "Start" updates it
# every few seconds, on a thread of its own, so cells can run at the same time. Here it updates
# once, since the time of this exchange stands still. With `tk.local(clock="live")` or a live
# service the view changes.

# %%
monitor = tk.widgets.live_monitor(schedule["market"].iloc[0]).look()
monitor

# %% [markdown]
# ## Conclusions
#
# What the tape shows:

# %%
taker, minute = parts.loc["taker"], later.loc["taker"]
low, high = taker.loc["effective", ["low", "high"]]
kept = taker.loc["realised", "estimate"] / taker.loc["effective", "estimate"]
width = ((minute["high"] - minute["low"]) / (taker["high"] - taker["low"]))["effective"]
print(f"half spread of takers {low:.2f} to {high:.2f} bps, by the books {expected:.2f} bps")
print(f"makers keep {kept:.0%} of it; realised part {taker.loc['realised', 'low']:.2f} bps or more")
print(f"fill by fill the interval is {width:.1f} times as wide as that of the regression")

# %%
takers = after.params[after.params["liquidity"] == "taker"].set_index("seconds")
spans = (takers["high"] - takers["low"]).astype(float)
lost = takers.index[takers["high"] < 0].tolist()
wider = (spans / spans[60]).loc[[300, 1800]].round(1).tolist()
print(f"takers have a clear loss after {lost} seconds")
print(f"after 5 and 30 minutes the interval is {wider} times as wide as after one")
print(f"largest gain of a taker {ranked['gain_bps'].max():.1f} bps,", end=" ")
print(f"after shrinkage {ranked['shrunk_bps'].max():.1f} bps")

# %%
late = schedule[schedule["behind"] > 0.05]
spread = (6 * against["sem"]).round(1)
print(f"{len(small)} TWAP orders: interval against the vwap {spread['vs_vwap_bps']} bps wide,")
print(f"against the price on arrival {spread['vs_arrival_bps']} bps")
print(f"{len(late)} of {len(schedule)} running orders are more than 5 % behind their schedule;")
print(f"all of their fills are there: {bool(linked['whole'].all())}")

# %% [markdown]
# - The regression uses every trade. A price of a minute later also contains the moves of the
#   market, which may be much larger than the effect of a single trade.
# - An older price covers more volume but is less precise. State the age with the figure.
# - The later the price, the wider the interval of a markout. The wider it is, the more the markout
#   measures luck, and not execution.
# - The older a benchmark of a TWAP order, the more of the market's own moves is in the difference.
# - The best of many pairs is ahead partly by luck. Compare gains after shrinkage.
# - An interval of the exponent that spans the whole range says nothing about the law: the impact of
#   the orders is then too small against the moves of the market.
#
# What a taker pays, who makes the market and that nobody is far ahead of the price are facts of the
# simulation: its agents follow simple rules, and their orders leave no mark on later prices. On a
# live service all cells run unchanged with your own list of addresses; the answers are what you
# learn there. The asserts about these figures may fail with them.

# %%
assert taker.loc["effective", "low"] > 0
assert taker.loc["effective", "low"] < expected < taker.loc["effective", "high"]
assert taker.loc["realised", "estimate"] > taker.loc["effective", "estimate"] / 2
assert taker.loc["realised", "low"] > 0
assert width > 2
assert abs(minute["usd"] @ [1, -1, -1]) < 1e-6

# %%
assert len(fills) == 2 * fills["tid"].nunique()
assert fresh.loc["300s", "covered"] > 2 * fresh.loc["60s", "covered"]
assert fresh.loc["300s", "age_seconds"] > 2 * fresh.loc["60s", "age_seconds"]

# %%
sides = after.params.pivot(index="seconds", columns="liquidity", values="estimate")
assert abs(sides["maker"] + sides["taker"]).max() < 1e-6  # one side's gain is the other's loss
assert takers.loc[60, "high"] < 0
assert spans[300] > 3 * spans[60]
assert spans[1800] > 8 * spans[60]
assert takers.loc[300, "low"] < 0 < takers.loc[300, "high"]

# %%
ahead = ranked.dropna(subset="shrunk_bps")
assert len(ahead) > 10
assert ahead["shrunk_bps"].abs().max() < ahead["gain_bps"].abs().max() / 2
assert law.loc["exponent", "low"] < 0.5 < law.loc["exponent", "high"]
assert (abs(left["buy_usd"] - left["sell_usd"] - left["net_usd"]).dropna() < 1e-6).all()
assert left["orders"].sum() == len(schedule)
assert pairs["trades"].sum() > 0.999 * fills["tid"].nunique()

# %%
assert against.loc["vs_vwap_bps", "sem"] < against.loc["vs_arrival_bps", "sem"]
assert 6 * against.loc["vs_arrival_bps", "sem"] > 10
assert against["count"].between(12, 100).all()
assert schedule["behind"].between(-0.01, 0.05).sum() == len(schedule) - 1
assert 0.3 < schedule["behind"].max() < 0.4
assert linked["whole"].all()
assert not monitor.running
assert monitor.view.depth is not None
