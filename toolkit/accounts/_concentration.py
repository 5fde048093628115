"""Concentration of value over accounts, and their migration between classes of value."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from toolkit.accounts._values import account_groups, values_table
from toolkit.arrays import Floats
from toolkit.display import short_amount
from toolkit.prepare.door import Frame
from toolkit.prepare.groups import list_keys, ratio, split_groups
from toolkit.prepare.provenance import finish
from toolkit.statistics import check_count

SHARES = (0.01, 0.1)


def concentration(
    snapshot: Frame, by: str | Iterable[str] | None = None, shares: Sequence[float] = SHARES
) -> pd.DataFrame:
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
        Sorted by the groups. The measures are float64, and missing if there are no accounts. The
        columns of `by`, then

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
    keys = list_keys(by)
    frame = values_table(snapshot, [key for key in keys if key != "mode"], keys)
    codes, result = account_groups(frame, keys)
    value = frame["value"].to_numpy(dtype=np.float64)
    parts = [value[rows] for rows in split_groups(codes, len(result))]
    names = ["value", "gini", "hhi", "effective", *(f"top_{100 * share:g}" for share in shares)]
    figures = [_concentration_figures(part[part > 0], shares) for part in parts]
    result["accounts"] = [int((part > 0).sum()) for part in parts]
    result["not_positive"] = [int((part <= 0).sum()) for part in parts]
    result["missing"] = [int(np.isnan(part).sum()) for part in parts]
    result[names] = np.array(figures).reshape(-1, len(names))
    return finish(result, {"snapshot": snapshot}, helper="accounts.concentration")


def lorenz(snapshot: Frame, points: int = 101) -> pd.DataFrame:
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
        Of the accounts with a value above 0; empty if there are none:

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
    check_count(points, "points", 2)
    value = np.sort(values_table(snapshot, [])["value"].to_numpy())
    value = value[value > 0]
    at = np.linspace(0, 1, points if len(value) else 0)
    sums = np.concatenate([[0.0], np.cumsum(value)])
    curve = np.interp(at, np.linspace(0, 1, len(sums)), sums / (sums[-1] or 1.0))
    result = pd.DataFrame({"accounts": at, "value": curve})
    return finish(result, {"snapshot": snapshot}, helper="accounts.lorenz")


def _concentration_figures(value: Floats, shares: Sequence[float]) -> list[float]:
    """Return sum, Gini, Herfindahl, its inverse and top shares of values above 0."""
    value, n = np.sort(value), len(value)
    if not n:
        return [np.nan] * (4 + len(shares))
    whole = value.sum()
    hhi = ((value / whole) ** 2).sum()
    gini = (2 * np.arange(1, n + 1) - n - 1) @ value / (n * whole)
    # The small number corrects products that round up, as in 0.07 * 100 = 7.000000000000001.
    tops = [max(1, int(np.ceil(n * share - 1e-9))) for share in shares]
    return [whole, gini, hhi, 1 / hhi, *(value[-top:].sum() / whole for top in tops)]


EDGES = (0.0, 1e3, 1e4, 1e5, 1e6)


def migration(start: Frame, end: Frame, edges: Sequence[float] = EDGES) -> pd.DataFrame:
    """Count the accounts that moved from one class of value to another between two snapshots.

    Parameters
    ----------
    start, end : DataFrame
        Two snapshots, as for `values`, or results of `values`, also by token or dex: each account
        counts once.
    edges : sequence of float, default (0, 1e3, 1e4, 1e5, 1e6)
        Lower edges of the classes in USD, rising. A value on an edge belongs to the class above it.

    Returns
    -------
    DataFrame
        One row for each pair of classes, also empty ones, from low to high. ``"absent"`` (in one
        snapshot only) and ``"unknown"`` (value missing) are last:

        - ``from_class``: class in the first snapshot, for example ``"below 0"``, ``"0 to 1k"``,
          ``"1M and more"``.
        - ``to_class``: class in the second snapshot.
        - ``accounts``: number of accounts. Every account of either snapshot counts once.
        - ``share``: share of the accounts of `from_class`; missing if there are none.
        - ``value_change``: change of the value in USD, summed over the accounts with both values.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If the edges do not rise, or as for `values`.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"user": ["a", "b"], "account_value": [500.0, 500.0]})
    >>> two = pd.DataFrame({"user": ["a", "c"], "account_value": [2000.0, 1.0]})
    >>> made = migration(one, two, edges=[0, 1e3])
    >>> made[made["accounts"] > 0][["from_class", "to_class", "accounts", "share"]]
       from_class     to_class  accounts  share
    7     0 to 1k  1k and more         1    0.5
    8     0 to 1k       absent         1    0.5
    16     absent      0 to 1k         1    1.0
    """
    names = [*class_names(edges), "absent", "unknown"]
    sides = [
        values_table(snapshot, [], what=what)[["user", "value"]].drop_duplicates(
            "user", keep="last"
        )
        for what, snapshot in (("start", start), ("end", end))
    ]
    both = sides[0].merge(sides[1], "outer", "user", indicator=True)
    for side, value, missing in (("from", "value_x", "right_only"), ("to", "value_y", "left_only")):
        place = np.searchsorted(edges, both[value], side="right")
        place = np.where(both[value].isna(), len(names) - 1, place)
        place = np.where(both["_merge"] == missing, len(names) - 2, place)
        both[f"{side}_class"] = pd.Categorical.from_codes(place, pd.Index(names))
    both["change"] = both["value_y"] - both["value_x"]
    pairs = both.groupby(["from_class", "to_class"], observed=False)
    result = pairs.agg(accounts=("user", "size"), value_change=("change", "sum")).reset_index()
    total = result.groupby("from_class", observed=False)["accounts"].transform("sum")
    result.insert(3, "share", ratio(result["accounts"], total))
    result = result.astype({"from_class": "str", "to_class": "str"})
    return finish(result, {"start": start, "end": end}, helper="accounts.migration")


def class_names(edges: Sequence[float]) -> list[str]:
    """Return the names of the classes below, between and above edges.

    Raise ValueError unless the edges are in ascending order.
    """
    if list(edges) != sorted(set(edges)) or not len(edges):
        raise ValueError(f"edges must be numbers in ascending order, each once, not {list(edges)}")
    words = [short_amount(edge) for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(words)]
    return [f"below {words[0]}", *between, f"{words[-1]} and more"]
