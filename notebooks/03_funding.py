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
# Every hour, holders of one side of a perpetual pay those of the other:
# `usdc = -szi * oracle price * rate`. With a positive rate longs pay. We ask which side paid over a
# month, whether it was the same on all markets, and how much of it all fell on how few accounts.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
builders = session.world["builders"]  # of a live service: the addresses that you care about

# %% [markdown]
# ## The rows
#
# The service shows funding by builder: the rows of everybody who had approved it at that hour. An
# account with two builders appears twice, so each payment is kept once. What follows is about the
# clients of builders, not about the whole exchange: market makers, who hold much of the other
# side, have no builder.

# %%
frames = [tk.builder_approved_funding_by_time(one, "30d") for one in builders]
columns = ["time", "user", "coin", "usdc", "szi", "funding_rate"]
rows = tk.concat(frames)[columns].drop_duplicates(["time", "user", "coin"])
rows = rows.reset_index(drop=True)
f"{len(rows):,} payments of {rows['user'].nunique()} accounts on {rows['coin'].nunique()} coins"

# %% [markdown]
# ## Can the rows be trusted?
#
# One coin has one oracle price at one hour. Each row implies it, so all accounts must imply the
# same. Amounts are rounded to a millionth of a dollar, so a payment bounds the price rather than
# giving it: bounds that do not overlap would be a contradiction.

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
# The rate is a fact of the market, not of these accounts: one number for a coin and an hour. In how
# many hours was it positive, so that longs paid, and what does it come to in a year, uncompounded?
# Hours follow each other, so the intervals draw whole days again.

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
# ## On how few accounts does it fall?

# %%
users = tk.funding.sums(rows, by="user")
turned = (users["received"] - users["paid"]).sort_values(ascending=False)
share = (turned.cumsum() / turned.sum()).to_numpy()
{f"largest {n}": f"{share[n - 1]:.0%}" for n in (1, 5, 10, 20)}

# %% [markdown]
# ## Conclusions
#
# - The rows are consistent: all accounts imply the same oracle price, up to rounding.
# - On the large markets longs paid in most hours. On thin markets the sign is nearly a coin toss,
#   and the rate is larger either way: there, funding is a risk rather than a cost.
# - By the year these rates look like much, but on most markets the interval holds 0: a month tells
#   the sign of a rate only where it hardly ever changes.
# - Over the whole exchange funding sums to zero, hour by hour. Over the clients of builders it does
#   not: what is left over was paid to, or by, the accounts without builders.
# - Ten of the accounts turn over more than half of all funding. An average over accounts describes
#   nobody.

# %%
assert oracle["agree"].all()
assert rates.loc[["BTC", "ETH"], "longs_pay"].min() > 0.75
assert rates["longs_pay"].min() < 0.6
assert ((rates["low"] < 0) & (rates["high"] > 0)).mean() > 0.5
assert abs(coins["net"].sum()) > 1
assert abs(coins["net"].sum() - users["net"].sum()) < 1e-6
assert share[9] > 0.4
