"""The builder report: what a builder earns, from whom, and what its users do elsewhere.

Its prose stands in ``notebooks/builder.py``; here is what that notebook calls.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import builders, orders
from toolkit.analysis.builders.cohorts import LifetimeValue
from toolkit.client import Session
from toolkit.errors import ReportFailed
from toolkit.fetch import builder_approved_fills_by_time, builder_orders_by_time
from toolkit.plots import formats
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import Title
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence
from toolkit.reports.tables import Column, Table, table
from toolkit.times import Time, to_iso, to_ms

__all__ = ["Builder", "gather"]

SENTENCES: Final = {
    "traded": "Through this builder {volume:dollars} USD were traded, for {revenue:cents} USD of "
    "builder fees.",
    "all": "While they had approved it, its users traded {volume:dollars} USD in all, of which "
    "{could:dollars} USD could have gone through a builder.",
    "share": "Of what could have, {rate:share} went through this one.",
    "unnamed": "Of the fills {unnamed:count} of {fills:count} do not name their user: what stands "
    "by user or cohort is without them.",
}
HEADLINES: Final = {
    "revenue": ("revenue", "{revenue:cents} USD", "builder fees"),
    "volume": ("routed volume", "{volume:dollars} USD", "{fills:count} fills"),
    "fee": ("fee", "{fee:bps} bps", "of the routed volume"),
    "share": (
        "share of what could go through it",
        "{rate:share}",
        "in USD; 95 %: {low:share} to {high:share}",
    ),
    "elsewhere": (
        "through other builders",
        "{elsewhere:dollars} USD",
        "and {direct:dollars} USD through none",
    ),
    "users": ("users", "{users:count}", "{through:count} traded through it"),
}
_USERS: Final = (
    Column("user", "user", formats.short_address, number=False),
    Column("fills", "fills", formats.whole_number),
    Column("volume", "volume, USD", formats.whole_dollars),
    Column("revenue", "revenue, USD", tables.cents),
    Column("fee_bps", "fee, bps", formats.basis_points),
)
_COINS: Final = (Column("coin", "coin", tables.text, number=False), *_USERS[1:])
_WEEKS: Final = (Column("week", "week of", formats.utc_day, number=False), *_USERS[1:])
_ENDS: Final = (
    Column("status", "status", tables.text, number=False),
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
    Column("revenue", "revenue, USD", tables.cents),
)
_VALUES: Final = (
    Column("name", "", tables.text, number=False),
    Column("estimate", "USD a user", tables.cents),
    Column("low", "from", tables.cents),
    Column("high", "to", tables.cents),
)


@dataclass(frozen=True)
class Builder:
    """What a builder report is made of.

    Attributes
    ----------
    address : str
        The builder.
    start_ms, end_ms : int
        The period, both ends inclusive.
    fills : DataFrame
        The fills of its users while they had approved it, through it and elsewhere.
    orders : DataFrame
        Status events of the orders placed through it.
    source : str
        What the session calls its source.
    simulated : bool
        Whether the source is invented.
    """

    address: str
    start_ms: int
    end_ms: int
    fills: pd.DataFrame
    orders: pd.DataFrame
    source: str
    simulated: bool

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Give what was fetched, by name, for the provenance."""
        return {"fills": self.fills, "orders": self.orders}

    def title(self) -> Title:
        """Head the report."""
        first, last = (to_iso(ms)[:16].replace("T", " ") for ms in (self.start_ms, self.end_ms))
        if self.start_ms == 0:
            first = f"{self.fills['time'].min():%Y-%m-%d %H:%M}"
        line = f"{first} to {last} UTC · {self.source}"
        return blocks.title("Builder report", self.address, line, simulated=self.simulated)

    @cached_property
    def whole(self) -> pd.Series:
        """Revenue of the whole period."""
        row: pd.Series = self._revenue(None).iloc[0]
        return row

    @cached_property
    def routing(self) -> pd.Series:
        """Where the users' volume went."""
        row: pd.Series = builders.routing(self.fills, self.address).iloc[0]
        return row

    @cached_property
    def attached(self) -> pd.Series:
        """Which share of its users' volume went through it."""
        row: pd.Series = builders.attach_rate(self.fills, self.address).iloc[0]
        return row

    @cached_property
    def cohorts(self) -> pd.DataFrame:
        """Its users by the week of their first trade through it."""
        return builders.cohorts(self.fills, self.address, until=self.end_ms)

    @cached_property
    def lifetime(self) -> LifetimeValue:
        """What a user brings in the end."""
        named = self.fills[self.fills["user"].notna()]
        weeks = max(1, min(12, (self.end_ms - self._first()) // (7 * 86_400_000)))
        return builders.lifetime_value(named, self.address, weeks=weeks, until=self.end_ms)

    def weeks(self) -> pd.DataFrame:
        """Give where the users' volume went, by week."""
        rows: pd.DataFrame = builders.routing(self.fills, self.address, by="week")
        return rows

    def periods(self) -> Table:
        """Write revenue by week."""
        return table("Revenue by week.", self._revenue("week"), _WEEKS)

    def sentences(self) -> list[Sentence | Headline]:
        """Return all that this report says with numbers, outside of tables and figures."""
        return [*self.summary().sentences, *self.headlines()]

    def headlines(self) -> list[Headline]:
        """Return the headline numbers, the most important first."""
        whole, routing, attached = self.whole, self.routing, self.attached
        own = self.fills[self.fills["builder"] == self.address]
        return [
            headline(HEADLINES, "revenue", revenue=whole["revenue"]),
            headline(HEADLINES, "volume", volume=whole["volume"], fills=whole["fills"]),
            headline(HEADLINES, "fee", fee=whole["fee_bps"]),
            headline(
                HEADLINES,
                "share",
                rate=attached["rate"],
                low=attached["low"],
                high=attached["high"],
            ),
            headline(
                HEADLINES,
                "elsewhere",
                elsewhere=routing["elsewhere_usd"],
                direct=routing["direct_usd"],
            ),
            headline(
                HEADLINES,
                "users",
                users=self.fills["user"].nunique(),
                through=own["user"].nunique(),
            ),
        ]

    def summary(self) -> Paragraph:
        """Return the result in a few sentences."""
        whole, routing = self.whole, self.routing
        could = routing["volume"] - routing["unroutable_usd"]
        said = [
            sentence(SENTENCES, "traded", volume=whole["volume"], revenue=whole["revenue"]),
            sentence(SENTENCES, "all", volume=routing["volume"], could=could),
            sentence(SENTENCES, "share", rate=self.attached["rate"]),
        ]
        unnamed = int(self.fills["user"].isna().sum())
        if unnamed:
            fills = len(self.fills)
            said.append(sentence(SENTENCES, "unnamed", unnamed=unnamed, fills=fills))
        return Paragraph(said)

    def top(self, by: str) -> Table:
        """Write the revenue of the ten largest users or coins."""
        rows = self._revenue(by).sort_values("revenue", ascending=False, kind="stable")
        many = "users" if by == "user" else "coins"
        shown = rows.head(10)
        caption = f"The {many} that brought most, {len(shown)} of {len(rows)}."
        return table(caption, shown, _USERS if by == "user" else _COINS)

    def ends(self) -> Table:
        """Write how its orders ended."""
        rows = orders.mix(self.orders) if len(self.orders) else pd.DataFrame()
        return table("How orders placed through it ended.", rows, _ENDS)

    def retention(self) -> Table:
        """Write the weeks of its cohorts that are over."""
        rows = self.cohorts[self.cohorts["complete"]]
        return table("Users by the week of their first trade through it.", rows, _COHORTS)

    def values(self) -> Table:
        """Write what a user brings within some weeks."""
        return table("What a user brings, on average.", self.lifetime.params, _VALUES)

    def _revenue(self, by: str | None) -> Any:
        return builders.revenue(self.fills, self.address, by=by)

    def _first(self) -> int:
        return int(self.fills["time"].min().timestamp() * 1000)


def gather(session: Session, address: str, start: Time = 0, end: Time | None = None) -> Builder:
    """Fetch everything that a builder report shows.

    Raises
    ------
    ReportFailed
        If nobody traded through it.
    """
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    fills = builder_approved_fills_by_time(address, start_ms, end_ms, session=session)
    if not (fills["builder"] == address.lower()).any():
        raise ReportFailed(f"nobody traded through {address} in this period")
    return Builder(
        address=address.lower(),
        start_ms=start_ms,
        end_ms=end_ms,
        fills=fills,
        orders=builder_orders_by_time(address, start_ms, end_ms, session=session),
        source=session.label,
        simulated=session.simulated,
    )
