"""Oracle prices that funding payments imply, and their comparison with fills."""

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fill_kinds, frame_access, grouping, markets, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.funding.payment_counts import SAMPLES, sample_count
from toolkit.arrays import Floats
from toolkit.rules.funding import LAST_DIGIT, implied_range
from toolkit.times import HOUR

_RESULT = {
    "coin": "str", "hour": "datetime64[ms, UTC]", "oracle_px": "float64", "fill_px": "float64",
    "fills": "int64", "ratio": "float64", "off_by": "float64", "agrees": "boolean",
}  # fmt: skip


def implied_oracle(funding: IntoFrameT) -> IntoFrameT:
    """Compute the oracle prices that payments imply, and check that they agree between accounts.

    A payment is ``usdc = -szi * oracle price * rate``, rounded to a millionth of a USD. It fixes
    the oracle price of its coin and hour to within a range; the larger the payment, the smaller the
    range. All payments of a coin and hour, of any account, must allow one price. A row that sums n
    payments (``n_samples``) implies the mean of their n oracle prices. If all payments have the
    same wrong factor, they agree, too: `oracle_check` compares the price with fills.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, usdc, szi, funding_rate`` (and ``n_samples``) of one or many accounts (pandas,
        Polars, DuckDB, PySpark; exact numbers are read as floats). Repeated rows
        count once.

    Returns
    -------
    DataFrame
        The engine of `funding`, one row for each coin and hour, sorted:

        - ``coin``: coin of the payments.
        - ``hour``: hour of the payments, UTC.
        - ``oracle_px``: implied oracle price, in USD: sum of the payments over the sum of size
          times rate. Large payments, which are the most exact, count most. A payment with the wrong
          sign (for example, a long position that receives a positive rate) implies a price below 0.
        - ``low``: lowest price that all payments allow, in USD.
        - ``high``: highest price that all payments allow, in USD.
        - ``agree``: whether ``low`` is at most ``high``. If not, a payment, a size or a rate is
          wrong or belongs to another hour.
        - ``n``: number of payments. Payments without a size, a rate or an amount imply no
          price and do not count; an hour with only such payments has no row.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.

    Notes
    -----
    A payment is ``-szi * oracle price * rate`` (`toolkit.rules.funding`). The range of one payment
    is `toolkit.rules.funding.implied_range`. For ``n_samples`` see docs/live_service.md, section 5.

    Examples
    --------
    Two accounts; the payment of the larger one fixes the price to a cent:

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "XYZ", "time": pd.to_datetime([0, 0], unit="ms", utc=True),
    ...     "usdc": [-0.002513, 2.5125], "szi": [2.0, -2000.0], "funding_rate": [1.25e-5] * 2})
    >>> implied_oracle(rows)[["oracle_px", "low", "high", "agree", "n"]].round(4)
       oracle_px    low    high  agree  n
    0      100.5  100.5  100.5   True  2
    """
    funding = drop_repeated_rows(funding, "funding")
    frame = frame_access.open_as_floats(funding, "funding", ("usdc", "szi", "funding_rate"))
    frame_access.require_columns(frame, ("coin", "time"), "funding")
    frame = grouping.add_calendar(frame, ["hour"])
    samples = sample_count(frame.columns)
    due = nw.col("szi") * nw.col("funding_rate")
    # A payment with the wrong sign, against what was due, implies a price below 0.
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
    # Rounding may reverse the ends of a range without width.
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
    return frame_access.result_from_frame(
        result, {"funding": funding}, helper="funding.implied_oracle"
    )


def oracle_check(
    funding: IntoFrame, fills: IntoFrame, *, tolerance: float = 0.1, window_hours: int = 1
) -> pd.DataFrame:
    """Compare the oracle prices that funding payments imply with the prices of fills.

    The payments of all accounts also agree on an oracle price if all of them have the same wrong
    factor: a row that sums three payments implies three times the price if it is read as one
    payment. Fills of the same time reveal that.

    Parameters
    ----------
    funding : DataFrame
        As for `implied_oracle`: ``coin, time, usdc, szi, funding_rate`` (and ``n_samples``).
    fills : DataFrame
        Fills of any accounts: ``coin, px, sz, time``, and ``dir``, which marks conversions; these
        are left out (pandas, Polars, DuckDB, PySpark). Repeated rows count once.
    tolerance : float, default 0.1
        Allowed difference of the two prices, as a share of the fill price.
    window_hours : int, default 1
        A payment is compared with the fills of this many hours before and after it. If its row sums
        n payments, the time before it is n - 1 hours longer.

    Returns
    -------
    DataFrame
        pandas, one row for each coin and hour with an implied price, sorted:

        - ``coin``: coin of the payments.
        - ``hour``: hour of the payments, UTC.
        - ``oracle_px``: implied oracle price, in USD, from `implied_oracle`.
        - ``fill_px``: mean price of the fills around the hour, weighted by size, in USD; missing
          without fills.
        - ``fills``: number of fills around the hour.
        - ``ratio``: ``oracle_px / fill_px``; missing without fills.
        - ``off_by``: factor by which the oracle price is wrong: 1 if it agrees, 3 if it is three
          times too high, 1/3 if it is three times too low, -1 if payments have the wrong sign; the
          ratio itself if no whole number is near; missing without fills.
        - ``agrees``: whether the ratio is within the tolerance of 1, boolean; missing without
          fills.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `tolerance` or `window_hours` is not positive.

    Notes
    -----
    docs/live_service.md, section 5. Oracle prices are averages of spot markets, and fills are of
    the perp. The two differ by the premium, which is far below the tolerance.

    Examples
    --------
    A row sums three payments but has no ``n_samples``, so it implies three times the price:

    >>> import pandas as pd
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
    for name, number in (("tolerance", tolerance), ("window_hours", window_hours)):
        if not number > 0:
            raise ValueError(f"{name} must be above 0, not {number!r}")
    fills = drop_repeated_rows(fills, "fills")
    prices = frame_access.pandas_columns(
        implied_oracle(funding), "funding", ("coin", "hour", "oracle_px")
    )
    needed = ("coin", "px", "sz", "time")
    rows = frame_access.pandas_columns(fills, "fills", needed, ("dir",), ("px", "sz"))
    frame = nw.from_native(rows, eager_only=True)
    traded = fill_kinds.is_market_trade(frame.columns) & markets.is_perp(nw.col("coin"))
    rows = frame.filter(traded).to_native().dropna(subset=["px", "sz", "time"])
    checks = pd.DataFrame(
        {
            "coin": prices["coin"].astype("str"),
            "hour": prices["hour"],
            "oracle_px": prices["oracle_px"].astype("float64"),
        }
    )
    around = _fill_prices_around(checks, rows, window_hours, _longest_rows(funding, checks))
    checks = checks.assign(**around)
    checks["ratio"] = checks["oracle_px"] / checks["fill_px"]
    checks["off_by"] = _nearest_factor(checks["ratio"], tolerance)
    near = (checks["ratio"] - 1).abs() <= tolerance
    checks["agrees"] = near.astype("boolean").where(checks["ratio"].notna())
    checks = checks.sort_values(["coin", "hour"], ignore_index=True)
    result = checks.reindex(columns=list(_RESULT)).astype(_RESULT)
    facts = {"helper": "funding.oracle_check", "tolerance": tolerance}
    result.attrs["toolkit"] = {**result_provenance({"funding": funding, "fills": fills}), **facts}
    return result


def _longest_rows(funding: IntoFrame, checks: pd.DataFrame) -> Floats:
    """Return how many payments the longest row of each coin and hour sums."""
    rows = frame_access.pandas_columns(funding, "funding", ("coin", "time"), (SAMPLES,), (SAMPLES,))
    if SAMPLES not in rows:
        return np.ones(len(checks))
    places = [
        [table["coin"].astype("str"), timestamps.ms_from_times(table[time]) // HOUR]
        for table, time in ((rows, "time"), (checks, "hour"))
    ]
    longest = rows[SAMPLES].groupby(places[0]).max()
    return longest.reindex(pd.MultiIndex.from_arrays(places[1])).clip(1).fillna(1).to_numpy("f8")


def _fill_prices_around(
    prices: pd.DataFrame, rows: pd.DataFrame, window: int, longest: Floats
) -> dict[str, pd.Series]:
    """Return the mean price of the fills around each hour, weighted by size, and their number."""
    value, size, count = (np.full(len(prices), 0.0) for _ in range(3))
    moment = timestamps.ms_from_times(prices["hour"]).to_numpy(dtype="float64")
    begin, end = moment - (window + longest - 1) * HOUR, moment + window * HOUR
    ms = timestamps.ms_from_times(rows["time"])
    for coin, places in prices.groupby("coin").indices.items():
        is_coin = (rows["coin"].astype("str") == coin).to_numpy(dtype=bool)
        table = pd.DataFrame(
            {"ms": ms[is_coin], "px": rows["px"][is_coin], "sz": rows["sz"][is_coin]}
        )
        table = table.sort_values("ms", kind="stable")
        times = table["ms"].to_numpy(dtype="float64")
        first = np.searchsorted(times, begin[places], "left")
        last = np.searchsorted(times, end[places], "right")
        paid = np.concatenate([[0.0], np.cumsum(table["px"] * table["sz"])])
        sizes = np.concatenate([[0.0], np.cumsum(table["sz"])])
        value[places], size[places] = paid[last] - paid[first], sizes[last] - sizes[first]
        count[places] = last - first
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(count > 0, value / size, np.nan)
    return {"fill_px": pd.Series(mean), "fills": pd.Series(count.astype("int64"))}


def _nearest_factor(ratio: pd.Series, tolerance: float) -> pd.Series:
    """Return the nearest whole number or inverse of one within the tolerance, else the ratio."""
    size = ratio.abs()
    up = size.where(size >= 1, 1 / size)
    whole = up.round()
    near = (up / whole - 1).abs() <= tolerance
    factor = up.where(~near, whole)
    signed: pd.Series = factor.where(size >= 1, 1 / factor) * np.sign(ratio)
    return signed
