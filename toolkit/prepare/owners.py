"""Owners of rows: each account gets only its own funding, ledger and positions.

A builder's funding frame has the rows of every account that approved the builder. A ledger may
have the rows of many accounts. Fills of one account do not repeat its address in each row.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Flags
from toolkit.errors import MissingColumns
from toolkit.prepare.door import Table
from toolkit.prepare.provenance import frame_provenance

SEVERAL_ACCOUNTS = (
    "{what}: the rows seem to be of several accounts ({how}), but no column names the account. "
    "Add a column user, as tk.many and tk.concat do, or pass one account at a time"
)


class Owners(NamedTuple):
    """The accounts of fills, in lower case.

    - ``users``: the accounts in the column ``user``; None if the fills have no rows or no such
      column
    - ``names``: accounts that are known from elsewhere
    """

    users: Sequence[str] | None
    names: Sequence[str]


def account_names(native: Any, account: str | None = None) -> list[str]:
    """Return `account`, or else the accounts that a frame was fetched for, in lower case.

    Only pandas frames have this provenance. If a frame of several accounts lost rows since, it may
    be of any of them, and the result is empty.
    """
    if account is not None:
        return [account.lower()]
    facts = frame_provenance(native)
    parameters = facts.get("parameters")
    if not isinstance(parameters, Mapping):
        return []
    user, users = parameters.get("user"), parameters.get("users")
    if isinstance(user, str):
        return [user.lower()]
    if isinstance(users, list | tuple) and facts.get("rows") == len(native):
        return [str(name).lower() for name in users]
    return []


def refuse_several_accounts(frame: pd.DataFrame, what: str) -> None:
    """Raise if a frame was fetched for several accounts and no longer has a column of them.

    A helper that processes the history of one account would take their rows for one chain.

    Raise ValueError if the frame was fetched for several accounts, has all its rows, and has no
    column that names the account.
    """
    facts = frame_provenance(frame)
    parameters = facts.get("parameters")
    if {"user", "account"} & set(frame.columns) or not isinstance(parameters, Mapping):
        return
    if facts.get("rows") != len(frame):  # the user may have selected the rows of one account
        return
    users = parameters.get("users")
    if isinstance(users, list | tuple) and len(set(users)) > 1:
        how = f"fetched for {len(users)} accounts"
        raise ValueError(SEVERAL_ACCOUNTS.format(what=what, how=how))
    if parameters.get("builder") or parameters.get("builders"):
        raise ValueError(SEVERAL_ACCOUNTS.format(what=what, how="all accounts of a builder"))


def is_owned(table: Table, column: str, owners: Owners) -> Flags:
    """Return which rows are of the owners: the named ones, and those in the user column.

    Raise ValueError if the rows are of several accounts and the account of the fills is not known.
    """
    if not table.has(column):
        return np.ones(len(table), dtype=bool)
    known = {*owners.names, *(owners.users or ())} - {""}
    if owners.users is not None or owners.names:
        return np.asarray(table.text(column).facts(known.__contains__))
    count = table.text(column).count_names()
    if count > 1:
        raise ValueError(
            f"{table.what}: the frame has rows of {count} accounts, but the account of the fills "
            f"is not known. Pass account=, or select its rows: "
            f"{table.what}[{table.what}.{column} == address]"
        )
    return np.ones(len(table), dtype=bool)


def check_owner(table: Table, fills: Table) -> None:
    """Raise `MissingColumns` if fills are of several accounts and the rows have no user."""
    if table.has("user") or not fills.has("user"):
        return
    count = fills.text("user").count_names()
    if count > 1:
        raise MissingColumns(
            f"{table.what}: the frame has no column user, and the fills are of {count} accounts. "
            f"Add the account of its rows: {table.what}.assign(user=address)"
        )
