"""The performance sheet: figures of returns, trips and costs, with their intervals."""

from functools import reduce
from math import sqrt
from typing import Any, Literal

import numpy as np
import pandas as pd

from toolkit.errors import MissingColumns
from toolkit.performance import _ratios as ratios
from toolkit.performance import _sheet_tables as tables
from toolkit.performance._ratios import NAN, Figure, plain_figure
from toolkit.performance._sheet_tables import trip_figures
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import starts_group
from toolkit.prepare.provenance import finish
from toolkit.statistics import Sampling, check_count, scipy_part
from toolkit.times import DAY, HOUR

_OPTIONAL = (
    "start", "flows", "capital", "gain", "leverage", "leverage_hours", "drawdown", "below_hours",
)  # fmt: skip
_COSTS = ("trading_fee", "builder_fee", "deployer_fee", "rebate")

By = Literal["month"] | None


def sheet(
    returns: Frame,
    *,
    trips: Frame | None = None,
    costs: Frame | None = None,
    by: By = None,
    risk_free: float = 0.0,
    level: float = 0.95,
    draws: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute the performance figures of accounts, each with its confidence interval and inputs.

    Parameters
    ----------
    returns : DataFrame
        As `tk.performance.returns` returns it: ``time, return_``; with ``start, flows, capital,
        gain`` for the money-weighted return, with ``hours`` for the length of periods, with
        ``drawdown, below_hours`` for the drawdown at every point, with ``leverage,
        leverage_hours`` for leverage, and with ``user`` for several accounts. Without ``hours``,
        periods are as long as the usual distance of the account's times; weekdays alone are 5 of 7
        days. Without ``leverage_hours``, each period has the same weight.
    trips : DataFrame, optional
        As `tk.pnl.round_trips` returns them: ``status, net, return_, duration_hours, closed`` (and
        ``user``). Only complete trips count.
    costs : DataFrame, optional
        As ``tk.pnl.attribution(fills, funding, by="day")`` returns it (and by user): ``day,
        volume`` and the fees; ``funding`` if there is one.
    by : {"month"}, optional
        One sheet for each month (UTC). Trips count in the month in which they closed.
    risk_free : float, default 0
        Return of cash per year, as a share, for Sharpe and Sortino.
    level : float, default 0.95
        Level of the intervals.
    draws, seed : int
        Number of bootstrap resamples, and their seed.

    Returns
    -------
    DataFrame
        One row per figure, and per user and month if there are any:

        - ``user``: the account, if the returns have this column
        - ``month``: start of the month, UTC, with ``by="month"``
        - ``figure`` text: name of the figure, see below
        - ``value`` float64: value of the figure, in the unit of the figure; missing if it cannot be
          computed
        - ``low`` float64: lower end of the interval; missing for facts, for few values, and for an
          interval without width
        - ``high`` float64: upper end of the interval; missing as ``low``
        - ``n`` int64: number of periods, trips or days that the figure rests on
        - ``unit`` text: unit of the figure: ``"share"``, ``"ratio"``, ``"USD"``, ``"hours"``,
          ``"periods"``, ``"bps"``, ``"per year"``, ``"count"``
        - ``basis`` text: source of the figure: ``"returns"``, ``"trips"``, or ``"costs"``
        - ``method`` text: method of the interval, or ``"fact"`` for what happened itself

        From returns; figures per year scale periods to 365 days. A first and a last period that
        are not whole count only in ``total_return``, ``money_weighted_return``, ``annual_return``,
        ``max_drawdown``, ``best`` and ``worst``:

        - ``total_return``: time-weighted return, product of 1 + return, less 1
        - ``money_weighted_return``: the constant return per period that leads from the first to the
          last equity with the same flows, chained over all periods. A period whose capital is not
          positive has no return, but its flows count: this needs ``gain`` if it is the last one.
          Missing if a flow is in a period without a known capital, or if several returns from
          -99 to 100 % lead to the last equity
        - ``annual_return``: (1 + total return) ** (1 / years) - 1
        - ``volatility``: standard deviation, times the root of periods per year
        - ``sharpe``: mean / standard deviation, times the root of periods per year; missing if all
          returns are the same
        - ``sharpe_error``: standard error of the Sharpe ratio (Lo 2002)
        - ``probabilistic_sharpe``: 1 - p of the one-sided test of `skill`: near 1 if the true ratio
          is above 0; missing without a loss
        - ``sortino``: mean / root mean square of losses, times the root of periods per year
        - ``max_drawdown``: deepest fall below a high, as a share, at most 0; with the column
          ``drawdown``, below the highest value since the beginning of the curve
        - ``drawdown_periods``: longest time below a high, in usual periods of elapsed time
        - ``calmar``: annual return / -max_drawdown
        - ``value_at_risk``: 5 % quantile of returns, negative for a loss
        - ``expected_shortfall``: mean of the worst 5 % of returns
        - ``best``: highest return of a period
        - ``worst``: lowest return of a period
        - ``positive``: share of periods with a gain
        - ``leverage``: mean (long + short) / equity, weighted by hours:
          sum(leverage * leverage_hours) / sum(leverage_hours)
        - ``max_leverage``: highest mean leverage of a period

        From trips: see `trip_sheet`. From costs:

        - ``volume``: traded notional, in USD
        - ``turnover``: volume / mean capital, per year
        - ``fee_bps``: fees less rebates, of the volume of the days with known fees; positive is a
          cost
        - ``fee_drag``: fees less rebates, of mean capital, in bps per year
        - ``funding_drag``: funding paid, of mean capital, in bps per year; negative if received

        Days whose fees are missing are not part of ``fee_bps`` and ``fee_drag``: neither their
        fees, nor their volume, capital and time. Likewise, ``funding_drag`` is of the days with
        known funding. ``turnover`` and the drags leave out days without known capital, such as days
        after a flow of unknown amount. ``n`` states how many rows of `costs` remain. If none
        remains, the figure is missing. A day without a row has no costs. With returns by week, a
        week counts only if all of its days are known.

    Raises
    ------
    MissingColumns
        If a column is missing or contains text, or if returns of several accounts meet trips or
        costs without a column ``user``.
    ValueError
        If `by`, `level` or `draws` is not valid, or if an account has two returns at a time.

    Warns
    -----
    HistoryWarning
        If trips are not complete, or their net is not known, with their number.

    Notes
    -----
    The intervals of figures of returns hold for any distribution and for returns that depend on
    their neighbours: the influence of each return on the figure (Lo 2002 for the Sharpe ratio) is
    an autoregression of the first order, and its error at least that of independent returns. The
    interval of a quantile lies between two ranks. In simulated series with known figures (60 and
    250 days: normal, t with 5 degrees of freedom, exponential losses) intervals of 95 % held in
    88 to 97 % of cases; in series with an autocorrelation of 0.3, in 93 to 95 %. The interval of
    ``expected_shortfall`` needs 1,000 returns. Missing returns are left out; ``n`` counts those
    that remain. Figures per year of less than a year extrapolate: a return of 20 % in a month is
    790 % per year.

    Examples
    --------
    >>> import pandas as pd
    >>> returns = pd.DataFrame({"time": pd.date_range("2025-09-01", periods=4, tz="UTC"),
    ...     "return_": [0.02, -0.01, 0.03, 0.00]})
    >>> figures = sheet(returns).set_index("figure")
    >>> figures.loc[["total_return", "max_drawdown", "sharpe"], "value"].round(4).tolist()
    [0.0401, -0.01, 10.4642]
    """
    how = Sampling(level, check_count(draws, "draws"), seed)
    if by not in (None, "month"):
        raise ValueError(f"by must be 'month' or None, not {by!r}")
    table, rows, users = tables.read_returns(returns, optional=_OPTIONAL)
    months = rows["ms"].view("M8[ms]").astype("M8[M]").view(np.int64)
    closed = None if trips is None else tables.complete_trips(trips)
    paid = None if costs is None else _read_costs(costs)
    for name, other in (("trips", closed), ("costs", paid)):
        if other is not None:
            _check_owners(name, other, len(np.unique(rows["user"])) if table.has("user") else 0)
    keys = [*(["user"] if table.has("user") else []), *([by] if by else [])]
    made: list[tuple[tables.Group, str, Figure]] = []
    heads = np.flatnonzero(starts_group(rows["user"], months if by else rows["user"]))
    ends = np.append(heads[1:], len(months))[: len(heads)]
    for first, last in zip(heads.tolist(), ends.tolist(), strict=True):
        part = {name: column[first:last] for name, column in rows.items()}
        own = {"user": users[rows["user"][first]], "month": tables.month_start(part["ms"][:1])[0]}
        named = {key: own[key] for key in keys}
        figures = [("returns", item) for item in _return_figures(part, risk_free, how)]
        if closed is not None:
            figures += [("trips", item) for item in trip_figures(_select(closed, named), level)]
        if paid is not None:
            figures += [("costs", item) for item in _cost_figures(_select(paid, named), part)]
        made += [(tuple(named.values()), basis, figure) for basis, figure in figures]
    result = tables.figure_table(made, keys)
    inputs = {"returns": table.frame}
    return finish(result, inputs, helper="performance.sheet", by=by, level=level)


def _check_owners(name: str, other: pd.DataFrame, accounts: int) -> None:
    """Raise `MissingColumns` if trips or costs do not say to which account they belong.

    `accounts` is 0 if the returns do not name any.
    """
    owners = other["user"].fillna("").unique() if "user" in other.columns else [""]
    if accounts > 1 and "" in owners:
        raise MissingColumns(
            f"{name}: the frame has {'rows without' if len(owners) > 1 else 'no column'} user, and "
            f"the returns are of {accounts} accounts. Add the account of its rows: "
            f"{name}.assign(user=address)"
        )
    if not accounts and len(owners) > 1:
        raise MissingColumns(
            f"returns: the frame has no column user, and the {name} are of {len(owners)} accounts. "
            "Add the account: returns.assign(user=address)"
        )


def _read_costs(costs: Frame) -> pd.DataFrame:
    table = Table(costs, "costs")
    fees = ("volume", *_COSTS)
    rows = table.columns(("day", *fees), ("user", "funding"), (*fees, "funding"))
    # Without a fee of the exchange or a rebate, the fees are not known. Most fills have no builder
    # fee and no deployer fee: a missing one counts as 0.
    is_known = rows[["trading_fee", "rebate"]].notna().all(axis=1)
    ms = table.ms("day")
    paid = -rows[list(_COSTS)].sum(axis=1).where(is_known)
    return rows.assign(ms=ms, month=tables.month_start(ms), fees=paid)


def _select(rows: pd.DataFrame, named: dict[str, object]) -> pd.DataFrame:
    for name, value in named.items():
        if name in rows.columns:
            rows = rows[rows[name] == value]
    return rows


def _return_figures(rows: tables.Columns, risk_free: float, how: Sampling) -> list[Figure]:
    every, begins, lengths, is_whole, usual, periods = tables.known_returns(rows)
    n = len(every)
    if not n:
        none = {"return_": np.zeros(1), "ms": np.zeros(1), "usual": np.ones(1)}
        names = _return_figures(none, 0.0, how)
        return [each._replace(value=NAN, low=NAN, high=NAN, n=0) for each in names]
    values, count = every[is_whole], int(is_whole.sum())
    above = values - risk_free * lengths[is_whole] / tables.YEAR
    falls, below = ratios.drawdowns(every, np.append(begins[0], begins + lengths))
    fall, longest = falls.min(), below.max()
    if "drawdown" in rows and "below_hours" in rows and not np.isnan(rows["below_hours"]).all():
        # Of every point of the curve, not only of the ends of periods.
        fall, longest = np.nanmin(rows["drawdown"]), np.nanmax(rows["below_hours"]) * HOUR
    yearly = ratios.annual_return_figure(every, lengths / tables.YEAR, how.level)
    figures = [
        plain_figure("total_return", ratios.chain_returns(every)[-1] - 1, n, "share"),
        plain_figure("money_weighted_return", *_money_weighted(rows), "share"),
        yearly,
        ratios.volatility_figure(values, periods, how.level),
        ratios.sharpe_figure(above, periods, how.level),
        plain_figure("sharpe_error", ratios.sharpe_error(above) * sqrt(periods), count, "ratio"),
        plain_figure("probabilistic_sharpe", 1 - ratios.luck_probability(above), count, "share"),
        ratios.sortino_figure(above, periods, how.level),
        plain_figure("max_drawdown", fall, n, "share"),
        plain_figure("drawdown_periods", longest / usual, n, "periods"),
        plain_figure("calmar", yearly.value / -fall if fall else NAN, n, "ratio"),
        ratios.quantile_figure("value_at_risk", values, 0.05, "share", how.level),
        ratios.expected_shortfall_figure(values, how),
        plain_figure("best", every.max(), n, "share"),
        plain_figure("worst", every.min(), n, "share"),
        ratios.share_figure("positive", int((values > 0).sum()), count, how.level),
    ]
    used = ~np.isnan(rows["leverage"]) if "leverage" in rows else np.zeros(0, dtype=bool)
    if used.any():
        leverage, count = rows["leverage"][used], int(used.sum())
        hours = np.nan_to_num(rows["leverage_hours"][used]) if "leverage_hours" in rows else None
        mean = NAN if hours is not None and not hours.any() else np.average(leverage, weights=hours)
        figures += [
            plain_figure("leverage", mean, count, "ratio"),
            plain_figure("max_leverage", leverage.max(), count, "ratio"),
        ]
    return figures


def _money_weighted(rows: tables.Columns) -> tuple[float, int]:
    """Return the money-weighted return; missing if no return or more than one fits."""
    has_return = ~np.isnan(rows["return_"])
    n, missing = int(has_return.sum()), np.full(len(has_return), NAN)
    stated = np.stack([rows.get(name, missing) for name in ("start", "flows", "capital")])
    is_stated = ~np.isnan(stated).any(axis=0)
    has_flow = np.nan_to_num(stated[1]) != 0
    if (~is_stated & (has_return | has_flow)).any():
        return NAN, n
    # A period without a known equity is left out: the next period begins with its first equity.
    kept = np.flatnonzero(is_stated & (has_return | (stated != 0).any(axis=0)))
    n = len(kept)
    start, flows, capital = stated[:, kept]
    gain = rows["gain"] if "gain" in rows else rows["return_"] * rows["capital"]
    last = start[-1] + flows[-1] + gain[kept[-1]]
    # A flow counts from the end of its period on, and in the period for a share of it: the last
    # equity is a polynomial of the growth per period.
    inside = capital - start
    terms = (np.append(start[0], flows - inside) + np.append(inside, -last)).tolist()

    def miss(growth: Any) -> Any:
        return reduce(lambda value, term: value * growth + term, terms)

    low, high = 0.01, 2.0
    if not miss(low) < 0 < miss(high):
        return NAN, n
    # Without capital in a period, more than one return may lead to the last equity.
    changes = np.diff(miss(np.linspace(low, high, 2_000)) > 0) if (capital <= 0).any() else []
    if np.count_nonzero(changes) > 1:
        return NAN, n
    return float(scipy_part("optimize").brentq(miss, low, high, xtol=1e-14) ** n - 1), n


def _cost_figures(costs: pd.DataFrame, returns: tables.Columns) -> list[Figure]:
    volume, fees = costs["volume"].dropna(), costs.dropna(subset=["volume", "fees"])
    known = float(fees["volume"].sum())
    bps = 1e4 * float(fees["fees"].sum()) / known if known else NAN
    figures = [
        plain_figure("volume", _known_sum(costs, volume), len(volume), "USD"),
        plain_figure("fee_bps", bps, len(fees), "bps"),
    ]
    if "capital" not in returns or np.isnan(returns["capital"]).all():
        return figures
    shares = [("turnover", "volume", 1.0, "per year"), ("fee_drag", "fees", 1e4, "bps")]
    if "funding" in costs.columns and costs["funding"].notna().any():
        shares.append(("funding_drag", "funding", -1e4, "bps"))
    day, begin = costs["ms"].to_numpy(), returns["ms"][:, None]
    length = int(returns["step"][0])
    # Whether a period, in a row, has a part of a day, in a column.
    overlaps = (day < begin + length) & (begin < day + DAY)
    for figure, name, scale, unit in shares:
        # A period with a day of unknown costs, or without known capital, does not count.
        is_missing = costs[name].isna().to_numpy()
        left_out = overlaps[:, is_missing].any(axis=1) | np.isnan(returns["capital"])
        is_inside = overlaps[~left_out].any(axis=0) & ~overlaps[left_out].any(axis=0)
        kept = costs[~is_missing & is_inside]
        capital = returns["capital"][~left_out]
        mean = float(capital.mean()) if len(capital) else NAN
        yearly = tables.YEAR / (mean * len(capital) * length) if mean > 0 else NAN
        value = scale * _known_sum(costs, kept[name]) * yearly
        figures.append(plain_figure(figure, value, len(kept), unit))
    return figures


def _known_sum(costs: pd.DataFrame, known: pd.Series) -> float:
    """Return the sum of known amounts; NaN if there are costs, but none is known."""
    return float(known.sum()) if len(known) or costs.empty else NAN
