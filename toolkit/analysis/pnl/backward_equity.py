"""Equity before a known state of an account, computed backwards from fills, funding and ledger."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fixed_point, frame_access, memory_frames
from toolkit.analysis.common.account_values import (
    Amount,
    ValuesAndPositions,
    column_list,
    distinct_rows,
    read_values,
    row_times,
    zero_amount,
)
from toolkit.analysis.common.frame_access import NumberKind
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.pnl.attribution import compute_attribution
from toolkit.analysis.pnl.reconcile_tables import AccountTables, select_tables
from toolkit.errors import MissingColumns
from toolkit.prepare import Fills
from toolkit.prepare.door import Table, with_floats
from toolkit.prepare.funding import covered_period, rows_inside
from toolkit.prepare.words import curve_coverage
from toolkit.times import HOUR, Time, to_iso, to_ms

MONEY = ("realised", "unrealised", "pnl", "flows", "equity")
STATED = ("szi", "position_value", "unrealized_pnl")
_AMOUNTS = ("px", "sz", "closed_pnl", "fee")
_LONG_AGO = -(2**62)


def carried_back(
    accounts: IntoFrameT,
    positions: IntoFrame,
    fills: IntoFrame,
    funding: IntoFrame | None,
    ledger: IntoFrame | None,
    *,
    start_time: Time | None = None,
    end_time: Time | None = None,
    account: str | None = None,
) -> IntoFrameT:
    """Return a perp account's equity over time, computed backwards from a state of the account.

    `equity` starts at an empty account and requires its entire history. This function starts at the
    end, with the value of the account, and removes the changes before it one after the other. So
    any time range works.

    Parameters
    ----------
    accounts, positions : DataFrame
        The state of one account at the end: ``.accounts`` and ``.positions`` of
        `tk.batch_clearinghouse_states`, of all dexes.
    fills, funding, ledger : DataFrame
        All rows of the account in the time range, up to the time of the state, see
        `tk.pnl.attribution`. Spot and outcome fills do not count. Funding before the fills does not
        count, and `covers` states this. If funding is None, it is not removed, and `covers` states
        this.
    start_time : int, str or datetime, optional
        The start of the curve; by default the first fill, payment or flow.
    end_time : int, str or datetime, optional
        The time of the state, if it has no column ``time``.
    account : str, optional
        The account, if the state has several.

    Returns
    -------
    DataFrame
        In the engine of `accounts`: one row at the start, at each full hour (UTC) and at the end.
        Amounts are in USD, positive for a gain. No rows if `accounts` has none.

        - ``time``: the time of the point, UTC
        - ``realised``: closed PnL, fees and funding since the start, in USD
        - ``unrealised``: unrealised PnL of the open positions, in USD. A coin is valued at the
          price of the account's last fill in it, and before the first fill at the price of the
          first fill. The last point has the stated value
        - ``pnl``: change of the equity since the start, in USD, without flows
        - ``flows``: ledger flows into the perp account since the start, in USD
        - ``equity``: equity of the perp account, in USD; the last value is the stated one
        - ``covers`` text: the sources that are covered, see `tk.pnl.attribution`. It also states
          the number of fees in other tokens, and of flows and funding rows of unknown amount,
          which are not removed

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has another kind of numbers than the state; if an
        amount of the state or of a perp fill is missing; if the time of the state is not known.
    ValueError
        If the state has several accounts and `account` is missing; if its time differs from
        `end_time` or is before `start_time`.

    Notes
    -----
    The identity is the same as in `reconcile`: between two points the equity changes by realised
    PnL, the change of unrealised PnL, and flows. If the tables are the entire history of an
    account, the first equity is the residual of a reconciliation from an empty account. The spot
    wallet of unified and portfolio-margin accounts is not included. Repeated rows count once.
    Frames are read into memory.

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
            "fills is None. A curve needs all fills between its start and the time of the state. "
            "Fetch them; if there are none, pass a frame without rows"
        )
    accounts, positions, fills = (
        with_floats(frame, what)
        for frame, what in ((accounts, "accounts"), (positions, "positions"), (fills, "fills"))
    )
    funding = None if funding is None else with_floats(funding, "funding")
    ledger = None if ledger is None else with_floats(ledger, "ledger")
    accounts = drop_repeated_rows(accounts, "accounts")
    positions = drop_repeated_rows(positions, "positions")
    fetched_fills = fills
    fills = drop_repeated_rows(fills, "fills")
    funding = drop_repeated_rows(funding, "funding")
    ledger = drop_repeated_rows(ledger, "ledger")
    after = read_values(accounts, "accounts")
    user, begin = _pick_account(after, account), _optional_ms(start_time)
    frame_access.require_values(
        frame_access.open_frame(accounts, "accounts"), ("account_value",), "accounts"
    )
    held = _stated_positions(positions, user, after.kind)
    end = 0 if user is None else _state_time(after.worth[user].ms, _optional_ms(end_time), begin)
    bounds = {} if user is None else {user: (_LONG_AGO if begin is None else begin - 1, end)}
    time = None
    if bounds and funding is not None:
        time = covered_period(Table(fetched_fills, "fills"), begin, end)
    tables = select_tables(bounds, fills, funding, ledger, user or "")
    whole = compute_attribution(tables.perps, tables.funding, tables.ledger, None, time)
    if tables.funding is not None:
        mine = rows_inside(tables.funding, Fills(tables.perps), time)
        tables = tables._replace(funding=mine)
    hours = compute_attribution(tables.perps, tables.funding, tables.ledger, "hour")
    traded = _signed_fills(tables.perps, after.kind)
    rows: list[dict[str, Amount]] = []
    if user is not None:
        first = min(_event_times(tables), default=end) if begin is None else begin
        with localcontext(fixed_point.PRODUCTS):
            rows = _curve_points(
                held, traded, _hourly_changes(hours), (first, end), zero_amount(after.kind)
            )
        _anchor_curve(rows, after.worth[user].value, [state.stated for state in held.values()])
    table = _result_table(rows, _coverage_text(whole), after.kind)
    inputs: dict[str, Any] = {
        "accounts": accounts,
        "positions": positions,
        "fills": fills,
        "funding": funding,
        "ledger": ledger,
    }
    result: IntoFrameT = memory_frames.result_from_table(table, inputs, helper="pnl.carried_back")
    return result


class _SignedFill(NamedTuple):
    ms: int
    coin: str
    signed: Amount
    px: Amount
    closed: Amount


@dataclass
class _CoinState:
    """The position in a coin: its size, the amount paid, its value, the stated unrealised PnL."""

    size: Amount
    paid: Amount
    worth: Amount
    stated: Amount

    def take(self, fill: _SignedFill) -> None:
        self.size = _round_size(self.size + fill.signed)
        self.paid += fill.signed * fill.px + fill.closed
        self.worth = self.size * fill.px

    def undo(self, fill: _SignedFill) -> None:
        """Remove a fill; its price is used for the time before it."""
        self.size = _round_size(self.size - fill.signed)
        self.paid -= fill.signed * fill.px + fill.closed
        self.worth = self.size * fill.px


def _round_size(size: Amount) -> Amount:
    """Return a size without the rounding error of float sums; sizes have up to eight decimals."""
    return round(size, 9) if isinstance(size, float) else size


def _optional_ms(time: Time | None) -> int | None:
    return None if time is None else to_ms(time)


def _state_time(stated: int | None, given: int | None, start: int | None) -> int:
    """Return the time of the state, at which the tables end.

    Raise ValueError if the caller passed another end: movements between the two would be lost.
    """
    if stated is None and given is None:
        raise MissingColumns(
            "accounts: the column time is missing, so the time of the state is unknown. Pass "
            "end_time="
        )
    if stated is not None and given not in (None, stated):
        raise ValueError(
            f"accounts: the state is from {to_iso(stated)}, but end_time is {to_iso(given or 0)}. "
            "A curve ends at the time of its state. Fetch fills, funding and ledger up to "
            f"{to_iso(stated)}, and leave out end_time"
        )
    end = stated if given is None else given
    if start is not None and end is not None and start > end:
        raise ValueError(
            f"start_time is {to_iso(start)}, after the time of the state, {to_iso(end)}. Pass an "
            "earlier start_time"
        )
    return end or 0


def _pick_account(after: ValuesAndPositions, account: str | None) -> str | None:
    """Return the account; None if the state does not have it."""
    if account is None and len(after.worth) > 1:
        raise ValueError(f"accounts: the frame has {len(after.worth)} accounts. Pass account=")
    names = list(after.worth) if account is None else [account.lower()]
    return next((name for name in names if name in after.worth), None)


def _stated_positions(native: Any, user: str | None, kind: NumberKind) -> dict[str, _CoinState]:
    opened = frame_access.open_frame(native, "positions")
    frame_access.require_columns(opened, ("user", "coin", *STATED), "positions")
    if frame_access.number_kind(opened, STATED, "positions") != kind:
        raise MissingColumns(
            "accounts and positions have different kinds of numbers. Fetch both with the same "
            "numbers="
        )
    frame_access.require_values(opened, STATED, "positions")
    frame = distinct_rows(memory_frames.to_pandas(native), ("user", "coin"), "positions")
    frame = frame[frame["user"] == user]
    rows = zip(frame["coin"], *(column_list(frame, name) for name in STATED), strict=True)
    held = {}
    for coin, size, notional, gain in rows:
        worth = notional if size > 0 else -notional
        held[coin] = _CoinState(size, worth - gain, worth, gain)
    return held


def _signed_fills(perps: pd.DataFrame, kind: NumberKind) -> list[_SignedFill]:
    """Return the fills in the order of time."""
    opened = frame_access.open_frame(perps, "fills")
    frame_access.require_values(opened, _AMOUNTS, "fills")
    if frame_access.number_kind(opened, _AMOUNTS, "fills") != kind:
        raise MissingColumns(
            "accounts and fills have different kinds of numbers. Fetch both with the same numbers="
        )
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
    """Return the realised PnL and the flows of each hour."""
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
    """Return realised and unrealised PnL and flows at the start, at each hour and at the end."""
    now = {coin: copy(state) for coin, state in held.items()}
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
        for start in {begin, until} if last else {begin}:
            net, flow = changes.get(start, (0, 0))
            realised, flows = realised + net, flows + flow
        rows.append(_curve_point(until, realised, flows, now, zero))
    return rows


def _curve_point(
    ms: int, realised: Amount, flows: Amount, held: Mapping[str, _CoinState], zero: Amount
) -> dict[str, Amount]:
    # If a position is closed, `paid` may have a small remainder: the exchange rounds closed PnL.
    gain = sum((state.worth - state.paid for state in held.values() if state.size), zero)
    gain = fixed_point.round_exact(gain) if isinstance(gain, Decimal) else gain
    return {"time": ms, "realised": realised, "unrealised": gain, "flows": flows}


def _anchor_curve(rows: list[dict[str, Amount]], value: Amount, gains: Sequence[Amount]) -> None:
    """Set the equity of all points so that the last one equals the stated value."""
    last = rows[-1]
    last["unrealised"] = sum(gains, 0 * value)
    cash = value - last["unrealised"] - last["realised"] - last["flows"]
    for row in rows:
        row["equity"] = cash + row["realised"] + row["flows"] + row["unrealised"]
    for row in rows:
        row["pnl"] = row["equity"] - rows[0]["equity"] - row["flows"]


def _coverage_text(whole: pd.DataFrame) -> str:
    return curve_coverage(whole.iloc[0]) if len(whole) else ""


def _result_table(rows: Sequence[Mapping[str, Amount]], covers: str, kind: NumberKind) -> pa.Table:
    number = memory_frames.arrow_type(kind)
    return pa.table(
        {
            "time": memory_frames.utc_times([row["time"] for row in rows]),
            **{name: pa.array([row[name] for row in rows], type=number) for name in MONEY},
            "covers": memory_frames.text_column([covers] * len(rows)),
        }
    )
