"""Delays of trigger orders: from placing to trigger, and from trigger to fill."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from toolkit.prepare.door import NO_TIME, Frame
from toolkit.prepare.groups import group_rows, list_keys
from toolkit.prepare.orders import read_events
from toolkit.prepare.provenance import finish
from toolkit.statistics.estimate import check_level
from toolkit.statistics.quantiles import rank_quantiles, scipy_part
from toolkit.times import SECOND


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
    group, groups = group_rows(table, keys, last.rows, "status_timestamp")
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
    result = pd.DataFrame(columns, index=range(number))
    return finish(result, {"orders": table.frame}, helper="orders.trigger_delay")
