"""Rankings of accounts by a figure of their performance."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from toolkit.prepare.door import Frame, Table
from toolkit.prepare.provenance import finish

_BRIEF = (
    "total_return", "annual_return", "volatility", "sharpe", "max_drawdown", "win_rate",
    "profit_factor", "trips", "volume", "fee_bps",
)  # fmt: skip

_LESS_IS_BETTER = (
    "volatility", "sharpe_error", "drawdown_periods", "leverage", "max_leverage", "fee_bps",
    "fee_drag", "funding_drag",
)  # fmt: skip


def leaderboard(
    figures: Frame,
    by: str = "sharpe",
    *,
    show: Sequence[str] = _BRIEF,
    ascending: bool | None = None,
) -> pd.DataFrame:
    """Rank accounts by one figure, with one column per figure.

    Parameters
    ----------
    figures : DataFrame
        As `sheet` or `trip_sheet` returns it for several accounts: ``user, figure, value, low,
        high, n``.
    by : str, default "sharpe"
        The figure that ranks.
    show : sequence of str
        Further figures to show; those that the sheet does not have are left out.
    ascending : bool, optional
        Whether the lowest value is first. By default for figures of which less is better:
        volatility, sharpe_error, drawdown_periods, leverage, max_leverage, fee_bps, fee_drag and
        funding_drag.

    Returns
    -------
    DataFrame
        One row per account, the best first:

        - ``rank`` int64: 1 for the best. Accounts that lost everything (a total return of -100 %)
          are last, whatever the figure, but for accounts without a value
        - ``user``: the account
        - ``figure`` text: the figure that ranks
        - ``value`` float64: value of the account, in the unit of the figure
        - ``low`` float64: lower end of the interval of the value
        - ``high`` float64: upper end of the interval of the value
        - ``n`` int64: number of observations that the value rests on
        - ``overlaps`` Int64: number of other accounts whose interval overlaps this one;
          accounts that overlap do not differ clearly. Missing without an interval

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
    table = Table(figures, "figures")
    numbers = ("value", "low", "high")
    table.require(("user", "figure", *numbers, "n"))
    # A figure may be infinite, such as a return per year that is too high for a number.
    amounts = [name for name in numbers if not is_float_dtype(table.frame[name])]
    rows = table.columns(("user", "figure", *numbers, "n"), amounts=amounts)
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
    ascending = by in _LESS_IS_BETTER if ascending is None else ascending
    known = rows.dropna(subset="value").drop_duplicates(["user", "figure"])
    values = known.pivot(index="user", columns="figure", values="value")
    lost = values.index[values.get("total_return", pd.Series(0.0, values.index)) <= -1]
    best = best.assign(has_none=best["value"].isna(), is_ruined=best["user"].isin(lost))
    keys, directions = ["has_none", "is_ruined", "value", "user"], [True, True, ascending, True]
    ranked = best.sort_values(keys, ascending=directions, kind="stable", ignore_index=True)
    low, high = ranked["low"].to_numpy(), ranked["high"].to_numpy()
    overlap = (low[:, None] <= high) & (low <= high[:, None])
    overlaps = pd.Series(overlap.sum(axis=1) - 1, dtype="Int64").where(~np.isnan(low + high))
    made = ranked[["user", *numbers, "n"]].astype({"user": "str", "n": "int64"})
    made.insert(0, "rank", np.arange(1, len(ranked) + 1))
    made.insert(2, "figure", pd.Series(by, index=ranked.index, dtype="str"))
    present = set(rows["figure"])
    others = values.reindex(columns=[name for name in show if name != by and name in present])
    made = made.assign(overlaps=overlaps).join(others.astype("float64"), on="user")
    inputs = {"figures": table.frame}
    return finish(made, inputs, helper="performance.leaderboard", by=by, ascending=ascending)
