"""Drawdown: the distance of a curve from its highest value so far."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.account_values import (
    Amount,
    column_list,
    row_times,
    row_users,
    zero_amount,
)
from toolkit.analysis.common.frame_access import NumberKind
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.times import HOUR


def drawdown(curve: IntoFrameT, of: str = "pnl") -> IntoFrameT:
    """Return how far each point of a curve is below the highest point so far.

    Parameters
    ----------
    curve : DataFrame
        As `equity` returns it: ``time``, the column `of`, and ``user`` if there are several
        accounts (pandas, Polars, DuckDB, PySpark).
    of : str, default "pnl"
        The column: ``"pnl"``, ``"realised"``, or another one. A withdrawal lowers ``equity``
        without a loss, so a drawdown of ``equity`` is too large.

    Returns
    -------
    DataFrame
        In the engine of `curve`: its rows, sorted by user and time, with three more columns. They
        replace those of an earlier call. They are missing if the value is missing.

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
    curve = drop_repeated_rows(curve, "curve")
    frame = memory_frames.to_pandas(curve)
    opened = frame_access.open_frame(frame, "curve")
    frame_access.require_columns(opened, ("time", of), "curve")
    kind = frame_access.number_kind(opened, [of], "curve")
    if "user" in frame.columns:
        frame = frame.assign(user=frame["user"].astype("str"))
    keys = [key for key in ("user", "time") if key in frame.columns]
    frame = frame.sort_values(keys, kind="stable")
    number = memory_frames.arrow_type(kind)
    ms = [time or 0 for time in row_times(frame, "curve")]
    high, fall, under = _drawdown_columns(row_users(frame), ms, column_list(frame, of), kind)
    made = {
        "high": pa.array(high, type=number),
        "drawdown": pa.array(fall, type=number),
        "under_hours": pa.array(under, type=pa.float64()),
    }
    table = pa.Table.from_pandas(frame.drop(columns=made, errors="ignore"), preserve_index=False)
    for name, column in made.items():
        table = table.append_column(name, column)
    return memory_frames.result_from_table(table, {"curve": curve}, helper="pnl.drawdown", of=of)


def _drawdown_columns(
    users: Sequence[str], ms: Sequence[int], values: Sequence[Amount], kind: NumberKind
) -> tuple[list[Amount], list[Amount], list[float | None]]:
    """Return high, drawdown and hours below the high, of points sorted by user and time."""
    high: list[Amount] = []
    fall: list[Amount] = []
    under: list[float | None] = []
    for _, points in groupby(zip(users, ms, values, strict=True), key=itemgetter(0)):
        curve = list(points)
        top, since = zero_amount(kind), curve[0][1]
        for _, time, value in curve:
            is_known = value is not None
            if is_known and value >= top:
                top, since = value, time
            high.append(top if is_known else None)
            fall.append(value - top if is_known else None)
            under.append((time - since) / HOUR if is_known else None)
    return high, fall, under
