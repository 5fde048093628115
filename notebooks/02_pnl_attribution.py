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
# missing, a page of fills may be lost. This notebook splits the result of one account in exact
# decimals. It checks each part against independent data.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
from decimal import Decimal

import pandas as pd

user = tk.reports.example_account()

# %% [markdown]
# ## All rows that moved money
#
# These are fills, ledger updates, and the funding rows that the account's builder can see. With
# `numbers="exact"` amounts are decimals, as on the wire: sums have no rounding error.

# %%
fills = tk.user_fills_by_time(user, 0, numbers="exact")
ledger = tk.user_non_funding_ledger_updates(user, numbers="exact")
builder = tk.user_fills(user)["builder"].dropna().iloc[0]
funding = tk.builder_approved_funding_by_time(builder, 0, numbers="exact")
funding = funding[funding["user"] == user]

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
# ## Check 1: the parts add up, to the last digit

# %%
parts = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]
residual = whole["net"].item() - sum(whole[part].item() for part in parts)
residual

# %% [markdown]
# The same must hold for each coin and for each day, and their sums must equal the total.

# %%
coins = tk.pnl.attribution(fills, funding, by="coin")
days = tk.pnl.attribution(fills, funding, ledger, by="day")
[frame["net"].sum() - whole["net"].item() for frame in (coins, days)]

# %% [markdown]
# ## Check 2: is the exchange's closed PnL right, and is no fill missing?
#
# `tk.pnl.audit` walks through the fills from the first one. It computes the position and its entry
# price by the exchange's own rule: the average cost, rounded down to the tick of the coin. From
# these it recomputes every closed PnL. A fill that does not start at the position after the
# previous fill is a break: a fill between them is missing.

# %%
perps = tk.many(tk.meta, session.world["dexes"])
audited = tk.pnl.audit(fills, perps)
audited[["coin", "dir", "closed_pnl", "expected_closed_pnl", "difference", "chain_break"]].tail()

# %%
known = audited["difference"].dropna()
breaks = int(audited["chain_break"].sum())
{"checked": len(known), "different": int((known != 0).sum()), "breaks": breaks}

# %% [markdown]
# The same walk gives the position after each fill. Where was the risk, and when? A cross would mark
# a place where fills are missing.

# %%
tk.plots.positions_over_time(tk.pnl.positions(fills, perps))

# %% [markdown]
# ## Check 3: do funding rows and fills show the same positions?
#
# They are two records of the same positions. A funding row states the size of the position at its
# hour. The fills before that hour also give the size.

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
# The account began empty. The sum of deposits, earnings, payments and unrealised PnL must equal the
# value that the exchange states now, on all dexes together. No row here was computed from that
# value.

# %%
states = [
    tk.batch_clearinghouse_states([user], dex=dex, numbers="exact")
    for dex in session.world["dexes"]
]
values, held = (tk.concat(one[part] for one in states) for part in (0, 1))
explained = tk.pnl.reconcile(None, (values, held), fills, funding, ledger, account=user)
explained[["end_value", "closed_pnl", "funding", "unrealised", "ledger", "residual"]].T

# %% [markdown]
# ## The result with three common mistakes

# %%
row = whole.iloc[0]
said = {
    "net, as it is": row["net"],
    "gross PnL shown as net": row["closed_pnl"],
    "funding forgotten": row["net"] - row["funding"],
    "builder fee counted twice": row["net"] + row["builder_fee"],
}
pd.Series(said).map("{:,.2f}".format).rename("USD").to_frame()

# %% [markdown]
# ## Fees by day

# %%
tk.plots.cumulative_pnl(tk.pnl.attribution(fills, funding, by="hour"))

# %% [markdown]
# ## Which trades earned it?
#
# A round trip goes from no position to no position. Each point is one, net of fees: did
# longs or shorts earn, and did long trips earn more than short ones?

# %%
trips = tk.pnl.round_trips(tk.user_fills_by_time(user, 0))
tk.plots.trip_returns(trips)

# %%
ended = trips[trips["status"].isin(["closed", "liquidated"])].groupby("side")["net"]
ended.agg(["count", "sum", "median", "min", "max"]).round(2)

# %% [markdown]
# ## Does the result depend on the accounting method?
#
# Tax rules often ask for lots: which purchase does a sale close, the oldest, the latest, or the
# average of all? `tk.pnl.lots` matches each closing to its opening. The methods move gains between
# closed and open lots, and between trades. Their sum must be the same.

# %%
marks = tk.many(tk.meta_and_asset_ctxs, session.world["dexes"], numbers="exact")
lots = {how: tk.pnl.lots(fills, how, marks=marks) for how in ("fifo", "lifo", "average")}
total = {how: rows[["realised", "unrealised"]].sum() for how, rows in lots.items()}
methods = pd.DataFrame(total).T.assign(total=lambda sums: sums.sum(axis=1))
held_hours = {how: (rows["closed"] - rows["opened"]).median() for how, rows in lots.items()}
methods.assign(median_held=held_hours)

# %% [markdown]
# The exchange uses the average, and truncates each entry price to the tick. So its closed PnL
# differs a little from the realised gain by exact costs:

# %%
truncated = whole["closed_pnl"].item() - methods.loc["average", "realised"]
f"closed PnL of the exchange less realised gain by average: {truncated:.6f} USD"

# %% [markdown]
# ## The wallet explorer
#
# This widget shows the same account. Choose a coin or a day, and all figures change. Its equity
# starts at the value that the exchange states now and is computed back through the rows above.
# "Code of this view" shows the code. An exported page shows the view without the controls. With
# `jupyter nbconvert --execute`, add `--ExecutePreprocessor.store_widget_state=False`, or the page
# loads the controls from a server.

# %%
explorer = tk.widgets.wallet_explorer(user, builders=[builder])
explorer

# %% [markdown]
# ## Conclusions

# %%
said_same = (both["szi"] == both["end"]).mean()
print(f"parts less net: {residual:f} USD; history less account value:", end=" ")
print(f"{explained['residual'].item():f} USD")
print(f"closed PnL agrees on {(known == 0).mean():.1%} of {len(known):,} fills, {breaks} breaks")
print(f"{said_same:.1%} of {len(both):,} funding rows have the position of the fills")
print(f"the methods of lots differ by {methods['total'].max() - methods['total'].min():.0e} USD")

# %% [markdown]
# - If the residual is 0 for the total, for coins and for days, every dollar has a cause.
# - If closed PnL follows from the fills alone, and no chain breaks, no fill is missing.
# - If funding rows and fills have the same positions, funding covers all position hours.
# - A sum with one of the three mistakes looks plausible. Only a check against independent data
#   finds it.
# - The accounting method moves gains between trades and years; it does not change their sum.
#
# ## With your own key
#
# Change two lines: `session = tk.connect(...)` in the first cell, and `user` in the second, to the
# address of the account. Funding needs a builder that the account has approved; without one, leave
# `funding` out, and the table says that funding is missing.
#
# The account's trades and prices are facts of the simulation. That every difference is 0 is planted
# too: the simulated exchange books by the rule that the audit checks. On the live service the same
# checks measure whether your history is complete.

# %%
assert residual == 0
assert coins["net"].sum() == days["net"].sum() == whole["net"].item()
assert len(known) == len(fills)
assert (known == 0).all()
assert breaks == 0
assert (both["szi"] == both["end"]).all()
assert explained["residual"].item() == 0
assert methods["total"].max() - methods["total"].min() < Decimal("1e-12")
assert len(set(said.values())) == len(said)

# %%
assert explorer.view.equity["equity"].iloc[-1] == values["account_value"].sum()
