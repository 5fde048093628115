"""Returns of an account per day, from its equity and the flows of cash."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.display import count_text
from toolkit.errors import MissingAmounts, MissingColumns, warn_caller
from toolkit.prepare.door import Frame, Names, Table, utc_times
from toolkit.prepare.groups import CALENDAR
from toolkit.prepare.provenance import finish
from toolkit.times import HOUR

_FIGURES = (
    "start", "end", "flows", "gain", "capital", "return_", "growth", "drawdown", "leverage",
    "net_leverage", "leverage_hours",
)  # fmt: skip
_GAPS = {
    "unpriced_fees": ("fee in a token without a price", "fees in tokens without a price"),
    "missing_amounts": ("funding row without an amount", "funding rows without an amount"),
}
"""Column of a curve that counts what its gains do not contain -> what it counts."""


def returns(
    curve: Frame,
    by: str = "day",
    *,
    value: Literal["equity", "realised"] = "equity",
    start: float | Mapping[str, float] = 0.0,
) -> pd.DataFrame:
    """Compute returns per day from an equity curve, without the effect of deposits.

    The return of a period is its gain as a share of the average capital (modified Dietz):
    ``return = (end - start - flows) / (start + sum(weight * flow))``. The weight of a flow is the
    share of the period after it. Chained returns approximate the time-weighted return, which does
    not depend on the size of deposits and withdrawals.

    Parameters
    ----------
    curve : DataFrame
        As `tk.pnl.equity` returns it: ``time, equity, flows``, and ``user`` if there are several
        accounts. With hourly points, the time of each flow is known to an hour.
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
        One row per period from the first to the last known value, sorted by user and time:

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
    table = Table(curve, "curve")
    table.require(("time", "flows", value))
    flows, ms = table.number("flows"), table.known_ms()
    if np.isnan(flows).any():
        raise MissingColumns(
            "curve: column flows has missing values, so a deposit would count as a gain. Pass the "
            "ledger to tk.pnl.equity"
        )
    users = table.text("user").sorted() if table.has("user") else Names(np.zeros_like(ms), [""])
    _warn_gaps(table, users.codes)
    unknown, _ = table.ids("unknown_flows")
    values = table.number(value) + (flows if value == "realised" else 0.0)
    values = np.where(unknown > 0, np.nan, values)
    # Sizes as a share of equity; without positive equity they are not known.
    base = np.where(values > 0, values, np.nan)
    long, short = (table.number(name, np.nan) for name in ("long", "short"))
    columns = np.stack([values, flows, (long + short) / base, (long - short) / base])
    befores = (
        {name.lower(): amount for name, amount in start.items()}
        if isinstance(start, Mapping)
        else dict.fromkeys(users.values, start)
    )
    order = np.lexsort((ms, users.codes))
    names, times, figures = [], [np.zeros(0, dtype=np.int64)], [np.zeros((len(_FIGURES), 0))]
    for rows in np.split(order, np.flatnonzero(np.diff(users.codes[order])) + 1):
        user = users.values[users.codes[rows[0]]] if len(rows) else ""
        made = _account_returns(ms[rows], columns[:, rows], befores.get(user, 0.0), by)
        if made is not None:
            names += [user] * len(made[0])
            times.append(made[0])
            figures.append(made[1])
    named = {"user": pd.Series(names, dtype="str")} if table.has("user") else {}
    results = dict(zip(_FIGURES, np.concatenate(figures, axis=1), strict=True))
    result = pd.DataFrame({**named, "time": utc_times(np.concatenate(times)), **results})
    inputs = {"curve": table.frame}
    return finish(result, inputs, helper="performance.returns", by=by, value=value)


def _warn_gaps(table: Table, users: Ints) -> None:
    """Warn of flows of unknown amount, and of fees and funding that gains do not contain."""
    counts: dict[str, int] = {}
    for name in ("unknown_flows", *_GAPS):
        most = np.zeros(int(users.max(initial=0)) + 1, dtype=np.int64)
        np.maximum.at(most, users, table.ids(name)[0])
        counts[name] = int(most.sum())
    if count := counts.pop("unknown_flows", 0):
        warn_caller(
            f"curve: {count_text(count, 'ledger flow has', 'ledger flows have')} no known amount. "
            "The value of an account is not known from the first of its flows without an amount "
            "on, so it has no returns after them. Remove these rows from the ledger, or fill in "
            "their amount, and compute the curve again",
            MissingAmounts,
        )
    left_out = [count_text(count, *_GAPS[name]) for name, count in counts.items() if count]
    if left_out:
        warn_caller(
            f"curve: the gains do not contain {' and '.join(left_out)}. Pass prices= to "
            "tk.pnl.equity, or fetch the funding again",
            MissingAmounts,
        )


def _account_returns(
    ms: Ints, columns: Floats, start: float, by: str
) -> tuple[Ints, Floats] | None:
    """Return the periods of one account, from the first to the last known value.

    - ``columns`` (4, points): value, flows so far, gross and net leverage of each point
    - ``start``: the value before the first point

    Returns: the start of each period (ms), and its figures; None if there is no period.
    """
    if not len(ms):
        return None
    length, into = CALENDAR[by]
    step = int(np.median(np.diff(ms))) if len(ms) > 1 else length
    ms = np.append(ms[0] - step, ms)
    before = np.array([[start], [0.0], [np.nan], [np.nan]])
    values, total, gross, net = np.concatenate([before, columns], axis=1)
    flows, hours = np.diff(total, prepend=0.0), np.diff(ms, prepend=ms[0]) / HOUR
    known = np.flatnonzero(~np.isnan(values))
    if len(known) < 2:
        return None
    # A point states what happened before it, so a point at midnight belongs to the day before.
    code = (ms - 1 + into) // length
    is_last = np.append(np.diff(code[known[1:]]) != 0, True)
    last = known[1:][is_last]
    first = np.append(known[0], last[:-1])  # the known point before each period
    begin, end = ms[first].astype(np.float64), ms[last].astype(np.float64)
    inside = slice(first[0] + 1, last[-1] + 1)
    period = np.repeat(np.arange(len(last)), last - first)

    def add(each: Floats) -> Floats:
        sums: Floats = np.bincount(period, each, len(last)).astype(np.float64, copy=False)
        return sums

    flow, middle = flows[inside], (ms[inside] + ms[first[0] : last[-1]]) / 2
    moved = np.full(len(last), np.inf)
    np.minimum.at(moved, period, np.where(flow != 0, middle, np.inf))
    begin = np.where((values[first] == 0) & np.isfinite(moved), moved, begin)
    opening = code[last] * length - into
    hour = np.minimum(hours[inside], (ms[inside] - opening[period]) / HOUR)
    is_known = ~np.isnan(gross[inside])
    share = np.where(is_known, hour, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        capital = values[first] + add((end[period] - middle) / (end - begin)[period] * flow)
        gain = values[last] - values[first] - add(flow)
        returned = np.where(capital <= 0, np.nan, gain / capital)
        held = add(share)
        gross, net = (
            add(np.where(is_known, lever[inside] * share, 0.0)) / held for lever in (gross, net)
        )
    every = np.arange(code[last[0]], code[last[-1]] + 1)

    def spread(each: Floats) -> Floats:
        """Return values of all periods; those without a known value are missing."""
        placed = np.full(len(every), np.nan)
        placed[code[last] - every[0]] = each
        return placed

    shares = spread(returned)
    growth = np.cumprod(np.maximum(0.0, 1 + np.nan_to_num(shares)))
    drawdown = growth / np.maximum.accumulate(np.maximum(growth, 1.0)) - 1
    held = np.where(held > 0, held, np.nan)
    amounts = (spread(each) for each in (values[first], values[last], add(flow), gain, capital))
    levers = (spread(each) for each in (gross, net, held))
    return every * length - into, np.stack([*amounts, shares, growth, drawdown, *levers])
