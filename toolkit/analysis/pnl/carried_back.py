"""Equity before a moment at which the service states it: carried back through the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from toolkit.analysis.common import columns, engines
from toolkit.analysis.common.account_values import (
    AccountValues,
    Amount,
    column_list,
    distinct_rows,
    read_values,
    row_times,
    zero_amount,
)
from toolkit.analysis.common.columns import Numbers
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.pnl.attribution import compute_attribution
from toolkit.analysis.pnl.periods import covered_period, mark_inside, rows_inside
from toolkit.analysis.pnl.reconcile_tables import AccountTables, select_tables
from toolkit.errors import MissingColumns
from toolkit.times import HOUR, Time, to_iso, to_ms

__all__ = ["carried_back"]

MONEY = ("realised", "unrealised", "pnl", "flows", "equity")
STATED = ("szi", "position_value", "unrealized_pnl")
_AMOUNTS = ("px", "sz", "closed_pnl", "fee")
_GAPS = {"unpriced_fees": "fees in other tokens", "unknown_flows": "flows of unknown amount"}
_LONG_AGO = -(2**62)


def carried_back(
    accounts: Any,
    positions: Any,
    fills: Any,
    funding: Any,
    ledger: Any,
    *,
    start_time: Time | None = None,
    end_time: Time | None = None,
    account: str | None = None,
) -> Any:
    """Give a perp account's equity over time, back from what the service states it is worth.

    Where `equity` counts up from an empty account and needs its whole history, this begins with
    the value at the end and takes back what happened: any period will do.

    Parameters
    ----------
    accounts, positions : DataFrame
        What one account is worth and holds at the end: ``.accounts`` and ``.positions`` of
        `tk.batch_clearinghouse_states`, of all dexes.
    fills, funding, ledger : DataFrame
        Of the account, up to when the state was taken, as `tk.pnl.attribution` takes them: every
        row of the period. Spot and outcome fills are left out. Funding from before the fills does
        not count, and `covers` says so. Funding may be None: it is not taken back then, and
        `covers` says so.
    start_time : int, str or datetime, optional
        Where the curve begins; at the first fill, payment or flow when not given.
    end_time : int, str or datetime, optional
        When the state was taken, where it has no column ``time``.
    account : str, optional
        Which account, where the state is of several.

    Returns
    -------
    DataFrame
        Of the engine of `accounts`; a point at the start, at the end of each hour (UTC) and at the
        end; USD, positive is good. No rows where `accounts` has none.

        - ``time``: UTC;
        - ``realised``: closed PnL, fees and funding since the start;
        - ``unrealised``: of what is open then, each coin at the price of the account's own last
          fill, or of its next one where there was none before; at the end as the service states;
        - ``pnl``: what equity changed by since the start, flows apart;
        - ``flows``: ledger flows into the perp account since the start;
        - ``equity``: the last one is what the service states;
        - ``covers`` text, as in `tk.pnl.attribution`; fees in other tokens and flows
          of unknown amount are counted there, and not taken back.

    Raises
    ------
    MissingColumns
        If a frame lacks a column, or holds numbers as text or of another kind than the state; if
        an amount of the state or of a perp fill is missing; if the state does not tell when it
        was taken.
    ValueError
        If the state is of several accounts and none is named, was taken at another time than
        `end_time`, or before `start_time`.

    Notes
    -----
    The identity is that of `reconcile`: between any two points equity changes by realised PnL,
    the change of what is unrealised, and flows; the first equity of an account's whole history is
    the residual of a reconciliation from an empty account. What unified and portfolio-margin
    accounts keep in the spot wallet is not in it. Rows given twice count once. Frames are
    read into memory.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> state = tk.batch_clearinghouse_states([tk.example.WHALE], numbers="exact")
    >>> fills = tk.user_fills_by_time(tk.example.WHALE, "1d", numbers="exact")
    >>> ledger = tk.user_non_funding_ledger_updates(tk.example.WHALE, "1d", numbers="exact")
    >>> curve = carried_back(state.accounts, state.positions, fills, None, ledger)
    >>> bool(curve["equity"].iloc[-1] == state.accounts["account_value"].sum())
    True
    """
    if fills is None:
        raise MissingColumns(
            "fills: none are given, and a curve is carried back through all of them; fetch them, "
            "or give a frame without rows where there are none"
        )
    accounts = count_once(accounts, "accounts")
    positions = count_once(positions, "positions")
    as_given = fills
    fills = count_once(fills, "fills")
    funding = count_once(funding, "funding")
    ledger = count_once(ledger, "ledger")
    after = read_values(accounts, "accounts")
    user, begin = _pick_account(after, account), _optional_ms(start_time)
    columns.require_values(columns.open_frame(accounts, "accounts"), ("account_value",), "accounts")
    held = _stated_positions(positions, user, after.kind)
    end = 0 if user is None else _state_time(after.worth[user].ms, _optional_ms(end_time), begin)
    bounds = {} if user is None else {user: (_LONG_AGO if begin is None else begin - 1, end)}
    time = covered_period(as_given, begin, end) if bounds and funding is not None else None
    tables = select_tables(bounds, fills, funding, ledger, user or "")
    whole = compute_attribution(
        tables.perps, tables.funding, tables.ledger, None, time, account=user
    )
    if tables.funding is not None:
        columns.require_columns(columns.open_frame(tables.funding, "funding"), ("usdc",), "funding")
        mine = rows_inside(mark_inside(tables.funding, tables.perps, time))
        tables = tables._replace(funding=mine)
    hours = compute_attribution(tables.perps, tables.funding, tables.ledger, "hour", account=user)
    traded = _signed_fills(tables.perps, after.kind)
    rows: list[dict[str, Amount]] = []
    if user is not None:
        first = min(_event_times(tables), default=end) if begin is None else begin
        rows = _curve_points(
            held, traded, _hourly_changes(hours), (first, end), zero_amount(after.kind)
        )
        _anchor_curve(rows, after.worth[user].value, [one.stated for one in held.values()])
    table = _result_table(rows, _coverage_text(whole), after.kind)
    inputs = {"accounts": accounts, "fills": fills, "funding": funding, "ledger": ledger}
    return engines.result_from_table(table, inputs, helper="pnl.carried_back")


class _SignedFill(NamedTuple):
    ms: int
    coin: str
    signed: Amount
    px: Amount
    closed: Amount


@dataclass
class _CoinState:
    """What is held of a coin, what was paid for it, what it is worth, and what is stated of it."""

    size: Amount
    paid: Amount
    worth: Amount
    stated: Amount

    def take(self, fill: _SignedFill) -> None:
        self.size = _round_size(self.size + fill.signed)
        self.paid += fill.signed * fill.px + fill.closed
        self.worth = self.size * fill.px

    def undo(self, fill: _SignedFill) -> None:
        """Take a fill back; its price stands for the one before it, which nothing tells."""
        self.size = _round_size(self.size - fill.signed)
        self.paid -= fill.signed * fill.px + fill.closed
        self.worth = self.size * fill.px


def _round_size(size: Amount) -> Amount:
    """Give a size without what adding floats leaves: sizes have at most eight decimals."""
    return round(size, 9) if isinstance(size, float) else size


def _optional_ms(time: Time | None) -> int | None:
    return None if time is None else to_ms(time)


def _state_time(stated: int | None, given: int | None, start: int | None) -> int:
    """Say when the state was taken: what lies between it and the tables would be lost."""
    if stated is None and given is None:
        raise MissingColumns(
            "accounts: its column time does not say when it was taken; give end_time="
        )
    if stated is not None and given not in (None, stated):
        raise ValueError(
            f"accounts: it was taken at {to_iso(stated)}, not at end_time; a curve ends where its "
            "state was taken: fetch fills, funding and ledger up to then, and leave end_time out"
        )
    end = stated if given is None else given
    if start is not None and end is not None and start > end:
        raise ValueError(f"start_time lies after the state, which was taken at {to_iso(end)}")
    return end or 0


def _pick_account(after: AccountValues, account: str | None) -> str | None:
    """Name the account; None where nothing is known of it."""
    if account is None and len(after.worth) > 1:
        raise ValueError(f"accounts: it is of {len(after.worth)} accounts; say of which (account=)")
    names = list(after.worth) if account is None else [account.lower()]
    return next((name for name in names if name in after.worth), None)


def _stated_positions(native: Any, user: str | None, kind: Numbers) -> dict[str, _CoinState]:
    opened = columns.open_frame(native, "positions")
    columns.require_columns(opened, ("user", "coin", *STATED), "positions")
    if columns.number_kind(opened, STATED, "positions") != kind:
        raise MissingColumns("accounts and positions hold other kinds of numbers; take both alike")
    columns.require_values(opened, STATED, "positions")
    frame = distinct_rows(engines.to_pandas(native), ("user", "coin"), "positions")
    frame = frame[frame["user"] == user]
    rows = zip(frame["coin"], *(column_list(frame, name) for name in STATED), strict=True)
    held = {}
    for coin, size, notional, gain in rows:
        worth = notional if size > 0 else -notional
        held[coin] = _CoinState(size, worth - gain, worth, gain)
    return held


def _signed_fills(perps: pd.DataFrame, kind: Numbers) -> list[_SignedFill]:
    """Give the fills in the order of time."""
    opened = columns.open_frame(perps, "fills")
    columns.require_values(opened, _AMOUNTS, "fills")
    if columns.number_kind(opened, _AMOUNTS, "fills") != kind:
        raise MissingColumns("accounts and fills hold other kinds of numbers; take both alike")
    amounts = (column_list(perps, name) for name in ("side", "sz", "px", "closed_pnl"))
    rows = zip(row_times(perps), perps["coin"], *amounts, strict=True)
    made = [
        _SignedFill(ms or 0, coin, sz if side == "B" else -sz, px, closed)
        for ms, coin, side, sz, px, closed in rows
    ]
    return sorted(made, key=lambda fill: fill.ms)


def _event_times(tables: AccountTables) -> list[int]:
    frames = (tables.perps, tables.funding, tables.ledger)
    return [ms for frame in frames if frame is not None for ms in row_times(frame) if ms]


def _hourly_changes(hours: pd.DataFrame) -> dict[int, tuple[Amount, Amount]]:
    """Give what was realised and what flowed, by the hour it was in."""
    times = row_times(hours.rename(columns={"hour": "time"}))
    rows = zip(times, column_list(hours, "net"), column_list(hours, "ledger"), strict=True)
    return {ms or 0: (net or 0, flow or 0) for ms, net, flow in rows}


def _curve_points(
    held: Mapping[str, _CoinState],
    fills: Sequence[_SignedFill],
    changes: Mapping[int, tuple[Amount, Amount]],
    period: tuple[int, int],
    zero: Amount,
) -> list[dict[str, Amount]]:
    """Give what was realised, open, and flowed: at the start, each hour and at the end."""
    now = {coin: _CoinState(one.size, one.paid, one.worth, zero) for coin, one in held.items()}
    for fill in reversed(fills):
        now.setdefault(fill.coin, _CoinState(*[zero] * 4)).undo(fill)
    first, end = period
    hour = first // HOUR * HOUR
    ends = [*range(hour + HOUR, end, HOUR), end]
    realised = flows = zero
    left = list(reversed(fills))
    rows = [_curve_point(first, realised, flows, now, zero)]
    for begin, until in pairwise([hour, *ends]):
        last = until == end
        while left and (left[-1].ms < until or last):
            now[left[-1].coin].take(left.pop())
        for one in {begin, until} if last else {begin}:
            net, flow = changes.get(one, (0, 0))
            realised, flows = realised + net, flows + flow
        rows.append(_curve_point(until, realised, flows, now, zero))
    return rows


def _curve_point(
    ms: int, realised: Amount, flows: Amount, held: Mapping[str, _CoinState], zero: Amount
) -> dict[str, Amount]:
    # What is paid for nothing is what the exchange's rounding of closed PnL has left.
    gain = sum((one.worth - one.paid for one in held.values() if one.size), zero)
    return {"time": ms, "realised": realised, "unrealised": gain, "flows": flows}


def _anchor_curve(rows: list[dict[str, Amount]], value: Amount, gains: Sequence[Amount]) -> None:
    """Let the last point be what is stated, and every other one lead to it."""
    last = rows[-1]
    last["unrealised"] = sum(gains, 0 * value)
    cash = value - last["unrealised"] - last["realised"] - last["flows"]
    for row in rows:
        row["equity"] = cash + row["realised"] + row["flows"] + row["unrealised"]
    for row in rows:
        row["pnl"] = row["equity"] - rows[0]["equity"] - row["flows"]


def _coverage_text(whole: pd.DataFrame) -> str:
    """Say what was taken back, and of how many rows nobody knows the amount."""
    if not len(whole):
        return ""
    row = whole.iloc[0]
    gaps = [f"without {row[name]} {words}" for name, words in _GAPS.items() if row[name]]
    return ", ".join([row["covers"], *gaps])


def _result_table(rows: Sequence[Mapping[str, Amount]], covers: str, kind: Numbers) -> pa.Table:
    number = engines.arrow_type(kind)
    return pa.table(
        {
            "time": engines.time_column([row["time"] for row in rows]),
            **{name: pa.array([row[name] for row in rows], type=number) for name in MONEY},
            "covers": engines.text_column([covers] * len(rows)),
        }
    )
