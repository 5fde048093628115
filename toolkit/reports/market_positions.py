"""The liquidations and the positioning of a market report: who is long, and what a fall would sell.

The notebook ``notebooks/market.py`` has the prose, and calls these functions.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import pandas as pd

from toolkit import accounts, liquidations, plots
from toolkit.errors import UnmeasuredAccounts
from toolkit.liquidations import Cascade
from toolkit.plots import formats
from toolkit.prepare.states import MODES
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import BlockList
from toolkit.reports.sentences import Paragraph, Sentence, sentence
from toolkit.reports.tables import TextColumn, TextTable, table

if TYPE_CHECKING:
    from toolkit.reports.market_report import MarketReport

P = ParamSpec("P")
R = TypeVar("R")

_SHOCKS: Final = (-0.3, -0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.2, 0.3)
_SHOCK: Final = 0.2  # of the sentences
_WIDTH: Final = 0.02  # of a bin of the map
_DRAWS: Final = 99
_SMALL: Final = 1.01  # amplification below which there is no spiral
_MODES: Final = {name: number for number, name in MODES.items()}

SENTENCES: Final = {
    "positions_unknown": "The positions of accounts are not known: {reason}.",
    "no_position": "None of the {accounts:count known account|known accounts} has a position in "
    "{coin}.",
    "shown": "{accounts:count account has|accounts have} a known position in {coin}: {long:share} "
    "of the long side of the open interest, and {short:share} of the short side.",
    "shared": "For {shared:count account} with unified or portfolio margin, a state does not show "
    "the collateral: liquidations leave them out.",
    "single_tiers": "The source does not have the margin tables. Each coin therefore has one tier "
    "here, which requires too little margin of large positions.",
    # the cascade
    "quiet": "No change of the price of {coin} alone, from {low:rate} to {high:rate}, liquidates "
    "any of them.",
    "shock": "A change of the price of {coin} alone by {shock:rate} liquidates "
    "{accounts:count account} with {usd:dollars} USD of positions.",
    "added": "Their forced trades move the price by another {added:bps} bps (95 %: {low:bps} to "
    "{high:bps}).",
    "spiral": "The spiral is largest after {shock:rate}: the price moves {times:ratio} times as "
    "far, in {rounds:count round}.",
    "no_spiral": "The book absorbs the forced trades: they add less than a hundredth to each "
    "change.",
    "no_law": "How far forced trades would move the price is not known: no curve fits the samples.",
    "together": "If all prices of the dex change alike, a fall by {shock:share} liquidates "
    "{fall:dollars} USD of positions in all coins, and an equal rise liquidates {rise:dollars} "
    "USD.",
    # positioning
    "gains": "The gain of open longs since their entry is {long:bps} bps, that of open shorts "
    "{short:bps} bps.",
    "crowding": "Longs are as concentrated as {long:ratio} accounts of equal size, shorts as "
    "{short:ratio}. The largest long is {long_top:share} of its side, the largest short "
    "{short_top:share}.",
    "largest_net": 'The size class with the largest net position is "{size}": {usd:signed} USD of '
    "{accounts:count account}, a net long share of {net:rate} (95 %: {low:rate} to {high:rate}).",
    "single_net": 'The size class with the largest net position is "{size}": {usd:signed} USD of '
    "one account.",
}


def _write_change(value: float) -> str:
    """Return a price change in whole percent, with its sign."""
    return formats.true_minus(f"{value:+.0%}").replace("%", " %")


_LIQUIDATED: Final = (
    TextColumn("shock", "price change", _write_change),
    TextColumn("accounts", "accounts", formats.whole_number),
    TextColumn("forced_usd", "liquidated, USD", formats.whole_dollars),
    TextColumn("backstop_usd", "by the backstop, USD", formats.whole_dollars),
    TextColumn("added", "added to the change, bps", formats.basis_points),
    TextColumn("low", "from", formats.basis_points),
    TextColumn("high", "to", formats.basis_points),
    TextColumn("now", "added in the book now, bps", formats.basis_points),
    TextColumn("together_usd", "if all prices change: liquidated, USD", formats.whole_dollars),
)
_CLASSES: Final = (
    TextColumn("size", "value of the account, USD", tables.plain_text, number=False),
    TextColumn("accounts", "accounts", formats.whole_number),
    TextColumn("long_usd", "long, USD", formats.whole_dollars),
    TextColumn("short_usd", "short, USD", formats.whole_dollars),
    TextColumn("net_share", "net long share", formats.percent_share),
    TextColumn("low", "from", formats.percent_share),
    TextColumn("high", "to", formats.percent_share),
    TextColumn("gain_bps", "gain since entry, bps", formats.basis_points),
    TextColumn("effective_accounts", "effective accounts", lambda value: f"{value:,.1f}"),
    TextColumn("top_share", "largest account", formats.percent_share),
)


class MarketPositions:
    """Liquidations and positioning of a market; each result is computed once.

    Parameters
    ----------
    market : MarketReport
        The report, with the frames of its accounts.
    """

    def __init__(self, market: "MarketReport") -> None:
        self.market = market
        self.frames = market.accounts

    @cached_property
    def positions(self) -> pd.DataFrame:
        """Positions of the accounts in all coins of the dex; empty if they are not known."""
        states = self.frames.states
        return pd.DataFrame() if states is None else _prepare_states(states.positions)

    @cached_property
    def own(self) -> pd.DataFrame:
        """Positions in the coin of the report."""
        rows = self.positions
        return rows[(rows["coin"] == self.market.coin) & (rows["szi"] != 0)] if len(rows) else rows

    @cached_property
    def margins(self) -> dict[str, Any]:
        """Arguments of the helpers of liquidations: the largest leverages and the margin tables."""
        if self.frames.markets is None or self.frames.tiers is None:
            return {"max_leverage": None}
        return {"max_leverage": self.frames.markets, "margin_tables": self.frames.tiers}

    @cached_property
    def equity(self) -> pd.DataFrame:
        """The accounts of the states, without the time of each, with their modes if known."""
        if self.frames.states is None:
            return pd.DataFrame()
        rows, values = _prepare_states(self.frames.states.accounts), self.frames.values
        if values is not None:
            modes = dict(zip(values["user"], values["mode"].map(_MODES), strict=True))
            rows["account_mode"] = rows["user"].map(modes).astype("float64")
        return rows

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Notional of the coin by the distance of its liquidation price."""
        rows = _quietly(
            liquidations.levels,
            self.positions,
            self.market.context,
            width=_WIDTH,
            accounts=self.equity,
            **self.margins,
        )
        return rows[rows["coin"] == self.market.coin].reset_index(drop=True)

    @cached_property
    def cascade(self) -> Cascade:
        """What a change of the price of this coin alone liquidates, by the fitted slippage."""
        return self._run(self.market.fit, draws=_DRAWS)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """The cascade by shock, with that in the book now, and that of all coins together."""
        depth = self.market.depth
        rows = self.cascade.params.copy()
        for name in ("low", "high"):
            rows[name] = 1e4 * (rows[name] - rows["shock"])
        rows["added"] = 1e4 * (rows["estimate"] - rows["shock"])
        rows["now"] = float("nan")
        if depth is not None and len(depth):
            now = self._run(depth).params
            rows["now"] = 1e4 * (now["estimate"] - now["shock"])
        rows["together_usd"] = self._run(self.market.fit, betas=1.0).params["forced_usd"]
        return rows

    def _run(self, impact: Any, draws: int = 1, betas: float = 0.0) -> Cascade:
        coin = self.market.coin
        return _quietly(
            liquidations.cascade,
            self.positions,
            self.equity,
            impact,
            coin,
            _SHOCKS,
            betas=betas,
            draws=draws,
            **self.margins,
        )

    @cached_property
    def sizes(self) -> pd.DataFrame | None:
        """Values of the accounts, for the classes of size."""
        values = self.frames.values
        return None if values is None else values.rename(columns={"value": "account_value"})

    @cached_property
    def classes(self) -> pd.DataFrame:
        """Positioning of the coin by the size of the accounts."""
        sizes = self.equity if self.sizes is None else self.sizes
        return _quietly(accounts.positioning, self.own, sizes)

    def side(self, sign: int) -> pd.Series:
        """Return the positioning of all longs (1) or of all shorts (-1)."""
        rows = accounts.positioning(self.own[self.own["szi"] * sign > 0])
        return rows.reindex([0]).iloc[0]

    @cached_property
    def shared(self) -> int:
        """Number of accounts with a position whose collateral a state does not show."""
        rows = _quietly(liquidations.buffers, self.equity, self.positions, **self.margins)
        hidden = rows.loc[(rows["margin"] == "cross") & rows["equity"].isna(), "user"]
        is_hidden = self.own["user"].isin(hidden) & (self.own["leverage_type"] == "cross")
        return int(self.own.loc[is_hidden, "user"].nunique())


def _quietly(helper: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """Return the result of a helper; a sentence counts the accounts that it leaves out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnmeasuredAccounts)
        return helper(*arguments, **options)


def _prepare_states(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without their time: an archive may have states of several times.

    The addresses leave the provenance, which pandas copies in each step. The report states them.
    """
    rows = rows.drop(columns="time")
    facts = {name: fact for name, fact in rows.attrs["toolkit"].items() if name != "parameters"}
    rows.attrs = {"toolkit": facts}
    return rows


def list_sentences(positions: MarketPositions) -> list[Sentence]:
    """Return the sentences of this part."""
    paragraphs = (
        describe_accounts(positions),
        describe_cascade(positions),
        describe_positioning(positions),
    )
    return [part for paragraph in paragraphs for part in paragraph.sentences]


def describe_accounts(positions: MarketPositions) -> Paragraph:
    """Return whose positions are known, and what the states do not show."""
    frames, coin = positions.frames, positions.market.coin
    if frames.states is None:
        return Paragraph([sentence(SENTENCES, "positions_unknown", reason=frames.reason)])
    if positions.own.empty:
        count = frames.states.accounts["user"].nunique()
        return Paragraph([sentence(SENTENCES, "no_position", accounts=count, coin=coin)])
    known = positions.levels.groupby("side")["known"].first()
    shares = {side: known.get(side, 0.0) for side in ("long", "short")}
    count = positions.own["user"].nunique()
    sentences = [sentence(SENTENCES, "shown", accounts=count, coin=coin, **shares)]
    if positions.shared:
        sentences.append(sentence(SENTENCES, "shared", shared=positions.shared))
    if frames.tiers is None:
        sentences.append(sentence(SENTENCES, "single_tiers"))
    return Paragraph(sentences)


def describe_cascade(positions: MarketPositions) -> Paragraph:
    """Return what changes of the price would liquidate, and how far forced trades carry them."""
    if positions.own.empty:
        return Paragraph([])
    rows, coin = positions.changes, positions.market.coin
    sentences = []
    for shock in (-_SHOCK, _SHOCK):
        row = rows[rows["shock"] == shock].iloc[0]
        if not row["accounts"]:
            continue
        values = {name: row[name] for name in ("shock", "accounts")}
        sentences.append(sentence(SENTENCES, "shock", coin=coin, usd=row["forced_usd"], **values))
        if pd.notna(row["added"]):
            ends = {name: row[name] for name in ("added", "low", "high")}
            sentences.append(sentence(SENTENCES, "added", **ends))
    if not rows["accounts"].any():
        ends = {"low": min(_SHOCKS), "high": max(_SHOCKS)}
        sentences.append(sentence(SENTENCES, "quiet", coin=coin, **ends))
    elif rows.loc[rows["accounts"] > 0, "amplification"].isna().any():
        sentences.append(sentence(SENTENCES, "no_law"))
    else:
        row = rows.sort_values("amplification", ascending=False, kind="stable").iloc[0]
        if row["amplification"] >= _SMALL:
            values = {"times": row["amplification"], "rounds": row["rounds"]}
            sentences.append(sentence(SENTENCES, "spiral", shock=row["shock"], **values))
        else:
            sentences.append(sentence(SENTENCES, "no_spiral"))
    together = rows.set_index("shock")["together_usd"]
    ends = {"fall": together[-_SHOCK], "rise": together[_SHOCK]}
    return Paragraph([*sentences, sentence(SENTENCES, "together", shock=_SHOCK, **ends)])


def describe_positioning(positions: MarketPositions) -> Paragraph:
    """Return which accounts are long, how crowded the sides are, and what they gained."""
    if positions.own.empty:
        return Paragraph([])
    classes = positions.classes[positions.classes["size"] != "all"]
    # Two classes have opposite net positions: then the one with more accounts comes first.
    net = (classes["long_usd"] - classes["short_usd"]).abs().round(2)
    ranked = classes.assign(net=net).sort_values(["net", "accounts"], ascending=False)
    row = ranked.iloc[0]
    values = {"size": row["size"], "usd": row["long_usd"] - row["short_usd"]}
    if row["accounts"] > 1:
        ends = {name: row[name] for name in ("accounts", "low", "high")}
        first = sentence(SENTENCES, "largest_net", net=row["net_share"], **values, **ends)
    else:
        first = sentence(SENTENCES, "single_net", **values)
    long, short = positions.side(1), positions.side(-1)
    gains = {"long": long["gain_bps"], "short": short["gain_bps"]}
    crowding = {"long": long["effective_accounts"], "short": short["effective_accounts"]}
    tops = {"long_top": long["top_share"], "short_top": short["top_share"]}
    return Paragraph(
        [
            first,
            sentence(SENTENCES, "crowding", **crowding, **tops),
            sentence(SENTENCES, "gains", **gains),
        ]
    )


def draw_liquidations(positions: MarketPositions) -> BlockList:
    """Return the map of liquidation prices and the cascade; each only if it shows something."""
    if positions.own.empty:
        return BlockList([])
    figures = []
    if positions.levels["distance"].notna().any():
        figures.append(
            blocks.figure(
                plots.liquidation_map,
                positions.levels,
                caption="Known positions by the distance of their liquidation price from the mark "
                "price: in each step of 2 %, and added up from the mark price.",
            )
        )
    if positions.changes["accounts"].any():
        figures.append(
            blocks.figure(
                plots.cascade,
                positions.cascade,
                caption="The price after all rounds of forced trades, with the 95 % interval of "
                "the fitted slippage; below, the liquidated positions by round.",
            )
        )
    return BlockList(figures)


def list_liquidations(positions: MarketPositions) -> TextTable:
    """Return what changes of the price would liquidate."""
    rows = pd.DataFrame() if positions.own.empty else positions.changes
    return table("What a change of the price alone liquidates; 95 % intervals.", rows, _LIQUIDATED)


def draw_positioning(positions: MarketPositions) -> BlockList:
    """Return the figure of positioning; none without positions."""
    if positions.own.empty:
        return BlockList([])
    caption = (
        "Net long share of the accounts by their value, with 95 % intervals; below, the gain of "
        "their open positions since entry."
    )
    return BlockList([blocks.figure(plots.positioning, positions.classes, caption=caption)])


def list_classes(positions: MarketPositions) -> TextTable:
    """Return the positioning of each class of size."""
    if positions.own.empty:
        return table("Positions by the value of the account.", pd.DataFrame(), _CLASSES)
    # All accounts of an exchange are as long as they are short: their share is no estimate.
    rows = positions.classes
    is_all = rows["size"] == "all"
    whole = rows[is_all].assign(low=None, high=None)
    made = table(_classes_caption(positions), rows[~is_all], _CLASSES)
    return replace(made, total=table("", whole, _CLASSES).rows[0])


def _classes_caption(positions: MarketPositions) -> str:
    has_values = positions.sizes is not None
    of = "over all dexes and tokens" if has_values else "on this dex"
    return f"Positions by the value of the account, {of}; 95 % intervals."
