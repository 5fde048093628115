"""Whose rows they are: an account is credited with its own funding and ledger, nobody else's.

A builder's funding frame holds every account that approved the builder, and a ledger of many
accounts all of them, while fills of one account do not repeat its address in each row.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import narwhals as nw
import pandas as pd

from toolkit.analysis.columns import Frame


class Accounts(NamedTuple):
    """The accounts that fills are of.

    Attributes
    ----------
    fills : Frame
        The fills; those of several accounts have a column `user`.
    names : list of str
        Accounts known otherwise, in lower case.
    """

    fills: Frame
    names: Sequence[str]


def named(native: Any, account: str | None = None) -> list[str]:
    """Give the accounts that a frame was fetched for (`account`, if given), in lower case.

    Only pandas frames carry what was asked. Of many accounts asked for, a frame that lost rows
    since may hold any, so nobody is named.
    """
    if account is not None:
        return [account.lower()]
    facts = native.attrs.get("toolkit") if isinstance(native, pd.DataFrame) else None
    asked = facts.get("parameters") if isinstance(facts, Mapping) else None
    if not isinstance(facts, Mapping) or not isinstance(asked, Mapping):
        return []
    user, users = asked.get("user"), asked.get("users")
    if isinstance(user, str):
        return [user.lower()]
    whole = isinstance(users, list | tuple) and facts.get("rows") == len(native)
    return [str(one).lower() for one in users or ()] if whole else []


def own(rows: Frame, column: Literal["user", "account"], of: Accounts, what: str) -> Frame:
    """Keep the rows of the fills' accounts: those named, and those in the fills' user column.

    Raises
    ------
    ValueError
        If the rows belong to several accounts and nothing says which of them the fills are of.
    """
    if column not in rows.collect_schema().names():
        return rows
    rows = rows.with_columns(_whose=address(column))
    mine = nw.col("_whose").is_in([*of.names, "nobody"])  # Arrow has no empty list of texts
    if "user" in of.fills.collect_schema().names() and not _is_empty(of.fills):
        users: Any = of.fills.select(_whose=address("user")).unique(["_whose"])
        joined: Frame = rows.join(users.with_columns(_known=nw.lit(1)), on="_whose", how="left")
        return joined.filter(mine | ~nw.col("_known").is_null())
    if of.names:
        return rows.filter(mine)
    count = _distinct(rows)
    if count > 1:
        raise ValueError(
            f"{what}: it holds rows of {count} accounts, and the fills do not say whose they are: "
            f"name the account (account=), or keep its rows ({what}[{what}.{column} == address])"
        )
    return rows


def address(column: str) -> nw.Expr:
    """Give addresses as they compare: case means nothing in them."""
    # Arrow joins text only with text of the same width.
    return nw.col(column).cast(nw.String()).str.to_lowercase()


def _is_empty(fills: Frame) -> bool:
    # A lazy frame is not read for that: its user column decides, whatever it holds.
    return isinstance(fills, nw.DataFrame) and fills.is_empty()


def _distinct(rows: Frame) -> int:
    count = rows.select(_count=nw.col("_whose").n_unique())
    table = count.collect() if isinstance(count, nw.LazyFrame) else count
    return int(table["_count"].to_list()[0] or 0)
