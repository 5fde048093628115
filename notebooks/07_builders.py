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
# # 07 Builder economics: what does a builder earn, and what does it miss?
#
# A builder earns a fee on every fill that users route through it after their approval. The service
# shows the builder all fills of these users, also fills that pay it no fee. So a builder can see
# what it earned, what it could have earned, whether its users stay, and what a new user is worth. A
# month is short for such questions, and the intervals show it.

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="demo")
# Against the live service instead: session = tk.connect("https://address-of-the-service")

# %%
import pandas as pd

START, END = "2025-09-01", "2025-10-01"  # from a Monday, to the time of the fetch
NEXT_MONDAY = "2025-10-06"  # the end of the week that contains END
builders = session.world["builders"]  # on a live service: a list, your own address first

# %% [markdown]
# ## Revenue
#
# Each builder sees the fills of all users that had approved it, and some users approve two builders
# at the same time. So the cell drops the second copy of a fill before it sums over builders. `fee`
# contains the builder fee: adding the two would count it twice.

# %%
shown = tk.many(tk.builder_approved_fills_by_time, builders, START, END)
once = shown.drop_duplicates(["user", "tid", "oid"])
earned = tk.builders.revenue(once, by="builder").set_index("builder")
earned.assign(share=earned["revenue"] / earned["revenue"].sum()).round(2)

# %%
builder = earned["revenue"].idxmax()
# the rows that each builder sees
mine = {one: shown[shown["requested_builder"] == one] for one in builders}
fills = mine[builder]
users = tk.builders.revenue(fills, builder, by="user").sort_values("revenue", ascending=False)
users[["user", "fills", "volume", "revenue", "fee_bps"]].head(5).round(2)

# %% [markdown]
# ## Which volume does a builder miss?
#
# Users route their trades through this builder, through another one, or through none. Some fills
# cannot be routed: slices of TWAP orders, liquidations, settlements. They do not count in the
# shares below.

# %%
weeks = tk.builders.routing(fills, builder, by="week")
tk.plots.builder_routing(weeks)

# %% [markdown]
# The attach rate is the routed share of the volume that could be routed. Fills of one user depend
# on each other, so the bootstrap is over users. With few users the interval is wide.

# %%
rates = pd.concat([tk.builders.attach_rate(rows, one) for one, rows in mine.items()])
rates.index = pd.Index(earned.loc[builders, "fee_bps"].round(1), name="fee_bps")
rates.sort_index().round(2)

# %% [markdown]
# Is the share of the fills different from the share of the volume? If so, small orders are routed
# with a different frequency than large ones.

# %%
by_fills = tk.builders.attach_rate(fills, builder, weight="fills")
by_fills.round(2)

# %% [markdown]
# ## How many users are active, and what is the market share?
#
# What is the builder's share of the routed volume of all listed builders? A user is new in the week
# of the first routed fill, and `retention` is the share of last week's users who came back, with
# Wilson's interval.

# %%
active = tk.builders.activity(once, "week", since=START, until=END)
own = active[active["builder"] == builder]
own.set_index("time")[["active", "new", "retention", "low", "high", "complete"]].round(2)

# %%
tk.plots.builder_activity(own)

# %%
market = active.pivot(index="time", columns="builder", values="volume_share")
market = market[builders].set_axis([one[:8] for one in builders], axis=1)
market.rename_axis("week").map("{:.0%}".format)

# %%
lead = market.idxmax(axis=1)
first = lead.mode()[0]
f"{first} has the largest share of volume in {lead.eq(first).sum()} of {len(lead)} weeks"

# %% [markdown]
# ## When did users approve which builder?
#
# The service has no list of approvals. But a fill that a builder does *not* see was made without an
# approval. So the start and the end of each approval lie between two known times.

# %%
everything = tk.many(tk.user_fills_by_time, fills["user"].unique(), START, END)
funding = tk.builder_approved_funding_by_time(builder, START, END)
spans = tk.builders.approval_spans(fills, everything, funding)
ended = spans[spans["before"].notna()]
ended[["span", "first", "last", "before", "seen"]].reset_index(drop=True)

# %% [markdown]
# ## Do users stay?
#
# The table has users by the week of their first routed fill, and the share that still routes in
# later weeks. The denominator is always the whole cohort. In a week that is not over, the share is
# missing, not low.

# %%
cohorts = tk.builders.cohorts(fills, builder, since=START, until=END)
cohorts.drop(columns=["cohort", "volume"]).round(2)

# %%
tk.plots.builder_cohorts(cohorts)

# %% [markdown]
# `earlier` is a warning: this cohort starts in the first week of the data, so older users look new.
# What would the result be if the unfinished week counted as a full one?

# %%
unfinished = tk.builders.cohorts(fills, builder, since=START, until=NEXT_MONDAY)
unfinished.iloc[-1][["age", "users", "active", "retention", "revenue"]].to_frame("running week")

# %% [markdown]
# ## What is a new user worth?
#
# Users came at different times, and the last ones were observed for a short time only. Each user
# counts only for the weeks in which it was observed.

# %%
value = tk.builders.lifetime_value(fills, builder, weeks=5, until=END)
value.curve.round(2)

# %%
value.plot()

# %% [markdown]
# ## Conclusions

# %%
two = earned["revenue"].nlargest(2).sum() / earned["revenue"].sum()
print(f"two of {len(builders)} builders earn {two:.0%} of all fees;", end=" ")
one_user = users["revenue"].iloc[0] / users["revenue"].sum()
print(f"one user paid {one_user:.0%} of the fees of the largest builder")
rate = rates["rate"].iloc[builders.index(builder)]
print(f"routed to it: {rate:.0%} of the volume, {by_fills['rate'].item():.0%} of the fills")
seen = fills["user"].nunique()
hours = (ended["before"] - ended["last"]).max() / pd.Timedelta("1h")
print(f"{seen - (users['revenue'] > 0).sum()} of {seen} users never routed a fill")
print(f"{len(ended)} approvals ended, each at a time that is known to within {hours:.0f} hours")

# %%
last, unfinished_last = unfinished["revenue"].iloc[-2], unfinished["revenue"].iloc[-1]
worth = value.curve.iloc[2]
print(f"a user pays {worth['value']:.0f} USD within {worth['weeks']:.0f} weeks", end=" ")
print(f"({worth['low']:.0f} to {worth['high']:.0f})")
print(f"counted as a full week, the unfinished one has {unfinished_last / last - 1:+.0%} revenue")

# %% [markdown]
# - A few users may pay most of the revenue. Then a sum says little about the next month.
# - The share by volume and the share by fills answer different questions. A few builders cannot
#   show whether a higher fee causes a lower attach rate.
# - A fill that a builder does not see was made without an approval. Such fills show when an
#   approval began or ended, without a list of approvals.
# - A week that is not over must not count as a full one.
# - If few users were observed for a week of age, the interval of that week is wide.
#
# ## With your own key
#
# Change four lines: `session = tk.connect(...)` in the first cell, `builders` to a list with your
# own address first, and the dates. `START` is a Monday, `END` is today, and `NEXT_MONDAY` is the
# first Monday after `END`. With one builder, the market share is its share of the routed volume of
# its own users. It is 1 only if they use no other builder. The last assert may then fail.
#
# A page of a builder's fills costs 100 points, and the section about approvals also fetches the
# fills of each user. `tk.plan` with `probe=True` estimates what a call costs; the probe requests
# one or two pages.
#
# Fees, users and the ends of approvals come from the simulation, and say nothing about the real
# exchange. On the live service the same cells measure them, and compute their intervals in the same
# way. The asserts about these figures may fail there.

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
assert unfinished["revenue"].iloc[-1] < 0.5 * unfinished["revenue"].iloc[-2]
spread = value.curve["high"] / value.curve["low"]
assert spread.iloc[3] > 1.5 * spread.iloc[2]
assert (own["new"] + own["returning"] == own["active"]).all()
assert (market.sum(axis=1) - 1).abs().max() < 1e-9
