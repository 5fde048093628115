"""Returns of an account per day, from its equity and the flows of cash."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.account_values import row_times, row_users
from toolkit.analysis.common.grouping import CALENDAR
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.arrays import Floats, Ints
from toolkit.display import count_text
from toolkit.errors import MissingAmounts, MissingColumns, warn_caller

_LEVERAGE = ("long", "short")
_HOUR = 3_600_000
"""Milliseconds of an hour."""
_GAPS = {
    "unpriced_fees": ("fee in a token without a price", "fees in tokens without a price"),
    "missing_amounts": ("funding row without an amount", "funding rows without an amount"),
}
"""Column of a curve that counts what its gains do not contain -> what it counts."""


def returns(
    curve: IntoFrameT,
    by: str = "day",
    *,
    value: Literal["equity", "realised"] = "equity",
    start: float | Mapping[str, float] = 0.0,
) -> IntoFrameT:
    """Compute returns per day from an equity curve, without the effect of deposits.

    The return of a period is its gain as a share of the average capital (modified Dietz):
    ``return = (end - start - flows) / (start + sum(weight * flow))``. The weight of a flow is the
    share of the period after it. Chained returns approximate the time-weighted return, which does
    not depend on the size of deposits and withdrawals.

    Parameters
    ----------
    curve : DataFrame
        As `tk.pnl.equity` returns it: ``time, equity, flows``, and ``user`` if there are several
        accounts (pandas, Polars, DuckDB, PySpark; exact numbers are read as floats).
        With hourly points, the time of each flow is known to an hour.
    by : {"hour", "day", "week"}
        The length of a period (UTC, weeks from Monday), not shorter than the distance between
        points.
    value : {"equity", "realised"}
        ``"realised"`` uses ``flows + realised``: equity without unrealised PnL, for curves without
        mark prices.
    start : float or mapping of user to float
        Equity before the first point, in USD: 0 for a curve from the first deposit on.

    Returns
    -------
    DataFrame
        In the engine of `curve`, one row per period from the first to the last known value, sorted
        by user and time:

        - ``user``: the account, if the curve has this column
        - ``time``: start of the period, UTC
        - ``start`` float64: equity at the start of the period, in USD
        - ``end`` float64: equity at the end of the period, in USD
        - ``flows`` float64: deposits less withdrawals, in USD
        - ``gain`` float64: ``end - start - flows``, in USD, positive for a profit
        - ``capital`` float64: average capital of the period, in USD
        - ``return_`` float64: ``gain / capital``; missing if the capital is not positive
        - ``growth`` float64: value in USD of 1 USD that was invested before the first period. A
          missing return changes nothing. After a return of -100 % or less it is 0
        - ``drawdown`` float64: ``growth`` as a share of its highest value so far, less 1; at
          most 0
        - ``leverage`` float64: mean of (``long + short``) / equity over the hours of the period;
          missing without mark prices
        - ``net_leverage`` float64: mean of (``long - short``) / equity
        - ``leverage_hours`` float64: number of hours of the period with known leverage

    Raises
    ------
    MissingColumns
        If a column is missing or contains text, or if flows are missing.
    ValueError
        If `by` or `value` is not one of the choices.

    Warns
    -----
    MissingAmounts
        If the curve leaves out amounts that are not known: ``unknown_flows``, ``unpriced_fees`` or
        ``missing_amounts`` of `tk.pnl.equity` are above 0. From the first flow of unknown amount
        on, the value of the account is not known, and it has no returns.

    Notes
    -----
    Modified Dietz: Dietz (1968); GIPS standards, "Calculation methodology". A point without a value
    is left out: its gain counts in the period of the next known value, and a period without any
    known value has no return. If equity is 0 at the start of a period, the period starts with its
    first flow. Repeated points count once.

    Mean leverage is ``sum(leverage * hours) / sum(hours)`` over the points of a period. The hours
    of a point count from the previous point, or from the start of the period if it is later. The
    first point counts for the median distance between points.

    Examples
    --------
    A gain of 10 on 100. Then a deposit of 100 between midnight and noon, which is invested for 75 %
    of the day, and a gain of 16:

    >>> import pandas as pd
    >>> curve = pd.DataFrame({"time": pd.to_datetime([24, 36, 48], unit="h", utc=True),
    ...     "equity": [110.0, 210.0, 226.0], "flows": [0.0, 100.0, 100.0]})
    >>> made = returns(curve, start=100.0)
    >>> made[["gain", "capital", "return_", "growth"]].round(4).values.tolist()
    [[10.0, 100.0, 0.1, 1.1], [16.0, 185.0, 0.0865, 1.1951]]
    """
    if by not in CALENDAR:
        raise ValueError(f"unknown by={by!r}; choose one of {', '.join(CALENDAR)}")
    if value not in ("equity", "realised"):
        raise ValueError(f"value must be 'equity' or 'realised', not {value!r}")
    curve = drop_repeated_rows(curve, "curve")
    needed = ("time", "flows", value)
    optional = ("user", *_LEVERAGE, "equity", "unknown_flows", *_GAPS)
    frame = frame_access.pandas_columns(
        curve, "curve", needed, optional, (value, "flows", *_LEVERAGE)
    )
    if frame["flows"].isna().any():
        raise MissingColumns(
            "curve: column flows has missing values, so a deposit would count as a gain. Pass the "
            "ledger to tk.pnl.equity"
        )
    frame = frame.assign(_ms=np.array(row_times(frame, "curve")), _user=row_users(frame))
    frame = frame.sort_values(["_user", "_ms"], kind="stable", ignore_index=True)
    frame = _mask_unknown_flows(frame, value)
    _warn_gaps(frame)
    parts = {
        str(user): _account_returns(_read_points(rows, str(user), value, start, by), by)
        for user, rows in frame.groupby("_user", sort=True)
    }
    result: IntoFrameT = memory_frames.result_from_table(
        _result_table(parts, "user" in frame.columns),
        {"curve": curve},
        helper="performance.returns",
        by=by,
        value=value,
    )
    return result


def _mask_unknown_flows(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the points without a value from the first flow of unknown amount on, and warn."""
    if "unknown_flows" not in frame.columns or not frame["unknown_flows"].any():
        return frame
    is_unknown = frame["unknown_flows"].fillna(0) > 0
    count = int(frame.groupby("_user")["unknown_flows"].max().sum())
    warn_caller(
        f"curve: {count_text(count, 'ledger flow has', 'ledger flows have')} no known amount. The "
        "value of an account is not known from the first of its flows without an amount on, so it "
        "has no returns after them. Remove these rows from the ledger, or fill in their amount, "
        "and compute the curve again",
        MissingAmounts,
    )
    return frame.assign(**{value: frame[value].mask(is_unknown)})


def _warn_gaps(frame: pd.DataFrame) -> None:
    """Warn if gains do not contain some fees or funding rows."""
    names = [name for name in _GAPS if name in frame.columns]
    counts = {name: int(frame.groupby("_user")[name].max().sum()) for name in names}
    left_out = [count_text(count, *_GAPS[name]) for name, count in counts.items() if count]
    if left_out:
        warn_caller(
            f"curve: the gains do not contain {' and '.join(left_out)}. Pass prices= to "
            "tk.pnl.equity, or fetch the funding again",
            MissingAmounts,
        )


class _Points(NamedTuple):
    """The known points of one account; the first one is the state before the curve."""

    ms: Ints
    values: Floats
    flows: Floats
    """Flows between the point before and this one."""
    gross: Floats
    """Gross leverage at each point; NaN if it is not known."""
    net: Floats
    hours: Floats
    """Hours since the point before; 0 for the first one."""


class _ReturnPeriod(NamedTuple):
    """One row of the result, without the columns that are chained."""

    ms: int
    start: float | None
    end: float | None
    flows: float | None
    capital: float | None
    leverage: float | None
    net_leverage: float | None
    leverage_hours: float | None


def _read_points(
    rows: pd.DataFrame, user: str, value: str, start: float | Mapping[str, float], by: str
) -> _Points:
    """Return the points of an account, from the state before its first point on."""
    ms = rows["_ms"].to_numpy(np.int64)
    flows = rows["flows"].to_numpy(np.float64)
    values = rows[value].to_numpy(np.float64)
    values = values + flows if value == "realised" else values
    step = int(np.median(np.diff(ms))) if len(ms) > 1 else CALENDAR[by][0]
    before = start.get(user, 0.0) if isinstance(start, Mapping) else start
    gross, net = _leverage_of(rows, values)
    ms, values, flows, gross, net = (
        np.concatenate([[first], each])
        for first, each in zip(
            (ms[0] - step, before, 0.0, np.nan, np.nan),
            (ms, values, flows, gross, net),
            strict=True,
        )
    )
    ms = ms.astype(np.int64)
    changes, hours = np.diff(flows, prepend=0.0), np.diff(ms, prepend=ms[0]) / _HOUR
    return _Points(ms, values, changes, gross, net, hours)


def _leverage_of(rows: pd.DataFrame, values: Floats) -> tuple[Floats, Floats]:
    if not set(_LEVERAGE) <= set(rows.columns):
        return np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    long, short = (rows[name].to_numpy(np.float64) for name in _LEVERAGE)
    kept = np.where(values > 0, values, np.nan)
    return (long + short) / kept, (long - short) / kept


def _account_returns(points: _Points, by: str) -> list[_ReturnPeriod]:
    """Return the periods of one account, from the first to the last known value."""
    length, into = CALENDAR[by]
    # A point states what happened before it, so a point at midnight belongs to the day before.
    codes = (points.ms - 1 + into) // length
    known = np.flatnonzero(~np.isnan(points.values))
    if len(known) < 2:
        return []
    lasts = {int(codes[place]): int(place) for place in known[1:]}
    periods, before = [], int(known[0])
    for code in range(min(lasts), max(lasts) + 1):
        ms = code * length - into
        if code not in lasts:
            periods.append(_ReturnPeriod(ms, None, None, None, None, None, None, None))
            continue
        last = lasts[code]
        periods.append(_period_of(points, before, last, ms))
        before = last
    return periods


def _period_of(points: _Points, before: int, last: int, ms: int) -> _ReturnPeriod:
    """Return the period between two points."""
    inside = slice(before + 1, last + 1)
    flows = points.flows[inside]
    middles = (points.ms[before:last] + points.ms[inside]) / 2
    begin, end = float(points.ms[before]), float(points.ms[last])
    start = float(points.values[before])
    moved = np.flatnonzero(flows)
    if start == 0 and len(moved):
        begin = float(middles[moved[0]])
    weights = (end - middles) / (end - begin)
    capital = start + float(weights @ flows)
    hours = np.minimum(points.hours[inside], (points.ms[inside] - ms) / _HOUR)
    gross, net = points.gross[inside], points.net[inside]
    known = hours[~np.isnan(gross)].sum()
    return _ReturnPeriod(
        ms, start, float(points.values[last]), float(flows.sum()), capital,
        _weighted_mean(gross, hours), _weighted_mean(net, hours), float(known) or None,
    )  # fmt: skip


def _weighted_mean(values: Floats, weights: Floats) -> float | None:
    """Return the mean of known values; None if they have no weight."""
    is_known = ~np.isnan(values)
    total = weights[is_known].sum()
    return float(values[is_known] @ weights[is_known] / total) if total else None


def _result_table(parts: Mapping[str, Sequence[_ReturnPeriod]], named: bool) -> pa.Table:
    rows = [(user, period) for user, periods in parts.items() for period in periods]
    gains = [
        None if p.end is None or p.start is None or p.flows is None else p.end - p.start - p.flows
        for _, p in rows
    ]
    shares = [
        None if gain is None or p.capital is None or p.capital <= 0 else gain / p.capital
        for gain, (_, p) in zip(gains, rows, strict=True)
    ]
    growth: list[float] = []
    fall: list[float] = []
    value = top = 1.0
    for place, ((user, _), share) in enumerate(zip(rows, shares, strict=True)):
        if not place or user != rows[place - 1][0]:
            value = top = 1.0
        value = value if share is None else value * max(0.0, 1 + share)
        top = max(top, value)
        growth.append(value)
        fall.append(value / top - 1)
    users = {"user": memory_frames.text_column([user for user, _ in rows])} if named else {}
    numbers: dict[str, list[Any]] = {
        "start": [p.start for _, p in rows],
        "end": [p.end for _, p in rows],
        "flows": [p.flows for _, p in rows],
        "gain": gains,
        "capital": [p.capital for _, p in rows],
        "return_": shares,
        "growth": growth,
        "drawdown": fall,
        "leverage": [p.leverage for _, p in rows],
        "net_leverage": [p.net_leverage for _, p in rows],
        "leverage_hours": [p.leverage_hours for _, p in rows],
    }
    return pa.table(
        {
            **users,
            "time": memory_frames.utc_times([p.ms for _, p in rows]),
            **{name: pa.array(each, type=pa.float64()) for name, each in numbers.items()},
        }
    )
