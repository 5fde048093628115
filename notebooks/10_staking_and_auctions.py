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
# # 10 Staking and auctions: what does delegating earn, and what does a listing cost?
#
# Two questions of people who do not trade. Who delegates wants to know whether the validator that
# earned most will go on doing so, or was lucky. Who lists a market buys a place in an auction whose
# price falls by the minute, and wants to know when to buy.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

validators = session.world["validators"]  # of a live service: the addresses that you know

# %% [markdown]
# ## Weeks
#
# The service gives a yearly rate for each week, before and after the validator's fee. The running
# week is not over, and the first one began in its middle: both are left out of all that follows.

# %%
history = tk.many(tk.validator_apr_history, validators)
weeks = tk.staking.implied_fee(history, by="week")
weeks.groupby("week")["whole"].all().rename("whole").to_frame().T

# %% [markdown]
# ## What a year earns
#
# Rewards can be staked again, so weekly rates compound. The interval is over the weeks.

# %%
yields = tk.staking.apy(history)
tk.plots.validator_yields(yields)

# %%
yields.sort_values("apy", ascending=False).round(5)

# %% [markdown]
# ## What the validator keeps
#
# The fee is what lies between gross and net. `behind_best` is what delegating here cost against the
# best validator of each week.

# %%
fees = tk.staking.implied_fee(history)
cheapest = fees.loc[fees["fee"].idxmin(), "validator"]
fees.sort_values("fee").round(4)

# %% [markdown]
# ## Skill, luck or fee?
#
# Validators differ by their fee, which is a decision, and by their luck, which is not. If we take
# the fee away, do ranks last?

# %%
net = tk.staking.rank_stability(history)
gross = tk.staking.rank_stability(history.assign(net_apr=history["gross_apr"]))
pd.concat([net.params, gross.params], keys=["net of fees", "gross"]).droplevel(1).round(2)

# %%
net.plot()

# %% [markdown]
# ## Auctions
#
# The price of a listing falls along a straight line, until somebody buys. Two auctions: one for
# perps, one for spot pairs.

# %%
status = {"perp": tk.perp_deploy_auction_status(), "spot": tk.spot_pair_deploy_auction_status()}
both = tk.concat(status.values())
tk.auctions.decay(both).assign(auction=list(status)).set_index("auction").T

# %% [markdown]
# The answer does not say where the line ends. Of a running auction it follows from the price now;
# of one that is over it must be known. Both began at the same time and price, so we take the floor
# of the running one.

# %%
floor = tk.auctions.decay(status["spot"])["floor_gas"].item()
tk.plots.auction_line(tk.auctions.decay(both, floor=floor))

# %% [markdown]
# ## When to buy?
#
# Whoever waits pays less, and may be too late. When does the running auction reach a price, if
# nobody buys before?

# %%
prices = [350.0, 300.0, 200.0, floor]
waits = pd.concat([tk.auctions.decay(status["spot"], gas=price, floor=floor) for price in prices])
hours = (waits["gas_seconds"] / 3600).round(1)
waits.assign(price=prices, hours=hours)[["price", "gas_time", "hours"]]

# %% [markdown]
# And what did the buyer of the other one pay for not waiting?

# %%
paid = tk.auctions.decay(status["perp"], floor=floor)
paid[["start", "start_gas", "gas", "of_start", "premium", "bought_at"]].T

# %% [markdown]
# ## Conclusions
#
# - The best validator earns 2.2 % a year, and does so because it charges nothing. One keeps all of
#   the rewards: whoever delegates to it earns nothing at all, which a gross rate would not show.
# - Net of fees, one week's ranks are nearly those of the next. Gross, they are no better than
#   chance: the interval of the concordance reaches 0. Fees last, luck does not: choose by the fee.
# - The price of a listing falls by 14 gas an hour. The buyer of the perp came after ten hours and
#   paid four times the floor; two hours more would have saved 7 %, if nobody else had come.
# - Two weeks of ten were not whole. They are in no figure above.

# %%
assert weeks.groupby("week")["whole"].all().sum() == yields["n"].max() == 8
assert yields.loc[yields["apy"].idxmax(), "validator"] == cheapest
assert yields["apy"].min() == 0
assert net["concordance"] > 0.7 > 2 * gross["concordance"]
assert net["next_week"] > 0.7
assert gross.params["low"].min() < 0.01
assert paid["premium"].item() == 394 / floor - 1
assert abs(waits["gas_seconds"].iloc[-1] / 3600 - 19) < 1e-6
