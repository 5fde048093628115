# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Builder report: what does a builder earn, and what do its users do elsewhere?

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
builder = builder_report.gather(session, address, start, end)
sources = builder.frames()

# %%
builder.title()

# %% [markdown]
# ## Summary
#
# The service shows a builder the fills of its users while they had approved it: those routed
# through it, and those routed elsewhere.

# %%
blocks.words(builder.summary(), lead=True)

# %%
blocks.tiles(builder.headlines())

# %% [markdown]
# ## Revenue

# %%
blocks.figure(
    plots.builder_routing,
    builder.weeks(),
    caption="Where its users' volume went, week by week, in USD.",
)

# %%
builder.periods()

# %%
builder.top("user")

# %%
builder.top("coin")

# %% [markdown]
# ## Who stays
#
# Users by the week in which they first traded through the builder. The denominator of a cohort is
# the same at every age; weeks that are not over are not shown, since what is missing there is not
# yet known.

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
    caption="Builder fees that a user has paid, by weeks since the first trade; 95 % band, cut off "
    "far above: the table has all of it.",
)

# %%
builder.values()

# %% [markdown]
# ## Orders

# %%
builder.ends()
