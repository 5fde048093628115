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
# A fill says what was paid. Whether that was dear depends on the price before it, and whether it
# was wise on the prices after it. Here we take three weeks of fills of every account, both sides of
# each trade, and ask what takers paid, whether makers kept it, and how well TWAP orders did. Much
# of the answer is how far such numbers can be trusted.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

COINS = ["BTC", "ETH", "SOL", "HYPE"]  # traded often enough to have a price at most times
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
# ## How fresh is a price?
#
# The price before a fill is the last trade before it. It may be old, and an old price measures what
# the market did since, not what the trade cost. So every figure says how old a price it takes, and
# how much of the volume had one.

# %%
AGES = ["10s", "60s", "300s"]
taken = fills[fills["crossed"]]
rows = [tk.execution.fill_quality(taken, tape, max_age=age, by="liquidity") for age in AGES]
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
after = tk.execution.markout(fills, tape, horizons)
after.params[["liquidity", "seconds", "estimate", "low", "high", "n", "missing"]].round(2)

# %%
after.plot()

# %% [markdown]
# ## Against the books
#
# The samples of slippage state half the spread of each book. They were not made from the fills, so
# they can hold the markouts to account: weighted by what was traded, what is half the spread?

# %%
books = tk.many(tk.slippage_history, COINS, 1e3, "21d", page_size=2000)
half = books.groupby("coin")["half_spread_bps"].mean()
volume = (fills["px"] * fills["sz"]).groupby(fills["coin"]).sum()
expected = (half * volume).sum() / volume.sum()
pd.DataFrame({"half_spread_bps": half, "share": volume / volume.sum()}).round(2)

# %%
takers = after.params[after.params["liquidity"] == "taker"].set_index("seconds")
near = takers.loc[30]
pd.Series({"markout": near["estimate"], "half a spread": -expected}).round(2).to_frame("bps")

# %% [markdown]
# ## Who kept the spread?
#
# What a taker pays (effective) is either kept by the maker (realised) or lost to him because the
# price went on (impact). The two add up, and over both sides of all trades each sums to zero.

# %%
split = tk.execution.spreads(fills, tape, "1m")
parts = split.params.set_index(["liquidity", "name"])
parts.loc["taker", ["estimate", "low", "high", "usd", "n", "missing"]].round(2)

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
# below half, and allow three standard errors: of three benchmarks one is easily off by two.

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
# - Ten seconds after the trade takers are worse off, and the interval does not hold 0. After half a
#   minute it holds half a spread, as the books say: two sources that know nothing of each other.
# - After half an hour the interval is ten times as wide and holds 0. A markout of that age tells of
#   luck, not of execution.
# - Whether makers keep the spread or lose it to impact is beyond this data: only an eighth of the
#   fills has a fresh price both before and after, and each interval is wider than the spread. The
#   estimates alone would have told a story either way.
# - With prices of up to five minutes the same trading looks much dearer than with those of a
#   minute: what the market did in between is taken for a cost.
# - No benchmark tells the TWAP orders from their market. Against the price on arrival the interval
#   is tens of basis points wide; dozens of orders cannot show what is smaller.
# - Orders that still run are behind their schedule by a few per cent at most, and their fills are
#   all there.

# %%
sides = after.params.pivot(index="seconds", columns="liquidity", values="estimate")
width = (takers["high"] - takers["low"]).astype(float)
half_spreads = parts.loc["taker"]
assert len(fills) == 2 * fills["tid"].nunique()
assert abs(sides["maker"] + sides["taker"]).max() < 1e-6  # what one side gains the other loses
assert takers.loc[10, "high"] < 0
assert near["low"] < -expected < near["high"]
assert width[1800] > 8 * width[10]
assert takers.loc[1800, "low"] < 0 < takers.loc[1800, "high"]

# %%
assert abs(half_spreads["usd"] @ [1, -1, -1]) < 1e-6
assert ((half_spreads["high"] - half_spreads["low"]) > 2 * expected).all()
assert fresh.loc["300s", "improvement_bps"] < 1.5 * fresh.loc["60s", "improvement_bps"] < 0
assert (against["mean"].abs() < 3 * against["sem"]).all()
assert schedule["behind"].between(-0.01, 0.05).all()
assert linked["whole"].all()
assert not monitor.running
assert monitor.view.depth is not None
