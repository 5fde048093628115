"""Fills compared with the price before them, and the prices that every comparison reads."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import fill_kinds, frame_access, grouping, markets, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.execution.prices import PriceHistory, read_prices, span_ms
from toolkit.analysis.execution.quotes import quotes, refuse_trade_prices, side_signs
from toolkit.arrays import Floats

NEEDED = ("coin", "px", "sz", "side", "time")
LIQUIDITY = "liquidity"
_TEXT = (LIQUIDITY, "side", "coin", "dex", "user", "dir")
_QUALITY = {
    "fills": "int64", "volume_usd": "float64", "priced": "int64", "covered": "float64",
    "improvement_usd": "float64", "improvement_bps": "float64", "age_seconds": "float64",
    "oldest_seconds": "float64",
}  # fmt: skip


def fill_quality(
    fills: IntoFrame,
    prices: IntoFrame | None = None,
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("side", "liquidity"),
) -> pd.DataFrame:
    """Compare the prices of fills with the last price before each fill.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time`` and the columns of `by` (pandas, Polars, DuckDB, PySpark;
        numbers float or exact). Repeated rows count once.
    prices : DataFrame, optional
        ``coin`` (or ``name``), ``time`` and a price: archived answers of `tk.meta_and_asset_ctxs`,
        with a column ``time``, or `quotes`. Without it `fills` must be the full tape of the market,
        and the prices are the mids of its `quotes`. Prices of trades are refused, because each is a
        bid or an ask.
    price : str, optional
        Column of the price. By default the first of ``mid_px``, ``mark_px``, ``oracle_px`` that
        exists. The provenance of the result names it as ``price_source``.
    max_age : str or float, default "60s"
        Largest age of a price at the fill: text, or seconds. A fill without such a price is
        counted, but not priced.
    by : str, list of str or None, default ("side", "liquidity")
        Groups: ``liquidity`` (taker or maker, from ``crossed``), ``side``, ``coin``, ``user``,
        ``dex``, ``hour``, ``day``, ``week``, or any other column. None: one row.

    Returns
    -------
    DataFrame
        pandas, sorted: the columns of `by`, then

        - ``fills``: number of fills.
        - ``volume_usd``: volume of all fills, in USD.
        - ``priced``: number of fills that have a price, a size and a side, and for which `prices`
          has a price before the fill.
        - ``covered``: volume of the priced fills, as a share of the volume of all fills.
        - ``improvement_usd``: gain of the priced fills against the price before the fill, in USD;
          positive is good for the account: sum of (price - px) * sz for buys, (px - price) * sz for
          sells.
        - ``improvement_bps``: gain of the priced fills in basis points of their value at the price
          before the fill.
        - ``age_seconds``: mean age of the prices, in seconds.
        - ``oldest_seconds``: largest age of the prices, in seconds.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` is not a span of time, or the prices are those of trades.

    Notes
    -----
    The price before a fill is the last one before the fill's own millisecond, so a fill is not
    compared with a quote that it made itself. Fills that are not trades are left out: conversions
    of outcome tokens (docs/live_service.md, section 7), settlements, dust conversions, and fills
    between two vaults of one leader (``Net Child Vaults``).

    Examples
    --------
    An account buys 2 at 101. Half a second before, the mid was 100: a loss of 2 USD, or 100 bps.

    >>> import pandas as pd
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [101.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1500], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0],
    ...     "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> fill_quality(fills, mids)[["liquidity", "improvement_usd", "improvement_bps", "covered"]]
      liquidity  improvement_usd  improvement_bps  covered
    0     taker             -2.0           -100.0      1.0
    """
    keys = grouping.list_keys(by, _QUALITY)
    rows = read_market_trades(fills, keys)
    marks = read_reference_prices(fills, prices, price, rows, max_age)
    age_ms = span_ms(max_age, "max_age")
    rows["_px"], rows["_age"] = prices_before(rows, marks, age_ms)
    figures = [(*key, *_quality_figures(group)) for key, group in group_fills(rows, keys)]
    types = {**key_types(rows, keys), **_QUALITY}
    result = pd.DataFrame(figures, columns=list(types)).astype(types)
    facts = {"helper": "execution.fill_quality", "by": keys, "price_source": marks.source}
    result.attrs["toolkit"] = {**result_provenance({"fills": fills, "prices": prices}), **facts}
    return result


def _quality_figures(rows: pd.DataFrame) -> tuple[Any, ...]:
    priced = rows[rows[["_px", "_usd", "_sign"]].notna().all(axis=1)]
    gain = float((priced["_sign"] * (priced["_px"] - priced["px"]) * priced["sz"]).sum())
    value, volume = float((priced["_px"] * priced["sz"]).sum()), float(rows["_usd"].sum())
    is_unpriced = not len(priced)
    return (
        len(rows),
        volume,
        len(priced),
        float(priced["_usd"].sum()) / volume if volume else np.nan,
        np.nan if is_unpriced else gain,
        np.nan if is_unpriced else gain / value * 1e4,
        float(priced["_age"].mean()),
        float(priced["_age"].max()),
    )


def read_market_trades(fills: IntoFrame, keys: Iterable[str]) -> pd.DataFrame:
    """Return the fills that are trades, with the columns to group by, `_ms`, `_sign`, `_usd`.

    The notes of `fill_quality` list the fills that are not trades. `_sign` is missing for a fill
    without a side.
    """
    fills = drop_repeated_rows(fills, "fills")
    sources = {LIQUIDITY: "crossed", "dex": "coin", **dict.fromkeys(grouping.CALENDAR, "time")}
    needed = [*NEEDED, *(sources.get(key, key) for key in keys)]
    rows = frame_access.pandas_columns(fills, "fills", needed, ("dir",), ("px", "sz"))
    frame = nw.from_native(rows, eager_only=True)
    fill_kinds.warn_missing_directions(frame, "fills")
    rows = (
        frame.filter(fill_kinds.is_market_trade(frame.columns)).to_native().reset_index(drop=True)
    )
    rows["_ms"] = timestamps.ms_from_times(rows["time"])
    rows["coin"] = rows["coin"].astype("str")
    rows["_sign"] = side_signs(rows["side"])
    rows["_usd"] = rows["px"] * rows["sz"]
    for key in keys:
        if key == LIQUIDITY:
            taker = rows["crossed"].astype("boolean")
            words = taker.map({True: "taker", False: "maker"})
            rows[key] = words.astype("str")
        elif key == "dex":
            frame = nw.from_native(rows, eager_only=True)
            rows[key] = frame.select(dex=markets.dex_of(nw.col("coin"))).to_native()["dex"]
        elif key in grouping.CALENDAR:
            length, into = grouping.CALENDAR[key]
            rows[key] = timestamps.timestamps_from_ms(rows["_ms"] - (rows["_ms"] + into) % length)
    # A total order of the rows, so that sums do not depend on the order of the input.
    return rows.sort_values(["_ms", "coin", "px", "sz", "_sign"], kind="stable", ignore_index=True)


def read_reference_prices(
    fills: IntoFrame,
    prices: IntoFrame | None,
    price: str | None,
    rows: pd.DataFrame,
    max_age: str | float,
) -> PriceHistory:
    """Return the passed prices; without any, the mids of the `quotes` of the fills.

    Raise ValueError if the passed prices are prices of trades.
    """
    if prices is None:
        own = quotes(fills, max_age=max_age)
        return replace(read_prices(own, "mid_px"), source="quotes", quotes=own)
    marks = read_prices(prices, price)
    refuse_trade_prices(rows, marks)
    return replace(marks, quotes=prices if marks.source == "mid_px" else None)


def prices_before(
    rows: pd.DataFrame, marks: PriceHistory, max_age_ms: int
) -> tuple[Floats, Floats]:
    """Return the last price before each fill's own millisecond, and its age in seconds."""
    at = rows["_ms"].to_numpy()
    px, when = marks.last_at(rows["coin"], at - 1)
    return _fresh_prices(px, at - when, max_age_ms)


def prices_after(
    rows: pd.DataFrame, marks: PriceHistory, horizon_ms: int, max_age_ms: int
) -> tuple[Floats, Floats]:
    """Return the last price at the horizon after each fill, and its age then, in seconds.

    A price from before the fill, or of the fill's millisecond, does not count: it does not show
    what came after the fill.
    """
    at = rows["_ms"].to_numpy()
    px, when = marks.last_at(rows["coin"], at + horizon_ms)
    return _fresh_prices(np.where(when > at, px, np.nan), at + horizon_ms - when, max_age_ms)


def _fresh_prices(px: Floats, age_ms: Floats, max_age_ms: int) -> tuple[Floats, Floats]:
    fresh = (age_ms <= max_age_ms) & ~np.isnan(px)
    return np.where(fresh, px, np.nan), np.where(fresh, age_ms / 1000, np.nan)


def group_fills(rows: pd.DataFrame, keys: list[str]) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Return the groups of the rows, sorted; without keys all rows are one group."""
    if not keys:
        return [((), rows)] if len(rows) else []
    split = rows.groupby(keys, sort=True, dropna=False)
    return [(key, group) for key, group in split]


def key_types(rows: pd.DataFrame, keys: list[str]) -> dict[str, Any]:
    """Return the dtypes of the columns to group by."""
    return {key: "str" if key in _TEXT else rows[key].dtype for key in keys}
