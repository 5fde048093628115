"""Snapshots of TWAP orders: schedules, outstanding volume, and the fills behind the orders.

The frames come from `tk.perp_twap_snapshots`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.prepare import groups
from toolkit.prepare.door import NO_TIME, Frame, Names, Table
from toolkit.prepare.provenance import account_names, finish, present_ms
from toolkit.rules.twaps import SLICE_MS
from toolkit.times import HOUR, SECOND, Time

ORDER = ("market", "address", "twap_id")
_SCHEDULE = ("duration_secs", "start_time_ms", "waiting")


def adherence(twaps: Frame, *, at: Time | None = None) -> pd.DataFrame:
    """Compute the progress of each TWAP order, and how far it is behind its schedule.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot. Repeated rows count once.
    at : time, optional
        Time of the snapshot. By default, the column ``asked_at``. If it is missing, the time
        at which the frame was fetched. If the next slice of an order (``next_slice_time``) was due
        before, the snapshot is older: its time is that of the next slice.

    Returns
    -------
    DataFrame
        Sorted by market, address and order:

        - ``market``: market of the order.
        - ``address``: account of the order.
        - ``twap_id``: id of the order.
        - ``is_buy``: whether the order buys.
        - ``total_sz``: total size of the order.
        - ``executed_sz``: executed size.
        - ``remaining_sz``: remaining size.
        - ``elapsed``: share of the duration that has passed, 0 to 1; missing while the order waits
          for its trigger, as are the columns that follow from it.
        - ``progress``: share of the size that is executed, ``executed_sz / total_sz``.
        - ``behind``: share of the size that the order is behind its schedule, ``elapsed -
          progress``; negative if it is ahead.
        - ``behind_sz``: size by which the order is behind its schedule.
        - ``left_secs``: seconds until the end of the order.
        - ``slices_due``: number of slices in the schedule until now, one every 30 seconds.
        - ``slice_number``: number of executed slices.
        - ``avg_px``: mean price, ``executed_ntl / executed_sz``, in USD; missing if nothing is
          executed.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the time of the snapshot is not known.

    Notes
    -----
    A TWAP order spreads its size evenly over its duration (specification, "TWAP snapshot"). The
    start of an order that waited for its trigger is the time of its registration, so the order
    looks behind. If such an order still runs after its duration, it started later: its time is that
    of its slices, one every 30 seconds.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": ["BTC"], "address": ["0xa"], "twap_id": [1], "is_buy": [True],
    ...     "total_sz": [10.0], "executed_sz": [4.0], "remaining_sz": [6.0],
    ...     "executed_ntl": [400.0], "duration_secs": [600], "slice_number": [9],
    ...     "start_time_ms": pd.to_datetime([0], unit="ms", utc=True), "waiting": [False]})
    >>> adherence(snapshot, at=300_000)[["elapsed", "progress", "behind_sz", "avg_px"]]
       elapsed  progress  behind_sz  avg_px
    0      0.5       0.4        1.0   100.0
    """
    table = Table(twaps, "twaps")
    sizes = ("total_sz", "executed_sz", "remaining_sz")
    table.require((*ORDER, "is_buy", *sizes, "executed_ntl", "slice_number", *_SCHEDULE))
    passed, lasts = _read_schedule(table, _snapshot_ms(table, at))
    passed[table.flag("waiting")[0]] = np.nan
    total, executed = table.number("total_sz"), table.number("executed_sz")
    elapsed, progress = groups.ratio(passed, lasts), groups.ratio(executed, total)
    result = table.columns((*ORDER, "is_buy", *sizes), (), sizes).assign(
        elapsed=elapsed,
        progress=progress,
        behind=elapsed - progress,
        behind_sz=(elapsed - progress) * total,
        left_secs=(lasts - passed) / SECOND,
        slices_due=np.floor(passed / SLICE_MS),
        slice_number=table.number("slice_number"),
        avg_px=groups.ratio(table.number("executed_ntl"), executed),
    )
    result = result.sort_values(list(ORDER), kind="stable")
    return finish(result, {"twaps": table.frame}, helper="twaps.adherence")


def pressure(
    twaps: Frame,
    prices: Frame | None = None,
    by: str | Iterable[str] | None = ("market",),
    *,
    at: Time | None = None,
) -> pd.DataFrame:
    """Sum the volume that running TWAP orders still have to buy and sell.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot, as for `adherence`. Repeated rows count once.
    prices : DataFrame, optional
        ``name`` (the market) and ``mark_px``, from `tk.meta_and_asset_ctxs`. Without it, sums in
        USD are missing.
    by : str, list of str or None, default ("market",)
        One row for each group: ``market``, ``address``, ``dex``, or any other column.
    at : time, optional
        As for `adherence`.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``orders``: number of running orders.
        - ``waiting``: number of registered orders that are not triggered yet. They are in no
          sum.
        - ``buy_sz``: size still to buy, at least 0. Sizes of different markets cannot be compared:
          without ``market`` among the groups, use the columns in USD.
        - ``sell_sz``: size still to sell, at least 0.
        - ``net_sz``: ``buy_sz - sell_sz``.
        - ``buy_usd``: size still to buy at the mark price, in USD; missing if no running order has
          a price.
        - ``sell_usd``: size still to sell at the mark price, in USD; missing if no running order
          has a price.
        - ``net_usd``: ``buy_usd - sell_usd``, in USD.
        - ``net_usd_per_hour``: net volume an hour that the schedules imply, in USD: the rest of
          each order over its remaining time, at least one slice of 30 seconds. Missing if an order
          still runs after its duration, and its ``slice_number`` is not known.
        - ``unpriced``: number of running orders without a price. They are in no sum of USD.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the time of the snapshot is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": "BTC", "address": ["0xa", "0xb"], "twap_id": [1, 2],
    ...     "is_buy": [True, False], "remaining_sz": [6.0, 2.0], "duration_secs": [3600, 3600],
    ...     "start_time_ms": pd.to_datetime([0, 0], unit="ms", utc=True), "waiting": False})
    >>> marks = pd.DataFrame({"name": ["BTC"], "mark_px": [100.0]})
    >>> pressure(snapshot, marks, at=1_800_000)[["market", "net_sz", "net_usd",
    ...                                           "net_usd_per_hour"]]
      market  net_sz  net_usd  net_usd_per_hour
    0    BTC     4.0    400.0             800.0
    """
    taken = ("orders", "waiting", "buy_sz", "sell_sz", "net_sz", "unpriced", "remaining_sz")
    keys = groups.list_keys(by, taken)
    table = Table(twaps, "twaps")
    table.require(("market", "is_buy", "remaining_sz", *_SCHEDULE))
    passed, lasts = _read_schedule(table, _snapshot_ms(table, at))
    # The dex is that of the market.
    frame = table.frame.drop(columns="dex", errors="ignore")
    named = Table(frame.assign(coin=frame["market"]), "twaps", "none")
    group, found_groups = groups.group_rows(named, keys)
    number = len(found_groups)
    runs, px = ~table.flag("waiting")[0], np.full(len(table), np.nan)
    if prices is not None:
        marks = Table(prices, "prices")
        marks.require(("name", "mark_px"))
        # A market that is listed twice has one price.
        known = pd.Series(marks.number("mark_px")).groupby(marks.text("name").texts()).max()
        px = table.text("market").facts(lambda name: known.get(name, np.nan))
    is_priced = runs & ~np.isnan(px)
    # An order may have executed a little more than its size.
    rest = np.where(runs, np.maximum(table.number("remaining_sz"), 0.0), 0.0)
    is_buy = table.flag("is_buy")[0]
    buy, sell = np.where(is_buy, rest, 0.0), np.where(is_buy, 0.0, rest)
    hours = np.maximum(lasts - passed, SLICE_MS) / HOUR
    sizes = {"buy_sz": buy, "sell_sz": sell, "net_sz": buy - sell}
    usd = {name.replace("_sz", "_usd"): size * px for name, size in sizes.items()}
    usd["net_usd_per_hour"] = usd["net_usd"] / hours
    counts = {"orders": runs, "waiting": ~runs, "unpriced": runs & ~is_priced}
    found: dict[str, Any] = {
        name: np.bincount(group[kept], minlength=number) for name, kept in counts.items()
    }
    found |= {name: groups.sum_groups(group, size, number) for name, size in sizes.items()}
    has_price = np.bincount(group[is_priced], minlength=number) > 0
    for name, values in usd.items():
        sums = groups.sum_groups(group, np.where(is_priced, values, 0.0), number)
        found[name] = np.where(has_price, sums, np.nan)
    found["unpriced"] = found.pop("unpriced")
    inputs = {"twaps": table.frame, "prices": prices}
    result = pd.DataFrame({**found_groups, **found}, index=range(number))
    return finish(result, inputs, helper="twaps.pressure", by=keys)


def linked(
    twaps: Frame, fills: Frame, *, at: Time | None = None, account: str | None = None
) -> pd.DataFrame:
    """Find the fills of each TWAP order, and the executed size for which no fill is found.

    Parameters
    ----------
    twaps : DataFrame
        Rows of one snapshot, as for `adherence`.
    fills : DataFrame
        Fills of its accounts: ``coin, px, sz, time, twap_id`` and ``user``. Repeated rows count
        once.
    at : time, optional
        As for `adherence`. Later fills do not count.
    account : str, optional
        Account of the fills, if they have no ``user``. Without it, the account that they were
        fetched for.

    Returns
    -------
    DataFrame
        Sorted by market, address and order:

        - ``market``: market of the order.
        - ``address``: account of the order.
        - ``twap_id``: id of the order.
        - ``executed_sz``: executed size.
        - ``executed_ntl``: executed notional, in USD.
        - ``fills``: number of fills of the order.
        - ``filled_sz``: size of the fills in the frame.
        - ``filled_ntl``: notional of the fills in the frame, in USD.
        - ``missing_sz``: executed size without a fill: 0, up to the precision of floats, if every
          fill is in the frame.
        - ``missing_ntl``: executed notional without a fill, in USD.
        - ``whole``: whether every fill is in the frame, to a relative precision of 1e-9.

    Raises
    ------
    MissingColumns
        If a column is missing, also if the account of the fills is not known.
    ValueError
        If the time of the snapshot is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({
    ...     "market": ["BTC"], "address": ["0xa"], "twap_id": [1], "executed_sz": [3.0],
    ...     "executed_ntl": [301.0], "duration_secs": [600],
    ...     "start_time_ms": pd.to_datetime([0], unit="ms", utc=True), "waiting": [False]})
    >>> fills = pd.DataFrame({
    ...     "user": "0xA", "coin": "BTC", "twap_id": 1, "px": [100.0, 101.0], "sz": [2.0, 1.0],
    ...     "time": pd.to_datetime([30_000, 60_000], unit="ms", utc=True)})
    >>> linked(snapshot, fills, at=60_000)[["fills", "filled_ntl", "missing_sz", "whole"]]
       fills  filled_ntl  missing_sz  whole
    0      2       301.0         0.0   True
    """
    table, trades = Table(twaps, "twaps"), Table(fills, "fills")
    sums = ("executed_sz", "executed_ntl")
    table.require((*ORDER, *sums, *_SCHEDULE))
    trades.require(("coin", "px", "sz", "time", "twap_id"))
    names = account_names(fills, account)
    if not trades.has("user") and len(names) != 1:
        trades.require(["user"], "Add it, or pass account=")
    twap_id, is_slice = trades.ids("twap_id")
    market, address = (table.text(name).sorted() for name in ORDER[:2])
    nobody = Names(np.zeros(len(trades), dtype=np.int64), names[:1])
    owner = trades.text("user") if trades.has("user") else nobody
    own = (trades.text("coin").among(market), owner.among(address), twap_id)
    orders = (market.codes, address.codes, table.ids("twap_id")[0])
    number, count = groups.number_rows(*map(np.append, orders, own)), len(table)
    number, of_slice = number[:count], number[count:]
    until = np.full(len(number) + len(of_slice), NO_TIME)
    np.maximum.at(until, number, _snapshot_ms(table, at))
    # Fills of other orders are in groups without an order, which end before all times.
    kept = is_slice & (trades.ms() <= until[of_slice])
    sz, px = trades.number("sz"), trades.number("px")
    executed_sz, executed_ntl = (table.number(name) for name in sums)
    n, filled_sz, filled_ntl = (
        groups.sum_groups(of_slice[kept], part[kept], len(until))[number]
        for part in (np.ones(len(trades)), sz, px * sz)
    )
    missing = executed_sz - filled_sz
    result = table.columns((*ORDER, *sums), (), sums).assign(
        fills=n.astype(np.int64),
        filled_sz=filled_sz,
        filled_ntl=filled_ntl,
        missing_sz=missing,
        missing_ntl=executed_ntl - filled_ntl,
        whole=np.abs(missing) <= 1e-9 * executed_sz,
    )
    inputs = {"twaps": table.frame, "fills": trades.frame}
    return finish(result.sort_values(list(ORDER), kind="stable"), inputs, helper="twaps.linked")


def _snapshot_ms(table: Table, at: Time | None) -> Ints:
    """Return the time of each order's snapshot, in milliseconds."""
    if at is None and table.has("asked_at"):
        asked = table.ms("asked_at")
    else:
        asked = np.full(len(table), present_ms(table.frame, at, "twaps"))
    if at is not None or not table.has("next_slice_time"):
        return asked
    # The frame may be older than its fetch: no order of a snapshot is behind its next slice.
    next_ms = table.ms("next_slice_time")
    return np.where(next_ms == NO_TIME, asked, np.minimum(asked, next_ms))


def _read_schedule(table: Table, at: Ints) -> tuple[Floats, Floats]:
    """Return how long orders run already and how long they run in all, in milliseconds.

    An order that still runs after its duration waited for its trigger and started later: its time
    is that of its slices, and missing if their number is not known.
    """
    lasts = table.number("duration_secs") * SECOND
    passed = np.maximum(at - table.ms("start_time_ms"), 0).astype(np.float64)
    by_slices = table.number("slice_number", default=np.nan) * SLICE_MS
    return np.where(passed > lasts, np.minimum(by_slices, lasts), passed), lasts
