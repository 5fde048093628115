"""How well trades were done: against the price before, and the prices after."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.common import grouping
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.execution import fills as execution_fills
from toolkit.analysis.execution.markout import Markout, markout, read_marks
from toolkit.analysis.execution.marks import milliseconds
from toolkit.analysis.execution.spreads import Spreads, spreads
from toolkit.analysis.execution.tape import quotes

__all__ = ["Markout", "Spreads", "fill_quality", "markout", "quotes", "spreads"]

_RESULT = {
    "fills": "int64", "volume_usd": "float64", "priced": "int64", "covered": "float64",
    "improvement_usd": "float64", "improvement_bps": "float64", "age_seconds": "float64",
    "oldest_seconds": "float64",
}  # fmt: skip


def fill_quality(
    fills: Any,
    prices: Any = None,
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("side", "liquidity"),
) -> pd.DataFrame:
    """Compare the prices of fills with the price just before each of them.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time`` and what `by` needs (pandas, Polars, DuckDB; numbers float
        or exact). Rows given twice count once.
    prices : DataFrame, optional
        ``coin`` (or ``name``), ``time`` and a price: asset contexts, each batch with its time,
        or `quotes`. Without it the fills are the whole tape, and the prices are the mids of its
        `quotes`. The tape's own prices are refused: each is a bid or an ask.
    price : str, optional
        Column to take: by default the first there of ``mid_px``, ``mark_px``, ``oracle_px``. The
        result's provenance says which, as ``price_source``.
    max_age : str or float, default "60s"
        How old a price may be at the fill: text, or seconds. A fill without one that is fresh
        enough is counted, and not priced.
    by : str, list of str or None, default ("side", "liquidity")
        Groups: ``liquidity`` (taker or maker, of ``crossed``), ``side``, ``coin``, ``user``,
        ``dex``, ``hour``, ``day``, ``week``, or any other column. None: one row.

    Returns
    -------
    DataFrame
        pandas, sorted: the columns of `by`, then

        - ``fills``, ``volume_usd``: all; ``priced``: fills of a known price and size, with a
          price before them; ``covered``: their share of the volume;
        - ``improvement_usd``: what the priced fills gained against the price before, positive is
          good for the account: sum of (price - px) * sz for buys, (px - price) * sz for sells;
        - ``improvement_bps``: of their value at that price;
        - ``age_seconds`` of the prices, in the mean, and ``oldest_seconds``.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` is not a span of time, or the prices are those of trades.

    Notes
    -----
    The price before a fill is the last one before its own millisecond, so that a fill is not
    compared with a quote that it made itself. Fills that are no trades are left out: conversions,
    settlements, dust, vaults that net (docs/live_service.md, section 7).

    Examples
    --------
    Bought 2 at 101 where the mid had been 100 half a second before: 2 USD, or 100 bps, lost.

    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [101.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1500], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0],
    ...     "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> fill_quality(fills, mids)[["liquidity", "improvement_usd", "improvement_bps", "covered"]]
      liquidity  improvement_usd  improvement_bps  covered
    0     taker             -2.0           -100.0      1.0
    """
    keys = grouping.list_keys(by, _RESULT)
    rows = execution_fills.read(fills, keys)
    marks = read_marks(fills, prices, price, rows, max_age)
    age_ms = milliseconds(max_age, "max_age")
    rows["_px"], rows["_age"] = execution_fills.before(rows, marks, age_ms)
    made = [(*key, *_quality(group)) for key, group in execution_fills.groups(rows, keys)]
    types = {**execution_fills.key_types(rows, keys), **_RESULT}
    result = pd.DataFrame(made, columns=list(types)).astype(types)
    facts = {"helper": "execution.fill_quality", "by": keys, "price_source": marks.source}
    result.attrs["toolkit"] = {**result_provenance({"fills": fills, "prices": prices}), **facts}
    return result


def _quality(rows: pd.DataFrame) -> tuple[Any, ...]:
    priced = rows[rows["_px"].notna() & rows["_usd"].notna()]
    gain = float((priced["_sign"] * (priced["_px"] - priced["px"]) * priced["sz"]).sum())
    value, volume = float((priced["_px"] * priced["sz"]).sum()), float(rows["_usd"].sum())
    nothing = not len(priced)
    return (
        len(rows),
        volume,
        len(priced),
        float(priced["_usd"].sum()) / volume if volume else np.nan,
        np.nan if nothing else gain,
        np.nan if nothing else gain / value * 1e4,
        float(priced["_age"].mean()),
        float(priced["_age"].max()),
    )
