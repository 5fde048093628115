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
# # 12 More data than memory: do the same helpers give the same numbers on another engine?
#
# Fills of one account fit anywhere. Fills of thousands of accounts over a year do not: pandas wants
# the whole table in memory, several times over. Every accounting helper of this package is written
# once and runs on the engine it is given, so an analysis moves to DuckDB or Polars by changing one
# word. Here we check that the answer does not move with it.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import tempfile

builders = session.world["builders"]
kept = tk.archive.open(tempfile.mkdtemp())

# %% [markdown]
# ## An archive of many accounts
#
# The fills of everybody who had approved a builder, one builder after the other. Pages go to disk
# as they come; memory holds one batch at a time.

# %%
done = [kept.refresh(tk.builder_approved_fills_by_time, one, "2025-09-01") for one in builders]
f"{sum(one.total for one in done):,} fills"

# %%
status = kept.status()
status[["table", "subject", "rows", "first", "last"]]

# %% [markdown]
# ## One question, three engines
#
# Who earned what, by account and coin? `scan` gives a table of the engine; the helper gives its
# result on the same one. With DuckDB and Polars nothing is read before a result is asked for.
#
# One trap first. An account may have approved two builders at once; each of them is shown its
# fills, and the archive keeps what each was shown. Counting them all would count some trades twice.
# Helpers count a row that is given twice once, and warn; here we keep one of each ourselves, with
# narwhals, which speaks to all three engines.

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
# ## Are they the same?
#
# Sums of floating-point numbers depend on their order, and every engine has its own. So the figures
# agree to the last few bits and not to the last one; the counts agree exactly.

# %%
money = ["closed_pnl", "trading_fee", "builder_fee", "net"]
frames = {
    "pandas": results["pandas"],
    "duckdb": results["duckdb"].df(),
    "polars": results["polars"].collect().to_pandas(),
}

# %%
plain = frames["pandas"]
apart = {
    engine: float((frame[money] - plain[money]).abs().to_numpy().max())
    for engine, frame in frames.items()
}
apart

# %% [markdown]
# ## With a leash on memory
#
# DuckDB works through the files in pieces and keeps to the memory it is allowed. Here it gets
# 100 MB, and as the archive grows it would still need no more.

# %%
import duckdb

duckdb.execute("SET memory_limit = '100MB'")
leashed = tk.pnl.attribution(scan("duckdb"), by="user").df()
duckdb.execute("RESET memory_limit")
leashed[["user", "fills", "closed_pnl", "net"]].nlargest(5, "net").round(2)

# %% [markdown]
# ## Any question at all
#
# A scan is a table like any other: what has no helper is a line of SQL.

# %%
fills = kept.scan("fills", columns=["coin", "px", "sz", "fee"], engine="duckdb")
fills.aggregate("coin, count(*) AS fills, sum(px * sz) AS volume").order("volume DESC").limit(5)

# %% [markdown]
# ## Exact, when it has to be
#
# Floats are for looking, decimals for accounts. The archive keeps the text of the wire, so that one
# account comes back in exact decimals, and its figures hold the float ones to account.

# %%
import pandas as pd

every = [kept.frame(tk.builder_approved_fills_by_time, one, numbers="exact") for one in builders]
exact = pd.concat([frame.assign() for frame in every]).drop_duplicates(key, ignore_index=True)
truth = tk.pnl.attribution(exact, by="user").set_index("user")["net"].astype("float64")
difference = float((leashed.set_index("user")["net"] - truth).abs().max())
difference

# %% [markdown]
# ## Conclusions
#
# - The same helper gave the same figures on pandas, DuckDB and Polars: counts exactly, money to a
#   millionth of a cent.
# - Moving from one engine to another changed one word.
# - On DuckDB the analysis kept to 100 MB.
# - About one row in ten was there twice, because two builders had been shown it. A plain sum over
#   the archive as it stands counts it twice; the helper counts it once, and says so.
# - Where the last digit matters, the archive gives it: exact decimals from the text of the wire.

# %%
import warnings

stands = kept.scan("fills", columns=named, engine="duckdb")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    once = tk.pnl.attribution(stands, by="user").df()
summed = stands.aggregate("sum(fee) AS fee").df()["fee"].item()

# %%
assert any(issubclass(one.category, tk.RepeatedRows) for one in told)
assert abs(once["fills"].sum() / leashed["fills"].sum() - 1) < 0.01  # id 0 names no trade
assert summed > 1.01 * exact["fee"].astype("float64").sum()

# %%
assert all(len(frame) == len(plain) for frame in frames.values())
assert all(
    (frame["fills"].to_numpy() == plain["fills"].to_numpy()).all() for frame in frames.values()
)
assert max(apart.values()) < 1e-8 * plain["volume"].sum()
assert leashed["fills"].sum() == plain["fills"].sum() == len(exact)
assert 0.05 < 1 - len(exact) / sum(one.total for one in done) < 0.15
assert difference < 1e-6
