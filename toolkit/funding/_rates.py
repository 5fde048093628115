"""Funding payments, annualised funding rates, and the hourly rates behind them."""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from toolkit import statistics
from toolkit.arrays import Floats
from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.prepare.funding import EIGHT_HOURS, HOURLY_FROM
from toolkit.prepare.groups import CALENDAR, group_rows, list_keys, sum_groups
from toolkit.prepare.provenance import finish
from toolkit.statistics import DRAWS
from toolkit.times import HOUR

HOURS_A_YEAR = 24 * 365
_CHUNK = 100_000
_ANNUAL = {
    "coin": "str", "statistic": "str", "estimate": "float64", "low": "float64",
    "high": "float64", "n": "int64", "missing": "int64", "covered": "float64",
}  # fmt: skip


def annualised(
    funding: Frame,
    *,
    trim: float = 0.1,
    block_hours: int = 24,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    interval_hours: float | None = None,
) -> pd.DataFrame:
    """Compute the annualised funding rate of each coin: hourly rates times 24 * 365.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, funding_rate`` (and ``n_samples``) of one or many accounts. The rate of a coin
        and hour counts once, even if many accounts paid it or rows repeat it. A row that sums n
        payments is for n hours.
    trim : float, default 0.1
        Share of the hours that the trimmed mean leaves out at each end, below 0.5.
    block_hours : int, default 24
        Length of the blocks that are drawn, since the rates of neighbouring hours are similar.
    level, draws, seed
        Level of the intervals; number of resamples; seed of the resamples.
    interval_hours : float, optional
        How many hours one payment is for. A rate for 8 hours counts as 8 hourly rates of one
        eighth. By default 1 hour; for rows before 2024, 8 hours, or 1 if the row before or behind
        it, of the same coin, is nearer than that (docs/live_service.md, section 5).

    Returns
    -------
    DataFrame
        Three rows for each coin, sorted:

        - ``coin``: coin of the rates.
        - ``statistic``: ``mean``, ``trimmed`` or ``median`` of the hourly rates.
        - ``estimate``: share of the notional a year; positive if longs pay, as the exchange signs
          rates, so that a short position receives it.
        - ``low``: lower end of the interval; missing with fewer than two blocks.
        - ``high``: upper end of the interval; missing with fewer than two blocks.
        - ``n``: number of hours with a rate.
        - ``missing``: number of hours without a rate, from the first hour to the last. An account
          without a position has no rows, and a missing rate is not 0.
        - ``covered``: share of the hours that have a rate.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `trim`, `block_hours`, `level` or `interval_hours` is not valid.

    Notes
    -----
    Circular block bootstrap over the hours that have a rate (Politis and Romano, 1992), expanded
    for few blocks as by Hesterberg (2015). Rates are sorted once. A draw only counts how often each
    occurs, so the time grows with hours times draws, and the memory with hours.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "XYZ", "funding_rate": [1e-5, 1e-5, 4e-5],
    ...     "time": pd.to_datetime([0, 1, 3], unit="h", utc=True)})
    >>> annualised(rows)[["statistic", "estimate", "n", "missing", "covered"]].round(4)
      statistic  estimate  n  missing  covered
    0      mean    0.1752  3        1     0.75
    1   trimmed    0.1752  3        1     0.75
    2    median    0.0876  3        1     0.75
    """
    statistics.check_level(level)
    if not 0 <= trim < 0.5:
        raise ValueError(f"trim must be at least 0 and below 0.5, not {trim!r}")
    statistics.check_count(block_hours, "block_hours")
    figures = []
    for coin, rates, span in hourly_rates(funding, interval_hours):
        hours = len(rates)
        cuts = {"mean": 0, "trimmed": int(trim * hours), "median": (hours - 1) // 2}
        values = trimmed_means(rates, list(cuts.values()), block_hours, draws, seed)
        blocks = statistics.block_count(hours, block_hours)
        for name, estimates in zip(cuts, values.T, strict=True):
            low, high = statistics.bootstrap_interval(estimates[1:], blocks, level)
            yearly = (HOURS_A_YEAR * each for each in (estimates[0], low, high))
            figures.append((coin, name, *yearly, hours, span - hours, hours / span))
    result = pd.DataFrame(figures, columns=list(_ANNUAL)).astype(_ANNUAL)
    return finish(result, {"funding": funding}, helper="funding.annualised", level=level)


def hourly_rates(funding: Frame, interval: float | None = None) -> list[tuple[str, Floats, int]]:
    """Return each coin's rates hour by hour, and the number of hours from the first to the last.

    `interval` is how many hours one payment is for, if the caller knows it.
    """
    if interval is not None:
        statistics.check_positive(interval_hours=interval)
    table = Table(funding, "funding")
    table.require(("coin", "time", "funding_rate"))
    rows = pd.DataFrame(
        {
            "coin": table.text("coin").codes,
            "hour": table.ms() // HOUR,
            # A row that sums several payments has the rate of one of them.
            "samples": np.fmax(table.number("n_samples", default=1.0), 1.0),
            "rate": table.number("funding_rate"),
        }
    )
    rows = rows[rows["rate"].notna() & (table.ms() != NO_TIME)].reset_index(drop=True)
    hours = _payment_hours(rows) if interval is None else np.full(len(rows), float(interval))
    rows["rate"] /= hours
    span = np.maximum(np.rint(hours * rows["samples"]), 1).astype(np.int64)
    if (span > 1).any():  # one row for each hour; the last one is the hour of the row itself
        first = np.repeat(np.cumsum(span) - span, span)
        rows = rows.loc[rows.index.repeat(span)]
        rows["hour"] -= np.arange(len(rows)) - first
    # An hour has one rate. If there are two, the median does not depend on the order of rows.
    hourly = rows.groupby(["coin", "hour"], sort=True)["rate"].median().reset_index()
    names = table.text("coin").values
    coins = [
        (names[code], own["rate"].to_numpy(), int(own["hour"].iloc[-1] - own["hour"].iloc[0]) + 1)
        for code, own in hourly.groupby("coin")
    ]
    return sorted(coins, key=lambda coin: coin[0])


# ASSUMED: Each payment of a funding row from before 2024 is for eight hours, the same as in the
# recorded rows of 2023, unless another row of the coin is nearer.
def _payment_hours(rows: pd.DataFrame) -> Floats:
    """Return how many hours one payment of each row is for: 1 from 2024 on, before 8 or 1.

    - ``rows``: ``coin``, ``hour`` (since the epoch), ``samples``
    """
    is_old = rows["hour"] < HOURLY_FROM // HOUR
    if not is_old.any():
        return np.ones(len(rows))
    each = rows[is_old].groupby(["coin", "hour"])["samples"].min().reset_index()
    gap = each.groupby("coin")["hour"].diff() / each["samples"]
    behind = gap.groupby(each["coin"]).shift(-1)
    each["hours"] = np.where(np.fmin(gap, behind) < EIGHT_HOURS, 1.0, EIGHT_HOURS)
    found = rows[["coin", "hour"]].merge(each, how="left", on=["coin", "hour"])
    return found["hours"].fillna(1.0).to_numpy()


def trimmed_means(
    rates: Floats, cuts: Sequence[int], block_hours: int, draws: int, seed: int
) -> Floats:
    """Return trimmed means of the rates, and of draws of blocks of them.

    Parameters
    ----------
    rates : array of float, (hours,)
    cuts : sequence of int
        How many of the smallest and of the largest rates each mean leaves out: none for the mean,
        all but the middle one or two for the median.
    block_hours, draws, seed : int
        As for `annualised`.

    Returns
    -------
    array of float, (1 + draws, cuts)
        The first row is that of the rates themselves.
    """
    values, codes = np.unique(rates, return_inverse=True)
    count, rng = len(rates), np.random.default_rng(seed)
    # Draw in portions: years of hours times a thousand draws would need too much memory.
    portion = max(1, _CHUNK // count)
    sizes = (min(portion, draws - first) for first in range(0, draws, portion))
    drawn = (statistics.draw_blocks(rng, size, count, block_hours) for size in sizes)
    means = []
    for places in chain([np.arange(count)[None, :]], drawn):
        ranks = np.zeros((len(places), len(values) + 1))
        np.cumsum(statistics.count_codes(codes[places], len(values)), axis=1, out=ranks[:, 1:])
        parts = []
        for cut in cuts:
            upper = ranks[:, -1:] - cut
            kept = np.diff(np.clip(ranks, cut, upper), axis=1)
            parts.append(kept @ values / (upper[:, 0] - cut))
        means.append(np.stack(parts, axis=1))
    return np.concatenate(means)


RESULT = ("paid", "received", "net", "payments", "first", "last")


def sums(funding: Frame, by: str | Iterable[str] | None = ("coin",)) -> pd.DataFrame:
    """Sum funding payments: paid, received and net.

    Parameters
    ----------
    funding : DataFrame
        Funding rows: ``coin, time, usdc``. Repeated rows count once.
    by : str, list of str or None, default ("coin",)
        One row for each group: ``coin``, ``user``, ``dex``, ``hour``, ``day``, ``week`` (Monday,
        UTC), or any other column. None: one row.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``paid``: sum of the payments that the account paid, in USD, at most 0.
        - ``received``: sum of the payments that the account received, in USD, at least 0.
        - ``net``: ``paid + received``, in USD; positive is a gain.
        - ``payments``: number of rows with an amount. A row that sums several payments
          (``n_samples``) is one row.
        - ``first``: time of the first row with an amount, UTC.
        - ``last``: time of the last row with an amount, UTC.

    Raises
    ------
    MissingColumns
        If a column is missing or `usdc` holds text.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": ["BTC", "BTC", "ETH"], "usdc": [-2.0, 0.5, 1.0],
    ...                      "time": pd.to_datetime([0, 3_600_000, 0], unit="ms", utc=True)})
    >>> sums(rows)[["coin", "paid", "received", "net", "payments"]]
      coin  paid  received  net  payments
    0  BTC  -2.0       0.5 -1.5         2
    1  ETH   0.0       1.0  1.0         1
    """
    keys = list_keys(by, ("time", *RESULT))
    table = Table(funding, "funding")
    table.require(["coin", "time", "usdc"])
    rows = np.flatnonzero(~np.isnan(table.number("usdc")))
    usdc = table.number("usdc")[rows]
    group, groups = group_rows(table, keys, rows)
    count = len(groups)
    times = pd.Series(utc_times(table.ms()[rows])).groupby(group)
    columns = {
        **groups,
        "paid": sum_groups(group, np.minimum(usdc, 0.0), count),
        "received": sum_groups(group, np.maximum(usdc, 0.0), count),
        "net": sum_groups(group, usdc, count),
        "payments": np.bincount(group, minlength=count),
        "first": times.min(),
        "last": times.max(),
    }
    result = pd.DataFrame(columns, index=groups.index)
    return finish(result, {"funding": table.frame}, helper="funding.sums", by=keys)


def accrual(
    funding: Frame, by: str | Iterable[str] | None = ("coin",), *, step: str = "hour"
) -> pd.DataFrame:
    """Compute the running total of funding over time.

    Parameters
    ----------
    funding : DataFrame
        Funding rows: ``coin, time, usdc``. Repeated rows count once.
    by : str, list of str or None, default ("coin",)
        One curve for each group: ``coin``, ``user``, ``dex``, or any other column.
    step : {"hour", "day", "week"}
        The payments of one step are summed first. Funding is due every hour.

    Returns
    -------
    DataFrame
        Sorted by the groups and time, one row for each step with a payment: the columns of `by`,
        then

        - ``time``: start of the step, UTC.
        - ``usdc``: net funding of the step, in USD; positive is received.
        - ``payments``: number of rows in the step.
        - ``total``: net funding of all steps up to this one, in USD. The last total is the net of
          `sums`. If a step has no row, either no position was open or the rows are missing.

    Raises
    ------
    MissingColumns
        If a column is missing or `usdc` holds text.
    ValueError
        If there is no such step.

    Notes
    -----
    A row that sums several payments (``n_samples``) counts at its own time, which is the time of
    payment.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "BTC", "usdc": [-2.0, 0.5, 0.25],
    ...                      "time": pd.to_datetime([0, 1, 3], unit="h", utc=True)})
    >>> accrual(rows)["total"].tolist()
    [-2.0, -1.5, -1.25]
    """
    if step not in CALENDAR:
        raise ValueError(f"unknown step {step!r}; choose one of {', '.join(CALENDAR)}")
    keys = list_keys(by, ("time", "usdc", "total", "payments", *CALENDAR))
    steps = sums(funding, [*keys, step])
    net = steps.groupby(keys, dropna=False)["net"] if keys else steps["net"]
    columns = {"time": steps[step], "usdc": steps["net"], "payments": steps["payments"]}
    columns["total"] = net.cumsum()
    result = pd.DataFrame({**{key: steps[key] for key in keys}, **columns})
    return finish(result, {"funding": funding}, helper="funding.accrual", by=keys, step=step)
