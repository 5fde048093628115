"""States of accounts at one moment: open positions, account values, and account modes.

The account mode decides where the collateral is. A clearinghouse state of a unified or
portfolio-margin account does not have its spot wallet, which backs its positions. An account value
of a snapshot does.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.contract.dexes import coin_dex
from toolkit.display import count_text
from toolkit.errors import UnmeasuredAccounts, warn_caller
from toolkit.prepare.door import NATIVE_DEX, NO_TIME, Frame, Table
from toolkit.prepare.groups import number_groups

UNIFIED: Final = 2
"""From this mode on the collateral is in the spot wallet: 2 unified, 3 portfolio margin."""

PORTFOLIO_MARGIN: Final = 3
"""The mode of portfolio margin."""

MODES: Final = {0: "standard", 1: "dex abstraction", 2: "unified", 3: "portfolio margin"}
"""Names of account modes (specification, "Account value snapshot")."""

STATED: Final = "cross_maintenance_margin_used"
"""The maintenance margin as the exchange states it."""

BACKSTOP_SHARE: Final = 2 / 3
"""Below this share of the maintenance margin, the exchange takes over the positions at once."""


def open_positions(
    native: Frame, numbers: Sequence[str] = (), texts: Sequence[str] = ()
) -> pd.DataFrame:
    """Return open positions of one moment, each once.

    The result has ``user``, ``coin``, ``szi``, ``position_value``, ``side``, ``size`` and
    ``notional`` without sign, ``mark``, the `numbers` and `texts`, and ``dex``, ``max_leverage``
    and ``unrealized_pnl`` if the frame has them. Raise MissingColumns if a column or a size is
    missing, and ValueError if rows are of several moments or contradict each other.
    """
    table = Table(native, "positions")
    amounts = ("szi", "position_value", *numbers)
    table.require(("user", "coin", *amounts, *texts))
    table.require_values(["szi"])
    optional = ("max_leverage", "unrealized_pnl")
    rows = table.columns(
        ("user", "coin", *amounts, *texts), ("dex", *optional), (*amounts, *optional)
    )
    rows["user"] = rows["user"].astype("str").fillna("")
    own = dex_names(rows["coin"])
    if table.has("time"):
        check_one_moment(rows.assign(dex=own), ["user", "dex"], table.ms(), "positions")
    if "dex" in rows:
        rows["dex"] = rows["dex"].fillna(own)
    rows = rows[rows["szi"] != 0].reset_index(drop=True)
    rows = distinct_states(rows, ["user", "coin"], ["szi", "position_value"], "positions")
    size, notional = rows["szi"].abs(), rows["position_value"].abs()
    side = pd.array(np.where(rows["szi"] > 0, "long", "short"), dtype="str")
    return rows.assign(side=side, size=size, notional=notional, mark=notional / size)


def account_states(native: Frame) -> pd.DataFrame:
    """Return accounts of one moment: ``user``, cross account value, and what else is known.

    The result has ``dex``, the stated maintenance margin and ``account_mode`` if the frame has
    them. Raise as `open_positions`.
    """
    table = Table(native, "accounts")
    value = "cross_account_value"
    rows = table.columns(
        ("user", value), ("dex", STATED, "account_mode"), (value, STATED, "account_mode")
    )
    rows["user"] = rows["user"].astype("str").fillna("")
    keys = ["user", *(["dex"] if table.has("dex") else [])]
    if table.has("time"):
        check_one_moment(rows, keys, table.ms(), "accounts")
    values = [name for name in (value, STATED) if name in rows]
    return distinct_states(rows, keys, values, "accounts")


def join_keys(owners: pd.DataFrame, positions: pd.DataFrame) -> list[str]:
    """Return the columns that join positions with their accounts: user, and dex if both have it.

    If accounts have several dexes and positions have no column dex, this adds it, from the names of
    the coins. Raise ValueError if accounts have no column dex and cross positions of one account
    are on several dexes, because each dex has an account of its own.
    """
    if "dex" in owners and "dex" not in positions and owners["user"].duplicated().any():
        positions["dex"] = dex_names(positions["coin"])
    if "dex" in owners:
        return ["user", "dex"] if "dex" in positions else ["user"]
    dex = positions["dex"] if "dex" in positions else dex_names(positions["coin"])
    cross = positions.assign(dex=dex)[positions["leverage_type"] != "isolated"]
    places = cross[["user", "dex"]].drop_duplicates()
    if (several := places["user"].duplicated(keep=False)).any():
        user = places.loc[several, "user"].iloc[0]
        dexes = ", ".join(sorted(places.loc[places["user"] == user, "dex"]))
        raise ValueError(
            f"accounts: column dex is missing, and {user} has cross positions on several dexes: "
            f"{dexes}. Each dex has an account of its own. Keep the column dex of the states"
        )
    return ["user"]


LEAST_MARGIN: Final = 0.01
"""The smallest maintenance margin as a share of the notional: that of 50 times leverage."""


def is_spot_backed(mode: Any, value: Any, gain: Any, least: Any) -> Flags:
    """Return whether the collateral of accounts is in the spot wallet, not in their states.

    - ``mode``: account mode; NaN if it is not known
    - ``value``, ``gain``: cross account value, and unrealised PnL of the cross positions
    - ``least``: value below which the positions of a standard account are taken over at once

    Without a mode, the state decides: such an account has no cash of its own, so its value is its
    unrealised PnL; or the value is too small for a standard account.
    """
    hidden = (value < least) | np.isclose(value, gain, rtol=1e-9, atol=1e-5)
    return np.where(np.isnan(mode), hidden & ~np.isnan(gain), np.asarray(mode) >= UNIFIED)


def spot_backed_users(table: Table, held: Table) -> set[str]:
    """Return the accounts of states whose collateral is in the spot wallet.

    - ``table``, ``held``: accounts and positions, with ``unrealized_pnl``, of one moment
    """
    value = "cross_account_value"
    if not table.has(value):  # values of a snapshot include the spot wallet
        return set()
    owners = table.columns(("user", value), ("account_mode",), (value, "account_mode"))
    amounts = ("unrealized_pnl", "position_value")
    rows = held.columns(("user", amounts[0]), ("leverage_type", amounts[1]), amounts)
    sums, backed, _ = find_spot_backed(owners, rows, ["user"])
    return set(sums["user"][backed])


def find_spot_backed(
    owners: pd.DataFrame, rows: pd.DataFrame, on: Sequence[str]
) -> tuple[pd.DataFrame, Flags, Floats]:
    """Return accounts, whether the collateral of each is in the spot wallet, and their modes.

    - ``owners``: `on`, ``cross_account_value``, and ``account_mode`` if known
    - ``rows``: positions: `on`, ``unrealized_pnl``, and ``position_value``, ``leverage_type``
    - ``on``: the columns that name an account
    """
    codes, accounts = number_groups(owners[[*on]])
    cross = rows[rows["leverage_type"] != "isolated"] if "leverage_type" in rows else rows
    known = cross.groupby([*on])[["unrealized_pnl", *({"position_value"} & {*cross})]].sum()
    found = accounts.merge(known.reset_index(), on=[*on], how="left")
    mode = np.full(len(accounts), np.nan)
    if "account_mode" in owners:
        mode = owners["account_mode"].groupby(codes).max().to_numpy(dtype=np.float64)
    value = np.bincount(codes, owners["cross_account_value"], len(accounts))
    least = BACKSTOP_SHARE * LEAST_MARGIN * found.get("position_value", 0.0)
    return accounts, is_spot_backed(mode, value, found["unrealized_pnl"], least), mode


def warn_spot_backed(users: pd.Series, modes: Floats) -> None:
    """Warn if there are accounts whose collateral is in the spot wallet."""
    if users.empty:
        return
    names = users.unique()
    guess = "" if not np.isnan(modes).any() else (
        ". account_mode is not known: their cash is 0, or their value is below the level at which "
        "a standard account is taken over"
    )  # fmt: skip
    warn_caller(
        f"accounts: {count_text(len(names), 'account')} with unified or portfolio margin "
        f"({name_some(names)}): the collateral is in the spot wallet, which states do not have, so "
        f"the value is unknown{guess}. Pass the account values of tk.account_value_snapshots as "
        "accounts, which include it",
        UnmeasuredAccounts,
    )


def own_values(rows: pd.DataFrame, split: Sequence[str] = ()) -> Floats:
    """Return the part of each row in the value of its account.

    Of a portfolio-margin account the rows state the value of each token, so several dexes of one
    token repeat it. It counts once, and is missing by dex. Without `split` the stated total counts.
    """
    value = rows["account_value"].to_numpy(dtype=np.float64).copy()
    portfolio = rows["account_mode"] == PORTFOLIO_MARGIN
    if "token" not in rows or not portfolio.any():
        return value
    repeats = (portfolio & rows.duplicated(["user", "token"])).to_numpy()
    if "dex" in split:
        shared = portfolio & rows.duplicated(["user", "token"], keep=False)
        return np.where(shared, np.nan, value)
    value[repeats] = 0.0
    if not split:
        totals = rows["pm_total_account_value"].where(portfolio).groupby(rows["user"])
        total = totals.transform("first").to_numpy(dtype=np.float64)
        first = ~rows["user"].duplicated().to_numpy()
        value = np.where(np.isnan(total), value, np.where(first, total, 0.0))
    return value


def name_some(names: Iterable[str], most: int = 5) -> str:
    """Return the first names, in words."""
    names = [name or "no name" for name in names]
    return ", ".join(names[:most]) + (" and others" if len(names) > most else "")


def check_one_moment(rows: pd.DataFrame, keys: Sequence[str], ms: Ints, what: str) -> None:
    """Raise ValueError if states are of several moments: closed positions would still count.

    - ``keys``: columns of which each combination must have one time
    - ``ms``: time of each row; a missing one is not compared
    """
    codes = number_groups(rows[[*keys]])[0]
    known = np.flatnonzero(ms != NO_TIME)
    first = np.zeros(len(rows), dtype=np.int64)
    first[codes[known[::-1]]] = ms[known[::-1]]
    later = known[ms[known] != first[codes[known]]]
    if len(later):
        times = np.unique(ms[known[codes[known] == codes[later[0]]]])
        raise ValueError(
            f"{what}: rows of {rows[keys[0]].iloc[later[0]]} have {len(times)} different times. "
            f"Keep one batch of states, for example {what}[{what}.time == {what}.time.max()]"
        )


def distinct_states(
    rows: pd.DataFrame, keys: Sequence[str], values: Sequence[str], what: str
) -> pd.DataFrame:
    """Return the first row of each key; `rows` and the result have an index from 0.

    Raise ValueError if two rows of a key have different values.
    """
    codes, groups = number_groups(rows[[*keys]])
    if len(groups) == len(rows):
        return rows
    first = np.zeros(len(groups), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(rows))[::-1]
    one, other = (rows[[*values]].iloc[places].reset_index(drop=True) for places in (
        np.arange(len(rows)), first[codes]
    ))  # fmt: skip
    differs = ((one != other) & ~(one.isna() & other.isna())).any(axis=1).to_numpy()
    if differs.any():
        name = " ".join(rows[[*keys]].iloc[int(np.argmax(differs))].astype("str"))
        raise ValueError(
            f"{what}: {name} has several rows with different {' or '.join(values)}, and no time "
            "says which one is newer. Pass the rows of one batch of states"
        )
    return rows.iloc[np.sort(first)].reset_index(drop=True)


def dex_names(coin: pd.Series) -> pd.Series:
    """Return the dex of each perp, from its name; the native dex for a missing name."""
    codes, names = pd.factorize(coin)
    known = np.array([*(coin_dex(str(name)) or NATIVE_DEX for name in names), NATIVE_DEX], object)
    return pd.Series(known[codes], coin.index, dtype="str", name=coin.name)
