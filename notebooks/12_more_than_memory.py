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
# # 12 More data than memory: do the helpers give the same results on every engine?
#
# Fills of one account fit into memory. Fills of thousands of accounts over a year do not: pandas
# needs memory for several copies of the table. `tk.pnl.attribution` is written once, and runs on
# the engine of its input. (The page "Analysis" of the documentation shows which helpers do so, and
# which compute in memory.) So one changed word moves this analysis to DuckDB or Polars. This
# notebook checks that the results are the same.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import tempfile

START = "2025-09-01"  # on a live service: a recent day
builders = session.world["builders"]  # on a live service: a list of addresses of builders
kept = tk.archive.open(tempfile.mkdtemp())

# %% [markdown]
# ## An archive of many accounts
#
# These are the fills of all users of each builder, one builder after the other. Several pages (a
# portion) are written to disk together, so only one portion is in memory at a time.

# %%
done = [kept.refresh(tk.builder_approved_fills_by_time, one, START) for one in builders]
f"{sum(one.total for one in done):,} fills"

# %%
status = kept.status()
status[["table", "subject", "rows", "first", "last"]]

# %% [markdown]
# ## One question, three engines
#
# What did each account earn in each coin? `scan` returns a table of the engine, and the helper
# returns its result on the same engine. DuckDB and Polars read nothing before a result is needed.
#
# There is one trap. An account may have approved two builders at the same time. Each builder sees
# the fills of this account, and the archive stores both copies. A plain count would count some
# trades twice. Helpers count a repeated row once, and warn. Here we remove repeated rows ourselves,
# with narwhals, which supports all three engines.

# %%
named = ["user", "coin", "time", "px", "sz", "closed_pnl", "fee"]
named += ["builder_fee", "deployer_fee", "fee_token", "tid", "oid", "side", "start_position"]
key = ["user", "coin", "time", "tid", "oid", "side"]

# %%
import narwhals as nw


def scan(engine):
    rows = kept.scan("fills", columns=named, engine=engine)
    return nw.from_native(rows).unique(key).to_native()


# %%
scans = {engine: scan(engine) for engine in ("pandas", "duckdb", "polars")}
{engine: type(one).__name__ for engine, one in scans.items()}

# %%
results = {engine: tk.pnl.attribution(one, by=["user", "coin"]) for engine, one in scans.items()}

# %% [markdown]
# ## Are the results equal?
#
# Sums of floating-point numbers depend on their order, and every engine has its own order. So
# amounts agree except for the last few bits. Counts agree exactly.

# %%
money = ["closed_pnl", "trading_fee", "builder_fee", "net"]
frames = {
    "pandas": results["pandas"],
    "duckdb": results["duckdb"].df(),
    "polars": results["polars"].collect().to_pandas(),
}

# %%
plain = frames["pandas"]
differences = {
    engine: float((frame[money] - plain[money]).abs().to_numpy().max())
    for engine, frame in frames.items()
}
differences

# %% [markdown]
# ## With a memory limit
#
# DuckDB processes the files in pieces within its memory limit, here 100 MB. The limit holds for the
# sums. It does not hold for the entire process: Python and its libraries need about 150 MB, the
# reader of the archive holds some rows, and the check for repeated rows needs 8 bytes for
# each row. `unique` in `scan` has to remember every key, so with ten million rows it needs a larger
# limit. A helper on a plain scan does not need `unique`, because it counts a repeated row once.

# %%
import duckdb

duckdb.execute("SET memory_limit = '100MB'")
limited = tk.pnl.attribution(scan("duckdb"), by="user").df()
duckdb.execute("RESET memory_limit")
limited[["user", "fills", "closed_pnl", "net"]].nlargest(5, "net").round(2)

# %% [markdown]
# ## Other questions in SQL
#
# A scan on DuckDB is a relation of DuckDB. If no helper answers a question, write it with SQL
# expressions.

# %%
fills = kept.scan("fills", columns=["coin", "px", "sz", "fee"], engine="duckdb")
fills.aggregate("coin, count(*) AS fills, sum(px * sz) AS volume").order("volume DESC").limit(5)

# %% [markdown]
# ## Exact decimals
#
# Floats are good enough for exploring. Accounting needs decimals. The archive stores numbers as the
# text that the service sent, so you can read exact decimals. The exact results check the results in
# floats.

# %%
import pandas as pd

every = [kept.frame(tk.builder_approved_fills_by_time, one, numbers="exact") for one in builders]
exact = pd.concat([frame.assign() for frame in every]).drop_duplicates(key, ignore_index=True)
truth = tk.pnl.attribution(exact, by="user").set_index("user")["net"].astype("float64")
difference = float((limited.set_index("user")["net"] - truth).abs().max())
difference

# %% [markdown]
# ## Conclusions

# %%
stored = sum(one.total for one in done)
print(f"largest difference of an amount between engines: {max(differences.values()):.0e} USD")
print(f"largest difference from exact decimals: {difference:.0e} USD")
print(f"stored twice, because two builders saw them: {1 - len(exact) / stored:.1%} of the rows")

# %% [markdown]
# - The same helper gives the same results on pandas, DuckDB and Polars: counts exactly, amounts
#   except for the last few bits. Moving from one engine to another changes one word.
# - A memory limit of DuckDB holds for its sums. The process as a whole needs more, and its need
#   grows by 8 bytes for each row.
# - If a row is stored twice, a plain sum over the archive counts it twice. The helper counts it
#   once, and warns.
# - If the last digit matters, read exact decimals from the archive.
#
# ## With your own key
#
# Change four lines: `session = tk.connect(...)` in the first cell, `START`, `builders` to the
# addresses of the builders, and the folder of `tk.archive.open` to a place that you keep. A page of
# a builder's fills costs 100 points, so a late `START` saves points.
#
# The number of rows that two builders share is a fact of the simulation. The agreement of the
# engines does not depend on this number. To check it on your own archive, run the last cells there.
# The assert about the share of these rows may then fail.

# %%
import warnings

with_repeats = kept.scan("fills", columns=named, engine="duckdb")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    once = tk.pnl.attribution(with_repeats, by="user").df()
summed = with_repeats.aggregate("sum(fee) AS fee").df()["fee"].item()

# %%
assert any(issubclass(one.category, tk.RepeatedRows) for one in caught)
assert abs(once["fills"].sum() / limited["fills"].sum() - 1) < 0.01  # fills with id 0 may repeat
assert summed > 1.01 * exact["fee"].astype("float64").sum()

# %%
assert all(len(frame) == len(plain) for frame in frames.values())
assert all(
    (frame["fills"].to_numpy() == plain["fills"].to_numpy()).all() for frame in frames.values()
)
assert max(differences.values()) < 1e-8 * plain["volume"].sum()
assert limited["fills"].sum() == plain["fills"].sum() == len(exact)
assert 0.05 < 1 - len(exact) / sum(one.total for one in done) < 0.15
assert difference < 1e-6
