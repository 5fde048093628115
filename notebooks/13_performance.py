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
# # 13 Performance: what did accounts earn, at what risk, and is it more than luck?
#
# A PnL in USD does not show how much capital it needed, or how large the losses were in between.
# This notebook computes the returns of one account, and the figures that describe them. It then
# ranks many accounts, and tests whether the best one is better than the others.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
user = tk.reports.example_account()  # on a live service: the address of an account
builder = tk.user_fills(user)["builder"].dropna().iloc[0]
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex

# %% [markdown]
# ## The value at each hour
#
# The value of an account needs the prices of open positions. The service has no history of mark
# prices, but each funding payment implies the oracle price of its coin and hour. The payments of
# all clients of one builder together give the prices of all coins in which they had positions. The
# state of an account gives its value now.

# %%
funding = tk.builder_approved_funding_by_time(builder, 0)
oracle = tk.funding.implied_oracle(funding)


# %%
def results_of(accounts):
    """Return the value over time, the round trips and the daily costs of a list of accounts."""
    fills = tk.many(tk.user_fills_by_time, accounts, 0)
    ledger = tk.many(tk.user_non_funding_ledger_updates, accounts)
    own = funding[funding["user"].isin(accounts)]
    states = tk.batch_clearinghouse_states(accounts, dex="ALL_DEXES")
    value = tk.pnl.value(fills, own, ledger, marks=oracle, accounts=states)
    trips = tk.pnl.round_trips(fills, own)
    return value, trips, tk.pnl.attribution(fills, own, by=["user", "day"])


# %%
value, trips, costs = results_of([user])
value[["time", "value", "flows", "unmarked", "part", "reason"]].tail(3)

# %% [markdown]
# PnL in USD, of the perps alone: the drawdown is the distance of the PnL from its highest point so
# far. It shows a risk that the final result hides: how much was lost in between, and for how long.

# %%
markets = tk.many(tk.meta, dexes)
perps = [tk.user_fills_by_time(user, 0), funding[funding["user"] == user]]
curve = tk.pnl.equity(*perps, marks=oracle, sz_decimals=markets, account=user)
falls = tk.pnl.drawdown(curve)
tk.plots.equity_curve(falls)

# %%
deepest = falls.loc[falls["drawdown"].idxmin()]
longest = falls["under_hours"].max() / 24
print(f"deepest drawdown {deepest['drawdown']:,.2f} USD at {deepest['time']:%d %B %H:%M}")
print(f"longest time below the previous high: {longest:.1f} days")
print(f"result {falls['pnl'].dropna().iloc[-1]:,.2f} USD")

# %% [markdown]
# ## Returns
#
# The return of a day is the gain of the account's value as a share of its capital, linked over
# deposits and withdrawals. So these have no effect on it (time-weighted return).

# %%
returns = tk.performance.returns(value)
returns.tail(3)

# %%
tk.plots.growth_curve(returns)

# %%
tk.plots.return_calendar(returns)

# %% [markdown]
# ## The performance sheet
#
# Each figure has its 95 % interval, its number of observations `n`, and its basis. The interval of
# the Sharpe ratio shows how uncertain one month of daily returns is.

# %%
complete = trips[trips["status"].isin(["closed", "liquidated"]) & trips["net"].notna()]
sheet = tk.performance.sheet(returns, trips=complete, costs=costs)
sheet.drop(columns="user")

# %%
tk.performance.trip_sheet(complete, by="side").pivot(index="figure", columns="side", values="value")

# %% [markdown]
# ## Many accounts
#
# These are the ten clients of the builder with the most funding rows. The 22 operations return
# funding only by builder, while an approval is active. (`tk.info({"type": "userFunding", ...})` is
# beyond the specification.) `covers` states how many of the hours with a position have a payment.
# Missing payments are missing in the returns, too.

# %%
clients = funding["user"].value_counts().index[:10].tolist()
values, all_trips, all_costs = results_of(clients)
gaps = all_costs[all_costs["covers"].str.contains("position hours")].drop_duplicates("user")
gaps["covers"].tolist()

# %%
many = tk.performance.returns(values)
ended = all_trips[all_trips["status"].isin(["closed", "liquidated"]) & all_trips["net"].notna()]
sheets = tk.performance.sheet(many, trips=ended, costs=all_costs)
ranking = tk.performance.leaderboard(sheets)
ranking.head(5)

# %%
tk.plots.leaderboard(ranking)

# %% [markdown]
# ## Skill or luck?
#
# The best of ten accounts owes its rank partly to luck. `tk.performance.skill` moves each Sharpe
# ratio towards the mean of all accounts, and states the false discovery rate `q` of accounts whose
# mean return is above 0 (a one-sided test, for returns that depend on each other). It also compares
# the first half of the time with the second half.

# %%
skill = tk.performance.skill(many)
tk.plots.skill(skill)

# %%
skilled = skill.accounts["q"].lt(0.05).sum()
f"{skilled} of {len(skill.accounts)} accounts show skill at a false discovery rate of 5 %"

# %% [markdown]
# ## What would a copier have gained?
#
# A copier trades the same sizes a little later. The mid prices are from the fills of all clients of
# the builder. A copy needs a price that is at most 5 minutes old: `priced` counts the fills that
# have one. `cost_bps` is positive if the copier does worse. If its 95 % interval contains 0, the
# data show no difference.

# %%
COINS = ["BTC", "ETH", "SOL", "HYPE"]
tape = tk.builder_approved_fills_by_time(builder, 0)
quotes = tk.execution.quotes(tape[tape["coin"].isin(COINS)])
best = ranking.iloc[0]
theirs = tape[(tape["user"] == best["user"]) & tape["coin"].isin(COINS)]
copied = tk.execution.copy_trading(
    theirs, quotes, ["1m", "5m", "30m"], max_age="300s", slippage_bps=2.0
)
copied[["delay", "fills", "priced", "own_usd", "copied_usd", "cost_bps", "low", "high"]].round(2)

# %% [markdown]
# ## Conclusions

# %%
drag = sheets[sheets["figure"] == "fee_drag"]["value"]
differing = copied[(copied["low"] > 0) | (copied["high"] < 0)]
print(f"best Sharpe ratio of {len(ranking)} accounts: {best['value']:.1f}")
print(f"its interval, {best['low']:.1f} to {best['high']:.1f}, overlaps {best['overlaps']} others")
print(f"median fee drag: {drag.median() / 100:.1f} % of the capital a year")
print("delays at which the 95 % interval of the cost of a copy excludes 0:", end=" ")
print(f"{len(differing)} of {len(copied)}")

# %% [markdown]
# - A rank says little about skill if its interval overlaps the intervals of the other accounts.
# - Fees grow with the turnover, whatever the result. Compare them with the return, both as a share
#   of the capital.
# - The maximum drawdown never decreases as the period grows. Compare only periods of equal length.
#
# Few accounts differ clearly because most simulated agents have no skill.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `user` in the second, to the
# address of an account. The account must have traded through a builder: `builder` comes from its
# latest 2,000 fills. A page of a builder's rows costs 100 points, and the notebook fetches the
# funding and the fills of all clients; `tk.plan` with `probe=True` estimates what a call costs; the
# probe requests one or two pages. Prices and funding come only from the clients of this builder, so
# a coin in which none of them had a position has no price. The asserts about ranks and fees may
# fail with other accounts.

# %%
gain = returns["gain"].sum()
known = value["value"].dropna()
earned = known.iloc[-1] - known.iloc[0] - value["flows"].loc[: known.index[-1]].sum()

# %%
assert abs(gain - earned) < 1e-6
assert abs(falls["drawdown"].min() - (falls["pnl"] - falls["high"]).min()) < 1e-9
assert abs((1 + returns["return_"].dropna()).prod() - returns["growth"].iloc[-1]) < 1e-9
assert best["overlaps"] > len(ranking) / 2
assert drag.median() > 100
source = tk.provenance(funding)["simulated"]  # each figure above states it
assert tk.provenance(ranking)["simulated"] == source
assert tk.provenance(skill.accounts)["simulated"] == source
