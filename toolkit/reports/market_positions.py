"""The liquidations and the positioning of a market report: who is long, and what a fall would sell.

The notebook ``notebooks/market.py`` has the prose, and calls these functions.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pandas as pd

from toolkit import accounts, liquidations, plots
from toolkit.errors import UnmeasuredAccounts
from toolkit.liquidations import Cascade
from toolkit.plots import formats
from toolkit.plots.tables import Column, Table, table
from toolkit.prepare.states import MODES
from toolkit.reports import blocks
from toolkit.reports.sentences import Sentence, paragraph, say

if TYPE_CHECKING:
    from toolkit.reports.market_report import MarketReport

R = TypeVar("R")

_SHOCKS: Final = (-0.3, -0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.2, 0.3)
_SHOCK: Final = 0.2  # of the sentences
_WIDTH: Final = 0.02  # of a bin of the map
_DRAWS: Final = 99
_SMALL: Final = 1.01  # amplification below which there is no spiral
_MODES: Final = {name: number for number, name in MODES.items()}


def _write_change(value: float) -> str:
    """Return a price change in whole percent, with its sign."""
    return formats.true_minus(f"{value:+.0%}").replace("%", " %")


_LIQUIDATED: Final = (
    Column("shock", "price change", _write_change),
    Column("accounts", "accounts", formats.whole_number),
    Column("forced_usd", "liquidated, USD", formats.whole_dollars),
    Column("backstop_usd", "by the backstop, USD", formats.whole_dollars),
    Column("added", "added to the change, bps", formats.basis_points),
    Column("low", "from", formats.basis_points),
    Column("high", "to", formats.basis_points),
    Column("now", "added in the book now, bps", formats.basis_points),
    Column("together_usd", "if all prices change: liquidated, USD", formats.whole_dollars),
)
_CLASSES: Final = (
    Column("size", "value of the account, USD", number=False),
    Column("accounts", "accounts", formats.whole_number),
    Column("long_usd", "long, USD", formats.whole_dollars),
    Column("short_usd", "short, USD", formats.whole_dollars),
    Column("net_share", "net long share", formats.percent_share),
    Column("low", "from", formats.percent_share),
    Column("high", "to", formats.percent_share),
    Column("gain_bps", "gain since entry, bps", formats.basis_points),
    Column("effective_accounts", "effective accounts", lambda value: f"{value:,.1f}"),
    Column("top_share", "largest account", formats.percent_share),
)


class MarketPositions:
    """Liquidations and positioning of a market; each result is computed once.

    Parameters
    ----------
    market : MarketReport
        The report, with the frames of its accounts.

    Attributes
    ----------
    positions, own : DataFrame
        Positions of the accounts in all coins of the dex, and in the coin of the report; empty if
        they are not known.
    equity : DataFrame
        The accounts of the states, without the time of each, with their modes if known.
    margins : dict
        Arguments of the helpers of liquidations: the largest leverages and the margin tables.
    """

    def __init__(self, market: "MarketReport") -> None:
        self.market, self.frames = market, market.accounts
        frames, values = market.accounts, market.accounts.values
        self.positions, self.own, self.equity = pd.DataFrame(), pd.DataFrame(), pd.DataFrame()
        if frames.states is not None:
            rows = self.positions = _prepare_states(frames.states.positions)
            self.own = rows[(rows["coin"] == market.coin) & (rows["szi"] != 0)]
            self.equity = _prepare_states(frames.states.accounts)
            if values is not None:
                modes = dict(zip(values["user"], values["mode"].map(_MODES), strict=True))
                self.equity["account_mode"] = self.equity["user"].map(modes).astype("float64")
        self.margins: dict[str, Any] = {"max_leverage": None}
        if frames.markets is not None and frames.tiers is not None:
            self.margins = {"max_leverage": frames.markets, "margin_tables": frames.tiers}

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Notional of the coin by the distance of its liquidation price."""
        options = {"width": _WIDTH, "accounts": self.equity, **self.margins}
        rows = _quietly(liquidations.levels, self.positions, self.market.context, **options)
        return rows[rows["coin"] == self.market.coin].reset_index(drop=True)

    @cached_property
    def cascade(self) -> Cascade:
        """What a change of the price of this coin alone liquidates, by the fitted slippage."""
        return self._run(self.market.fit, draws=_DRAWS)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """The cascade by shock, with that in the book now, and that of all coins together."""
        depth, rows = self.market.depth, self.cascade.params
        has_book = depth is not None and len(depth)
        now = self._run(depth).params["estimate"] if has_book else float("nan")
        rows = rows.assign(added=rows["estimate"], now=now)
        for name in ("low", "high", "added", "now"):
            rows[name] = 1e4 * (rows[name] - rows["shock"])
        rows["together_usd"] = self._run(self.market.fit, betas=1.0).params["forced_usd"]
        return rows

    def _run(self, impact: Any, draws: int = 1, betas: float = 0.0) -> Cascade:
        frames, options = (self.positions, self.equity, impact), {"betas": betas, "draws": draws}
        shocks = (self.market.coin, _SHOCKS)
        return _quietly(liquidations.cascade, *frames, *shocks, **options, **self.margins)

    @cached_property
    def classes(self) -> pd.DataFrame:
        """Positioning of the coin by the size of the accounts."""
        values = self.frames.values
        sizes = self.equity if values is None else values.assign(account_value=values["value"])
        return _quietly(accounts.positioning, self.own, sizes)


def _quietly(helper: Callable[..., R], *arguments: Any, **options: Any) -> R:
    """Return the result of a helper; a sentence counts the accounts that it leaves out."""
    with warnings.catch_warnings(action="ignore", category=UnmeasuredAccounts):
        return helper(*arguments, **options)


def _prepare_states(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows without their time: an archive may have states of several times.

    The addresses leave the provenance, which pandas copies in each step. The report states them.
    """
    rows = rows.drop(columns="time")
    facts = {name: fact for name, fact in rows.attrs["toolkit"].items() if name != "parameters"}
    rows.attrs = {"toolkit": facts}
    return rows


@paragraph
def describe_accounts(positions: MarketPositions) -> Iterator[Sentence]:
    """Return whose positions are known, and what the states do not show."""
    frames, own = positions.frames, positions.own
    if frames.states is None:
        yield say("The positions of accounts are not known: {reason}.", reason=frames.reason)
        return
    tell = partial(say, coin=positions.market.coin)
    if own.empty:
        text = "None of the {accounts:count known account|known accounts} has a position in {coin}."
        yield tell(text, accounts=frames.states.accounts["user"].nunique())
        return
    text = (
        "{holders:count account has|accounts have} a known position in {coin}: {long:share} of the "
        "long side of the open interest, and {short:share} of the short side."
    )
    known = {"long": 0.0, "short": 0.0, **positions.levels.groupby("side")["known"].first()}
    yield tell(text, holders=own["user"].nunique(), **known)
    equity, held = positions.equity, positions.positions
    rows = _quietly(liquidations.buffers, equity, held, **positions.margins)
    hidden = rows.loc[(rows["margin"] == "cross") & rows["equity"].isna(), "user"]
    is_hidden = own["user"].isin(hidden) & (own["leverage_type"] == "cross")
    if shared := own.loc[is_hidden, "user"].nunique():
        text = (
            "For {shared:count account} with unified or portfolio margin, a state does not show "
            "the collateral: liquidations leave them out."
        )
        yield say(text, shared=shared)
    if frames.tiers is None:
        yield say(
            "The source does not have the margin tables. Each coin therefore has one tier here, "
            "which requires too little margin of large positions."
        )


@paragraph
def describe_cascade(positions: MarketPositions) -> Iterator[Sentence]:
    """Return what changes of the price would liquidate, and how far forced trades carry them."""
    if positions.own.empty:
        return
    rows, tell = positions.changes, partial(say, coin=positions.market.coin)
    for _, row in rows[rows["shock"].isin([-_SHOCK, _SHOCK]) & (rows["accounts"] > 0)].iterrows():
        yield tell(
            "A change of the price of {coin} alone by {shock:rate} liquidates "
            "{accounts:count account} with {forced_usd:dollars} USD of positions.",
            **row,
        )
        if pd.notna(row["added"]):
            text = (
                "Their forced trades move the price by another {added:bps} bps (95 %: {low:bps} to "
                "{high:bps})."
            )
            yield tell(text, **row)
    row = rows.sort_values("amplification", ascending=False, kind="stable").iloc[0]
    if not rows["accounts"].any():
        text = (
            "No change of the price of {coin} alone, from {lowest:rate} to {highest:rate}, "
            "liquidates any of them."
        )
        yield tell(text, lowest=min(_SHOCKS), highest=max(_SHOCKS))
    elif rows.loc[rows["accounts"] > 0, "amplification"].isna().any():
        yield tell(
            "How far forced trades would move the price is not known: no curve fits the samples."
        )
    elif row["amplification"] >= _SMALL:
        text = (
            "The spiral is largest after {shock:rate}: the price moves {amplification:ratio} times "
            "as far, in {rounds:count round}."
        )
        yield tell(text, **row)
    else:
        yield tell(
            "The book absorbs the forced trades: they add less than a hundredth to each change."
        )
    together = rows.set_index("shock")["together_usd"]
    text = (
        "If all prices of the dex change alike, a fall by {shock:share} liquidates {fall:dollars} "
        "USD of positions in all coins, and an equal rise liquidates {rise:dollars} USD."
    )
    yield tell(text, shock=_SHOCK, fall=together[-_SHOCK], rise=together[_SHOCK])


@paragraph
def describe_positioning(positions: MarketPositions) -> Iterator[Sentence]:
    """Return which accounts are long, how crowded the sides are, and what they gained."""
    if positions.own.empty:
        return
    classes = positions.classes[positions.classes["size"] != "all"]
    usd = classes["long_usd"] - classes["short_usd"]
    # Two classes have opposite net positions: then the one with more accounts comes first.
    ranked = classes.assign(net=usd, rank=usd.abs().round(2))
    row = ranked.sort_values(["rank", "accounts"], ascending=False).iloc[0]
    text = 'The size class with the largest net position is "{size}": {net:signed} USD of '
    text += (
        "{accounts:count account}, a net long share of {net_share:rate} (95 %: {low:rate} to "
        "{high:rate})."
        if row["accounts"] > 1
        else "one account."
    )
    yield say(text, **row)
    sides = []
    for name, sign in (("long_", 1), ("short_", -1)):
        rows = accounts.positioning(positions.own[positions.own["szi"] * sign > 0])
        sides.append(rows.reindex([0]).iloc[0].add_prefix(name))
    text = (
        "Longs are as concentrated as {long_effective_accounts:ratio} accounts of equal size, "
        "shorts as {short_effective_accounts:ratio}. The largest long is {long_top_share:share} of "
        "its side, the largest short {short_top_share:share}. The gain of open longs since their "
        "entry is {long_gain_bps:bps} bps, that of open shorts {short_gain_bps:bps} bps."
    )
    yield say(text, **pd.concat(sides))


def draw_liquidations(positions: MarketPositions) -> blocks.Block:
    """Return the map of liquidation prices and the cascade; each only if it shows something."""
    drawn: list[blocks.Block] = []
    if positions.own.empty:
        return blocks.join()
    if positions.levels["distance"].notna().any():
        caption = (
            "Known positions by the distance of their liquidation price from the mark price: in "
            "each step of 2 %, and added up from the mark price."
        )
        drawn.append(blocks.figure(plots.liquidation_map, positions.levels, caption=caption))
    if positions.changes["accounts"].any():
        caption = (
            "The price after all rounds of forced trades, with the 95 % interval of the fitted "
            "slippage; below, the liquidated positions by round."
        )
        drawn.append(blocks.figure(plots.cascade, positions.cascade, caption=caption))
    return blocks.join(*drawn)


def list_liquidations(positions: MarketPositions) -> Table:
    """Return what changes of the price would liquidate."""
    rows = pd.DataFrame() if positions.own.empty else positions.changes
    return table("What a change of the price alone liquidates; 95 % intervals.", rows, _LIQUIDATED)


def draw_positioning(positions: MarketPositions) -> blocks.Block:
    """Return the figure of positioning; none without positions."""
    caption = (
        "Net long share of the accounts by their value, with 95 % intervals; below, the gain of "
        "their open positions since entry."
    )
    rows = pd.DataFrame() if positions.own.empty else positions.classes
    return blocks.draw_rows(plots.positioning, rows, caption)


def list_classes(positions: MarketPositions) -> Table:
    """Return the positioning of each class of size."""
    if positions.own.empty:
        return table("Positions by the value of the account.", pd.DataFrame(), _CLASSES)
    # All accounts of an exchange are as long as they are short: their share is no estimate.
    rows = positions.classes
    is_all = rows["size"] == "all"
    whole = rows[is_all].assign(low=None, high=None)
    of = "on this dex" if positions.frames.values is None else "over all dexes and tokens"
    caption = f"Positions by the value of the account, {of}; 95 % intervals."
    return table(caption, rows[~is_all], _CLASSES, total=whole)
