"""The performance part of a wallet report: returns, their figures, and round trips."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pandas as pd

from toolkit import plots
from toolkit.plots import formats
from toolkit.plots.tables import Column, Table, table
from toolkit.reports import blocks
from toolkit.reports.sentences import Sentence, paragraph, say
from toolkit.reports.wallet_report import CLOSED_BY, WalletResults


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
_TRIPS: Final = (
    Column("coin", "coin", number=False),
    Column("side", "side", number=False),
    Column("opened", "opened, UTC", formats.clock_time, number=False),
    Column("duration_hours", "hours", lambda value: f"{value:,.1f}"),
    Column("entry_px", "entry", formats.plain_number),
    Column("exit_px", "exit", formats.plain_number),
    Column("net", "net, USD", formats.signed_cents),
    Column("return_", "return", formats.percent_share),
    Column("status", "closed by", CLOSED_BY.__getitem__, number=False),
)
_MAX_TRIPS: Final = 10


@paragraph
def describe_performance(results: WalletResults) -> Iterator[Sentence]:
    """Return the performance in a few sentences."""
    returns, trips, value = results.returns, results.trips, results.value
    if results.unvalued or results.unplaced_perps:
        yield say(
            "Returns are not known: some fills do not state their closed PnL, their fee or the "
            "position before them."
        )
    elif returns.empty:
        yield say("Returns are not known: {reason}.", reason=results.reason)
    else:
        yield say(
            "The return of the {part} over {n:count day} is {total_return:rate}, without the "
            "effect of deposits and withdrawals: its value changed by {gain:signed} USD.",
            part=value["part"].iloc[0],
            n=len(returns),
            total_return=results.figure("total_return")["value"],
            gain=returns["gain"].sum(),
        )
        text = "The deepest known fall below an earlier high was {drawdown:rate}."
        yield say(text, drawdown=results.figure("max_drawdown")["value"])
        ratio = results.figure("sharpe")
        if pd.notna(ratio["low"]):
            text = (
                "The Sharpe ratio per year is {value:ratio}; an interval of 95 % reaches from "
                "{low:ratio} to {high:ratio}."
            )
            yield say(text, **ratio)
        if missing := int(value["value"].isna().sum()):
            text = (
                "At {missing:count} of {points:count} hours and events the value is not known, "
                "because open positions have no price or rows are missing: days without a known "
                "value count in the return of the next day with one."
            )
            yield say(text, missing=missing, points=len(value))
    after = _costs(results)
    if trips.empty:
        yield say("The account completed no round trip.")
    elif len(trips) == 1:
        text = "The only complete round trip brought {net:signed} USD, {after}."
        yield say(text, net=trips["net"].iloc[0], after=after)
    else:
        text = "Of {n_trips:count complete round trip}, {wins:count} ended with a gain, {after}."
        yield say(text, n_trips=len(trips), wins=int((trips["net"] > 0).sum()), after=after)


def _costs(results: WalletResults) -> str:
    """Return after which costs the round trips are net."""
    return "after fees, without funding" if results.funding is None else "after fees and funding"


def draw_returns(results: WalletResults) -> blocks.Block:
    """Return the figures of returns; none if returns are not known."""
    caption = (
        "Time-weighted return of the account's value; below, the distance from the highest value "
        "so far."
    )
    return blocks.join(
        blocks.draw_rows(plots.growth_curve, results.returns, caption),
        blocks.draw_rows(plots.return_calendar, results.returns, "Return of each day, UTC."),
    )


def make_figure_table(results: WalletResults) -> Table:
    """Return the performance figures with their intervals."""
    texts = []
    for row in results.figures.to_dict("records"):
        if row["figure"] in _NAMES and pd.notna(row["value"]):
            name, write = _NAMES[row["figure"]]
            ends = "" if pd.isna(row["low"]) else f"{write(row['low'])} to {write(row['high'])}"
            texts.append((name, write(row["value"]), ends, row["n"]))
    columns = (
        Column("name", "figure", number=False),
        Column("value", "value"),
        Column("interval", "interval of 95 %"),
        Column("n", "n", formats.whole_number),
    )
    caption = "Performance: n counts days, or round trips. What happened has no interval."
    return table(caption, pd.DataFrame(texts, columns=[each.name for each in columns]), columns)


def make_trip_table(results: WalletResults) -> Table:
    """Return the round trips with the largest gain or loss."""
    rows = results.trips.head(_MAX_TRIPS)
    caption = "There is no complete round trip in this period."
    if len(rows):
        which = f"The {len(rows)} of {len(results.trips)} complete round trips"
        caption = f"{which} with the largest gain or loss, {_costs(results)}."
    return table(caption, rows, _TRIPS)
