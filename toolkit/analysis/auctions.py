"""Deploy auctions: how the price falls, when it reaches a price, and what was paid.

The frames come from `tk.spot_pair_deploy_auction_status` and `tk.perp_deploy_auction_status`: one
row for each auction, or several answers in one frame. The price falls along a line to the `floor`.
The service does not send the floor. While an auction runs, the helper computes the floor from the
current price; afterwards the caller has to pass it.
"""

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.rules.auctions import elapsed_at, floor_price, price_at
from toolkit.times import HOUR, SECOND, Time

GAS = ("start_gas", "current_gas", "end_gas")
NEEDED = ("start_time_seconds", "duration_seconds", *GAS)


def decay(
    status: IntoFrame,
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
        Auctions in any order, of any engine. Repeated rows count once.
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
        pandas, sorted by start, one row for each auction:

        - ``start``: start of the auction, UTC.
        - ``end``: end of the auction's line, UTC.
        - ``start_gas``: price at the start, in gas.
        - ``gas``: current price in gas, or the price that was paid if the auction is over.
        - ``floor_gas``: price at the end of the line in gas, as passed or computed from the current
          price; missing if neither is known.
        - ``elapsed``: share of the duration that has passed, 0 to 1.
        - ``per_hour``: change of the price in an hour, in gas, negative.
        - ``over``: whether the auction has ended.
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
    rows = _read_auctions(status, at, floor)
    start, duration = rows["start"], rows["duration"]
    begin, low = rows["start_gas"], rows["floor_gas"]
    falls_to = low.where(low < begin)
    paid = rows["gas"].where(rows["over"])
    bought = elapsed_at(begin, falls_to, paid, duration).where(paid > low)
    result = pd.DataFrame(
        {
            "start": timestamps.timestamps_from_ms(start),
            "end": timestamps.timestamps_from_ms(start + duration),
            "start_gas": begin,
            "gas": rows["gas"],
            "floor_gas": low,
            "elapsed": rows["elapsed"] / duration,
            "per_hour": (low - begin) / duration * HOUR,
            "over": rows["over"],
            "of_start": paid / begin,
            "premium": paid / low.where(low > 0) - 1,
            "bought_at": timestamps.timestamps_from_ms(start + bought),
        }
    )
    if gas is not None:
        wait = elapsed_at(begin, falls_to, gas, duration).where((gas <= begin) & (gas >= low))
        result["gas_time"] = timestamps.timestamps_from_ms(start + wait)
        result["gas_seconds"] = (start + wait - rows["at"]) / SECOND
    if points is not None:
        result = _with_points(result, rows, points)
    result.attrs["toolkit"] = {**result_provenance({"status": status}), "helper": "auctions.decay"}
    return result


def _with_points(result: pd.DataFrame, rows: pd.DataFrame, points: int) -> pd.DataFrame:
    """Return each row as often as there are points, with the time and the price of each point."""
    repeated = rows.loc[rows.index.repeat(points)]
    share = np.tile(np.linspace(0.0, 1.0, points), len(rows))
    begin, low = (repeated[name].to_numpy() for name in ("start_gas", "floor_gas"))
    passed = share * repeated["duration"].to_numpy()
    result = result.loc[result.index.repeat(points)].reset_index(drop=True)
    return result.assign(
        time=timestamps.timestamps_from_ms(repeated["start"].to_numpy() + passed),
        line_gas=price_at(begin, low, share, 1.0),
    )


def _read_auctions(status: IntoFrame, at: Time | None, floor: float | None) -> pd.DataFrame:
    """Return times in milliseconds and prices as floats, sorted by start."""
    status = drop_repeated_rows(status, "auctions", "status")
    rows = frame_access.pandas_columns(status, "status", NEEDED, ["asked_at"], GAS)
    start = timestamps.ms_from_times(rows["start_time_seconds"], SECOND)
    duration = rows["duration_seconds"].astype("float64") * SECOND
    if at is None and "asked_at" in rows:
        now = timestamps.ms_from_times(rows["asked_at"])
    else:
        now = pd.Series(float(timestamps.present_ms(status, at, "status")), index=rows.index)
    over = ~rows["end_gas"].isna()
    elapsed = (now - start).clip(lower=0.0).clip(upper=duration)
    running = rows["current_gas"].where(~over)
    # At the very start the lines to all floors have the same price, so it does not show the floor.
    end_price = floor_price(rows["start_gas"], running, elapsed.where(elapsed > 0), duration)
    auctions = pd.DataFrame(
        {
            "start": start,
            "duration": duration,
            "at": now,
            "elapsed": elapsed,
            "over": over,
            "start_gas": rows["start_gas"],
            "gas": rows["end_gas"].where(over, rows["current_gas"]),
            "floor_gas": end_price if floor is None else float(floor),
        }
    )
    return auctions.sort_values(["start", "duration", "at", "start_gas"], ignore_index=True)
