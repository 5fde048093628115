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
# # 12 More data than memory: which rows does a helper need?
#
# Fills of one account fit into memory. Fills of thousands of accounts over a year do not: pandas
# needs memory for several copies of the table. Helpers take the scan of an archive on DuckDB or
# Polars, collect its rows and compute in memory. If they do not fit, `tk.apply` runs a helper on
# one partition after another, or the engine itself sums. This notebook checks that helper,
# partitions, DuckDB and exact decimals give the same sums.

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
# What did each account earn in each coin? `scan` returns a table of the engine. DuckDB and Polars
# read nothing before a result is needed. The helper reads the columns that the scan has, so name
# the columns that it needs. Its result is a frame of pandas.
#
# There is one trap. An account may have approved two builders at the same time. Each builder sees
# the fills of this account, and the archive stores both copies. A plain count would count some
# trades twice. Helpers count a repeated row once, and warn.

# %%
named = ["user", "coin", "time", "px", "sz", "closed_pnl", "fee"]
named += ["builder_fee", "deployer_fee", "fee_token", "tid", "oid", "side", "start_position"]
scans = {
    engine: kept.scan("fills", columns=named, engine=engine)
    for engine in ("pandas", "duckdb", "polars")
}
{engine: type(one).__name__ for engine, one in scans.items()}

# %%
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    frames = {engine: tk.pnl.attribution(one, by=["user", "coin"]) for engine, one in scans.items()}
print(caught[0].message)

# %% [markdown]
# ## Are the results equal?
#
# Sums of floating-point numbers depend on their order, and engines may return rows in another
# order. So amounts agree except for the last few bits. Counts agree exactly.

# %%
money = ["closed_pnl", "trading_fee", "builder_fee", "net"]
plain = frames["pandas"]
differences = {
    engine: float((frame[money] - plain[money]).abs().to_numpy().max())
    for engine, frame in frames.items()
}
differences

# %% [markdown]
# ## Partition by partition
#
# `tk.apply` runs a helper on the files of an archive. It reads all rows of some accounts at a time,
# here at least 20,000 rows, so memory follows this number and not the archive. `executor=` takes a
# process pool, a Dask client or a PySpark session.

# %%
with warnings.catch_warnings():
    warnings.simplefilter("ignore", tk.RepeatedRows)
    files = kept.files(tk.builder_approved_fills_by_time)
    trips = tk.apply(tk.pnl.round_trips, files, rows_at_once=20_000)
    parts = tk.apply(tk.pnl.attribution, files, by="coin", rows_at_once=20_000)
    whole = tk.pnl.attribution(scans["pandas"], by="coin")
difference_of_parts = float((parts[money] - whole[money]).abs().to_numpy().max())
len(trips), trips.attrs["toolkit"]["partitions"], difference_of_parts

# %% [markdown]
# ## With a memory limit
#
# DuckDB processes the files in pieces within its memory limit, here 100 MB. The limit holds for the
# sums. It does not hold for the entire process: Python and its libraries need about 150 MB, and the
# reader of the archive holds some rows. `DISTINCT ON` counts a repeated fill once. It has to
# remember every key, so with ten million rows it needs a larger limit. Fills with trade id 0, such
# as conversions, have no key, so we leave them out here.

# %%
import duckdb

key = ["user", "coin", "time", "tid", "oid", "side"]
sums = f"""
    SELECT user, count(*) AS fills, sum(closed_pnl) AS closed_pnl, sum(fee) AS fee
    FROM (SELECT DISTINCT ON ({", ".join(key)}) * FROM fills WHERE tid <> 0)
    GROUP BY user
    ORDER BY user
"""
duckdb.execute("SET memory_limit = '100MB'")
limited = scans["duckdb"].query("fills", sums).df().set_index("user")
duckdb.execute("RESET memory_limit")
limited.nlargest(5, "closed_pnl").round(2)

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
# text that the service sent, so a scan can return exact decimals, and the engine sums them without
# rounding. Helpers compute with floats. The exact sums check theirs.

# %%
columns = [*key, "closed_pnl", "fee"]
decimals = kept.scan("fills", columns=columns, engine="duckdb", numbers="exact")
exact = decimals.query("fills", sums).df().set_index("user").astype("float64")
trades = scans["duckdb"].filter("tid <> 0")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", tk.RepeatedRows)
    helper = tk.pnl.attribution(trades, by="user").set_index("user")
difference = float((helper["closed_pnl"] - exact["closed_pnl"]).abs().max())
difference

# %% [markdown]
# ## Conclusions

# %%
print(f"largest difference of an amount between engines: {max(differences.values()):.0e} USD")
print(f"largest difference from exact decimals: {difference:.0e} USD")
repeated = 1 - limited["fills"].sum() / trades.shape[0]
print(f"stored twice, because two builders saw them: {repeated:.1%} of the rows")

# %% [markdown]
# - The same helper gives the same results for scans of pandas, DuckDB and Polars: counts exactly,
#   amounts except for the last few bits. The results are frames of pandas.
# - A helper holds its rows in memory. If they do not fit, run it with `tk.apply` on one partition
#   after another, or let DuckDB sum within a memory limit.
# - If a row is stored twice, a plain sum over the archive counts it twice. The helper counts it
#   once, and warns.
# - If the last digit matters, sum exact decimals on the engine.
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
summed = scans["duckdb"].aggregate("sum(fee) AS fee").df()["fee"].item()

# %%
assert any(issubclass(one.category, tk.RepeatedRows) for one in caught)
assert summed > 1.01 * exact["fee"].sum()

# %%
assert all((frame["fills"] == plain["fills"]).all() for frame in frames.values())
assert max(differences.values()) < 1e-8 * plain["volume"].sum()
assert difference_of_parts < 1e-6
assert limited["fills"].equals(exact["fills"].astype("int64"))
assert limited["fills"].equals(helper["fills"])
assert abs(plain["fills"].sum() / limited["fills"].sum() - 1) < 0.01  # settlements have trade id 0
assert 0.05 < repeated < 0.15
assert difference < 1e-6
