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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.coverage import complete_ranges, read_log
from toolkit.archive.schemas import ANSWERS, make_series
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.answers import decode
from toolkit.contract.operations import Operation
from toolkit.display import count_text
from toolkit.errors import ArchiveError
from toolkit.fetch.registry import operation_of
from toolkit.fetch.snapshots import account_value_snapshots

__all__ = ["ALL_TOKENS", "RefreshPlan", "make_refresh_plan"]

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
    subjects = [parameter.python for parameter in operation.parameters if parameter.required]
    if not operation.is_history or subjects[:1] != ["user"]:
        raise ArchiveError(
            f"{operation.type}: a plan needs the history of an account, because snapshots "
            "show only accounts. Use for example tk.user_fills_by_time"
        )
    log = read_log(tables, None, operation.type)
    if users is None:
        users = sorted(subject for _, subject in log)
    snapshots = _Snapshots(tables)
    rows: list[tuple[str, str, int | None]] = []
    pairs: dict[int, list[str]] = {}  # an earlier snapshot -> the accounts to compare in it
    for user in dict.fromkeys(user.lower() for user in users):
        ranges = complete_ranges(log.get((operation.type, user), []))
        until = ranges[-1][1] if ranges else None
        earlier = snapshots.last_before(until)
        why = _known_reason(ranges, start_ms, earlier)
        if earlier is not None and not why:
            pairs.setdefault(earlier, []).append(user)
        rows.append((user, why, until))
    found = {
        user: why
        for earlier, compared in pairs.items()
        for user, why in snapshots.compare(earlier, compared).items()
    }
    reasons = [why or found[user] for user, why, _ in rows]
    moments = pd.Series([until for _, _, until in rows], dtype="Int64")
    accounts = pd.DataFrame(
        {
            "user": [user for user, _, _ in rows],
            "ask": pd.Series([why != _SAME for why in reasons], dtype="bool"),
            "why": reasons,
            "covered_until": pd.to_datetime(moments, unit="ms", utc=True),
        }
    )
    points = _SNAPSHOTS.points + operation.points * int(accounts["ask"].sum())
    return RefreshPlan(operation.type, accounts, points, operation.points * len(accounts))


def _known_reason(
    ranges: Sequence[tuple[int, int]], start_ms: int | None, earlier: int | None
) -> str:
    """Return why an account needs a refresh, if this is known without a comparison of snapshots.

    Otherwise return an empty text.
    """
    if not ranges:
        return "nothing is archived"
    if len(ranges) > 1 or (start_ms is not None and start_ms < ranges[0][0]):
        return "an earlier part of the range is missing"
    return "" if earlier is not None else "no snapshot is older than the end of the range"


class _Snapshots:
    """The archived snapshots of all accounts."""

    def __init__(self, tables: ArchiveTables) -> None:
        self._tables = tables
        self._series = make_series(_SNAPSHOTS, (list(ALL_TOKENS),), {})
        self._times = sorted(set(self._read(["_fetched"])["_fetched"].to_pylist()))
        self._cash = cache(self._read_cash)

    def last_before(self, until: int | None) -> int | None:
        """Return the fetch time of the last snapshot that was fetched at or before a time.

        The state in a snapshot is older than its fetch time, so it is also from before `until`.
        """
        place = 0 if until is None else bisect_right(self._times, until)
        return self._times[place - 1] if place else None

    def compare(self, earlier: int, users: Sequence[str]) -> Mapping[str, str]:
        """Return for each account whether its cash changed from a snapshot to the latest one."""
        before, after = (self._cash(time) for time in (earlier, self._times[-1]))
        both = before.join(after.add_prefix("later_"), how="outer")
        both = both[both.index.get_level_values("user").isin(users)]
        change = (both["later_cash"] - both["cash"]).abs()
        is_same = (change <= _SAME_USD) & (both["later_mode"] == both["mode"]).fillna(False)
        same = is_same.groupby(level="user").all()
        reasons = same.map({True: _SAME, False: "cash changed"})
        return {user: reasons.get(user, "not in the snapshots") for user in users}

    def _read_cash(self, time: int) -> pd.DataFrame:
        """Return the cash and the mode of each account, by account and collateral."""
        condition = ds.field("_fetched") == time
        answer = self._read(["_fetched", "_headers", "_body"], condition).to_pylist()[-1]
        columns = decode(_SNAPSHOTS, 200, json.loads(answer["_headers"]), answer["_body"])
        values, longs, shorts = (
            pd.Series(columns[name], dtype="float64")
            for name in ("account_value", "total_long_notional", "total_short_notional")
        )
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

    def _read(self, columns: list[str], condition: Any = None) -> pa.Table:
        return self._tables.read_rows(ANSWERS, columns, condition, self._series)
