"""Account values by account, mode, token and dex, and the leverage of accounts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import list_keys, number_groups, number_rows, ratio, sum_groups
from toolkit.prepare.provenance import finish
from toolkit.prepare.states import MODES, distinct_states, own_values

_MONEY = ("value", "long", "short")
_NOTIONALS = ("total_long_notional", "total_short_notional")


def values(snapshot: Frame, by: str | Iterable[str] | None = None) -> pd.DataFrame:
    """Compute the value of each account, with its margin mode (standard, unified, portfolio, ...).

    Parameters
    ----------
    snapshot : DataFrame
        Account values from `tk.account_value_snapshots`: ``user, collateral_token, account_value,
        account_mode`` and optionally ``total_long_notional, total_short_notional``; or the accounts
        of `tk.batch_clearinghouse_states` (``user, dex, account_value``), which have no mode; or a
        result of `values`. A result by token or dex is summed to the rows that `by` asks for.
    by : {"token", "dex"} or list of them, optional
        ``"token"``: one row for each account and collateral token; ``"dex"``: one row for each
        account and dex. Without it, one row for each account.

    Returns
    -------
    DataFrame
        Sorted by user:

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
    ``account_value`` includes it, a clearinghouse state does not. Of a portfolio-margin account a
    snapshot states the value of each token, so several dexes of one token repeat it: it counts
    once, and is missing by dex. ``pm_total_account_value`` repeats the total on every row of an
    account, and is its value. Tokens other than USDC count at par. Repeated rows count once.

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
    keys = list_keys(by)
    if wrong := [key for key in keys if key not in ("token", "dex")]:
        raise ValueError(f"by must be token or dex, not {wrong[0]!r}")
    result = values_table(snapshot, keys)
    return finish(result, {"snapshot": snapshot}, helper="accounts.values")


def leverage(snapshot: Frame, by: str | Iterable[str] | None = ("mode",)) -> pd.DataFrame:
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
        Sorted by the groups: the columns of `by`, then

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
    keys = list_keys(by)
    split = [key for key in keys if key in ("token", "dex")]
    frame = values_table(snapshot, split, (*keys, "notional"))
    codes, result = account_groups(frame, keys)
    worth, long, short = (frame[name].to_numpy(dtype=np.float64) for name in _MONEY)
    gross = long + short
    known = ~np.isnan(worth + gross)
    count = len(result)

    def sums(part: Floats) -> Floats:
        return np.bincount(codes[known], part[known], count).astype(np.float64)

    value, longs, shorts = sums(worth), sums(long), sums(short)
    whole = longs + shorts
    has_ratio = known & (gross > 0) & (worth > 0)
    own = pd.Series(gross[has_ratio] / worth[has_ratio]).groupby(codes[has_ratio]).median()
    result = result.assign(
        accounts=np.bincount(codes[known], minlength=count),
        exposed=np.bincount(codes[known & (gross > 0)], minlength=count),
        missing=np.bincount(codes[~known], minlength=count),
        value=value,
        long=longs,
        short=shorts,
        leverage=ratio(whole, value),
        net=ratio(longs - shorts, whole),
        median_leverage=own.reindex(range(count)).to_numpy(dtype=np.float64),
    )
    return finish(result, {"snapshot": snapshot}, helper="accounts.leverage")


def values_table(
    snapshot: Frame, split: Sequence[str], wanted: Iterable[str] = (), what: str = "snapshot"
) -> pd.DataFrame:
    """Return values, one row for each account and each of `split`.

    A result of `values` may be split by more than `split`: its rows are then summed. A result with
    further columns of the user, such as a time, keeps those that are in ``wanted``. Messages name
    the snapshot as ``what``.
    """
    table = Table(snapshot, what, "snapshot")
    if all(map(table.has, ("user", "value", "mode", *split))):
        rows = table.columns([*table.frame.columns], amounts=_MONEY)
        if not {"token", "dex"} & {*rows.columns} - {*split}:
            return rows
        keys = [key for key in (*split, *wanted) if key in rows.columns and key != "mode"]
        codes, groups = number_groups(rows[[*dict.fromkeys(("user", *keys))]])
        amounts = {name: rows[name].to_numpy() for name in _MONEY if name in rows}
        return groups.assign(**_sum_accounts(codes, len(groups), rows["mode"], amounts))
    needed = ["user", "account_value"]
    needed += ["account_mode"] * ("mode" in wanted) + list(_NOTIONALS) * ("notional" in wanted)
    needed += ["collateral_token"] * ("token" in split)
    needed += ["collateral_token"] * ("dex" in split and not table.has("dex"))
    table.require(dict.fromkeys(needed))
    if table.has("snapshot_id") and len(table.text("snapshot_id").present(blank=True)) > 1:
        raise ValueError(
            f"{what}: the frame contains several snapshots. Pass one snapshot at a time"
        )
    users = table.text("user").sorted()
    names = {"dex": table.text("dex")} if table.has("dex") else {}
    owners = [users, *names.values()]
    places = [*owners]
    if table.has("collateral_token"):  # a bare token belongs to all dexes
        stated = table.text("collateral_token")
        places.append(stated)
        names["token"] = stated.renamed(lambda name: name.rpartition(":")[2])
        names["dex"] = stated.renamed(lambda name: name.rpartition(":")[0] or "all")
    value, mode, total, long, short = (
        table.number(name, np.nan)
        for name in ("account_value", "account_mode", "pm_total_account_value", *_NOTIONALS)
    )
    compared = filter(table.has, ("account_value", "account_mode"))
    kept = distinct_states(table, owners, places, {n: table.number(n) for n in compared})
    users, mode = users.take(kept), mode[kept]
    if "token" in names:
        token = names["token"].codes[kept]
        value = own_values(users, token, value[kept], mode, total[kept], split)
    else:
        value = value[kept]
    owners = [users, *(names[name].sorted().take(kept) for name in split)]
    codes = number_rows(*(owner.codes for owner in owners))
    first = np.unique(codes, return_index=True)[1]
    amounts = {"value": value, "long": long[kept], "short": short[kept]}
    columns = dict(zip(("user", *split), (owner.texts(first) for owner in owners), strict=True))
    known = np.unique(mode[~np.isnan(mode)])
    called = {number: MODES.get(int(number), f"mode {number:g}") for number in known}
    modes = pd.Series(mode).map(called).astype("str")
    columns |= _sum_accounts(codes, len(first), modes, amounts)
    return pd.DataFrame(columns, index=range(len(first)))


def _sum_accounts(
    codes: Ints, count: int, mode: pd.Series, amounts: Mapping[str, Floats]
) -> dict[str, Any]:
    """Return the mode and the sums of each account; a missing part makes a sum missing."""
    # The mode of an account is that of its first row with one.
    modes = np.full(count, None, dtype=object)
    known = mode.notna().to_numpy()
    modes[codes[known][::-1]] = mode.to_numpy()[known][::-1]
    sums = {name: sum_groups(codes, part, count) for name, part in amounts.items()}
    return {"mode": pd.array(modes, dtype="str"), **sums}


def account_groups(frame: pd.DataFrame, keys: Sequence[str]) -> tuple[Ints, pd.DataFrame]:
    """Return the group of each account, and the groups; without keys, all accounts are one."""
    if wrong := [key for key in keys if key not in frame.columns]:
        raise ValueError(f"by must be user, mode, token or dex, not {wrong[0]!r}")
    codes, found = number_groups(frame[[*keys]], missing_last=True)
    return codes, found.astype("str") if keys else pd.DataFrame(index=range(1))
