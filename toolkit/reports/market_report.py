"""The market report: the cost of trading a perp, its book, liquidations and positioning.

The notebook ``notebooks/market.py`` has the prose, and calls these functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from toolkit import depth as depths
from toolkit import slippage, twaps
from toolkit.client import Session
from toolkit.contract.dexes import coin_dex, dex_name_in, join_coin
from toolkit.errors import BadRequest, ReportFailed
from toolkit.fetch.market import current_depth, perp_dex_limits
from toolkit.fetch.markets import market_code
from toolkit.fetch.snapshots import perp_twap_snapshots
from toolkit.plots import formats
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import TitleBlock
from toolkit.reports.position_frames import PositionFrames, fetch_positions
from toolkit.reports.report_frames import fetch_markets, fetch_optional, join_reasons
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence
from toolkit.reports.tables import TextColumn, TextTable, table
from toolkit.slippage._fit import LARGE_MISFIT, SlippageFit
from toolkit.times import Time, to_ms

_SIZE: Final = 100_000.0  # USD, of the headline
_BPS: Final = 10.0  # of the headline
_HOURS: Final = 24 * 365

SENTENCES: Final = {
    "cost": "Buying {size:short_usd} USD of {coin} at once costs {buy:bps} bps (95 %: "
    "{buy_low:bps} to {buy_high:bps}) against the mid price on average, selling it {sell:bps} bps "
    "(95 %: {sell_low:bps} to {sell_high:bps}).",
    "misfit": "Cost does not grow as one power of size: the best fit misses the mean of a sampled "
    "size by {misfit:share}.",
    "power": "Beyond half the spread, cost grows as size to the power of {power:power} (95 %: "
    "{low:power} to {high:power}).",
    "thin": "The book was too thin for {size:short_usd} USD in {share:share} of the samples.",
    "left_out": "The source does not have these data, and the report leaves them out: {what}.",
    "twaps_hidden": "The service has no TWAP orders of this market.",
    "twaps_none": "No TWAP order runs on this market now.",
    "twaps": "{orders:count TWAP order runs|TWAP orders run} on this market.",
    "twap_flow": "They will still buy {buy:dollars} USD and sell {sell:dollars} USD at the mark "
    "price, {net:signed} USD an hour net.",
    "limits_unknown": "The source does not have the limits of this dex.",
    "limits_absent": "The service states no limits for this dex.",
    "limits_none": "The native dex has no such limits.",
    "dex_limits": "Open interest of all markets of this dex together may be at most "
    "{interest:dollars} USD; one transfer may move at most {transfer:dollars} USD.",
    "coin_limit": "Open interest of this market may be at most {cap:dollars} USD.",
}
HEADLINES: Final = {
    "buying": (
        "buying {size:short_usd} USD",
        "{cost:bps} bps",
        "mean against mid; 95 %: {low:bps} to {high:bps}",
    ),
    "capacity": (
        "largest order to buy for {bps:number} bps or less",
        "{room:capacity}",
        "by the mean cost against mid",
    ),
    "half_spread": ("half spread", "{half:bps} bps", "median of the samples"),
    "mark": ("mark price", "{px:number}", "USD"),
    "interest": ("open interest", "{usd:dollars} USD", "at the mark price"),
    "funding": ("funding now", "{yearly:rate}", "a year; positive: longs pay"),
}
_COSTS: Final = (
    TextColumn("amount_usd", "size, USD", formats.whole_number),
    TextColumn("side", "side", tables.plain_text, number=False),
    TextColumn("median", "median, bps", formats.basis_points),
    TextColumn("cost_bps", "expected, bps", formats.basis_points),
    TextColumn("low", "from", formats.basis_points),
    TextColumn("high", "to", formats.basis_points),
    TextColumn("cost_usd", "expected, USD", tables.usd_text),
    TextColumn("missing_share", "book too thin", formats.percent_share),
)
_TWAPS: Final = (
    TextColumn("address", "account", formats.short_address, number=False),
    TextColumn("twap_id", "id", tables.plain_text, number=False),
    TextColumn("direction", "side", tables.plain_text, number=False),
    TextColumn("total_sz", "size", formats.exact_number),
    TextColumn("remaining_sz", "remaining size", formats.exact_number),
    TextColumn("progress_pct", "done, %", formats.basis_points),
    TextColumn("state", "state", tables.plain_text, number=False),
)


@dataclass(frozen=True)
class MarketReport:
    """The frames and results of a market report.

    - ``coin``: the perp
    - ``start_ms``, ``end_ms``: period of the slippage samples, both ends inclusive
    - ``context``: its row of ``meta_and_asset_ctxs``
    - ``samples``: slippage samples of all sizes
    - ``depth``, ``running``: its book now, and its TWAP orders; None if the service does not show
      them
    - ``limits``: limits of a builder-deployed dex, None on the native one
    - ``accounts``: positions of accounts on its dex
    - ``source``: label of the source
    - ``simulated``: whether the source is simulated
    - ``missing_reasons``: data that the source, such as an archive, does not have -> the reason
    """

    coin: str
    start_ms: int
    end_ms: int
    context: pd.DataFrame
    samples: pd.DataFrame
    depth: pd.DataFrame | None
    running: pd.DataFrame | None
    limits: Any
    accounts: PositionFrames
    source: str
    simulated: bool
    missing_reasons: Mapping[str, str] = field(default_factory=dict)

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        return {
            "market": self.context,
            "slippage": self.samples,
            "depth": self.depth,
            "TWAPs": self.running,
            "limits": None if self.limits is None else self.limits.dex,
            **self.accounts.list_sources(),
        }

    def title(self) -> TitleBlock:
        """Return the title of the report."""
        period = tables.period_text(self.start_ms, self.end_ms)
        line = f"slippage from {period} · {self.source}"
        return blocks.title("Market report", self.coin, line, simulated=self.simulated)

    @cached_property
    def fit(self) -> SlippageFit:
        """The fitted cost of a size."""
        return slippage.fit(self.samples)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Quantiles of slippage by size and side."""
        curve: pd.DataFrame = slippage.curve(self.samples)
        return curve

    @cached_property
    def heat(self) -> pd.DataFrame:
        """Median slippage of the headline's size by hour of the week."""
        size = self.samples[self.samples["amount_usd"] == _SIZE]
        heatmap: pd.DataFrame = slippage.heatmap(size)
        return heatmap

    @cached_property
    def book(self) -> pd.DataFrame:
        """Depth by distance from mid; empty if the service does not show it."""
        if self.depth is None:
            return pd.DataFrame()
        profile: pd.DataFrame = depths.profile(self.depth)
        return profile

    @cached_property
    def pressure(self) -> pd.Series | None:
        """Remaining sizes of TWAP orders; None if there are none."""
        if self.running is None or self.running.empty:
            return None
        row: pd.Series = twaps.pressure(self.running, self.context).iloc[0]
        return row

    def cost(self, side: str) -> pd.Series:
        """Return the expected cost of the headline's size: the mean of its samples."""
        row: pd.Series = slippage.cost(self.fit, _SIZE, side=side).iloc[0]
        return row

    def capacity(self, side: str) -> pd.Series:
        """Return the largest size that costs at most the headline's limit."""
        row: pd.Series = slippage.capacity(self.fit, _BPS, side=side).iloc[0]
        return row

    def sentences(self) -> list[Sentence | Headline]:
        """Return every text with numbers in this report, outside of tables and figures."""
        return [
            *self.headlines(),
            *self.summary().sentences,
            *self.describe_twaps().sentences,
            *self.describe_limits().sentences,
        ]

    def headlines(self) -> list[Headline]:
        """Return the headline numbers, the most important first."""
        now = self.context.iloc[0]
        buy, room = self.cost("buy"), self.capacity("buy")
        known = ("capacity_usd", "range", "smallest_usd", "largest_usd")
        return [
            headline(
                HEADLINES,
                "buying",
                size=_SIZE,
                cost=buy["cost_bps"],
                low=buy["low"],
                high=buy["high"],
            ),
            headline(HEADLINES, "capacity", bps=_BPS, room={name: room[name] for name in known}),
            headline(HEADLINES, "half_spread", half=self.curve["half_spread_bps"].median()),
            headline(HEADLINES, "mark", px=now["mark_px"]),
            headline(HEADLINES, "interest", usd=now["open_interest"] * now["mark_px"]),
            headline(HEADLINES, "funding", yearly=now["funding"] * _HOURS),
        ]

    def summary(self) -> Paragraph:
        """Return the results in a few sentences."""
        buy, sell = self.cost("buy"), self.cost("sell")
        sentences = [
            sentence(
                SENTENCES,
                "cost",
                size=_SIZE,
                coin=self.coin,
                buy=buy["cost_bps"],
                buy_low=buy["low"],
                buy_high=buy["high"],
                sell=sell["cost_bps"],
                sell_low=sell["low"],
                sell_high=sell["high"],
            )
        ]
        params = self.fit.params
        power = params[(params["side"] == "buy") & (params["name"] == "k")].iloc[0]
        misfit = self.fit.groups.set_index("side")["misfit"]["buy"]
        if misfit > LARGE_MISFIT:
            sentences.append(sentence(SENTENCES, "misfit", misfit=misfit))
        else:
            ends = {"low": power["low"], "high": power["high"]}
            sentences.append(sentence(SENTENCES, "power", power=power["estimate"], **ends))
        thin = self.curve.sort_values("missing_share", ascending=False, kind="stable").iloc[0]
        if thin["missing_share"] > 0:
            share = thin["missing_share"]
            sentences.append(sentence(SENTENCES, "thin", size=thin["amount_usd"], share=share))
        if self.missing_reasons:
            sentences.append(
                sentence(SENTENCES, "left_out", what=join_reasons(self.missing_reasons))
            )
        return Paragraph(sentences)

    def describe_twaps(self) -> Paragraph:
        """Return the remaining trading of TWAP orders."""
        if self.running is None:
            return Paragraph([sentence(SENTENCES, "twaps_hidden")])
        row = self.pressure
        if row is None or not row["orders"]:
            return Paragraph([sentence(SENTENCES, "twaps_none")])
        flow = {"buy": row["buy_usd"], "sell": row["sell_usd"], "net": row["net_usd_per_hour"]}
        return Paragraph(
            [
                sentence(SENTENCES, "twaps", orders=row["orders"]),
                sentence(SENTENCES, "twap_flow", **flow),
            ]
        )

    def costs(self) -> TextTable:
        """Return the cost of each size: median and mean of its samples."""
        sizes = sorted(self.curve["amount_usd"].unique())
        means = slippage.cost(self.fit, sizes)
        median = self.curve.rename(columns={"q50": "median"})
        keys = ["amount_usd", "side"]
        rows = means.merge(median[[*keys, "median", "missing_share"]], on=keys)
        rows = rows.sort_values(keys, kind="stable")
        return table("Cost of a size at once, against mid.", rows, _COSTS)

    def orders(self) -> TextTable:
        """Return the TWAP orders with the largest remaining sizes."""
        rows = pd.DataFrame() if self.running is None else self.running
        if len(rows):
            rows = rows.sort_values("remaining_sz", ascending=False, kind="stable").head(10)
            rows = rows.assign(
                direction=rows["is_buy"].map({True: "buy", False: "sell"}),
                state=rows["waiting"].map({True: "waits", False: "runs"}),
            )
        return table("TWAP orders with the largest remaining sizes.", rows, _TWAPS)

    def describe_limits(self) -> Paragraph:
        """Return the limits of a builder-deployed dex."""
        if self.limits is None:
            name = "limits_unknown" if coin_dex(self.coin) else "limits_none"
            return Paragraph([sentence(SENTENCES, name)])
        if self.limits.dex.empty:
            return Paragraph([sentence(SENTENCES, "limits_absent")])
        dex, coins = self.limits.dex.iloc[0], self.limits.coins
        cap = coins.loc[coins["coin"] == self.coin, "oi_cap"]
        limits = {"interest": dex["total_oi_cap"], "transfer": dex["max_transfer_ntl"]}
        sentences = [sentence(SENTENCES, "dex_limits", **limits)]
        if len(cap):
            sentences.append(sentence(SENTENCES, "coin_limit", cap=cap.iloc[0]))
        return Paragraph(sentences)


def fetch_report(
    session: Session,
    coin: str,
    start: Time = "30d",
    end: Time | None = None,
    accounts: Sequence[str] | None = None,
) -> MarketReport:
    """Fetch everything that a market report shows.

    - ``accounts``: addresses of accounts whose positions count, as for `fetch_positions`

    Raise ReportFailed if there is no such perp, or it has no slippage samples in the period.
    """
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    try:
        coin = market_code(session, coin)
    except BadRequest as error:
        raise ReportFailed(str(error)) from None
    dex = coin_dex(coin)
    context, by_coin = fetch_markets(
        session, dex, partial(_select_market, coin), [coin], start_ms, end_ms
    )
    samples = by_coin[coin]
    if samples.empty:
        raise ReportFailed(
            f"there are no slippage samples of {coin} in this period. Choose a longer period"
        )
    missing_reasons: dict[str, str] = {}
    depth = fetch_optional(missing_reasons, "its book", current_depth, dex=dex, session=session)
    running = fetch_optional(
        missing_reasons, "TWAP orders", perp_twap_snapshots, [coin], session=session
    )
    limits = (
        fetch_optional(missing_reasons, "limits", perp_dex_limits, dex, session=session)
        if dex
        else None
    )
    return MarketReport(
        coin=coin,
        start_ms=start_ms,
        end_ms=end_ms,
        context=context,
        samples=samples,
        depth=None if depth is None else _market_rows(depth, dex, coin),
        running=running,
        limits=limits,
        accounts=fetch_positions(session, coin, accounts, missing_reasons),
        source=session.label,
        simulated=session.simulated,
        missing_reasons=missing_reasons,
    )


def _select_market(coin: str, listed: pd.DataFrame) -> pd.DataFrame:
    context = listed[listed["name"] == coin].reset_index(drop=True)
    if context.empty:
        names = ", ".join(listed["name"].head(12))
        dex = dex_name_in("rows", coin_dex(coin))
        raise ReportFailed(f"there is no perp {coin} on dex {dex}; choose one of {names}, ...")
    return context


def _market_rows(depth: pd.DataFrame, dex: str, coin: str) -> pd.DataFrame:
    """Return the rows of one market; depth may or may not write the dex in front of a coin."""
    names = depth["coin"].map(lambda name: join_coin(dex, name))
    return depth[names == coin].reset_index(drop=True)
