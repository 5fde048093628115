"""The market report: what a perp costs to trade, when, and what its book holds.

Its prose stands in ``notebooks/market.py``; here is what that notebook calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit.analysis import depth as depths
from toolkit.analysis import slippage, twaps
from toolkit.analysis.slippage import SlippageFit
from toolkit.analysis.slippage_fit import LARGE_MISFIT
from toolkit.client import Session
from toolkit.contract.dexes import coin_dex, join, name_in, native_bare
from toolkit.errors import ReportFailed
from toolkit.fetch import (
    current_depth,
    meta_and_asset_ctxs,
    perp_dex_limits,
    perp_twap_snapshots,
)
from toolkit.plots import texts
from toolkit.plots.style import short_usd
from toolkit.plots.texts import dollars
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import Headline, Title
from toolkit.reports.material import left_out, samples_of, shown
from toolkit.reports.tables import Column, Table, table
from toolkit.times import Time, iso, to_ms

__all__ = ["Market", "gather"]

_SIZE: Final = 100_000.0  # USD, of the headline
_BPS: Final = 10.0  # of the headline
_HOURS: Final = 24 * 365

_COSTS: Final = (
    Column("amount_usd", "size, USD", texts.count),
    Column("side", "side", tables.text, number=False),
    Column("median", "median, bps", texts.bps),
    Column("cost_bps", "expected, bps", texts.bps),
    Column("low", "from", texts.bps),
    Column("high", "to", texts.bps),
    Column("cost_usd", "expected, USD", tables.cents),
    Column("missing_share", "book too thin", texts.share),
)
_TWAPS: Final = (
    Column("address", "account", texts.short, number=False),
    Column("twap_id", "id", tables.text, number=False),
    Column("direction", "side", tables.text, number=False),
    Column("total_sz", "size", texts.number),
    Column("remaining_sz", "still to trade", texts.number),
    Column("progress_pct", "done, %", texts.bps),
    Column("state", "state", tables.text, number=False),
)


@dataclass(frozen=True)
class Market:
    """What a market report is made of.

    Attributes
    ----------
    coin : str
        The perp.
    start_ms, end_ms : int
        Period of the slippage samples, both ends inclusive.
    context : DataFrame
        Its row of ``meta_and_asset_ctxs``.
    samples : DataFrame
        Slippage samples of all sizes.
    depth, running : DataFrame or None
        Its book now, and the TWAP orders on it; None where the service does not show them.
    limits : tuple or None
        Limits of a builder-deployed dex, None on the native one.
    source : str
        What the session calls its source.
    simulated : bool
        Whether the source is invented.
    lacking : mapping of str to str
        What the source, as an archive, does not have of all that -> why.
    """

    coin: str
    start_ms: int
    end_ms: int
    context: pd.DataFrame
    samples: pd.DataFrame
    depth: pd.DataFrame | None
    running: pd.DataFrame | None
    limits: Any
    source: str
    simulated: bool
    lacking: Mapping[str, str] = field(default_factory=dict)

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Give what was fetched, by name, for the provenance."""
        return {
            "market": self.context,
            "slippage": self.samples,
            "depth": self.depth,
            "TWAPs": self.running,
            "limits": None if self.limits is None else self.limits.dex,
        }

    def title(self) -> Title:
        """Head the report."""
        first, last = (iso(ms)[:16].replace("T", " ") for ms in (self.start_ms, self.end_ms))
        line = f"slippage from {first} to {last} UTC · {self.source}"
        return blocks.title("Market report", self.coin, line, simulated=self.simulated)

    @cached_property
    def fit(self) -> SlippageFit:
        """The fitted cost of a size."""
        return slippage.fit(self.samples)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Quantiles of slippage by size and side."""
        made: pd.DataFrame = slippage.curve(self.samples)
        return made

    @cached_property
    def heat(self) -> pd.DataFrame:
        """Median slippage of the headline's size by hour of the week."""
        size = self.samples[self.samples["amount_usd"] == _SIZE]
        made: pd.DataFrame = slippage.heatmap(size)
        return made

    @cached_property
    def book(self) -> pd.DataFrame:
        """Depth by distance from mid; empty where the service does not show it."""
        if self.depth is None:
            return pd.DataFrame()
        made: pd.DataFrame = depths.profile(self.depth)
        return made

    @cached_property
    def pressure(self) -> pd.Series | None:
        """What TWAP orders will still buy and sell; None where there are none."""
        if self.running is None or self.running.empty:
            return None
        row: pd.Series = twaps.pressure(self.running, self.context).iloc[0]
        return row

    def cost(self, side: str) -> pd.Series:
        """Give the expected cost of the headline's size: the mean of its samples."""
        row: pd.Series = slippage.cost(self.fit, _SIZE, side=side).iloc[0]
        return row

    def capacity(self, side: str) -> pd.Series:
        """Give the largest size within the headline's bound."""
        row: pd.Series = slippage.capacity(self.fit, _BPS, side=side).iloc[0]
        return row

    def headlines(self) -> list[Headline]:
        """Give the headline numbers, the most important first."""
        now = self.context.iloc[0]
        buy, room = self.cost("buy"), self.capacity("buy")
        note = f"95 %: {texts.bps(buy['low'])} to {texts.bps(buy['high'])}"
        interest = now["open_interest"] * now["mark_px"]
        half = self.curve["half_spread_bps"].median()
        return [
            Headline(f"buying {short_usd(_SIZE)} USD", f"{texts.bps(buy['cost_bps'])} bps", note),
            Headline(f"within {_BPS:g} bps", f"{dollars(room['capacity_usd'])} USD", _far(room)),
            Headline("half spread", f"{texts.bps(half)} bps", "median of the samples"),
            Headline("mark price", texts.number(now["mark_px"]), "USD"),
            Headline("open interest", f"{dollars(interest)} USD", "at the mark price"),
            Headline(
                "funding, now",
                f"{now['funding'] * _HOURS:+.1%}".replace("%", " %").replace("-", "\N{MINUS SIGN}"),
                "a year; positive: longs pay",
            ),
        ]

    def summary(self) -> str:
        """Tell the result in a few sentences."""
        buy, sell = self.cost("buy"), self.cost("sell")
        words = (
            f"Buying {short_usd(_SIZE)} USD of {self.coin} at once costs {_bps(buy)} against the "
            f"mid price on average, selling it {_bps(sell)}. "
        )
        params = self.fit.params
        exponent = params[(params["side"] == "buy") & (params["name"] == "k")].iloc[0]
        apart = self.fit.groups.set_index("side")["misfit"]["buy"]
        if apart > LARGE_MISFIT:
            words += (
                "Cost does not grow as one power of size: the best that fits misses the mean of a "
                f"sampled size by {texts.share(apart)}."
            )
        else:
            words += (
                "Beyond half the spread, cost grows as size to the power of "
                f"{exponent['estimate']:.2f} (95 %: {exponent['low']:.2f} to "
                f"{exponent['high']:.2f})."
            )
        missing = self.curve.sort_values("missing_share", ascending=False, kind="stable").iloc[0]
        if missing["missing_share"] > 0:
            words += (
                f" The book was too thin for {short_usd(missing['amount_usd'])} USD in "
                f"{texts.share(missing['missing_share'])} of the samples."
            )
        return words + left_out(self.lacking)

    def twap_words(self) -> str:
        """Tell what TWAP orders will still do."""
        if self.running is None:
            return "The service shows no TWAP order of this market."
        row = self.pressure
        if row is None or not row["orders"]:
            return "No TWAP order runs on this market now."
        return (
            f"{texts.count(row['orders'])} TWAP orders run on this market. They will still buy "
            f"{dollars(row['buy_usd'])} USD and sell {dollars(row['sell_usd'])} USD at the "
            f"mark price, {tables.signed_usd(row['net_usd_per_hour'])} USD an hour net."
        )

    def costs(self) -> Table:
        """Write what each size costs: median and mean of its samples."""
        sizes = sorted(self.curve["amount_usd"].unique())
        means = slippage.cost(self.fit, sizes)
        median = self.curve.rename(columns={"q50": "median"})
        keys = ["amount_usd", "side"]
        rows = means.merge(median[[*keys, "median", "missing_share"]], on=keys)
        rows = rows.sort_values(keys, kind="stable")
        return table("What a size costs at once, against mid.", rows, _COSTS)

    def orders(self) -> Table:
        """Write the TWAP orders with most left to trade."""
        rows = pd.DataFrame() if self.running is None else self.running
        if len(rows):
            rows = rows.sort_values("remaining_sz", ascending=False, kind="stable").head(10)
            rows = rows.assign(
                direction=rows["is_buy"].map({True: "buy", False: "sell"}),
                state=rows["waiting"].map({True: "waits", False: "runs"}),
            )
        return table("TWAP orders with most left to trade.", rows, _TWAPS)

    def limit_words(self) -> str:
        """Tell the limits of a builder-deployed dex."""
        if self.limits is None and coin_dex(self.coin):
            return "The source does not have the limits of this dex."
        if self.limits is None:
            return "The native dex has no limits of this kind."
        dex, coins = self.limits.dex.iloc[0], self.limits.coins
        cap = coins.loc[coins["coin"] == self.coin, "oi_cap"]
        words = f"All markets of this dex together may hold {dollars(dex['total_oi_cap'])} USD "
        words += f"of open interest; one transfer may move {dollars(dex['max_transfer_ntl'])}."
        if len(cap):
            words += f" This market may hold {dollars(cap.iloc[0])} USD."
        return words


def gather(session: Session, coin: str, start: Time = "30d", end: Time | None = None) -> Market:
    """Fetch everything that a market report shows.

    Raises
    ------
    ReportFailed
        If there is no such perp, or it has no slippage samples in the period.
    """
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    coin = native_bare(coin)
    dex = coin_dex(coin)
    listed = meta_and_asset_ctxs(dex=dex, session=session)
    context = listed[listed["name"] == coin].reset_index(drop=True)
    if context.empty:
        names = ", ".join(listed["name"].head(12))
        where = name_in("rows", dex)
        raise ReportFailed(f"there is no perp {coin} on dex {where}; it has {names}, ...")
    samples = samples_of(session, coin, start_ms, end_ms)
    if samples.empty:
        raise ReportFailed(f"there are no slippage samples of {coin} in this period")
    lacking: dict[str, str] = {}
    depth = shown(lacking, "its book", current_depth, dex=dex, session=session)
    running = shown(lacking, "TWAP orders", perp_twap_snapshots, [coin], session=session)
    limits = shown(lacking, "limits", perp_dex_limits, dex, session=session) if dex else None
    return Market(
        coin=coin,
        start_ms=start_ms,
        end_ms=end_ms,
        context=context,
        samples=samples,
        depth=None if depth is None else _of_market(depth, dex, coin),
        running=running,
        limits=limits,
        source=session.label,
        simulated=session.simulated,
        lacking=lacking,
    )


def _of_market(depth: pd.DataFrame, dex: str, coin: str) -> pd.DataFrame:
    """Return the rows of one market; depth may or may not write the dex in front of a coin."""
    names = depth["coin"].map(lambda name: join(dex, name))
    return depth[names == coin].reset_index(drop=True)


def _bps(cost: pd.Series) -> str:
    return (
        f"{texts.bps(cost['cost_bps'])} bps (95 %: {texts.bps(cost['low'])} to "
        f"{texts.bps(cost['high'])})"
    )


def _far(room: pd.Series) -> str:
    words = {"above": "beyond the largest size sampled", "below": "below the smallest size sampled"}
    return words.get(str(room["range"]), "the largest order, buying")
