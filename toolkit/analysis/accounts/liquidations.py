"""Liquidations: the prices at which positions are liquidated, and the fills of liquidations."""

from collections.abc import Iterable
from typing import Final, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.accounts.margin_inputs import (
    LeverageLimits,
    join_keys,
    read_accounts,
    read_positions,
    read_tiers,
)
from toolkit.analysis.accounts.values import to_engine
from toolkit.analysis.common import fill_kinds, frame_access, memory_frames
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.rules.margin import liquidation_price, maintenance

LiquidationSide = Literal["liquidated", "counterparty", "deleveraged"]
_SIDES: Final = ("liquidated", "counterparty", "deleveraged")
_DEFAULT: Final = ("liquidated", "counterparty")
_LEVELS = ("positions", "accounts", "notional", "cumulative", "cross_share")
_GROUP = ["coin", "side", "_bin"]


def levels(
    positions: IntoFrameT,
    contexts: IntoFrame | None = None,
    *,
    width: float = 0.01,
    reach: float = 0.5,
    accounts: IntoFrame | None = None,
    max_leverage: LeverageLimits | None = None,
    margin_tables: IntoFrame | None = None,
) -> IntoFrameT:
    """Compute the notional that is liquidated, by how far the price must move.

    Parameters
    ----------
    positions : DataFrame
        Open positions of many accounts from `tk.batch_clearinghouse_states`: ``user, coin, szi,
        position_value, liquidation_px, leverage_type`` (and ``dex``). pandas, Polars,
        DuckDB, PySpark; float or exact. Repeated rows count once.
    contexts : DataFrame, optional
        `tk.meta_and_asset_ctxs` (``name, open_interest``), for the share of open interest in the
        result.
    width : float, default 0.01
        Width of a bin, as a share of the mark price.
    reach : float, default 0.5
        Largest distance from the mark price, as a share of it.
    accounts : DataFrame, optional
        Accounts of the same states, as for `buffers`. Missing liquidation prices are then computed,
        each in the margin tier that applies at that price.
    max_leverage, margin_tables
        As for `buffers`; used with `accounts`.

    Returns
    -------
    DataFrame
        The engine of `positions`, floats; one row for each coin, side and bin with a position,
        sorted:

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
          only a price beyond `reach`.
        - ``known``: share of the open interest of this side that is in `positions`; missing without
          contexts.
        - ``covered``: share of the open interest of this side that is in the bins; missing without
          contexts.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
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
    positions = drop_repeated_rows(positions, "positions")
    for name, number in (("width", width), ("reach", reach)):
        if not number > 0:
            raise ValueError(f"{name} must be above 0, not {number!r}")
    margin = () if accounts is None else ("margin_used",)
    frame = read_positions(positions, ("liquidation_px", *margin), ("leverage_type",))
    if accounts is not None:
        frame["liquidation_px"] = _fill_liquidation_prices(
            frame, accounts, max_leverage, margin_tables
        )
    frame["_bin"] = _bin_numbers(frame, width, reach)
    placed = frame.dropna(subset="_bin")
    bins = _sum_bins(placed)
    sides = _sum_sides(frame, placed, contexts)
    bins = bins.merge(sides, on=["coin", "side"], how="right")
    edge = bins["_bin"] * width
    bins["distance"] = edge.where(bins["_bin"] >= 0, edge + width).round(12)
    bins["low"] = bins["_mark"] * (1 + edge)
    bins["high"] = bins["_mark"] * (1 + edge + width)
    bins = bins.fillna({"notional": 0.0, "cumulative": 0.0, "positions": 0, "accounts": 0})
    bins = bins.astype({"positions": "int64", "accounts": "int64"})
    bins = bins.sort_values(_GROUP, na_position="last", ignore_index=True)
    kept = ("distance", "low", "high", *_LEVELS, "unplaced", "known", "covered")
    result = bins[["coin", "side", *kept]]
    native: IntoFrameT = to_engine(
        result, {"positions": positions, "contexts": contexts}, "liquidations.levels"
    )
    return native


def _fill_liquidation_prices(
    frame: pd.DataFrame,
    accounts: IntoFrame,
    max_leverage: LeverageLimits | None,
    margin_tables: IntoFrame | None,
) -> pd.Series:
    """Return liquidation prices: as stated, or else in the tier that applies at the price."""
    owners = read_accounts(drop_repeated_rows(accounts, "accounts"))
    keys = join_keys(owners, frame)
    tiers = read_tiers(frame, max_leverage, margin_tables)
    margin = pd.Series(
        maintenance(frame["notional"], tiers.max_leverage, tiers.lower_bound), index=frame.index
    )
    is_isolated = frame["leverage_type"] == "isolated"
    cross = margin.where(~is_isolated, 0.0)
    account_margin = cross.groupby([frame[key] for key in keys]).transform(
        lambda part: part.sum(skipna=False)
    )
    value = owners.set_index(keys)["cross_account_value"].astype("float64")
    place = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else pd.Index(frame["user"])
    behind = pd.Series(value.reindex(place).to_numpy(), index=frame.index) - (
        account_margin - cross
    )
    price = liquidation_price(
        frame["mark"],
        frame["szi"],
        frame["margin_used"].where(is_isolated, behind),
        tiers.max_leverage,
        tiers.lower_bound,
    )
    return frame["liquidation_px"].fillna(pd.Series(price, index=frame.index))


def _bin_numbers(frame: pd.DataFrame, width: float, reach: float) -> pd.Series:
    """Return the bin of each liquidation price, counted from the mark price; NaN if it has none."""
    distance = frame["liquidation_px"] / frame["mark"] - 1
    # The small number keeps a price on an edge in the bin that begins there.
    found: pd.Series = np.floor(distance / width + 1e-9).where(distance.abs() <= reach)
    return found


def _sum_bins(placed: pd.DataFrame) -> pd.DataFrame:
    crossed = placed["notional"].where(placed["leverage_type"] == "cross", 0.0)
    grouped = placed.assign(_cross=crossed).groupby(_GROUP, as_index=False)
    bins = grouped.agg(
        positions=("user", "count"),
        accounts=("user", "nunique"),
        notional=("notional", "sum"),
        _cross=("_cross", "sum"),
    )
    bins["cross_share"] = bins["_cross"] / bins["notional"]
    below = bins["_bin"] < 0
    bins["_away"] = bins["_bin"].abs()
    bins = bins.sort_values("_away", kind="stable")
    bins["cumulative"] = bins.groupby(["coin", "side", below])["notional"].cumsum()
    return bins


def _sum_sides(
    frame: pd.DataFrame, placed: pd.DataFrame, contexts: IntoFrame | None
) -> pd.DataFrame:
    """Return the mark price, the unplaced notional and the coverage of each coin and side."""
    keys = ["coin", "side"]
    sides = frame.groupby(keys).agg(
        _mark=("mark", "median"), _size=("size", "sum"), _whole=("notional", "sum")
    )
    inside = placed.groupby(keys).agg(_in=("size", "sum"), _placed=("notional", "sum"))
    sides = sides.join(inside).fillna({"_in": 0.0, "_placed": 0.0}).reset_index()
    # Rounding may leave a rest of the difference, which is not a notional.
    left = sides["_whole"] - sides["_placed"]
    sides["unplaced"] = left.where(left > 1e-9 * sides["_whole"], 0.0)
    interest = sides["coin"].map(_open_interest(contexts)).astype("float64")
    sides["known"] = sides["_size"] / interest.where(interest > 0)
    sides["covered"] = sides["_in"] / interest.where(interest > 0)
    return sides


def _open_interest(contexts: IntoFrame | None) -> dict[str, float]:
    if contexts is None:
        return {}
    frame = memory_frames.to_pandas(contexts)
    opened = frame_access.open_frame(frame, "contexts")
    frame_access.require_columns(opened, ("name", "open_interest"), "contexts")
    frame_access.number_kind(opened, ["open_interest"], "contexts")
    return dict(zip(frame["name"], frame["open_interest"].astype("float64"), strict=True))


def fills(
    fills: IntoFrameT,
    side: LiquidationSide | Iterable[LiquidationSide] = _DEFAULT,
    *,
    account: str | None = None,
) -> IntoFrameT:
    """Return the fills of liquidations, each marked as liquidated account or counterparty.

    A liquidation by market order looks like any other fill except for its liquidation object. Both
    sides of the trade carry it (docs/live_service.md, section 2).

    Parameters
    ----------
    fills : DataFrame
        Fills with ``dir``, or ``liquidated_user`` or ``liquidation_method``, of one account or,
        with ``user``, of many (pandas, Polars, DuckDB, PySpark). Repeated rows count
        once.
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
        The engine of `fills`: the rows of those sides in the same order, with all of their columns,
        and

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
    once = drop_repeated_rows(fills, "fills")
    frame: frame_access.Frame = nw.from_native(frame_access.normalise_frame(once))
    column_names = frame.columns
    if not {"dir", "liquidated_user", "liquidation_method"} & set(column_names):
        frame_access.require_columns(
            frame,
            ["liquidated_user"],
            "fills",
            "Add it, or add dir, which names backstop liquidations",
        )
    markers = [n for n in ("dir", "liquidated_user", "liquidation_method") if n in column_names]
    if "dir" in markers and all(frame_access.is_empty_column(frame, name) for name in markers):
        frame_access.require_some_values(frame, "dir", "fills", "says which fills are liquidations")
    frame = frame.with_columns(
        liquidation_side=nw.when(fill_kinds.is_liquidation(column_names, account))
        .then(nw.lit("liquidated"))
        .when(fill_kinds.is_auto_deleveraging(column_names))
        .then(nw.lit("deleveraged"))
        .when(fill_kinds.is_liquidation_counterparty(column_names, account))
        .then(nw.lit("counterparty"))
        .otherwise(nw.lit(""))
    )
    result = frame.filter(nw.col("liquidation_side").is_in(wanted or ["nothing"]))
    return frame_access.result_from_frame(
        result, {"fills": once}, helper="liquidations.fills", side=wanted
    )
