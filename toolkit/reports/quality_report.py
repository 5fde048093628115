"""The market-quality report: which perps are cheap to trade, how much, and can one trust it.

Its prose stands in ``notebooks/market_quality.py``; here is what that notebook calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import slippage
from toolkit.analysis.market import depth as depths
from toolkit.analysis.market.slippage_fit import SlippageFit
from toolkit.client import Session
from toolkit.contract.dexes import join_coin, strip_native_dex
from toolkit.errors import ReportFailed
from toolkit.fetch import current_depth, meta_and_asset_ctxs
from toolkit.plots import formats
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import Title
from toolkit.reports.material import joined, listed_reasons, samples_of, shown
from toolkit.reports.sentences import Headline, Paragraph, Sentence, headline, sentence
from toolkit.reports.tables import Column, Table, table
from toolkit.times import Time, to_iso, to_ms

__all__ = ["Quality", "gather"]

AMOUNTS: Final = (1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
"""Sizes that are asked for, in USD: four of the nine, to save points."""

_SIZE: Final = 100_000.0
_BPS: Final = 10.0
_RARE: Final = 0.01  # share of samples whose book was too thin that is not worth a word
_MOST: Final = 12  # markets, those traded most

SENTENCES: Final = {
    "ends": "Buying {size:short_usd} USD at once costs {best:bps} bps of {best_coin} and "
    "{worst:bps} bps of {worst_coin}, {times:times} times as much: the cheapest and the dearest of "
    "the {markets:count} {which}.",
    "thin": "An order to buy {size:short_usd} USD could not always be filled in {coins}.",
    "left_out": "Left out, since the source does not have it all: {what}.",
    "no_check": "No sample was taken near enough to a book to hold one against the other.",
    "check": "{samples:count} samples were taken within a minute of these books; {agreeing:count} "
    "of them cost what the books allow.",
}
HEADLINES: Final = {
    "cheapest": (
        "cheapest of the {markets:count} {which}",
        "{coin}",
        "buying {size:short_usd} USD costs {cost:bps} bps",
    ),
    "dearest": (
        "dearest of the {markets:count} {which}",
        "{coin}",
        "buying {size:short_usd} USD costs {cost:bps} bps",
    ),
    "half_spread": ("half spread", "{half:bps} bps", "median of the markets"),
}
_RANKED: Final = (
    Column("coin", "coin", tables.text, number=False),
    Column("volume", "volume a day, USD", formats.whole_dollars),
    Column("half_spread_bps", "half spread, bps", formats.basis_points),
    Column("cost_bps", "buying 100k costs, bps", formats.basis_points),
    Column("low", "from", formats.basis_points),
    Column("high", "to", formats.basis_points),
    Column("k", "exponent", formats.basis_points),
    Column("room", "largest order to buy for 10 bps or less", tables.text),
    Column("missing_share", "1M: too thin", formats.percent_share),
)
_BOOKS: Final = (
    Column("coin", "coin", tables.text, number=False),
    Column("bid", "bids within 50 bps of mid, USD", formats.whole_dollars),
    Column("ask", "asks within 50 bps of mid, USD", formats.whole_dollars),
    Column("imbalance", "imbalance", formats.basis_points),
)


@dataclass(frozen=True)
class Quality:
    """What a market-quality report is made of.

    Attributes
    ----------
    dex : str
        Whose markets; empty for the native dex.
    start_ms, end_ms : int
        Period of the samples, both ends inclusive.
    contexts, samples : DataFrame
        The markets, and their slippage samples.
    depth : DataFrame or None
        Their books now; None where the service does not show them.
    source : str
        What the session calls its source.
    simulated : bool
        Whether the source is invented.
    picked : bool
        Whether the markets were named, rather than those traded most.
    lacking : mapping of str to str
        What the source, as an archive, does not have of all that -> why.
    """

    dex: str
    start_ms: int
    end_ms: int
    contexts: pd.DataFrame
    samples: pd.DataFrame
    depth: pd.DataFrame | None
    source: str
    simulated: bool
    picked: bool = False
    lacking: Mapping[str, str] = field(default_factory=dict)

    def frames(self) -> dict[str, pd.DataFrame | None]:
        """Give what was fetched, by name, for the provenance."""
        return {"markets": self.contexts, "slippage": self.samples, "depth": self.depth}

    def title(self) -> Title:
        """Head the report."""
        first, last = (to_iso(ms)[:16].replace("T", " ") for ms in (self.start_ms, self.end_ms))
        subject = f"dex {self.dex}" if self.dex else "native perps"
        line = f"{len(self.contexts)} markets, {first} to {last} UTC · {self.source}"
        return blocks.title("Market quality", subject, line, simulated=self.simulated)

    @cached_property
    def fit(self) -> SlippageFit:
        """Mean and fitted cost of a size, of every market."""
        return slippage.fit(self.samples)

    @cached_property
    def curve(self) -> pd.DataFrame:
        """Quantiles of slippage by market, size and side."""
        made: pd.DataFrame = slippage.curve(self.samples)
        return made

    @cached_property
    def ranked(self) -> pd.DataFrame:
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
        for one in (cost, room, power, spread, thin):
            rows = rows.merge(one, on="coin", how="left")
        return rows.sort_values("cost_bps", kind="stable", ignore_index=True)

    @cached_property
    def books(self) -> pd.DataFrame:
        """What rests within 50 bps of mid now, and how far the sides differ."""
        if self.depth is None:
            return pd.DataFrame()
        bands = self.depth[self.depth["bps"] == 50]
        rows = depths.imbalance(bands)[["coin", "imbalance"]]
        sides = bands.rename(columns={"bid_depth_usd": "bid", "ask_depth_usd": "ask"})
        joined = sides[["coin", "bid", "ask"]].merge(rows, on="coin")
        return joined.sort_values("bid", ascending=False, kind="stable", ignore_index=True)

    @cached_property
    def checked(self) -> pd.DataFrame:
        """Samples beside the book of their moment: what the one allows the other."""
        if self.depth is None:
            return pd.DataFrame()
        return depths.consistency(self.depth, self.samples, max_age=60.0)

    def drawn(self) -> pd.DataFrame:
        """Give the curves of four markets, from the cheapest to the dearest."""
        names = self.ranked["coin"]
        places = sorted({round(part * (len(names) - 1) / 3) for part in range(4)})
        return self.curve[self.curve["coin"].isin(names.iloc[places])]

    def _ends(self) -> tuple[pd.Series, pd.Series]:
        """Give the cheapest and the dearest market of which the cost is known."""
        known = self.ranked[self.ranked["cost_bps"].notna()]
        known = self.ranked if known.empty else known
        return known.iloc[0], known.iloc[-1]

    def _which(self) -> dict[str, Any]:
        return {"markets": len(self.ranked), "which": "named" if self.picked else "most traded"}

    def sentences(self) -> list[Sentence | Headline]:
        """Return all that this report says with numbers, outside of tables and figures."""
        return [*self.headlines(), *self.summary().sentences, *self.check_words().sentences]

    def headlines(self) -> list[Headline]:
        """Return the headline numbers."""
        ends = zip(("cheapest", "dearest"), self._ends(), strict=True)
        median = self.ranked["half_spread_bps"].median()
        return [
            *(
                headline(
                    HEADLINES,
                    name,
                    coin=row["coin"],
                    size=_SIZE,
                    cost=row["cost_bps"],
                    **self._which(),
                )
                for name, row in ends
            ),
            headline(HEADLINES, "half_spread", half=median),
        ]

    def summary(self) -> Paragraph:
        """Return the result in a few sentences."""
        best, worst = self._ends()
        said = [
            sentence(
                SENTENCES,
                "ends",
                size=_SIZE,
                best=best["cost_bps"],
                best_coin=best["coin"],
                worst=worst["cost_bps"],
                worst_coin=worst["coin"],
                times=worst["cost_bps"] / best["cost_bps"],
                **self._which(),
            )
        ]
        thin = self.ranked[self.ranked["missing_share"] > _RARE]
        if len(thin):
            coins = ", ".join(thin["coin"])
            said.append(sentence(SENTENCES, "thin", size=AMOUNTS[-1], coins=coins))
        if self.lacking:
            said.append(sentence(SENTENCES, "left_out", what=listed_reasons(self.lacking)))
        return Paragraph(said)

    def check_words(self) -> Paragraph:
        """Return whether samples and books agree."""
        known = self.checked.get("consistent", pd.Series(dtype="boolean")).dropna()
        if known.empty:
            return Paragraph([sentence(SENTENCES, "no_check")])
        counts = {"samples": len(known), "agreeing": known.sum()}
        return Paragraph([sentence(SENTENCES, "check", **counts)])

    def table(self) -> Table:
        """Write the ranking."""
        return table("Markets, the cheapest first; 95 % intervals.", self.ranked, _RANKED)

    def book_table(self) -> Table:
        """Write the books."""
        caption = "The books now; imbalance is (bids - asks) / (bids + asks)."
        return table(caption, self.books, _BOOKS)


def gather(
    session: Session,
    dex: str = "",
    start: Time = "7d",
    end: Time | None = None,
    coins: Sequence[str] | None = None,
) -> Quality:
    """Fetch everything that a market-quality report shows.

    Raises
    ------
    ReportFailed
        If a coin is not of the dex, or nothing was sampled.
    """
    now = session.now_ms()
    start_ms = to_ms(start, now_ms=now)
    end_ms = now if end is None else to_ms(end, now_ms=now)
    contexts = _markets(meta_and_asset_ctxs(dex=dex, session=session), coins)
    frames = [samples_of(session, one, start_ms, end_ms, AMOUNTS) for one in contexts["name"]]
    samples = joined(frames, coin=", ".join(contexts["name"]))
    if samples.empty:
        raise ReportFailed("there are no slippage samples in this period")
    lacking: dict[str, str] = {}
    return Quality(
        dex=dex,
        start_ms=start_ms,
        end_ms=end_ms,
        contexts=contexts,
        samples=samples,
        depth=_depth(session, dex, contexts, lacking),
        source=session.label,
        simulated=session.simulated,
        picked=coins is not None,
        lacking=lacking,
    )


def _markets(listed: pd.DataFrame, coins: Sequence[str] | None) -> pd.DataFrame:
    if listed.empty:
        raise ReportFailed("this dex has no perps: see that its name is right")
    if coins is None:
        open_ = listed[~listed["is_delisted"].fillna(False).astype(bool)]
        busiest = open_.sort_values("day_ntl_vlm", ascending=False, kind="stable")
        return busiest.head(_MOST).reset_index(drop=True)
    coins = [strip_native_dex(coin) for coin in ([coins] if isinstance(coins, str) else coins)]
    missing = sorted(set(coins) - set(listed["name"]))
    if missing:
        names = ", ".join(listed["name"])
        raise ReportFailed(f"there is no perp {', '.join(missing)} on this dex; it has {names}")
    return listed[listed["name"].isin(coins)].reset_index(drop=True)


def _depth(
    session: Session, dex: str, contexts: pd.DataFrame, lacking: dict[str, str]
) -> pd.DataFrame | None:
    depth = shown(lacking, "books", current_depth, dex=dex, session=session)
    if depth is None:
        return None
    # Depth may or may not write the dex in front of a coin.
    names = depth["coin"].map(lambda name: join_coin(dex, name))
    return depth[names.isin(contexts["name"])].reset_index(drop=True)
