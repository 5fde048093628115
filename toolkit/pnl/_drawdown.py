"""Drawdown: the distance of a curve from its highest value so far."""

import numpy as np
import pandas as pd

from toolkit.prepare.door import Frame, Table
from toolkit.prepare.provenance import finish
from toolkit.times import HOUR


def drawdown(curve: Frame, of: str = "pnl") -> pd.DataFrame:
    """Return how far each point of a curve is below the highest point so far.

    Parameters
    ----------
    curve : DataFrame
        As `equity` returns it: ``time``, the column `of`, and ``user`` if there are several
        accounts.
    of : str, default "pnl"
        The column: ``"pnl"``, ``"realised"``, or another one. A withdrawal lowers ``equity``
        without a loss, so a drawdown of ``equity`` is too large.

    Returns
    -------
    DataFrame
        The rows of `curve`, sorted by user and time, with three more columns. They replace those of
        an earlier call. They are missing if the value is missing.

        - ``high``: the highest value so far, in USD; at least 0, the value at the beginning
        - ``drawdown``: value less ``high``, in USD, at most 0
        - ``under_hours`` float64: hours since the curve was at its high

    Raises
    ------
    MissingColumns
        If a column is missing or contains text.

    Notes
    -----
    The deepest drawdown is the minimum of the column ``drawdown``. Repeated points change nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"pnl": [1.0, 3.0, 2.0, 0.5],
    ...     "time": pd.to_datetime([0, 1, 2, 3], unit="h", utc=True)})
    >>> drawdown(curve)[["high", "drawdown", "under_hours"]].values.tolist()
    [[1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [3.0, -1.0, 1.0], [3.0, -2.5, 2.0]]
    """
    table = Table(curve, "curve")
    table.require(("time", of))
    value, ms = table.number(of), table.known_ms()
    user = table.text("user", blank=True).sorted().codes
    order = np.lexsort((ms, user))
    value, ms, user = value[order], ms[order], user[order]
    known = ~np.isnan(value)
    high = np.maximum(pd.Series(value).groupby(user).cummax().to_numpy(), 0.0)
    # The time of the last high; the curve begins at its first point.
    is_high = known & (value >= high) | (np.diff(user, prepend=-1) != 0)
    since = ms[np.maximum.accumulate(np.where(is_high, np.arange(len(ms)), 0))]
    made = {
        "high": high,
        "drawdown": value - high,
        "under_hours": np.where(known, (ms - since) / HOUR, np.nan),
    }
    points = table.frame.iloc[order].drop(columns=list(made), errors="ignore")
    if table.has("user"):
        points["user"] = table.text("user").texts(order).array
    return finish(points.assign(**made), {"curve": table.frame}, helper="pnl.drawdown", of=of)
