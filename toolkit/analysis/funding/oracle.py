"""Oracle prices that funding implies, held against what trades paid."""

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from toolkit.analysis.common import columns, directions, markets, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.funding.rates import implied_oracle
from toolkit.analysis.funding.samples import SAMPLES
from toolkit.times import HOUR

__all__ = ["oracle_check"]

_RESULT = {
    "coin": "str", "hour": "datetime64[ms, UTC]", "oracle_px": "float64", "fill_px": "float64",
    "fills": "int64", "ratio": "float64", "off_by": "float64", "agrees": "boolean",
}  # fmt: skip


def oracle_check(
    funding: Any, fills: Any, *, tolerance: float = 0.1, window_hours: int = 1
) -> pd.DataFrame:
    """Compare the oracle prices that funding payments imply with the prices of fills.

    Payments of all accounts agree on an oracle price also where a wrong factor is in all of them:
    a row that sums three payments implies three times the price if it is read as one. Fills of
    the same time show that.

    Parameters
    ----------
    funding : DataFrame
        As `implied_oracle` takes it: ``coin, time, usdc, szi, funding_rate`` (and ``n_samples``).
    fills : DataFrame
        Fills of anybody: ``coin, px, sz, time``, and ``dir``, which tells conversions, that are
        left out (pandas, Polars, DuckDB). Rows given twice count once.
    tolerance : float, default 0.1
        How far the two may be apart, as a share of the fill price.
    window_hours : int, default 1
        Fills of so many hours before and after a payment are compared with it; of as many hours
        more before as the payment's row sums.

    Returns
    -------
    DataFrame
        pandas, one row for each coin and hour with an implied price, sorted:

        - ``coin``, ``hour`` (UTC), ``oracle_px``: as `implied_oracle` gives them;
        - ``fill_px``: mean price of the fills around it, by size; ``fills``: how many;
        - ``ratio``: ``oracle_px / fill_px``;
        - ``off_by``: the factor by which the oracle price is wrong: 1 where it agrees, 3 where it
          is three times too high, 1/3 where it is three times too low, -1 where payments have the
          wrong sign; the ratio itself where no whole number is near;
        - ``agrees`` boolean: whether the ratio is within the tolerance of 1. All four are missing
          where there are no fills.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `tolerance` or `window_hours` is not positive.

    Notes
    -----
    docs/live_service.md, section 5. Oracle prices are averages of spot markets, fills are of the
    perp: the two differ by the premium, which is far below the tolerance.

    Examples
    --------
    A row of three payments that does not say so implies three times the price:

    >>> rows = pd.DataFrame({"coin": ["BTC"], "time": pd.to_datetime([3_600_000], unit="ms",
    ...     utc=True), "usdc": [-2.9], "szi": [0.1], "funding_rate": [0.0003333]})
    >>> fills = pd.DataFrame({"coin": ["BTC"], "px": [29_000.0], "sz": [0.5],
    ...     "time": pd.to_datetime([3_000_000], unit="ms", utc=True)})
    >>> oracle_check(rows, fills)[["oracle_px", "fill_px", "off_by", "agrees"]].round(1)
       oracle_px  fill_px  off_by  agrees
    0    87008.7  29000.0     3.0   False
    >>> oracle_check(rows.assign(n_samples=3), fills)[["oracle_px", "off_by", "agrees"]].round(1)
       oracle_px  off_by  agrees
    0    29002.9     1.0    True
    """
    if not (tolerance > 0 and window_hours > 0):
        raise ValueError(
            f"tolerance={tolerance!r} and window_hours={window_hours!r} must be above 0"
        )
    fills = count_once(fills, "fills")
    prices = columns.pandas_columns(
        implied_oracle(funding), "funding", ("coin", "hour", "oracle_px")
    )
    needed = ("coin", "px", "sz", "time")
    rows = columns.pandas_columns(fills, "fills", needed, ("dir",), ("px", "sz"))
    frame = nw.from_native(rows, eager_only=True)
    traded = directions.is_market_trade(frame.columns) & markets.is_perp(nw.col("coin"))
    rows = frame.filter(traded).to_native().dropna(subset=["px", "sz", "time"])
    made = pd.DataFrame(
        {
            "coin": prices["coin"].astype("str"),
            "hour": prices["hour"],
            "oracle_px": prices["oracle_px"].astype("float64"),
        }
    )
    around = _around(made, rows, window_hours, _longest(funding))
    made = made.assign(**around)
    made["ratio"] = made["oracle_px"] / made["fill_px"]
    made["off_by"] = _factors(made["ratio"], tolerance)
    near = (made["ratio"] - 1).abs() <= tolerance
    made["agrees"] = near.astype("boolean").where(made["ratio"].notna())
    made = made.sort_values(["coin", "hour"], ignore_index=True)
    result = made.reindex(columns=list(_RESULT)).astype(_RESULT)
    facts = {"helper": "funding.oracle_check", "tolerance": tolerance}
    result.attrs["toolkit"] = {**result_provenance({"funding": funding, "fills": fills}), **facts}
    return result


def _longest(funding: Any) -> int:
    """Return the most payments that a row of the frame sums."""
    rows = columns.pandas_columns(funding, "funding", ("coin",), (SAMPLES,), (SAMPLES,))
    most = rows[SAMPLES].max() if SAMPLES in rows else 1
    return int(most) if most >= 1 else 1


def _around(
    prices: pd.DataFrame, rows: pd.DataFrame, window: int, longest: int
) -> dict[str, pd.Series]:
    """Return the mean price by size of the fills around each moment, and how many they are."""
    value, size, count = (np.full(len(prices), 0.0) for _ in range(3))
    moment = timestamps.ms_from_times(prices["hour"]).to_numpy(dtype="float64")
    ms = timestamps.ms_from_times(rows["time"])
    for coin, places in prices.groupby("coin").indices.items():
        mine = (rows["coin"].astype("str") == coin).to_numpy(dtype=bool)
        table = pd.DataFrame({"ms": ms[mine], "px": rows["px"][mine], "sz": rows["sz"][mine]})
        table = table.sort_values("ms", kind="stable")
        times = table["ms"].to_numpy(dtype="float64")
        first = np.searchsorted(times, moment[places] - (window + longest - 1) * HOUR, "left")
        last = np.searchsorted(times, moment[places] + window * HOUR, "right")
        paid = np.concatenate([[0.0], np.cumsum(table["px"] * table["sz"])])
        held = np.concatenate([[0.0], np.cumsum(table["sz"])])
        value[places], size[places] = paid[last] - paid[first], held[last] - held[first]
        count[places] = last - first
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(count > 0, value / size, np.nan)
    return {"fill_px": pd.Series(mean), "fills": pd.Series(count.astype("int64"))}


def _factors(ratio: pd.Series, tolerance: float) -> pd.Series:
    """Return the whole number, or one over it, that a ratio is near; else the ratio."""
    size = ratio.abs()
    up = size.where(size >= 1, 1 / size)
    whole = up.round()
    near = (up / whole - 1).abs() <= tolerance
    factor = up.where(~near, whole)
    signed: pd.Series = factor.where(size >= 1, 1 / factor) * np.sign(ratio)
    return signed
