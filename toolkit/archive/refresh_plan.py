"""Which accounts changed since their last refresh: one snapshot instead of a request for each.

A snapshot has the value and the notionals of every account. The cash of an account is its value
less its long positions plus its short positions. A change of prices does not change the cash. A
perp fill, a funding payment, and a transfer into or out of the account value change it. So an
account needs no request if its cash is the same in the latest snapshot and in one that is older
than the end of its covered range. `Archive.plan_refresh` says what a snapshot cannot show. If a
change is not noticed, the archive still states a correct range: the covered range of an account
without a refresh does not grow, and its next refresh fetches every row from the end of this range.
"""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd
import pyarrow.dataset as ds

from toolkit.archive.coverage import complete_ranges, read_log
from toolkit.archive.schemas import ANSWERS, Series, make_series
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.answers import decode
from toolkit.contract.operations import Operation
from toolkit.display import count_text
from toolkit.errors import ArchiveError
from toolkit.fetch.registry import operation_of
from toolkit.fetch.snapshots import account_value_snapshots

ALL_TOKENS: Final = ("ALL",)
"""The argument of `tk.account_value_snapshots` by which the snapshots are archived."""

_SNAPSHOTS: Final = operation_of(account_value_snapshots)
_SAME_USD: Final = 1e-3  # snapshots are floats; the fee of the smallest order is larger
_SAME: Final = "cash did not change"


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """The accounts that need a refresh, and its cost.

    Attributes
    ----------
    operation : str
        The type of the operation.
    accounts : DataFrame
        One row per account: ``user``; ``ask``, whether it needs a refresh; ``why``; and
        ``covered_until``, the end of its archived range.
    points, points_of_all : int
        The points of the snapshot and one request for each account in `to_ask`; and the points of
        one request for every account. Accounts with many new rows cost more in both cases.
    """

    operation: str
    accounts: pd.DataFrame
    points: int
    points_of_all: int

    @property
    def to_ask(self) -> list[str]:
        """The accounts that need a refresh."""
        return [str(user) for user in self.accounts.loc[self.accounts["ask"], "user"]]

    def __str__(self) -> str:
        accounts = count_text(len(self.accounts), "account needs", "accounts need")
        return (
            f"{self.operation}: {len(self.to_ask):,} of {accounts} a request: "
            f"{self.points:,} points instead of {self.points_of_all:,}"
        )


def make_refresh_plan(
    tables: ArchiveTables, operation: Operation, users: Sequence[str] | None, start_ms: int | None
) -> RefreshPlan:
    """Return which accounts changed up to the latest archived snapshot; see `Archive.plan_refresh`.

    Raises
    ------
    ArchiveError
        If the operation is not a history of an account.
    """
    if not operation.is_history or operation.subject[:1] != ("user",):
        raise ArchiveError(
            f"{operation.type}: a plan needs the history of an account, because snapshots "
            "show only accounts. Use for example tk.user_fills_by_time"
        )
    log = read_log(tables, None, operation.type)
    if users is None:
        users = sorted(subject for _, subject in log)
    series = make_series(_SNAPSHOTS, (list(ALL_TOKENS),), {})
    archived = tables.read_rows(ANSWERS, ["_fetched"], series=series)["_fetched"]
    times = sorted(set(archived.to_pylist()))
    reasons: dict[str, str] = {}
    ends: list[int | None] = []
    pairs: dict[int, list[str]] = {}  # an earlier snapshot -> the accounts to compare in it
    for user in dict.fromkeys(user.lower() for user in users):
        ranges = complete_ranges(log.get((operation.type, user), []))
        until = ranges[-1][1] if ranges else None
        # The state in a snapshot is older than its fetch time, so it is also from before `until`.
        place = 0 if until is None else bisect_right(times, until)
        reasons[user] = "no snapshot is older than the end of the range"
        if not ranges:
            reasons[user] = "nothing is archived"
        elif len(ranges) > 1 or (start_ms is not None and start_ms < ranges[0][0]):
            reasons[user] = "an earlier part of the range is missing"
        elif place:
            pairs.setdefault(times[place - 1], []).append(user)
        ends.append(until)
    if pairs:
        latest = _read_cash(tables, series, times[-1]).add_prefix("later_")
    for earlier, compared in pairs.items():
        both = _read_cash(tables, series, earlier).join(latest, how="outer")
        both = both[both.index.get_level_values("user").isin(compared)]
        change = (both["later_cash"] - both["cash"]).abs()
        is_same = (change <= _SAME_USD) & (both["later_mode"] == both["mode"]).fillna(False)
        same = is_same.groupby(level="user").all().map({True: _SAME, False: "cash changed"})
        reasons |= {user: same.get(user, "not in the snapshots") for user in compared}
    accounts = pd.DataFrame(
        {
            "user": list(reasons),
            "ask": pd.Series([why != _SAME for why in reasons.values()], dtype="bool"),
            "why": list(reasons.values()),
            "covered_until": pd.to_datetime(pd.Series(ends, dtype="Int64"), unit="ms", utc=True),
        }
    )
    points = _SNAPSHOTS.points + operation.points * int(accounts["ask"].sum())
    return RefreshPlan(operation.type, accounts, points, operation.points * len(accounts))


def _read_cash(tables: ArchiveTables, series: Series, time: int) -> pd.DataFrame:
    """Return the cash and the mode of each account in a snapshot, by account and collateral."""
    condition = ds.field("_fetched") == time
    rows = tables.read_rows(ANSWERS, ["_fetched", "_headers", "_body"], condition, series)
    answer = rows.to_pylist()[-1]
    columns = decode(_SNAPSHOTS, 200, json.loads(answer["_headers"]), answer["_body"])
    names = ("account_value", "total_long_notional", "total_short_notional")
    values, longs, shorts = (pd.Series(columns[name], dtype="float64") for name in names)
    # ASSUMED: The service computes the account values and the notionals of a snapshot with the
    # same prices. If it does not, the plan also refreshes accounts with positions that did not
    # trade.
    frame = pd.DataFrame(
        {
            "user": pd.Series(columns["user"], dtype="str").str.lower(),
            "token": pd.Series(columns["collateral_token"], dtype="str"),
            "cash": values - longs + shorts,
            "mode": pd.Series(columns["account_mode"], dtype="Int64"),
        }
    )
    return frame.set_index(["user", "token"])
