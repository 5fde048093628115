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
# # 02 PnL attribution: does every dollar of one account have a cause?
#
# A PnL number is easy to compute and hard to trust: fees may be counted twice, funding may be
# missing, a page of fills may be lost. This notebook splits the result of one account into
# its parts. It then checks the parts against independent data.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

user = tk.reports.example_account()  # on a live service: the address of an account
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex

# %% [markdown]
# ## All rows that moved money
#
# These are fills, ledger updates, and funding payments. With `numbers="exact"`, amounts are exact
# decimals. Helpers compute with floats, so a sum may have a rounding error, which is far smaller
# than the last digit of an amount.

# %%
fills = tk.user_fills_by_time(user, 0, numbers="exact")
ledger = tk.user_non_funding_ledger_updates(user, numbers="exact")
funding = tk.user_funding(user, numbers="exact")

# %%
{"fills": len(fills), "funding rows": len(funding), "ledger updates": len(ledger)}

# %% [markdown]
# ## The attribution
#
# `net` is closed PnL plus fees (negative), rebates and funding. `equity_change` also contains the
# amounts of the ledger. It is the change of the account's equity without unrealised PnL.

# %%
whole = tk.pnl.attribution(fills, funding, ledger)
whole.drop(columns=["volume", "priority_gas"]).T

# %%
tk.plots.waterfall(whole)

# %% [markdown]
# ## Check 1: do the parts add up?
#
# The parts are a split of the amounts in the rows, so they must add up. This check tests the
# software, not the data: it shows that no amount is lost or counted twice. A
# rounding error is smaller than `NOTHING`, a millionth of a USD.

# %%
parts = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]
NOTHING = 1e-6  # USD
residual = whole["net"].item() - sum(whole[part].item() for part in parts)
residual

# %% [markdown]
# The sum over all coins, and the sum over all days, must equal the total.

# %%
coins = tk.pnl.attribution(fills, funding, by="coin")
days = tk.pnl.attribution(fills, funding, ledger, by="day")
[frame["net"].sum() - whole["net"].item() for frame in (coins, days)]

# %% [markdown]
# ## Check 2: is the exchange's closed PnL right, and is no fill missing?
#
# `tk.pnl.audit` processes the fills in the order of time, from the first one on. It computes the
# position and its entry price by the exchange's own rule: the average cost, truncated to
# `6 - szDecimals` decimals. From these it recomputes every closed PnL. If a fill does not start
# from the position that the previous fill left, there is a break: a fill between them is missing.

# %%
perps = tk.many(tk.meta, dexes)
audited = tk.pnl.audit(fills, perps)
audited[["coin", "dir", "closed_pnl", "expected_closed_pnl", "difference", "chain_break"]].tail()

# %%
differences = audited["difference"].dropna()
breaks = int(audited["chain_break"].sum())
different = int((differences.abs() > NOTHING).sum())
{"checked": len(differences), "different": different, "breaks": breaks}

# %% [markdown]
# The same computation gives the position after each fill. How large was each position, and when? A
# cross in the plot would mark a place where fills are missing.

# %%
tk.plots.positions_over_time(tk.pnl.positions(fills, perps))

# %% [markdown]
# ## Check 3: does funding cover all hours with a position?
#
# The fills show at which full hours the account had a position. `covers` lists the sources of the
# attribution. If some of these hours have no funding row, `covers` also states how many have one.

# %%
whole["covers"].item()

# %% [markdown]
# Does the check find a missing row? Here is the text without the last five funding rows:

# %%
tk.pnl.attribution(fills, funding.iloc[:-5], ledger)["covers"].item()

# %% [markdown]
# A funding row also states the size of the position at its hour. The fills before that hour give
# the size, too. The two sizes come from different rows, and must agree.

# %%
bought = fills["sz"].where(fills["side"] == "B", -fills["sz"])
last = fills[["time", "coin"]].assign(end=fills["start_position"] + bought)
last = last.drop_duplicates(["time", "coin"], keep="last")

# %%
both = pd.merge_asof(funding, last, on="time", by="coin", allow_exact_matches=False)
{"rows": len(both), "agree": int((both["szi"] == both["end"]).sum())}

# %% [markdown]
# ## Check 4: does the history explain the account value?
#
# The account began empty. The sum of deposits and withdrawals, closed PnL, fees and rebates,
# funding, and unrealised PnL must equal the account value that the exchange states now, on all
# dexes together. The rows do not depend on that value, so it is an independent check. The value
# comes from a snapshot, because the state of a unified account does not have its collateral.

# %%
states = [tk.batch_clearinghouse_states([user], dex=dex, numbers="exact") for dex in dexes]
values = tk.account_value_snapshots(["ALL"])
values = values[values["user"] == user].assign(time=states[0].accounts["time"].iloc[0])
positions = tk.concat(state.positions for state in states)
explained = tk.pnl.reconcile(None, (values, positions), fills, funding, ledger, account=user)
explained[["end_value", "closed_pnl", "funding", "unrealised", "ledger", "residual"]].T

# %% [markdown]
# ## The result with three common mistakes

# %%
row = whole.iloc[0]
versions = {
    "correct net": row["net"],
    "gross PnL shown as net": row["closed_pnl"],
    "funding forgotten": row["net"] - row["funding"],
    "builder fee counted twice": row["net"] + row["builder_fee"],
}
pd.Series(versions).map("{:,.2f}".format).rename("USD").to_frame()

# %% [markdown]
# ## Cumulative PnL by hour

# %%
tk.plots.cumulative_pnl(tk.pnl.attribution(fills, funding, by="hour"))

# %% [markdown]
# ## Which trades earned it?
#
# A round trip begins and ends without a position. Each point is one round trip, net of fees. Did
# longs or shorts earn? Did trips that lasted longer earn more?

# %%
trips = tk.pnl.round_trips(tk.user_fills_by_time(user, 0))
tk.plots.trip_returns(trips)

# %%
ended = trips[trips["status"].isin(["closed", "liquidated"])].groupby("side")["net"]
ended.agg(["count", "sum", "median", "min", "max"]).round(2)

# %% [markdown]
# ## Does the result depend on the accounting method?
#
# Tax rules often require lots. Which purchase does a sale close: the oldest, the latest, or the
# average of all? `tk.pnl.lots` matches each closing fill with its opening fills. The methods move
# gains between closed and open lots, and between trades. The sum of realised and unrealised gains
# must be the same for each method.

# %%
marks = tk.many(tk.meta_and_asset_ctxs, dexes, numbers="exact")
lots = {how: tk.pnl.lots(fills, how, marks=marks) for how in ("fifo", "lifo", "average")}
total = {how: rows[["realised", "unrealised"]].sum() for how, rows in lots.items()}
methods = pd.DataFrame(total).T.assign(total=lambda sums: sums.sum(axis=1))
durations = {how: (rows["closed"] - rows["opened"]).median() for how, rows in lots.items()}
methods.assign(median_duration=durations)

# %% [markdown]
# The exchange uses the average, and truncates each entry price to `6 - szDecimals` decimals. Its
# closed PnL therefore differs slightly from the realised gain at exact cost:

# %%
truncated = whole["closed_pnl"].item() - methods.loc["average", "realised"]
f"closed PnL of the exchange minus realised gain by average: {truncated:.6f} USD"

# %% [markdown]
# ## The wallet explorer
#
# This widget shows the same account. Choose a coin or a day, and the whole view changes. The equity
# is computed backwards: it starts from the value that the exchange states now, and goes back
# through the rows above. "Code of this view" shows the code. An exported page shows the view
# without the controls. With `jupyter nbconvert --execute`, add
# `--ExecutePreprocessor.store_widget_state=False`. Otherwise the page loads the controls from a
# server.

# %%
explorer = tk.widgets.wallet_explorer(user)
explorer

# %% [markdown]
# ## Conclusions

# %%
same_share, agreeing_share = 1 - different / len(differences), (both["szi"] == both["end"]).mean()
print(f"net differs from its parts by {abs(residual):.6f} USD, the account value", end=" ")
print(f"from its history by {abs(explained['residual'].item()):.6f} USD")
print(f"closed PnL agrees on {same_share:.1%} of {len(differences):,} fills, {breaks} breaks")
print(f"{agreeing_share:.1%} of {len(both):,} funding rows have the position of the fills")
print(f"the attribution covers {whole['covers'].item()}")
spread = methods["total"].max() - methods["total"].min()
print(f"the totals of the lot methods differ by {spread:.0e} USD")

# %% [markdown]
# - If the residual is 0, and the sums over coins and over days equal the total, the split is
#   right. This does not show that the rows are complete.
# - If closed PnL follows from the fills alone, and there is no break, no fill is missing between
#   two fills of a coin. A missing last fill, or a coin without any fill, leaves no break. Check 4
#   finds both, because then the history does not explain the account value.
# - If `covers` states no share of position hours, no funding row is missing. If the positions in
#   the funding rows agree with the fills, the funding rows belong to these fills.
# - A sum with one of the three mistakes looks plausible. Only a check against independent data
#   finds it.
# - The accounting method moves gains between trades and years. It does not change their sum.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `user` in the second, to the
# address of an account. A page of fills, funding or ledger updates costs 10 points. `tk.plan` with
# `probe=True` estimates what a call costs; the probe requests one or two pages.
#
# The trades and prices of the account come from the simulation, and say nothing about the real
# exchange. The differences are 0 by construction, because the simulated exchange uses the rule that
# the audit checks. On the live service, the same checks measure whether your history is complete.
# An account that is older than the first day of the data (2025-07-28) does not pass checks 2 and 4,
# nor the asserts about them.

# %%
assert abs(residual) < NOTHING
for frame in (coins, days):
    assert abs(frame["net"].sum() - whole["net"].item()) < NOTHING
assert len(differences) == len(fills)
assert different == 0
assert breaks == 0
assert whole["covers"].item() == "fills, funding, ledger"
assert (both["szi"] == both["end"]).all()
assert abs(explained["residual"].item()) < NOTHING
assert spread < NOTHING
assert len(set(versions.values())) == len(versions)

# %%
assert explorer.view.equity is None or (  # it is None for a unified account
    abs(explorer.view.equity["equity"].iloc[-1] - explained["end_value"].item()) < NOTHING
)
