"""Migration of accounts between classes of value."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from toolkit.accounts._values import values_table
from toolkit.display import short_amount
from toolkit.prepare.door import Frame
from toolkit.prepare.groups import ratio
from toolkit.prepare.provenance import finish

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
    if list(edges) != sorted(set(edges)) or not len(edges):
        raise ValueError(f"edges must be numbers in ascending order, each once, not {list(edges)}")
    names = [*class_names(edges), "absent", "unknown"]
    before, after = (
        values_table(snapshot, [], what=what)[["user", "value"]]
        for what, snapshot in (("start", start), ("end", end))
    )
    codes, users = pd.factorize(pd.concat([before["user"], after["user"]]))
    worth = np.full((2, len(users)), np.nan)
    place = np.full((2, len(users)), len(edges) + 1)  # absent
    parts = np.split(codes, [len(before)])
    for number, (frame, code) in enumerate(zip((before, after), parts, strict=True)):
        value = frame["value"].to_numpy(np.float64)
        worth[number, code] = value
        found = np.searchsorted(edges, value, side="right")
        place[number, code] = np.where(np.isnan(value), len(edges) + 2, found)
    change = np.nan_to_num(worth[1] - worth[0])
    many = len(names)
    pair = many * place[0] + place[1]
    accounts = np.bincount(pair, minlength=many**2)
    total = np.repeat(accounts.reshape(many, many).sum(axis=1), many)
    result = pd.DataFrame(
        {
            "from_class": pd.array([name for name in names for _ in names], dtype="str"),
            "to_class": pd.array(names * many, dtype="str"),
            "accounts": accounts,
            "share": ratio(accounts, total),
            "value_change": np.bincount(pair, change, many**2).astype(np.float64),
        }
    )
    return finish(result, {"start": start, "end": end}, helper="accounts.migration")


def class_names(edges: Sequence[float]) -> list[str]:
    """Return the names of the classes below, between and above edges."""
    words = [short_amount(edge) for edge in edges]
    between = [f"{low} to {high}" for low, high in pairwise(words)]
    return [f"below {words[0]}", *between, f"{words[-1]} and more"]
