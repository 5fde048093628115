"""Delays of trigger orders: from placing to trigger, and from trigger to fill."""

from collections.abc import Iterable
from typing import Any, Final

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, grouping
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.execution.orders import sort_events
from toolkit.arrays import Floats
from toolkit.installation import explain_missing
from toolkit.times import SECOND


def trigger_delay(
    orders: IntoFrame, by: str | Iterable[str] | None = ("order_type",), *, level: float = 0.95
) -> pd.DataFrame:
    """Compute how long trigger orders wait for their trigger, and then for their fill.

    Parameters
    ----------
    orders : DataFrame
        Status events as for `transitions`, with ``timestamp`` and ``is_trigger`` (any engine).
        Repeated events count once.
    by : str, list of str or None, default ("order_type",)
        Groups: any columns of the orders.
    level : float, default 0.95
        Level of the interval.

    Returns
    -------
    DataFrame
        pandas, sorted by the groups: the columns of `by`, then

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
    keys = grouping.list_keys(by, ("oid", "status", "status_timestamp", "timestamp", "is_trigger"))
    rows = sort_events(orders, ("timestamp", "is_trigger", *keys))
    frame = nw.from_native(rows, eager_only=True)
    frame_access.require_some_values(
        frame, "is_trigger", "orders", "says which orders wait for a price"
    )
    rows = rows[rows["is_trigger"].astype("boolean").fillna(value=False).astype(bool)]
    fired = rows[rows["status"] == "triggered"].groupby("oid")["ms"].min()
    done = rows[rows["status"] == "filled"].groupby("oid")["ms"].min()
    orders_seen = rows.drop_duplicates("oid", keep="last").set_index("oid")
    orders_seen = orders_seen.assign(
        triggered=orders_seen.index.isin(fired.index),
        wait=(fired.reindex(orders_seen.index) - orders_seen["placed"]) / SECOND,
        delay=(done.reindex(orders_seen.index) - fired.reindex(orders_seen.index)) / SECOND,
    )
    orders_seen["filled"] = orders_seen["triggered"] & ~orders_seen["delay"].isna()
    if keys:
        found = list(orders_seen.groupby(keys, dropna=False, sort=True))
    else:
        found = [((), orders_seen)]
    rows_out = [(*key, *_delay_figures(part, level)) for key, part in found]
    result = _delay_frame(rows_out, keys, orders_seen)
    result.attrs["toolkit"] = {
        **result_provenance({"orders": orders}),
        "helper": "orders.trigger_delay",
    }
    return result


_DELAYS: Final = ("wait_q50_secs", "delay_q10_secs", "delay_q50_secs", "delay_q90_secs")
_COUNTS: Final = ("orders", "triggered", "filled")


def _delay_frame(rows: list[tuple[Any, ...]], keys: list[str], like: pd.DataFrame) -> pd.DataFrame:
    """Return the figures as a frame, with the same dtypes for any number of rows."""
    names = [*keys, *_COUNTS, *_DELAYS, "low", "high"]
    result = pd.DataFrame(rows, columns=names)
    types: dict[str, Any] = {name: like[name].dtype for name in keys}
    types |= dict.fromkeys(_COUNTS, "int64") | dict.fromkeys((*_DELAYS, "low", "high"), "float64")
    return result.astype(types)


def _delay_figures(part: pd.DataFrame, level: float) -> tuple[float, ...]:
    """Return the figures of one group."""
    fired = part[part["triggered"]]
    delay = np.sort(fired["delay"].fillna(np.inf).to_numpy(dtype="float64"))
    wait = np.sort(fired["wait"].to_numpy(dtype="float64"))
    quantiles = [_quantile(delay, q) for q in (0.1, 0.5, 0.9)]
    counts = (len(part), len(fired), int(part["filled"].sum()))
    return (*counts, _quantile(wait, 0.5), *quantiles, *_median_interval(delay, level))


def _quantile(values: Floats, q: float) -> float:
    """Return one of the sorted values as their quantile; missing if it is infinite."""
    if not len(values):
        return float("nan")
    found = float(values[max(int(np.ceil(q * len(values) - 1e-9)), 1) - 1])
    return found if np.isfinite(found) else float("nan")


def _median_interval(values: Floats, level: float) -> tuple[float, float]:
    """Return two values that contain the median with at least the probability `level`."""
    with explain_missing("analysis"):
        from scipy import stats

    n = len(values)
    below = int(stats.binom.ppf((1 - level) / 2, n, 0.5)) if n else 0
    if below < 1:  # the smallest and the largest value do not contain it with this probability
        return float("nan"), float("nan")
    low, high = float(values[below - 1]), float(values[n - below])
    return low, high if np.isfinite(high) else float("nan")
