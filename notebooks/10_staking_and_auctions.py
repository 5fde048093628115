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
# # 10 Staking and auctions: what does delegation earn, and what does a listing cost?
#
# These are two questions of people who do not trade. A delegator wants to know whether the best
# validator was good or lucky. A deployer of a market buys the right to list it in an auction with a
# falling price, and wants to know when to buy.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

validators = session.world["validators"]  # on a live service: your own list of addresses

# %% [markdown]
# ## Weeks
#
# The service has a yearly rate for each week, before and after the validator's fee. (This fee is
# also called commission.) A week is complete if it is over, and if the service has rewards for all
# of its days. Other weeks are left out of all results.

# %%
history = tk.many(tk.validator_apr_history, validators)
weeks = tk.staking.implied_fee(history, by="week")
weeks.groupby("week")["whole"].all().rename("whole").to_frame().T

# %% [markdown]
# ## Yield of a year
#
# Rewards can be staked again, so weekly rates compound. The interval is Student's, and assumes
# independent weeks.

# %%
yields = tk.staking.apy(history)
tk.plots.validator_yields(yields)

# %%
yields.sort_values("apy", ascending=False).round(5)

# %% [markdown]
# ## The validator's fee
#
# The fee is the share of the rewards that the validator keeps: 1 - net rate / gross rate.
# `behind_best` is the distance to the best net rate, as a share of the best net rate, in the median
# week.

# %%
fees = tk.staking.implied_fee(history)
cheapest = fees.loc[fees["fee"].idxmin(), "validator"]
fees.sort_values("fee").round(4)

# %% [markdown]
# ## Skill, luck or fee?
#
# A good validator earns more than others in most weeks. A lucky one earns more in some weeks only.
# A fee lowers the net rate in every week. Do the ranks persist from week to week, net of fees and
# before fees?
#
# `concordance` is Kendall's W: 1 if the order is the same each week, and on average 1 / number of
# weeks if the ranks are random. `next_week` is the mean correlation of the ranks of each week with
# those of the next week.

# %%
net = tk.staking.rank_stability(history)
gross = tk.staking.rank_stability(history.assign(net_apr=history["gross_apr"]))
pd.concat([net.params, gross.params], keys=["net of fees", "gross"]).droplevel(1).round(2)

# %%
net.plot()

# %% [markdown]
# ## Auctions
#
# The price of a listing falls along a straight line until somebody buys. There are two auctions:
# one for perps, one for spot pairs.

# %%
status = {"perp": tk.perp_deploy_auction_status(), "spot": tk.spot_pair_deploy_auction_status()}
both = tk.concat(status.values())
tk.auctions.decay(both).assign(auction=list(status)).set_index("auction").T

# %% [markdown]
# The answer does not contain the lowest price of the line. For a running auction, this price
# follows from the current price. For a finished auction you must know it. Here both auctions began
# at the same time and price, so we use the lowest price of the running one.

# %%
floor = tk.auctions.decay(status["spot"])["floor_gas"].item()
tk.plots.auction_line(tk.auctions.decay(both, floor=floor).assign(auction=list(status)))

# %% [markdown]
# ## When to buy?
#
# A later buyer pays less, but may be too late. When does the running auction reach a price, if
# nobody buys before?

# %%
prices = [350.0, 300.0, 200.0, floor]
waits = pd.concat([tk.auctions.decay(status["spot"], gas=price, floor=floor) for price in prices])
hours = (waits["gas_seconds"] / 3600).round(1)
waits.assign(price=prices, hours=hours)[["price", "gas_time", "hours"]]

# %% [markdown]
# How much more did the buyer of the other auction pay for not waiting?

# %%
paid = tk.auctions.decay(status["perp"], floor=floor)
paid[["start", "start_gas", "gas", "of_start", "premium", "bought_at"]].T

# %% [markdown]
# ## Conclusions

# %%
best, whole = yields["apy"].max(), weeks.groupby("week")["whole"].all()
low = gross.params.set_index("name").loc["concordance", "low"]
print(f"best validator: {best:.1%} a year; fees {fees['fee'].min():.0%} to {fees['fee'].max():.0%}")
print(f"concordance of the ranks: {net['concordance']:.2f} net,", end=" ")
print(
    f"{gross['concordance']:.2f} gross (from {low:.2f}); random ranks give about {1 / gross.n:.2f}"
)
print(f"{(~whole).sum()} of {len(whole)} weeks are not complete, and in no result above")

# %%
deal, fall = paid.iloc[0], -tk.auctions.decay(status["spot"])["per_hour"].item()
print(f"the price falls by {fall:.0f} gas an hour; the buyer of the perp paid", end=" ")
print(f"{deal['premium'] + 1:.1f} times the lowest price")
print(f"two hours more would have saved {2 * fall / deal['gas']:.0%}, if nobody else had bought")

# %% [markdown]
# - Compare validators net of fees: a gross rate does not show a fee of 100 %.
# - If ranks persist net of fees but not gross, fees persist and luck does not: choose by the fee.
# - Leave incomplete weeks out of every mean.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `validators` to the addresses
# of the validators. The auctions need no address. The cells need one auction that runs, here
# `spot`, and one that is over, here `perp`. If the states differ, swap the two names, or leave out
# these cells. Choose `prices` between the current and the lowest price.
#
# In the simulation, validators differ only by their fee and by luck. On the live service, the
# concordance of the gross ranks shows whether some are better before fees. The asserts about these
# figures may fail there.

# %%
assert weeks.groupby("week")["whole"].all().sum() == yields["n"].max() == 8
assert yields.loc[yields["apy"].idxmax(), "validator"] == cheapest
assert yields["apy"].min() == 0
assert net["concordance"] > 0.7 > 2 * gross["concordance"]
assert net["next_week"] > 0.7
assert gross.params["low"].min() < 0.01
assert paid["premium"].item() == 394 / floor - 1
assert abs(waits["gas_seconds"].iloc[-1] / 3600 - 19) < 1e-6
