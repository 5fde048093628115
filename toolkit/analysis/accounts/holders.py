"""Account values by account, mode, token and dex: the frame that every measure starts from."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from toolkit.analysis.common import columns, engines, grouping
from toolkit.analysis.common.account_values import MODES, distinct_rows
from toolkit.analysis.common.repeated_rows import count_once

__all__ = ["values"]

_NOTIONALS = ("total_long_notional", "total_short_notional")


def values(snapshot: Any, by: str | Iterable[str] | None = None) -> Any:
    """Give the value of every account, by its mode: one row an account, or one a token.

    Parameters
    ----------
    snapshot : DataFrame
        Account values, as `tk.account_value_snapshots` gives them: ``user, collateral_token,
        account_value, account_mode`` and, where wanted, ``total_long_notional,
        total_short_notional``; or the accounts of `tk.batch_clearinghouse_states` (``user, dex,
        account_value``), which tell no mode. pandas, Polars eager or lazy, DuckDB relation;
        float or exact.
    by : {"token", "dex"} or list of them, optional
        One row for each account and token, or dex, of ``<dex>:<token>``. Without it one row an
        account.

    Returns
    -------
    DataFrame
        Of the engine of `snapshot`, floats, sorted by user: ``user`` (lower case), the columns
        of `by`, then

        - ``mode``: ``"standard"``, ``"dex abstraction"``, ``"unified"``, ``"portfolio margin"``,
          ``"mode 7"`` for one that nobody knows, missing where the frame does not tell;
        - ``value``: USD, what its rows add up to; missing where one is;
        - ``long``, ``short``: USD notional, both positive; missing without those columns.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If the frame holds several snapshots, or `by` names something else.

    Notes
    -----
    Unified and portfolio-margin accounts keep their equity in the spot wallet: a snapshot's
    ``account_value`` counts it, a clearinghouse state does not. ``pm_total_account_value``
    repeats the total on every row of an account, so rows are added up, never those. Tokens other
    than USDC count as USD. A row given twice is the same money, and counts once.

    Examples
    --------
    >>> import pandas as pd
    >>> snapshot = pd.DataFrame({"snapshot_id": "s", "user": ["0xa", "0xa", "0xb"],
    ...     "collateral_token": ["hyperliquid:USDC", "eqx:USDC", "hyperliquid:USDC"],
    ...     "account_value": [70.0, 30.0, 5.0], "account_mode": [0, 0, 2]})
    >>> values(snapshot)[["user", "mode", "value"]]
      user      mode  value
    0  0xa  standard  100.0
    1  0xb   unified    5.0
    """
    keys = grouping.list_keys(by)
    if wrong := [key for key in keys if key not in ("token", "dex")]:
        raise ValueError(f"by must be token or dex, not {wrong[0]!r}")
    made = worth_of(snapshot, keys)
    return given(made, {"snapshot": snapshot}, "accounts.values")


def worth_of(snapshot: Any, split: Sequence[str], wanted: Iterable[str] = ()) -> pd.DataFrame:
    """Give values as pandas, one row for each account and each of `split`."""
    snapshot = count_once(snapshot, "snapshot")
    frame = engines.to_pandas(snapshot)
    opened = columns.open_frame(frame, "snapshot")
    if {"user", "value", "mode", *split} <= set(frame.columns):
        return frame
    needed = ["user", "account_value"]
    needed += ["account_mode"] * ("mode" in wanted) + list(_NOTIONALS) * ("notional" in wanted)
    needed += ["collateral_token"] * ("token" in split)
    needed += ["collateral_token"] * ("dex" in split and "dex" not in frame.columns)
    columns.require_columns(opened, dict.fromkeys(needed), "snapshot")
    columns.number_kind(opened, ("account_value", *_NOTIONALS), "snapshot")
    if "snapshot_id" in frame.columns and frame["snapshot_id"].nunique() > 1:
        raise ValueError("snapshot: it holds several snapshots; give one at a time")
    frame = distinct_rows(frame, ("user", "collateral_token", "dex"), "snapshot")
    made = pd.DataFrame({"user": frame["user"]})
    for name in split:
        made[name] = _part(frame, name)
    made["mode"] = _modes(frame)
    for name, column in zip(
        ("value", "long", "short"), ("account_value", *_NOTIONALS), strict=True
    ):
        made[name] = frame[column].astype("float64") if column in frame.columns else np.nan
    return _added(made, ["user", *split])


def _added(made: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Add the rows of each account up; a part that is missing makes the sum missing."""
    grouped = made.groupby(list(keys), sort=True, as_index=False)
    money = ["value", "long", "short"]
    lost = made[money].isna().groupby([made[key] for key in keys], sort=True).any()
    sums = grouped.agg({"mode": "first", **dict.fromkeys(money, "sum")})
    for name in money:
        sums[name] = sums[name].astype("float64").mask(lost[name].to_numpy())
    return sums.astype({**dict.fromkeys(keys, "str"), "mode": "str"})


def _part(frame: pd.DataFrame, name: str) -> pd.Series:
    """Give the dex or the token of ``<dex>:<token>``; a bare token is on every dex."""
    if name == "dex" and "collateral_token" not in frame.columns:
        return frame["dex"].astype("str")
    whole = frame["collateral_token"].astype("str")
    parts = whole.str.rpartition(":")
    return parts[2] if name == "token" else parts[0].where(parts[0] != "", "all")


def _modes(frame: pd.DataFrame) -> pd.Series:
    if "account_mode" not in frame.columns:
        return pd.Series([None] * len(frame), index=frame.index, dtype="str")
    mode = frame["account_mode"].astype("Int64")
    named = mode.map(MODES).astype("str")
    other = ("mode " + mode.astype("str")).astype("str")
    return named.where(mode.isin(list(MODES)) | mode.isna(), other)


def groups(frame: pd.DataFrame, keys: Sequence[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Give each group of rows with its label; all rows without keys."""
    if wrong := [key for key in keys if key not in frame.columns]:
        raise ValueError(f"by={wrong[0]!r}: choose of user, mode, token, dex")
    if not keys:
        return [((), frame)]
    return frame.groupby(list(keys), sort=True, dropna=False)


def label_of(label: Any) -> tuple[Any, ...]:
    """Give a group's label as a tuple."""
    return label if isinstance(label, tuple) else (label,)


def given(made: pd.DataFrame, inputs: dict[str, Any], helper: str, **facts: Any) -> Any:
    """Return a result in the engine of its first input, with `facts` in its provenance."""
    table = pa.Table.from_pandas(made, preserve_index=False)
    return engines.result_from_table(table, inputs, helper=helper, **facts)
