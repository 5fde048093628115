"""Returns of an account per day, from its value over time and the flows of cash."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, MissingAmounts, MissingColumns, warn_caller
from toolkit.performance import _ratios as ratios
from toolkit.performance._sheet_tables import refuse_repeated_times
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.groups import CALENDAR, split_groups
from toolkit.prepare.provenance import finish
from toolkit.times import HOUR

Start = float | Mapping[str, float] | None

_FIGURES = (
    "start", "end", "flows", "gain", "capital", "return_", "growth", "drawdown", "leverage",
    "net_leverage", "leverage_hours", "hours", "below_hours",
)  # fmt: skip
_GAPS = {
    "unpriced_fees": ("fee in a token without a price", "fees in tokens without a price"),
    "missing_amounts": ("funding row without an amount", "funding rows without an amount"),
}
"""Column of a curve that counts what its gains do not contain -> what it counts."""
_REASONS = {
    "outside": "it gains before any capital is known, so capital is missing in the curve, such as "
    "that of a spot wallet, or of deposits before the rows. Pass start=, the equity before the "
    "first point, or the result of tk.pnl.value",
    "capital": "it has no capital in the curve",
    "value": "its value is not known, such as while positions are open without mark prices. Pass "
    "marks= to tk.pnl.equity, or the result of tk.pnl.value. Realised PnL is the column realised "
    "of the curve; it has no return, because it leaves open losses out",
}
_MAX_UNPRICED = 0.1  # share of the time at the end without a price of what is open
_DUST = 1e-6  # the last digit of an amount in USD, and of a share


def returns(
    curve: Frame,
    by: str = "day",
    *,
    value: Literal["equity", "realised"] = "equity",
    start: Start = None,
) -> pd.DataFrame:
    """Compute returns per day from an equity curve, without the effect of deposits.

    Between two neighbouring points the return is the gain as a share of the capital; the return of
    a period links them: ``return = product(1 + gain / capital) - 1``. So deposits and withdrawals
    have no effect (time-weighted return).

    Parameters
    ----------
    curve : DataFrame
        As `tk.pnl.value` returns it: ``time, value, flows``; or as `tk.pnl.equity` does: ``time,
        equity, flows``, where the flows are sums so far. With ``user`` if there are several
        accounts.
    by : {"hour", "day", "week"}
        The length of a period (UTC, weeks from Monday).
    value : {"equity", "realised"}
        ``"realised"`` uses ``flows + realised`` of `tk.pnl.equity` where no position is open. Where
        one is open, unrealised PnL is a part of the account's value, which is then not known.
    start : float or mapping of user to float, optional
        Equity before the first point, in USD. By default 0 for a curve that begins with a deposit,
        and for `tk.pnl.equity`, which counts from an empty account; else the first value of the
        curve, and returns begin after it.

    Returns
    -------
    DataFrame
        One row per period up to the last point, sorted by user and time:

        - ``user``: the account, if the curve has this column
        - ``time``: start of the period, UTC
        - ``start`` float64: equity at the start of the period, in USD
        - ``end`` float64: equity at the end of the period, in USD
        - ``flows`` float64: deposits less withdrawals, in USD
        - ``gain`` float64: ``end - start - flows``, in USD, positive for a profit
        - ``capital`` float64: average capital of the period, in USD
        - ``return_`` float64: time-weighted return; missing if the value or the capital is not
          known, or if there is no capital
        - ``growth`` float64: value in USD of 1 USD that was invested before the first period. A
          missing return changes nothing. After a return of -100 % or less it is 0. Missing for an
          account without any return
        - ``drawdown`` float64: the deepest ``growth`` at a point of the period, as a share of its
          highest value so far, less 1; at most 0
        - ``leverage`` float64: mean of (``long + short``) / equity over the hours of the period;
          missing without mark prices
        - ``net_leverage`` float64: mean of (``long - short``) / equity
        - ``leverage_hours`` float64: number of hours of the period with known leverage
        - ``hours`` float64: hours from the last known point before the period to the last one in
          it: the time that the return covers
        - ``below_hours`` float64: the longest time below a high that ends in the period, or lasts
          at its end, in hours

    Raises
    ------
    MissingColumns
        If a column is missing or contains text, or if flows are missing.
    ValueError
        If `by` or `value` is not one of the choices, or if an account has two values at a time.

    Warns
    -----
    MissingAmounts
        If the curve leaves out amounts that are not known: ``unknown_flows``, ``unpriced_fees`` or
        ``missing_amounts`` of `tk.pnl.equity` are above 0. From the first flow of unknown amount
        on, the value of the account is not known, and it has no returns.
    HistoryWarning
        If an account has no return, with the reason: it gains before any capital is known, so
        capital is missing in the curve; or its value is not known, also if that is so for more
        than the last tenth of the time because positions are open without a price.

    Notes
    -----
    Time-weighted return: GIPS standards, "Calculation methodology". Flows of `tk.pnl.value` are at
    their time. In other curves a deposit counts from the point before it on, and a withdrawal until
    the point after it. A point without a value is left out: its gain counts in the period of the
    next known value, and a period without any known value has no return. Repeated points count
    once.

    Mean leverage is ``sum(leverage * hours) / sum(hours)`` over the points of a period. The hours
    of a point count from the previous point, or from the start of the period if it is later.

    Examples
    --------
    A gain of 10 on 100. Then a deposit of 100 between midnight and noon, and a gain of 16 on 210:

    >>> import pandas as pd
    >>> curve = pd.DataFrame({"time": pd.to_datetime([24, 36, 48], unit="h", utc=True),
    ...     "equity": [110.0, 210.0, 226.0], "flows": [0.0, 100.0, 100.0]})
    >>> made = returns(curve, start=100.0)
    >>> made[["gain", "capital", "return_", "growth"]].round(4).values.tolist()
    [[10.0, 100.0, 0.1, 1.1], [16.0, 210.0, 0.0762, 1.1838]]
    """
    if by not in CALENDAR:
        raise ValueError(f"unknown by={by!r}; choose one of {', '.join(CALENDAR)}")
    if value not in ("equity", "realised"):
        raise ValueError(f"value must be 'equity' or 'realised', not {value!r}")
    table = Table(curve, "curve")
    # `tk.pnl.value` states each flow at its time; other curves state the sum so far.
    is_dated = value == "equity" and table.has("value") and not table.has("equity")
    name = "value" if is_dated else value
    table.require(("time", "flows", name))
    flows, ms, values = table.number("flows"), table.known_ms(), table.number(name)
    if np.isnan(flows).any():
        raise MissingColumns(
            "curve: column flows has missing values, so a deposit would count as a gain. Pass the "
            "ledger to tk.pnl.equity"
        )
    users = table.text("user", blank=True).sorted()
    order = np.lexsort((ms, users.codes))
    codes = users.codes[order]
    refuse_repeated_times(table, codes, ms[order])
    _warn_gaps(table, users.codes)
    gains, is_open = table.number("pnl", np.nan), table.ids("unmarked")[0] > 0
    if value == "realised":
        # Unrealised PnL belongs to the value, so it is known only where nothing is open.
        values = np.where(table.number("unrealised", np.nan) == 0, flows + values, np.nan)
        gains = values - flows
    has_flows = table.ids("unknown_flows")[0] == 0
    if table.has("unrealised"):
        is_open = np.isnan(table.number("unrealised")) & has_flows
    values = np.where(has_flows, values, np.nan)
    long, short = (table.number(each, np.nan) for each in ("long", "short"))
    curves = np.stack([values, flows, gains, long + short, long - short, is_open])[:, order]
    given = (
        {user.lower(): amount for user, amount in start.items()}
        if isinstance(start, Mapping)
        else dict.fromkeys([] if start is None else users.values, start)
    )
    reasons: dict[str, list[str]] = {}
    parts, names = [np.zeros((1 + len(_FIGURES), 0))], []
    for rows in split_groups(codes, len(users.values)):
        if not len(rows):
            continue
        user = users.values[codes[rows[0]]]
        curve_ = ms[order][rows], *curves[:, rows]
        part, reason = _account_periods(curve_, given.get(user), is_dated, by)
        parts.append(part)
        names += [user] * part.shape[1]
        if reason:
            words = _REASONS[reason]
            if reason == "value" and table.has("reason"):
                stated = table.text("reason").texts(order[rows]).dropna().mode()
                words = f"its value is not known: {stated.iloc[0]}" if len(stated) else words
            reasons.setdefault(words, []).append(user or "the account")
    for words, without in reasons.items():
        others = f" and {count_text(len(without) - 1, 'other account')}" if without[1:] else ""
        warn_caller(f"curve: no returns of {without[0]}{others}: {words}", HistoryWarning)
    made = np.concatenate(parts, axis=1)
    named = {"user": pd.Series(names, dtype="str")} if table.has("user") else {}
    columns = dict(zip(_FIGURES, made[1:], strict=True))
    result = pd.DataFrame({**named, "time": utc_times(made[0]), **columns})
    inputs = {"curve": table.frame}
    return finish(result, inputs, helper="performance.returns", by=by, value=value)


def _warn_gaps(table: Table, users: Ints) -> None:
    """Warn of flows of unknown amount, and of fees and funding that gains do not contain."""
    unknown, *counts = (
        int(pd.Series(table.ids(name)[0]).groupby(users).max().sum())
        for name in ("unknown_flows", *_GAPS)
    )
    if unknown:
        warn_caller(
            f"curve: {count_text(unknown, 'ledger flow has', 'ledger flows have')} no known "
            "amount. The value of an account is not known from the first of its flows without an "
            "amount on, so it has no returns after them. Remove these rows from the ledger, or "
            "fill in their amount, and compute the curve again",
            MissingAmounts,
        )
    pairs = zip(counts, _GAPS.values(), strict=True)
    if left_out := [count_text(count, *words) for count, words in pairs if count]:
        warn_caller(
            f"curve: the gains do not contain {' and '.join(left_out)}. Pass prices= to "
            "tk.pnl.equity, or fetch the funding again",
            MissingAmounts,
        )


def _account_periods(
    curve: Sequence[Any], before: float | None, is_dated: bool, by: str
) -> tuple[Floats, str]:
    """Return the times and figures of the periods of one account, and why it has no return.

    - ``curve``: time (ms), value, flows, gains so far, long + short, long - short, and whether
      what is open has no price
    - ``before``: the value before the first point, if it was passed
    - ``is_dated``: whether flows are those at the point, not all that came until then
    """
    length, into = CALENDAR[by]
    ms, value, flows, gross, net = _open_curve(curve, before, is_dated, length)
    if len(ms) < 2:
        return np.zeros((1 + len(_FIGURES), 0)), ""
    # A point states what happened before it, so a point at midnight belongs to the day before.
    place = (ms - 1 + into) // length
    every = np.arange(place[1], place[-1] + 1)
    begins, place = every * length - into, place - every[0]
    is_seen = ~np.isnan(curve[1]) | (curve[-1] > 0)
    links, reason = _link(ms, value, flows, is_dated, int(curve[0][is_seen].max(initial=0)))
    period = place[links["end"]]
    heads = np.flatnonzero(np.diff(period, prepend=-1))
    tails = np.append(heads[1:], len(period))[: len(heads)] - 1

    def place_all(each: Floats) -> Floats:
        """Return values of periods that have links among all periods; the others are missing."""
        placed = np.full(len(every), np.nan)
        placed[period[heads]] = each
        return placed

    def spread(each: Floats, how: np.ufunc = np.add) -> Floats:
        return place_all(how.reduceat(each, heads) if len(heads) else each)

    def latest(each: Floats, none: float) -> Floats:
        """Return the value of the last link until the end of each period."""
        count = np.searchsorted(period, np.arange(len(every)), side="right")
        return np.append(none, each)[count]

    weight = np.where(links["is_funded"], links["hours"], 0.0)
    is_funded, is_broken = spread(weight) > 0, spread(links["is_broken"]) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        average = spread(weight * links["capital"]) / spread(weight)
    returned = spread(links["factor"], np.multiply) - 1
    # Without any return there is no growth, not even one of 0 %.
    grown, fallen = (
        latest(links[name], none) + (0.0 if links["is_funded"].any() else np.nan)
        for name, none in (("growth", 1.0), ("fall", 0.0))
    )
    fall = spread(links["fall"], np.minimum)

    # Every point has a leverage, for the time from the point before, or from the opening.
    since = np.maximum(ms[:-1], begins[place[1:]])
    lasted = np.where(np.isnan(gross[1:]), 0.0, (ms[1:] - since) / HOUR)
    total = np.bincount(place[1:], lasted, len(every))
    held = np.where(total > 0, total, np.nan)
    gross, net = (
        np.bincount(place[1:], np.nan_to_num(each[1:]) * lasted, len(every)) / held
        for each in (gross, net)
    )
    figures: list[Floats] = [
        begins, place_all(value[links["begin"][heads]]), place_all(value[links["end"][tails]]),
        spread(links["moved"]), spread(links["gain"]),
        np.where(is_funded, average, spread(links["capital"], np.maximum)),
        np.where(is_funded & ~is_broken, returned, np.nan), grown,
        np.where(np.isnan(fall), fallen, np.minimum(fall, fallen)), gross, net, held,
        spread(links["hours"]), spread(links["below"], np.maximum),
    ]  # fmt: skip
    return np.stack(figures), reason


def _open_curve(
    curve: Sequence[Any], before: float | None, is_dated: bool, length: int
) -> Sequence[Any]:
    """Return time, value, flows so far, gross and net leverage, from the known beginning on."""
    ms, value, flows, gains, *sizes, _ = curve
    flows = np.cumsum(flows) if is_dated else flows
    off = np.abs(value - flows - gains)
    close = _DUST * max(1.0, float(np.nanmax(np.abs(value), initial=0.0)))
    if not is_dated and 0 <= np.nanmax(off, initial=-1) <= close:
        # `tk.pnl.equity` begins with an empty account; what it had before is not in the curve.
        before = before or 0.0
        value = value + before
    elif before is None and not is_dated and flows[0]:
        before = 0.0
    base = np.where(value > 0, value, np.nan)
    points = [ms, value, flows, *(size / base for size in sizes)]
    if before is None:
        first = int(np.argmax(~np.isnan(value)))
        return [each[first:] for each in points]
    step = int(np.median(np.diff(ms))) if len(ms) > 1 else length
    opening = (ms[0] - step, before, 0.0, np.nan, np.nan)
    return [np.append(one, each) for one, each in zip(opening, points, strict=True)]


def _link(
    ms: Ints, value: Floats, flows: Floats, is_dated: bool, last: int
) -> tuple[dict[str, Any], str]:
    """Return what lies between neighbouring points whose value is known, and why not a return.

    ``last`` is the last time at which the value is known, or only lacks a price.
    """
    known = np.flatnonzero(~np.isnan(value))
    begin, end = known[:-1], known[1:]
    moved = flows[end] - flows[begin]
    gain = value[end] - value[begin] - moved
    dust = _DUST * max(1.0, np.abs(value[known]).max(initial=0.0))
    # A flow at the time of its point comes after the gain of the link.
    is_late = is_dated & (end - begin == 1) & (value[begin] > dust)
    capital = value[begin] + np.where(is_late, 0.0, np.maximum(moved, 0.0))
    is_funded, has_gain, reason = capital > dust, np.abs(gain) > dust, ""
    if not is_funded.any() and not (is_dated and len(end)):
        reason = "capital" if len(end) else "value"
    if has_gain[: np.argmax(is_funded) if is_funded.any() else None].any():
        reason, is_funded = "outside", np.zeros_like(is_funded)
    if last - ms[end].max(initial=ms[0]) > _MAX_UNPRICED * (ms[-1] - ms[0]):
        reason, is_funded = "value", np.zeros_like(is_funded)
    rates = np.divide(gain, capital, out=np.zeros(len(end)), where=is_funded)
    fall, below = ratios.drawdowns(rates, ms[known])
    links = {
        "begin": begin, "end": end, "hours": (ms[end] - ms[begin]) / HOUR, "moved": moved,
        "gain": gain, "capital": capital, "is_funded": is_funded,
        "is_broken": np.where(is_funded | ~has_gain, 0.0, 1.0),
        "factor": np.maximum(0.0, 1 + rates), "growth": ratios.chain_returns(rates), "fall": fall,
        "below": below / HOUR,
    }  # fmt: skip
    return links, reason
