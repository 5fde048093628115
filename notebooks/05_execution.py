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
# # 05 Execution: what did trading cost, and who kept it?
#
# A fill says what was paid. Whether that was dear depends on the quotes before it, and whether it
# was wise on the prices after it. Here we take three weeks of fills of every account, both sides of
# each trade, and ask what takers paid, whether makers kept it, and how well TWAP orders did. Much
# of the answer is how far such numbers can be trusted. There are a dozen intervals in this
# notebook, and of intervals of 95 % one in twenty misses, so we take 99 %.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

COINS = ["BTC", "ETH", "SOL", "HYPE"]  # traded often enough to have a price at most times
LEVEL = 0.99
accounts = session.world["users"]  # of a live service: the addresses that you know

# %% [markdown]
# ## The tape
#
# The service has no list of trades. The fills of all accounts, one below the other, are one: each
# trade is in it twice, from either side. (Settlements and conversions of dust have one side only;
# they are in coins that we do not look at.)

# %%
tape = tk.many(tk.user_fills_by_time, accounts, "21d")
fills = tape[tape["coin"].isin(COINS)]
f"{len(tape):,} fills, {tape['tid'].nunique():,} trades, {len(fills):,} fills in {len(COINS)} coins"

# %% [markdown]
# ## The price of a trade is no mid
#
# A trade is done at the bid or at the ask. Who takes the last trade for the mid finds no spread
# between two buys in a row, and orders of one side do follow each other. So the helpers refuse it:

# %%
try:
    tk.execution.fill_quality(fills, tape)
except ValueError as refused:
    print(refused)

# %% [markdown]
# `crossed` and `side` say who the aggressor was. A regression of price changes on these signs
# (Glosten and Harris, 1988) finds the half spread, and its parts: what the maker earns for the
# trade (realised), and by how much a trade moves the quotes for good (impact). It is right however
# strongly signs follow each other.

# %%
paid = tk.execution.spreads(fills, level=LEVEL)
paid.coins.round(3)

# %% [markdown]
# ## Against the books
#
# The samples of slippage state half the spread of each book. They were not made from the fills, so
# they can hold the tape to account: weighted by what was traded, what is half the spread?

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
# ## How fresh is a price?
#
# The same regression gives quotes: the mid behind each trade. The price before a fill is the last
# of them. It may be old, and an old price measures what the market did since, not what the trade
# cost. So every figure says how old a price it takes, and how much of the volume had one.

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
# A minute is the compromise from here on. What is without a price is counted, and left out; it is
# not 0.
#
# ## After the trade
#
# The markout is what the price did afterwards, in favour of the account. Fills of one day move
# together, so the intervals draw whole days again, not single fills.

# %%
horizons = ["10s", "30s", "1m", "5m", "30m"]
after = tk.execution.markout(fills, quotes, horizons, level=LEVEL)
after.params[["liquidity", "seconds", "estimate", "low", "high", "n", "missing"]].round(2)

# %%
after.plot()

# %% [markdown]
# ## Who kept the spread?
#
# The same question with the quotes of a minute later, fill by fill: what a taker pays (effective)
# is either kept by the maker (realised) or lost to him because the price went on (impact). The two
# add up, and over both sides of all trades each sums to zero.

# %%
split = tk.execution.spreads(fills, quotes, "1m", level=LEVEL)
later = split.params.set_index(["liquidity", "name"])
later.loc["taker", ["estimate", "low", "high", "usd", "n", "missing"]].round(2)

# %%
split.plot()

# %% [markdown]
# ## TWAP orders
#
# A TWAP order cuts a size into slices. What did it pay, against three benchmarks of the time it
# ran: the volume-weighted price, the time-weighted price, and the price on arrival? Positive is
# good for the account.

# %%
orders = tk.twaps.quality(tape, tape)
orders[["coin", "side", "fills", "px", "vwap", "arrival_px", "share", "vs_vwap_bps"]].head()

# %% [markdown]
# `share` is a warning: an order that was half of its market is compared with itself. We keep those
# below half. Three standard errors are about as careful as our 99 %.

# %%
small = orders[orders["share"] < 0.5]
against = small[["vs_vwap_bps", "vs_twap_bps", "vs_arrival_bps"]].agg(["count", "mean", "sem"]).T
against.assign(low=against["mean"] - 3 * against["sem"], high=against["mean"] + 3 * against["sem"])

# %%
tk.plots.twap_quality(small)

# %% [markdown]
# ## TWAP orders that still run
#
# A snapshot tells how far each one is. It can be held against the clock, and against the fills.
# Those that still wait for their trigger have no schedule yet.

# %%
running = tk.perp_twap_snapshots(session.world["perp_coins"])
schedule = tk.twaps.adherence(running).dropna(subset="elapsed")
schedule[["market", "total_sz", "elapsed", "progress", "behind", "slices_due", "slice_number"]]

# %%
tk.plots.twap_adherence(schedule)

# %%
linked = tk.twaps.linked(running, tape)
linked.loc[linked["fills"] > 0, ["market", "executed_sz", "fills", "filled_sz", "missing_sz"]]

# %% [markdown]
# ## Watching one
#
# The live monitor shows the depth of a market and how far its TWAP orders are. "Start" looks again
# every few seconds, on a thread of its own, so cells go on meanwhile. Here it looks once: this
# exchange stands still, `tk.local(clock="live")` or a live service moves.

# %%
monitor = tk.widgets.live_monitor(schedule["market"].iloc[0]).look()
monitor

# %% [markdown]
# ## Conclusions
#
# - The tape alone shows what takers pay. The interval of the half spread does not hold 0, and it
#   holds what the books say: two sources that know nothing of each other.
# - Makers keep most of it: the transitory part is more than half of the estimate, and its interval
#   does not hold 0.
# - Fill by fill, with quotes of a minute later, the same data shows less: the interval is more than
#   twice as wide. A regression over all trades uses each of them; a minute of news hides one.
# - An older price covers more and means less. With prices of up to five minutes more than twice as
#   much of the volume is priced as with those of a minute, and the prices are more than twice as
#   old.
# - A minute after the trade takers are worse off, and the interval does not hold 0. After five
#   minutes it is more than three times as wide and holds 0. After half an hour it is more than
#   eight times as wide. A markout of that age tells of luck rather than of execution.
# - Dozens of TWAP orders show little. Against the price on arrival the interval is more than ten
#   basis points wide, and wider than against the volume-weighted price: the longer ago a benchmark
#   is, the more of the market's own moves is in the difference.
# - All but one of the orders that still run are behind their schedule by a few per cent at most.
#   One is a third behind. Their fills are all there, so it is late, and nothing is missing.

# %%
taker, minute = parts.loc["taker"], later.loc["taker"]
assert taker.loc["effective", "low"] > 0
assert taker.loc["effective", "low"] < expected < taker.loc["effective", "high"]
assert taker.loc["realised", "estimate"] > taker.loc["effective", "estimate"] / 2
assert taker.loc["realised", "low"] > 0
width = (minute["high"] - minute["low"]) / (taker["high"] - taker["low"])
assert width["effective"] > 2
assert abs(minute["usd"] @ [1, -1, -1]) < 1e-6

# %%
assert len(fills) == 2 * fills["tid"].nunique()
assert fresh.loc["300s", "covered"] > 2 * fresh.loc["60s", "covered"]
assert fresh.loc["300s", "age_seconds"] > 2 * fresh.loc["60s", "age_seconds"]

# %%
sides = after.params.pivot(index="seconds", columns="liquidity", values="estimate")
assert abs(sides["maker"] + sides["taker"]).max() < 1e-6  # what one side gains the other loses
takers = after.params[after.params["liquidity"] == "taker"].set_index("seconds")
width = (takers["high"] - takers["low"]).astype(float)
assert takers.loc[60, "high"] < 0
assert width[300] > 3 * width[60]
assert width[1800] > 8 * width[60]
assert takers.loc[300, "low"] < 0 < takers.loc[300, "high"]

# %%
assert against.loc["vs_vwap_bps", "sem"] < against.loc["vs_arrival_bps", "sem"]
assert 6 * against.loc["vs_arrival_bps", "sem"] > 10
assert against["count"].between(12, 100).all()
assert schedule["behind"].between(-0.01, 0.05).sum() == len(schedule) - 1
assert 0.3 < schedule["behind"].max() < 0.4
assert linked["whole"].all()
assert not monitor.running
assert monitor.view.depth is not None
