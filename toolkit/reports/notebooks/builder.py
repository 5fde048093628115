# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Builder report: the revenue of a builder, and the trading of its users

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")

# %% tags=["parameters"]
address: str | None = None  # the builder; an example of a simulated exchange when None
start = 0
end = None

# %%
from toolkit import plots
from toolkit.reports import blocks, builder_report

address = tk.example.BUILDER if address is None else address
builder = builder_report.BuilderReport(session, address, start, end)
sources = builder.frames()

# %%
builder.title()

# %% [markdown]
# ## Summary
#
# The service shows a builder all fills of its users while they had approved it. Some were routed
# through this builder, others through another builder or without one.

# %%
blocks.words(builder.summary(), lead=True)

# %%
blocks.tiles(builder.headlines())

# %% [markdown]
# ## Revenue

# %%
blocks.figure(
    plots.builder_routing, builder.weeks(), caption="Volume of its users by route and week, in USD."
)

# %%
builder.periods()

# %%
builder.top("user")

# %%
builder.top("coin")

# %% [markdown]
# ## Users
#
# A user counts as new on the day of the first trade through the builder in this period.

# %%
blocks.figure(
    plots.builder_activity,
    builder.activity,
    caption="New and returning users by day; days that are not complete are hatched.",
)

# %% [markdown]
# ## Retention
#
# A cohort is all users with their first trade through the builder in the same week. The share of
# a cohort is always of all its users. Weeks that are not over are not shown, since the users can
# still trade in them.

# %%
blocks.figure(
    plots.builder_cohorts,
    builder.cohorts,
    caption="Share of each cohort that traded through the builder, by weeks since the first trade.",
)

# %%
builder.retention()

# %%
blocks.figure(
    plots.lifetime_value,
    builder.lifetime,
    caption="Builder fees paid by a user, by weeks since the first trade, with a 95 % band. The "
    "figure cuts off a very wide band; the table has its full width.",
)

# %%
builder.values()

# %% [markdown]
# ## Orders

# %%
builder.ends()
