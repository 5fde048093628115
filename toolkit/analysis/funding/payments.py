"""Funding payments of accounts: sums, and how they add up over time.

An amount is positive if the account received it.
"""

from collections.abc import Iterable
from itertools import accumulate, groupby

import narwhals as nw
import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import fixed_point, frame_access, grouping, memory_frames
from toolkit.analysis.common.repeated_rows import drop_repeated_rows

NEEDED = ("coin", "time", "usdc")
MONEY = ("paid", "received", "net")
RESULT = (*MONEY, "payments", "first", "last")
STEPS = tuple(grouping.CALENDAR)


def sums(funding: IntoFrameT, by: str | Iterable[str] | None = ("coin",)) -> IntoFrameT:
    """Sum funding payments: paid, received and net.

    Parameters
    ----------
    funding : DataFrame
        Funding rows: ``coin, time, usdc`` (pandas, Polars, DuckDB, PySpark; numbers
        float or exact). Repeated rows count once.
    by : str, list of str or None, default ("coin",)
        One row for each group: ``coin``, ``user``, ``dex``, ``hour``, ``day``, ``week`` (Monday,
        UTC), or any other column. None: one row.

    Returns
    -------
    DataFrame
        The engine of `funding`, sorted by the groups: the columns of `by`, then

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
    funding = drop_repeated_rows(funding, "funding")
    keys = grouping.list_keys(by, ("time", *RESULT))
    frame = frame_access.open_frame(funding, "funding")
    frame_access.require_columns(frame, [*NEEDED, *grouping.own_columns(keys)], "funding")
    kind = frame_access.number_kind(frame, ["usdc"], "funding")
    frame = grouping.add_groups(frame, keys)
    result = _sum_payments(_split_payments(frame, keys, kind), keys, kind)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    return frame_access.result_from_frame(
        result, {"funding": funding}, helper="funding.sums", by=keys
    )


def _split_payments(
    frame: frame_access.Frame, keys: list[str], kind: frame_access.NumberKind
) -> frame_access.Frame:
    usdc, zero = nw.col("usdc"), frame_access.zero_literal(kind)
    counted = ~usdc.is_null() if kind == "exact" else ~(usdc.is_null() | usdc.is_nan())
    rows = frame.filter(counted)
    return rows.select(
        *keys,
        "time",
        paid=nw.when(usdc < 0).then(usdc).otherwise(zero),
        received=nw.when(usdc > 0).then(usdc).otherwise(zero),
        net=usdc,
    )


def _sum_payments(
    frame: frame_access.Frame, keys: list[str], kind: frame_access.NumberKind
) -> frame_access.Frame:
    sums_ = [
        *(nw.col(name).sum() for name in MONEY),
        nw.col("time").count().alias("payments"),
        nw.col("time").min().alias("first"),
        nw.col("time").max().alias("last"),
    ]
    grouped = frame.group_by(*keys).agg(*sums_) if keys else frame.select(*sums_)
    number = frame_access.number_type(kind)
    return grouped.select(
        *keys,
        *(nw.col(name).fill_null(0).cast(number) for name in MONEY),
        nw.col("payments").cast(nw.Int64()),
        "first",
        "last",
    )


def accrual(
    funding: IntoFrameT, by: str | Iterable[str] | None = ("coin",), *, step: str = "hour"
) -> IntoFrameT:
    """Compute the running total of funding over time.

    Parameters
    ----------
    funding : DataFrame
        Funding rows: ``coin, time, usdc`` (pandas, Polars, DuckDB, PySpark; numbers
        float or exact). Repeated rows count once.
    by : str, list of str or None, default ("coin",)
        One curve for each group: ``coin``, ``user``, ``dex``, or any other column.
    step : {"hour", "day", "week"}
        The payments of one step are summed first. Funding is due every hour.

    Returns
    -------
    DataFrame
        The engine of `funding`, sorted by the groups and time, one row for each step with a
        payment: the columns of `by`, then

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
    The totals are computed in memory with whole numbers, so they are exact for floats of up to 15
    digits, too. A row that sums several payments (``n_samples``) counts at its own time, which is
    the time of payment.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "BTC", "usdc": [-2.0, 0.5, 0.25],
    ...                      "time": pd.to_datetime([0, 1, 3], unit="h", utc=True)})
    >>> accrual(rows)["total"].tolist()
    [-2.0, -1.5, -1.25]
    """
    if step not in STEPS:
        raise ValueError(f"unknown step {step!r}; choose one of {', '.join(STEPS)}")
    keys = grouping.list_keys(by, ("time", "usdc", "total", "payments", *STEPS))
    rows = memory_frames.collect_frame(sums(funding, [*keys, step]), "funding")
    kind = frame_access.number_kind(rows, ["net"], "funding")
    whole, decimals = fixed_point.to_integers(rows["net"], what="funding")
    names = list(zip(*(rows[key].to_list() for key in keys), strict=True)) or [()] * len(whole)
    totals: list[int] = []
    for _, group in groupby(zip(names, whole, strict=True), key=lambda pair: str(pair[0])):
        totals += accumulate(value for _, value in group)
    table = rows.select(*keys).to_arrow() if keys else pa.table({})
    table_columns = {
        **{name: table[name] for name in table.column_names},
        "time": memory_frames.utc_times(memory_frames.series_ms(rows[step])),
        "usdc": memory_frames.number_column(whole, decimals, kind),
        "payments": pa.array(rows["payments"].to_list(), type=pa.int64()),
        "total": memory_frames.number_column(totals, decimals, kind),
    }
    return memory_frames.result_from_table(
        pa.table(table_columns), {"funding": funding}, helper="funding.accrual", by=keys, step=step
    )
