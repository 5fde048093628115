"""Funding payments of accounts. Money is positive where the account received it."""

from collections.abc import Iterable
from itertools import accumulate, groupby
from typing import Any

import narwhals as nw
import pyarrow as pa

from toolkit.analysis.common import columns, engines, fixed_point, grouping
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.funding.carry import carry
from toolkit.analysis.funding.oracle import oracle_check
from toolkit.analysis.funding.rates import annualised, implied_oracle

__all__ = ["accrual", "annualised", "carry", "implied_oracle", "oracle_check", "sums"]

NEEDED = ("coin", "time", "usdc")
MONEY = ("paid", "received", "net")
RESULT = (*MONEY, "payments", "first", "last")
STEPS = tuple(grouping.CALENDAR)


def sums(funding: Any, by: str | Iterable[str] | None = ("coin",)) -> Any:
    """Sum funding payments, those paid and those received apart.

    Parameters
    ----------
    funding : DataFrame
        Funding rows: ``coin, time, usdc`` (pandas, Polars eager or lazy, DuckDB relation;
        numbers float or exact).
    by : str, list of str or None, default ("coin",)
        One row for each group: ``coin``, ``user``, ``dex``, ``hour``, ``day``, ``week``
        (Monday, UTC), or any other column. None: one row.

    Returns
    -------
    DataFrame
        Of the engine of `funding`, sorted by the groups: the columns of `by`, then

        - ``paid`` (at most 0), ``received`` (at least 0), ``net = paid + received``: USD;
        - ``payments`` int64: rows; rows without an amount are not counted. A row that sums
          several payments (``n_samples``) is one row, and its amount is their sum;
        - ``first``, ``last``: times of the first and last of them, UTC.

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
    funding = count_once(funding, "funding")
    keys = grouping.list_keys(by, ("time", *RESULT))
    frame = columns.open_frame(funding, "funding")
    columns.require_columns(frame, [*NEEDED, *grouping.own_columns(keys)], "funding")
    kind = columns.number_kind(frame, ["usdc"], "funding")
    frame = grouping.add_groups(frame, keys)
    result = _grouped(_split(frame, keys, kind), keys, kind)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    return columns.result_from_frame(result, {"funding": funding}, helper="funding.sums", by=keys)


def _split(frame: columns.Frame, keys: list[str], kind: columns.Numbers) -> columns.Frame:
    usdc, nothing = nw.col("usdc"), columns.zero_literal(kind)
    counted = ~usdc.is_null() if kind == "exact" else ~(usdc.is_null() | usdc.is_nan())
    rows = frame.filter(counted)
    return rows.select(
        *keys,
        "time",
        paid=nw.when(usdc < 0).then(usdc).otherwise(nothing),
        received=nw.when(usdc > 0).then(usdc).otherwise(nothing),
        net=usdc,
    )


def _grouped(frame: columns.Frame, keys: list[str], kind: columns.Numbers) -> columns.Frame:
    sums_ = [
        *(nw.col(name).sum() for name in MONEY),
        nw.col("time").count().alias("payments"),
        nw.col("time").min().alias("first"),
        nw.col("time").max().alias("last"),
    ]
    grouped = frame.group_by(*keys).agg(*sums_) if keys else frame.select(*sums_)
    number = columns.number_type(kind)
    return grouped.select(
        *keys,
        *(nw.col(name).fill_null(0).cast(number) for name in MONEY),
        nw.col("payments").cast(nw.Int64()),
        "first",
        "last",
    )


def accrual(funding: Any, by: str | Iterable[str] | None = ("coin",), *, step: str = "hour") -> Any:
    """Give funding as it adds up over time.

    Parameters
    ----------
    funding : DataFrame
        Funding rows: ``coin, time, usdc`` (pandas, Polars eager or lazy, DuckDB relation;
        numbers float or exact). Rows given twice count once.
    by : str, list of str or None, default ("coin",)
        One curve for each group: ``coin``, ``user``, ``dex``, or any other column.
    step : {"hour", "day", "week"}
        Payments of one step are added first; they fall due every hour.

    Returns
    -------
    DataFrame
        Of the engine of `funding`, sorted by the groups and time, a row for each step with a
        payment: the columns of `by`, then

        - ``time``: start of the step, UTC;
        - ``usdc``: net of the step, USD, positive where received; ``payments`` int64;
        - ``total``: net of all steps so far; the last one is the net of `sums`. A step without a
          row changes nothing that is known: it may be that no position was open, or that the
          rows are not there.

    Raises
    ------
    MissingColumns
        If a column is missing or `usdc` holds text.
    ValueError
        If there is no such step.

    Notes
    -----
    The totals are added up in memory, in whole numbers: exact also for floats of up to 15 digits.
    A row that sums several payments (``n_samples``) counts at its time, when it was paid.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "BTC", "usdc": [-2.0, 0.5, 0.25],
    ...                      "time": pd.to_datetime([0, 1, 3], unit="h", utc=True)})
    >>> accrual(rows)["total"].tolist()
    [-2.0, -1.5, -1.25]
    """
    if step not in STEPS:
        raise ValueError(f"step must be one of {', '.join(STEPS)}, not {step!r}")
    keys = grouping.list_keys(by, ("time", "usdc", "total", "payments", *STEPS))
    rows = engines.collect_frame(sums(funding, [*keys, step]), "funding")
    kind = columns.number_kind(rows, ["net"], "funding")
    whole, decimals = fixed_point.to_integers(rows["net"], what="funding")
    names = list(zip(*(rows[key].to_list() for key in keys), strict=True)) or [()] * len(whole)
    totals: list[int] = []
    for _, group in groupby(zip(names, whole, strict=True), key=lambda pair: str(pair[0])):
        totals += accumulate(value for _, value in group)
    table = rows.select(*keys).to_arrow() if keys else pa.table({})
    made = {
        **{name: table[name] for name in table.column_names},
        "time": engines.time_column(engines.series_ms(rows[step])),
        "usdc": engines.number_column(whole, decimals, kind),
        "payments": pa.array(rows["payments"].to_list(), type=pa.int64()),
        "total": engines.number_column(totals, decimals, kind),
    }
    return engines.result_from_table(
        pa.table(made), {"funding": funding}, helper="funding.accrual", by=keys, step=step
    )
