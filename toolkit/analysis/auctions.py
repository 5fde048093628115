"""Deploy auctions: the line their price falls along, when it reaches a price, what was paid.

Frames as `tk.spot_pair_deploy_auction_status` and `tk.perp_deploy_auction_status` give them, one
row an auction, or many put below each other; of any engine, the result is pandas. The answer
does not say where the line ends: it follows from the current price while an auction runs, and
has to be told (`floor`) of one that is over.
"""

from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.common import columns, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.rules.auctions import elapsed_at, floor_price, price_at
from toolkit.times import HOUR, SECOND, Time

__all__ = ["decay", "line", "premium", "time_to"]

GAS = ("start_gas", "current_gas", "end_gas")
NEEDED = ("start_time_seconds", "duration_seconds", *GAS)


def decay(status: Any, *, at: Time | None = None, floor: float | None = None) -> pd.DataFrame:
    """Say how each auction's price falls, and where it stands.

    Parameters
    ----------
    status : DataFrame
        Auctions, in any order; rows given twice count once.
    at : time, optional
        When the answer was asked for; without it a column ``asked_at``, or what the frame says.
    floor : float, optional
        Price at the end of the line, where it is known.

    Returns
    -------
    DataFrame
        Sorted by start, one row an auction:

        - ``start``, ``end``: when the line begins and ends, UTC;
        - ``start_gas``, ``gas`` (now, or what was paid at the end), ``floor_gas`` (given, or
          told from the current price; missing where neither is known);
        - ``elapsed``: share of the time that is over, 0 to 1;
        - ``per_hour``: change of the price in an hour, negative;
        - ``over``: whether the auction has ended.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If nothing says when the answer was asked for.

    Notes
    -----
    gas(t) = start_gas - (start_gas - floor_gas) * (t - start) / (end - start); specification,
    "Deploy auction status"; that it is a straight line is assumed.

    Examples
    --------
    >>> status = pd.DataFrame({"start_time_seconds": [1000], "duration_seconds": [100],
    ...                        "start_gas": [600.0], "current_gas": [575.0], "end_gas": [None]})
    >>> decay(status, at=1_025_000)[["gas", "floor_gas", "elapsed", "over"]]
         gas  floor_gas  elapsed   over
    0  575.0      500.0     0.25  False
    """
    rows = _read(status, at, floor)
    fall = (rows["floor_gas"] - rows["start_gas"]) / rows["duration"] * HOUR
    made = pd.DataFrame(
        {
            "start": timestamps.timestamps_from_ms(rows["start"]),
            "end": timestamps.timestamps_from_ms(rows["start"] + rows["duration"]),
            "start_gas": rows["start_gas"],
            "gas": rows["gas"],
            "floor_gas": rows["floor_gas"],
            "elapsed": rows["elapsed"] / rows["duration"],
            "per_hour": fall,
            "over": rows["over"],
        }
    )
    return _given(made, status, "auctions.decay")


def line(
    status: Any, *, at: Time | None = None, floor: float | None = None, points: int = 50
) -> pd.DataFrame:
    """Give points of each auction's line, from its start to its end.

    Parameters
    ----------
    status, at, floor
        As for `decay`; rows given twice count once.
    points : int, default 50
        How many for each auction, at least 2.

    Returns
    -------
    DataFrame
        Sorted by auction and time: ``start`` (of the auction), ``time`` UTC, ``gas``: missing
        where the floor is not known.

    Raises
    ------
    MissingColumns, ValueError
        As `decay`; also if there are fewer than two points.

    Examples
    --------
    >>> status = pd.DataFrame({"start_time_seconds": [1000], "duration_seconds": [100],
    ...                        "start_gas": [600.0], "current_gas": [575.0], "end_gas": [None]})
    >>> line(status, at=1_025_000, points=3)["gas"].tolist()
    [600.0, 550.0, 500.0]
    """
    if points < 2:
        raise ValueError(f"points must be at least 2, not {points}")
    rows = _read(status, at, floor)
    each = rows.loc[rows.index.repeat(points)]
    share = np.tile(np.linspace(0.0, 1.0, points), len(rows))
    passed = share * each["duration"].to_numpy()
    made = pd.DataFrame(
        {
            "start": timestamps.timestamps_from_ms(each["start"].to_numpy()),
            "time": timestamps.timestamps_from_ms(each["start"].to_numpy() + passed),
            "gas": price_at(each["start_gas"].to_numpy(), each["floor_gas"].to_numpy(), share, 1.0),
        }
    )
    return _given(made, status, "auctions.line")


def time_to(
    status: Any, gas: float, *, at: Time | None = None, floor: float | None = None
) -> pd.DataFrame:
    """Say when each auction's price reaches `gas`, if nobody buys before.

    Parameters
    ----------
    status, at, floor
        As for `decay`; rows given twice count once.
    gas : float
        The price to wait for.

    Returns
    -------
    DataFrame
        Sorted by start, one row an auction: ``start``, ``time`` when the price is `gas` (UTC),
        ``seconds`` from now until then, negative when it has passed. Both missing where the
        line never reaches `gas`, or the floor is not known.

    Raises
    ------
    MissingColumns, ValueError
        As `decay`.

    Examples
    --------
    >>> status = pd.DataFrame({"start_time_seconds": [1000], "duration_seconds": [100],
    ...                        "start_gas": [600.0], "current_gas": [575.0], "end_gas": [None]})
    >>> time_to(status, 510.0, at=1_025_000)["seconds"].item()
    65.0
    """
    rows = _read(status, at, floor)
    begin, end = rows["start_gas"], rows["floor_gas"]
    passed = elapsed_at(begin, end.where(end < begin), gas, rows["duration"])
    passed = passed.where((gas <= begin) & (gas >= end))
    made = pd.DataFrame(
        {
            "start": timestamps.timestamps_from_ms(rows["start"]),
            "time": timestamps.timestamps_from_ms(rows["start"] + passed),
            "seconds": (rows["start"] + passed - rows["at"]) / SECOND,
        }
    )
    return _given(made, status, "auctions.time_to")


def premium(status: Any, *, at: Time | None = None, floor: float | None = None) -> pd.DataFrame:
    """Compare what was paid at the end of each auction with its start and its floor.

    Parameters
    ----------
    status, at, floor
        As for `decay`; without a floor the premium is not known. Rows given twice count once.

    Returns
    -------
    DataFrame
        Sorted by start, one row an auction; all but ``start`` and ``start_gas`` missing while
        it runs:

        - ``end_gas``: what was paid;
        - ``of_start``: its share of the start price;
        - ``premium``: by how much it is above the floor, as a share of the floor;
        - ``bought_at``: when the line was there (UTC): when it was bought. Missing where the
          price is the floor itself: nobody bought.

    Raises
    ------
    MissingColumns, ValueError
        As `decay`.

    Examples
    --------
    >>> status = pd.DataFrame({"start_time_seconds": [1000], "duration_seconds": [100],
    ...                        "start_gas": [600.0], "current_gas": [None], "end_gas": [550.0]})
    >>> premium(status, at=1_200_000, floor=500.0)[["of_start", "premium"]].round(4)
       of_start  premium
    0    0.9167      0.1
    """
    rows = _read(status, at, floor)
    paid, low = rows["gas"].where(rows["over"]), rows["floor_gas"]
    begin = rows["start_gas"]
    passed = elapsed_at(begin, low.where(low < begin), paid, rows["duration"]).where(paid > low)
    made = pd.DataFrame(
        {
            "start": timestamps.timestamps_from_ms(rows["start"]),
            "start_gas": begin,
            "end_gas": paid,
            "of_start": paid / begin,
            "premium": paid / low.where(low > 0) - 1,
            "bought_at": timestamps.timestamps_from_ms(rows["start"] + passed),
        }
    )
    return _given(made, status, "auctions.premium")


def _read(status: Any, at: Time | None, floor: float | None) -> pd.DataFrame:
    """Give times in milliseconds and prices as floats, sorted by start."""
    status = count_once(status, "auctions", "status")
    rows = columns.pandas_columns(status, "status", NEEDED, ["asked_at"], GAS)
    start = timestamps.ms_from_times(rows["start_time_seconds"], SECOND)
    duration = rows["duration_seconds"].astype("float64") * SECOND
    if at is None and "asked_at" in rows:
        now = timestamps.ms_from_times(rows["asked_at"])
    else:
        now = pd.Series(float(timestamps.present_ms(status, at, "status")), index=rows.index)
    over = ~rows["end_gas"].isna()
    elapsed = (now - start).clip(lower=0.0).clip(upper=duration)
    running = rows["current_gas"].where(~over)
    told = floor_price(rows["start_gas"], running, elapsed.where(elapsed > 0), duration)
    made = pd.DataFrame(
        {
            "start": start,
            "duration": duration,
            "at": now,
            "elapsed": elapsed,
            "over": over,
            "start_gas": rows["start_gas"],
            "gas": rows["end_gas"].where(over, rows["current_gas"]),
            "floor_gas": told if floor is None else float(floor),
        }
    )
    return made.sort_values(["start", "duration", "at", "start_gas"], ignore_index=True)


def _given(made: pd.DataFrame, status: Any, helper: str) -> pd.DataFrame:
    made.attrs["toolkit"] = {**result_provenance({"status": status}), "helper": helper}
    return made
