"""Status events of orders: transitions, outcomes, filled sizes, and delays of trigger orders."""

from collections.abc import Iterable
from statistics import NormalDist

import numpy as np
import pandas as pd

from toolkit.contract.order_states import order_state_group
from toolkit.prepare.door import NO_TIME, Frame, Names
from toolkit.prepare.groups import group_rows, list_keys, ratio, sum_groups
from toolkit.prepare.orders import read_events
from toolkit.prepare.provenance import finish
from toolkit.statistics import check_level, rank_quantiles, scipy_part, wilson_interval
from toolkit.times import SECOND

PLACED = "(placed)"
LAST = "(last)"
_TIME = "status_timestamp"
OUTCOMES = ("filled", "canceled", "rejected", "active", "unknown")


def transitions(orders: Frame, by: str | Iterable[str] | None = None) -> pd.DataFrame:
    """Count the status changes of orders, as a transition matrix in long form.

    Parameters
    ----------
    orders : DataFrame
        Status events: ``oid, status, status_timestamp``, and ``tx_index`` for ties, from
        `tk.historical_orders` or `tk.builder_orders_by_time`, in any order. Repeated events count
        once.
    by : str or list of str, optional
        One matrix for each group: ``coin``, ``dex``, ``order_type``, ``tif``, ``user``, ... or the
        ``hour``, ``day``, ``week`` (UTC) of the earlier event.

    Returns
    -------
    DataFrame
        Sorted: the columns of `by`, then

        - ``before``: the earlier status, or ``(placed)`` in front of the first event.
        - ``after``: the later status, or ``(last)`` behind the last event.
        - ``orders``: number of orders with this transition. As many orders enter a status as
          leave it, ``(last)`` included.
        - ``share``: share of the orders in `before`.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Notes
    -----
    `tk.historical_orders` returns the latest events only. If the earlier events of an order are not
    among them, the order starts with its first event in the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 1, 2], "status": ["open", "filled", "open"],
    ...     "status_timestamp": pd.to_datetime([0, 9, 5], unit="ms", utc=True)})
    >>> transitions(orders)
         before   after  orders  share
    0  (placed)    open       2    1.0
    1    filled  (last)       1    1.0
    2      open  (last)       1    0.5
    3      open  filled       1    0.5
    """
    keys = list_keys(by, ("oid", "status", "status_timestamp", "before", "after"))
    events = read_events(orders)
    group, groups = group_rows(events.table, keys, events.rows, _TIME)
    words = Names(np.arange(len(events.status.values) + 2), [*events.status.values, PLACED, LAST])
    place, words = words.sorted().codes, words.sorted()
    status, first = place[events.status.codes], events.is_first()
    after = np.append(status[1:], 0)
    after[events.is_last()] = place[-1]
    # One number for each way: group, earlier and later status.
    count = len(place)
    left = (group * count + status) * count + after
    entered = (group[first] * count + place[-2]) * count + status[first]
    ways, orders_ = np.unique(np.concatenate([entered, left]), return_counts=True)
    whole = np.unique(ways // count, return_inverse=True)[1]
    columns = {
        **groups.iloc[ways // count**2].reset_index(drop=True),
        "before": Names(ways // count % count, words.values).texts().array,
        "after": Names(ways % count, words.values).texts().array,
        "orders": orders_,
        "share": orders_ / np.bincount(whole, orders_)[whole],
    }
    inputs = {"orders": events.table.frame}
    return finish(pd.DataFrame(columns), inputs, helper="orders.transitions", by=keys)


def mix(
    orders: Frame, by: str | Iterable[str] | None = None, *, level: float = 0.95
) -> pd.DataFrame:
    """Count how orders ended, by status: filled, and each kind of cancellation and rejection.

    Parameters
    ----------
    orders : DataFrame
        As for `transitions`. Repeated events count once.
    by : str or list of str, optional
        Groups, as for `transitions`; times are those of the last event.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    DataFrame
        Sorted: the columns of `by`, then

        - ``group``: filled, canceled, rejected, active (not ended) or unknown, a status that is not
          in the specification.
        - ``status``: last status of the orders.
        - ``orders``: number of orders with this last status.
        - ``n``: number of all orders of the group of `by`.
        - ``share``: ``orders / n``.
        - ``low``: lower end of Wilson's interval (1927) of the share, which assumes independent
          orders.
        - ``high``: upper end of Wilson's interval (1927) of the share.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 1, 2], "status": ["open", "filled", "oracleRejected"],
    ...     "status_timestamp": pd.to_datetime([0, 9, 5], unit="ms", utc=True)})
    >>> mix(orders)[["group", "status", "orders", "n", "share"]]
          group          status  orders  n  share
    0    filled          filled       1  2    0.5
    1  rejected  oracleRejected       1  2    0.5
    """
    z = NormalDist().inv_cdf((1 + check_level(level)) / 2)
    keys = list_keys(by, ("oid", "status", "status_timestamp", "group"))
    events = read_events(orders)
    last = events.take(events.is_last())
    group, groups = group_rows(last.table, keys, last.rows, _TIME)
    outcomes = last.status.renamed(lambda status: f"{order_state_group(status)} {status}").sorted()
    count = len(outcomes.values)
    found, orders_ = np.unique(group * count + outcomes.codes, return_counts=True)
    n = np.bincount(group)[found // count] if len(found) else orders_
    low, high = wilson_interval(orders_ / n, n, z)
    texts = [outcomes.values[code].split(" ", 1) for code in (found % count).tolist()]
    columns = {
        **groups.iloc[found // count].reset_index(drop=True),
        "group": pd.array([name for name, _ in texts], dtype="str"),
        "status": pd.array([status for _, status in texts], dtype="str"),
        "orders": orders_,
        "n": n,
        "share": orders_ / n,
        "low": low,
        "high": high,
    }
    inputs = {"orders": events.table.frame}
    return finish(pd.DataFrame(columns), inputs, helper="orders.mix", by=keys, level=level)


def fill_ratio(orders: Frame, by: str | Iterable[str] | None = None) -> pd.DataFrame:
    """Compute the filled share of the ordered size.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``sz, orig_sz, limit_px``. Repeated events count
        once.
    by : str or list of str, optional
        Groups, as for `transitions`; times are those of the last event.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``orders``: number of orders.
        - ``filled``: number of orders that are filled, by their last status.
        - ``canceled``: number of orders that are canceled.
        - ``rejected``: number of orders that are rejected.
        - ``active``: number of orders that have not ended.
        - ``unknown``: number of orders with a status that is not in the specification.
        - ``partly``: number of orders that are filled in part.
        - ``asked_usd``: original size at the limit price, in USD, of all orders that were not
          rejected.
        - ``filled_usd``: filled size at the limit price, in USD, of all orders that were not
          rejected.
        - ``ratio``: ``filled_usd / asked_usd``; missing if ``asked_usd`` is 0.
        - ``unsized``: number of orders without an original size (to close a whole position), limit
          price or open size. They are in no sum.

    Raises
    ------
    MissingColumns
        If a column is missing, also if every value of it is missing, or holds text.

    Notes
    -----
    The filled size is the original size less the open size at the last event. An order that is
    still open may have been filled since. `asked_usd` is at the limit price; a fill can be at a
    better price.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 2], "status": ["filled", "canceled"], "limit_px": 10.0,
    ...     "sz": [0.0, 6.0], "orig_sz": [5.0, 10.0],
    ...     "status_timestamp": pd.to_datetime([0, 9], unit="ms", utc=True)})
    >>> fill_ratio(orders)[["orders", "partly", "asked_usd", "filled_usd", "ratio"]]
       orders  partly  asked_usd  filled_usd  ratio
    0       2       1      150.0        90.0    0.6
    """
    keys = list_keys(by, ("oid", "status", "status_timestamp", "sz", "orig_sz", "limit_px"))
    events = read_events(orders)
    events.table.require_some("sz", "says what is still open")
    events.table.require_some("orig_sz", "says what was asked for")
    events.table.require_some("limit_px", "says at which price")
    last = events.take(events.is_last())
    group, groups = group_rows(last.table, keys, last.rows, _TIME)
    is_state = {name: last.groups().facts(name.__eq__) for name in OUTCOMES}
    table, rows = last.table, last.rows
    original, px = np.nan_to_num(table.number("orig_sz")[rows]), table.number("limit_px")[rows]
    filled = original - table.number("sz")[rows]
    filled[is_state["filled"]] = original[is_state["filled"]]
    filled[is_state["rejected"]] = 0.0
    is_unsized = (original == 0) | np.isnan(px) | np.isnan(filled)
    price = np.where(is_state["rejected"] | is_unsized, np.nan, px)
    number = len(groups)
    asked, got = (
        sum_groups(group, np.nan_to_num(size * price), number) for size in (original, filled)
    )
    counts = {name: np.bincount(group[kept], minlength=number) for name, kept in is_state.items()}
    columns = {
        **groups,
        "orders": np.bincount(group, minlength=number),
        **counts,
        "partly": np.bincount(group[(filled > 0) & (filled < original)], minlength=number),
        "asked_usd": asked,
        "filled_usd": got,
        "ratio": ratio(got, asked),
        "unsized": np.bincount(group[is_unsized], minlength=number),
    }
    result = pd.DataFrame(columns, index=groups.index)
    return finish(result, {"orders": table.frame}, helper="orders.fill_ratio", by=keys)


def trigger_delay(
    orders: Frame, by: str | Iterable[str] | None = ("order_type",), *, level: float = 0.95
) -> pd.DataFrame:
    """Compute how long trigger orders wait for their trigger, and then for their fill.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``timestamp`` and ``is_trigger``. Repeated
        events count once.
    by : str, list of str or None, default ("order_type",)
        Groups: any columns of the orders, as for `transitions`.
    level : float, default 0.95
        Level of the interval.

    Returns
    -------
    DataFrame
        Sorted by the groups: the columns of `by`, then

        - ``orders``: number of trigger orders.
        - ``triggered``: number of orders that were triggered.
        - ``filled``: number of triggered orders that were filled.
        - ``wait_q50_secs``: median time from placing to trigger, in seconds, of the triggered
          orders.
        - ``delay_qN_secs``: N % quantile of the time from trigger to fill, in seconds, for 10, 50
          and 90 %. The delay of a triggered order that was not filled counts as infinite. If the
          quantile falls on such an order, it is missing.
        - ``low``: lower end of the interval of the median delay, by order statistics, in seconds.
        - ``high``: upper end of the interval of the median delay, in seconds.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If `level` is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> orders = pd.DataFrame({
    ...     "oid": [1, 1, 1], "status": ["open", "triggered", "filled"], "is_trigger": True,
    ...     "order_type": "Stop Market", "timestamp": pd.to_datetime([0] * 3, utc=True),
    ...     "status_timestamp": pd.to_datetime([0, 9000, 9500], unit="ms", utc=True)})
    >>> trigger_delay(orders)[["order_type", "triggered", "wait_q50_secs", "delay_q50_secs"]]
        order_type  triggered  wait_q50_secs  delay_q50_secs
    0  Stop Market          1            9.0             0.5
    """
    check_level(level)
    keys = list_keys(by, ("oid", "status", "status_timestamp", "timestamp", "is_trigger"))
    events = read_events(orders)
    table = events.table
    table.require(("timestamp", "is_trigger"))
    table.require_some("is_trigger", "says which orders wait for a price")
    events = events.take(table.flag("is_trigger")[0][events.rows])
    order = np.cumsum(events.is_first()) - 1
    last = events.take(events.is_last())
    fired, done = np.full((2, len(last)), np.nan)
    for status, time in (("triggered", fired), ("filled", done)):  # the first event of each order
        found = np.flatnonzero(events.status.facts(status.__eq__))[::-1]
        time[order[found]] = events.ms[found]
    placed = table.ms("timestamp")[last.rows]
    wait = (fired - np.where(placed == NO_TIME, np.nan, placed)) / SECOND
    delay = (done - fired) / SECOND
    group, groups = group_rows(table, keys, last.rows, _TIME)
    number = len(groups)
    is_fired = ~np.isnan(fired)
    own, n = group[is_fired], np.bincount(group[is_fired], minlength=number)
    (wait_q50,) = rank_quantiles(wait[is_fired], own, n, [0.5])
    # The ranks between which the median lies with this probability.
    below = scipy_part("stats").binom.ppf((1 - level) / 2, n, 0.5)
    ends = (below / np.maximum(n, 1), (n - below + 1) / np.maximum(n, 1))
    q10, q50, q90, low, high = rank_quantiles(delay[is_fired], own, n, [0.1, 0.5, 0.9, *ends])
    columns = {
        **groups,
        "orders": np.bincount(group, minlength=number),
        "triggered": n,
        "filled": np.bincount(group[~np.isnan(delay)], minlength=number),
        "wait_q50_secs": wait_q50,
        "delay_q10_secs": q10,
        "delay_q50_secs": q50,
        "delay_q90_secs": q90,
        "low": np.where(below >= 1, low, np.nan),
        "high": np.where(below >= 1, high, np.nan),
    }
    result = pd.DataFrame(columns, index=groups.index)
    return finish(result, {"orders": table.frame}, helper="orders.trigger_delay")
