"""The fills behind the TWAP orders of a snapshot."""

from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, grouping
from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.owners import account_names, lower_address
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.execution.twap_snapshots import ORDER, timed
from toolkit.times import Time

__all__ = ["linked"]


def linked(twaps: Any, fills: Any, *, at: Time | None = None, account: str | None = None) -> Any:
    """Find the fills behind each TWAP order of a snapshot, and what is missing of them.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot, as for `adherence`.
    fills : DataFrame
        Fills of its accounts: ``coin, px, sz, time, twap_id`` and ``user``, of the engine of
        `twaps`. Rows given twice count once.
    at : time, optional
        As for `adherence`; later fills do not count.
    account : str, optional
        Whose fills they are, where they have no ``user``; without it, whom they were fetched
        for.

    Returns
    -------
    DataFrame
        Of the engine of `twaps`, sorted: ``market, address, twap_id, executed_sz,
        executed_ntl``, then

        - ``fills``: how many; ``filled_sz``, ``filled_ntl``: what they add up to;
        - ``missing_sz``, ``missing_ntl``: executed less filled, 0 but for the last bits of
          floats where every fill is there;
        - ``whole``: whether that is so, to a billionth.

    Raises
    ------
    MissingColumns
        If a column is missing, also where nothing says whose the fills are.
    ValueError
        If nothing says when the snapshot was taken.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": ["BTC"], "address": ["0xa"], "twap_id": [1], "executed_sz": [3.0],
    ...     "executed_ntl": [301.0], "duration_secs": [600],
    ...     "start_time_ms": pd.to_datetime([0], unit="ms", utc=True), "waiting": [False]})
    >>> fills = pd.DataFrame({
    ...     "user": "0xA", "coin": "BTC", "twap_id": 1, "px": [100.0, 101.0], "sz": [2.0, 1.0],
    ...     "time": pd.to_datetime([30_000, 60_000], unit="ms", utc=True)})
    >>> linked(snapshot, fills, at=60_000)[["fills", "filled_ntl", "missing_sz", "whole"]]
       fills  filled_ntl  missing_sz  whole
    0      2       301.0         0.0   True
    """
    fills = count_once(fills, "fills")
    sums = ("executed_sz", "executed_ntl")
    frame = timed(twaps, (*ORDER, *sums, "duration_secs", "start_time_ms", "waiting"), sums, at)
    frame = frame.with_columns(_who=lower_address("address"), _row=nw.lit(1))
    found = _fills_by_order(frame, fills, account)
    keys = ["_who", "_coin", "_twap"]
    frame = frame.with_columns(_coin=nw.col("market").cast(nw.String()), _twap=nw.col("twap_id"))
    both = frame.join(found, on=keys, how="left")  # type: ignore[arg-type]
    filled = {name: nw.col(name).fill_null(0.0) for name in ("filled_sz", "filled_ntl")}
    both = both.with_columns(**filled, fills=nw.col("fills").fill_null(0).cast(nw.Int64()))
    both = both.with_columns(
        missing_sz=nw.col("executed_sz") - nw.col("filled_sz"),
        missing_ntl=nw.col("executed_ntl") - nw.col("filled_ntl"),
    )
    result = both.select(
        *ORDER,
        *sums,
        "fills",
        "filled_sz",
        "filled_ntl",
        "missing_sz",
        "missing_ntl",
        (nw.col("missing_sz").abs() <= 1e-9 * nw.col("executed_sz")).alias("whole"),
    )
    inputs = {"twaps": twaps, "fills": fills}
    return columns.result_from_frame(result.sort(*ORDER), inputs, helper="twaps.linked")


def _fills_by_order(twaps: Frame, fills: Any, account: str | None) -> Frame:
    """Sum the fills of each TWAP order until its snapshot was taken."""
    frame = columns.open_as_floats(fills, "fills", ["px", "sz"])
    columns.require_columns(frame, ("coin", "time", "twap_id"), "fills")
    if "user" not in frame.collect_schema().names():
        whose = account_names(fills, account)
        if len(whose) != 1:
            columns.require_columns(frame, ["user"], "fills", "or name the account (account=)")
        frame = frame.with_columns(user=nw.lit(whose[0]))
    frame = grouping.add_ms(frame).filter(~nw.col("twap_id").is_null())
    frame = frame.select(
        _who=lower_address("user"),
        _coin=nw.col("coin").cast(nw.String()),
        _twap=nw.col("twap_id").cast(nw.Int64()),
        _time=nw.col("_ms"),
        _sz=nw.col("sz"),
        _ntl=nw.col("px") * nw.col("sz"),
    )
    orders = twaps.select(
        "_who",
        "_at",
        _coin=nw.col("market").cast(nw.String()),
        _twap=nw.col("twap_id").cast(nw.Int64()),
    )
    keys = ["_who", "_coin", "_twap"]
    orders = orders.group_by(*keys).agg(nw.col("_at").max())
    both: Frame = frame.join(orders, on=keys, how="inner")  # type: ignore[arg-type]
    both = both.filter(nw.col("_time") <= nw.col("_at"))
    return both.group_by(*keys).agg(
        nw.col("_sz").count().alias("fills"),
        nw.col("_sz").sum().alias("filled_sz"),
        nw.col("_ntl").sum().alias("filled_ntl"),
    )
