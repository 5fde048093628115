"""Possible causes of a residual: missing fills, missing funding, missing prices."""

from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Flags
from toolkit.display import count_text
from toolkit.pnl._reconcile_tables import AccountTables
from toolkit.prepare import Fills
from toolkit.prepare.door import Table
from toolkit.prepare.states import UNIFIED, ValuesAndPositions
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
    for user, covers in zip(traded["user"], traded["covers"], strict=True):
        if "funding (" in covers:
            reason = "funding (" + covers.split("funding (")[1]
            found.setdefault(user, {})["funding_missing"] = reason
    counts = [traded.set_index("user")[["missing_amounts", "unpriced_fees"]].sum(axis=1)]
    silent = tables.spots.reindex(columns=["side", "px", "sz", "fee"]).isna().any(axis=1)
    if silent.any():
        users = tables.spots.loc[silent, "user"]
        counts.append(users[users.map(after.worth["mode"]) >= UNIFIED].value_counts())
    if moved is not None:
        counts.append(moved.set_index("account")["unknown"])
    odd = pd.concat(counts)
    for user, count in odd.groupby(level=0).sum().items():
        if count:
            events = count_text(int(count), "fill, fee or flow", "fills, fees or flows")
            reason = f"{events} without an amount in USD"
            found.setdefault(str(user), {})["not_priced"] = reason
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
    first, chains = steps.first, pd.Series(steps.places())
    has_start = before is None or before.held is not None
    begun, ended = (
        pd.Series(dtype="float64") if values is None or values.held is None
        else values.held["szi"].dropna()
        for values in (before, after)
    )  # fmt: skip
    known = np.append(np.nan, steps.sizes(steps.end)[:-1])[: len(steps)]
    known[first] = begun.reindex(chains.index, fill_value=0.0 if has_start else np.nan)
    since = np.where(first, 0, np.append(0, steps.ms[:-1])[: len(steps)])
    last = begun.index.union(ended.index).union(chains.index)
    ends = pd.Series(steps.sizes(steps.end)[steps.last], chains.index)
    ends = ends.combine_first(begun).reindex(last, fill_value=0.0)
    until = pd.Series(steps.ms[steps.last], chains.index).reindex(last, fill_value=0)
    # A fill without a position leaves the position after it unknown.
    for user, coin, ms in zip(
        perps.loc[silent, "user"], perps.loc[silent, "coin"],
        Table(perps[silent], "fills", "none").ms().tolist(), strict=True,
    ):  # fmt: skip
        pair = (user, coin)
        known[(steps.chain == chains.get(pair, -1)) & (since <= ms) & (ms <= steps.ms)] = np.nan
        if pair in ends.index and until[pair] <= ms:
            ends[pair] = np.nan
    places = steps.chain[_differ(known, steps.sizes(steps.start))]
    broken = set(chains.index[np.unique(places)])
    if after.held is not None and has_start:
        broken |= set(last[_differ(ends, ended.reindex(last, fill_value=0.0))])
    names: dict[str, set[str]] = {}
    for user, coin in broken:
        if user in after.worth.index:
            names.setdefault(user, set()).add(coin)
    return names


def _differ(known: Any, stated: Any) -> Flags:
    """Return which known sizes are not the stated ones."""
    return np.asarray(~np.isclose(known, stated, rtol=1e-12, atol=1e-9) & ~np.isnan(known))
