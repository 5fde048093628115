"""Quality of TWAP orders: their prices against the market's prices while they ran."""

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.errors import warn_caller
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import NO_TIME, Frame, Names, Table, utc_times
from toolkit.prepare.groups import group_columns, number_groups, starts_group, sum_groups
from toolkit.prepare.prices import PriceHistory, make_history
from toolkit.prepare.provenance import finish
from toolkit.prepare.roles import is_off_book, warn_missing_directions
from toolkit.prepare.trades import read_signs
from toolkit.times import SECOND


def quality(
    fills: Frame, tape: Frame, prices: Frame | None = None, *, max_age_secs: float = 300.0
) -> pd.DataFrame:
    """Compare the price of each TWAP order with the market's prices while it ran.

    Parameters
    ----------
    fills : DataFrame
        Fills of the orders; others are left out: ``coin, px, sz, side, time, twap_id``, and
        ``user`` if there are several accounts. Repeated rows count once, as do rows that share
        ``tid`` within an account and order.
    tape : DataFrame
        Fills of all accounts, or of as many as possible, in these coins and times: ``coin, px, sz,
        time``, and ``dir``, ``liquidation_method``, which mark fills without two orders on a book,
        such as conversions and settlements; these are left out. If both sides of a trade are in it,
        they share ``tid`` and count once. Rows without a price or size are left out.
    prices : DataFrame, optional
        Mids of the market for the arrival, as for `tk.execution.markout`. Without it they are the
        `tk.execution.quotes` of the tape; without its ``side`` and ``crossed`` they are missing.
    max_age_secs : float, default 300
        If the last mid before an order's first fill is older, there is no arrival price.

    Returns
    -------
    DataFrame
        One row for each order, sorted by user, coin and ``twap_id``. If a fill has no price
        or size, the columns that need it are missing.

        - ``user``: account of the order, if the fills have it.
        - ``coin``: coin of the order.
        - ``twap_id``: id of the order.
        - ``side``: ``B`` for a buy, ``A`` for a sell.
        - ``fills``: number of fills.
        - ``sz``: filled size.
        - ``px``: mean price of the fills, weighted by size, in USD.
        - ``first``: time of the first fill, UTC.
        - ``last``: time of the last fill, UTC.
        - ``vwap``: mean price of the tape from first to last fill, both inclusive, weighted by
          size, in USD.
        - ``twap``: last traded price from first to last fill, weighted by its duration, in USD;
          missing if the tape begins later.
        - ``arrival_px``: last mid before the first fill, in USD. The last trade would be a bid or
          an ask.
        - ``arrival_age_secs``: age of ``arrival_px`` at the first fill, in seconds.
        - ``share``: size of the order as a share of the tape's volume from first to last fill.
        - ``vs_vwap_bps``: advantage over ``vwap``, in basis points of it; positive is good for the
          account: bought lower, or sold higher.
        - ``vs_twap_bps``: advantage over ``twap``, in basis points of ``twap``.
        - ``vs_arrival_bps``: advantage over ``arrival_px``, in basis points of it.
        - ``vs_vwap_usd``: advantage over ``vwap``, in USD.
        - ``vs_twap_usd``: advantage over ``twap``, in USD.
        - ``vs_arrival_usd``: advantage over ``arrival_px``, in USD.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `prices` are those of trades.

    Notes
    -----
    Benchmarks: Berkowitz, Logue and Noser (1988) for the volume-weighted price; Perold (1988) for
    the arrival price. Trades of one millisecond count as one, at their mean price. The tape
    contains the order's own fills, so a large order moves its own benchmark: see ``share``.

    Examples
    --------
    >>> import pandas as pd
    >>> times = pd.to_datetime([0, 30_000, 60_000], unit="ms", utc=True)
    >>> tape = pd.DataFrame({"coin": "BTC", "px": [100.0, 102.0, 104.0], "sz": [1.0, 1.0, 2.0],
    ...                      "time": times, "side": "B", "crossed": True})
    >>> fills = tape.assign(twap_id=7).iloc[[0, 2]].assign(sz=1.0)
    >>> quality(fills, tape)[["px", "vwap", "twap", "share"]]
          px   vwap   twap  share
    0  102.0  102.5  101.0    0.5
    """
    slices, trades = Table(fills, "fills"), Table(tape, "tape", "fills")
    slices.require(("coin", "px", "sz", "side", "time", "twap_id"))
    trades.require(("coin", "px", "sz", "time"))
    warn_missing_directions(trades, outcomes_alone=True)
    twap_id, is_slice = slices.ids("twap_id")
    rows = np.flatnonzero(is_slice)
    keys = [*(["user"] if slices.has("user") else []), "coin"]
    by = group_columns(slices, keys, rows=rows).assign(twap_id=twap_id[rows])
    group, orders = number_groups(by, missing_last=True)
    once = ~_is_repeated(group, slices.ids("tid")[0][rows])
    rows, group = rows[once], group[once]
    sz, ms = slices.number("sz")[rows], slices.ms()[rows]
    # If a fill of an order has no price or size, the price of the order is not known.
    size, usd = (
        sum_groups(group, part, len(orders)) for part in (sz, slices.number("px")[rows] * sz)
    )
    first, last = np.full(len(orders), np.iinfo(np.int64).max), np.full(len(orders), NO_TIME)
    np.minimum.at(first, group, ms)
    np.maximum.at(last, group, ms)
    one = rows[np.unique(group, return_index=True)[1]]
    coin = slices.text("coin").take(one)
    vwap, twap, volume = _tape_benchmarks(trades, coin, first, last).T
    marks, age_ms = _arrival_prices(trades, prices, max_age_secs), round(max_age_secs * SECOND)
    arrival, age = marks.before(coin, first, age_ms)
    px, sign = usd / size, read_signs(slices.text("side"))[one]
    benchmarks = {"vwap": vwap, "twap": twap, "arrival": arrival}
    columns = {
        **orders,
        "side": slices.text("side").texts(one),
        "fills": np.bincount(group),
        "sz": size,
        "px": px,
        "first": utc_times(first),
        "last": utc_times(last),
        "vwap": vwap,
        "twap": twap,
        "arrival_px": arrival,
        "arrival_age_secs": age,
        "share": size / volume,
        **{f"vs_{name}_bps": sign * (each - px) / each * 1e4 for name, each in benchmarks.items()},
        **{f"vs_{name}_usd": sign * (each - px) * size for name, each in benchmarks.items()},
    }
    inputs = {"fills": slices.frame, "tape": trades.frame, "prices": prices}
    return finish(pd.DataFrame(columns), inputs, helper="twaps.quality")


def _is_repeated(group: Ints, tid: Ints) -> Flags:
    """Return which rows repeat a trade of their group; a trade id of 0 is no id."""
    pairs = pd.DataFrame({"group": group, "tid": tid})
    return np.asarray(pairs.duplicated().to_numpy() & (tid != 0))


def _arrival_prices(tape: Table, prices: Frame | None, max_age_secs: float) -> PriceHistory:
    """Return the mids: the stated ones, those of the tape, or none if it does not name takers."""
    has_takers = tape.has("side") and tape.has("crossed")
    if prices is not None or (has_takers and not tape.is_blank("crossed")):
        return reference_prices(tape, prices, None, max_age_secs)
    if has_takers:
        warn_caller(
            "tape: column crossed is missing in every row, so it shows no mid, and arrival prices "
            "are missing. Pass prices=, or fetch the tape again",
            UserWarning,
        )
    return make_history("mid_px", tape.text("coin"), tape.ms(), np.full(len(tape), np.nan))


def _tape_benchmarks(tape: Table, coins: Names, first: Ints, last: Ints) -> Floats:
    """Return the market's prices while orders ran: (orders, 3).

    These are the mean weighted by size, the mean weighted by duration, and the volume.
    """
    coin, ms, px, sz = tape.text("coin"), tape.ms(), tape.number("px"), tape.number("sz")
    used = ~_is_repeated(coin.codes, tape.ids("tid")[0]) & (sz > 0) & ~np.isnan(px)
    rows = np.flatnonzero(used & ~is_off_book(tape) & (ms != NO_TIME))
    rows = rows[np.lexsort((ms[rows], coin.codes[rows]))]
    # Trades of one millisecond count as one.
    starts = np.flatnonzero(starts_group(coin.codes[rows], ms[rows]))
    all_sizes, all_ntl = (np.add.reduceat(part[rows], starts) for part in (sz, px * sz))
    codes, times = coin.codes[rows][starts], ms[rows][starts]
    wanted, found = coins.among(coin), np.full((len(first), 3), np.nan)
    for code in np.unique(wanted):
        begin, end = np.searchsorted(codes, (code, code + 1))
        if begin == end:
            continue
        time, size, ntl = (each[begin:end] for each in (times, all_sizes, all_ntl))
        price, own = ntl / size, wanted == code
        sizes, notionals, area = (  # the last one is price times milliseconds
            np.append(0.0, np.cumsum(part)) for part in (size, ntl, price[:-1] * np.diff(time))
        )
        # The price that stands at the first and at the last fill.
        moments = np.stack([first[own], last[own]])
        places = np.searchsorted(time, moments, "right") - 1
        at = np.where(places >= 0, area[places] + price[places] * (moments - time[places]), np.nan)
        left, right = np.searchsorted(time, moments[0], "left"), places[1] + 1
        volume = np.where(right > left, sizes[right] - sizes[left], np.nan)
        lasts = moments[1] - moments[0]
        alone = np.where(places[0] >= 0, price[places[0]], np.nan)
        twap = np.divide(at[1] - at[0], lasts, out=alone, where=lasts > 0)
        found[own] = np.column_stack([(notionals[right] - notionals[left]) / volume, twap, volume])
    return found
