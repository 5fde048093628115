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
import pandas as pd

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
# Do all of them have the same wrong factor? Then they would agree, too. Fills around the hour are
# independent of funding: their mean price must be near the implied one.

# %%
fills = tk.many(tk.builder_approved_fills_by_time, builders, "30d")
checked = tk.funding.oracle_check(rows, fills.drop_duplicates(["user", "tid", "oid"]))
known = checked.dropna(subset="agrees")
f"{known['agrees'].mean():.0%} of {len(known):,} hours with fills agree within a tenth"

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
# rate says what a typical dollar of a position pays in a year. It follows the basis: where the mark
# price is above the oracle, longs pay. One snapshot shows the basis of one hour. Its half-life
# needs many hours: archive the snapshots, or poll, and pass them with their times.

# %%
now = tk.many(tk.meta_and_asset_ctxs, session.world["dexes"])
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
# close. The table has the coins whose yearly rate differs clearly from 0: what would 10,000 USD
# have earned in a week at the mean rate, on the side that receives?

# %%
clear = rates[(rates["low"] > 0) | (rates["high"] < 0)].index
sizes = [1e3, 1e4, 1e5]
books = tk.concat(tk.slippage_history(c, s, "30d", page_size=2000) for c in clear for s in sizes)
paying = rows[rows["coin"].isin(clear)]
week = {"usd": 1e4, "days": 7, "fee_bps": 4.5}  # the base fee of a taker
sides = [tk.funding.carry(paying, books, **week, side=side) for side in ("short", "long")]

# %%
gains = pd.concat(sides).query("funding_bps > 0").set_index("coin")
gains["costs_bps"] = gains[["entry_bps", "exit_bps", "fees_bps"]].sum(axis=1)
gains[["side", "funding_bps", "costs_bps", "net_bps", "low", "high", "break_even_hours"]].round(1)

# %% [markdown]
# ## How many accounts pay most of it?

# %%
users = tk.funding.sums(rows, by="user")
turned = (users["received"] - users["paid"]).sort_values(ascending=False)
share = (turned.cumsum() / turned.sum()).to_numpy()
{f"largest {n}": f"{share[n - 1]:.0%}" for n in (1, 5, 10, 20)}

# %% [markdown]
# ## Conclusions

# %%
interest = now.set_index("name")["open_interest"] * now.set_index("name")["oracle_px"]
large = rates.index.isin(interest.nlargest(5).index)
usual, other = rates[large].median(), rates[~large].median()
print(f"longs pay in {usual['longs_pay']:.0%} of the hours of the five largest markets,")
print(f"in {other['longs_pay']:.0%} of the others (medians)")
print(f"a mean rate differs clearly from 0 on {len(clear)} of {len(rates)} coins,")
print(f"after the costs of a week on {(gains['low'] > 0).sum()}")
print(f"the ten largest accounts have {share[9]:.0%} of all funding")

# %% [markdown]
# - All accounts must imply one oracle price, near the price of the fills. Check it before any sum.
# - A yearly rate looks large, but a month shows its sign only if the sign rarely changes. If the
#   interval contains 0, funding is a risk and not a steady cost.
# - A rate that differs clearly from 0 is not yet a gain: a short carry pays entry, exit and fees.
# - Over the whole exchange funding sums to zero in each hour. Over the clients of builders it need
#   not: the rest is paid to or by accounts without builders.
# - If a few accounts have most of the funding, an average over accounts describes no typical
#   account.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `builders` to the addresses
# of the builders. The key needs no other right.
#
# That large markets pay in one direction and thin markets in both is a fact of the simulation,
# which plants a premium for each market. On the live service the same cells measure the rates, and
# which of them differ from 0. The asserts about rates and shares may fail there.

# %%
assert oracle["agree"].all()
assert known["agrees"].all()
assert (abs(gains["funding_bps"] + gains["costs_bps"] - gains["net_bps"]) < 1e-9).all()
assert abs(weighted["share"].drop("all").sum() - 1) < 1e-9
assert rates.loc[["BTC", "ETH"], "longs_pay"].min() > 0.75
assert rates["longs_pay"].min() < 0.6
assert ((rates["low"] < 0) & (rates["high"] > 0)).mean() > 0.5
assert abs(coins["net"].sum()) > 1
assert abs(coins["net"].sum() - users["net"].sum()) < 1e-6
assert share[9] > 0.4
