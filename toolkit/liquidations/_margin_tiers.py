"""Margin tiers of positions: larger positions have a smaller largest leverage.

Source: docs/live_service.md, section 4. A margin table lists the tiers of a coin. An id below 50
that no table lists means one tier with that leverage.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.contract.dexes import canonical_dex
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
    if max_leverage is None and "max_leverage" not in positions:
        raise ValueError(
            "positions: column max_leverage is missing. Pass max_leverage=, a frame of tk.meta or "
            "a mapping of coin to number"
        )
    most: dict[str, float] = {}
    ids: dict[str, float] = {}
    if isinstance(max_leverage, Mapping):
        most = {str(coin): float(leverage) for coin, leverage in max_leverage.items()}
    elif max_leverage is not None:
        meta = Table(max_leverage, "max_leverage")
        meta.require(("name", "max_leverage"))
        names = meta.frame["name"].astype(str)
        most = dict(zip(names, meta.number("max_leverage"), strict=True))
        ids = dict(zip(names, meta.number("margin_table_id", np.nan), strict=True))
    tables = {} if margin_tables is None else _read_tables(margin_tables)
    if tables and not any(number > 0 for number in ids.values()):
        raise ValueError(
            "margin_tables: the table of each coin is not known. Pass max_leverage=tk.meta(), "
            "which has the column margin_table_id"
        )
    # Positions of one coin with one stated leverage have the same tiers.
    stated = positions.get("max_leverage", np.nan)
    place, kinds = number_groups(positions[["coin"]].assign(leverage=stated))
    found: list[TierTable] = []
    single: set[str] = set()
    dexes = dex_names(kinds["coin"])
    for coin, dex, own in zip(kinds["coin"], dexes, kinds["leverage"], strict=True):
        number, leverage = ids.get(coin, np.nan), most.get(coin, np.nan)
        table = tables.get((dex, number))
        if table is None and number < FIRST_TABLE:
            table = [(0.0, float(number))]
        elif not table and not np.isnan(number):
            single.add(coin)
        leverage = own if np.isnan(leverage) else leverage
        found.append(table or ([] if np.isnan(leverage) else [(0.0, leverage)]))
    if single:
        warn_caller(
            f"positions in {name_some(sorted(single))}: their margin tables were not passed, "
            "or a row of margin_tables lacks the leverage or the lower bound. One tier is used, so "
            "the distance of large positions from liquidation is wrong. Pass "
            "margin_tables=tk.margin_tables()",
            UserWarning,
        )
    leverages, low = pad_tiers(found) if found else (np.zeros((0, 1)), np.zeros((0, 1)))
    source = "one tier for each coin" if margin_tables is None or single else "margin tables"
    return Tiers(leverages[place], low[place], source)


def _read_tables(margin_tables: Frame) -> dict[Any, TierTable]:
    """Return the tiers by dex and table id, from the lowest notional up.

    A table that lacks a number has no tiers, because it is not known which leverage applies from
    where.
    """
    table = Table(margin_tables, "margin_tables")
    rows = table.columns(_TABLE_COLUMNS, ("dex",), _TABLE_COLUMNS)
    if "dex" not in rows:  # the dex of the request; the native one if it is not known
        stated = frame_provenance(table.frame).get("parameters", {}).get("dex")
        rows["dex"] = (isinstance(stated, str) and canonical_dex(stated)) or NATIVE_DEX
    rows["dex"] = rows["dex"].fillna(NATIVE_DEX)
    rows = rows.drop_duplicates().sort_values(["lower_bound", "max_leverage"], kind="stable")
    return {
        (dex, number): []
        if own.isna().any(axis=None)
        else list(zip(own["lower_bound"], own["max_leverage"], strict=True))
        for (dex, number), own in rows.groupby(["dex", "margin_table_id"])
    }
