"""Margin tiers of positions: larger positions have a smaller largest leverage.

Source: docs/live_service.md, section 4. A margin table lists the tiers of a coin. An id below 50
that no table lists means one tier with that leverage.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.errors import warn_caller
from toolkit.prepare.door import NATIVE_DEX, Frame, Table
from toolkit.prepare.groups import number_groups
from toolkit.prepare.provenance import frame_provenance
from toolkit.prepare.states import dex_names, name_some
from toolkit.rules.margin import pad_tiers

TierTable = list[tuple[float, float]]

LeverageLimits = Mapping[str, float] | Frame
"""Largest leverages by coin: a mapping, or a frame of `tk.meta`."""

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


def read_tiers(
    positions: pd.DataFrame, max_leverage: LeverageLimits | None, margin_tables: Frame | None
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
    stated = positions.get("max_leverage", np.nan)
    # Positions of one coin with one stated leverage have the same tiers.
    place, kinds = number_groups(positions[["coin"]].assign(leverage=stated))
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
            f"positions in {name_some(sorted(single))}: their margin tables were not passed, "
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
    table = Table(leverages, "max_leverage")
    table.require(("name", "max_leverage"))
    ids = table.number("margin_table_id", np.nan)
    rows = zip(table.frame["name"], table.number("max_leverage"), ids, strict=True)
    return {
        str(name): _Asset(most, None if np.isnan(number) else int(number))
        for name, most, number in rows
    }


def _read_tables(margin_tables: Frame | None) -> dict[tuple[str, int], TierTable]:
    """Return the tiers by dex and table id, from the lowest notional up.

    A table that lacks a number has no tiers, because it is not known which leverage applies from
    where.
    """
    if margin_tables is None:
        return {}
    table = Table(margin_tables, "margin_tables")
    table.require(_TABLE_COLUMNS)
    if not table.has("dex"):  # the dex of the request; the native one if it is not known
        stated = frame_provenance(table.frame).get("parameters", {}).get("dex", "")
        dex = stated if isinstance(stated, str) else ""
        table = Table(table.frame.assign(dex=dex), "margin_tables")
    names = table.text("dex")
    found: dict[tuple[str, int], TierTable] = {}
    numbers = np.stack([table.number(name) for name in _TABLE_COLUMNS], axis=1)
    is_known = ~np.isnan(numbers).any(axis=1)
    for row in np.lexsort((numbers[:, 2], numbers[:, 1])):
        key = (names.values[names.codes[row]] or NATIVE_DEX, int(numbers[row, 0]))
        tier = (float(numbers[row, 1]), float(numbers[row, 2]))
        if tier not in found.setdefault(key, []):
            found[key].append(tier)
    incomplete = {
        (names.values[names.codes[row]] or NATIVE_DEX, int(numbers[row, 0]))
        for row in np.flatnonzero(~is_known & ~np.isnan(numbers[:, 0]))
    }
    return {key: [] if key in incomplete else tiers for key, tiers in found.items()}
