"""The performance part of a wallet report: returns, their figures, and round trips."""

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import performance, plots, pnl
from toolkit.errors import HistoryWarning, MissingAmounts, MissingColumns
from toolkit.plots import formats
from toolkit.reports import blocks, tables
from toolkit.reports.blocks import BlockList
from toolkit.reports.sentences import Paragraph, Sentence, sentence
from toolkit.reports.tables import TextColumn, TextTable, table
from toolkit.reports.wallet_report import WalletResults

SENTENCES: Final = {
    "returns_unknown": "Returns are not known: {reason}.",
    "amounts_unknown": "Returns are not known: some fills do not state their closed PnL, their fee "
    "or the position before them.",
    "total_return": "The return of the {part} over {n:count day} is {value:rate}, without the "
    "effect of deposits and withdrawals: its value changed by {gain:signed} USD.",
    "drawdown": "The deepest known fall below an earlier high was {value:rate}.",
    "sharpe": "The Sharpe ratio per year is {value:ratio}; an interval of 95 % reaches from "
    "{low:ratio} to {high:ratio}.",
    "value_unknown": "At {missing:count} of {points:count} hours and events the value is not "
    "known, because open positions have no price or rows are missing: days without a known value "
    "count in the return of the next day with one.",
    "trips": "Of {n:count complete round trip}, {wins:count} ended with a gain, {after}.",
    "one_trip": "The only complete round trip brought {net:signed} USD, {after}.",
    "no_trips": "The account completed no round trip.",
}
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    # figure -> name in the table, how its value is written
    "total_return": ("return, time-weighted", "share"),
    "money_weighted_return": ("return, money-weighted", "share"),
    "volatility": ("volatility per year", "share"),
    "sharpe": ("Sharpe ratio per year", "ratio"),
    "sortino": ("Sortino ratio per year", "ratio"),
    "max_drawdown": ("deepest drawdown", "share"),
    "drawdown_periods": ("longest drawdown, days", "ratio"),
    "value_at_risk": ("worst 5 % of days begin at", "share"),
    "best": ("best day", "share"),
    "worst": ("worst day", "share"),
    "positive": ("days with a gain", "share"),
    "leverage": ("leverage, mean", "ratio"),
    "win_rate": ("trips with a gain", "share"),
    "payoff_ratio": ("mean gain / mean loss", "ratio"),
    "profit_factor": ("gains / losses", "ratio"),
    "expectancy": ("mean net of a trip, USD", "usd"),
    "median_hours": ("median holding time, hours", "ratio"),
    "turnover": ("volume / capital, per year", "ratio"),
    "fee_bps": ("fees, bps of volume", "ratio"),
    "fee_drag": ("fees, bps of capital per year", "ratio"),
    "funding_drag": ("funding paid, bps of capital per year", "ratio"),
}
_CLOSED_BY: Final[Mapping[str, str]] = {"closed": "the account", "liquidated": "liquidation"}
_TRIPS: Final = (
    TextColumn("coin", "coin", tables.plain_text, number=False),
    TextColumn("side", "side", tables.plain_text, number=False),
    TextColumn("opened", "opened, UTC", tables.time_text, number=False),
    TextColumn("duration_hours", "hours", lambda value: f"{value:,.1f}"),
    TextColumn("entry_px", "entry", formats.plain_number),
    TextColumn("exit_px", "exit", formats.plain_number),
    TextColumn("net", "net, USD", tables.signed_usd),
    TextColumn("return_", "return", formats.percent_share),
    TextColumn("status", "closed by", lambda value: _CLOSED_BY[value], number=False),
)
_MAX_TRIPS: Final = 10


class WalletPerformance:
    """Returns and round trips of a wallet; each is computed once.

    Parameters
    ----------
    results : WalletResults
        The results of the report.
    marks : DataFrame, optional
        Prices over time, for positions that the account's own fills and funding do not price.
    """

    def __init__(self, results: WalletResults, marks: pd.DataFrame | None = None) -> None:
        self.results, self.marks = results, marks

    @cached_property
    def value(self) -> pd.DataFrame:
        """The value of the account over time; empty without fills that suffice for it."""
        results, account = self.results, self.results.account
        lacks = results.fills_without_amounts or results.fills_without_position
        if account.fills.empty or lacks:
            return pd.DataFrame()
        states = account.states
        made: pd.DataFrame = pnl.value(
            account.prepared,
            results.funding,
            account.ledger,
            marks=self.marks,
            accounts=None if states is None else (states.accounts, states.positions),
        )
        return made

    @cached_property
    def returns(self) -> pd.DataFrame:
        """The returns by day; empty if they are not known."""
        if self.value.empty:
            return pd.DataFrame()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HistoryWarning)  # a sentence states the reason
            rows: pd.DataFrame = performance.returns(self.value)
        return rows if rows["return_"].notna().any() else pd.DataFrame()

    @property
    def reason(self) -> str:
        """Why returns are not known."""
        if self.results.account.fills.empty:
            return "the account has no fills"
        if self.value.empty:
            return "some fills do not state all amounts"
        reasons = self.value["reason"][self.value["reason"] != ""]
        return str(reasons.mode().iloc[0]) if len(reasons) else "the account had no capital"

    @cached_property
    def trips(self) -> pd.DataFrame:
        """The complete round trips; trips with the largest gain or loss are first."""
        account = self.results.account
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (HistoryWarning, MissingAmounts))
            try:
                rows: pd.DataFrame = pnl.round_trips(account.prepared, self.results.funding)
            except MissingColumns:  # fills without amounts or without a price of their token
                return pd.DataFrame()
        complete = rows[rows["status"].isin(list(_CLOSED_BY)) & rows["net"].notna()]
        order: Any = complete["net"].abs().sort_values(ascending=False, kind="stable").index
        ordered: pd.DataFrame = complete.loc[order].reset_index(drop=True)
        return ordered

    @property
    def costs(self) -> str:
        """After which costs the trips are net."""
        is_missing = self.results.funding is None
        return "after fees, without funding" if is_missing else "after fees and funding"

    @cached_property
    def figures(self) -> pd.DataFrame:
        """The performance sheet; empty if there are neither returns nor trips."""
        if self.returns.empty:
            return performance.trip_sheet(self.trips) if len(self.trips) else pd.DataFrame()
        trips = self.trips if len(self.trips) else None
        sheet: pd.DataFrame = performance.sheet(
            self.returns, trips=trips, costs=self.results.attribution(by="day")
        )
        return sheet

    def figure(self, name: str) -> pd.Series:
        """Return the row of a figure."""
        row: pd.Series = self.figures[self.figures["figure"] == name].iloc[0]
        return row


def list_sentences(wallet: WalletPerformance) -> list[Sentence]:
    """Return the sentences of this part."""
    results, sentences = wallet.results, []

    def add(name: str, **values: Any) -> None:
        sentences.append(sentence(SENTENCES, name, **values))

    if results.fills_without_amounts or results.fills_without_position:
        add("amounts_unknown")
    elif wallet.returns.empty:
        add("returns_unknown", reason=wallet.reason)
    else:
        rows, value = wallet.returns, wallet.value
        add(
            "total_return",
            part=value["part"].iloc[0],
            n=len(rows),
            value=wallet.figure("total_return")["value"],
            gain=rows["gain"].sum(),
        )
        add("drawdown", value=wallet.figure("max_drawdown")["value"])
        ratio = wallet.figure("sharpe")
        if pd.notna(ratio["low"]):
            add("sharpe", value=ratio["value"], low=ratio["low"], high=ratio["high"])
        if missing := int(value["value"].isna().sum()):
            add("value_unknown", missing=missing, points=len(value))
    if len(wallet.trips) == 1:
        add("one_trip", net=wallet.trips["net"].iloc[0], after=wallet.costs)
    elif len(wallet.trips):
        wins = int((wallet.trips["net"] > 0).sum())
        add("trips", n=len(wallet.trips), wins=wins, after=wallet.costs)
    else:
        add("no_trips")
    return sentences


def describe_performance(wallet: WalletPerformance) -> Paragraph:
    """Return the performance in a few sentences."""
    return Paragraph(list_sentences(wallet))


def draw_returns(wallet: WalletPerformance) -> BlockList:
    """Return the figures of returns; none if returns are not known."""
    if wallet.returns.empty:
        return BlockList([])
    return BlockList(
        [
            blocks.figure(
                plots.growth_curve,
                wallet.returns,
                caption="Time-weighted return of the account's value; below, the distance from the "
                "highest value so far.",
            ),
            blocks.figure(
                plots.return_calendar, wallet.returns, caption="Return of each day, UTC."
            ),
        ]
    )


def make_figure_table(wallet: WalletPerformance) -> TextTable:
    """Return the performance figures with their intervals."""
    rows = wallet.figures
    known = rows[rows["figure"].isin(list(_NAMES)) & rows["value"].notna()] if len(rows) else rows
    texts = [
        {
            "name": _NAMES[row["figure"]][0],
            "value": _write_figure(row["figure"], row["value"]),
            "interval": ""
            if pd.isna(row["low"])
            else f"{_write_figure(row['figure'], row['low'])} to "
            f"{_write_figure(row['figure'], row['high'])}",
            "n": row["n"],
        }
        for _, row in known.iterrows()
    ]
    columns = (
        TextColumn("name", "figure", tables.plain_text, number=False),
        TextColumn("value", "value", tables.plain_text),
        TextColumn("interval", "interval of 95 %", tables.plain_text),
        TextColumn("n", "n", formats.whole_number),
    )
    return table(
        "Performance: n counts days, or round trips. What happened has no interval.",
        pd.DataFrame(texts),
        columns,
    )


def make_trip_table(wallet: WalletPerformance) -> TextTable:
    """Return the round trips with the largest gain or loss."""
    rows = wallet.trips.head(_MAX_TRIPS)
    if rows.empty:
        return table("There is no complete round trip in this period.", rows, _TRIPS)
    shown = (
        f"The {len(rows)} of {len(wallet.trips)} complete round trips with the largest gain or loss"
    )
    return table(f"{shown}, {wallet.costs}.", rows, _TRIPS)


def _write_figure(name: str, value: float) -> str:
    unit = _NAMES[name][1]
    if unit == "share":
        return formats.true_minus(f"{100 * value:.2f} %")
    if unit == "usd":
        return tables.signed_usd(value)
    if unit == "count":
        return formats.whole_number(value)
    return formats.true_minus(f"{value:,.2f}")
