"""Positions and accounts of clearinghouse states, and the margin tiers of positions.

Source of the tiers: docs/live_service.md, section 4. A margin table gives larger positions a
smaller largest leverage. An id below 50 that no table lists means one tier with that leverage.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.markets import NATIVE_DEX
from toolkit.arrays import Floats
from toolkit.contract.dexes import NATIVE_ALIASES
from toolkit.errors import warn_caller
from toolkit.rules.margin import pad_tiers

TierTable = list[tuple[float, float]]

LeverageLimits = Mapping[str, float] | IntoFrame
"""Largest leverages by coin: a mapping, or a frame of `tk.meta`."""
POSITION = ("user", "coin", "szi", "position_value")
STATED = "cross_maintenance_margin_used"
FIRST_TABLE: Final = 50
"""The lowest id of a margin table; a smaller id is the largest leverage of a single tier."""

_TABLE_COLUMNS: Final = ("margin_table_id", "lower_bound", "max_leverage")


class Tiers(NamedTuple):
    """Margin tiers of each position, for `toolkit.rules.margin`.

    - ``max_leverage``, ``lower_bound``: arrays of float, with one row for each position and one
      column for each tier
    - ``source``: their source: ``"margin tables"``, or ``"one tier for each coin"``
    """

    max_leverage: Floats
    lower_bound: Floats
    source: str


class _Asset(NamedTuple):
    """The largest leverage of a coin, and the id of its margin table."""

    leverage: float
    table: int | None


def read_positions(
    native: IntoFrame, numbers: tuple[str, ...], texts: tuple[str, ...]
) -> pd.DataFrame:
    """Return open positions, each once, with side, unsigned size and notional, and mark price."""
    names = (*POSITION, *numbers, *texts)
    frame = memory_frames.to_pandas(native, (*names, "dex", "time", "max_leverage"))
    opened = frame_access.open_frame(memory_frames.to_pandas(native), "positions")
    frame_access.require_columns(opened, names, "positions")
    amounts = ("szi", "position_value", *numbers)
    for name in amounts:
        if not frame[name].isna().all():
            frame_access.number_kind(opened, [name], "positions")
    frame = frame.astype(dict.fromkeys(amounts, "float64"))
    # A group without a name stays a group: pandas leaves missing keys out.
    for name in {"user", "dex"} & set(frame.columns):
        frame[name] = frame[name].astype("str").fillna("")
    _check_one_moment(frame, [frame["user"], dex_names(frame["coin"])], "positions")
    frame = frame[frame["szi"] != 0]
    frame = _drop_repeated_states(frame, ["user", "coin"], ["szi", "position_value"], "positions")
    frame = frame.reset_index(drop=True)
    frame["side"] = pd.Series(np.where(frame["szi"] > 0, "long", "short"), dtype="str")
    frame["size"] = frame["szi"].abs()
    frame["notional"] = frame["position_value"].abs()
    frame["mark"] = frame["notional"] / frame["size"]
    return frame


def read_accounts(accounts: IntoFrame) -> pd.DataFrame:
    """Return accounts, one row each."""
    owners = memory_frames.to_pandas(accounts)
    opened = frame_access.open_frame(owners, "accounts")
    frame_access.require_columns(opened, ("user", "cross_account_value"), "accounts")
    frame_access.number_kind(opened, ["cross_account_value"], "accounts")
    owners = owners.assign(user=owners["user"].astype("str"))
    keys = ["user", *(["dex"] if "dex" in owners else [])]
    if "dex" in owners:
        owners["dex"] = owners["dex"].astype("str").fillna("")
    _check_one_moment(owners, keys, "accounts")
    values = [name for name in ("cross_account_value", STATED) if name in owners]
    return _drop_repeated_states(owners, keys, values, "accounts")


def join_keys(owners: pd.DataFrame, positions: pd.DataFrame) -> list[str]:
    """Return the columns that join positions with their accounts: user, and dex if both have it.

    If accounts have several dexes and positions have no column dex, this adds it, from the names of
    the coins.
    """
    if "dex" in owners and "dex" not in positions and owners["user"].duplicated().any():
        positions["dex"] = dex_names(positions["coin"])
    return ["user", *(["dex"] if {"dex"} <= set(owners.columns) & set(positions.columns) else [])]


def _check_one_moment(frame: pd.DataFrame, keys: list[Any], what: str) -> None:
    """Raise ValueError if states are of several moments: closed positions would still count."""
    if "time" not in frame:
        return
    moments = frame.groupby(keys)["time"].nunique()
    if (moments > 1).any():
        several = moments[moments > 1].index[0]
        name = several[0] if isinstance(several, tuple) else several
        raise ValueError(
            f"{what}: rows of {name} have {moments.max()} different times. Keep one batch of "
            f"states, for example {what}[{what}.time == {what}.time.max()]"
        )


def _drop_repeated_states(
    frame: pd.DataFrame, keys: list[str], values: list[str], what: str
) -> pd.DataFrame:
    """Return one row for each key. Raise ValueError if two rows of a key differ."""
    once = frame.drop_duplicates([*keys, *values])
    twice = once.duplicated(keys)
    if twice.any():
        name = " ".join(str(once.loc[twice, key].iloc[0]) for key in keys)
        raise ValueError(
            f"{what}: {name} has several rows with different {' or '.join(values)}, and no time "
            "says which one is newer. Pass the rows of one batch of states"
        )
    return once


def dex_names(coin: pd.Series) -> pd.Series:
    """Return the dex of each perp, from its name."""
    codes, names = pd.factorize(coin.astype("str"))
    stated = [name.partition(":")[0] if ":" in name else NATIVE_DEX for name in names]
    dexes = [NATIVE_DEX if dex in NATIVE_ALIASES else dex for dex in stated]
    known = np.array([*dexes, NATIVE_DEX], dtype=object)  # a missing coin has the code -1: the last
    return pd.Series(known[codes], coin.index, dtype="str", name=coin.name)


def read_tiers(
    positions: pd.DataFrame, max_leverage: LeverageLimits | None, margin_tables: IntoFrame | None
) -> Tiers:
    """Return the tiers of each position.

    - ``positions``: a pandas frame with ``coin``, and ``max_leverage`` if the state has it
    - ``max_leverage``: largest leverages by coin, or a frame of `tk.meta`
    - ``margin_tables``: `tk.margin_tables` of one dex, or of several with a column ``dex``

    Raise ValueError if the largest leverage is not known, or tables are passed and no frame names
    the table of each coin.

    Warn with UserWarning if meta names tables of several tiers that were not passed, or that lack a
    number.
    """
    assets = _read_assets(max_leverage)
    if assets is None and "max_leverage" not in positions:
        raise ValueError(
            "positions: column max_leverage is missing. Pass max_leverage=, a frame of tk.meta or "
            "a mapping of coin to number"
        )
    tables = _read_tables(margin_tables)
    if tables and not any(asset.table for asset in (assets or {}).values()):
        raise ValueError(
            "margin_tables: the table of each coin is not known. Pass max_leverage=tk.meta(), "
            "which has the column margin_table_id"
        )
    stated = (
        positions["max_leverage"]
        if "max_leverage" in positions
        else pd.Series(np.nan, positions.index)
    )
    # Positions of one coin with one stated leverage have the same tiers.
    kinds = pd.DataFrame({"coin": positions["coin"], "leverage": stated.astype("float64")})
    place = kinds.groupby(["coin", "leverage"], sort=False, dropna=False).ngroup().to_numpy()
    kinds = kinds.drop_duplicates()
    found: list[TierTable] = []
    single: set[str] = set()
    for coin, dex, stated_leverage in zip(
        kinds["coin"], dex_names(kinds["coin"]), kinds["leverage"], strict=True
    ):
        asset = (assets or {}).get(coin, _Asset(stated_leverage, None))
        table = None if asset.table is None else tables.get((dex, asset.table))
        if table is None and asset.table is not None and asset.table < FIRST_TABLE:
            table = [(0.0, float(asset.table))]
        elif not table and asset.table is not None:
            single.add(coin)
        leverage = stated_leverage if np.isnan(asset.leverage) else asset.leverage
        found.append(table or ([] if np.isnan(leverage) else [(0.0, leverage)]))
    if single:
        warn_caller(
            f"positions in {', '.join(sorted(single)[:5])}"
            f"{' and others' if len(single) > 5 else ''}: their margin tables were not passed, "
            "or a row of margin_tables lacks the leverage or the lower bound. One tier is used, so "
            "the distance of large positions from liquidation is wrong. Pass "
            "margin_tables=tk.margin_tables()",
            UserWarning,
        )
    most, low = pad_tiers(found) if found else (np.zeros((0, 1)), np.zeros((0, 1)))
    source = "one tier for each coin" if margin_tables is None or single else "margin tables"
    return Tiers(most[place], low[place], source)


def _read_assets(leverages: LeverageLimits | None) -> dict[str, _Asset] | None:
    if leverages is None:
        return None
    if isinstance(leverages, Mapping):
        return {str(coin): _Asset(float(most), None) for coin, most in leverages.items()}
    frame = memory_frames.to_pandas(leverages)
    frame_access.require_columns(
        frame_access.open_frame(frame, "max_leverage"), ("name", "max_leverage"), "max_leverage"
    )
    if "margin_table_id" in frame:
        ids = [None if pd.isna(table) else int(table) for table in frame["margin_table_id"]]
    else:
        ids = [None] * len(frame)
    most = frame["max_leverage"].astype("float64")
    return {
        str(name): _Asset(leverage, table)
        for name, leverage, table in zip(frame["name"], most, ids, strict=True)
    }


def _read_tables(margin_tables: IntoFrame | None) -> dict[tuple[str, int], TierTable]:
    """Return the tiers by dex and table id, from the lowest notional up.

    A table that lacks a number has no tiers, because it is not known which leverage applies from
    where.
    """
    if margin_tables is None:
        return {}
    frame = memory_frames.to_pandas(margin_tables)
    frame_access.require_columns(
        frame_access.open_frame(frame, "margin_tables"), _TABLE_COLUMNS, "margin_tables"
    )
    frame = frame.astype({"lower_bound": "float64", "max_leverage": "float64"})
    if "dex" not in frame:
        frame = frame.assign(dex=_fetched_dex(margin_tables))
    dex = frame["dex"].fillna("").astype("str")
    frame = frame.assign(dex=dex.where(~dex.isin(sorted(NATIVE_ALIASES)), NATIVE_DEX))
    is_incomplete = frame[list(_TABLE_COLUMNS)].isna().any(axis="columns")
    unknown = set(
        frame.loc[is_incomplete, ["dex", "margin_table_id"]].itertuples(index=False, name=None)
    )
    frame = frame[~is_incomplete]
    rows = frame.drop_duplicates(["dex", *_TABLE_COLUMNS]).sort_values("lower_bound")
    found: dict[tuple[str, int], TierTable] = {}
    for name, table, low, most in zip(
        *(rows[column] for column in ("dex", *_TABLE_COLUMNS)), strict=True
    ):
        found.setdefault((str(name), int(table)), []).append((float(low), float(most)))
    return {**found, **{(str(name), int(table)): [] for name, table in unknown}}


def _fetched_dex(margin_tables: IntoFrame) -> str:
    """Return the dex that a frame of tables was fetched for; the native one if it is not known."""
    facts = (
        margin_tables.attrs.get("toolkit", {}) if isinstance(margin_tables, pd.DataFrame) else {}
    )
    dex = facts.get("parameters", {}).get("dex", "") if isinstance(facts, Mapping) else ""
    return dex if isinstance(dex, str) else ""
