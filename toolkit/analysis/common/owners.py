"""Whose rows they are: an account is credited with its own funding and ledger, nobody else's.

A builder's funding frame holds every account that approved the builder, and a ledger of many
accounts all of them, while fills of one account do not repeat its address in each row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import narwhals as nw
import pandas as pd

from toolkit.analysis.common.columns import Frame
from toolkit.errors import MissingColumns

_SEVERAL = (
    "{what}: these look like rows of several accounts ({how}), and no column says whose each row "
    "is. Add a column user, as tk.many and tk.concat do, or pass one account at a time"
)
_RESUMED = 3  # fewer may be chance


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


def account_names(native: Any, account: str | None = None) -> list[str]:
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


def refuse_several_accounts(native: Any, what: str) -> None:
    """Refuse a frame that was fetched for several accounts and no longer names them.

    A helper that walks along one account's history would take their rows for one chain.

    Raises
    ------
    ValueError
        If the frame is as long as it was fetched, was fetched for several accounts, and has no
        column that names the account.
    """
    if not isinstance(native, pd.DataFrame) or {"user", "account"} & set(native.columns):
        return
    facts = native.attrs.get("toolkit")
    asked = facts.get("parameters") if isinstance(facts, Mapping) else None
    if not isinstance(facts, Mapping) or not isinstance(asked, Mapping):
        return
    if facts.get("rows") != len(native):  # rows of one account may have been chosen
        return
    users = asked.get("users")
    if isinstance(users, list | tuple) and len(set(users)) > 1:
        raise ValueError(
            _SEVERAL.format(what=what, how=f"it was fetched for {len(users)} accounts")
        )
    if asked.get("builder") or asked.get("builders"):
        raise ValueError(_SEVERAL.format(what=what, how="it holds every account of a builder"))


def refuse_mixed_chains(
    chains: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    order: Sequence[int],
    names: Sequence[str],
) -> None:
    """Refuse fills without a user column whose positions are those of several accounts.

    Where fills of one account are missing, the chain of its positions breaks and goes on from
    somewhere else. Where fills of several accounts are mixed, it breaks and later goes on from
    where it was left, over and over.

    Few breaks prove nothing: two accounts that each go on once look like one account whose fills
    are missing twice. So a handful of fills of two accounts, concatenated without a column user,
    passes here. `tk.concat` and `tk.many` name the account of each row.

    Parameters
    ----------
    chains : sequence of int
        Which chain each fill belongs to.
    starts, ends : sequence of int
        The position before and after each fill.
    order : sequence of int
        The order of execution, chain by chain.
    names : sequence of str
        The columns of the frame.

    Raises
    ------
    ValueError
        If at least three breaks go on from a position that was left before, and more than twice
        as many as go on from a new one.
    """
    if "user" in names:
        return
    last, position, resumed, begun = -1, 0, 0, 0
    left: Counter[int] = Counter()
    for row in order:
        start = starts[row]
        if chains[row] != last:
            last, left = chains[row], Counter()
        elif start != position:
            left[position] += 1
            if start and left[start] > 0:
                left[start] -= 1
                resumed += 1
            elif start:
                begun += 1
        position = ends[row]
    if resumed >= _RESUMED and resumed > 2 * begun:
        how = f"{resumed} fills go on from a position that another fill left before"
        raise ValueError(_SEVERAL.format(what="fills", how=how))


def keep_own_rows(
    rows: Frame, column: Literal["user", "account"], of: Accounts, what: str
) -> Frame:
    """Keep the rows of the fills' accounts: those named, and those in the fills' user column.

    Raises
    ------
    ValueError
        If the rows belong to several accounts and nothing says which of them the fills are of.
    """
    if column not in rows.collect_schema().names():
        return rows
    rows = rows.with_columns(_whose=lower_address(column))
    mine = nw.col("_whose").is_in([*of.names, "nobody"])  # Arrow has no empty list of texts
    if "user" in of.fills.collect_schema().names() and not _is_empty(of.fills):
        users: Any = of.fills.select(_whose=lower_address("user")).unique(["_whose"])
        joined: Frame = rows.join(users.with_columns(_known=nw.lit(1)), on="_whose", how="left")
        return joined.filter(mine | ~nw.col("_known").is_null())
    if of.names:
        return rows.filter(mine)
    count = _count_accounts(rows)
    if count > 1:
        raise ValueError(
            f"{what}: it holds rows of {count} accounts, and the fills do not say whose they are: "
            f"name the account (account=), or keep its rows ({what}[{what}.{column} == address])"
        )
    return rows


def check_owner(rows: Frame, fills: Frame, what: str) -> None:
    """Raise `MissingColumns` if fills of several accounts meet rows that name none."""
    if "user" in rows.collect_schema().names() or "user" not in fills.collect_schema().names():
        return
    count = _count_accounts(fills.select(_whose=lower_address("user")))
    if count > 1:
        raise MissingColumns(
            f"{what}: it has no column user, and the fills are of {count} accounts, so nobody "
            f"knows whose rows these are: {what}.assign(user=address)"
        )


def lower_address(column: str) -> nw.Expr:
    """Give addresses as they compare: case means nothing in them."""
    # Arrow joins text only with text of the same width.
    return nw.col(column).cast(nw.String()).str.to_lowercase()


def _is_empty(fills: Frame) -> bool:
    # A lazy frame is not read for that: its user column decides, whatever it holds.
    return isinstance(fills, nw.DataFrame) and fills.is_empty()


def _count_accounts(rows: Frame) -> int:
    count = rows.select(_count=nw.col("_whose").n_unique())
    table = count.collect() if isinstance(count, nw.LazyFrame) else count
    return int(table["_count"].to_list()[0] or 0)
