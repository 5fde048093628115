"""Margin buffers: how far each account is from liquidation, as a whole."""

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.accounts.margin_inputs import (
    STATED,
    LeverageLimits,
    Tiers,
    join_keys,
    read_accounts,
    read_positions,
    read_tiers,
)
from toolkit.analysis.accounts.values import to_engine
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.arrays import Flags
from toolkit.rules.margin import maintenance, tiered_adverse_move


def buffers(
    accounts: IntoFrameT,
    positions: IntoFrame,
    max_leverage: LeverageLimits | None = None,
    *,
    margin_tables: IntoFrame | None = None,
) -> IntoFrameT:
    """Compute how far each account is from liquidation, as a whole.

    Parameters
    ----------
    accounts, positions : DataFrame
        From `tk.batch_clearinghouse_states`: ``user, cross_account_value`` (and ``dex``,
        ``cross_maintenance_margin_used``); ``user, coin, szi, position_value, leverage_type,
        margin_used`` (and ``dex``, ``max_leverage``). Repeated rows count once. If accounts have
        several dexes and positions have no ``dex``, it is that of the coin, such as ``flx`` of
        ``flx:TSLA``.
    max_leverage : mapping of coin to number, or DataFrame, optional
        The largest leverage of each asset: a dict, or a frame of `tk.meta` (``name, max_leverage``,
        and ``margin_table_id``). Without it the positions' own ``max_leverage``.
    margin_tables : DataFrame, optional
        `tk.margin_tables` of one dex or, by `tk.concat`, of several: larger positions need more
        margin. Without it each coin has one tier, and a warning says so if meta names a table of
        several tiers. The provenance of the result says which tiers were used, as ``margin``, and
        for how many accounts on a dex the maintenance margin is that of the state.

    Returns
    -------
    DataFrame
        The engine of `accounts`, floats, sorted by user and dex; one row for all cross positions of
        an account on a dex together, and one for each isolated position:

        - ``user``: address of the account.
        - ``dex``: dex of the account, if both frames have it, or if accounts have several dexes.
        - ``margin``: ``"cross"`` or ``"isolated"``.
        - ``coin``: coin of an isolated position; missing for cross positions.
        - ``positions``: number of positions.
        - ``equity``: cross account value, or the isolated position's margin with its PnL, in USD.
        - ``notional``: notional of the positions, in USD.
        - ``maintenance``: maintenance margin of the positions, in USD: as stated
          (``cross_maintenance_margin_used``) if the state has it, else computed.
        - ``buffer``: ``equity - maintenance``, in USD.
        - ``distance``: share by which all prices must move against the account at once until it is
          liquidated; smaller is nearer. Above 1, only shorts continue to lose, because no price
          falls below 0. Missing if no move liquidates the account (its longs are paid in full, and
          it has no shorts), or if the largest leverage of a coin is not known.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If positions or accounts are of several moments or contradict each other, the largest
        leverages are not known, or margin tables are passed and no frame names the table of each
        coin.

    Notes
    -----
    Margin tiers: docs/live_service.md, section 4. Rules: `toolkit.rules.margin`. All positions of a
    cross account share its margin, and the liquidation price of one position depends on all others;
    so accounts are measured, not positions. `distance` moves every price against the account at
    once, the worst case. Unified accounts back their positions by more than a clearinghouse state
    shows, so their real distance is larger.

    Examples
    --------
    >>> import pandas as pd
    >>> accounts = pd.DataFrame({"user": ["a"], "cross_account_value": [100.0]})
    >>> rows = pd.DataFrame({"user": "a", "coin": ["X", "Y"], "szi": [1.0, -1.0],
    ...     "position_value": [400.0, 100.0], "leverage_type": ["cross", "isolated"],
    ...     "margin_used": [40.0, 20.0]})
    >>> made = buffers(accounts, rows, {"X": 50, "Y": 10})
    >>> made[["margin", "equity", "maintenance", "buffer", "distance"]].round(4)
         margin  equity  maintenance  buffer  distance
    0     cross   100.0          4.0    96.0    0.2424
    1  isolated    20.0          5.0    15.0    0.1429
    """
    accounts = drop_repeated_rows(accounts, "accounts")
    positions = drop_repeated_rows(positions, "positions")
    rows = read_positions(positions, ("margin_used",), ("leverage_type",))
    owners = read_accounts(accounts)
    keys = join_keys(owners, rows)
    tiers = read_tiers(rows, max_leverage, margin_tables)
    rows["_margin"] = maintenance(rows["notional"], tiers.max_leverage, tiers.lower_bound)
    is_isolated = (rows["leverage_type"] == "isolated").to_numpy()
    rows["margin"] = np.where(is_isolated, "isolated", "cross")
    owners = owners.set_index(keys)
    result = pd.concat(
        [
            _cross_buffers(rows, ~is_isolated, tiers, owners, keys),
            _isolated_buffers(rows, is_isolated, tiers, keys),
        ]
    )
    result["buffer"] = result["equity"] - result["maintenance"]
    money = ["equity", "notional", "maintenance", "buffer", "distance"]
    result = result.reindex(columns=[*keys, "margin", "coin", "positions", *money])
    result = result.astype(
        dict.fromkeys([*keys, "margin", "coin"], "str")
        | {"positions": "int64"}
        | dict.fromkeys(money, "float64")
    )
    result = result.sort_values([*keys, "margin", "coin"], ignore_index=True)
    inputs = {"accounts": accounts, "positions": positions}
    margin = _margin_source(tiers.source, result, owners, keys)
    native: IntoFrameT = to_engine(result, inputs, "liquidations.buffers", margin=margin)
    return native


def _margin_source(source: str, result: pd.DataFrame, owners: pd.DataFrame, keys: list[str]) -> str:
    """Return the source of the tiers, and for how many cross accounts the state has the margin."""
    if STATED not in owners:
        return source
    cross = result.loc[result["margin"] == "cross", keys]
    place = pd.MultiIndex.from_frame(cross) if len(keys) > 1 else pd.Index(cross["user"])
    stated = int(owners[STATED].reindex(place).notna().sum())
    if not stated:
        return source
    return f"{source}; maintenance as stated for {stated:,} of {len(cross):,} cross accounts"


def _cross_buffers(
    positions: pd.DataFrame,
    chosen: Flags,
    tiers: Tiers,
    owners: pd.DataFrame,
    keys: list[str],
) -> pd.DataFrame:
    """Add up the cross positions of each account, and measure how far it is."""
    rows = positions[chosen].assign(coin=None)
    sums = _sum_margins(rows, [*keys, "margin"])
    place = pd.MultiIndex.from_frame(sums[keys]) if len(keys) > 1 else pd.Index(sums[keys[0]])
    value = owners["cross_account_value"].astype("float64").reindex(place).to_numpy()
    computed = sums["maintenance"].to_numpy(dtype="float64")
    if STATED in owners:
        stated = owners[STATED].astype("float64").reindex(place).to_numpy()
        sums["maintenance"] = np.where(np.isnan(stated), computed, stated)
    # If the stated margin differs from the rules, the difference reduces the equity. So both agree
    # now, and the tiers determine how the margin changes with the price.
    stands_on = value - (sums["maintenance"].to_numpy() - computed)
    owner = rows.groupby([*keys, "margin"]).ngroup().to_numpy()
    moved = tiered_adverse_move(
        stands_on,
        owner,
        (rows["notional"] * np.sign(rows["szi"])).to_numpy(),
        tiers.max_leverage[chosen],
        tiers.lower_bound[chosen],
    )
    return sums.assign(equity=value, distance=moved)


def _isolated_buffers(
    positions: pd.DataFrame, chosen: Flags, tiers: Tiers, keys: list[str]
) -> pd.DataFrame:
    """Return the buffers of isolated positions."""
    rows = positions[chosen]
    moved = tiered_adverse_move(
        rows["margin_used"].to_numpy(),
        np.arange(len(rows)),
        (rows["notional"] * np.sign(rows["szi"])).to_numpy(),
        tiers.max_leverage[chosen],
        tiers.lower_bound[chosen],
    )
    result = rows[[*keys, "margin", "coin", "notional"]]
    return result.assign(
        positions=1, maintenance=rows["_margin"], equity=rows["margin_used"], distance=moved
    )


def _sum_margins(positions: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Sum positions and margins of each account; the margin is missing if one of them is."""
    sums = (
        positions.groupby(keys)
        .agg(
            positions=("notional", "size"),
            known=("_margin", "count"),
            notional=("notional", "sum"),
            maintenance=("_margin", "sum"),
        )
        .reset_index()
    )
    sums["maintenance"] = sums["maintenance"].mask(sums["known"] < sums["positions"])
    return sums.drop(columns="known")
