"""Tables of a reconciliation: the rows of each account between the two times."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit.contract.dexes import NOT_PERP
from toolkit.prepare.door import NO_TIME, Table, utc_times
from toolkit.prepare.provenance import account_names
from toolkit.prepare.states import ValuesAndPositions

_LATER = 2**62
_NOWHERE = (_LATER, -_LATER)


class AccountTables(NamedTuple):
    """The tables of the accounts between the two times, with `user` in lower case.

    Without fills, `perps` and `spots` are empty and have no columns.
    """

    perps: pd.DataFrame
    spots: pd.DataFrame
    funding: pd.DataFrame | None
    ledger: pd.DataFrame | None


def account_bounds(
    before: ValuesAndPositions | None, after: ValuesAndPositions
) -> dict[str, tuple[int, int]]:
    """Return the two times of each account's values."""
    users = after.worth.index
    first = pd.Series(-_LATER, users)
    if before is not None:
        first = before.worth["ms"].reindex(users, fill_value=_LATER)
    last = after.worth["ms"].replace(NO_TIME, _LATER)
    return dict(zip(users, zip(first, last, strict=True), strict=True))


def select_tables(
    bounds: Mapping[str, tuple[int, int]],
    fills: Any,
    funding: Any,
    ledger: Any,
    account: str | None,
) -> AccountTables:
    """Return the accounts' rows after the first time, up to and including the second one."""
    perps = spots = pd.DataFrame()
    if fills is not None:
        trades = _rows_between(bounds, fills, "user", "fills", account)
        other = trades["coin"].str.contains(NOT_PERP, na=False).astype(bool)
        perps, spots = (trades[kept].reset_index(drop=True) for kept in (~other, other))
    paid, moved = (
        None if frame is None else _rows_between(bounds, frame, owner, what, account)
        for frame, owner, what in ((funding, "user", "funding"), (ledger, "account", "ledger"))
    )
    return AccountTables(perps, spots, paid, moved)


def _rows_between(
    bounds: Mapping[str, tuple[int, int]], native: Any, owner: str, what: str, account: str | None
) -> pd.DataFrame:
    """Return the accounts' rows between the two times."""
    table = Table(native, what, "none")
    table.require(("coin", "time") if owner == "user" else ("time",))
    ms = table.known_ms()
    frame = table.frame.reset_index(drop=True)
    if table.has(owner):
        accounts = table.text(owner).texts()
    else:
        names = account_names(native, account) or list(bounds)
        if len(names) != 1:
            raise ValueError(
                f"{what}: the frame has no column {owner}, and the values are of {len(bounds)} "
                "accounts. Pass account="
            )
        accounts = pd.Series(names[0], frame.index, dtype="str")
    codes, users = pd.factorize(accounts)
    ends = np.array([bounds.get(user, _NOWHERE) for user in users] + [_NOWHERE], np.int64)
    first, last = ends[codes].T  # a missing account has the code -1, which selects the last pair
    inside = (ms > first) & (ms <= last)
    texts = {"coin": table.text("coin").texts()} if table.has("coin") else {}
    made = frame.assign(**texts, **{owner: accounts}, time=utc_times(ms))
    kept: pd.DataFrame = made[inside].reset_index(drop=True)
    return kept
