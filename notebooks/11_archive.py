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
# # 11 The archive: can a result still be checked in ten years?
#
# A result rests on data that somebody else serves. The service may drop old rows, change, or close.
# So we keep what we fetched, in a folder that can be verified, cited by a short id, and asked again
# without the service. Here we archive one account, break the archive on purpose, freeze it, let it
# grow, and re-run the analysis from the freeze alone.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import tempfile
from pathlib import Path

builder = tk.example.BUILDER
clients = tk.builder_approved_fills_by_time(builder, "2025-09-29")["user"]
user = clients.mode().iloc[0]
folder = Path(tempfile.mkdtemp()) / "kept"

# %% [markdown]
# ## Keep
#
# `refresh` fetches what is missing and nothing else: first the account's fills up to the middle of
# September, then the rest. Rows and the note of how far they reach are written in one commit, so
# that a kill at any instant loses nothing and repeats nothing.

# %%
kept = tk.archive.open(folder)
first = kept.refresh(tk.user_fills_by_time, user, "2025-09-01", end="2025-09-15")
second = kept.refresh(tk.user_fills_by_time, user, "2025-09-01")
[first.rows, second.rows, second.total]

# %% [markdown]
# Funding, the ledger, and the lists of markets:

# %%
kept.refresh(tk.builder_approved_funding_by_time, builder, "2025-09-01")
kept.refresh(tk.user_non_funding_ledger_updates, user)
for dex in session.world["dexes"]:
    kept.refresh(tk.meta, dex=dex)

# %%
kept.status().drop(columns=["bytes"], errors="ignore")

# %% [markdown]
# ## Is it what was fetched?
#
# Not similar to it: equal, in every value, every dtype and the order of rows.

# %%
fetched = tk.user_fills_by_time(user, "2025-09-01")
archived = kept.frame(tk.user_fills_by_time, user)
archived.equals(fetched)

# %% [markdown]
# ## Can damage hide?
#
# `verify` reads every file: it follows each chain of positions, counts funding hours and looks for
# rows that stand there twice. A notice is something that may be innocent, such as hours without
# funding while an approval was revoked; a healthy archive has no errors.

# %%
findings = kept.verify()
[(one.severity, one.table, one.kind) for one in findings]

# %% [markdown]
# Now one byte of a copy is changed.

# %%
import shutil

copy = Path(shutil.copytree(folder, folder.with_name("copy")))
largest = max(copy.rglob("*.parquet"), key=lambda file: file.stat().st_size)
content = bytearray(largest.read_bytes())
content[len(content) // 2] ^= 0xFF
largest.write_bytes(bytes(content))
found = tk.archive.open(copy).verify()

# %%
[(one.severity, one.table, one.kind) for one in found]

# %% [markdown]
# ## Freeze
#
# A freeze is an id that stands for exactly these rows: a digest of each table and its version. A
# paper would cite it. After it, the archive may grow.

# %%
frozen = kept.freeze()
growth = kept.refresh(tk.user_fills_by_time, session.world["users"][1], "2025-09-01")
[frozen, growth.rows]

# %% [markdown]
# ## Replay
#
# The service's own code answers from the freeze: same functions, same frames, no network. The
# account that was added later is not in it.

# %%
online = tk.pnl.attribution(fetched)
replay = tk.local(archive=f"{folder}@{frozen}")
again = tk.user_fills_by_time(user, "2025-09-01")
offline = tk.pnl.attribution(again)

# %%
columns = ["fills", "closed_pnl", "trading_fee", "builder_fee", "net"]
offline[columns].round(2)

# %%
tk.plots.waterfall(offline)

# %% [markdown]
# ## Conclusions
#
# - The second refresh fetched only what the first one had not, and no row came twice.
# - What comes out of the archive equals what was fetched, in values, dtypes and order.
# - One changed byte is found.
# - A freeze re-runs to the same frame and the same figures, whatever the archive has become since.

# %%
assert first.rows + second.rows == second.total == len(fetched)
assert archived.equals(fetched)
assert not [one for one in findings if one.severity == "error"]
assert [one for one in found if one.severity == "error"]
assert growth.rows > 0
assert again.equals(fetched)
assert user in replay.world["users"]
assert session.world["users"][1] not in replay.world["users"]
assert offline[columns].equals(online[columns])
