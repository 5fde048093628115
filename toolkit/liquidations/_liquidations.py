"""Liquidations: the prices at which positions are liquidated, and the fills of liquidations."""

from collections.abc import Iterable
from typing import Final, Literal

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.liquidations._margin_buffers import LeverageLimits, read_margins
from toolkit.prepare import Fills, groups
from toolkit.prepare.door import ADDRESSES, Frame, Table
from toolkit.prepare.provenance import finish
from toolkit.prepare.roles import OBJECT, warn_missing_directions
from toolkit.prepare.states import open_positions
from toolkit.rules.directions import LIQUIDATED
from toolkit.rules.margin import liquidation_price
from toolkit.statistics import check_positive

LiquidationSide = Literal["liquidated", "counterparty", "deleveraged"]
_SIDES: Final = ("liquidated", "counterparty", "deleveraged")
_ORDER: Final = ("liquidated", "deleveraged", "counterparty")
_DEFAULT: Final = ("liquidated", "counterparty")


def levels(
    positions: Frame,
    contexts: Frame | None = None,
    *,
    width: float = 0.01,
    reach: float = 0.5,
    accounts: Frame | None = None,
    max_leverage: LeverageLimits | None = None,
    margin_tables: Frame | None = None,
) -> pd.DataFrame:
    """Compute the notional that is liquidated, by how far the price must move.

    Parameters
    ----------
    positions : DataFrame
        Open positions of many accounts from `tk.batch_clearinghouse_states`: ``user, coin, szi,
        position_value, liquidation_px, leverage_type`` (and ``dex``). Repeated rows count once.
    contexts : DataFrame, optional
        `tk.meta_and_asset_ctxs` (``name, open_interest``), for the share of open interest in the
        result.
    width : float, default 0.01
        Width of a bin, as a share of the mark price.
    reach : float, default 0.5
        Largest distance from the mark price, as a share of it.
    accounts : DataFrame, optional
        Accounts of the same states, or a snapshot, as for `buffers`. Missing liquidation prices are
        then computed, each in the margin tier that applies at that price.
    max_leverage, margin_tables
        As for `buffers`; used with `accounts`.

    Returns
    -------
    DataFrame
        One row for each coin, side and bin with a position, sorted:

        - ``coin``: coin of the positions.
        - ``side``: ``"long"`` or ``"short"``.
        - ``distance``: from the mark price to the nearer edge of the bin, as a share of the mark
          price, negative below it: -0.05 with a width of 0.01 is 5 to 6 % below. A coin and side
          with only unplaced positions has one row without a bin.
        - ``low``: lower edge of the bin in USD, at the coin's mark price.
        - ``high``: upper edge of the bin in USD, at the coin's mark price.
        - ``positions``: number of positions that are liquidated in the bin.
        - ``accounts``: number of accounts that are liquidated in the bin.
        - ``notional``: notional of the positions that are liquidated in the bin, at the mark price,
          in USD.
        - ``cumulative``: notional from the mark price to this bin inclusive, in USD.
        - ``cross_share``: cross-margined share of the notional.
        - ``unplaced``: notional of the coin and side, in USD, that no price above 0 liquidates, or
          only a price beyond `reach`. Without `accounts`, a missing price counts as none.
        - ``known``: share of the open interest of this side that is in `positions`; missing without
          contexts.
        - ``covered``: share of the open interest of this side that is in the bins; missing without
          contexts.
        - ``unmeasured``: notional of the coin and side, in USD, whose liquidation price is not
          known: the collateral of the account, or the largest leverage of a coin, is missing. It is
          not in ``unplaced``. 0 without `accounts`.

    Raises
    ------
    MissingColumns
        If a column is missing, numbers are text, or a position has no size.
    ValueError
        If `width` or `reach` is not positive, or positions are of several moments or contradict
        each other.

    Notes
    -----
    The liquidation price of a cross position assumes that the account's other positions do not
    change. Each position counts on its own, so an account may be in several bins. `buffers`
    measures accounts as a whole. The mark price is position value over size. Open interest counts
    one side, so with all accounts ``known`` is 1 for each side.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["a", "b"], "coin": "X", "szi": [10.0, -4.0],
    ...     "position_value": [1000.0, 400.0], "liquidation_px": [94.5, None],
    ...     "leverage_type": "cross"})
    >>> contexts = pd.DataFrame({"name": ["X"], "open_interest": [20.0]})
    >>> made = levels(rows, contexts)
    >>> made[["side", "distance", "notional", "unplaced", "known", "covered"]]
        side  distance  notional  unplaced  known  covered
    0   long     -0.05    1000.0       0.0    0.5      0.5
    1  short       NaN       0.0     400.0    0.2      0.0
    """
    check_positive(width=width, reach=reach)
    margin = () if accounts is None else ("margin_used",)
    rows = open_positions(positions, ("liquidation_px", *margin), ("leverage_type",))
    px, mark = rows["liquidation_px"].to_numpy(), rows["mark"].to_numpy()
    unmeasured = np.zeros(len(rows), dtype=bool)
    if accounts is not None:
        margins, tiers, _ = read_margins(rows, accounts, max_leverage, margin_tables)
        # The margin of the account's other positions is not available to this one.
        free = (margins["room"] - margins["computed"]).to_numpy()
        equity = free[rows["account"]] + rows["own"].to_numpy()
        computed = liquidation_price(mark, rows["szi"], equity, *tiers)
        unmeasured = np.isnan(px) & np.isnan(equity)
        px = np.where(np.isnan(px), computed, px)
    away = px / mark - 1
    # The small number keeps a price on an edge in the bin that begins there.
    rows["bin"] = np.where(np.abs(away) <= reach, np.floor(away / width + 1e-9), np.nan)
    placed = rows["bin"].notna()
    rows = rows.assign(
        covered=rows["size"] * placed,
        unplaced=rows["notional"] * ~(placed | unmeasured),
        unmeasured=rows["notional"] * unmeasured,
        cross=rows["notional"] * (rows["leverage_type"] == "cross"),
    )
    by_side = rows.groupby(["coin", "side"])
    sides = by_side[["size", "covered", "unplaced", "unmeasured"]].sum(skipna=False)
    sides["mark"] = by_side["mark"].median()
    by_bin = rows[placed].groupby(["coin", "side", "bin"])
    bins = by_bin.agg(positions=("user", "size"), accounts=("user", "nunique"))
    bins[["notional", "cross"]] = by_bin[["notional", "cross"]].sum(skipna=False)
    bins = bins.reset_index()
    # Sums from the mark price outwards, below and above it.
    outwards = bins.assign(below=bins["bin"] < 0).iloc[bins["bin"].abs().argsort(kind="stable")]
    by_way = outwards.groupby(["coin", "side", "below"])["notional"]
    bins["cumulative"] = by_way.cumsum(skipna=False)
    # A side without a placed position has one row without a bin.
    made = sides.join(bins.set_index(["coin", "side"])).sort_values(["coin", "side", "bin"])
    counts = ["positions", "accounts", "notional", "cumulative"]
    made.loc[made["bin"].isna(), counts] = 0
    made = made.reset_index()
    edge = made["bin"] * width
    interest = np.full(len(made), np.nan)
    if contexts is not None:
        table = Table(contexts, "contexts")
        table.require(("name", "open_interest"))
        stated = dict(zip(table.frame["name"], table.number("open_interest"), strict=True))
        interest = made["coin"].map(stated).to_numpy(np.float64)
        interest = np.where(interest > 0, interest, np.nan)
    result = pd.DataFrame(
        {
            "coin": made["coin"],
            "side": made["side"],
            "distance": np.round(np.where(edge < 0, edge + width, edge), 12),
            "low": made["mark"] * (1 + edge),
            "high": made["mark"] * (1 + edge + width),
            **{name: made[name].astype("int64") for name in counts[:2]},
            **{name: made[name] for name in counts[2:]},
            "cross_share": made["cross"] / made["notional"],
            "unplaced": made["unplaced"],
            "known": made["size"] / interest,
            "covered": made["covered"] / interest,
            "unmeasured": made["unmeasured"],
        }
    )
    inputs = {"positions": positions, "contexts": contexts}
    return finish(result, inputs, helper="liquidations.levels")


def fills(
    fills: Frame | Fills,
    side: LiquidationSide | Iterable[LiquidationSide] = _DEFAULT,
    *,
    account: str | None = None,
) -> pd.DataFrame:
    """Return the fills of liquidations, each marked as liquidated account or counterparty.

    A liquidation by market order looks like any other fill except for its liquidation object. Both
    sides of the trade carry it (docs/live_service.md, section 2). The account that the object names
    is the liquidated one, whatever ``dir`` says. If an account takes over positions as backstop,
    its own later liquidation is left out: it passes such a position on.

    Parameters
    ----------
    fills : DataFrame
        Fills with ``dir``, or with the columns of the liquidation object (``liquidated_user``,
        ``liquidation_method``, ``liquidation_mark_px``), of one account or, with ``user``, of many.
        Repeated rows count once.
    side : {"liquidated", "counterparty", "deleveraged"} or list of them
        Which fills: the exchange closed the account's position; the account traded against another
        account's liquidation; or the exchange closed the account's position to settle a bankrupt
        one (``Auto-Deleveraging``). By default the first two.
    account : str, optional
        Account of the fills, if they have no column ``user``. If it is not known, the taker of a
        liquidation by market order counts as the liquidated account.

    Returns
    -------
    DataFrame
        The rows of those sides in the same order, with all of their columns, and

        - ``liquidation_side``: side of the liquidation: ``liquidated``, ``counterparty`` or
          ``deleveraged``.

    Raises
    ------
    MissingColumns
        If no column marks liquidations.
    ValueError
        If there is no such side.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["0xa", "0xb", "0xa"], "coin": "HYPE", "sz": [6.2, 6.2, 1.0],
    ...     "dir": ["Close Long", "Open Long", "Open Long"],
    ...     "liquidated_user": ["0xa", "0xa", None]})
    >>> fills(rows)[["user", "dir", "liquidation_side"]]
      user         dir liquidation_side
    0  0xa  Close Long       liquidated
    1  0xb   Open Long     counterparty
    >>> len(fills(rows, "counterparty"))
    1
    """
    wanted = [side] if isinstance(side, str) else list(side)
    if wrong := [name for name in wanted if name not in _SIDES]:
        raise ValueError(f"unknown side {wrong[0]!r}; choose one of {', '.join(_SIDES)}")
    prepared = prepare.fills(fills, account)
    table = prepared.table
    _require_markers(table)
    roles = prepared.roles
    sides = np.select([roles.liquidated, roles.deleveraged, roles.counterparty], _ORDER, default="")
    kept = np.isin(sides, wanted)
    result = table.frame[kept].assign(liquidation_side=pd.array(sides[kept], dtype="str"))
    for name in set(ADDRESSES) & set(result.columns):
        result[name] = table.text(name).texts(kept).array
    return finish(result, {"fills": table.frame}, helper="liquidations.fills", side=wanted)


def _require_markers(table: Table) -> None:
    """Raise `MissingColumns` if no column marks liquidations; warn of unknown directions."""
    markers = [name for name in ("dir", *OBJECT) if table.has(name)]
    if not markers:
        advice = "Add it, or add dir, which names backstop liquidations"
        table.require(["liquidated_user"], advice)
    if "dir" in markers and all(map(table.is_blank, markers)):
        table.require_some("dir", "says which fills are liquidations")
    warn_missing_directions(table)


def history(
    fills: Frame | Fills,
    step: str = "hour",
    by: str | Iterable[str] | None = None,
    *,
    account: str | None = None,
) -> pd.DataFrame:
    """Sum liquidations over time, by method and side, with their slippage to the mark price.

    Parameters
    ----------
    fills : DataFrame
        As for `fills`, with ``time, coin, px, sz, side``. If it has both sides of a trade, only
        that of the liquidated account counts.
    step : {"hour", "day", "week"}, default "hour"
        Length of a period, UTC; weeks begin on Monday.
    by : str or list of str, optional
        Further groups: ``coin``, ``dex``, ``user`` or any column of the fills.
    account : str, optional
        As for `fills`.

    Returns
    -------
    DataFrame
        Sorted, one row for each group with a liquidation: the columns of `by`, then

        - ``time``: start of the period, UTC.
        - ``method``: ``market``: orders on the book; ``backstop``: the positions were taken over;
          ``deleveraging``: positions of others that were closed against a bankrupt account; or
          ``unknown``.
        - ``side``: side of the closed position: ``long`` or ``short``.
        - ``fills``: number of fills.
        - ``accounts``: number of accounts; missing if no row names its account.
        - ``notional``: size times price, in USD; other collateral than USDC counts at par.
        - ``closed_pnl``: closed PnL as stated, in USD; missing without the column.
        - ``marked``: notional of the fills that state a mark price, in USD.
        - ``slippage_bps``: by how much these fills were worse than the mark price, in basis points
          of the notional at the mark price: positive if a long was sold below it. Missing without a
          mark price, as for deleveraging.

    Raises
    ------
    MissingColumns
        If a column is missing, or no column marks liquidations.
    ValueError
        If there is no such step.

    Notes
    -----
    A position counts once: at the trader's liquidation. If a backstop vault that took it over is
    deleveraged later, that second stage does not count (docs/live_service.md, section 2). A
    deleveraging closes a long and a short, which are two rows.

    Examples
    --------
    A long of 10 is sold at 98 while the mark price is 100.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["0xa", "0xb"], "coin": "X", "px": 98.0, "sz": 10.0,
    ...     "side": ["A", "B"], "dir": ["Close Long", "Open Long"], "liquidated_user": "0xa",
    ...     "liquidation_method": "market", "liquidation_mark_px": 100.0,
    ...     "time": pd.Timestamp("2025-10-10T21:20", tz="UTC")})
    >>> history(rows)[["method", "side", "accounts", "notional", "slippage_bps"]]
       method  side  accounts  notional  slippage_bps
    0  market  long         1     980.0         200.0
    """
    if step not in groups.CALENDAR:
        raise ValueError(f"unknown step {step!r}; choose one of {', '.join(groups.CALENDAR)}")
    keys = groups.list_keys(by, ("time", "method", "notional", "closed_pnl", *groups.CALENDAR))
    prepared = prepare.fills(fills, account)
    table, roles = prepared.table, prepared.roles
    table.require(("time", "coin", "px", "sz", "side"))
    _require_markers(table)
    rows = np.flatnonzero(roles.liquidated | roles.deleveraged)
    words, stated = (
        table.text(name, blank=True).take(rows) for name in ("dir", "liquidation_method")
    )
    is_backstop = words.facts(lambda word: word.startswith((LIQUIDATED, "Backstop")))
    method = np.select(
        [
            roles.deleveraged[rows],
            stated.facts("market".__eq__),
            stated.facts("backstop".__eq__) | is_backstop,
        ],
        ["deleveraging", "market", "backstop"],
        default="unknown",
    )
    sells = table.text("side").facts("A".__eq__)[rows]
    columns = groups.group_columns(table, [*keys, step], rows=rows).rename(columns={step: "time"})
    columns["method"] = pd.array(method, dtype="str")
    columns["side"] = pd.array(np.where(sells, "long", "short"), dtype="str")
    group, result = groups.number_groups(columns, missing_last=True)
    size = table.number("sz")[rows]
    usd = table.number("px")[rows] * size
    at_mark = table.number("liquidation_mark_px", np.nan)[rows] * size
    amounts = {
        "usd": usd,
        "closed_pnl": table.number("closed_pnl", np.nan)[rows],
        "marked": np.where(at_mark > 0, usd, 0.0),
        "worse": np.nan_to_num(np.where(sells, at_mark - usd, usd - at_mark)),
        "at_mark": np.nan_to_num(at_mark),
    }
    sums = pd.DataFrame(amounts).groupby(group).sum(skipna=False)
    users = pd.Series(1 if prepared.account is not None else pd.NA, result.index, dtype="Int64")
    if table.has("user"):
        users = pd.Series(table.text("user").codes[rows]).groupby(group).nunique()
    result = result.assign(
        fills=np.bincount(group, minlength=len(result)),
        accounts=users.astype("Int64"),
        notional=sums["usd"],
        closed_pnl=sums["closed_pnl"],
        marked=sums["marked"],
        slippage_bps=1e4 * groups.ratio(sums["worse"], sums["at_mark"]),
    )
    inputs = {"fills": table.frame}
    return finish(result, inputs, helper="liquidations.history", by=keys, step=step)
