"""The performance sheet: figures of returns, trips and costs, with their intervals."""

from math import sqrt
from typing import Literal

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.estimate import check_count, check_level
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.performance.ratios import (
    NAN,
    Figure,
    IntervalSettings,
    annual_return_figure,
    chain_returns,
    deepest_drawdown,
    expected_shortfall_figure,
    plain_figure,
    probabilistic_sharpe,
    share_figure,
    sharpe_error,
    sharpe_figure,
    sortino_figure,
    value_at_risk_figure,
    volatility_figure,
)
from toolkit.analysis.performance.sheet_tables import (
    add_month,
    complete_trips,
    figure_table,
    iterate_groups,
    periods_per_year,
)
from toolkit.analysis.performance.trip_statistics import trip_figures
from toolkit.installation import explain_missing

_COSTS = ("trading_fee", "builder_fee", "deployer_fee", "rebate")

By = Literal["month"] | None


def sheet(
    returns: IntoFrameT,
    *,
    trips: IntoFrame | None = None,
    costs: IntoFrame | None = None,
    by: By = None,
    risk_free: float = 0.0,
    level: float = 0.95,
    draws: int = 999,
    seed: int = 0,
) -> IntoFrameT:
    """Compute the performance figures of accounts, each with its confidence interval and inputs.

    Parameters
    ----------
    returns : DataFrame
        As `tk.performance.returns` returns it: ``time, return_``; with ``start, flows, capital``
        for the money-weighted return, with ``leverage, leverage_hours`` for leverage, and with
        ``user`` for several accounts (pandas, Polars, DuckDB, PySpark). Without
        ``leverage_hours``, each period has the same weight.
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
        In the engine of `returns`, one row per figure, and per user and month if there are any:

        - ``user``: the account, if the returns have this column
        - ``month``: start of the month, UTC, with ``by="month"``
        - ``figure`` text: name of the figure, see below
        - ``value`` float64: value of the figure, in the unit of the figure; missing if it cannot be
          computed
        - ``low`` float64: lower end of the interval; missing for facts and for few values
        - ``high`` float64: upper end of the interval; missing for facts and for few values
        - ``n`` int64: number of periods, trips or days that the figure rests on
        - ``unit`` text: unit of the figure: ``"share"``, ``"ratio"``, ``"USD"``, ``"hours"``,
          ``"periods"``, ``"bps"``, ``"per year"``, ``"count"``
        - ``basis`` text: source of the figure: ``"returns"``, ``"trips"``, or ``"costs"``
        - ``method`` text: method of the interval, or ``"fact"`` for what happened itself

        From returns; figures per year scale periods to 365 days:

        - ``total_return``: time-weighted return, product of 1 + return, less 1
        - ``money_weighted_return``: the constant return per period that leads from the first to the
          last equity with the same flows, chained over all periods
        - ``annual_return``: (1 + total return) ** (periods per year / n) - 1
        - ``volatility``: standard deviation, times the root of periods per year
        - ``sharpe``: mean / standard deviation, times the root of periods per year
        - ``sharpe_error``: standard error of the Sharpe ratio (Lo 2002)
        - ``probabilistic_sharpe``: probability that the true ratio is above 0 (Bailey and
          López de Prado 2012)
        - ``sortino``: mean / root mean square of losses, times the root of periods per year
        - ``max_drawdown``: deepest fall below a high, as a share, at most 0
        - ``drawdown_periods``: longest time below a high
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
        - ``fee_bps``: fees less rebates, of volume; positive is a cost
        - ``fee_drag``: fees less rebates, of mean capital, in bps per year
        - ``funding_drag``: funding paid, of mean capital, in bps per year; negative if received

    Raises
    ------
    MissingColumns
        If a column is missing or contains text.
    ValueError
        If `by`, `level` or `draws` is not valid.

    Warns
    -----
    HistoryWarning
        If trips are not complete, with their number.

    Notes
    -----
    ``sharpe_error`` is the error of Lo (2002) for independent normal returns. The intervals of
    figures of returns hold for any distribution and for returns that depend on their neighbours:
    the influence of each return on the figure has a long-run variance (Newey and West 1987; Lo
    2002 for the Sharpe ratio). The interval of a quantile lies between two ranks. In simulated
    series with known figures (60 and 250 days: normal, t with 5 degrees of freedom, exponential
    losses) intervals of 95 % held in 87 to 98 % of cases; in series with an autocorrelation of
    0.3, in 87 to 94 %. The interval of ``expected_shortfall`` needs 1,000 returns. Missing returns
    are left out; ``n`` counts those that remain. Figures per year of less than a year extrapolate:
    a return of 20 % in a month is 790 % per year.

    Examples
    --------
    >>> import pandas as pd
    >>> returns = pd.DataFrame({"time": pd.date_range("2025-09-01", periods=4, tz="UTC"),
    ...     "return_": [0.02, -0.01, 0.03, 0.00]})
    >>> figures = sheet(returns).set_index("figure")
    >>> figures.loc[["total_return", "max_drawdown", "sharpe"], "value"].round(4).tolist()
    [0.0401, -0.01, 10.4642]
    """
    how = IntervalSettings(check_level(level), check_count(draws, "draws"), seed)
    if by not in (None, "month"):
        raise ValueError(f"by must be 'month' or None, not {by!r}")
    returns = drop_repeated_rows(returns, "returns")
    optional = ("user", "start", "flows", "capital", "leverage", "leverage_hours")
    rows = frame_access.pandas_columns(
        returns, "returns", ("time", "return_"), optional, ("return_", *optional[1:])
    )
    periods = periods_per_year(rows)
    keys = [*(["user"] if "user" in rows.columns else []), *([by] if by else [])]
    rows = add_month(rows, "time")
    closed = None if trips is None else add_month(complete_trips(trips), "closed")
    paid = None if costs is None else add_month(_read_costs(costs), "day")
    made: list[tuple[tuple[object, ...], str, Figure]] = []
    for group, part in iterate_groups(rows, keys):
        named = dict(zip(keys, group, strict=True))
        figures = [("returns", item) for item in _return_figures(part, periods, risk_free, how)]
        if closed is not None:
            own = _select(closed, named)
            figures += [("trips", item) for item in trip_figures(own, how)]
        if paid is not None:
            figures += [("costs", item) for item in _cost_figures(_select(paid, named), part)]
        made += [(group, basis, figure) for basis, figure in figures]
    table = figure_table(made, keys)
    result: IntoFrameT = memory_frames.result_from_table(
        table, {"returns": returns}, helper="performance.sheet", by=by, level=level
    )
    return result


def _read_costs(costs: IntoFrame) -> pd.DataFrame:
    fees = ("volume", *_COSTS)
    costs = drop_repeated_rows(costs, "costs")
    rows = frame_access.pandas_columns(
        costs, "costs", ("day", *fees), ("user", "funding"), (*fees, "funding")
    )
    return rows.assign(fees=-rows[list(_COSTS)].sum(axis=1))


def _select(rows: pd.DataFrame, named: dict[str, object]) -> pd.DataFrame:
    for name, value in named.items():
        if name in rows.columns:
            rows = rows[rows[name] == value]
    return rows


def _return_figures(
    rows: pd.DataFrame, periods: float, risk_free: float, how: IntervalSettings
) -> list[Figure]:
    known = rows.sort_values("time")
    known = known[known["return_"].notna()]
    values = known["return_"].to_numpy(np.float64)
    n = len(values)
    if not n:
        return [plain_figure("total_return", NAN, 0, "share")]
    above = values - risk_free / periods
    block = max(1, round(n ** (1 / 3)))
    fall, longest = deepest_drawdown(values)
    yearly = annual_return_figure(values, periods, how.level)
    figures = [
        plain_figure("total_return", chain_returns(values)[-1] - 1, n, "share"),
        plain_figure("money_weighted_return", _money_weighted(known), n, "share"),
        yearly,
        volatility_figure(values, periods, how.level),
        sharpe_figure(above, periods, how.level),
        plain_figure("sharpe_error", sharpe_error(above) * sqrt(periods), n, "ratio"),
        plain_figure("probabilistic_sharpe", probabilistic_sharpe(above), n, "share"),
        sortino_figure(above, periods, how.level),
        plain_figure("max_drawdown", fall, n, "share"),
        plain_figure("drawdown_periods", longest, n, "periods"),
        plain_figure("calmar", yearly.value / -fall if fall else NAN, n, "ratio"),
        value_at_risk_figure(values, how.level),
        expected_shortfall_figure(values, how, block),
        plain_figure("best", values.max(), n, "share"),
        plain_figure("worst", values.min(), n, "share"),
        share_figure("positive", int((values > 0).sum()), n, how.level),
    ]
    if "leverage" in rows.columns and rows["leverage"].notna().any():
        used = rows["leverage"].dropna()
        figures += [
            plain_figure("leverage", _mean_leverage(rows.loc[used.index]), len(used), "ratio"),
            plain_figure("max_leverage", used.max(), len(used), "ratio"),
        ]
    return figures


def _mean_leverage(rows: pd.DataFrame) -> float:
    """Return the mean of known leverage by hours; without hours, each period counts the same."""
    if "leverage_hours" not in rows.columns:
        return float(rows["leverage"].mean())
    hours = rows["leverage_hours"].fillna(0.0)
    total = float(hours.sum())
    return float((rows["leverage"] * hours).sum()) / total if total > 0 else NAN


def _money_weighted(rows: pd.DataFrame) -> float:
    """Return the money-weighted return of all periods; NaN if it is not defined.

    It is the constant return per period with which the first equity and the flows become the last
    equity: ``end = start + flows + return * capital`` for each period.
    """
    with explain_missing("analysis"):
        from scipy import optimize

    needed = ("start", "flows", "capital")
    if not set(needed) <= set(rows.columns) or rows[list(needed)].isna().to_numpy().any():
        return NAN
    start, flows, capital = (rows[name].to_numpy(np.float64) for name in needed)
    gain = rows["return_"].to_numpy(np.float64) * capital
    last = start[-1] + flows[-1] + gain[-1]
    weighted = capital - start  # the flows times the shares of the period after them

    def miss(rate: float) -> float:
        value = start[0]
        for flow, weight in zip(flows, weighted, strict=True):
            value = value + flow + rate * (value + weight)
        return float(value - last)

    low, high = -0.99, 1.0
    if not miss(low) < 0 < miss(high):
        return NAN
    rate = float(optimize.brentq(miss, low, high, xtol=1e-14))
    return float((1 + rate) ** len(rows) - 1)


def _cost_figures(costs: pd.DataFrame, returns: pd.DataFrame) -> list[Figure]:
    n, volume, fees = len(costs), float(costs["volume"].sum()), float(costs["fees"].sum())
    figures = [
        plain_figure("volume", volume, n, "USD"),
        plain_figure("fee_bps", 1e4 * fees / volume if volume else NAN, n, "bps"),
    ]
    if "capital" not in returns.columns or returns["capital"].isna().all():
        return figures
    years = len(returns["capital"].dropna()) / periods_per_year(returns)
    capital = float(returns["capital"].mean())
    yearly = 1 / (capital * years) if capital > 0 else NAN
    figures += [
        plain_figure("turnover", volume * yearly, n, "per year"),
        plain_figure("fee_drag", 1e4 * fees * yearly, n, "bps"),
    ]
    if "funding" in costs.columns and costs["funding"].notna().any():
        paid = -float(costs["funding"].sum())
        figures.append(plain_figure("funding_drag", 1e4 * paid * yearly, n, "bps"))
    return figures
