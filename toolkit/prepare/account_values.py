"""Account values and open positions, from snapshots or clearinghouse states.

The account mode decides which number is the value. A snapshot has one row per account and
collateral (``<dex>:<token>``), and the value of an account is the sum of its rows. Rows of a
unified or portfolio-margin account include its spot wallet. A portfolio-margin account
repeats the value of a token on several dexes, and states the total on each row.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit.prepare.door import NO_TIME, Table
from toolkit.prepare.groups import number_rows
from toolkit.prepare.states import (
    check_one_moment,
    distinct_states,
    own_values,
    spot_backed_users,
)
from toolkit.times import to_ms

_STATED = ("account_value", "szi", "unrealized_pnl", "account_mode")


class ValuesAndPositions(NamedTuple):
    """Account values and open positions at one time.

    - ``worth``: ``value``, ``mode`` (both NaN if not known) and ``ms`` (or `NO_TIME`) by user
    - ``held``: ``szi`` and ``unrealized_pnl`` by user and coin; None if positions are not known
    """

    worth: pd.DataFrame
    held: pd.DataFrame | None


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
    moment = None if at is None else aware_ms(at)
    held = None
    if positions is not None:
        stated = Table(positions, f"{what}[1]", "positions")
        amounts = ("szi", "unrealized_pnl")
        held = stated.columns(("user", "coin", amounts[1]), (amounts[0], "time", "dex"), amounts)
        held = distinct_rows(held, ("user", "coin"), stated.what).set_index(["user", "coin"])
        held = held.reindex(columns=[*amounts])
        # The state of such an account does not have its collateral.
        hidden = frame["user"].isin(spot_backed_users(table, stated))
        frame["account_value"] = frame["account_value"].mask(hidden)
    frame = distinct_rows(frame, ("user", "collateral_token", "dex"), what)
    kept = Table(frame, what, "none")
    value, mode = kept.number("account_value"), kept.number("account_mode", np.nan)
    if kept.has("collateral_token"):
        token = kept.text("collateral_token").renamed(lambda name: name.rpartition(":")[2])
        total = kept.number("pm_total_account_value", np.nan)
        value = own_values(kept.text("user"), token.codes, value, mode, total)
    ms = kept.ms() if kept.has("time") else np.full(len(kept), NO_TIME)
    rows = pd.DataFrame({"value": value, "mode": mode, "ms": ms if moment is None else moment})
    accounts = rows.groupby(frame["user"])
    worth = accounts.agg({"mode": "first", "ms": "max"})
    worth.insert(0, "value", accounts["value"].sum(skipna=False))
    return ValuesAndPositions(worth, held)


def aware_ms(at: Any) -> int:
    """Return a time that has a time zone, or a number, in milliseconds."""
    if not isinstance(at, int) and pd.Timestamp(str(at)).tzinfo is None:
        raise ValueError(f"at: {at!r} has no time zone. Use milliseconds, or a time in UTC")
    return to_ms(at)


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
