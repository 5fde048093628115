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
# # 00 Real data without a key: what did one account earn, and does the data explain its value?
#
# The exchange has an API of its own, which needs no key. This notebook goes from an address to a
# report in five steps: name the account, read its frames, compute, check, write. It runs offline: a
# simulated exchange inside this process answers as that API does. One changed line asks the real
# exchange.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo", like="exchange")
# The real exchange instead, without a key:
# session = tk.connect("hyperliquid")

# %% [markdown]
# ## Name the account
#
# The object fetches nothing yet. Each frame is fetched when it is first read, and kept.

# %%
address = session.world["examples"]["WHALE"]  # on a live service: the address of any account
account = tk.account(address)
account

# %% [markdown]
# ## Read its frames
#
# States first: then no row is later than they are. The table says how many rows came, and whether
# they are complete. The API keeps only the 10,000 latest fills of an account. If there are more, a
# warning says so, `complete` is `no`, and `account.missing` has the reason.

# %%
account.fetch("states", "fills", "funding", "ledger")

# %%
account.fills[["time", "coin", "dir", "px", "sz", "closed_pnl", "fee"]].tail(5)

# %% [markdown]
# ## What did it earn?
#
# Amounts are in USD and positive if they are good for the account. Funding is the account's own,
# whichever interface it traded through.

# %%
earned = tk.pnl.attribution(account.prepared, account.funding, account.ledger)
tk.plots.waterfall(earned)

# %%
tk.plots.cumulative_pnl(tk.pnl.attribution(account.prepared, account.funding, by="hour"))

# %% [markdown]
# ## Do the rows explain its value?
#
# Cash in, less cash out, with closed PnL, fees, funding and unrealised PnL must equal the value
# that the exchange states now. The rest is the residual.

# %%
frames = (account.fills, account.funding, account.ledger)
explained = tk.pnl.reconcile(None, account.states, *frames, account=address)
explained[["end_value", "ledger", "closed_pnl", "funding", "unrealised", "residual"]].round(6).T

# %% [markdown]
# ## Tell it to an agent
#
# The same figures as text, with units, sources and what is missing.

# %%
print(account.to_context())

# %% [markdown]
# ## Write a report
#
# One HTML file with everything above, returns, round trips, coins and days. It opens in any
# browser. Slippage samples are in the query service only, so the report leaves them out, and says
# so.

# %%
import tempfile
from pathlib import Path

folder = tempfile.TemporaryDirectory()
page = tk.reports.wallet(address, out=Path(folder.name) / "wallet.html")
html = page.read_text()
print(f"{page.name}: {len(html):,} characters")

# %% [markdown]
# ## On the real exchange
#
# Change one line, `session = tk.connect("hyperliquid")`, and put an address in place of
# `session.world[...]`. The API allows 1,200 points a minute for one machine. Requests wait for it.
# An account of 10,000 fills costs about 620 points. For older fills, slippage, and the rows of a
# builder's users there is the query service: `tk.connect("hydromancer")`, with a key.

# %%
assert account.missing == {}
assert tk.provenance(account.funding)["complete"] == "yes"
assert earned["covers"].item().startswith("fills, funding, ledger")
assert abs(explained["residual"].item()) < 1e-6
assert "leaves them out: slippage" in html
assert address in account.to_context()
