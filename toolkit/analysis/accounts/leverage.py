"""What accounts hold long and short, against their value."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.accounts.holders import given, groups, label_of, worth_of
from toolkit.analysis.common import grouping

__all__ = ["leverage"]


def leverage(snapshot: Any, by: str | Iterable[str] | None = ("mode",)) -> Any:
    """Sum what accounts hold long and short, against their value.

    Parameters
    ----------
    snapshot : DataFrame
        As `values` takes it, with ``total_long_notional, total_short_notional``.
    by : {"mode", "token", "dex", "user"} or list of them, default ("mode",)
        One row for each group. None: one row.

    Returns
    -------
    DataFrame
        Of the engine of `snapshot`, sorted by the groups: the columns of `by`, then

        - ``mode``, where grouped by it: as in `values`;
        - ``accounts`` int64, ``exposed`` int64: those with a position;
        - ``missing`` int64: accounts whose value or notional is not known, in no sum;
        - ``value``, ``long``, ``short``: USD, ``short`` positive;
        - ``leverage``: (long + short) / value, missing where the value is not above 0;
        - ``net``: (long - short) / (long + short), from -1 to 1: which side they take;
        - ``median_leverage``: of the exposed accounts with a value above 0.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        As for `values`.

    Notes
    -----
    Unified accounts are levered by their whole value: against their perp equity, which may be 0,
    they would look as if without any money. Long and short of two dexes do not net.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({"user": ["a", "b"], "account_value": [100.0, 50.0],
    ...     "account_mode": [0, 0], "total_long_notional": [300.0, 0.0],
    ...     "total_short_notional": [0.0, 100.0]})
    >>> leverage(snapshot)[["mode", "exposed", "leverage", "net", "median_leverage"]]
           mode  exposed  leverage  net  median_leverage
    0  standard        2  2.666667  0.5              2.5
    """
    keys = grouping.list_keys(by)
    frame = worth_of(
        snapshot, [key for key in keys if key in ("token", "dex")], (*keys, "notional")
    )
    made = [(*label_of(label), *_levered(group)) for label, group in groups(frame, keys)]
    counts = ("accounts", "exposed", "missing")
    money = ("value", "long", "short", "leverage", "net", "median_leverage")
    result = pd.DataFrame(made, columns=[*keys, *counts, *money])
    result = result.astype(
        dict.fromkeys(keys, "str")
        | dict.fromkeys(counts, "int64")
        | dict.fromkeys(money, "float64")
    )
    return given(result, {"snapshot": snapshot}, "accounts.leverage")


def _levered(group: pd.DataFrame) -> tuple[Any, ...]:
    known = group.dropna(subset=["value", "long", "short"])
    gross = known["long"] + known["short"]
    value, long, short = (float(known[name].sum()) for name in ("value", "long", "short"))
    own = (gross / known["value"])[(gross > 0) & (known["value"] > 0)]
    return (
        len(known),
        int((gross > 0).sum()),
        len(group) - len(known),
        value,
        long,
        short,
        (long + short) / value if value > 0 else np.nan,
        (long - short) / (long + short) if long + short > 0 else np.nan,
        own.median(),
    )
