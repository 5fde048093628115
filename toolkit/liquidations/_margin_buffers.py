"""Margin buffers: how far each account is from liquidation, as a whole.

Margin tiers: larger positions have a smaller largest leverage (docs/live_service.md, section 4). A
margin table lists the tiers of a coin. An id below 50 that no table lists means one tier with that
leverage.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.accounts._values import values_table
from toolkit.arrays import Floats
from toolkit.contract.dexes import canonical_dex
from toolkit.errors import warn_caller
from toolkit.prepare import states
from toolkit.prepare.door import NATIVE_DEX, Frame, Table, as_pandas
from toolkit.prepare.groups import number_groups, number_rows, sum_groups
from toolkit.prepare.provenance import finish, frame_provenance
from toolkit.rules.margin import maintenance, pad_tiers, tiered_adverse_move

TierTable = list[tuple[float, float]]

LeverageLimits = Mapping[str, float] | Frame
"""Largest leverages by coin: a mapping, or a frame of `tk.meta`."""

FIRST_TABLE: Final = 50
"""The lowest id of a margin table; a smaller id is the largest leverage of a single tier."""

_TABLE_COLUMNS: Final = ("margin_table_id", "lower_bound", "max_leverage")


def buffers(
    accounts: Frame,
    positions: Frame,
    max_leverage: LeverageLimits | None = None,
    *,
    margin_tables: Frame | None = None,
) -> pd.DataFrame:
    """Compute how far each account is from liquidation, as a whole.

    Parameters
    ----------
    accounts, positions : DataFrame
        From `tk.batch_clearinghouse_states`: ``user, cross_account_value`` (and ``dex``,
        ``cross_maintenance_margin_used``); ``user, coin, szi, position_value, leverage_type,
        margin_used`` (and ``dex``, ``max_leverage``). Repeated rows count once. If accounts have
        several dexes and positions have no ``dex``, it is that of the coin, such as ``flx`` of
        ``flx:TSLA``. Instead of the accounts of states, you can pass `tk.account_value_snapshots`
        of the same moment, whose values include the spot wallets.
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
        Sorted by user and dex; one row for all cross positions of an account on a dex together, and
        one for each isolated position:

        - ``user``: address of the account.
        - ``dex``: dex of the account, if both frames have it, or if accounts have several dexes.
          With a snapshot, the positions of a unified account in one collateral token are one
          account, with the token as dex, and those of a portfolio-margin account are one, ``all``.
        - ``margin``: ``"cross"`` or ``"isolated"``.
        - ``coin``: coin of an isolated position; missing for cross positions.
        - ``positions``: number of positions.
        - ``equity``: cross account value, or the isolated position's margin with its PnL, in USD.
        - ``notional``: notional of the positions, in USD.
        - ``maintenance``: maintenance margin of the positions, in USD: as stated
          (``cross_maintenance_margin_used``, or ``pm_ratio`` of the value) if known, else computed.
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
        leverages are not known, margin tables are passed and no frame names the table of each
        coin, or accounts have no ``dex`` and an account has cross positions on several dexes.

    Notes
    -----
    Margin tiers: docs/live_service.md, section 4. Rules: `toolkit.rules.margin`. All positions of a
    cross account share its margin, and the liquidation price of one position depends on all others;
    so accounts are measured, not positions. `distance` moves every price against the account at
    once, the worst case.

    Unified and portfolio-margin accounts back their positions by the spot wallet, which a
    clearinghouse state does not have. Their equity and distance are missing, and a warning names
    them. ``account_mode`` tells which they are, if the states have it. If not, these accounts have
    no cash in the state, or less than two thirds of the maintenance margin, at which a standard
    account is taken over at once. A snapshot has the collateral.

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
    rows = states.open_positions(positions, ("margin_used",), ("leverage_type",))
    table, tiers, source = read_margins(rows, accounts, max_leverage, margin_tables)
    moves = tiered_adverse_move(table.pop("room"), rows["account"], rows["value"], *tiers)
    stated = table.pop("stated")
    result = table.drop(columns="computed").assign(
        buffer=table["equity"] - table["maintenance"], distance=moves
    )
    if count := int(stated.sum()):
        cross = int((table["margin"] == "cross").sum())
        source += f"; maintenance as stated for {count:,} of {cross:,} cross accounts"
    inputs = {"accounts": accounts, "positions": positions}
    return finish(result, inputs, helper="liquidations.buffers", margin=source)


def read_margins(
    rows: pd.DataFrame,
    accounts: Frame,
    max_leverage: LeverageLimits | None,
    margin_tables: Frame | None,
) -> tuple[pd.DataFrame, tuple[Floats, Floats], str]:
    """Return the margins of the accounts of positions, the tiers of positions, and their source.

    An account is all cross positions on a dex, or one isolated position. The accounts are sorted
    and have the columns of `buffers` but the last two, and

    - ``computed``: maintenance margin by the tiers; NaN if not known
    - ``room``: equity for the rules. If the stated margin differs from the rules, the difference
      reduces the equity. So both agree now, and the tiers determine how the margin changes with
      the price.
    - ``stated``: whether the maintenance margin is stated

    `rows` are of `open_positions`. This adds ``account``: place of the account, ``own``:
    maintenance margin of the position, and ``value``: its value, negative for shorts.
    """
    is_isolated = (rows["leverage_type"] == "isolated").to_numpy()
    is_snapshot = "collateral_token" in as_pandas(accounts, "accounts")
    owners = _snapshot_accounts(accounts, rows) if is_snapshot else states.account_states(accounts)
    keys = states.join_keys(owners, rows)
    most, low, source = read_tiers(rows, max_leverage, margin_tables)
    codes = [pd.factorize(rows[name], sort=True)[0] for name in (*keys, "coin")]
    account = number_rows(*codes[:-1], np.where(is_isolated, codes[-1] + 1, 0))
    rows["account"], rows["own"] = account, maintenance(rows["notional"], most, low)
    rows["value"] = rows["notional"] * np.sign(rows["szi"])
    first = np.unique(account, return_index=True)[1]
    is_cross = ~is_isolated[first]
    found = rows.iloc[first].reset_index(drop=True)
    owned = found[keys].merge(owners.drop_duplicates(keys, keep="last"), "left", keys)
    stated_names = ["cross_account_value", "account_mode", states.STATED]
    value, mode, stated = owned.reindex(columns=stated_names).to_numpy(np.float64).T
    amounts = rows.reindex(columns=["own", "margin_used", "notional", "unrealized_pnl"])
    computed, margin, notional, gain = (
        sum_groups(account, amount, len(first)) for amount in amounts.to_numpy(np.float64).T
    )
    stated = np.where(is_cross, stated, np.nan)
    needed = np.where(np.isnan(stated), computed, stated)
    if is_snapshot:  # the value contains the margin of isolated positions
        isolated = pd.Series(np.where(is_cross, 0.0, margin))
        value = value - isolated.groupby([found[name] for name in keys]).transform("sum")
    else:
        backed = is_cross & states.is_spot_backed(mode, value, gain, states.BACKSTOP_SHARE * needed)
        states.warn_spot_backed(found["user"][backed], mode[backed])
        value = np.where(backed, np.nan, value)
    equity = np.where(is_cross, value, margin)
    table = found[keys].assign(
        margin=pd.array(np.where(is_cross, "cross", "isolated"), dtype="str"),
        coin=found["coin"].astype("str").mask(is_cross),
        positions=np.bincount(account, minlength=len(first)),
        equity=equity,
        notional=notional,
        maintenance=needed,
        computed=computed,
        room=equity - (needed - computed),
        stated=~np.isnan(stated),
    )
    return table, (most, low), source


def _snapshot_accounts(snapshot: Frame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the accounts of a snapshot, and rename the dexes of positions accordingly.

    All positions of a unified account in one collateral token are one account, which has the name
    of the token as dex; all positions of a portfolio-margin account are one, ``all``.
    """
    parts, by_token, whole = (
        values_table(snapshot, keys, ["mode"], "accounts")
        for keys in (["dex", "token"], ["token"], [])
    )
    unified, portfolio = states.MODES[states.UNIFIED], states.MODES[states.PORTFOLIO_MARGIN]
    table = Table(snapshot, "accounts", "snapshot")
    ratio = pd.Series(table.number("pm_ratio", np.nan)).groupby(table.text("user").texts()).max()
    mode = rows["user"].map(dict(zip(whole["user"], whole["mode"], strict=True)))
    dex = rows["dex"] if "dex" in rows else states.dex_names(rows["coin"])
    token = dex.map(dict(zip(parts["dex"], parts["token"], strict=True)))
    rows["dex"] = dex.where(mode != unified, token).mask(mode == portfolio, "all")
    merged = whole[whole["mode"] == portfolio]
    margin = merged["user"].map(ratio).astype("float64") * merged["value"]
    owners = [
        parts[~parts["mode"].isin([unified, portfolio])],
        by_token[by_token["mode"] == unified].assign(dex=lambda found: found["token"]),
        merged.assign(dex="all", **{states.STATED: margin}),
    ]
    return pd.concat(owners).rename(columns={"value": "cross_account_value"})


def read_tiers(
    positions: pd.DataFrame, max_leverage: LeverageLimits | None, margin_tables: Frame | None
) -> tuple[Floats, Floats, str]:
    """Return the tiers of each position: largest leverages, lower bounds, source.

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
    most, ids = dict[str, float](), dict[str, float]()
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
    found, single = list[TierTable](), set[str]()
    dexes = states.dex_names(kinds["coin"])
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
            f"positions in {states.name_some(sorted(single))}: their margin tables were not "
            "passed, or a row of margin_tables lacks the leverage or the lower bound. One tier is "
            "used, so the distance of large positions from liquidation is wrong. Pass "
            "margin_tables=tk.margin_tables()",
            UserWarning,
        )
    leverages, low = pad_tiers(found) if found else (np.zeros((0, 1)), np.zeros((0, 1)))
    source = "one tier for each coin" if margin_tables is None or single else "margin tables"
    return leverages[place], low[place], source


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
