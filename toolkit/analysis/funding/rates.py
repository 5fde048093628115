"""What funding tells of the market: oracle prices, yearly rates."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common import columns, grouping, timestamps
from toolkit.analysis.common.bootstrap import (
    DRAWS,
    block_count,
    bootstrap_interval,
    count_codes,
    draw_blocks,
)
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.funding.samples import SAMPLES, sample_count, spread_hours
from toolkit.rules.funding import LAST_DIGIT, implied_range
from toolkit.times import HOUR

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HOURS_A_YEAR = 24 * 365
_CHUNK = 100_000
_ANNUAL = {
    "coin": "str", "statistic": "str", "estimate": "float64", "low": "float64",
    "high": "float64", "n": "int64", "missing": "int64", "covered": "float64",
}  # fmt: skip


def implied_oracle(funding: Any) -> Any:
    """Return the oracle prices that payments imply, and whether those of all accounts agree.

    A payment is ``usdc = -szi * oracle price * rate``, rounded to a millionth of a USD: it fixes
    the oracle price of its coin and hour to within a range, the narrower the larger it is. All
    payments of a coin and hour, of whichever account, must allow one price. A row that sums n
    payments (``n_samples``) implies the mean of their n oracle prices. All accounts agree on a
    price that is wrong by a factor, too: `oracle_check` compares it with fills.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, usdc, szi, funding_rate`` (and ``n_samples``) of one or many accounts
        (pandas, Polars eager or lazy, DuckDB relation; exact numbers are read as floats).
        Rows given twice count once.

    Returns
    -------
    DataFrame
        Of the engine of `funding`, one row for each coin and hour, sorted: ``coin``, ``hour``
        (UTC), then

        - ``oracle_px`` float64: sum of the payments over the sum of size times rate: the large
          payments, which know it best, count most. A payment of the wrong sign (longs receive
          positive rates, say) implies a price below 0;
        - ``low``, ``high`` float64: the range that all payments allow: the highest of their
          lowest prices, the lowest of their highest;
        - ``agree`` bool: whether ``low`` is at most ``high``. If not, a payment, a size or a
          rate is wrong, or is of another hour;
        - ``n`` int64: payments. Those of no size, at no rate or without an amount imply no price
          and are not counted; an hour that has only such has no row.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.

    Notes
    -----
    Clarifications, "How the exchange accounts"; docs/live_service.md, section 5, for samples;
    `toolkit.rules.funding.implied_range` for the range of one payment.

    Examples
    --------
    Two accounts, the larger of which knows the price to a cent:

    >>> rows = pd.DataFrame({"coin": "XYZ", "time": pd.to_datetime([0, 0], unit="ms", utc=True),
    ...     "usdc": [-0.002513, 2.5125], "szi": [2.0, -2000.0], "funding_rate": [1.25e-5] * 2})
    >>> implied_oracle(rows)[["oracle_px", "low", "high", "agree", "n"]].round(4)
       oracle_px    low    high  agree  n
    0      100.5  100.5  100.5   True  2
    """
    funding = count_once(funding, "funding")
    frame = columns.open_as_floats(funding, "funding", ("usdc", "szi", "funding_rate"))
    columns.require_columns(frame, ("coin", "time"), "funding")
    frame = grouping.add_calendar(frame, ["hour"])
    samples = sample_count(frame.collect_schema().names())
    due = nw.col("szi") * nw.col("funding_rate")
    # Against what was due: a payment of the wrong sign implies a price below 0.
    paid = nw.when(due > 0).then(-nw.col("usdc")).otherwise(nw.col("usdc"))
    weight = due.abs()
    rows = frame.select(
        "coin", "hour", _paid=paid, _weight=weight * samples, _digit=samples * LAST_DIGIT
    )
    weight, paid = nw.col("_weight"), nw.col("_paid")
    usable = ~(paid.is_null() | paid.is_nan() | weight.is_null() | weight.is_nan())
    low, high = implied_range(paid, weight, nw.col("_digit"))
    rows = rows.filter(usable & (weight > 0)).with_columns(_low=low, _high=high)
    grouped = rows.group_by("coin", "hour").agg(
        nw.col("_paid").sum(),
        nw.col("_weight").sum(),
        nw.col("_low").max(),
        nw.col("_high").min(),
        nw.col("_low").count().alias("n"),
    )
    # A range of no width may come out reversed by the last bit of a float.
    agree = nw.col("_low") <= nw.col("_high") * (1 + 1e-12)
    result = grouped.select(
        "coin",
        "hour",
        (nw.col("_paid") / nw.col("_weight")).alias("oracle_px"),
        nw.col("_low").alias("low"),
        nw.col("_high").alias("high"),
        agree.alias("agree"),
        nw.col("n").cast(nw.Int64()),
    ).sort("coin", "hour")
    return columns.result_from_frame(result, {"funding": funding}, helper="funding.implied_oracle")


def annualised(
    funding: Any,
    *,
    trim: float = 0.1,
    block_hours: int = 24,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
    interval_hours: float | None = None,
) -> pd.DataFrame:
    """Return each coin's funding rate by the year: hourly rates times 24 * 365, not compounded.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, funding_rate`` (and ``n_samples``) of one or many accounts (pandas, Polars,
        DuckDB). The rate of a coin and hour counts once, however many accounts paid it or rows
        repeat it. A row that sums n payments is for n hours.
    trim : float, default 0.1
        Share of the hours that the trimmed mean leaves out at each end; below 0.5.
    block_hours : int, default 24
        Length of the blocks that are drawn again: rates of neighbouring hours are alike.
    level, draws, seed
        Of the intervals; number of resamples; their seed.
    interval_hours : float, optional
        How many hours one payment is for: a rate of 8 hours is an eighth of it by the hour.
        Without it 1; for rows of before 2024, whose payments were for 8 hours, 8 unless they
        follow each other sooner (docs/live_service.md, section 5).

    Returns
    -------
    DataFrame
        pandas, three rows a coin, sorted: ``coin``, ``statistic`` (``mean``, ``trimmed``,
        ``median``), then

        - ``estimate``, ``low``, ``high``: share of the notional a year; positive where longs
          pay, as the exchange signs rates: a short position receives it;
        - ``n``: hours with a rate; ``missing``: hours without, from the first to the last:
          an account that held nothing has no rows, and what is missing is not 0; ``covered``,
          the share of the hours that are there. Intervals are missing for fewer than two blocks.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `trim`, `block_hours` or `level` makes no sense.

    Notes
    -----
    Circular block bootstrap over the hours that are there (Politis and Romano, 1992), expanded
    for few blocks as by Hesterberg (2015). No draw is sorted: it says how often it holds each
    of the sorted rates. So the time is that of hours times draws, the memory that of hours.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": "XYZ", "funding_rate": [1e-5, 1e-5, 4e-5],
    ...     "time": pd.to_datetime([0, 1, 3], unit="h", utc=True)})
    >>> annualised(rows)[["statistic", "estimate", "n", "missing", "covered"]].round(4)
      statistic  estimate  n  missing  covered
    0      mean    0.1752  3        1     0.75
    1   trimmed    0.1752  3        1     0.75
    2    median    0.0876  3        1     0.75
    """
    check_level(level)
    if not 0 <= trim < 0.5:
        raise ValueError(f"trim is a share of at least 0 and below 0.5, not {trim!r}")
    if block_hours < 1:
        raise ValueError(f"block_hours is at least 1 hour, not {block_hours!r}")
    made = []
    for coin, rates, span in hourly(funding, interval_hours):
        hours = len(rates)
        cuts = {"mean": 0, "trimmed": int(trim * hours), "median": (hours - 1) // 2}
        values = middles(rates, list(cuts.values()), block_hours, draws, seed)
        blocks = block_count(hours, block_hours)
        for name, one in zip(cuts, values.T, strict=True):
            low, high = bootstrap_interval(one[1:], blocks, level)
            counts = (hours, span - hours, hours / span)
            year = HOURS_A_YEAR
            made.append((coin, name, one[0] * year, low * year, high * year, *counts))
    result = pd.DataFrame(made, columns=list(_ANNUAL)).astype(_ANNUAL)
    facts = {"helper": "funding.annualised", "level": level}
    result.attrs["toolkit"] = {**result_provenance({"funding": funding}), **facts}
    return result


def hourly(funding: Any, interval: float | None = None) -> list[tuple[str, Floats, int]]:
    """Return each coin's rates hour by hour, and how many hours lie from the first to the last.

    `bootstrap_interval` is how many hours one payment is for, where the caller says it.
    """
    if interval is not None and not interval > 0:
        raise ValueError(f"interval_hours must be above 0, not {interval!r}")
    funding = count_once(funding, "funding")
    needed = ("coin", "time", "funding_rate")
    amounts = ("funding_rate", SAMPLES)
    rows = columns.pandas_columns(funding, "funding", needed, (SAMPLES,), amounts)
    rows = rows[rows["funding_rate"].notna()].reset_index(drop=True)
    samples = rows[SAMPLES] if SAMPLES in rows else pd.Series(1.0, index=rows.index)
    table = pd.DataFrame(
        {
            "coin": rows["coin"].astype("str"),
            "hour": timestamps.ms_from_times(rows["time"]) // HOUR,
            "rate": rows["funding_rate"],
            "samples": samples.fillna(1.0).clip(lower=1.0),
        }
    )
    table = spread_hours(table, interval)
    # An hour has one rate; were there two, their middle does not depend on the order of rows.
    rates = table.groupby(["coin", "hour"], sort=True)["rate"].median().reset_index()
    made = []
    for coin, group in rates.groupby("coin", sort=True):
        span = int(group["hour"].max() - group["hour"].min()) + 1
        made.append((str(coin), group["rate"].to_numpy(dtype="float64"), span))
    return made


def middles(rates: Floats, cuts: Sequence[int], block_hours: int, draws: int, seed: int) -> Floats:
    """Give means of the rates and of draws of blocks of them, without so many at each end.

    Parameters
    ----------
    rates : array of float, (hours,)
    cuts : sequence of int
        How many of the least and of the largest each mean leaves out: none for the mean,
        all but the middle one or two for the median.
    block_hours, draws, seed : int
        As in `annualised`.

    Returns
    -------
    array of float, (1 + draws, cuts)
        The rates' own in the first row.
    """
    values, codes = np.unique(rates, return_inverse=True)
    count, many = len(rates), len(values)
    made = [_middles(values, count_codes(codes[None, :], many), cuts)]
    rng = np.random.default_rng(seed)
    # In portions: years of hours times a thousand draws need not stand in memory at once.
    portion = max(1, _CHUNK // count)
    for first in range(0, draws, portion):
        places = draw_blocks(rng, min(portion, draws - first), count, block_hours)
        made.append(_middles(values, count_codes(codes[places], many), cuts))
    return np.concatenate(made)


def _middles(values: Floats, held: Ints, cuts: Sequence[int]) -> Floats:
    """Give the means of draws that say how often they hold each of the rising values."""
    ranks = np.zeros((len(held), len(values) + 1))
    np.cumsum(held, axis=1, out=ranks[:, 1:])
    made = []
    for cut in cuts:
        left = ranks[:, -1:] - cut
        kept = np.diff(np.clip(ranks, cut, left), axis=1)
        made.append(kept @ values / (left[:, 0] - cut))
    return np.stack(made, axis=1)
