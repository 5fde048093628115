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
# # 03 Funding: who pays whom?
#
# Every hour, one side of a perpetual pays the other side: `usdc = -szi * oracle price * rate`. With
# a positive rate longs pay. Which side paid over a month? Was it the same side on all markets? How
# many accounts paid and received most of it?

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
builders = session.world["builders"]  # on a live service: your own list of addresses

# %% [markdown]
# ## The rows
#
# The service shows funding by builder: the rows of all accounts that had approved it at that hour.
# An account with two builders appears twice, so each payment is kept once. All results here are
# about the clients of builders, not about the whole exchange. Market makers have much of the other
# side, and they have no builder.

# %%
frames = [tk.builder_approved_funding_by_time(one, "30d") for one in builders]
columns = ["time", "user", "coin", "usdc", "szi", "funding_rate"]
rows = tk.concat(frames)[columns].drop_duplicates(["time", "user", "coin"])
rows = rows.reset_index(drop=True)
f"{len(rows):,} payments of {rows['user'].nunique()} accounts on {rows['coin'].nunique()} coins"

# %% [markdown]
# ## Can the rows be trusted?
#
# A coin has one oracle price at each hour. Each row implies this price, so all accounts must imply
# the same one. Amounts are rounded to a millionth of a dollar, so a payment gives a range of
# prices. Ranges that do not overlap would be a contradiction.

# %%
oracle = tk.funding.implied_oracle(rows)
f"{oracle['agree'].mean():.0%} of {len(oracle):,} hours of coins agree on one price"

# %% [markdown]
# ## By coin

# %%
coins = tk.funding.sums(rows, by="coin")
tk.plots.funding_by_coin(coins)

# %% [markdown]
# ## Longs or shorts?

# %%
side = rows["szi"].gt(0).map({True: "long", False: "short"})
sides = tk.funding.sums(rows.assign(side=side), by="side")
sides[["side", "paid", "received", "net", "payments"]]

# %% [markdown]
# The rate belongs to the market, not to these accounts: it is one number for a coin and an hour. In
# how many hours was it positive, so that longs paid? How large is it for a year, without
# compounding? Consecutive hours depend on each other, so the intervals are from a bootstrap of
# days.

# %%
hours = rows.drop_duplicates(["coin", "time"]).groupby("coin")["funding_rate"]
yearly = tk.funding.annualised(rows)
rates = yearly[yearly["statistic"] == "mean"].set_index("coin")[["estimate", "low", "high"]]
rates.insert(0, "longs_pay", hours.agg(lambda r: (r > 0).mean()))
rates.sort_values("longs_pay", ascending=False).style.format("{:.0%}")

# %% [markdown]
# ## Over time

# %%
tk.plots.funding_over_time(tk.funding.sums(rows, by="day"))

# %% [markdown]
# ## On which coins did it build up?
#
# The running total of the coins with the largest totals: a steady slope is a steady rate, and a
# jump is a few hours with an extreme rate.

# %%
tk.plots.funding_accrual(tk.funding.accrual(rows))

# %% [markdown]
# ## The rate now, weighted by open interest
#
# A mean over coins counts a small market as much as a large one. Weighted by open interest, the
# rate says what a typical dollar of a position pays in a year. The half-life of the basis needs the
# same prices over many hours: archive them, or poll, and pass them to `tk.funding.basis`.

# %%
dexes = session.world["dexes"]
now = tk.concat(tk.meta_and_asset_ctxs(dex=dex) for dex in dexes)
basis = tk.funding.basis(now.assign(time=rows["time"].max()))
weighted = basis.rates[basis.rates["asset"] == "all"].set_index("dex")
weighted[["estimate", "open_interest_usd"]].round(3)

# %%
plain = (now["funding"] * 24 * 365).mean()
f"weighted {weighted.loc['all', 'estimate']:.1%}, plain mean of the coins {plain:.1%}"

# %% [markdown]
# ## How many accounts pay most of it?

# %%
users = tk.funding.sums(rows, by="user")
turned = (users["received"] - users["paid"]).sort_values(ascending=False)
share = (turned.cumsum() / turned.sum()).to_numpy()
{f"largest {n}": f"{share[n - 1]:.0%}" for n in (1, 5, 10, 20)}

# %% [markdown]
# ## Conclusions
#
# - The rows are consistent: all accounts imply the same oracle price, up to rounding.
# - On the large markets longs paid in most hours. On thin markets the sign is nearly random, and
#   the rate is larger in both directions. There, funding is a risk, not a steady cost.
# - The rates look large for a year, but on most markets the interval contains 0: a month shows the
#   sign of a rate only if the sign rarely changes.
# - Over the whole exchange funding sums to zero in each hour. Over the clients of builders it does
#   not: the rest was paid to or by accounts without builders.
# - Ten of the accounts have more than half of all funding. An average over accounts describes no
#   typical account.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `builders` to the addresses
# of the builders. The key needs no other right.
#
# That large markets pay in one direction and thin markets in both is a fact of the simulation,
# which plants a premium for each market. On the live service the same cells measure the rates, and
# which of them differ from 0.

# %%
assert oracle["agree"].all()
assert rates.loc[["BTC", "ETH"], "longs_pay"].min() > 0.75
assert rates["longs_pay"].min() < 0.6
assert ((rates["low"] < 0) & (rates["high"] > 0)).mean() > 0.5
assert abs(coins["net"].sum()) > 1
assert abs(coins["net"].sum() - users["net"].sum()) < 1e-6
assert share[9] > 0.4
