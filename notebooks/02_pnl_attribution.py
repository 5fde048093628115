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
# A PnL figure is easy to compute and hard to trust: fees are counted twice, funding is forgotten,
# a page of fills is missing. Here we take one account apart, in exact decimals, and check each
# part against something it was not computed from.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

user = tk.reports.example_account()

# %% [markdown]
# ## Everything that moved money
#
# Fills, ledger updates, and the funding rows that the account's builder can see. With
# `numbers="exact"` amounts are decimals, as on the wire: sums have no rounding error at all.

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
# `net` is closed PnL plus fees (negative), rebates and funding. `equity_change` adds what the
# ledger brought in: it is the change of the account's equity, but for positions that are still
# open.

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
# The same must hold for each coin and each day, and these must add up to the whole.

# %%
coins = tk.pnl.attribution(fills, funding, by="coin")
days = tk.pnl.attribution(fills, funding, ledger, by="day")
[frame["net"].sum() - whole["net"].item() for frame in (coins, days)]

# %% [markdown]
# ## Check 2: is the exchange's closed PnL right, and is no fill missing?
#
# `tk.pnl.audit` goes through the fills from the first one, keeps the position and its entry price
# by the exchange's own rule (average cost, the entry price cut off at the tick of the coin), and
# recomputes every closed PnL. A fill that does not start at the position where the one before it
# ended is a break: something in between is missing.

# %%
perps = pd.concat([tk.meta(dex=dex) for dex in session.world["dexes"]])
audited = tk.pnl.audit(fills, perps)
audited[["coin", "dir", "closed_pnl", "expected_closed_pnl", "difference", "chain_break"]].tail()

# %%
known = audited["difference"].dropna()
breaks = int(audited["chain_break"].sum())
{"checked": len(known), "different": int((known != 0).sum()), "breaks": breaks}

# %% [markdown]
# ## Check 3: do funding rows and fills tell of the same positions?
#
# They are two records of one thing. A funding row states the size of the position at its hour; the
# fills before that hour give the size as well.

# %%
bought = fills["sz"].where(fills["side"] == "B", -fills["sz"])
last = fills[["time", "coin"]].assign(end=fills["start_position"] + bought)
last = last.drop_duplicates(["time", "coin"], keep="last")

# %%
both = pd.merge_asof(funding, last, on="time", by="coin", allow_exact_matches=False)
{"rows": len(both), "agree": int((both["szi"] == both["end"]).sum())}

# %% [markdown]
# ## Check 4: is the account worth what its history says?
#
# The account began empty. What came in, what was earned and paid, and what open positions gained,
# must be what the exchange says it is worth today, on all dexes together. None of these tables was
# made from that figure.

# %%
states = [
    tk.batch_clearinghouse_states([user], dex=dex, numbers="exact")
    for dex in session.world["dexes"]
]
values, held = (pd.concat([one[i] for one in states], ignore_index=True) for i in (0, 1))
explained = tk.pnl.reconcile(None, (values, held), fills, funding, ledger, account=user)
explained[["end_value", "closed_pnl", "funding", "unrealised", "ledger", "residual"]].T

# %% [markdown]
# ## What three common mistakes would have said

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
# ## Where the fees went, day by day

# %%
tk.plots.cumulative_pnl(tk.pnl.attribution(fills, funding, by="hour"))

# %% [markdown]
# ## To look around in
#
# The same account with controls: choose a coin or a day, and everything follows. Its equity is
# what the exchange states now, carried back through the tables above. "Code of this view" gives
# the cell that makes it. In an exported page the view stays, without its controls (with
# `jupyter nbconvert --execute`, add `--ExecutePreprocessor.store_widget_state=False`, or the page
# asks a server elsewhere for them).

# %%
explorer = tk.widgets.wallet_explorer(user, builders=[builder])
explorer

# %% [markdown]
# ## Conclusions
#
# - Every dollar has a cause: the residual is exactly 0, over the whole, over coins, over days.
# - The exchange's closed PnL follows from the fills alone, on every fill, and no fill is missing.
# - Every funding row states the position that the fills give, so funding covers what was held.
# - The account is worth today what its history says, to the last digit.
# - None of the three mistakes would show in a sum that looks plausible. Each is caught by one of
#   the checks above, and by nothing less.

# %%
assert residual == 0
assert coins["net"].sum() == days["net"].sum() == whole["net"].item()
assert len(known) == len(fills)
assert (known == 0).all()
assert breaks == 0
assert (both["szi"] == both["end"]).all()
assert explained["residual"].item() == 0
assert len(set(said.values())) == len(said)

# %%
assert explorer.view.equity["equity"].iloc[-1] == values["account_value"].sum()
