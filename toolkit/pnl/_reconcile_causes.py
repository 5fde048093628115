"""Possible causes of a residual: missing fills, missing funding, missing prices."""

from collections import Counter
from math import isclose

import pandas as pd

from toolkit.display import count_text
from toolkit.pnl._reconcile_tables import AccountTables
from toolkit.prepare import Fills
from toolkit.prepare.account_values import (
    Amount,
    ValuesAndPositions,
    column_list,
)
from toolkit.prepare.door import Table
from toolkit.prepare.states import UNIFIED
from toolkit.prepare.steps import POSITION_COLUMNS

_OF_POSITIONS = tuple(name for name in POSITION_COLUMNS if name not in ("px", "closed_pnl"))
"""The columns that determine how a fill changes a position."""


def find_causes(
    tables: AccountTables,
    traded: pd.DataFrame,
    moved: pd.DataFrame | None,
    before: ValuesAndPositions | None,
    after: ValuesAndPositions,
) -> dict[str, dict[str, str]]:
    """Return the possible causes of a residual by account and column, the first one first."""
    found: dict[str, dict[str, str]] = {}
    for user, coins in _broken_coins(tables.perps, before, after).items():
        found.setdefault(user, {})["history_late"] = f"fills missing of {', '.join(sorted(coins))}"
    for user, covers in column_by_account(traded, "user", "covers").items():
        if "funding (" in covers:
            reason = "funding (" + covers.split("funding (")[1]
            found.setdefault(user, {})["funding_missing"] = reason
    odd = Counter(column_by_account(traded, "user", "missing_amounts")) + Counter(
        column_by_account(traded, "user", "unpriced_fees")
    )
    names = ("user", "side", "px", "sz", "fee")
    odd += Counter(
        user
        for user, *values in zip(*(column_list(tables.spots, name) for name in names), strict=True)
        if None in values and user in after.worth and (after.worth[user].mode or 0) >= UNIFIED
    )
    if moved is not None:
        odd += Counter(column_by_account(moved, "account", "unknown"))
    for user, count in odd.items():
        events = count_text(count, "fill, fee or flow", "fills, fees or flows")
        reason = f"{events} without an amount in USD"
        found.setdefault(user, {})["not_priced"] = reason
    return found


def _broken_coins(
    perps: pd.DataFrame, before: ValuesAndPositions | None, after: ValuesAndPositions
) -> dict[str, set[str]]:
    """Return the coins whose fills do not connect the first positions with the last ones."""
    if any(name not in perps.columns for name in _OF_POSITIONS):
        return {}
    kept = [n for n in ("user", *_OF_POSITIONS, "tx_index") if n in perps.columns]
    silent = perps[list(_OF_POSITIONS)].isna().any(axis="columns")
    # Positions do not depend on prices, so fills without a price are used, too.
    steps = Fills(perps.loc[~silent, kept]).steps
    gaps = _fill_times(perps[silent])
    position = {} if before is None else _position_sizes(before)
    has_start = before is None or before.held is not None
    found: set[tuple[str, str]] = set()
    last: dict[tuple[str, str], int] = {}
    walk = zip(
        steps.user.tolist(),
        steps.coin.tolist(),
        steps.ms.tolist(),
        steps.sizes(steps.start).tolist(),
        steps.sizes(steps.end).tolist(),
        strict=True,
    )
    for user, coin, ms, start, end in walk:
        pair = steps.users[user], steps.coins[coin]
        known = position.get(pair, 0.0 if has_start else None)
        if any(last.get(pair, 0) <= gap <= ms for gap in gaps.get(pair, ())):
            known = None
        if known is not None and not _is_same(known, start):
            found.add(pair)
        position[pair], last[pair] = end, ms
    if after.held is not None and has_start:
        ends = _position_sizes(after)
        found |= {
            pair
            for pair in position.keys() | ends.keys()
            if pair[0] in after.worth
            and not _is_same(position.get(pair, 0.0), ends.get(pair, 0.0))
            and not any(last.get(pair, 0) <= gap for gap in gaps.get(pair, ()))
        }
    names: dict[str, set[str]] = {}
    for user, name in found:
        names.setdefault(user, set()).add(name)
    return names


def _is_same(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=1e-12, abs_tol=1e-9)


def _fill_times(silent: pd.DataFrame) -> dict[tuple[str, str], list[int]]:
    """Return the times of fills with missing position columns, by account and coin."""
    found: dict[tuple[str, str], list[int]] = {}
    times = Table(silent, "fills", "none").ms().tolist()
    for user, coin, ms in zip(silent["user"], silent["coin"], times, strict=True):
        found.setdefault((user, coin), []).append(ms)
    return found


def _position_sizes(values: ValuesAndPositions) -> dict[tuple[str, str], float]:
    """Return signed sizes by user and coin, if they are known."""
    return {
        pair: float(held.size)
        for pair, held in (values.held or {}).items()
        if held.size is not None
    }


def column_by_account(frame: pd.DataFrame, key: str, name: str) -> dict[str, Amount]:
    """Return a column by account."""
    return dict(zip(frame[key], frame[name], strict=True))
