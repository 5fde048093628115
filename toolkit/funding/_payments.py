"""Funding payments of accounts: sums, and how they add up over time.

An amount is positive if the account received it.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pandas as pd

from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.groups import CALENDAR, group_rows, list_keys, sum_groups
from toolkit.prepare.provenance import finish

RESULT: Final = ("paid", "received", "net", "payments", "first", "last")


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
        **{key: groups[key] for key in keys},
        "paid": sum_groups(group, np.minimum(usdc, 0.0), count),
        "received": sum_groups(group, np.maximum(usdc, 0.0), count),
        "net": sum_groups(group, usdc, count),
        "payments": np.bincount(group, minlength=count),
        "first": times.min(),
        "last": times.max(),
    }
    result = pd.DataFrame(columns, index=range(count))
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
    columns = {
        **{key: steps[key] for key in keys},
        "time": steps[step],
        "usdc": steps["net"],
        "payments": steps["payments"],
        "total": net.cumsum(),
    }
    result = pd.DataFrame(columns)
    return finish(result, {"funding": funding}, helper="funding.accrual", by=keys, step=step)
