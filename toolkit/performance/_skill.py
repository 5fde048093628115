"""Skill or luck: which accounts are better than chance, and how much of a ranking lasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.performance import _ratios as ratios
from toolkit.performance._sheet_tables import Columns, known_returns, read_returns
from toolkit.prepare.door import Frame
from toolkit.prepare.groups import split_groups
from toolkit.prepare.provenance import state_provenance
from toolkit.statistics import (
    Estimate,
    check_count,
    check_level,
    normal,
    scipy_part,
    shrink_estimates,
)

Measure = Literal["sharpe", "mean"]
NAN = float("nan")
_COLUMNS = {
    "rank": "Int64", "user": "str", "n": "int64", "value": "float64", "error": "float64",
    "shrunk": "float64", "low": "float64", "high": "float64", "p": "float64", "q": "float64",
    "first_half": "float64", "second_half": "float64",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Skill(Estimate):
    """Performance of many accounts, with the part that luck explains removed.

    Attributes
    ----------
    params : DataFrame
        One row per figure:

        - ``name``: name of the figure
        - ``estimate``: value of the figure, in the unit of the figure
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate

        The figures:

        - ``mean``: mean of the true values of the accounts, in the unit of the measure
        - ``spread``: standard deviation of the true values, in the unit of the measure; 0 if luck
          explains all differences
        - ``persistence``: rank correlation between the values of the two halves, -1 to 1
    accounts : DataFrame
        One row per account, the highest ``shrunk`` value first. Accounts with too few returns are
        last, without values. A value is a Sharpe ratio or a mean return, both per year:

        - ``rank``: 1 for the highest shrunk value; missing without a value
        - ``user``: account
        - ``n``: number of returns
        - ``value``: value of the account, in the unit of the measure
        - ``error``: standard error of the value, in the unit of the measure
        - ``shrunk``: best guess of the true value of the account, in the unit of the measure
        - ``low``: lower end of the interval of the true value
        - ``high``: upper end of the interval of the true value
        - ``p``: probability of returns as good as these, or better, if the true mean is 0. It is
          one-sided: near 0 for a gain beyond luck, near 1 for a loss beyond luck. Missing without
          a loss or without a gain; 1 after a return of -100 %
        - ``q``: false discovery rate of ``p``: among all accounts with this q or a lower one, at
          most the share q has no skill. A missing p counts as 1
        - ``first_half``: value in the first half of the time, in the unit of the measure
        - ``second_half``: value in the second half of the time, in the unit of the measure
    measure : str
        ``sharpe`` or ``mean``.
    """

    accounts: pd.DataFrame
    measure: str


def skill(
    returns: Frame, *, measure: Measure = "sharpe", min_periods: int = 20, level: float = 0.95
) -> Skill:
    """Separate skill from luck in the returns of many accounts.

    The highest of many values is high partly by luck. Three answers: each account's value after
    shrinkage towards the mean of all accounts, the false discovery rate among the accounts that
    look good, and the correlation between the first and the second half of the time.

    Parameters
    ----------
    returns : DataFrame
        As `returns` makes them for several accounts: ``user, time, return_``, and ``hours`` if
        there are any. Missing returns are left out, and so are a first and a last period that are
        not whole.
    measure : {"sharpe", "mean"}, default "sharpe"
        The Sharpe ratio, or the mean return, both per year. The mean return is higher for an
        account with more leverage, also without skill.
    min_periods : int, default 20
        Accounts with fewer returns have no value; neither have those whose returns are all the
        same, or reach -100 %: they do not change the figures of the others.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    Skill
        ``accounts`` has a row for each account. The interval of ``shrunk`` contains the true value
        in the share `level` of accounts. ``params`` has the mean and the spread of the true values,
        and the correlation between the two halves.

    Raises
    ------
    MissingColumns
        If a column is missing or contains text.
    ValueError
        If `measure`, `min_periods` or `level` is not valid, or if a time comes twice.

    Notes
    -----
    ``error`` and ``p`` are for returns that depend on their neighbours (an autoregression of the
    first order; Lo 2002 for the Sharpe ratio). ``p`` is Student's test of the logarithm of gains /
    losses, which is above 0 if the mean is, with as many degrees of freedom as there are losses (or
    gains, if they are fewer), because few losses do not tell how large losses are. Of 100 times 20
    accounts without skill and 60 days, a discovery at q <= 5 % happened in 1 (normal returns), in
    3 (autocorrelation of 0.3) and in none (90 % small gains, 10 % large losses).

    Shrinkage: Morris (1983), with the spread of Paule and Mandel (1982). ``q``: Benjamini and
    Hochberg (1995); it holds for independent accounts. Persistence: Spearman's correlation with the
    interval of Bonett and Wright (2000); the halves meet in the middle of the time of all accounts.
    With fewer than five accounts there is no shrinkage and no persistence.

    Accounts that trade the same market on the same side win and lose together. Then fewer accounts
    are independent than there are rows, and the intervals of ``params`` are too narrow.

    Examples
    --------
    Six accounts whose daily returns differ in their mean:

    >>> import numpy as np, pandas as pd
    >>> noise = np.tile([0.01, -0.01], 20)
    >>> parts = [pd.DataFrame({"user": f"0x{k}", "return_": noise + k / 1000,
    ...     "time": pd.date_range("2025-09-01", periods=40, tz="UTC")}) for k in range(6)]
    >>> found = skill(pd.concat(parts))
    >>> found.accounts[["rank", "user", "value", "shrunk"]].head(2).round(1).values.tolist()
    [[1, '0x5', 9.4, 7.3], [2, '0x4', 7.5, 6.3]]
    >>> found["persistence"]
    1.0
    """
    check_level(level)
    if measure not in ("sharpe", "mean"):
        raise ValueError(f"measure must be 'sharpe' or 'mean', not {measure!r}")
    check_count(min_periods, "min_periods", 3)
    source, rows, users = read_returns(returns, ["user"])
    table = _account_table(rows, users, measure, min_periods)
    known = table["value"].notna().to_numpy()
    values, errors = (table.loc[known, name].to_numpy(np.float64) for name in ("value", "error"))
    shrunk = shrink_estimates(values, errors, level)
    table.loc[known, "shrunk"] = shrunk.values
    table.loc[known, "low"], table.loc[known, "high"] = shrunk.low, shrunk.high
    tested = table["p"].notna().to_numpy() | known
    if tested.any():  # an unknown p counts as 1, and has no rate
        p = table.loc[tested, "p"].astype("float64")
        rates = scipy_part("stats").false_discovery_control(p.fillna(1.0))
        table.loc[tested, "q"] = np.where(p.isna(), NAN, rates)
    order = "shrunk" if table["shrunk"].notna().any() else "value"
    table = table.sort_values([order, "user"], ascending=[False, True], ignore_index=True)
    table["rank"] = table[order].rank(ascending=False, method="min").astype("Int64")
    figures = {"mean": shrunk.mean, "spread": shrunk.spread}
    figures["persistence"] = _persistence(table[["first_half", "second_half"]].dropna(), level)
    made = [(name, *figure) for name, figure in figures.items()]
    params = pd.DataFrame(made, columns=["name", "estimate", "low", "high"]).astype({"name": "str"})
    accounts = table[list(_COLUMNS)].astype(_COLUMNS)
    facts = {"helper": "performance.skill", "measure": measure}
    state_provenance((params, accounts), {"returns": source.frame}, **facts)
    return Skill(
        params=params,
        n=int(known.sum()),
        level=level,
        method=f"{measure} per year; shrinkage of Morris (1983); p of a mean above 0, one-sided",
        accounts=accounts,
        measure=measure,
    )


def _account_table(
    rows: Columns, users: Sequence[str], measure: Measure, min_periods: int
) -> pd.DataFrame:
    """Return each account's values, also those of the two halves of the time."""
    times = rows["ms"][~np.isnan(rows["return_"])]
    middle = (times.min() + times.max()) / 2 if len(times) else 0
    made = []
    for mine in split_groups(rows["user"], len(users)):
        if not len(mine):
            continue
        account = {name: column[mine] for name, column in rows.items()}
        user = users[account["user"][0]]
        every, begins, _, is_whole, _, periods = known_returns(account)
        values = every[is_whole]
        value, error = _measure(values, measure, periods, min_periods)
        p = NAN if np.isnan(value) else ratios.luck_probability(values)
        is_first = begins[is_whole] <= middle
        halves = [
            _measure(part, measure, periods, -(-min_periods // 2))[0]
            for part in (values[is_first], values[~is_first])
        ]
        if (every <= -1).any():  # the mean of an account that lost everything says nothing
            value, error, p, halves = NAN, NAN, 1.0, [NAN, NAN]
        made.append((user, len(values), value, error, p, *halves))
    names = ["user", "n", "value", "error", "p", "first_half", "second_half"]
    return pd.DataFrame(made, columns=names).assign(shrunk=NAN, low=NAN, high=NAN, q=NAN)


def _measure(
    values: Floats, measure: Measure, periods: float, min_periods: int
) -> tuple[float, float]:
    """Return a value per year and its standard error; NaN if there are too few different values."""
    if len(values) < max(min_periods, 2) or ratios.is_constant(values):
        return NAN, NAN
    if measure == "mean":
        return float(values.mean()) * periods, ratios.long_run_error(values) * periods
    return ratios.sharpe_ratio(values) * sqrt(periods), ratios.sharpe_error(values) * sqrt(periods)


def _persistence(halves: pd.DataFrame, level: float) -> tuple[float, float, float]:
    """Return Spearman's correlation of two halves with its interval (Bonett and Wright, 2000)."""
    n = len(halves)
    if n < 5 or (halves.nunique() < 2).any():
        return NAN, NAN, NAN
    found = float(scipy_part("stats").spearmanr(halves).statistic)
    if abs(found) == 1:
        return found, NAN, NAN
    reach = normal(level) * sqrt((1 + found**2 / 2) / (n - 3))
    low, high = (float(np.tanh(np.arctanh(found) + side * reach)) for side in (-1, 1))
    return found, low, high
