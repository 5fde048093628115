"""Concentration of value over accounts."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrameT

from toolkit.analysis.accounts.values import split_groups, to_engine, values_table
from toolkit.analysis.common import grouping

SHARES = (0.01, 0.1)


def concentration(
    snapshot: IntoFrameT, by: str | Iterable[str] | None = None, shares: Sequence[float] = SHARES
) -> IntoFrameT:
    """Measure how unevenly value is distributed over accounts: Gini, Herfindahl, top shares.

    Parameters
    ----------
    snapshot : DataFrame
        As for `values`, or a result of `values`, also by token or dex: each account counts once.
    by : {"token", "dex", "mode"} or list of them, optional
        One row for each group. Without it, one row.
    shares : sequence of float, default (0.01, 0.1)
        Top shares of the accounts to sum, as fractions.

    Returns
    -------
    DataFrame
        The engine of `snapshot`, sorted by the groups. The measures are float64, and missing if
        there are no accounts. The columns of `by`, then

        - ``accounts``: number of accounts with a value above 0. All measures are of these.
        - ``not_positive``: number of accounts with a value of 0 or less.
        - ``missing``: number of accounts without a known value.
        - ``value``: sum of the values, in USD.
        - ``gini``: Gini coefficient: 0 if all values are equal, towards 1 if one account has all.
        - ``hhi``: Herfindahl index: the sum of squared shares, from 1 / accounts to 1.
        - ``effective``: ``1 / hhi``: the number of equal accounts with the same index.
        - ``top_N``: share of the value in the top N % of the accounts, one column for each of
          `shares`; of n accounts the ceil(n * share) largest.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If a share is not above 0 and at most 1, or as for `values`.

    Notes
    -----
    Gini (1912) as ``sum((2 i - n - 1) x_i) / (n sum(x))`` over values in ascending order;
    Herfindahl (1950) and Hirschman (1945). The order of equal values does not matter.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({"user": list("abcd"), "account_value": [1.0, 2.0, 3.0, 4.0]})
    >>> made = concentration(snapshot, shares=[0.25])
    >>> made[["accounts", "gini", "hhi", "top_25"]].round(3)
       accounts  gini  hhi  top_25
    0         4  0.25  0.3     0.4
    """
    if not all(0 < share <= 1 for share in shares):
        raise ValueError(f"shares must be above 0 and at most 1: {list(shares)}")
    keys = grouping.list_keys(by)
    frame = values_table(snapshot, [key for key in keys if key != "mode"], keys)
    names = {f"top_{100 * share:g}": share for share in shares}
    figures = [
        (*label, *_concentration_figures(group["value"], names))
        for label, group in split_groups(frame, keys)
    ]
    counts = ("accounts", "not_positive", "missing")
    result = pd.DataFrame(
        figures, columns=[*keys, *counts, "value", "gini", "hhi", "effective", *names]
    )
    texts = dict.fromkeys(keys, "str")
    floats = dict.fromkeys(("value", "gini", "hhi", "effective", *names), "float64")
    result = result.astype({**texts, **dict.fromkeys(counts, "int64"), **floats})
    native: IntoFrameT = to_engine(result, {"snapshot": snapshot}, "accounts.concentration")
    return native


def lorenz(snapshot: IntoFrameT, points: int = 101) -> IntoFrameT:
    """Compute the Lorenz curve: the share of all value that the poorest accounts have together.

    Parameters
    ----------
    snapshot : DataFrame
        As for `values`, or a result of `values`, also by token or dex: each account counts once.
    points : int, default 101
        Number of points. Shares between accounts are interpolated.

    Returns
    -------
    DataFrame
        The engine of `snapshot`, of the accounts with a value above 0; empty if there are none:

        - ``accounts``: share of the accounts, the poorest first, from 0 to 1.
        - ``value``: share of the value that these accounts have, from 0 to 1.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If there are fewer than two points, or as for `values`.

    Notes
    -----
    Lorenz (1905). Gini's coefficient is one minus twice the area below the curve of all accounts.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({"user": ["a", "b"], "account_value": [1.0, 3.0]})
    >>> lorenz(snapshot, points=3).values.tolist()
    [[0.0, 0.0], [0.5, 0.25], [1.0, 1.0]]
    """
    if points < 2:
        raise ValueError(f"points must be at least 2, not {points}")
    value = np.sort(values_table(snapshot, [])["value"].to_numpy())
    value = value[value > 0]
    at = np.linspace(0, 1, points if len(value) else 0)
    cumulative = np.concatenate([[0.0], np.cumsum(value)])
    if len(value):
        cumulative = cumulative / cumulative[-1]
    curve = np.interp(at, np.linspace(0, 1, len(cumulative)), cumulative) if len(value) else at
    result = pd.DataFrame({"accounts": at, "value": curve})
    native: IntoFrameT = to_engine(result, {"snapshot": snapshot}, "accounts.lorenz")
    return native


def _concentration_figures(column: pd.Series, shares: dict[str, float]) -> tuple[Any, ...]:
    known = column.dropna()
    value = np.sort(known[known > 0].to_numpy())
    counts = len(value), len(known) - len(value), len(column) - len(known)
    if not len(value):
        return (*counts, np.nan, *([np.nan] * (3 + len(shares))))
    whole = value.sum()
    rank = 2 * np.arange(1, len(value) + 1) - len(value) - 1
    hhi = float(((value / whole) ** 2).sum())
    # The small number corrects products that round up, as in 0.07 * 100 = 7.000000000000001.
    tops = [
        value[-max(1, int(np.ceil(len(value) * share - 1e-9))) :].sum() / whole
        for share in shares.values()
    ]
    return (*counts, whole, float(rank @ value / (len(value) * whole)), hhi, 1 / hhi, *tops)
