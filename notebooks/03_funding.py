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
# Every hour, one side of a perpetual pays the other side: `usdc = -szi * oracle price * rate`. If
# the rate is positive, longs pay. Which side paid over a month? Was it the same side on all
# markets? How many accounts paid and received most of it?

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

builders = session.world["builders"]  # on a live service: a list of addresses of builders
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex

# %% [markdown]
# ## The rows
#
# The service shows funding by builder: the rows of all accounts whose approval of the builder was
# active at the hour of the row. An account with two builders appears twice, so the cell drops the
# second copy. All results here are about the clients of builders, not about the whole exchange.
# Market makers hold most of the opposite positions, and they have no builder.

# %%
frames = [tk.builder_approved_funding_by_time(builder, "30d") for builder in builders]
columns = ["time", "user", "coin", "usdc", "szi", "funding_rate"]
rows = tk.concat(frames)[columns].drop_duplicates(["time", "user", "coin"])
rows = rows.reset_index(drop=True)
f"{len(rows):,} payments of {rows['user'].nunique()} accounts on {rows['coin'].nunique()} coins"

# %% [markdown]
# ## Can the rows be trusted?
#
# A coin has one oracle price at each hour. Each row implies this price, so the rows of all accounts
# must imply the same price. Amounts are rounded to a millionth of a dollar, so a payment gives a
# range of prices. Two ranges that do not overlap contradict each other.

# %%
oracle = tk.funding.implied_oracle(rows)
f"{oracle['agree'].mean():.0%} of {len(oracle):,} coin-hours agree on one price"

# %% [markdown]
# The rows may all be wrong by the same factor. Then they still agree with each other. Fills around
# the hour are independent of funding, so their mean price must be near the implied price. The
# tolerance of 10 % is wide, because prices move within the hour. The check only finds large
# factors, such as 8 for rows that sum the payments of eight hours.

# %%
fills = tk.many(tk.builder_approved_fills_by_time, builders, "30d")
checked = tk.funding.oracle_check(rows, fills.drop_duplicates(["user", "tid", "oid"]))
compared = checked.dropna(subset="agrees")
f"{compared['agrees'].mean():.0%} of {len(compared):,} coin-hours with fills agree within 10 %"

# %% [markdown]
# ## By coin

# %%
coins = tk.funding.sums(rows, by="coin")
tk.plots.funding_by_coin(coins)

# %% [markdown]
# ## Did longs or shorts pay?

# %%
side = rows["szi"].gt(0).map({True: "long", False: "short"})
by_side = tk.funding.sums(rows.assign(side=side), by="side")
by_side[["side", "paid", "received", "net", "payments"]]

# %% [markdown]
# The rate belongs to the market, not to these accounts: it is one number for a coin and an hour. In
# which share of the hours was it positive, so that longs paid? How large is its mean over a year,
# without compounding? Consecutive hours depend on each other, so the 95 % intervals are from a
# bootstrap of days.

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
# ## On which coins did funding build up?
#
# The plot shows the running total of funding, for the coins with the largest totals. A steady slope
# shows a steady rate. A jump shows a few hours with an extreme rate.

# %%
tk.plots.funding_accrual(tk.funding.accrual(rows))

# %% [markdown]
# ## The rate now, weighted by open interest
#
# A mean over coins counts a small market as much as a large one. A mean weighted by open interest
# is what an average dollar of a long position pays in a year. The rate follows the basis: if the
# mark price is above the oracle price, longs pay. One answer shows the basis at one moment. An
# estimate of its half-life needs many hours: archive or poll the answers, and pass them with their
# times.

# %%
now = tk.many(tk.meta_and_asset_ctxs, dexes)
basis = tk.funding.basis(now)
basis.plot()

# %%
weighted = basis.rates[basis.rates["asset"] == "all"].set_index("dex")
plain = (now["funding"] * 24 * 365).mean()
f"weighted {weighted.loc['all', 'estimate']:.1%}, plain mean of the coins {plain:.1%}"

# %% [markdown]
# ## Is a rate worth the costs?
#
# A short position receives positive rates. But it pays slippage and fees, once to open and once to
# close. The table has the coins for which the 95 % interval of the yearly rate excludes 0. What
# would a position of 10,000 USD have earned in a week at the mean rate, on the side that receives?
#
# Each coin is a separate test. On average, one interval in twenty excludes 0 even if the mean rate
# is 0. The table does not correct for this.

# %%
not_zero = rates[(rates["low"] > 0) | (rates["high"] < 0)].index
sizes = [1e3, 1e4, 1e5]
books = tk.concat(tk.slippage_history(c, s, "30d", page_size=2000) for c in not_zero for s in sizes)
payments = rows[rows["coin"].isin(not_zero)]
week = {"usd": 1e4, "days": 7, "fee_bps": 4.5}  # the base fee of a taker
carries = [tk.funding.carry(payments, books, **week, side=side) for side in ("short", "long")]

# %%
gains = pd.concat(carries).query("funding_bps > 0").set_index("coin")
gains["costs_bps"] = gains[["entry_bps", "exit_bps", "fees_bps"]].sum(axis=1)
gains[["side", "funding_bps", "costs_bps", "net_bps", "low", "high", "break_even_hours"]].round(1)

# %% [markdown]
# ## How many accounts have most of the funding?
#
# Here the funding of an account is the sum of what it paid and what it received.

# %%
users = tk.funding.sums(rows, by="user")
turnover = (users["received"] - users["paid"]).sort_values(ascending=False)  # `paid` is negative
share = (turnover.cumsum() / turnover.sum()).to_numpy()
{f"largest {n}": f"{share[n - 1]:.0%}" for n in (1, 5, 10, 20)}

# %% [markdown]
# ## Conclusions

# %%
interest = now.set_index("name")["open_interest"] * now.set_index("name")["oracle_px"]
large = rates.index.isin(interest.nlargest(5).index)
usual, other = rates[large].median(), rates[~large].median()
print(f"longs pay in {usual['longs_pay']:.0%} of the hours of the five largest markets,")
print(f"in {other['longs_pay']:.0%} of the others (medians)")
print(f"the 95 % interval of the mean rate excludes 0 on {len(not_zero)} of {len(rates)} coins")
print(f"the gain of a week after costs is above 0 (whole interval) on {(gains['low'] > 0).sum()}")
print(f"the ten largest accounts have {share[9]:.0%} of the sum of paid and received funding")

# %% [markdown]
# - All accounts must imply one oracle price, near the price of the fills. Check it before any sum.
# - A yearly rate looks large. One month is enough to see its sign only if the sign rarely changes.
#   If the interval contains 0, funding is a risk, not a steady cost.
# - A rate whose interval excludes 0 is not yet a gain: a carry pays for entry, exit and fees.
# - Over the whole exchange, funding sums to zero in each hour. Over the clients of builders, the
#   sum can differ from zero. The rest is paid to or by accounts without builders.
# - If a few accounts have most of the funding, an average over accounts does not describe a typical
#   account.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `builders` to the addresses
# of builders. The key needs no add-on. A page of a builder's rows costs 100 points; `tk.plan` with
# `probe=True` estimates what a call costs; the probe requests one or two pages.
#
# In the simulation, large markets pay in one direction and thin markets in both, because the
# simulation gives each market its own premium. On the live service, the same cells measure the
# rates, and show which intervals exclude 0.

# %% [markdown]
# These asserts hold for any data:

# %%
assert oracle["agree"].all()
assert compared["agrees"].all()
assert (abs(gains["funding_bps"] + gains["costs_bps"] - gains["net_bps"]) < 1e-9).all()
assert abs(weighted["share"].drop("all").sum() - 1) < 1e-9
assert abs(coins["net"].sum() - users["net"].sum()) < 1e-6

# %% [markdown]
# The other asserts hold for the simulated exchange, and may fail with other data:

# %%
assert rates.loc[["BTC", "ETH"], "longs_pay"].min() > 0.75
assert rates["longs_pay"].min() < 0.6
assert ((rates["low"] < 0) & (rates["high"] > 0)).mean() > 0.5
assert abs(coins["net"].sum()) > 1
assert share[9] > 0.4
