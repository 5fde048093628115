"""Account values by account, mode, token and dex, and the leverage of accounts."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import frame_access, grouping, memory_frames
from toolkit.analysis.common.account_values import MODES, distinct_rows
from toolkit.analysis.common.repeated_rows import drop_repeated_rows

_NOTIONALS = ("total_long_notional", "total_short_notional")


def values(snapshot: IntoFrameT, by: str | Iterable[str] | None = None) -> IntoFrameT:
    """Compute the value of each account, with its margin mode (standard, unified, portfolio, ...).

    Parameters
    ----------
    snapshot : DataFrame
        Account values from `tk.account_value_snapshots`: ``user, collateral_token, account_value,
        account_mode`` and optionally ``total_long_notional, total_short_notional``; or the accounts
        of `tk.batch_clearinghouse_states` (``user, dex, account_value``), which have no mode; or a
        result of `values`. A result by token or dex is summed to the rows that `by` asks for.
        pandas, Polars, DuckDB, PySpark; float or exact.
    by : {"token", "dex"} or list of them, optional
        ``"token"``: one row for each account and collateral token; ``"dex"``: one row for each
        account and dex. Without it, one row for each account.

    Returns
    -------
    DataFrame
        The engine of `snapshot`, floats, sorted by user:

        - ``user``: address of the account, in lower case.
        - ``token``: collateral token. Only by token.
        - ``dex``: dex of the collateral. Only by dex.
        - ``mode``: account mode: ``"standard"``, ``"dex abstraction"``, ``"unified"``, ``"portfolio
          margin"``, or ``"mode 7"`` for an unknown one; missing if the frame has no mode.
        - ``value``: sum of the account's values, in USD; missing if one of them is missing.
        - ``long``: notional of the long positions, in USD, positive; missing without the column
          ``total_long_notional``.
        - ``short``: notional of the short positions, in USD, positive; missing without the column
          ``total_short_notional``.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If the frame contains several snapshots, or `by` names something else.

    Notes
    -----
    Unified and portfolio-margin accounts keep their equity in the spot wallet. A snapshot's
    ``account_value`` includes it, a clearinghouse state does not. ``pm_total_account_value``
    repeats the total on every row of an account, so it is never summed. Tokens other than USDC
    count at par. Repeated rows count once.

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
    result = values_table(snapshot, keys)
    native: IntoFrameT = to_engine(result, {"snapshot": snapshot}, "accounts.values")
    return native


def leverage(snapshot: IntoFrameT, by: str | Iterable[str] | None = ("mode",)) -> IntoFrameT:
    """Compute the leverage of accounts: their long and short notional divided by their value.

    Parameters
    ----------
    snapshot : DataFrame
        As for `values`, with ``total_long_notional, total_short_notional``; or a result of
        `values`, also by token or dex: each account counts once.
    by : {"mode", "token", "dex", "user"} or list of them, default ("mode",)
        One row for each group. None: one row.

    Returns
    -------
    DataFrame
        The engine of `snapshot`, sorted by the groups: the columns of `by`, then

        - ``mode``: account mode, as in `values`. Only by mode.
        - ``accounts``: number of accounts with a known value and notional.
        - ``exposed``: number of accounts with a position.
        - ``missing``: number of accounts without a known value or notional. They are in no
          sum.
        - ``value``: value of the accounts, in USD.
        - ``long``: notional of the long positions, in USD.
        - ``short``: notional of the short positions, in USD, positive.
        - ``leverage``: (long + short) / value; missing if the value is not above 0.
        - ``net``: (long - short) / (long + short), from -1 (all short) to 1 (all long).
        - ``median_leverage``: median leverage of the exposed accounts with a value above 0.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        As for `values`.

    Notes
    -----
    The leverage of a unified account is against its full value. Against its perp equity, which may
    be 0, the account would look as if it had no money. Long and short positions on two dexes do not
    net.

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
    frame = values_table(
        snapshot, [key for key in keys if key in ("token", "dex")], (*keys, "notional")
    )
    figures = [(*label, *_leverage_figures(group)) for label, group in split_groups(frame, keys)]
    counts = ("accounts", "exposed", "missing")
    money = ("value", "long", "short", "leverage", "net", "median_leverage")
    result = pd.DataFrame(figures, columns=[*keys, *counts, *money])
    result = result.astype(
        dict.fromkeys(keys, "str")
        | dict.fromkeys(counts, "int64")
        | dict.fromkeys(money, "float64")
    )
    native: IntoFrameT = to_engine(result, {"snapshot": snapshot}, "accounts.leverage")
    return native


def _leverage_figures(group: pd.DataFrame) -> tuple[Any, ...]:
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


def values_table(
    snapshot: IntoFrame, split: Sequence[str], wanted: Iterable[str] = (), what: str = "snapshot"
) -> pd.DataFrame:
    """Return values as pandas, one row for each account and each of `split`.

    A result of `values` may be split by more than `split`: its rows are then summed. A result with
    further columns of the user, such as a time, keeps those that are in ``wanted``. Messages name
    the snapshot as ``what``.
    """
    snapshot = drop_repeated_rows(snapshot, "snapshot", what)
    frame = memory_frames.to_pandas(snapshot)
    opened = frame_access.open_frame(frame, what)
    if {"user", "value", "mode", *split} <= set(frame.columns):
        return _join_parts(frame, [*split, *(key for key in wanted if key in frame.columns)])
    needed = ["user", "account_value"]
    needed += ["account_mode"] * ("mode" in wanted) + list(_NOTIONALS) * ("notional" in wanted)
    needed += ["collateral_token"] * ("token" in split)
    needed += ["collateral_token"] * ("dex" in split and "dex" not in frame.columns)
    frame_access.require_columns(opened, dict.fromkeys(needed), what)
    frame_access.number_kind(opened, ("account_value", *_NOTIONALS), what)
    if "snapshot_id" in frame.columns and frame["snapshot_id"].nunique() > 1:
        raise ValueError(
            f"{what}: the frame contains several snapshots. Pass one snapshot at a time"
        )
    frame = distinct_rows(frame, ("user", "collateral_token", "dex"), what)
    accounts = pd.DataFrame({"user": frame["user"]})
    for name in split:
        accounts[name] = _split_token(frame, name)
    accounts["mode"] = _mode_names(frame)
    for name, column in zip(
        ("value", "long", "short"), ("account_value", *_NOTIONALS), strict=True
    ):
        accounts[name] = frame[column].astype("float64") if column in frame.columns else np.nan
    return _sum_accounts(accounts, ["user", *split])


def _join_parts(frame: pd.DataFrame, split: Sequence[str]) -> pd.DataFrame:
    """Sum a result of `values` by token or dex, so that each account has one row for `split`."""
    if not {"token", "dex"} & (set(frame.columns) - set(split)):
        return frame
    keys = [key for key in dict.fromkeys(["user", *split]) if key != "mode"]
    return _sum_accounts(frame, keys, dropna=False)


def _sum_accounts(
    accounts: pd.DataFrame, keys: Sequence[str], *, dropna: bool = True
) -> pd.DataFrame:
    """Sum the rows of each account; a missing part makes the sum missing."""
    grouped = accounts.groupby(list(keys), sort=True, as_index=False, dropna=dropna)
    money = [name for name in ("value", "long", "short") if name in accounts.columns]
    is_missing = (
        accounts[money]
        .isna()
        .groupby([accounts[key] for key in keys], sort=True, dropna=dropna)
        .any()
    )
    sums = grouped.agg({"mode": "first", **dict.fromkeys(money, "sum")})
    for name in money:
        sums[name] = sums[name].astype("float64").mask(is_missing[name].to_numpy())
    texts = [key for key in keys if key in ("user", "token", "dex")]
    return sums.astype({**dict.fromkeys(texts, "str"), "mode": "str"})


def _split_token(frame: pd.DataFrame, name: str) -> pd.Series:
    """Return the dex or the token of ``<dex>:<token>``; a bare token belongs to all dexes."""
    if name == "dex" and "collateral_token" not in frame.columns:
        return frame["dex"].astype("str")
    whole = frame["collateral_token"].astype("str")
    parts = whole.str.rpartition(":")
    return parts[2] if name == "token" else parts[0].where(parts[0] != "", "all")


def _mode_names(frame: pd.DataFrame) -> pd.Series:
    if "account_mode" not in frame.columns:
        return pd.Series([None] * len(frame), index=frame.index, dtype="str")
    mode = frame["account_mode"].astype("Int64")
    named = mode.map(MODES).astype("str")
    other = ("mode " + mode.astype("str")).astype("str")
    return named.where(mode.isin(list(MODES)) | mode.isna(), other)


def split_groups(frame: pd.DataFrame, keys: Sequence[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Return each group of rows with its label; without keys, all rows."""
    if wrong := [key for key in keys if key not in frame.columns]:
        raise ValueError(f"by must be user, mode, token or dex, not {wrong[0]!r}")
    if not keys:
        return [((), frame)]
    return frame.groupby(list(keys), sort=True, dropna=False)


def to_engine(result: pd.DataFrame, inputs: dict[str, Any], helper: str, **facts: Any) -> Any:
    """Return a result in the engine of its first input, with `facts` in its provenance."""
    table = pa.Table.from_pandas(result, preserve_index=False)
    return memory_frames.result_from_table(table, inputs, helper=helper, **facts)
