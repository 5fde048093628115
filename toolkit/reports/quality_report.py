"""The market-quality report: the costs of trading perps compared, and checks of the data.

The notebook ``notebooks/market_quality.py`` has the prose, and calls these functions.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

import pandas as pd

from toolkit import depth as depths
from toolkit import slippage
from toolkit.client import Session
from toolkit.contract.dexes import dex_name_in
from toolkit.errors import BadRequest, ReportFailed
from toolkit.fetch.concat import concat_frames
from toolkit.fetch.markets import market_code
from toolkit.plots import formats
from toolkit.plots.tables import Column, Table, table
from toolkit.reports import blocks, report_frames
from toolkit.reports.sentences import Headline, Sentence, headline, paragraph, say
from toolkit.slippage._fit import SlippageFit
from toolkit.times import Time

AMOUNTS: Final = (1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
"""Sizes of the samples in USD: four of the nine, to save points."""

_SIZE: Final = 100_000.0
_BPS: Final = 10.0
_RARE: Final = 0.01  # share of samples with too thin a book that is not mentioned
_MARKETS: Final = 12  # those with the largest volume

_RANKED: Final = (
    Column("coin", "coin", number=False),
    Column("volume", "volume a day, USD", formats.whole_dollars),
    Column("half_spread_bps", "half spread, bps", formats.basis_points),
    Column("cost_bps", "buying 100k costs, bps", formats.basis_points),
    Column("low", "from", formats.basis_points),
    Column("high", "to", formats.basis_points),
    Column("k", "exponent", formats.basis_points),
    Column("room", "largest order to buy for 10 bps or less"),
    Column("missing_share", "1M: too thin", formats.percent_share),
)
_BOOKS: Final = (
    Column("coin", "coin", number=False),
    Column("bid", "bids within 50 bps of mid, USD", formats.whole_dollars),
    Column("ask", "asks within 50 bps of mid, USD", formats.whole_dollars),
    Column("imbalance", "imbalance", formats.basis_points),
)


class QualityReport:
    """Fetch everything that a market-quality report shows; each result is computed once.

    Parameters
    ----------
    session : Session
        The source.
    dex : str, default ""
        Dex of the markets; empty for the native dex.
    start, end : Time
        Period of the samples, both ends inclusive.
    coins : str or sequence of str, optional
        The markets; by default those with the largest volume.

    Attributes
    ----------
    contexts, samples : DataFrame
        The markets, and their slippage samples.
    depth : DataFrame or None
        Their books now; None if the service does not show them.
    is_chosen : bool
        Whether the caller chose the markets.
    missing_reasons : dict
        Data that the source, such as an archive, does not have -> the reason.

    Raises
    ------
    ReportFailed
        If a coin is not on the dex, or there are no samples.
    """

    def __init__(
        self,
        session: Session,
        dex: str = "",
        start: Time = "7d",
        end: Time | None = None,
        coins: str | Sequence[str] | None = None,
    ) -> None:
        self.session, self.dex, self.is_chosen = session, dex, coins is not None
        self.period = report_frames.read_period(session, start, end)
        if coins is not None:
            try:
                names = [coins] if isinstance(coins, str) else coins
                coins = [market_code(session, coin) for coin in names]
            except BadRequest as error:
                raise ReportFailed(str(error)) from None
        choose = partial(_choose_markets, coins, dex)
        self.contexts, frames = report_frames.fetch_markets(
            session, dex, choose, coins, *self.period, AMOUNTS
        )
        self.samples = concat_frames(frames, "coin")
        if self.samples.empty:
            raise ReportFailed(
                f"there are no slippage samples of dex {dex_name_in('rows', dex)} in this period. "
                "Choose a longer period"
            )
        self.missing_reasons = missing = dict[str, str]()
        listed = self.contexts["name"]
        self.depth = report_frames.fetch_depth(session, dex, listed, missing, "books")

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Return the fetched frames by name, for the provenance."""
        return {"markets": self.contexts, "slippage": self.samples, "depth": self.depth}

    def title(self) -> blocks.Block:
        """Return the title of the report."""
        subject = f"dex {self.dex}" if self.dex else "native perps"
        about = f"{len(self.contexts)} markets, "
        return report_frames.make_title(
            "Market quality", subject, self.session, self.period, about=about
        )

    @cached_property
    def fit(self) -> SlippageFit:
        """Mean and fitted cost of a size, of every market."""
        return slippage.fit(self.samples)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Quantiles of slippage by market, size and side."""
        return slippage.curve(self.samples)

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """Every market, the cheapest to buy 100k USD of first."""
        cost = slippage.cost(self.fit, _SIZE, side="buy")[["coin", "cost_bps", "low", "high"]]
        room = slippage.capacity(self.fit, _BPS, side="buy")
        room = room.assign(room=[formats.order_capacity(row) for row in room.to_dict("records")])
        room = room[["coin", "capacity_usd", "range", "room"]]
        params = self.fit.params
        power = params[(params["side"] == "buy") & (params["name"] == "k")]
        power = power[["coin", "estimate"]].rename(columns={"estimate": "k"})
        buys = self.curve[self.curve["side"] == "buy"]
        spread = buys.groupby("coin", as_index=False)["half_spread_bps"].median()
        thin = buys[buys["amount_usd"] == AMOUNTS[-1]][["coin", "missing_share"]]
        rows = self.contexts.rename(columns={"name": "coin", "day_ntl_vlm": "volume"})
        rows = rows[["coin", "volume"]]
        for part in (cost, room, power, spread, thin):
            rows = rows.merge(part, on="coin", how="left")
        return rows.sort_values("cost_bps", kind="stable", ignore_index=True)

    @cached_property
    def books(self) -> pd.DataFrame:
        """Depth within 50 bps of mid now, and the imbalance of the sides."""
        if self.depth is None:
            return pd.DataFrame()
        bands = self.depth[self.depth["bps"] == 50]
        rows = depths.imbalance(bands)[["coin", "imbalance"]]
        sides = bands.rename(columns={"bid_depth_usd": "bid", "ask_depth_usd": "ask"})
        joined = sides[["coin", "bid", "ask"]].merge(rows, on="coin")
        return joined.sort_values("bid", ascending=False, kind="stable", ignore_index=True)

    @cached_property
    def comparison(self) -> pd.DataFrame:
        """Samples with the book of the same time: whether the book allows the cost."""
        if self.depth is None:
            return pd.DataFrame()
        return depths.consistency(self.depth, self.samples, max_age=60.0)

    def drawn_curves(self) -> pd.DataFrame:
        """Return the curves of four markets, from the cheapest to the most expensive."""
        names = self.ranking["coin"]
        places = sorted({round(part * (len(names) - 1) / 3) for part in range(4)})
        return self.curve[self.curve["coin"].isin(names.iloc[places])]

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The numbers that sentences state: the cheapest and the most expensive market."""
        known = self.ranking[self.ranking["cost_bps"].notna()]
        known = self.ranking if known.empty else known
        best, worst = known.iloc[0], known.iloc[-1]
        return {
            "size": _SIZE,
            "markets": len(self.ranking),
            "which": "chosen" if self.is_chosen else "largest by volume",
            "best": best["cost_bps"],
            "best_coin": best["coin"],
            "worst": worst["cost_bps"],
            "worst_coin": worst["coin"],
            "times": worst["cost_bps"] / best["cost_bps"],
            "half": self.ranking["half_spread_bps"].median(),
        }

    def headlines(self) -> list[Headline]:
        """Return the headline numbers."""
        show, buying = partial(headline, **self.facts), "buying {size:short_usd} USD costs "
        of = " of the {markets:count} {which}"
        return [
            show("cheapest" + of, "{best_coin}", buying + "{best:bps} bps"),
            show("most expensive" + of, "{worst_coin}", buying + "{worst:bps} bps"),
            show("half spread", "{half:bps} bps", "median of the markets"),
        ]

    @paragraph
    def summary(self) -> Iterator[Sentence]:
        """Return the results in a few sentences."""
        text = (
            "Buying {size:short_usd} USD at once costs {best:bps} bps in {best_coin} and "
            "{worst:bps} bps in {worst_coin}, {times:times} times as much. They are the cheapest "
            "and the most expensive of the {markets:count} {which}."
        )
        yield say(text, **self.facts)
        thin = self.ranking[self.ranking["missing_share"] > _RARE]
        if len(thin):
            text = (
                "An order to buy {thin_size:short_usd} USD could not always be filled in {coins}."
            )
            yield say(text, thin_size=AMOUNTS[-1], coins=", ".join(thin["coin"]))
        yield from report_frames.tell_left_out(self.missing_reasons)

    @paragraph
    def describe_checks(self) -> Iterator[Sentence]:
        """Return whether samples and books agree."""
        known = self.comparison.get("consistent", pd.Series(dtype="boolean")).dropna()
        text = (
            "{samples_near:count} samples were taken within a minute of these books; "
            "{agreeing:count} of them have a cost that the books allow."
        )
        if known.empty:
            text = "No sample was taken close enough in time to a book to compare the two."
        yield say(text, samples_near=len(known), agreeing=known.sum())

    def table(self) -> Table:
        """Return the ranking as a table."""
        return table("Markets, the cheapest first; 95 % intervals.", self.ranking, _RANKED)

    def book_table(self) -> Table:
        """Return the books as a table."""
        caption = "The books now; imbalance is (bids - asks) / (bids + asks)."
        return table(caption, self.books, _BOOKS)


def _choose_markets(coins: Sequence[str] | None, dex: str, listed: pd.DataFrame) -> pd.DataFrame:
    if listed.empty:
        raise ReportFailed(f"dex {dex_name_in('rows', dex)} has no perps: check its name")
    if coins is None:
        tradable = listed[~listed["is_delisted"]]
        busiest = tradable.sort_values("day_ntl_vlm", ascending=False, kind="stable")
        return busiest.head(_MARKETS).reset_index(drop=True)
    missing = sorted(set(coins) - set(listed["name"]))
    if missing:
        names = ", ".join(listed["name"])
        raise ReportFailed(
            f"there is no perp {', '.join(missing)} on dex {dex_name_in('rows', dex)}; "
            f"choose one of {names}"
        )
    return listed[listed["name"].isin(coins)].reset_index(drop=True)
