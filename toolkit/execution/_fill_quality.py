"""Fills compared with the price before them."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import list_keys, sum_groups
from toolkit.prepare.prices import span_ms
from toolkit.prepare.provenance import finish
from toolkit.prepare.trades import group_trades

_QUALITY = ("fills", "volume_usd", "priced", "covered", "improvement_usd", "improvement_bps",
            "age_seconds", "oldest_seconds")  # fmt: skip


def fill_quality(
    fills: Frame,
    prices: Frame | None = None,
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("side", "liquidity"),
) -> pd.DataFrame:
    """Compare the prices of fills with the last price before each fill.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time`` and the columns of `by`. Repeated rows count once.
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
        Sorted: the columns of `by`, then

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
    compared with a quote that it made itself. Fills that met no order on a book are left out,
    because the exchange sets their price: conversions of outcome tokens (docs/live_service.md,
    section 7), settlements, dust conversions, fills between two vaults of one leader (``Net Child
    Vaults``), backstop liquidations and auto-deleveraging.

    If a group has both sides of a trade (the same ``tid``), the fill of the taker counts, because
    the gains of both sides cancel.

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
    keys = list_keys(by, _QUALITY)
    table = Table(fills, "fills")
    trades, codes, groups, _ = group_trades(table, keys).of_one_side()
    marks = reference_prices(table, prices, price, max_age)
    px, age = marks.before(trades.coin, trades.ms, span_ms(max_age, "max_age"))
    gain = trades.sign * (px - trades.px) * trades.sz
    rows = pd.DataFrame({"gain": gain, "base": px * trades.sz, "usd": trades.usd, "age": age})
    # Figures are those of the fills that have a price.
    found = rows[~np.isnan(gain)].groupby(codes[~np.isnan(gain)])
    sums = found.sum().reindex(groups.index)
    count, volume = len(groups), sum_groups(codes, np.nan_to_num(trades.usd), len(groups))
    priced = found.size().reindex(groups.index, fill_value=0)
    result = groups.assign(
        fills=np.bincount(codes, minlength=count),
        volume_usd=volume,
        priced=priced,
        covered=sums["usd"].fillna(0) / np.where(volume != 0, volume, np.nan),
        improvement_usd=sums["gain"],
        improvement_bps=sums["gain"] / sums["base"] * 1e4,
        age_seconds=sums["age"] / priced,
        oldest_seconds=found["age"].max(),
    )
    return finish(
        result, {"fills": table.frame, "prices": prices},
        helper="execution.fill_quality", by=keys, price_source=marks.source,
    )  # fmt: skip
