"""Funding payments of accounts. Money is positive where the account received it."""

from collections.abc import Iterable
from typing import Any

import narwhals as nw

from toolkit.analysis import columns

__all__ = ["sums"]

NEEDED = ("coin", "time", "usdc")
MONEY = ("paid", "received", "net")
RESULT = (*MONEY, "payments", "first", "last")


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
        - ``payments`` int64: rows; rows without an amount are not counted;
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
    keys = columns.listed(by, ("time", *RESULT))
    frame = columns.opened(funding, "funding")
    made = ("dex", *columns.CALENDAR)
    columns.need(frame, [*NEEDED, *(key for key in keys if key not in made)], "funding")
    kind = columns.numbers(frame, ["usdc"], "funding")
    if "dex" in keys:
        frame = frame.with_columns(dex=columns.dex_of(nw.col("coin")))
    frame = columns.with_calendar(frame, keys)
    result = _grouped(_split(frame, keys, kind), keys, kind)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    return columns.closed(result, {"funding": funding}, helper="funding.sums", by=keys)


def _split(frame: columns.Frame, keys: list[str], kind: columns.Numbers) -> columns.Frame:
    usdc, nothing = nw.col("usdc"), columns.zero(kind)
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
