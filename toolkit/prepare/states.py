"""States of accounts at one moment: open positions, account values, and account modes.

The account mode decides where the collateral is. A clearinghouse state of a unified or
portfolio-margin account does not have its spot wallet, which backs its positions. An account value
of a snapshot does.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from toolkit.arrays import Ints
from toolkit.contract.dexes import coin_dex
from toolkit.display import count_text
from toolkit.errors import warn_caller
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


def open_positions(
    native: Frame, numbers: Sequence[str] = (), texts: Sequence[str] = ()
) -> pd.DataFrame:
    """Return open positions of one moment, each once.

    The result has ``user``, ``coin``, ``szi``, ``position_value``, ``side``, ``size`` and
    ``notional`` without sign, ``mark``, the `numbers` and `texts`, and ``dex`` and ``max_leverage``
    if the frame has them. Raise MissingColumns if a column or a size is missing, and ValueError if
    rows are of several moments or contradict each other.
    """
    table = Table(native, "positions")
    amounts = ("szi", "position_value", *numbers)
    table.require(("user", "coin", *amounts, *texts))
    table.require_values(["szi"])
    optional = ("dex", "max_leverage")
    rows = table.columns(("user", "coin", *amounts, *texts), optional, (*amounts, "max_leverage"))
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


def without_spot_backed(owners: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return states of accounts without the values of those whose collateral is in the spot wallet.

    - ``name``: the column of the value

    Warn if there are such accounts. Without a column ``account_mode`` no mode is known.
    """
    if "account_mode" not in owners:
        return owners
    is_backed = owners["account_mode"] >= UNIFIED
    if not is_backed.any():
        return owners
    users = owners.loc[is_backed, "user"].unique()
    warn_caller(
        f"accounts: {count_text(len(users), 'account')} with unified or portfolio margin "
        f"({name_some(users)}): the collateral is in the spot wallet, which states do not have, so "
        f"the value is unknown. To measure an account, set {name} to all of its collateral, and "
        "account_mode to missing",
        UserWarning,
    )
    return owners.assign(**{name: owners[name].mask(is_backed)})


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
