"""Rankings of accounts by a figure of their performance."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.repeated_rows import drop_repeated_rows

_BRIEF = (
    "total_return", "annual_return", "volatility", "sharpe", "max_drawdown", "win_rate",
    "profit_factor", "trips", "volume", "fee_bps",
)  # fmt: skip


def leaderboard(
    figures: IntoFrameT,
    by: str = "sharpe",
    *,
    show: Sequence[str] = _BRIEF,
    ascending: bool = False,
) -> IntoFrameT:
    """Rank accounts by one figure, with one column per figure.

    Parameters
    ----------
    figures : DataFrame
        As `sheet` or `trip_sheet` returns it for several accounts: ``user, figure, value, low,
        high, n`` (pandas, Polars, DuckDB, PySpark).
    by : str, default "sharpe"
        The figure that ranks.
    show : sequence of str
        Further figures to show; those that the sheet does not have are left out.
    ascending : bool, default False
        Whether the lowest value is first.

    Returns
    -------
    DataFrame
        In the engine of `figures`, one row per account, the best first:

        - ``rank`` int64: 1 for the best; accounts without a value are last
        - ``user``: the account
        - ``figure`` text: the figure that ranks
        - ``value`` float64: value of the account, in the unit of the figure
        - ``low`` float64: lower end of the interval of the value
        - ``high`` float64: upper end of the interval of the value
        - ``n`` int64: number of observations that the value rests on
        - ``overlaps`` int64: number of other accounts whose interval overlaps this one;
          accounts that overlap do not differ clearly

        and the values of the figures of `show`, each in a column of its name.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If there are rows, but none of the figure `by`; or if an account has several rows for it.

    Notes
    -----
    The best of many accounts is partly luck: the more accounts are ranked, the higher the best
    value is without any skill.

    Examples
    --------
    >>> import pandas as pd
    >>> figures = pd.DataFrame({"user": ["0xa", "0xb"], "figure": "sharpe", "value": [0.5, 2.0],
    ...     "low": [-0.5, 1.0], "high": [1.5, 3.0], "n": 90})
    >>> leaderboard(figures)[["rank", "user", "value", "overlaps"]].values.tolist()
    [[1, '0xb', 2.0, 1], [2, '0xa', 0.5, 1]]
    """
    figures = drop_repeated_rows(figures, "figures")
    numbers = ("value", "low", "high")
    needed = ("user", "figure", *numbers, "n")
    rows = frame_access.pandas_columns(figures, "figures", needed, amounts=numbers)
    best = rows[rows["figure"] == by]
    if best.empty and len(rows):
        names = ", ".join(sorted(rows["figure"].unique()))
        raise ValueError(f"unknown figure {by!r}; choose one of {names}")
    repeated = best["user"][best["user"].duplicated()]
    if len(repeated):
        raise ValueError(
            f"figures: {repeated.iloc[0]} has several rows for {by!r}. Select one group, for "
            "example one month"
        )
    best = best.sort_values("user", kind="stable")
    wide = rows[rows["figure"] != by].pivot_table(
        index="user", columns="figure", values="value", aggfunc="first", dropna=False
    )
    ranked = best.sort_values("value", ascending=ascending, kind="stable", na_position="last")
    low, high = ranked["low"].to_numpy(np.float64), ranked["high"].to_numpy(np.float64)
    overlap = (low[:, None] <= high) & (low <= high[:, None])
    made: dict[str, object] = {
        "rank": np.arange(1, len(ranked) + 1),
        "user": memory_frames.text_column(ranked["user"].tolist()),
        "figure": memory_frames.text_column([by] * len(ranked)),
        "value": pa.array(ranked["value"], from_pandas=True, type=pa.float64()),
        "low": pa.array(low, from_pandas=True, type=pa.float64()),
        "high": pa.array(high, from_pandas=True, type=pa.float64()),
        "n": pa.array(ranked["n"], type=pa.int64()),
        "overlaps": pa.array(np.maximum(overlap.sum(axis=1) - 1, 0), type=pa.int64()),
    }
    for name in show:
        if name in wide.columns and name != by:
            values = wide[name].reindex(ranked["user"])
            made[name] = pa.array(values, from_pandas=True, type=pa.float64())
    result: IntoFrameT = memory_frames.result_from_table(
        pa.table(made), {"figures": figures}, helper="performance.leaderboard", by=by
    )
    return result
