"""How unevenly value is spread over accounts."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.accounts.holders import given, groups, label_of, worth_of
from toolkit.analysis.common import grouping

__all__ = ["concentration", "lorenz"]

SHARES = (0.01, 0.1)


def concentration(
    snapshot: Any, by: str | Iterable[str] | None = None, shares: Sequence[float] = SHARES
) -> Any:
    """Measure how unevenly value is spread over accounts: Gini, Herfindahl, top shares.

    Parameters
    ----------
    snapshot : DataFrame
        As `values` takes it, or what it gives.
    by : {"token", "dex", "mode"} or list of them, optional
        One row for each group. Without it, one row.
    shares : sequence of float, default (0.01, 0.1)
        Which top shares of the accounts to sum, as fractions.

    Returns
    -------
    DataFrame
        Of the engine of `snapshot`, sorted by the groups: the columns of `by`, then

        - ``accounts`` int64: with a value above 0, which all measures are of;
        - ``not_positive``, ``missing`` int64: accounts left out: at or below 0, and not known;
        - ``value``: USD, their sum;
        - ``gini``: 0 where all have the same, towards 1 where one has all;
        - ``hhi``: the sum of squared shares, from 1 / accounts to 1; ``effective = 1 / hhi``:
          of how many equal accounts that would be;
        - ``top_1``, ``top_10``, ...: the share of the value that the top accounts hold; of n
          accounts the ceil(n * share) largest.

        float64; missing where there are no accounts.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If a share is not above 0 and at most 1, or as for `values`.

    Notes
    -----
    Gini (1912) as ``sum((2 i - n - 1) x_i) / (n sum(x))`` over values in ascending order;
    Herfindahl (1950) and Hirschman (1945). Equal values have one order as good as another.

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
        raise ValueError(f"shares must lie above 0 and at most at 1: {list(shares)}")
    keys = grouping.list_keys(by)
    frame = worth_of(snapshot, [key for key in keys if key != "mode"], keys)
    names = {f"top_{100 * share:g}": share for share in shares}
    made = [
        (*label_of(label), *_spread(group["value"], names)) for label, group in groups(frame, keys)
    ]
    counts = ("accounts", "not_positive", "missing")
    result = pd.DataFrame(
        made, columns=[*keys, *counts, "value", "gini", "hhi", "effective", *names]
    )
    texts = dict.fromkeys(keys, "str")
    floats = dict.fromkeys(("value", "gini", "hhi", "effective", *names), "float64")
    result = result.astype({**texts, **dict.fromkeys(counts, "int64"), **floats})
    return given(result, {"snapshot": snapshot}, "accounts.concentration")


def lorenz(snapshot: Any, points: int = 101) -> Any:
    """Give the Lorenz curve: which share of all value the poorest accounts hold together.

    Parameters
    ----------
    snapshot : DataFrame
        As `values` takes it, or what it gives.
    points : int, default 101
        How many points; the shares between accounts are interpolated.

    Returns
    -------
    DataFrame
        Of the engine of `snapshot`: ``accounts`` and ``value``, shares from 0 to 1, float64, of
        the accounts with a value above 0. Empty where there are none.

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
    value = np.sort(worth_of(snapshot, [])["value"].to_numpy())
    value = value[value > 0]
    at = np.linspace(0, 1, points if len(value) else 0)
    held = np.concatenate([[0.0], np.cumsum(value)])
    if len(value):
        held = held / held[-1]
    curve = np.interp(at, np.linspace(0, 1, len(held)), held) if len(value) else at
    made = pd.DataFrame({"accounts": at, "value": curve})
    return given(made, {"snapshot": snapshot}, "accounts.lorenz")


def _spread(column: pd.Series, shares: dict[str, float]) -> tuple[Any, ...]:
    known = column.dropna()
    value = np.sort(known[known > 0].to_numpy())
    counts = len(value), len(known) - len(value), len(column) - len(known)
    if not len(value):
        return (*counts, np.nan, *([np.nan] * (3 + len(shares))))
    whole = value.sum()
    rank = 2 * np.arange(1, len(value) + 1) - len(value) - 1
    hhi = float(((value / whole) ** 2).sum())
    # The bit taken off undoes what n * share rounds up, as in 0.07 * 100 = 7.000000000000001.
    tops = [
        value[-max(1, int(np.ceil(len(value) * share - 1e-9))) :].sum() / whole
        for share in shares.values()
    ]
    return (*counts, whole, float(rank @ value / (len(value) * whole)), hhi, 1 / hhi, *tops)
