"""Quality of TWAP orders: their prices against the market's prices while they ran."""

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.errors import warn_caller
from toolkit.execution._quotes import reference_prices
from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.prepare.groups import group_columns, number_groups, sum_groups
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
    found = np.full((len(orders), 3), np.nan)
    tapes = _read_tapes(trades)
    for coin, places in orders.groupby("coin").indices.items():
        if coin in tapes:
            found[places] = _order_benchmarks(*tapes[coin], first[places], last[places])
    vwap, twap, volume = found.T
    one = rows[np.unique(group, return_index=True)[1]]
    arrival, age = _arrival_prices(trades, prices, max_age_secs).before(
        slices.text("coin").take(one), first, round(max_age_secs * SECOND)
    )
    px, sign = usd / size, read_signs(slices.text("side"))[one]
    marks = {"vwap": vwap, "twap": twap, "arrival": arrival}
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
        **{f"vs_{name}_bps": sign * (mark - px) / mark * 1e4 for name, mark in marks.items()},
        **{f"vs_{name}_usd": sign * (mark - px) * size for name, mark in marks.items()},
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


def _read_tapes(tape: Table) -> dict[str, tuple[Ints, Floats, Floats]]:
    """Return times, sizes and notionals of each coin's trades, one for each millisecond."""
    coin, ms, px, sz = tape.text("coin"), tape.ms(), tape.number("px"), tape.number("sz")
    used = ~_is_repeated(coin.codes, tape.ids("tid")[0]) & (sz > 0) & ~np.isnan(px)
    used &= ~is_off_book(tape)
    rows = np.flatnonzero(used & (ms != NO_TIME))
    rows = rows[np.lexsort((ms[rows], coin.codes[rows]))]
    code, ms, sz, ntl = coin.codes[rows], ms[rows], sz[rows], (px * sz)[rows]
    first = np.flatnonzero((np.diff(code, prepend=-1) != 0) | (np.diff(ms, prepend=0) != 0))
    if not len(first):
        return {}
    code, ms = code[first], ms[first]
    sz, ntl = np.add.reduceat(sz, first), np.add.reduceat(ntl, first)
    edges = np.searchsorted(code, np.arange(len(coin.values) + 1))
    return {
        name: (ms[begin:end], sz[begin:end], ntl[begin:end])
        for name, begin, end in zip(coin.values, edges[:-1], edges[1:], strict=True)
        if begin < end
    }


def _order_benchmarks(time: Ints, sz: Floats, ntl: Floats, first: Ints, last: Ints) -> Floats:
    """Return the market's prices while orders ran: (orders, 3).

    These are the mean weighted by size, the mean weighted by duration, and the volume.
    """
    px = ntl / sz
    sizes, notionals = (np.concatenate([[0.0], np.cumsum(part)]) for part in (sz, ntl))
    area = np.concatenate([[0.0], np.cumsum(px[:-1] * np.diff(time))])  # price times milliseconds
    # The price that stands at the first and at the last fill.
    places = [np.searchsorted(time, ms, "right") - 1 for ms in (first, last)]
    since, until = (
        np.where(place >= 0, area[place] + px[place] * (ms - time[place]), np.nan)
        for place, ms in zip(places, (first, last), strict=True)
    )
    begin, end = np.searchsorted(time, first, "left"), places[1] + 1
    volume = np.where(end > begin, sizes[end] - sizes[begin], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (until - since) / (last - first)
    alone = np.where(places[0] >= 0, px[places[0]], np.nan)
    vwap = (notionals[end] - notionals[begin]) / volume
    return np.column_stack([vwap, np.where(last > first, mean, alone), volume])
