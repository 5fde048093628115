"""Tables of a reconciliation: the rows of each account between the two times."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.account_values import ValuesAndPositions, row_times
from toolkit.contract.dexes import NOT_PERP
from toolkit.prepare.owners import account_names

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
    return {
        user: (_start_of(before, user), _LATER if worth.ms is None else worth.ms)
        for user, worth in after.worth.items()
    }


def select_tables(
    bounds: Mapping[str, tuple[int, int]],
    fills: Any,
    funding: Any,
    ledger: Any,
    account: str | None,
) -> AccountTables:
    """Return the accounts' rows after the first time, up to and including the second one."""
    if fills is None:
        no_rows = pd.DataFrame()
        return AccountTables(no_rows, no_rows, *_funding_rows(bounds, funding, ledger, account))
    trades = _rows_between(bounds, fills, "user", "fills", account)
    other = trades["coin"].str.contains(NOT_PERP, na=False).astype(bool)
    return AccountTables(
        trades[~other].reset_index(drop=True),
        trades[other].reset_index(drop=True),
        *_funding_rows(bounds, funding, ledger, account),
    )


def _funding_rows(
    bounds: Mapping[str, tuple[int, int]], funding: Any, ledger: Any, account: str | None
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """Return funding and ledger between the two times; None if they are not known."""
    return (
        None if funding is None else _rows_between(bounds, funding, "user", "funding", account),
        None if ledger is None else _rows_between(bounds, ledger, "account", "ledger", account),
    )


def _start_of(before: ValuesAndPositions | None, user: str) -> int:
    if before is None:
        return -_LATER
    worth = before.worth.get(user)
    return _LATER if worth is None or worth.ms is None else worth.ms


def _rows_between(
    bounds: Mapping[str, tuple[int, int]], native: Any, owner: str, what: str, account: str | None
) -> pd.DataFrame:
    """Return the accounts' rows between the two times."""
    frame = memory_frames.to_pandas(native)
    needed = ("coin", "time") if owner == "user" else ("time",)
    frame_access.require_columns(frame_access.open_frame(frame, what), needed, what)
    if owner not in frame.columns:
        names = account_names(native, account) or list(bounds)
        if len(names) != 1:
            raise ValueError(
                f"{what}: the frame has no column {owner}, and the values are of {len(bounds)} "
                "accounts. Pass account="
            )
        frame = frame.assign(**{owner: names[0]})
    accounts = frame[owner].astype("str")
    codes, users = pd.factorize(accounts)
    ends = np.array([bounds.get(user, _NOWHERE) for user in users] + [_NOWHERE], np.int64)
    first, last = ends[codes].T  # a missing account has the code -1, which selects the last pair
    ms = np.array(row_times(frame, what), dtype=np.int64)
    inside = (ms > first) & (ms <= last)
    kept: pd.DataFrame = frame.assign(**{owner: accounts})[inside].reset_index(drop=True)
    return kept
