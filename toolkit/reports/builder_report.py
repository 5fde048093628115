"""The builder report: revenue of a builder, its users, and their other trading.

The notebook ``notebooks/builder.py`` has the prose, and calls these functions.
"""

from dataclasses import dataclass
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
from toolkit.plots import formats
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import TitleBlock
from toolkit.reports.report_frames import fetch_required
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence
from toolkit.reports.tables import TextColumn, TextTable, table
from toolkit.times import WEEK, Time, to_ms

SENTENCES: Final = {
    "traded": "Users traded {volume:dollars} USD through this builder, and paid "
    "{revenue:cents} USD of builder fees.",
    "all": "While they had approved it, its users traded {volume:dollars} USD in total. Of this "
    "volume, {could:dollars} USD could have been routed through a builder.",
    "share": "Of the volume that could be routed, {rate:share} was routed through this builder.",
    "unnamed": "Of the fills {unnamed:count} of {fills:count} do not name their user. Tables by "
    "user and by cohort do not contain them.",
}
HEADLINES: Final = {
    "revenue": ("revenue", "{revenue:cents} USD", "builder fees"),
    "volume": ("routed volume", "{volume:dollars} USD", "{fills:count fill}"),
    "fee": ("fee", "{fee:bps} bps", "of the routed volume"),
    "share": (
        "share of volume that could be routed",
        "{rate:share}",
        "in USD; 95 %: {low:share} to {high:share}",
    ),
    "elsewhere": (
        "through other builders",
        "{elsewhere:dollars} USD",
        "and {direct:dollars} USD without a builder",
    ),
    "users": ("users", "{users:count}", "{through:count} traded through it"),
}
_USERS: Final = (
    TextColumn("user", "user", formats.short_address, number=False),
    TextColumn("fills", "fills", formats.whole_number),
    TextColumn("volume", "volume, USD", formats.whole_dollars),
    TextColumn("revenue", "revenue, USD", tables.usd_text),
    TextColumn("fee_bps", "fee, bps", formats.basis_points),
)
_COINS: Final = (TextColumn("coin", "coin", tables.plain_text, number=False), *_USERS[1:])
_WEEKS: Final = (TextColumn("week", "week of", formats.utc_day, number=False), *_USERS[1:])
_ENDS: Final = (
    TextColumn("status", "status", tables.plain_text, number=False),
    TextColumn("orders", "orders", formats.whole_number),
    TextColumn("share", "share", formats.percent_share),
    TextColumn("low", "from", formats.percent_share),
    TextColumn("high", "to", formats.percent_share),
)
_COHORTS: Final = (
    TextColumn("cohort", "week of first trade", formats.utc_day, number=False),
    TextColumn("users", "users", formats.whole_number),
    TextColumn("age", "weeks later", formats.whole_number),
    TextColumn("active", "still trading", formats.whole_number),
    TextColumn("retention", "share", formats.percent_share),
    TextColumn("revenue", "revenue, USD", tables.usd_text),
)
_VALUES: Final = (
    TextColumn("name", "", tables.plain_text, number=False),
    TextColumn("estimate", "USD a user", tables.usd_text),
    TextColumn("low", "from", tables.usd_text),
    TextColumn("high", "to", tables.usd_text),
)


@dataclass(frozen=True)
class BuilderReport:
    """The frames and results of a builder report.

    - ``address``: the builder
    - ``start_ms``, ``end_ms``: the period, both ends inclusive
    - ``fills``: the fills of its users while they had approved it, all of them
    - ``orders``: status events of the orders placed through it
    - ``source``: label of the source
    - ``simulated``: whether the source is simulated
    """

    address: str
    start_ms: int
    end_ms: int
    fills: pd.DataFrame
    orders: pd.DataFrame
    source: str
    simulated: bool

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        return {"fills": self.fills, "orders": self.orders}

    def title(self) -> TitleBlock:
        """Return the title of the report."""
        period = tables.period_text(self.start_ms, self.end_ms, self.fills["time"])
        line = f"{period} · {self.source}"
        return blocks.title("Builder report", self.address, line, simulated=self.simulated)

    @cached_property
    def total(self) -> pd.Series:
        """Revenue in the whole period."""
        row: pd.Series = self._revenue(None).iloc[0]
        return row

    @cached_property
    def route_row(self) -> pd.Series:
        """Volume of the users by route."""
        row: pd.Series = builders.routing(self.fills, self.address).iloc[0]
        return row

    @cached_property
    def attach_rate(self) -> pd.Series:
        """Share of its users' volume that was routed through it."""
        row: pd.Series = builders.attach_rate(self.fills, self.address).iloc[0]
        return row

    @cached_property
    def activity(self) -> pd.DataFrame:
        """New and returning users of each day; fills without a user are left out."""
        rows = builders.activity(self.fills[self.fills["user"].notna()], "day")
        own: pd.DataFrame = rows[rows["builder"] == self.address]
        return own

    @cached_property
    def cohorts(self) -> pd.DataFrame:
        """Its users by the week of their first trade through it."""
        return builders.cohorts(self.fills, self.address, until=self.end_ms)

    @cached_property
    def lifetime(self) -> LifetimeValue:
        """Revenue from a user over time."""
        named = self.fills[self.fills["user"].notna()]
        first_ms = int(self.fills["time"].min().timestamp() * 1000)
        weeks = max(1, min(12, (self.end_ms - first_ms) // WEEK))
        return builders.lifetime_value(named, self.address, weeks=weeks, until=self.end_ms)

    def weeks(self) -> pd.DataFrame:
        """Return the volume of the users by route and week."""
        rows: pd.DataFrame = builders.routing(self.fills, self.address, by="week")
        return rows

    def periods(self) -> TextTable:
        """Return revenue by week."""
        return table("Revenue by week.", self._revenue("week"), _WEEKS)

    def sentences(self) -> list[Sentence | Headline]:
        """Return every text with numbers in this report, outside of tables and figures."""
        return [*self.summary().sentences, *self.headlines()]

    def headlines(self) -> list[Headline]:
        """Return the headline numbers, the most important first."""
        total, route, rate = self.total, self.route_row, self.attach_rate
        own = self.fills[self.fills["builder"] == self.address]
        return [
            headline(HEADLINES, "revenue", revenue=total["revenue"]),
            headline(HEADLINES, "volume", volume=total["volume"], fills=total["fills"]),
            headline(HEADLINES, "fee", fee=total["fee_bps"]),
            headline(HEADLINES, "share", rate=rate["rate"], low=rate["low"], high=rate["high"]),
            headline(
                HEADLINES, "elsewhere", elsewhere=route["elsewhere_usd"], direct=route["direct_usd"]
            ),
            headline(
                HEADLINES,
                "users",
                users=self.fills["user"].nunique(),
                through=own["user"].nunique(),
            ),
        ]

    def summary(self) -> Paragraph:
        """Return the results in a few sentences."""
        total, route = self.total, self.route_row
        could = route["volume"] - route["unroutable_usd"]
        sentences = [
            sentence(SENTENCES, "traded", volume=total["volume"], revenue=total["revenue"]),
            sentence(SENTENCES, "all", volume=route["volume"], could=could),
            sentence(SENTENCES, "share", rate=self.attach_rate["rate"]),
        ]
        unnamed = int(self.fills["user"].isna().sum())
        if unnamed:
            fills = len(self.fills)
            sentences.append(sentence(SENTENCES, "unnamed", unnamed=unnamed, fills=fills))
        return Paragraph(sentences)

    def top(self, by: str) -> TextTable:
        """Return the revenue from the ten largest users or coins."""
        rows = self._revenue(by).sort_values("revenue", ascending=False, kind="stable")
        group = "users" if by == "user" else "coins"
        shown = rows.head(10)
        caption = f"The {group} with most revenue, {len(shown)} of {len(rows)}."
        return table(caption, shown, _USERS if by == "user" else _COINS)

    def ends(self) -> TextTable:
        """Return the last statuses of its orders."""
        rows = orders.mix(self.orders) if len(self.orders) else pd.DataFrame()
        return table("Last statuses of orders placed through it.", rows, _ENDS)

    def retention(self) -> TextTable:
        """Return the finished weeks of its cohorts."""
        rows = self.cohorts[self.cohorts["complete"]]
        return table("Users by the week of their first trade through it.", rows, _COHORTS)

    def values(self) -> TextTable:
        """Return the revenue from a user within some weeks."""
        return table("Revenue from a user, on average.", self.lifetime.params, _VALUES)

    def _revenue(self, by: str | None) -> Any:
        return builders.revenue(self.fills, self.address, by=by)


def fetch_report(
    session: Session, address: str, start: Time = 0, end: Time | None = None
) -> BuilderReport:
    """Fetch everything that a builder report shows.

    Raise ReportFailed if there are no fills through it.
    """
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    calls = {
        f"builderApprovedFillsByTime --builder {address}": builder_approved_fills_by_time,
        f"builderOrdersByTime --builder {address}": builder_orders_by_time,
    }
    fills, orders = fetch_required(
        session,
        {
            name: partial(call, address, start_ms, end_ms, session=session)
            for name, call in calls.items()
        },
    )
    if not (fills["builder"] == address.lower()).any():
        raise ReportFailed(
            f"there are no fills through {address} in this period. Choose a longer period"
        )
    return BuilderReport(
        address=address.lower(),
        start_ms=start_ms,
        end_ms=end_ms,
        fills=with_readable_coins(fills, session),
        orders=with_readable_coins(orders, session),
        source=session.label,
        simulated=session.simulated,
    )
