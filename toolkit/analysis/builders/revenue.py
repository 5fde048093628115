"""What builders earn on the fills that carry them."""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, directions, fees, grouping
from toolkit.analysis.common.columns import Frame, Numbers
from toolkit.analysis.common.owners import lower_address
from toolkit.analysis.common.repeated_rows import count_once

__all__ = ["revenue"]

NUMBERS = ("px", "sz", "fee", "builder_fee")
_TAKEN = (*NUMBERS, "time", "fills", "volume", "revenue")


def revenue(fills: Any, builder: str | None = None, by: str | Iterable[str] | None = None) -> Any:
    """Sum what builders earned: the builder fees of the fills that carry them.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time, fee, builder, builder_fee``, as
        `tk.builder_approved_fills_by_time` and `tk.user_fills` give them (pandas, Polars eager
        or lazy, DuckDB relation; numbers float or exact). Rows given twice count once.
    builder : str, optional
        Only this one's; without it, fills of every builder.
    by : str or list of str, optional
        One row for each group: ``builder``, ``user``, ``coin``, ``dex``, ``hour``, ``day``,
        ``week`` (Monday, UTC), or any other column.

    Returns
    -------
    DataFrame
        Of the engine of `fills`, sorted by the groups: the columns of `by`, then

        - ``fills`` int64, ``volume`` float64 (USD, px * sz) of the fills with a builder;
        - ``revenue``: builder fees in USD, of the kind of numbers of the fills; positive is
          good for the builder;
        - ``fee_bps`` float64: ``revenue / volume``, of the fills whose fee has a price;
          missing without volume;
        - ``unpriced`` int64: fills with a builder fee in a token that has no price here.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.

    Notes
    -----
    `fee` contains the builder fee: adding the two counts it twice (clarifications, "How the
    exchange accounts"). Conversions of outcome tokens are no trades, and left out
    (docs/live_service.md, section 7); settlements, dust and netted vaults count, as in
    `tk.pnl.attribution`. Spot buys pay in the token they buy, valued at the fill's price.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": 100.0, "sz": [10.0, 20.0, 5.0], "side": "B", "fee": 0.5,
    ...     "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True),
    ...     "builder": ["0xb", "0xb", None], "builder_fee": [0.1, 0.2, None]})
    >>> revenue(fills)[["fills", "volume", "revenue", "fee_bps"]]
       fills  volume  revenue  fee_bps
    0      2  3000.0      0.3      1.0
    """
    fills = count_once(fills, "fills")
    keys = grouping.list_keys(by, _TAKEN)
    frame = columns.open_frame(fills, "fills")
    needed = ("coin", "px", "sz", "side", "time", "fee", "builder", "builder_fee")
    columns.require_columns(frame, (*needed, *grouping.own_columns(keys)), "fills")
    kind = columns.number_kind(frame, NUMBERS, "fills")
    conversion = directions.is_conversion(frame.collect_schema().names())
    directions.warn_missing_directions(frame, "fills", outcomes_alone=True)
    frame = frame.filter(carries(builder) & ~conversion)
    columns.require_values(frame, ("px", "sz"), "fills")
    fees.warn_missing_builder_fees(frame, "fills")
    fees.warn_missing_tokens(frame, "fills")
    have = frame.collect_schema().names()
    frame = grouping.add_groups(frame.with_columns(**earned(have, kind)), keys)
    result = _earnings(frame, keys, kind)
    result = result.sort(*keys, nulls_last=True) if keys else result
    return columns.result_from_frame(result, {"fills": fills}, helper="builders.revenue", by=keys)


def carries(builder: str | None) -> nw.Expr:
    """Tell whether a fill carries the builder, or any (None)."""
    if builder is None:
        return ~nw.col("builder").is_null()
    return (lower_address("builder") == builder.lower()).fill_null(False)


def earned(have: Sequence[str], kind: Numbers) -> dict[str, nw.Expr]:
    """Give what a builder earns on a fill (`_revenue`), and of which volume (`_known`)."""
    value = fees.fees_in_usd(have, kind)["_builder_fee"]
    lost = fees.without_price(have, kind, "builder_fee")
    volume = nw.col("px").cast(nw.Float64()) * nw.col("sz").cast(nw.Float64())
    known = nw.when(lost == 0).then(volume).otherwise(nw.lit(0.0))
    return {"_revenue": value, "unpriced": lost, "volume": volume, "_known": known}


def _earnings(frame: Frame, keys: Sequence[str], kind: Numbers) -> Frame:
    frame = frame.with_columns(fills=nw.lit(1))
    sums = [nw.col(n).sum() for n in ("fills", "volume", "_revenue", "_known", "unpriced")]
    grouped = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    whole = nw.col("_revenue").fill_null(0).cast(columns.number_type(kind))
    grouped = grouped.with_columns(revenue=whole, _float=whole.cast(nw.Float64()))
    rate = nw.when(nw.col("_known") > 0).then(nw.col("_float") / nw.col("_known") * 1e4)
    return grouped.select(
        *keys,
        nw.col("fills").fill_null(0).cast(nw.Int64()),
        nw.col("volume").fill_null(0.0),
        "revenue",
        rate.alias("fee_bps"),
        nw.col("unpriced").fill_null(0).cast(nw.Int64()),
    )
