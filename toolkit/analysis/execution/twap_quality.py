"""Quality of TWAP orders: their prices against the market's prices while they ran."""

from typing import NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import fill_kinds, frame_access, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.execution.quotes import side_signs
from toolkit.arrays import Floats
from toolkit.times import SECOND

BENCHMARKS = ("vwap", "twap", "arrival")


def quality(fills: IntoFrame, tape: IntoFrame, *, max_age_secs: float = 300.0) -> pd.DataFrame:
    """Compare the price of each TWAP order with the market's prices while it ran.

    Parameters
    ----------
    fills : DataFrame
        Fills of the orders; others are left out: ``coin, px, sz, side, time, twap_id``, and
        ``user`` if there are several accounts (any engine). Repeated rows count once, as do rows
        that share ``tid`` within an account and order.
    tape : DataFrame
        Fills of all accounts, or of as many as possible, in these coins and times: ``coin, px, sz,
        time``, and ``dir``, which marks conversions and settlements; these are left out. If both
        sides of a trade are in it, they share ``tid`` and count once. Rows without a price or size
        are left out.
    max_age_secs : float, default 300
        If the last trade before an order's first fill is older, there is no arrival price.

    Returns
    -------
    DataFrame
        pandas, one row for each order, sorted by user, coin and ``twap_id``. If a fill has no price
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
        - ``arrival_px``: last price before the first fill, in USD.
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
    ...                      "time": times})
    >>> fills = tape.assign(side="B", twap_id=7).iloc[[0, 2]].assign(sz=1.0)
    >>> quality(fills, tape)[["px", "vwap", "twap", "share"]]
          px   vwap   twap  share
    0  102.0  102.5  101.0    0.5
    """
    fills = drop_repeated_rows(fills, "fills")
    tape = drop_repeated_rows(tape, "fills", "tape")
    orders = _read_orders(fills)
    market = _read_tapes(tape)
    found = pd.DataFrame(
        np.nan, index=orders.index, columns=["vwap", "twap", "arrival_px", "arrival_age", "volume"]
    )
    for coin, rows in orders.groupby("coin"):
        if coin in market:
            found.loc[rows.index] = _order_benchmarks(market[str(coin)], rows)
    stale = found["arrival_age"] > max_age_secs
    found.loc[stale, ["arrival_px", "arrival_age"]] = np.nan
    result = _compare_orders(orders, found)
    facts = {**result_provenance({"fills": fills, "tape": tape}), "helper": "twaps.quality"}
    result.attrs["toolkit"] = facts
    return result


class _CoinTape(NamedTuple):
    """The trades of one coin, one for each millisecond, with running sums."""

    time: Floats
    px: Floats
    sz: Floats  # one longer: sums before each trade, and the total
    ntl: Floats
    area: Floats  # price times milliseconds, up to each trade


def _read_orders(fills: IntoFrame) -> pd.DataFrame:
    needed = ("coin", "px", "sz", "side", "time", "twap_id")
    rows = frame_access.pandas_columns(fills, "fills", needed, ["user", "tid"], ["px", "sz"])
    if "user" in rows:
        rows["user"] = rows["user"].astype("str")
    rows = rows[~rows["twap_id"].isna()]
    rows = rows.assign(
        twap_id=rows["twap_id"].astype("int64"), time=timestamps.ms_from_times(rows["time"])
    )
    keys = [*(["user"] if "user" in rows else []), "coin", "twap_id"]
    if "tid" in rows:
        rows = _drop_repeated_trades(rows, [*keys, "tid"])
    rows["ntl"] = rows["px"] * rows["sz"]
    grouped = rows.groupby(keys, sort=True, dropna=False)
    orders = grouped.agg(
        side=("side", "first"),
        fills=("sz", "size"),
        sz=("sz", "sum"),
        ntl=("ntl", "sum"),
        first=("time", "min"),
        last=("time", "max"),
        _sized=("sz", "count"),
        _priced=("ntl", "count"),
    ).reset_index()
    # If a fill of an order has no price or size, the price of the order is not known.
    orders["sz"] = orders["sz"].where(orders["_sized"] == orders["fills"])
    orders["ntl"] = orders["ntl"].where(orders["_priced"] == orders["fills"])
    return orders.astype({"fills": "int64"})


def _drop_repeated_trades(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the rows without those that repeat a trade; a trade id of 0 is no id."""
    trade = ~(rows["tid"].isna() | (rows["tid"] == 0))
    return rows[~(trade & rows.duplicated(keys))].copy()


def _read_tapes(tape: IntoFrame) -> dict[str, _CoinTape]:
    needed, optional = ("coin", "px", "sz", "time"), ("tid", "dir")
    rows = frame_access.pandas_columns(tape, "tape", needed, optional, ("px", "sz"))
    frame = nw.from_native(rows, eager_only=True)
    fill_kinds.warn_missing_directions(frame, "tape", outcomes_alone=True)
    rows = frame.filter(fill_kinds.is_market_trade(frame.columns)).to_native()
    if "tid" in rows:
        rows = _drop_repeated_trades(rows, ["coin", "tid"])
    rows = rows[(rows["sz"] > 0) & rows["px"].notna()]
    rows = rows.assign(time=timestamps.ms_from_times(rows["time"]), ntl=rows["px"] * rows["sz"])
    sums = rows.groupby(["coin", "time"], sort=True)[["sz", "ntl"]].sum().reset_index()
    return {str(coin): _running_sums(trades) for coin, trades in sums.groupby("coin")}


def _running_sums(trades: pd.DataFrame) -> _CoinTape:
    time, sz, ntl = (trades[name].to_numpy(dtype="float64") for name in ("time", "sz", "ntl"))
    px = ntl / sz
    area = np.concatenate([[0.0], np.cumsum(px[:-1] * np.diff(time))])
    sizes, notionals = (np.concatenate([[0.0], np.cumsum(part)]) for part in (sz, ntl))
    return _CoinTape(time, px, sizes, notionals, area)


def _order_benchmarks(tape: _CoinTape, orders: pd.DataFrame) -> Floats:
    first, last = (orders[name].to_numpy(dtype="float64") for name in ("first", "last"))
    begin = np.searchsorted(tape.time, first, "left")
    end = np.searchsorted(tape.time, last, "right")
    volume = tape.sz[end] - tape.sz[begin]
    with np.errstate(invalid="ignore"):
        vwap = np.where(end > begin, (tape.ntl[end] - tape.ntl[begin]) / volume, np.nan)
        mean = (_area_until(tape, last) - _area_until(tape, first)) / (last - first)
    place = np.searchsorted(tape.time, first, "right") - 1
    last_price = np.where(place >= 0, tape.px[np.maximum(place, 0)], np.nan)
    twap = np.where(last > first, mean, last_price)
    before = np.maximum(begin - 1, 0)
    known = begin > 0
    arrival = np.where(known, tape.px[before], np.nan)
    age = np.where(known, (first - tape.time[before]) / SECOND, np.nan)
    return np.column_stack([vwap, twap, arrival, age, np.where(end > begin, volume, np.nan)])


def _area_until(tape: _CoinTape, time: Floats) -> Floats:
    place = np.searchsorted(tape.time, time, "right") - 1
    at = np.maximum(place, 0)
    area = tape.area[at] + tape.px[at] * (time - tape.time[at])
    return np.where(place >= 0, area, np.nan)


def _compare_orders(orders: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    px = orders["ntl"] / orders["sz"]
    keys = [name for name in ("user", "coin", "twap_id", "side", "fills", "sz") if name in orders]
    result = orders[keys].assign(
        px=px,
        first=timestamps.timestamps_from_ms(orders["first"]),
        last=timestamps.timestamps_from_ms(orders["last"]),
        vwap=found["vwap"],
        twap=found["twap"],
        arrival_px=found["arrival_px"],
        arrival_age_secs=found["arrival_age"],
        share=orders["sz"] / found["volume"],
    )
    sign = side_signs(orders["side"])
    marks = {name: result["arrival_px" if name == "arrival" else name] for name in BENCHMARKS}
    bps = {f"vs_{name}_bps": sign * (mark - px) / mark * 1e4 for name, mark in marks.items()}
    usd = {f"vs_{name}_usd": sign * (mark - px) * orders["sz"] for name, mark in marks.items()}
    return result.assign(**bps, **usd)
