"""Oracle prices that funding payments imply, and their comparison with fills."""

import numpy as np
import pandas as pd

from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.prepare.groups import number_groups, period_start
from toolkit.prepare.money import is_perp
from toolkit.prepare.provenance import finish
from toolkit.rules.directions import NOT_TRADED
from toolkit.rules.funding import LAST_DIGIT, implied_range
from toolkit.statistics import check_positive
from toolkit.times import HOUR


def implied_oracle(funding: Frame) -> pd.DataFrame:
    """Compute the oracle prices that payments imply, and check that they agree between accounts.

    A payment is ``usdc = -szi * oracle price * rate``, rounded to a millionth of a USD. It fixes
    the oracle price of its coin and hour to within a range; the larger the payment, the smaller the
    range. All payments of a coin and hour, of any account, must allow one price. A row that sums n
    payments (``n_samples``) implies the mean of their n oracle prices, if the position was the same
    in all n: the row has the mean size only. If all payments have the same wrong factor, they
    agree, too: `oracle_check` compares the price with fills.

    Parameters
    ----------
    funding : DataFrame
        ``coin, time, usdc, szi, funding_rate`` (and ``n_samples``) of one or many accounts.
        Repeated rows count once.

    Returns
    -------
    DataFrame
        One row for each coin and hour, sorted:

        - ``coin``: coin of the payments.
        - ``hour``: hour of the payments, UTC.
        - ``oracle_px``: implied oracle price, in USD: sum of the payments over the sum of size
          times rate. Large payments, which are the most exact, count most. A payment with the wrong
          sign (for example, a long position that receives a positive rate) implies a price below 0.
        - ``low``: lowest price that all payments allow, in USD.
        - ``high``: highest price that all payments allow, in USD.
        - ``agree``: whether ``low`` is at most ``high``, boolean. If not, a payment, a size or a
          rate is wrong or belongs to another hour. Missing if the only payment of the hour is a
          row that sums several: nothing shows whether the position was the same in all of them.
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
    table = Table(funding, "funding")
    prices = _implied_prices(table).drop(columns="longest")
    return finish(prices, {"funding": table.frame}, helper="funding.implied_oracle")


def _implied_prices(table: Table) -> pd.DataFrame:
    """Return the result of `implied_oracle`, with the payments of the ``longest`` row."""
    table.require(("coin", "time", "usdc", "szi", "funding_rate"))
    usdc, due = table.number("usdc"), table.number("szi") * table.number("funding_rate")
    samples = np.fmax(table.number("n_samples", default=1.0), 1.0)
    # A payment with the wrong sign, against what was due, implies a price below 0.
    paid, weight = np.where(due > 0, -usdc, usdc), np.abs(due) * samples
    usable = ~np.isnan(paid) & (weight > 0)
    hours = utc_times(period_start(table.ms(), "hour"))
    keys = pd.DataFrame({"coin": table.text("coin").texts(), "hour": hours})[usable]
    paid, weight, samples = paid[usable], weight[usable], samples[usable]
    group, groups = number_groups(keys)
    count = np.bincount(group)
    lows, highs = implied_range(paid, weight, samples * LAST_DIGIT)
    longest, low = np.ones(len(count)), np.full(len(count), -np.inf)
    high = np.full(len(count), np.inf)
    np.maximum.at(longest, group, samples)
    np.maximum.at(low, group, lows)
    np.minimum.at(high, group, highs)
    # Rounding may reverse the ends of a range without width.
    agree = pd.array(low <= high * (1 + 1e-12), dtype="boolean")
    agree[(count == 1) & (longest > 1)] = pd.NA
    px = np.bincount(group, paid) / np.bincount(group, weight)
    columns = {"low": low, "high": high, "agree": agree, "n": count, "longest": longest}
    return pd.DataFrame({**groups, "oracle_px": px, **columns})


def oracle_check(
    funding: Frame, fills: Frame, *, tolerance: float = 0.1, window_hours: int = 1
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
        are left out. Repeated rows count once.
    tolerance : float, default 0.1
        Allowed difference of the two prices, as a share of the fill price.
    window_hours : int, default 1
        A payment is compared with the fills of this many hours before and after it. If its row sums
        n payments, the time before it is n - 1 hours longer.

    Returns
    -------
    DataFrame
        One row for each coin and hour with an implied price, sorted:

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
    check_positive(tolerance=tolerance, window_hours=window_hours)
    payments, trades = Table(funding, "funding"), Table(fills, "fills")
    trades.require(("coin", "px", "sz", "time"))
    px, sz, ms, coins = trades.number("px"), trades.number("sz"), trades.ms(), trades.text("coin")
    used = ~np.isnan(px * sz) & (ms != NO_TIME) & coins.facts(is_perp)
    if trades.has("dir"):
        used &= ~trades.text("dir").facts(NOT_TRADED.__contains__)
    keys = (coins.codes << 43) + ms  # one number for coin and time
    order = np.flatnonzero(used)[np.argsort(keys[used], kind="stable")]
    px, sz, keys = px[order], sz[order], keys[order]
    prices = _implied_prices(payments)
    code_of = {coin: code for code, coin in enumerate(coins.values) if coin}
    code = prices["coin"].map(code_of).fillna(-1).to_numpy(np.int64)
    hour = (code << 43) + prices["hour"].astype("int64").to_numpy()
    before = (window_hours + prices["longest"].to_numpy() - 1) * HOUR
    first = np.searchsorted(keys, hour - before, "left")
    last = np.searchsorted(keys, hour + window_hours * HOUR, "right")
    count = last - first
    windows = np.stack([first, last], axis=1).ravel()
    paid, size = (np.add.reduceat(np.append(x, 0.0), windows)[::2] for x in (px * sz, sz))
    with np.errstate(divide="ignore", invalid="ignore"):
        fill_px = np.where(count > 0, paid / size, np.nan)
        ratio = prices["oracle_px"].to_numpy() / fill_px
        # The nearest whole number or inverse of one within the tolerance, else the ratio.
        up = np.maximum(np.abs(ratio), 1 / np.abs(ratio))
        whole = np.round(up)
        factor = np.where(np.abs(up / whole - 1) <= tolerance, whole, up)
        off_by = np.where(np.abs(ratio) >= 1, factor, 1 / factor) * np.sign(ratio)
    agrees = pd.array(np.abs(ratio - 1) <= tolerance, dtype="boolean")
    agrees[np.isnan(ratio)] = pd.NA
    columns = {"fill_px": fill_px, "fills": count, "ratio": ratio, "off_by": off_by}
    result = pd.DataFrame({**prices[["coin", "hour", "oracle_px"]], **columns, "agrees": agrees})
    inputs = {"funding": payments.frame, "fills": trades.frame}
    return finish(result, inputs, helper="funding.oracle_check", tolerance=tolerance)
