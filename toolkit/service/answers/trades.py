"""Completed trades: positions from flat to flat, computed from fills and funding.

Beyond the specification: docs/live_service.md, section 9.
"""

import operator
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, is_perp_coin
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.records import CompletedTrade, Fill, FundingRow, PnlSummary
from toolkit.service.decimals import format_decimal
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import ACCOUNT, Store, json_array
from toolkit.times import DAY

_DIGITS = Decimal("1e-10")


@dataclass(slots=True)
class _OpenTrade:
    """A position that is not flat yet: what it bought (True) and sold (False)."""

    opened: int
    size: defaultdict[bool, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    usd: defaultdict[bool, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    fees: Decimal = Decimal(0)
    funding: Decimal = Decimal(0)

    def add(self, signed: Decimal, px: Decimal, fee: Decimal) -> None:
        self.size[signed > 0] += abs(signed)
        self.usd[signed > 0] += abs(signed) * px
        self.fees += fee


def user_completed_trades_by_time(store: Store, request: CheckedRequest) -> bytes:
    """Return the trades that ended in a time range, oldest first; rows omit the user."""
    comparison, key = request.page_start
    is_after = operator.ge if comparison == ">=" else operator.gt
    page = [
        trade
        for trade in _completed_trades(store, request, request["user"])
        if is_after((trade.close_time, trade.tx_index), key) and trade.close_time <= request.end
    ]
    user = b'"user":"%b",' % request["user"].encode()
    texts = (encode(trade) for trade in page[: request["page_size"]])
    return json_array(text.replace(user, b"", 1) for text in texts)


def user_pnl_summary(store: Store, request: CheckedRequest) -> bytes:
    """Return the sums over the trades that ended in a time range."""
    # ASSUMED: In `userPnlSummary`, `volumeTraded`, `daysActive` and `tradedPairs` count all perp
    # fills in the range, also those of trades that have not ended.
    user, start, end = request["user"], request["start"] or 0, request.end
    trades = [
        trade
        for trade in _completed_trades(store, request, user)
        if start <= trade.close_time <= end
    ]
    fills = list(_perp_fills(store, request, user))
    inside = [fill for fill in fills if start <= fill.time <= end]
    wins = sum(Decimal(trade.net_pnl) > 0 for trade in trades)
    count = len(trades)

    def total(name: str) -> str:
        return format_decimal(sum((Decimal(getattr(t, name)) for t in trades), Decimal(0)))

    volume = sum((Decimal(fill.px) * Decimal(fill.sz) for fill in inside), Decimal(0))
    return encode(
        PnlSummary(
            user=user,
            total_pnl=total("net_pnl"),
            win_rate=round(wins / count, 4) if count else 0.0,
            loss_rate=round((count - wins) / count, 4) if count else 0.0,
            total_trades=count,
            volume_traded=format_decimal(volume),
            total_fees=total("fees"),
            total_funding=total("funding_pnl"),
            days_active=len({fill.time // DAY for fill in inside}),
            account_age_days=(request.now_ms - fills[0].time) // DAY if fills else 0,
            human_score=None,
            traded_pairs=[*sorted({fill.coin for fill in inside})],
        )
    )


def _completed_trades(store: Store, request: CheckedRequest, user: str) -> list[CompletedTrade]:
    """Return all completed trades of an account, by the time of their end."""
    # ASSUMED: A trade that began before the data of the service is not a completed trade. A fill
    # that changes the side ends one trade and begins the next, and its fee is divided by size.
    # ASSUMED: A funding payment counts for the trade that is open before the fills of its
    # millisecond. `position_closed_size` is the size that was closed.
    funding: defaultdict[str, deque[FundingRow]] = defaultdict(deque)
    sql = f"SELECT row FROM user_funding WHERE {ACCOUNT} ORDER BY time, row"
    for text in store.select_texts("funding", sql, user):
        row = read_record(FundingRow, text)
        funding[row.delta.coin].append(row)
    open_trades: dict[str, _OpenTrade] = {}
    done: list[CompletedTrade] = []
    for fill in _perp_fills(store, request, user):
        trade, due = open_trades.get(fill.coin), funding[fill.coin]
        while due and due[0].time <= fill.time:
            payment = Decimal(due.popleft().delta.usdc)
            if trade is not None:
                trade.funding += payment
        before, fee = Decimal(fill.start_position), Decimal(fill.fee)
        signed = Decimal(fill.sz) * (1 if fill.side == "B" else -1)
        after, px = before + signed, Decimal(fill.px)
        closed = -before if before * after < 0 else signed
        closing_fee = (fee * closed / signed).quantize(_DIGITS)
        if before == 0:
            trade = open_trades[fill.coin] = _OpenTrade(fill.time)
        if trade is not None:
            trade.add(closed, px, closing_fee)
            if after == 0 or closed != signed:
                done.append(_complete(user, fill, trade, before < 0))
                del open_trades[fill.coin]
        if closed != signed:
            trade = open_trades[fill.coin] = _OpenTrade(fill.time)
            trade.add(after, px, fee - closing_fee)
    return sorted(done, key=lambda trade: (trade.close_time, trade.tx_index))


def _complete(user: str, fill: Fill, trade: _OpenTrade, is_short: bool) -> CompletedTrade:
    gross = trade.usd[False] - trade.usd[True]
    entry, exit = (trade.usd[is_buy] / trade.size[is_buy] for is_buy in (not is_short, is_short))
    return CompletedTrade(
        user=user,
        coin=fill.coin,
        position_type="Short" if is_short else "Long",
        gross_pnl=format_decimal(gross),
        net_pnl=format_decimal(gross - trade.fees + trade.funding),
        funding_pnl=format_decimal(trade.funding),
        fees=format_decimal(trade.fees),
        entry_px=format_decimal(entry.quantize(_DIGITS)),
        exit_px=format_decimal(exit.quantize(_DIGITS)),
        position_closed_size=format_decimal(trade.size[is_short]),
        open_time=trade.opened,
        close_time=fill.time,
        duration_ms=fill.time - trade.opened,
        tx_index=fill.tx_index,
    )


def _perp_fills(store: Store, request: CheckedRequest, user: str) -> Iterator[Fill]:
    """Yield the perp fills of an account, of the requested dex, in the order of execution."""
    dex: str | None = request["dex"]
    where = ACCOUNT if dex is None else f"{ACCOUNT} AND dex = ?"
    chosen = () if dex is None else (canonical_dex(dex),)
    sql = f"SELECT row FROM fill WHERE {where} ORDER BY time, tx, row"
    rows = store.iterate_rows(sql, user, *chosen)
    for batch in request.read_batches(rows):
        for text in store.row_texts("fill", [row for (row,) in batch]):
            fill = read_record(Fill, text)
            if is_perp_coin(fill.coin):
                yield fill
