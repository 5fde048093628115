"""Deploy auctions: how the price falls, and what the winner paid.

The frames come from `tk.spot_pair_deploy_auction_status` and `tk.perp_deploy_auction_status`: one
row for each auction, or several answers in one frame. The price falls along a line to the `floor`.
The service does not send the floor. While an auction runs, the helper computes the floor from the
current price; afterwards the caller has to pass it.
"""

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.provenance import finish, present_ms
from toolkit.rules.auctions import elapsed_at, floor_price, price_at
from toolkit.times import HOUR, SECOND, Time

__all__ = ["decay"]

GAS = ("start_gas", "current_gas", "end_gas")
NEEDED = ("start_time_seconds", "duration_seconds", *GAS)


def decay(
    status: Frame,
    *,
    at: Time | None = None,
    floor: float | None = None,
    gas: float | None = None,
    points: int | None = None,
) -> pd.DataFrame:
    """Compute the falling price of each auction, its current price, and the price paid.

    Parameters
    ----------
    status : DataFrame
        Auctions in any order. Repeated rows count once.
    at : time, optional
        The time of the request. Without it, the column ``asked_at`` counts, or else the time in
        the provenance of the frame.
    floor : float, optional
        Price at the end of the line, if it is known.
    gas : float, optional
        A price to wait for. The result then has ``gas_time`` and ``gas_seconds``.
    points : int, optional
        How many points of the line to return for each auction, at least 2. The result then has
        one row for each auction and point, with ``time`` and ``line_gas``.

    Returns
    -------
    DataFrame
        Sorted by start, one row for each auction:

        - ``start``: start of the auction, UTC.
        - ``end``: end of the auction's line, UTC.
        - ``start_gas``: price at the start, in gas.
        - ``gas``: current price in gas, or the price that was paid if the auction is over; missing
          if the service states neither.
        - ``floor_gas``: price at the end of the line in gas, as passed or computed from the current
          price; missing if neither is known.
        - ``elapsed``: share of the duration that has passed, 0 to 1.
        - ``per_hour``: change of the price in an hour, in gas, negative.
        - ``over``: whether the auction has ended: it has a paid price, it has no current price, or
          its time is over.
        - ``of_start``: share of the start price that was paid; missing while the auction runs.
        - ``premium``: share by which the paid price exceeds the floor; missing while the auction
          runs or if the floor is not known.
        - ``bought_at``: time at which the line was at the paid price, UTC; missing if nobody
          bought before the price reached the floor.
        - ``gas_time``: time at which the price is `gas` if nobody buys earlier, UTC; missing if
          the line never reaches it or the floor is not known. Only with `gas`.
        - ``gas_seconds``: seconds from the request to ``gas_time``, negative if it has passed. Only
          with `gas`.
        - ``time``: time of a point of the line, UTC. Only with `points`.
        - ``line_gas``: price of the line at ``time``, in gas; missing if the floor is not known.
          Only with `points`.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the time of the request is not known, or `points` is less than 2.

    Notes
    -----
    gas(t) = start_gas - (start_gas - floor_gas) * (t - start) / (end - start); specification,
    "Deploy auction status". A straight line is an assumption.

    Examples
    --------
    >>> import pandas as pd
    >>> status = pd.DataFrame({"start_time_seconds": [1000], "duration_seconds": [100],
    ...                        "start_gas": [600.0], "current_gas": [575.0], "end_gas": [None]})
    >>> decay(status, at=1_025_000)[["gas", "floor_gas", "elapsed", "over"]]
         gas  floor_gas  elapsed   over
    0  575.0      500.0     0.25  False
    >>> decay(status, at=1_025_000, gas=510.0)["gas_seconds"].item()
    65.0
    >>> decay(status, at=1_025_000, points=3)["line_gas"].tolist()
    [600.0, 550.0, 500.0]

    An auction that is over, bought at 550:

    >>> sold = status.assign(current_gas=None, end_gas=550.0)
    >>> decay(sold, at=1_200_000, floor=500.0)[["of_start", "premium"]].round(4)
       of_start  premium
    0    0.9167      0.1
    """
    if points is not None and points < 2:
        raise ValueError(f"points must be at least 2, not {points}")
    table = Table(status, "status", "auctions")
    table.require(NEEDED)
    # Sorted; times in milliseconds.
    column = NEEDED[0]
    is_number = is_numeric_dtype(table.frame[column].dtype)
    begin = SECOND * table.number(column) if is_number else table.ms(column).astype(np.float64)
    duration = SECOND * table.number("duration_seconds")
    if at is None and table.has("asked_at"):
        now = table.ms("asked_at").astype(np.float64)
    else:
        now = np.full(len(table), float(present_ms(table.frame, at, "status")))
    prices = [table.number(name) for name in GAS]
    order = np.lexsort((prices[0], now, duration, begin))
    begin, duration, now, first, current, paid = (
        values[order] for values in (begin, duration, now, *prices)
    )
    passed = np.clip(now - begin, 0.0, duration)
    over = ~np.isnan(paid) | np.isnan(current) | (now >= begin + duration)
    # At the very start the lines to all floors have the same price, so it does not show the floor.
    seen, known = np.where(np.isnan(paid), current, np.nan), np.where(passed > 0, passed, np.nan)
    low = floor_price(first, seen, known, duration)
    if floor is not None:
        low = np.full(len(table), float(floor))
    falls_to = np.where(low < first, low, np.nan)
    bought = np.where(paid > low, elapsed_at(first, falls_to, paid, duration), np.nan)
    result = pd.DataFrame(
        {
            "start": utc_times(begin),
            "end": utc_times(begin + duration),
            "start_gas": first,
            "gas": np.where(np.isnan(paid), current, paid),
            "floor_gas": low,
            "elapsed": passed / duration,
            "per_hour": (low - first) / duration * HOUR,
            "over": over,
            "of_start": paid / first,
            "premium": paid / np.where(low > 0, low, np.nan) - 1,
            "bought_at": utc_times(begin + bought),
        }
    )
    if gas is not None:
        wait = elapsed_at(first, falls_to, gas, duration)
        wait = np.where((gas <= first) & (gas >= low), wait, np.nan)
        result["gas_time"] = utc_times(begin + wait)
        result["gas_seconds"] = (begin + wait - now) / SECOND
    if points is not None:
        row = np.repeat(np.arange(len(table)), points)
        share = np.tile(np.linspace(0.0, 1.0, points), len(table))
        result = result.iloc[row].assign(
            time=utc_times(begin[row] + share * duration[row]),
            line_gas=price_at(first[row], low[row], share, 1.0),
        )
    return finish(result, {"status": table.frame}, helper="auctions.decay")


def __dir__() -> list[str]:
    return __all__
