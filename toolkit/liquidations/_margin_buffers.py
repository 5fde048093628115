"""Margin buffers: how far each account is from liquidation, as a whole."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from toolkit.accounts._values import values_table
from toolkit.arrays import Floats, Ints
from toolkit.liquidations._margin_tiers import LeverageLimits, Tiers, read_tiers
from toolkit.prepare import states
from toolkit.prepare.door import Frame, Table, as_pandas
from toolkit.prepare.groups import number_rows, sum_groups
from toolkit.prepare.provenance import finish
from toolkit.rules.margin import maintenance, tiered_adverse_move


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
    margins = read_margins(rows, accounts, max_leverage, margin_tables)
    table = margins.table
    result = table.assign(
        buffer=table["equity"] - table["maintenance"], distance=margins.distances(rows)
    )
    inputs = {"accounts": accounts, "positions": positions}
    source = margins.tiers.source
    if margins.stated:
        cross = int((table["margin"] == "cross").sum())
        source += f"; maintenance as stated for {margins.stated:,} of {cross:,} cross accounts"
    return finish(result, inputs, helper="liquidations.buffers", margin=source)


class Margins(NamedTuple):
    """Margins of accounts: an account is all cross positions on a dex, or one isolated position.

    - ``account``: place of each position's account in `table`
    - ``own``: maintenance margin of each position by the tiers; NaN if not known
    - ``computed``: the sum of `own` of each account
    - ``equity``: equity of each account for the rules. If the stated margin differs from the rules,
      the difference reduces the equity. So both agree now, and the tiers determine how the margin
      changes with the price.
    - ``table``: the accounts, sorted, with what is stated
    - ``tiers``: tiers of the positions
    - ``stated``: number of accounts with a stated maintenance margin
    """

    account: Ints
    own: Floats
    computed: Floats
    equity: Floats
    table: pd.DataFrame
    tiers: Tiers
    stated: int

    def distances(self, rows: pd.DataFrame) -> Floats:
        """Return the distance of each account from liquidation."""
        value = (rows["notional"] * np.sign(rows["szi"])).to_numpy()
        return tiered_adverse_move(
            self.equity, self.account, value, self.tiers.max_leverage, self.tiers.lower_bound
        )


def read_margins(
    rows: pd.DataFrame,
    accounts: Frame,
    max_leverage: LeverageLimits | None,
    margin_tables: Frame | None,
) -> Margins:
    """Return the margins of the accounts of positions; `rows` are of `open_positions`."""
    is_isolated = (rows["leverage_type"] == "isolated").to_numpy()
    is_snapshot = "collateral_token" in as_pandas(accounts, "accounts")
    owners = _snapshot_accounts(accounts, rows) if is_snapshot else states.account_states(accounts)
    keys = states.join_keys(owners, rows)
    tiers = read_tiers(rows, max_leverage, margin_tables)
    own = maintenance(rows["notional"], tiers.max_leverage, tiers.lower_bound)
    codes = [pd.factorize(rows[name], sort=True)[0] for name in (*keys, "coin")]
    codes[-1] = np.where(is_isolated, codes[-1] + 1, 0)
    account = number_rows(*codes)
    first = np.unique(account, return_index=True)[1]
    is_cross = ~is_isolated[first]
    found = rows.iloc[first].reset_index(drop=True)
    stated_names = ["cross_account_value", "account_mode", states.STATED]
    owned = found[keys].merge(owners.drop_duplicates(keys, keep="last"), "left", keys)
    value, mode, stated = owned.reindex(columns=stated_names).to_numpy(np.float64).T

    def sums(name: str) -> Floats:
        return sum_groups(account, rows[name].to_numpy(), len(first))

    computed, margin = sum_groups(account, own, len(first)), sums("margin_used")
    stated = np.where(is_cross, stated, np.nan)
    needed = np.where(np.isnan(stated), computed, stated)
    if is_snapshot:  # the value contains the margin of isolated positions
        isolated = pd.Series(np.where(is_cross, 0.0, margin))
        value = value - isolated.groupby([found[name] for name in keys]).transform("sum")
    else:
        gain = sums("unrealized_pnl") if "unrealized_pnl" in rows else np.full(len(first), np.nan)
        backed = is_cross & states.is_spot_backed(mode, value, gain, states.BACKSTOP_SHARE * needed)
        states.warn_spot_backed(found["user"][backed], mode[backed])
        value = np.where(backed, np.nan, value)
    equity = np.where(is_cross, value, margin)
    table = found[keys].assign(
        margin=pd.array(np.where(is_cross, "cross", "isolated"), dtype="str"),
        coin=found["coin"].astype("str").mask(is_cross),
        positions=np.bincount(account, minlength=len(first)),
        equity=equity,
        notional=sums("notional"),
        maintenance=needed,
    )
    count = int((~np.isnan(stated)).sum())
    return Margins(account, own, computed, equity - (needed - computed), table, tiers, count)


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
