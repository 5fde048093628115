"""Account values and open positions, from snapshots or clearinghouse states.

The account mode decides which number is the value. A snapshot has one row per account and
collateral (``<dex>:<token>``), and the value of an account is the sum of its rows. Rows of a
unified or portfolio-margin account include its spot wallet. A portfolio-margin account
repeats the value of a token on several dexes, and states the total on each row.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit.prepare.door import NO_TIME, Table
from toolkit.prepare.groups import number_groups, number_rows
from toolkit.prepare.states import (
    check_one_moment,
    distinct_states,
    own_values,
    spot_backed_users,
)

_STATED = ("account_value", "szi", "unrealized_pnl", "account_mode")

Amount = Any
"""A float; None if it is not known."""


class AccountValue(NamedTuple):
    """Value of one account; mode and time are None if the frame does not state them."""

    value: Amount
    mode: int | None
    ms: int | None


class OpenPosition(NamedTuple):
    """One open position."""

    size: Amount
    unrealised: Amount


class ValuesAndPositions(NamedTuple):
    """Account values and open positions at one time; no positions (None) if they are not known."""

    worth: Mapping[str, AccountValue]
    held: Mapping[tuple[str, str], OpenPosition] | None


def read_values(given: Any, what: str, at: Any = None) -> ValuesAndPositions:
    """Return account values from a frame, or from a tuple of values and positions."""
    values, positions = (given[0], given[1]) if isinstance(given, tuple) else (given, None)
    table = Table(values, what, "snapshot")
    numbers = ("account_value", "account_mode", "pm_total_account_value")
    frame = table.columns(
        ("user", "account_value"),
        ("collateral_token", "dex", *numbers[1:], "time", "snapshot_id"),
        numbers,
    )
    moment = None if at is None else at if isinstance(at, int) else _aware_ms(at)
    held = None
    if positions is not None:
        stated = Table(positions, f"{what}[1]", "positions")
        held = _read_positions(stated)
        # The state of such an account does not have its collateral.
        hidden = frame["user"].isin(spot_backed_users(table, stated))
        frame["account_value"] = frame["account_value"].mask(hidden)
    return ValuesAndPositions(_sum_values(frame, moment, what), held)


def _aware_ms(at: Any) -> int:
    """Return a time that has a time zone in milliseconds."""
    stamp = pd.Timestamp(at)
    if stamp.tzinfo is None:
        raise ValueError(f"at: {at!r} has no time zone. Use milliseconds, or a time in UTC")
    return int(stamp.value // 10**6)


def distinct_rows(frame: pd.DataFrame, keys: Sequence[str], what: str = "rows") -> pd.DataFrame:
    """Return the first row for each combination of the keys.

    Raise ValueError if rows with the same keys have different values, or if the rows of one account
    are from several times: only the first batch would count.
    """
    table = Table(frame, what, "none")
    names = [table.text(key) for key in keys if table.has(key)]
    if table.has("time"):
        owners = [table.text(name) for name in ("user", "dex") if table.has(name)]
        owner = number_rows(*(name.codes for name in owners))
        check_one_moment(owner, table.text("user"), table.ms(), what)
    if "snapshot_id" in frame and (count := frame["snapshot_id"].nunique()) > 1:
        raise ValueError(
            f"{what}: the frame contains {count} snapshots. Keep those of one, for example "
            f"{what}[{what}.snapshot_id == {what}.snapshot_id.max()]"
        )
    stated = {name: frame[name].to_numpy() for name in _STATED if name in frame}
    codes = number_rows(*(name.codes for name in names))
    return frame.iloc[distinct_states(codes, stated, names, what)].reset_index(drop=True)


def column_list(frame: pd.DataFrame, name: str) -> list[Any]:
    """Return a column as Python values; None for missing values or a missing column."""
    if name not in frame.columns:
        return [None] * len(frame)
    column = frame[name]
    return [None if gone else value for value, gone in zip(column, column.isna(), strict=True)]


def _sum_values(frame: pd.DataFrame, moment: int | None, what: str) -> dict[str, AccountValue]:
    frame = distinct_rows(frame, ("user", "collateral_token", "dex"), what)
    mode = frame.get("account_mode", pd.Series(np.nan, frame.index))
    table = Table(frame, what, "none")
    if table.has("collateral_token"):
        token = table.text("collateral_token").renamed(lambda name: name.rpartition(":")[2])
        stated = (table.number("account_value"), table.number("account_mode", np.nan))
        total = table.number("pm_total_account_value", np.nan)
        frame["account_value"] = own_values(table.text("user"), token.codes, *stated, total)
    codes, owners = number_groups(frame[["user"]])
    value = np.bincount(codes, frame["account_value"], len(owners))
    modes = dict(zip(frame["user"][::-1], mode.astype("float64")[::-1], strict=True))
    latest = np.full(len(owners), NO_TIME)
    if table.has("time"):
        np.maximum.at(latest, codes, table.ms())
    times = dict(zip(owners["user"], latest.tolist(), strict=True))
    return {
        user: AccountValue(
            None if np.isnan(amount) else float(amount),
            int(modes[user]) if modes[user] >= 0 else None,
            moment if moment is not None else None if times[user] == NO_TIME else times[user],
        )
        for user, amount in zip(owners["user"], value, strict=True)
    }


def _read_positions(table: Table) -> dict[tuple[str, str], OpenPosition]:
    frame = table.columns(
        ("user", "coin", "unrealized_pnl"),
        ("szi", "time", "dex"),
        ("szi", "unrealized_pnl"),
    )
    frame = distinct_rows(frame, ("user", "coin"), table.what)
    pairs = zip(frame["user"], frame["coin"], strict=True)
    held = zip(column_list(frame, "szi"), column_list(frame, "unrealized_pnl"), strict=True)
    return dict(zip(pairs, (OpenPosition(*values) for values in held), strict=True))
