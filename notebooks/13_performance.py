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
# A PnL in USD does not say how much capital it took, or how far the account fell on the way. This
# notebook computes the returns of one account, and the figures that describe them. It then ranks
# many accounts, and asks whether the best one is better than the others.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import warnings

user = tk.reports.example_account()
builder = tk.user_fills(user)["builder"].dropna().iloc[0]

# %% [markdown]
# ## Equity at each hour
#
# `tk.pnl.equity` needs the prices of open positions. The service has no history of mark prices, but
# each funding payment states the oracle price of its coin and hour. The payments of all clients of
# one builder together give the prices of all coins that they had.

# %%
funding = tk.builder_approved_funding_by_time(builder, 0)
oracle = tk.funding.implied_oracle(funding)
markets = tk.many(tk.meta, session.world["dexes"])


# %%
def equity_of(accounts):
    """Return the hourly equity, the round trips and the daily costs of a list of accounts."""
    fills = tk.many(tk.user_fills_by_time, accounts, 0)
    ledger = tk.many(tk.user_non_funding_ledger_updates, accounts)
    own = funding[funding["user"].isin(accounts)]
    curve = tk.pnl.equity(fills, own, ledger, marks=oracle, sz_decimals=markets)
    trips = tk.pnl.round_trips(fills, own)
    return curve, trips, tk.pnl.attribution(fills, own, by=["user", "day"])


# %%
curve, trips, costs = equity_of([user])
curve[["time", "realised", "unrealised", "flows", "equity", "long", "short"]].tail(3)

# %% [markdown]
# The drawdown is the distance of the PnL from its highest point so far. It shows the risk that the
# result at the end hides: how much was lost on the way, and for how long.

# %%
falls = tk.pnl.drawdown(curve)
tk.plots.equity_curve(falls)

# %%
deepest = falls.loc[falls["drawdown"].idxmin()]
below = falls["under_hours"].max() / 24
print(f"deepest drawdown {deepest['drawdown']:,.2f} USD at {deepest['time']:%d %B %H:%M}")
print(f"result {falls['pnl'].dropna().iloc[-1]:,.2f} USD; {below:.1f} days below a high at most")

# %% [markdown]
# ## Returns
#
# The return of a day is its gain as a share of the average capital of the day. Chained returns do
# not depend on deposits and withdrawals.

# %%
returns = tk.performance.returns(curve)
returns.tail(3)

# %%
tk.plots.growth_curve(returns)

# %%
tk.plots.return_calendar(returns)

# %% [markdown]
# ## The performance sheet
#
# Each figure has its interval, its number of observations `n`, and its basis. The interval of the
# Sharpe ratio shows how much a month of days can say.

# %%
complete = trips[trips["status"].isin(["closed", "liquidated"])]
sheet = tk.performance.sheet(returns, trips=complete, costs=costs)
sheet.drop(columns="user")

# %%
tk.performance.trip_sheet(complete, by="side").pivot(index="figure", columns="side", values="value")

# %% [markdown]
# ## Many accounts
#
# The ten clients of the builder with the most funding rows. Some of their funding was paid outside
# the time of their fills: `tk.pnl` warns and leaves it out, and the cell does without the warnings.

# %%
clients = funding["user"].value_counts().index[:10].tolist()
with warnings.catch_warnings(action="ignore", category=tk.HistoryWarning):
    curves, all_trips, all_costs = equity_of(clients)
many = tk.performance.returns(curves)
ended = all_trips[all_trips["status"].isin(["closed", "liquidated"])]
sheets = tk.performance.sheet(many, trips=ended, costs=all_costs)
ranking = tk.performance.leaderboard(sheets)
ranking.head(5)

# %%
tk.plots.leaderboard(ranking)

# %% [markdown]
# ## Skill or luck?
#
# The best of ten is high partly by luck. `tk.performance.skill` moves each Sharpe ratio towards the
# mean of all accounts, states the false discovery rate `q`, and compares the two halves of the
# time.

# %%
found = tk.performance.skill(many)
tk.plots.skill(found)

# %%
good = found.accounts["q"].lt(0.05).sum()
f"{good} of {len(found.accounts)} accounts show skill at a false discovery rate of 5 %"

# %% [markdown]
# ## What would a copier have gained?
#
# A copier trades the same sizes a little later. Mid prices are from the fills of all clients, and a
# copy needs a price of at most 5 minutes: `priced` counts the fills that have one. `cost_bps` is
# positive if the copier does worse; an interval that contains 0 shows no difference.

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
# ## What the figures say

# %%
drag = sheets[sheets["figure"] == "fee_drag"]["value"]
clear = copied[(copied["low"] > 0) | (copied["high"] < 0)]
print(f"best Sharpe ratio of {len(ranking)} accounts: {best['value']:.1f}")
print(f"its interval, {best['low']:.1f} to {best['high']:.1f}, overlaps {best['overlaps']} others")
print(f"fees of the median account: {drag.median() / 100:.1f} % of its capital a year")
print(f"delays at which a copy differs clearly from the original: {len(clear)} of {len(copied)}")

# %% [markdown]
# - A rank says little about skill while its interval overlaps those of the others.
# - Fees grow with the turnover, whatever the result: compare their share with the return.
# - A drawdown can only become deeper if the time becomes longer. So compare drawdowns of equal
#   times.
#
# That few accounts differ clearly is a fact of the simulation: most of its agents have no skill.
#
# ## With your own key
#
# Change `session = tk.connect(...)` in the first cell, and `user` and `builder` to an account and a
# builder that it has approved. `session.world["dexes"]` becomes the list of your dexes. The asserts
# about ranks and fees are about the simulated accounts, and may fail with yours.

# %%
gain = returns["gain"].sum()
pnl = curve["pnl"].dropna().iloc[-1]

# %%
assert abs(gain - pnl) < 1e-6
assert abs(falls["drawdown"].min() - (falls["pnl"] - falls["high"]).min()) < 1e-9
assert abs((1 + returns["return_"].dropna()).prod() - returns["growth"].iloc[-1]) < 1e-9
assert best["overlaps"] > len(ranking) / 2
assert drag.median() > 100
source = tk.provenance(funding)["simulated"]  # each figure above states it
assert tk.provenance(ranking)["simulated"] == source
assert tk.provenance(found.accounts)["simulated"] == source
