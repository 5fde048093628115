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
# A result depends on data of a service, which may delete old rows, change, or close. So we store
# what we fetched in an archive: a folder that can be verified, cited by a short id, and queried
# again without the service. This notebook archives one account, damages a copy of the archive,
# freezes the archive, adds data, and repeats the analysis from the freeze.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import tempfile
from pathlib import Path

START, MIDDLE = "2025-09-01", "2025-09-15T00:00Z"  # on a live service: two recent days
builder = tk.example.BUILDER  # on a live service: the address of a builder
other_user = session.world["users"][1]  # on a live service: a second address
dexes = ["", *(dex["name"] for dex in tk.info({"type": "perpDexs"})[1:])]  # "" is the native dex
clients = tk.builder_approved_fills_by_time(builder, "2d")["user"]
user = clients.mode().iloc[0]
folder = Path(tempfile.mkdtemp()) / "kept"

# %% [markdown]
# ## Refresh
#
# `refresh` fetches only what is missing: first the account's fills up to `MIDDLE`, then the rest.
# The rows are committed first, then the covered range. If the process is killed in between, the
# refresh log lists too little, never too much. No row is lost or stored twice.

# %%
kept = tk.archive.open(folder)
first = kept.refresh(tk.user_fills_by_time, user, START, end=MIDDLE)
second = kept.refresh(tk.user_fills_by_time, user, START)
[first.rows, second.rows, second.total]

# %% [markdown]
# Funding, the ledger, and the lists of markets:

# %%
kept.refresh(tk.builder_approved_funding_by_time, builder, START)
kept.refresh(tk.user_non_funding_ledger_updates, user)
for dex in dexes:
    kept.refresh(tk.meta, dex=dex)

# %%
kept.status().drop(columns=["bytes"], errors="ignore")

# %% [markdown]
# ## Does the archive equal the fetched frames?
#
# They are equal in every value, every dtype, and the order of rows.

# %%
fetched = tk.user_fills_by_time(user, START)
archived = kept.frame(tk.user_fills_by_time, user)
archived.equals(fetched)

# %% [markdown]
# ## Does `verify` find damage?
#
# `verify` reads every file. It checks each position chain, counts funding hours, and looks for
# repeated rows. A notice may have a harmless cause, such as hours without funding while an approval
# was revoked. A healthy archive has no errors.

# %%
findings = kept.verify()
[(one.severity, one.table, one.kind) for one in findings]

# %% [markdown]
# Now we change one byte of a copy.

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
# A freeze stores the version and a digest of each table under an id. A paper can cite the id. The
# archive may grow afterwards.

# %%
frozen = kept.freeze()
growth = kept.refresh(tk.user_fills_by_time, other_user, START)
[frozen, growth.rows]

# %% [markdown]
# ## Repeat the analysis
#
# The local service answers from the freeze. It needs no network, and the functions and frames are
# the same. The freeze does not contain the account that was added later.

# %%
online = tk.pnl.attribution(fetched)
replay = tk.local(archive=f"{folder}@{frozen}")
again = tk.user_fills_by_time(user, START)
offline = tk.pnl.attribution(again)

# %%
columns = ["fills", "closed_pnl", "trading_fee", "builder_fee", "net"]
offline[columns].round(2)

# %%
tk.plots.waterfall(offline)

# %% [markdown]
# ## Conclusions

# %%
errors, damage = ([one for one in each if one.severity == "error"] for each in (findings, found))
print(f"rows of the second refresh: {second.rows:,} of {second.total:,}")
print(f"archive equals the fetched frame: {archived.equals(fetched)}")
print(f"errors found: {len(errors)} in the archive, {len(damage)} in the damaged copy")
print(f"the freeze gives the same frame: {again.equals(fetched)}, and the same results:", end=" ")
print(offline[columns].equals(online[columns]))

# %% [markdown]
# - A refresh fetches only the missing rows, and stores no row twice.
# - An archive keeps values, dtypes and order, so an analysis runs on it as on a fetched frame.
# - `verify` finds a changed byte.
# - A freeze gives the same results after the archive has changed: cite its id.
#
# ## With your own key
#
# Change five lines: `session = tk.connect(...)` in the first cell, the dates `START` and `MIDDLE`,
# `builder` and `other_user` to addresses, and `folder` to a place that you keep. `user` is the
# client of the builder with the most fills in the last two days; write its address there before you
# run the notebook again. A page of a builder's rows costs 100 points, so a late `START` saves
# points. Run the cells with `refresh` again each week: they fetch only the missing rows.
#
# The rows come from the simulation. Freezes and `verify` work in the same way with rows of the live
# service.

# %%
assert first.rows + second.rows == second.total == len(fetched)
assert archived.equals(fetched)
assert not errors
assert damage
assert growth.rows > 0
assert again.equals(fetched)
assert user in replay.world["users"]
assert other_user not in replay.world["users"]
assert offline[columns].equals(online[columns])
