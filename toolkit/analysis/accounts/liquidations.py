"""Liquidations: where they wait, how much room accounts have, and the fills they left."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.accounts.holders import given
from toolkit.analysis.accounts.liquidation_fills import fills
from toolkit.analysis.accounts.margin_tiers import Tiers, dex_names, read_tiers
from toolkit.analysis.common import columns, engines
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.rules.margin import liquidation_price, maintenance, tiered_adverse_move

__all__ = ["buffers", "fills", "levels"]

POSITION = ("user", "coin", "szi", "position_value")
_LEVELS = ("positions", "accounts", "notional", "cumulative", "cross_share")
_GROUP = ["coin", "side", "_bin"]
_STATED = "cross_maintenance_margin_used"


def levels(
    positions: Any,
    contexts: Any = None,
    *,
    width: float = 0.01,
    reach: float = 0.5,
    accounts: Any = None,
    max_leverage: Any = None,
    margin_tables: Any = None,
) -> Any:
    """Map the notional that would be liquidated by how far the price must move.

    Parameters
    ----------
    positions : DataFrame
        Open positions of many accounts, as `tk.batch_clearinghouse_states` gives them: ``user,
        coin, szi, position_value, liquidation_px, leverage_type`` (and ``dex``). pandas, Polars
        eager or lazy, DuckDB relation; float or exact.
    contexts : DataFrame, optional
        `tk.meta_and_asset_ctxs` (``name, open_interest``), for the share of open interest that
        the map covers.
    width : float, default 0.01
        Width of a bin, as a share of the mark price.
    reach : float, default 0.5
        How far from the mark price the map goes.
    accounts : DataFrame, optional
        Of the same states, as `buffers` takes them: liquidation prices that the positions do not
        say are computed then, each in the margin tier that holds at that price.
    max_leverage, margin_tables
        As `buffers` takes them; used with `accounts`.

    Returns
    -------
    DataFrame
        Of the engine of `positions`, floats; one row for each coin, side and bin with anything
        in it, sorted:

        - ``coin``, ``side`` (``"long"``, ``"short"``);
        - ``distance``: the bin's edge nearer to the mark price, as a share of it, negative below:
          -0.05 with a width of 0.01 is 5 to 6 % below;
        - ``low``, ``high``: the bin in USD, at the coin's mark price;
        - ``positions``, ``accounts`` int64; ``notional``: at mark, USD; ``cumulative``: up to and
          with this bin, on its way from the mark price;
        - ``cross_share``: the part of the notional that is cross margined;
        - ``unplaced``: notional of the coin and side that no price above 0 liquidates, or only
          one beyond `reach`; a coin with nothing else has one row without a bin;
        - ``known``: the size of all positions given, over the open interest, for this side;
          ``covered``: of those in the map. Missing without contexts.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If `width` or `reach` are not positive, or positions are of several moments or contradict
        each other.

    Notes
    -----
    A cross position's liquidation price holds only while the account's other positions stay
    where they are: the map takes each alone, and an account may stand in it several times.
    `buffers` looks at accounts as a whole. The mark price is position value over size. Open
    interest counts one side, so a map of everybody knows 1 of each. A row given twice counts once.

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
    positions = count_once(positions, "positions")
    if width <= 0 or reach <= 0:
        raise ValueError(f"width and reach must be positive: {width}, {reach}")
    margin = () if accounts is None else ("margin_used",)
    frame = _read(positions, ("liquidation_px", *margin), ("leverage_type",))
    if accounts is not None:
        frame["liquidation_px"] = _priced(frame, accounts, max_leverage, margin_tables)
    frame["_bin"] = _bins(frame, width, reach)
    placed = frame.dropna(subset="_bin")
    made = _summed(placed)
    sides = _sides(frame, placed, contexts)
    made = made.merge(sides, on=["coin", "side"], how="right")
    edge = made["_bin"] * width
    made["distance"] = edge.where(made["_bin"] >= 0, edge + width).round(12)
    made["low"] = made["_mark"] * (1 + edge)
    made["high"] = made["_mark"] * (1 + edge + width)
    made = made.fillna({"notional": 0.0, "cumulative": 0.0, "positions": 0, "accounts": 0})
    made = made.astype({"positions": "int64", "accounts": "int64"})
    made = made.sort_values(_GROUP, na_position="last", ignore_index=True)
    kept = ("distance", "low", "high", *_LEVELS, "unplaced", "known", "covered")
    result = made[["coin", "side", *kept]]
    return given(result, {"positions": positions, "contexts": contexts}, "liquidations.levels")


def buffers(
    accounts: Any, positions: Any, max_leverage: Any = None, *, margin_tables: Any = None
) -> Any:
    """Return how far each account is from liquidation, as a whole.

    Parameters
    ----------
    accounts, positions : DataFrame
        Of `tk.batch_clearinghouse_states`: ``user, cross_account_value`` (and ``dex``,
        ``cross_maintenance_margin_used``); ``user, coin, szi, position_value, leverage_type,
        margin_used`` (and ``dex``, ``max_leverage``).
    max_leverage : mapping of coin to number, or DataFrame, optional
        The largest leverage of each asset: a dict, or a frame of `tk.meta` (``name,
        max_leverage``, and ``margin_table_id``). Without it the positions' own ``max_leverage``.
    margin_tables : DataFrame, optional
        `tk.margin_tables`, of one dex or, by `tk.concat`, of several: larger positions ask for
        more margin. Without it each coin has one tier, and a warning says so where meta names a
        table of several. The result's provenance says which counted, as ``margin``, and for how
        many accounts on a dex the state's own maintenance margin did.

    Returns
    -------
    DataFrame
        Of the engine of `accounts`, floats, USD, sorted by user and dex; one row for all cross
        positions of an account on a dex together, and one for each isolated position:

        - ``user``, ``dex`` (where given), ``margin`` (``"cross"``, ``"isolated"``), ``coin``
          (of an isolated one, else missing); ``positions`` int64;
        - ``equity``: cross account value, or the isolated position's margin with its PnL;
        - ``notional``, ``maintenance``: USD; ``buffer = equity - maintenance``. Where the state
          says what cross positions ask for (``cross_maintenance_margin_used``), that counts;
        - ``distance``: the share by which all its prices must move against it at once until it
          is liquidated; smaller is nearer; missing where a coin's largest leverage is.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If positions or accounts are of several moments or contradict each other, nothing says the
        largest leverages, or tables are given and nothing says which coin has which.

    Notes
    -----
    Margin tiers: docs/live_service.md, section 4. The positions of a cross account stand or fall
    together, and the liquidation price of one moves with all others: so accounts are measured, not
    positions. `distance` moves every price against the account at once, the worst that can happen.
    Rules: `toolkit.rules.margin`.
    Unified accounts back their positions by more than a clearinghouse state shows: their real
    distance is larger. A row given twice counts once.

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
    accounts = count_once(accounts, "accounts")
    positions = count_once(positions, "positions")
    held = _read(positions, ("margin_used",), ("leverage_type",))
    owners = _owners(accounts)
    keys = ["user", *(["dex"] if {"dex"} <= set(owners.columns) & set(held.columns) else [])]
    tiers = read_tiers(held, max_leverage, margin_tables)
    held["_margin"] = maintenance(held["notional"], tiers.max_leverage, tiers.lower_bound)
    is_alone = (held["leverage_type"] == "isolated").to_numpy()
    held["margin"] = np.where(is_alone, "isolated", "cross")
    owners = owners.set_index(keys)
    made = pd.concat(
        [
            _cross(held, ~is_alone, tiers, owners, keys),
            _isolated(held, is_alone, tiers, keys),
        ]
    )
    made["buffer"] = made["equity"] - made["maintenance"]
    money = ["equity", "notional", "maintenance", "buffer", "distance"]
    made = made.reindex(columns=[*keys, "margin", "coin", "positions", *money])
    made = made.astype(
        dict.fromkeys([*keys, "margin", "coin"], "str")
        | {"positions": "int64"}
        | dict.fromkeys(money, "float64")
    )
    made = made.sort_values([*keys, "margin", "coin"], ignore_index=True)
    inputs = {"accounts": accounts, "positions": positions}
    margin = _with_stated(tiers.source, made, owners, keys)
    return given(made, inputs, "liquidations.buffers", margin=margin)


def _with_stated(source: str, made: pd.DataFrame, owners: pd.DataFrame, keys: list[str]) -> str:
    """Say where margins come from, and of how many cross accounts the state tells them."""
    if _STATED not in owners:
        return source
    cross = made.loc[made["margin"] == "cross", keys]
    place = pd.MultiIndex.from_frame(cross) if len(keys) > 1 else pd.Index(cross["user"])
    told = int(owners[_STATED].reindex(place).notna().sum())
    if not told:
        return source
    return f"{source}; maintenance as stated for {told:,} of {len(cross):,} cross accounts"


def _owners(accounts: Any) -> pd.DataFrame:
    """Read accounts, one row each."""
    owners = engines.to_pandas(accounts)
    opened = columns.open_frame(owners, "accounts")
    columns.require_columns(opened, ("user", "cross_account_value"), "accounts")
    columns.number_kind(opened, ["cross_account_value"], "accounts")
    owners = owners.assign(user=owners["user"].astype("str"))
    keys = ["user", *(["dex"] if "dex" in owners else [])]
    _check_moments(owners, keys, "accounts")
    values = [name for name in ("cross_account_value", _STATED) if name in owners]
    return _one_state(owners, keys, values, "accounts")


def _cross(
    held: pd.DataFrame,
    chosen: npt.NDArray[np.bool_],
    tiers: Tiers,
    owners: pd.DataFrame,
    keys: list[str],
) -> pd.DataFrame:
    """Add up the cross positions of each account, and measure how far it is."""
    rows = held[chosen].assign(coin=None)
    sums = _summed_margins(rows, [*keys, "margin"])
    place = pd.MultiIndex.from_frame(sums[keys]) if len(keys) > 1 else pd.Index(sums[keys[0]])
    value = owners["cross_account_value"].astype("float64").reindex(place).to_numpy()
    computed = sums["maintenance"].to_numpy(dtype="float64")
    if _STATED in owners:
        stated = owners[_STATED].astype("float64").reindex(place).to_numpy()
        sums["maintenance"] = np.where(np.isnan(stated), computed, stated)
    # What the state says beyond the rules is taken from the equity: then both agree now, and the
    # tiers say how the margin changes on the way.
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


def _isolated(
    held: pd.DataFrame, chosen: npt.NDArray[np.bool_], tiers: Tiers, keys: list[str]
) -> pd.DataFrame:
    """Measure how far each isolated position is."""
    rows = held[chosen]
    moved = tiered_adverse_move(
        rows["margin_used"].to_numpy(),
        np.arange(len(rows)),
        (rows["notional"] * np.sign(rows["szi"])).to_numpy(),
        tiers.max_leverage[chosen],
        tiers.lower_bound[chosen],
    )
    made = rows[[*keys, "margin", "coin", "notional"]]
    return made.assign(
        positions=1, maintenance=rows["_margin"], equity=rows["margin_used"], distance=moved
    )


def _priced(frame: pd.DataFrame, accounts: Any, max_leverage: Any, margin_tables: Any) -> pd.Series:
    """Return liquidation prices: as stated, or else in the tier that holds at the price."""
    owners = _owners(count_once(accounts, "accounts"))
    keys = ["user", *(["dex"] if {"dex"} <= set(owners.columns) & set(frame.columns) else [])]
    tiers = read_tiers(frame, max_leverage, margin_tables)
    margin = pd.Series(
        maintenance(frame["notional"], tiers.max_leverage, tiers.lower_bound), index=frame.index
    )
    is_alone = frame["leverage_type"] == "isolated"
    cross = margin.where(~is_alone, 0.0)
    every = cross.groupby([frame[key] for key in keys]).transform(
        lambda part: part.sum(skipna=False)
    )
    value = owners.set_index(keys)["cross_account_value"].astype("float64")
    place = pd.MultiIndex.from_frame(frame[keys]) if len(keys) > 1 else pd.Index(frame["user"])
    behind = pd.Series(value.reindex(place).to_numpy(), index=frame.index) - (every - cross)
    price = liquidation_price(
        frame["mark"],
        frame["szi"],
        frame["margin_used"].where(is_alone, behind),
        tiers.max_leverage,
        tiers.lower_bound,
    )
    return frame["liquidation_px"].fillna(pd.Series(price, index=frame.index))


def _check_moments(frame: pd.DataFrame, keys: list[str], what: str) -> None:
    """Refuse states of several moments: what was closed in between would still count."""
    if "time" not in frame:
        return
    moments = frame.groupby(keys)["time"].nunique()
    if (moments > 1).any():
        several = moments[moments > 1].index[0]
        name = several[0] if isinstance(several, tuple) else several
        raise ValueError(
            f"{what}: rows of {name} are of {moments.max()} moments. Keep one batch of states, for "
            f"example {what}[{what}.time == {what}.time.max()]"
        )


def _one_state(frame: pd.DataFrame, keys: list[str], values: list[str], what: str) -> pd.DataFrame:
    """Return a frame with one row for each key; raise if two rows of a key differ."""
    once = frame.drop_duplicates([*keys, *values])
    twice = once.duplicated(keys)
    if twice.any():
        name = " ".join(str(once.loc[twice, key].iloc[0]) for key in keys)
        raise ValueError(
            f"{what}: {name} has several rows with different {' or '.join(values)}, and no time "
            "says which one is newer. Pass the rows of one batch of states"
        )
    return once


def _read(native: Any, numbers: tuple[str, ...], texts: tuple[str, ...]) -> pd.DataFrame:
    """Read open positions: side, unsigned size and notional, mark price; each once."""
    names = (*POSITION, *numbers, *texts)
    frame = engines.to_pandas(native, (*names, "dex", "time", "max_leverage"))
    opened = columns.open_frame(engines.to_pandas(native), "positions")
    columns.require_columns(opened, names, "positions")
    amounts = ("szi", "position_value", *numbers)
    for name in amounts:
        if not frame[name].isna().all():
            columns.number_kind(opened, [name], "positions")
    frame = frame.astype(dict.fromkeys(amounts, "float64"))
    frame["user"] = frame["user"].astype("str")
    by_dex = [frame["user"], dex_names(frame["coin"])]
    _check_moments(frame, by_dex, "positions")  # type: ignore[arg-type]
    frame = frame[frame["szi"] != 0]
    frame = _one_state(frame, ["user", "coin"], ["szi", "position_value"], "positions")
    frame = frame.reset_index(drop=True)
    frame["side"] = pd.Series(np.where(frame["szi"] > 0, "long", "short"), dtype="str")
    frame["size"] = frame["szi"].abs()
    frame["notional"] = frame["position_value"].abs()
    frame["mark"] = frame["notional"] / frame["size"]
    return frame


def _bins(frame: pd.DataFrame, width: float, reach: float) -> pd.Series:
    """Give the bin of each liquidation price, from the mark price on; NaN where it has none."""
    distance = frame["liquidation_px"] / frame["mark"] - 1
    # The bit added keeps a price on an edge in the bin that begins there.
    found: pd.Series = np.floor(distance / width + 1e-9).where(distance.abs() <= reach)
    return found


def _summed(placed: pd.DataFrame) -> pd.DataFrame:
    crossed = placed["notional"].where(placed["leverage_type"] == "cross", 0.0)
    grouped = placed.assign(_cross=crossed).groupby(_GROUP, as_index=False)
    made = grouped.agg(
        positions=("user", "count"),
        accounts=("user", "nunique"),
        notional=("notional", "sum"),
        _cross=("_cross", "sum"),
    )
    made["cross_share"] = made["_cross"] / made["notional"]
    below = made["_bin"] < 0
    made["_away"] = made["_bin"].abs()
    made = made.sort_values("_away", kind="stable")
    made["cumulative"] = made.groupby(["coin", "side", below])["notional"].cumsum()
    return made


def _sides(frame: pd.DataFrame, placed: pd.DataFrame, contexts: Any) -> pd.DataFrame:
    """Give one row for each coin and side: its mark price, what is not placed, what is covered."""
    keys = ["coin", "side"]
    made = frame.groupby(keys).agg(
        _mark=("mark", "median"), _size=("size", "sum"), _whole=("notional", "sum")
    )
    inside = placed.groupby(keys).agg(_in=("size", "sum"), _placed=("notional", "sum"))
    made = made.join(inside).fillna({"_in": 0.0, "_placed": 0.0}).reset_index()
    # What is left of a difference of sums is no money.
    left = made["_whole"] - made["_placed"]
    made["unplaced"] = left.where(left > 1e-9 * made["_whole"], 0.0)
    interest = made["coin"].map(_interest(contexts)).astype("float64")
    made["known"] = made["_size"] / interest.where(interest > 0)
    made["covered"] = made["_in"] / interest.where(interest > 0)
    return made


def _interest(contexts: Any) -> dict[str, float]:
    if contexts is None:
        return {}
    frame = engines.to_pandas(contexts)
    columns.require_columns(
        columns.open_frame(frame, "contexts"), ("name", "open_interest"), "contexts"
    )
    return dict(zip(frame["name"], frame["open_interest"].astype("float64"), strict=True))


def _summed_margins(held: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Add up what accounts hold and what that asks for; missing where a margin is not known."""
    sums = (
        held.groupby(keys)
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
