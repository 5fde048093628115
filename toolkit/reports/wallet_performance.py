"""The performance part of a wallet report: returns, their figures, and round trips."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import performance, plots, pnl
from toolkit.errors import HistoryWarning, MissingAmounts, MissingColumns
from toolkit.plots import formats
from toolkit.plots.tables import Column, Table, table
from toolkit.reports import blocks
from toolkit.reports.sentences import Sentence, paragraph, say
from toolkit.reports.wallet_report import WalletResults


def fine_share(value: float) -> str:
    """Return a share in percent with two decimals: returns of large accounts are small."""
    return formats.true_minus(f"{100 * value:.2f} %")


_NAMES: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    # figure -> name in the table, how its value is written
    "total_return": ("return, time-weighted", fine_share),
    "money_weighted_return": ("return, money-weighted", fine_share),
    "volatility": ("volatility per year", fine_share),
    "sharpe": ("Sharpe ratio per year", formats.two_decimals),
    "sortino": ("Sortino ratio per year", formats.two_decimals),
    "max_drawdown": ("deepest drawdown", fine_share),
    "drawdown_periods": ("longest drawdown, days", formats.two_decimals),
    "value_at_risk": ("worst 5 % of days begin at", fine_share),
    "best": ("best day", fine_share),
    "worst": ("worst day", fine_share),
    "positive": ("days with a gain", fine_share),
    "leverage": ("leverage, mean", formats.two_decimals),
    "win_rate": ("trips with a gain", fine_share),
    "payoff_ratio": ("mean gain / mean loss", formats.two_decimals),
    "profit_factor": ("gains / losses", formats.two_decimals),
    "expectancy": ("mean net of a trip, USD", formats.signed_cents),
    "median_hours": ("median holding time, hours", formats.two_decimals),
    "turnover": ("volume / capital, per year", formats.two_decimals),
    "fee_bps": ("fees, bps of volume", formats.two_decimals),
    "fee_drag": ("fees, bps of capital per year", formats.two_decimals),
    "funding_drag": ("funding paid, bps of capital per year", formats.two_decimals),
}
_CLOSED_BY: Final[Mapping[str, str]] = {"closed": "the account", "liquidated": "liquidation"}
_TRIPS: Final = (
    Column("coin", "coin", number=False),
    Column("side", "side", number=False),
    Column("opened", "opened, UTC", formats.clock_time, number=False),
    Column("duration_hours", "hours", lambda value: f"{value:,.1f}"),
    Column("entry_px", "entry", formats.plain_number),
    Column("exit_px", "exit", formats.plain_number),
    Column("net", "net, USD", formats.signed_cents),
    Column("return_", "return", formats.percent_share),
    Column("status", "closed by", lambda value: _CLOSED_BY[value], number=False),
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
        frames = (account.prepared, results.funding, account.ledger)
        parts = None if states is None else (states.accounts, states.positions)
        return pnl.value(*frames, marks=self.marks, accounts=parts)

    @cached_property
    def returns(self) -> pd.DataFrame:
        """The returns by day; empty if they are not known."""
        if self.value.empty:
            return pd.DataFrame()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HistoryWarning)  # a sentence states the reason
            rows = performance.returns(self.value)
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
                rows = pnl.round_trips(account.prepared, self.results.funding)
            except MissingColumns:  # fills without amounts or without a price of their token
                return pd.DataFrame()
        complete = rows[rows["status"].isin(list(_CLOSED_BY)) & rows["net"].notna()]
        return complete.sort_values(
            "net", key=abs, ascending=False, kind="stable", ignore_index=True
        )

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
        trips, costs = self.trips if len(self.trips) else None, self.results.attribution(by="day")
        return performance.sheet(self.returns, trips=trips, costs=costs)

    def figure(self, name: str) -> pd.Series:
        """Return the row of a figure."""
        row: pd.Series = self.figures[self.figures["figure"] == name].iloc[0]
        return row


@paragraph
def describe_performance(wallet: WalletPerformance) -> Iterator[Sentence]:
    """Return the performance in a few sentences."""
    results, returns, trips = wallet.results, wallet.returns, wallet.trips
    if results.fills_without_amounts or results.fills_without_position:
        yield say(
            "Returns are not known: some fills do not state their closed PnL, their fee or the "
            "position before them."
        )
    elif returns.empty:
        yield say("Returns are not known: {reason}.", reason=wallet.reason)
    else:
        yield say(
            "The return of the {part} over {n:count day} is {total_return:rate}, without the "
            "effect of deposits and withdrawals: its value changed by {gain:signed} USD.",
            part=wallet.value["part"].iloc[0],
            n=len(returns),
            total_return=wallet.figure("total_return")["value"],
            gain=returns["gain"].sum(),
        )
        text = "The deepest known fall below an earlier high was {drawdown:rate}."
        yield say(text, drawdown=wallet.figure("max_drawdown")["value"])
        ratio = wallet.figure("sharpe")
        if pd.notna(ratio["low"]):
            text = (
                "The Sharpe ratio per year is {value:ratio}; an interval of 95 % reaches from "
                "{low:ratio} to {high:ratio}."
            )
            yield say(text, **ratio)
        if missing := int(wallet.value["value"].isna().sum()):
            text = (
                "At {missing:count} of {points:count} hours and events the value is not known, "
                "because open positions have no price or rows are missing: days without a known "
                "value count in the return of the next day with one."
            )
            yield say(text, missing=missing, points=len(wallet.value))
    if trips.empty:
        yield say("The account completed no round trip.")
    elif len(trips) == 1:
        text = "The only complete round trip brought {net:signed} USD, {after}."
        yield say(text, net=trips["net"].iloc[0], after=wallet.costs)
    else:
        text = "Of {n_trips:count complete round trip}, {wins:count} ended with a gain, {after}."
        wins = int((trips["net"] > 0).sum())
        yield say(text, n_trips=len(trips), wins=wins, after=wallet.costs)


def draw_returns(wallet: WalletPerformance) -> blocks.Block:
    """Return the figures of returns; none if returns are not known."""
    return blocks.join(
        blocks.draw_rows(
            plots.growth_curve,
            wallet.returns,
            "Time-weighted return of the account's value; below, the distance from the highest "
            "value so far.",
        ),
        blocks.draw_rows(plots.return_calendar, wallet.returns, "Return of each day, UTC."),
    )


def make_figure_table(wallet: WalletPerformance) -> Table:
    """Return the performance figures with their intervals."""
    rows = wallet.figures
    known = rows[rows["figure"].isin(list(_NAMES)) & rows["value"].notna()] if len(rows) else rows
    texts = []
    for _, row in known.iterrows():
        name, write = _NAMES[row["figure"]]
        ends = "" if pd.isna(row["low"]) else f"{write(row['low'])} to {write(row['high'])}"
        texts.append({"name": name, "value": write(row["value"]), "interval": ends, "n": row["n"]})
    columns = (
        Column("name", "figure", number=False),
        Column("value", "value"),
        Column("interval", "interval of 95 %"),
        Column("n", "n", formats.whole_number),
    )
    return table(
        "Performance: n counts days, or round trips. What happened has no interval.",
        pd.DataFrame(texts),
        columns,
    )


def make_trip_table(wallet: WalletPerformance) -> Table:
    """Return the round trips with the largest gain or loss."""
    rows = wallet.trips.head(_MAX_TRIPS)
    if rows.empty:
        return table("There is no complete round trip in this period.", rows, _TRIPS)
    shown = (
        f"The {len(rows)} of {len(wallet.trips)} complete round trips with the largest gain or loss"
    )
    return table(f"{shown}, {wallet.costs}.", rows, _TRIPS)
