"""The market report: the cost of trading a perp, its book, liquidations and positioning.

The notebook ``notebooks/market.py`` has the prose, and calls these functions.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from toolkit import depth as depths
from toolkit import slippage, twaps
from toolkit.client import Session
from toolkit.contract.dexes import coin_dex, dex_name_in
from toolkit.errors import BadRequest, ReportFailed
from toolkit.fetch.market import perp_dex_limits
from toolkit.fetch.markets import market_code
from toolkit.fetch.snapshots import perp_twap_snapshots
from toolkit.plots import formats
from toolkit.plots.tables import Column, Table, table
from toolkit.reports import blocks, report_frames
from toolkit.reports.sentences import Headline, Sentence, headline, paragraph, say
from toolkit.slippage._fit import LARGE_MISFIT, SlippageFit
from toolkit.times import Time

_SIZE: Final = 100_000.0  # USD, of the headline
_BPS: Final = 10.0  # of the headline
_HOURS: Final = 24 * 365
_ROOM: Final = ("capacity_usd", "range", "smallest_usd", "largest_usd")

_COSTS: Final = (
    Column("amount_usd", "size, USD", formats.whole_number),
    Column("side", "side", number=False),
    Column("median", "median, bps", formats.basis_points),
    Column("cost_bps", "expected, bps", formats.basis_points),
    Column("low", "from", formats.basis_points),
    Column("high", "to", formats.basis_points),
    Column("cost_usd", "expected, USD", formats.two_decimals),
    Column("missing_share", "book too thin", formats.percent_share),
)
_TWAPS: Final = (
    Column("address", "account", formats.short_address, number=False),
    Column("twap_id", "id", number=False),
    Column("direction", "side", number=False),
    Column("total_sz", "size", formats.exact_number),
    Column("remaining_sz", "remaining size", formats.exact_number),
    Column("progress_pct", "done, %", formats.basis_points),
    Column("state", "state", number=False),
)


class MarketReport:
    """Fetch everything that a market report shows; each result is computed once.

    Parameters
    ----------
    session : Session
        The source.
    coin : str
        The perp.
    start, end : Time
        Period of the slippage samples, both ends inclusive.
    accounts : sequence of str, optional
        Addresses of accounts whose positions count, as for `fetch_positions`.

    Attributes
    ----------
    context, samples : DataFrame
        Its row of ``meta_and_asset_ctxs``, and the slippage samples of all sizes.
    depth, running : DataFrame or None
        Its book now, and its TWAP orders; None if the service does not show them.
    limits : PerpDexLimits or None
        Limits of a builder-deployed dex, None on the native one.
    accounts : PositionFrames
        Positions of accounts on its dex.
    missing_reasons : dict
        Data that the source, such as an archive, does not have -> the reason.

    Raises
    ------
    ReportFailed
        If there is no such perp, or it has no slippage samples in the period.
    """

    def __init__(
        self,
        session: Session,
        coin: str,
        start: Time = "30d",
        end: Time | None = None,
        accounts: Sequence[str] | None = None,
    ) -> None:
        self.session, self.period = session, report_frames.read_period(session, start, end)
        try:
            self.coin = coin = market_code(session, coin)
        except BadRequest as error:
            raise ReportFailed(str(error)) from None
        dex, select = coin_dex(coin), partial(_select_market, coin)
        self.context, by_coin = report_frames.fetch_markets(
            session, dex, select, [coin], *self.period
        )
        self.samples = by_coin[coin]
        if self.samples.empty:
            raise ReportFailed(
                f"there are no slippage samples of {coin} in this period. Choose a longer period"
            )
        self.missing_reasons = missing = dict[str, str]()
        self.depth = report_frames.fetch_depth(session, dex, [coin], missing, "its book")
        fetch = partial(report_frames.fetch_optional, missing, session=session)
        self.running = fetch("TWAP orders", perp_twap_snapshots, [coin])
        self.limits = fetch("limits", perp_dex_limits, dex) if dex else None
        self.accounts = report_frames.fetch_positions(session, coin, accounts, missing)

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        states = self.accounts.states
        return {
            "market": self.context,
            "slippage": self.samples,
            "depth": self.depth,
            "TWAPs": self.running,
            "limits": self.limits and self.limits.dex,
            "accounts": states and states.accounts,
            "positions": states and states.positions,
            "perps": self.accounts.markets,
            "margin tables": self.accounts.tiers,
        }

    def title(self) -> blocks.Block:
        """Return the title of the report."""
        return report_frames.make_title(
            "Market report", self.coin, self.session, self.period, about="slippage from "
        )

    @cached_property
    def fit(self) -> SlippageFit:
        """The fitted cost of a size."""
        return slippage.fit(self.samples)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Quantiles of slippage by size and side."""
        return slippage.curve(self.samples)

    @cached_property
    def heat(self) -> pd.DataFrame:
        """Median slippage of the headline's size by hour of the week."""
        return slippage.heatmap(self.samples[self.samples["amount_usd"] == _SIZE])

    @cached_property
    def book(self) -> pd.DataFrame:
        """Depth by distance from mid; empty if the service does not show it."""
        return pd.DataFrame() if self.depth is None else depths.profile(self.depth)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The numbers that sentences state: the cost of the headline's size, and the market."""
        now = self.context.iloc[0]
        room = slippage.capacity(self.fit, _BPS, side="buy").iloc[0]
        facts = {
            "coin": self.coin,
            "size": _SIZE,
            "bps": _BPS,
            "room": {name: room[name] for name in _ROOM},
            "half": self.curve["half_spread_bps"].median(),
            "px": now["mark_px"],
            "usd": now["open_interest"] * now["mark_px"],
            "yearly": now["funding"] * _HOURS,
        }
        for side in ("buy", "sell"):
            cost = slippage.cost(self.fit, _SIZE, side=side).iloc[0]
            ends = {f"{side}_{end}": cost[end] for end in ("low", "high")}
            facts |= {side: cost["cost_bps"], **ends}
        return facts

    def headlines(self) -> list[Headline]:
        """Return the headline numbers, the most important first."""
        show = partial(headline, **self.facts)
        ends = "mean against mid; 95 %: {buy_low:bps} to {buy_high:bps}"
        largest = "largest order to buy for {bps:number} bps or less"
        return [
            show("buying {size:short_usd} USD", "{buy:bps} bps", ends),
            show(largest, "{room:capacity}", "by the mean cost against mid"),
            show("half spread", "{half:bps} bps", "median of the samples"),
            show("mark price", "{px:number}", "USD"),
            show("open interest", "{usd:dollars} USD", "at the mark price"),
            show("funding now", "{yearly:rate}", "a year; positive: longs pay"),
        ]

    @paragraph
    def summary(self) -> Iterator[Sentence]:
        """Return the results in a few sentences."""
        text = (
            "Buying {size:short_usd} USD of {coin} at once costs {buy:bps} bps (95 %: "
            "{buy_low:bps} to {buy_high:bps}) against the mid price on average, selling it "
            "{sell:bps} bps (95 %: {sell_low:bps} to {sell_high:bps})."
        )
        yield say(text, **self.facts)
        misfit = self.fit.groups.set_index("side")["misfit"]["buy"]
        if misfit > LARGE_MISFIT:
            text = (
                "Cost does not grow as one power of size: the best fit misses the mean of a "
                "sampled size by {misfit:share}."
            )
            yield say(text, misfit=misfit)
        else:
            params = self.fit.params
            text = (
                "Beyond half the spread, cost grows as size to the power of {estimate:power} "
                "(95 %: {low:power} to {high:power})."
            )
            yield say(text, **params[(params["side"] == "buy") & (params["name"] == "k")].iloc[0])
        thin = self.curve.sort_values("missing_share", ascending=False, kind="stable").iloc[0]
        if thin["missing_share"] > 0:
            text = (
                "The book was too thin for {amount_usd:short_usd} USD in {missing_share:share} of "
                "the samples."
            )
            yield say(text, **thin)
        yield from report_frames.tell_left_out(self.missing_reasons)

    @paragraph
    def describe_twaps(self) -> Iterator[Sentence]:
        """Return the remaining trading of TWAP orders."""
        if self.running is None:
            yield say("The service has no TWAP orders of this market.")
            return
        row = twaps.pressure(self.running, self.context).iloc[0] if len(self.running) else None
        if row is None or not row["orders"]:
            yield say("No TWAP order runs on this market now.")
            return
        text = (
            "{orders:count TWAP order runs|TWAP orders run} on this market. They will still buy "
            "{buy_usd:dollars} USD and sell {sell_usd:dollars} USD at the mark price, "
            "{net_usd_per_hour:signed} USD an hour net."
        )
        yield say(text, **row)

    @paragraph
    def describe_limits(self) -> Iterator[Sentence]:
        """Return the limits of a builder-deployed dex."""
        if self.limits is None and coin_dex(self.coin):
            yield say("The source does not have the limits of this dex.")
        elif self.limits is None:
            yield say("The native dex has no such limits.")
        elif self.limits.dex.empty:
            yield say("The service states no limits for this dex.")
        else:
            text = (
                "Open interest of all markets of this dex together may be at most "
                "{total_oi_cap:dollars} USD; one transfer may move at most "
                "{max_transfer_ntl:dollars} USD."
            )
            yield say(text, **self.limits.dex.iloc[0])
            coins = self.limits.coins
            for cap in coins.loc[coins["coin"] == self.coin, "oi_cap"].head(1):
                text = "Open interest of this market may be at most {cap:dollars} USD."
                yield say(text, cap=cap)

    def costs(self) -> Table:
        """Return the cost of each size: median and mean of its samples."""
        means = slippage.cost(self.fit, sorted(self.curve["amount_usd"].unique()))
        keys = ["amount_usd", "side"]
        rows = means.merge(self.curve[[*keys, "q50", "missing_share"]], on=keys)
        rows = rows.rename(columns={"q50": "median"}).sort_values(keys, kind="stable")
        return table("Cost of a size at once, against mid.", rows, _COSTS)

    def orders(self) -> Table:
        """Return the TWAP orders with the largest remaining sizes."""
        rows = pd.DataFrame() if self.running is None else self.running
        if len(rows):
            rows = rows.sort_values("remaining_sz", ascending=False, kind="stable").head(10)
            rows = rows.assign(
                direction=rows["is_buy"].map({True: "buy", False: "sell"}),
                state=rows["waiting"].map({True: "waits", False: "runs"}),
            )
        return table("TWAP orders with the largest remaining sizes.", rows, _TWAPS)


def _select_market(coin: str, listed: pd.DataFrame) -> pd.DataFrame:
    context = listed[listed["name"] == coin].reset_index(drop=True)
    if context.empty:
        names = ", ".join(listed["name"].head(12))
        dex = dex_name_in("rows", coin_dex(coin))
        raise ReportFailed(f"there is no perp {coin} on dex {dex}; choose one of {names}, ...")
    return context
