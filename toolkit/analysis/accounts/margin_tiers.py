"""The margin tiers of positions, from what meta, margin tables and states say.

Source: docs/live_service.md, section 4. A margin table gives a smaller largest leverage to larger
positions; an id below 50 that no table lists means one tier with that leverage.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common import columns, engines
from toolkit.analysis.common.markets import NATIVE_DEX
from toolkit.analysis.common.repeated_rows import warn_user
from toolkit.contract.dexes import NATIVE_ALIASES
from toolkit.rules.margin import pad_tiers

__all__ = ["Tiers", "dex_names", "read_tiers"]

Table = list[tuple[float, float]]

_ONE_TIER_BELOW: Final = 50
_TABLE_COLUMNS: Final = ("margin_table_id", "lower_bound", "max_leverage")


class Tiers(NamedTuple):
    """Tiers of positions, for `toolkit.rules.margin`.

    Attributes
    ----------
    max_leverage, lower_bound : array of float, (positions, tiers)
    source : str
        Where they come from: ``"margin tables"``, or ``"one tier for each coin"``.
    """

    max_leverage: npt.NDArray[np.float64]
    lower_bound: npt.NDArray[np.float64]
    source: str


class _Asset(NamedTuple):
    """What is known of a coin: its largest leverage, and the id of its table."""

    leverage: float
    table: int | None


def dex_names(coin: pd.Series) -> pd.Series:
    """Return the dex of each perp, by its name."""
    names = coin.astype("str")
    dex: pd.Series = names.str.split(":").str[0].where(names.str.contains(":"), NATIVE_DEX)
    return dex.where(~dex.isin(sorted(NATIVE_ALIASES)), NATIVE_DEX)


def read_tiers(held: pd.DataFrame, max_leverage: Any, margin_tables: Any) -> Tiers:
    """Return the tiers of each position.

    Parameters
    ----------
    held : DataFrame
        Positions in pandas: ``coin``, and ``max_leverage`` where the state says it.
    max_leverage : mapping, DataFrame or None
        Largest leverages by coin, or a frame of `tk.meta`.
    margin_tables : DataFrame or None
        `tk.margin_tables`, of one dex or of several with a column ``dex``.

    Raises
    ------
    ValueError
        If nothing says the largest leverage, or tables are given and nothing says which coin
        has which.

    Warns
    -----
    UserWarning
        If meta names tables of several tiers that are not given, or lack a number.
    """
    assets = _assets(max_leverage)
    if assets is None and "max_leverage" not in held:
        raise ValueError(
            "positions: they do not say max_leverage. Pass max_leverage=, a frame of tk.meta or a "
            "mapping of coin to number"
        )
    tables = _tables(margin_tables)
    if tables and not any(one.table for one in (assets or {}).values()):
        raise ValueError(
            "margin_tables: nothing says which coin has which table. Pass max_leverage=tk.meta(), "
            "whose column margin_table_id does"
        )
    stated = held["max_leverage"] if "max_leverage" in held else pd.Series(np.nan, held.index)
    dexes = dex_names(held["coin"])
    found: list[Table] = []
    single: set[str] = set()
    for coin, dex, own in zip(held["coin"], dexes, stated.astype("float64"), strict=True):
        asset = (assets or {}).get(coin, _Asset(own, None))
        table = None if asset.table is None else tables.get((dex, asset.table))
        if table is None and asset.table is not None and asset.table < _ONE_TIER_BELOW:
            table = [(0.0, float(asset.table))]
        elif not table and asset.table is not None:
            single.add(coin)
        leverage = own if np.isnan(asset.leverage) else asset.leverage
        found.append(table or ([] if np.isnan(leverage) else [(0.0, leverage)]))
    if single:
        warn_user(
            f"positions in {', '.join(sorted(single)[:5])}"
            f"{' and others' if len(single) > 5 else ''}: their margin tables are not given, or a "
            "tier of them lacks a number, so one tier counts and the distance of large positions "
            "from liquidation is wrong. Pass margin_tables=tk.margin_tables()",
            UserWarning,
        )
    most, low = pad_tiers(found) if found else (np.zeros((0, 1)), np.zeros((0, 1)))
    source = "one tier for each coin" if margin_tables is None or single else "margin tables"
    return Tiers(most, low, source)


def _assets(given: Any) -> dict[str, _Asset] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(coin): _Asset(float(most), None) for coin, most in given.items()}
    frame = engines.to_pandas(given)
    columns.require_columns(
        columns.open_frame(frame, "max_leverage"), ("name", "max_leverage"), "max_leverage"
    )
    if "margin_table_id" in frame:
        ids = [None if pd.isna(one) else int(one) for one in frame["margin_table_id"]]
    else:
        ids = [None] * len(frame)
    most = frame["max_leverage"].astype("float64")
    return {
        str(name): _Asset(leverage, table)
        for name, leverage, table in zip(frame["name"], most, ids, strict=True)
    }


def _tables(given: Any) -> dict[tuple[str, int], Table]:
    """Return the tiers by dex and table id, from the lowest notional up.

    None of a table that lacks a number: which leverage counts from where is not known then.
    """
    if given is None:
        return {}
    frame = engines.to_pandas(given)
    columns.require_columns(
        columns.open_frame(frame, "margin_tables"), _TABLE_COLUMNS, "margin_tables"
    )
    frame = frame.astype({"lower_bound": "float64", "max_leverage": "float64"})
    if "dex" not in frame:
        frame = frame.assign(dex=_asked_dex(given))
    dex = frame["dex"].fillna("").astype("str")
    frame = frame.assign(dex=dex.where(~dex.isin(sorted(NATIVE_ALIASES)), NATIVE_DEX))
    lacks = frame[list(_TABLE_COLUMNS)].isna().any(axis="columns")
    unknown = set(frame.loc[lacks, ["dex", "margin_table_id"]].itertuples(index=False, name=None))
    frame = frame[~lacks]
    rows = frame.drop_duplicates(["dex", *_TABLE_COLUMNS]).sort_values("lower_bound")
    found: dict[tuple[str, int], Table] = {}
    for name, table, low, most in zip(
        *(rows[column] for column in ("dex", *_TABLE_COLUMNS)), strict=True
    ):
        found.setdefault((str(name), int(table)), []).append((float(low), float(most)))
    return {**found, **{(str(name), int(table)): [] for name, table in unknown}}


def _asked_dex(given: Any) -> str:
    """Return the dex that a frame of tables was fetched for; the native one if it does not say."""
    facts = given.attrs.get("toolkit", {}) if isinstance(given, pd.DataFrame) else {}
    asked = facts.get("parameters", {}).get("dex", "") if isinstance(facts, Mapping) else ""
    return asked if isinstance(asked, str) else ""
