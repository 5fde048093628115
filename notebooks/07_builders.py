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
# # 07 Builder economics: what does a builder earn, and what passes it by?
#
# A builder is paid a fee on every fill that is routed through it, by users who have approved it.
# The service shows it all fills of these users, also those it earned nothing on. So a builder can
# ask not only what it earned, but what it could have earned, whether its users stay, and what a new
# one is worth. A month is short for such questions, and half of the work is not to pretend
# otherwise.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

START, END = "2025-09-01", "2025-10-01"
builders = session.world["builders"]  # of a live service: your own address

# %% [markdown]
# ## Revenue
#
# Each builder is shown the fills of whoever had approved it, and some users approve two at once.
# For a sum over builders each fill counts once. `fee` contains the builder's fee already: adding
# the two would count it twice.

# %%
shown = tk.many(tk.builder_approved_fills_by_time, builders, START, END)
once = shown.drop_duplicates(["user", "tid", "oid"])
earned = tk.builders.revenue(once, by="builder").set_index("builder")
earned.assign(share=earned["revenue"] / earned["revenue"].sum()).round(2)

# %%
builder = earned["revenue"].idxmax()
mine = {one: shown[shown["account"] == one] for one in builders}  # what each was shown
fills = mine[builder]
users = tk.builders.revenue(fills, builder, by="user").sort_values("revenue", ascending=False)
users[["user", "fills", "volume", "revenue", "fee_bps"]].head(5).round(2)

# %% [markdown]
# ## What passes it by?
#
# Of the trading of its users, what went through this builder, through another one, and through
# none? Some fills could not have been routed at all: slices of TWAP orders, liquidations,
# settlements. They belong in no denominator.

# %%
weeks = tk.builders.routing(fills, builder, by="week")
tk.plots.builder_routing(weeks)

# %% [markdown]
# The attach rate is the share of what could have been routed. Fills of one user are not
# independent, so the interval is over users, and with 20 of them it is wide.

# %%
rates = pd.concat([tk.builders.attach_rate(rows, one) for one, rows in mine.items()])
rates.index = pd.Index(earned.loc[builders, "fee_bps"].round(1), name="fee_bps")
rates.sort_index().round(2)

# %% [markdown]
# By fills instead of by value it is another number: small orders are routed less.

# %%
by_fills = tk.builders.attach_rate(fills, builder, weight="fills")
by_fills.round(2)

# %% [markdown]
# ## When had whom approved it?
#
# The service keeps no list of approvals. But a fill of a user that the builder is *not* shown was
# made without one. So each span is known between two moments on either side.

# %%
everything = tk.many(tk.user_fills_by_time, fills["user"].unique(), START, END)
funding = tk.builder_approved_funding_by_time(builder, START, END)
spans = tk.builders.approval_spans(fills, everything, funding)
ended = spans[spans["before"].notna()]
ended[["span", "first", "last", "before", "seen"]].reset_index(drop=True)

# %% [markdown]
# ## Do users stay?
#
# Users by the week of their first routed fill, and how many of them route in the weeks after. The
# denominator is the whole cohort, always; and a week that is not over is missing, not low.

# %%
cohorts = tk.builders.cohorts(fills, builder, since=START, until=END)
cohorts.drop(columns=["cohort", "volume"]).round(2)

# %%
tk.plots.builder_cohorts(cohorts)

# %% [markdown]
# `earlier` is a warning: this cohort is of the week in which our data begins, so that users of long
# standing look new. What would we have seen, had we taken the running week for a whole one?

# %%
hasty = tk.builders.cohorts(fills, builder, since=START, until="2025-10-06")
hasty.iloc[-1][["age", "users", "active", "retention", "revenue"]].to_frame("running week")

# %% [markdown]
# ## What is a new user worth?
#
# Users came at different times, and the last ones have been watched for a short while. They count
# for the weeks they were watched, and for no others.

# %%
value = tk.builders.lifetime_value(fills, builder, weeks=5, until=END)
value.curve.round(2)

# %%
value.plot()

# %% [markdown]
# ## Conclusions
#
# - Two of five builders earn more than four fifths of all fees, by charging five and ten basis
#   points where others charge one to three. A single user brought more than a third of the best
#   one's revenue.
# - Four fifths of what could be routed through the dearest builder is, by value; by number of fills
#   it is half. A higher fee does not go with a lower attach rate here, but five builders show no
#   cause.
# - Four of twenty users never routed a fill, and five approvals came to an end. Each end is known
#   to within half a day, without any list of approvals.
# - Three quarters of the cohort still trade after three weeks. Had the running week been taken for
#   a whole one, revenue would seem to have fallen by more than half.
# - A user brings about 280 USD within three weeks: anything from 130 to 610. Of the fourth week
#   four users tell, and the interval says that this is next to nothing.

# %%
charged = earned["revenue"] / earned["volume"] * 1e4
parts = weeks[["routed_usd", "elsewhere_usd", "direct_usd", "unroutable_usd"]].sum(axis=1)
assert (charged - earned["fee_bps"]).abs().max() < 1e-6
assert earned["revenue"].nlargest(2).sum() / earned["revenue"].sum() > 0.8
assert users["revenue"].iloc[0] / users["revenue"].sum() > 0.35
assert (parts - weeks["volume"]).abs().max() < 1e-6 * weeks["volume"].max()
assert rates["rate"].iloc[builders.index(builder)] > 0.7 > by_fills["rate"].item()
assert ((ended["before"] - ended["last"]) < pd.Timedelta("13h")).all()

# %%
assert cohorts.groupby("cohort")["users"].nunique().eq(1).all()  # a fixed denominator
assert cohorts.loc[~cohorts["complete"], "retention"].isna().all()
assert hasty["revenue"].iloc[-1] < 0.5 * hasty["revenue"].iloc[-2]
spread = value.curve["high"] / value.curve["low"]
assert spread.iloc[3] > 1.5 * spread.iloc[2]
