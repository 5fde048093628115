"""The builder report: revenue of a builder, its users, and their other trading.

The notebook ``notebooks/builder.py`` has the prose, and calls these functions.
"""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from toolkit import builders, orders
from toolkit.builders._cohorts import LifetimeValue
from toolkit.client import Session
from toolkit.errors import ReportFailed
from toolkit.fetch.fills import builder_approved_fills_by_time
from toolkit.fetch.markets import with_readable_coins
from toolkit.fetch.orders import builder_orders_by_time
from toolkit.fetch.registry import operation_of
from toolkit.plots import formats
from toolkit.plots.tables import Column, Table, table
from toolkit.reports import blocks, report_frames
from toolkit.reports.sentences import Headline, Sentence, headline, paragraph, say
from toolkit.times import WEEK, Time

_USERS: Final = (
    Column("user", "user", formats.short_address, number=False),
    Column("fills", "fills", formats.whole_number),
    Column("volume", "volume, USD", formats.whole_dollars),
    Column("revenue", "revenue, USD", formats.two_decimals),
    Column("fee_bps", "fee, bps", formats.basis_points),
)
_COINS: Final = (Column("coin", "coin", number=False), *_USERS[1:])
_WEEKS: Final = (Column("week", "week of", formats.utc_day, number=False), *_USERS[1:])
_ENDS: Final = (
    Column("status", "status", number=False),
    Column("orders", "orders", formats.whole_number),
    Column("share", "share", formats.percent_share),
    Column("low", "from", formats.percent_share),
    Column("high", "to", formats.percent_share),
)
_COHORTS: Final = (
    Column("cohort", "week of first trade", formats.utc_day, number=False),
    Column("users", "users", formats.whole_number),
    Column("age", "weeks later", formats.whole_number),
    Column("active", "still trading", formats.whole_number),
    Column("retention", "share", formats.percent_share),
    Column("revenue", "revenue, USD", formats.two_decimals),
)
_VALUES: Final = (
    Column("name", "", number=False),
    Column("estimate", "USD a user", formats.two_decimals),
    Column("low", "from", formats.two_decimals),
    Column("high", "to", formats.two_decimals),
)


class BuilderReport:
    """Fetch everything that a builder report shows; each result is computed once.

    Parameters
    ----------
    session : Session
        The source.
    address : str
        The builder.
    start, end : Time
        The period, both ends inclusive.

    Attributes
    ----------
    fills : DataFrame
        The fills of its users while they had approved it, all of them.
    orders : DataFrame
        Status events of the orders placed through it.

    Raises
    ------
    ReportFailed
        If there are no fills through it.
    """

    def __init__(
        self, session: Session, address: str, start: Time = 0, end: Time | None = None
    ) -> None:
        self.session, self.address = session, address.lower()
        self.period = report_frames.read_period(session, start, end)
        asked, options = (address, *self.period), f"--builder {address}"
        calls = {
            f"{operation_of(call).type} {options}": partial(call, *asked, session=session)
            for call in (builder_approved_fills_by_time, builder_orders_by_time)
        }
        fills, orders = report_frames.fetch_required(session, calls)
        if not (fills["builder"] == self.address).any():
            raise ReportFailed(
                f"there are no fills through {address} in this period. Choose a longer period"
            )
        self.fills, self.orders = (with_readable_coins(each, session) for each in (fills, orders))

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        return {"fills": self.fills, "orders": self.orders}

    def title(self) -> blocks.Block:
        """Return the title of the report."""
        kind, times = "Builder report", [self.fills["time"]]
        return report_frames.make_title(kind, self.address, self.session, self.period, times)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The numbers that sentences state, by the name of their place."""
        route = builders.routing(self.fills, self.address).iloc[0]
        rate = builders.attach_rate(self.fills, self.address).iloc[0]
        users, own = self.fills["user"], self.fills["builder"] == self.address
        return {
            **self._revenue(None).iloc[0],
            "all_volume": route["volume"],
            "could": route["volume"] - route["unroutable_usd"],
            "elsewhere": route["elsewhere_usd"],
            "direct": route["direct_usd"],
            **{name: rate[name] for name in ("rate", "low", "high")},
            "users": users.nunique(),
            "through": users[own].nunique(),
            "unnamed": int(users.isna().sum()),
            "all_fills": len(self.fills),
        }

    @cached_property
    def activity(self) -> pd.DataFrame:
        """New and returning users of each day; fills without a user are left out."""
        rows = builders.activity(self.fills[self.fills["user"].notna()], "day")
        return rows[rows["builder"] == self.address]

    @cached_property
    def cohorts(self) -> pd.DataFrame:
        """Its users by the week of their first trade through it."""
        return builders.cohorts(self.fills, self.address, until=self.period[1])

    @cached_property
    def lifetime(self) -> LifetimeValue:
        """Revenue from a user over time."""
        named = self.fills[self.fills["user"].notna()]
        first_ms = int(self.fills["time"].min().timestamp() * 1000)
        weeks = max(1, min(12, (self.period[1] - first_ms) // WEEK))
        return builders.lifetime_value(named, self.address, weeks=weeks, until=self.period[1])

    def weeks(self) -> pd.DataFrame:
        """Return the volume of the users by route and week."""
        return builders.routing(self.fills, self.address, by="week")

    def periods(self) -> Table:
        """Return revenue by week."""
        return table("Revenue by week.", self._revenue("week"), _WEEKS)

    def headlines(self) -> list[Headline]:
        """Return the headline numbers, the most important first."""
        show = partial(headline, **self.facts)
        ends = "in USD; 95 %: {low:share} to {high:share}"
        direct = "and {direct:dollars} USD without a builder"
        return [
            show("revenue", "{revenue:cents} USD", "builder fees"),
            show("routed volume", "{volume:dollars} USD", "{fills:count fill}"),
            show("fee", "{fee_bps:bps} bps", "of the routed volume"),
            show("share of volume that could be routed", "{rate:share}", ends),
            show("through other builders", "{elsewhere:dollars} USD", direct),
            show("users", "{users:count}", "{through:count} traded through it"),
        ]

    @paragraph
    def summary(self) -> Iterator[Sentence]:
        """Return the results in a few sentences."""
        text = (
            "Users traded {volume:dollars} USD through this builder, and paid {revenue:cents} USD "
            "of builder fees. While they had approved it, its users traded {all_volume:dollars} "
            "USD in total. Of this volume, {could:dollars} USD could have been routed through a "
            "builder. Of the volume that could be routed, {rate:share} was routed through this "
            "builder."
        )
        yield say(text, **self.facts)
        if self.facts["unnamed"]:
            text = (
                "Of the fills {unnamed:count} of {all_fills:count} do not name their user. Tables "
                "by user and by cohort do not contain them."
            )
            yield say(text, **self.facts)

    def top(self, by: str) -> Table:
        """Return the revenue from the ten largest users or coins."""
        rows = self._revenue(by).sort_values("revenue", ascending=False, kind="stable")
        group = "users" if by == "user" else "coins"
        shown = rows.head(10)
        caption = f"The {group} with most revenue, {len(shown)} of {len(rows)}."
        return table(caption, shown, _USERS if by == "user" else _COINS)

    def ends(self) -> Table:
        """Return the last statuses of its orders."""
        rows = orders.mix(self.orders) if len(self.orders) else pd.DataFrame()
        return table("Last statuses of orders placed through it.", rows, _ENDS)

    def retention(self) -> Table:
        """Return the finished weeks of its cohorts."""
        rows = self.cohorts[self.cohorts["complete"]]
        return table("Users by the week of their first trade through it.", rows, _COHORTS)

    def values(self) -> Table:
        """Return the revenue from a user within some weeks."""
        return table("Revenue from a user, on average.", self.lifetime.params, _VALUES)

    def _revenue(self, by: str | None) -> Any:
        return builders.revenue(self.fills, self.address, by=by)
