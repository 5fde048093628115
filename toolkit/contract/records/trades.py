"""Completed trades as the service computes them. docs/live_service.md, section 9."""

from typing import Annotated

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Record


class CompletedTrade(Record, kw_only=True, rename=None):
    """A perp position from flat to flat."""

    # Not all answers state it.
    user: Annotated[str, k.ADDRESS("account", lacked=True)]
    coin: Annotated[str, k.COIN("name of the market", key=True)]
    position_type: Annotated[str, k.WORD("Long or Short", key=True)]
    gross_pnl: Annotated[str, k.USD("proceeds less cost; negative: a loss")]
    net_pnl: Annotated[str, k.USD("gross_pnl less fees, with funding; negative: a loss")]
    funding_pnl: Annotated[str, k.USD("funding received; negative: paid; part of net_pnl")]
    fees: Annotated[str, k.USD("fees paid; negative: received; part of net_pnl")]
    entry_px: Annotated[str, k.PRICE("size-weighted average of the opening prices")]
    exit_px: Annotated[str, k.PRICE("size-weighted average of the closing prices")]
    position_closed_size: Annotated[str, k.SIZE("size closed, positive")]
    open_time: Annotated[int, k.TIME("time of the first fill")]
    close_time: Annotated[int, k.TIME("time of the last fill", key=True)]
    duration_ms: Annotated[
        int, k.COUNT("time from the first to the last fill", unit="milliseconds")
    ]
    tx_index: Annotated[int, k.COUNT("transaction index of the last fill")]


class PnlSummary(Record, kw_only=True):
    """The completed trades of an account, summed up."""

    # Not all answers state it.
    user: Annotated[str, k.ADDRESS("account", lacked=True)]
    total_pnl: Annotated[str, k.USD("sum of net_pnl over the completed trades; negative: a loss")]
    win_rate: Annotated[float, k.RATE("share of the trades with a positive net_pnl")]
    # Not all answers have it.
    loss_rate: Annotated[float, k.RATE("share of the other trades", lacked=True)]
    total_trades: Annotated[int, k.COUNT("number of completed trades")]
    volume_traded: Annotated[str, k.USD("volume")]
    total_fees: Annotated[str, k.USD("fees paid; negative: received")]
    total_funding: Annotated[str, k.USD("funding received; negative: paid")]
    days_active: Annotated[int, k.COUNT("number of days with a trade")]
    account_age_days: Annotated[int, k.COUNT("days since the first trade, whatever the range")]
    human_score: Annotated[
        float | None, k.RATE("high: probably a human; low: a program", unit="0 to 100")
    ]
    traded_pairs: Annotated[list[object], k.NESTED("the traded markets")]
