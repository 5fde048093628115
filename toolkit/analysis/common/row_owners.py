"""Owners of rows: each account gets only its own funding and ledger.

A builder's funding frame has the rows of every account that approved the builder. A ledger may
have the rows of many accounts. Fills of one account do not repeat its address in each row.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import narwhals as nw
import pandas as pd

from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.provenance import frame_provenance
from toolkit.errors import MissingColumns

SEVERAL_ACCOUNTS = (
    "{what}: the rows seem to be of several accounts ({how}), but no column names the account. "
    "Add a column user, as tk.many and tk.concat do, or pass one account at a time"
)


class FillOwners(NamedTuple):
    """The accounts of fills.

    - ``fills``: the fills. If they are of several accounts, they have a column `user`.
    - ``names``: accounts that are known from elsewhere, in lower case
    """

    fills: Frame
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


def refuse_several_accounts(native: Any, what: str) -> None:
    """Raise if a frame was fetched for several accounts and no longer has a column of them.

    A helper that processes the history of one account would take their rows for one chain.

    Raise ValueError if the frame was fetched for several accounts, has all its rows, and has no
    column that names the account.
    """
    if not isinstance(native, pd.DataFrame) or {"user", "account"} & set(native.columns):
        return
    facts = frame_provenance(native)
    parameters = facts.get("parameters")
    if not isinstance(parameters, Mapping):
        return
    if facts.get("rows") != len(native):  # the user may have selected the rows of one account
        return
    users = parameters.get("users")
    if isinstance(users, list | tuple) and len(set(users)) > 1:
        raise ValueError(
            SEVERAL_ACCOUNTS.format(what=what, how=f"fetched for {len(users)} accounts")
        )
    if parameters.get("builder") or parameters.get("builders"):
        raise ValueError(SEVERAL_ACCOUNTS.format(what=what, how="all accounts of a builder"))


def keep_own_rows(
    rows: Frame, column: Literal["user", "account"], of: FillOwners, what: str
) -> Frame:
    """Return the rows of the fills' accounts: the named ones, and those in the user column.

    Raise ValueError if the rows are of several accounts and the account of the fills is not known.
    """
    if column not in rows.columns:
        return rows
    rows = rows.with_columns(_whose=lower_address(column))
    mine = nw.col("_whose").is_in([*of.names, "nobody"])  # Arrow has no empty list of texts
    # A lazy frame is not read here; it counts as not empty.
    is_empty = isinstance(of.fills, nw.DataFrame) and of.fills.is_empty()
    if "user" in of.fills.columns and not is_empty:
        users: Any = of.fills.select(_whose=lower_address("user")).unique(["_whose"])
        if isinstance(users, nw.DataFrame):  # Arrow cannot join a table with a column of nulls
            known = users["_whose"].drop_nulls().to_list()
            return rows.filter(mine | nw.col("_whose").is_in([*known, "nobody"]))
        joined: Frame = rows.join(users.with_columns(_known=nw.lit(1)), on="_whose", how="left")
        return joined.filter(mine | ~nw.col("_known").is_null())
    if of.names:
        return rows.filter(mine)
    count = _count_accounts(rows)
    if count > 1:
        raise ValueError(
            f"{what}: the frame has rows of {count} accounts, but the account of the fills is not "
            f"known. Pass account=, or select its rows: {what}[{what}.{column} == address]"
        )
    return rows


def check_owner(rows: Frame, fills: Frame, what: str) -> None:
    """Raise `MissingColumns` if fills are of several accounts and the rows have no user."""
    if "user" in rows.columns or "user" not in fills.columns:
        return
    count = _count_accounts(fills.select(_whose=lower_address("user")))
    if count > 1:
        raise MissingColumns(
            f"{what}: the frame has no column user, and the fills are of {count} accounts. Add the "
            f"account of its rows: {what}.assign(user=address)"
        )


def lower_address(column: str) -> nw.Expr:
    """Return a column of addresses in lower case."""
    # The cast is for Arrow, which joins texts only with texts of the same width.
    return nw.col(column).cast(nw.String()).str.to_lowercase()


def _count_accounts(rows: Frame) -> int:
    count = rows.select(_count=nw.col("_whose").n_unique())
    table = count.collect() if isinstance(count, nw.LazyFrame) else count
    return int(table["_count"].to_list()[0] or 0)
