"""Comparison: our trades and PnL beside those that the service computes itself."""

from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.contract.dexes import is_perp_coin
from toolkit.pnl._round_trips import round_trips
from toolkit.prepare import Fills
from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.prepare.money import Prices
from toolkit.prepare.provenance import finish
from toolkit.times import FIRST_MS, LAST_MS

_FIGURES: Final = {"gross": "gross_pnl", "fees": "fees", "funding": "funding_pnl", "net": "net_pnl"}
"""Figure of a trade -> the service's column."""

_SUMMARY: Final = ("total_pnl", "total_fees", "total_funding", "total_trades", "win_rate")
_SHARE: Final = 5.1e-5
"""The service rounds the share of wins to four decimals."""

_CENT: Final = 0.01
_POINT: Final = 1e-4
_TICK: Final = 1e-6
"""The smallest step of a perp's price, in USD; one of an entry price may be a few basis points."""


def compare_with_service(
    fills: Frame | Fills,
    funding: Frame | None,
    trades: Frame,
    summary: Frame | None = None,
    *,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Frame | None = None,
) -> pd.DataFrame:
    """Compare the trips of `tk.pnl.round_trips` with the service's completed trades, and why.

    Parameters
    ----------
    fills, funding : DataFrame
        Fills of one account and, or None, its funding rows: see `tk.pnl.round_trips`.
    trades : DataFrame
        The result of `tk.user_completed_trades_by_time` for the same time.
    summary : DataFrame, optional
        The result of `tk.user_pnl_summary` for the same time.
    account, prices, meta : optional
        See `tk.pnl.round_trips`.

    Returns
    -------
    DataFrame
        Four rows per trade, by its end, and then five rows of the summary:

        - ``coin``: the coin; empty for the summary
        - ``side`` text: ``"long"`` or ``"short"``; empty for the summary
        - ``opened``: time of the first fill, UTC, ours if known
        - ``closed``: time of the last fill, UTC
        - ``figure`` text: ``gross``, ``fees``, ``funding``, ``net``; or the column of the summary
        - ``ours`` float64: our value, in USD, negative if lost or paid; numbers and shares as such
        - ``theirs`` float64: the value of the service, in USD, with the same sign
        - ``difference`` float64: ``ours - theirs``, in USD; missing if one of them is
        - ``cause`` text: why they differ, see Notes

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.
    ValueError
        If the fills are of several accounts.

    Notes
    -----
    A trade is the same if coin, side and time of the end are. Open trips have no row. Causes:
    ``equal`` (to a cent); ``rounding`` (gross to a basis point of the notional and 1e-6 USD per
    unit: the exchange truncates entry prices); ``opened_before`` (it began before the fills);
    ``fills_missing``; ``funding_not_given``; ``funding_missing`` (for an hour of the trip);
    ``other_token`` (amounts are not in USDC); ``forced`` (the exchange closed it, by liquidation
    for example); ``not_a_perp`` (the service has no spot and no outcome markets);
    ``outside_fills`` (the trade ended before the first fill or after the last one);
    ``only_ours``, ``only_theirs``; ``trades`` (the figure of the summary is the sum over the
    service's trades, so the rows above explain it); ``unexplained``. The cause of ``net`` is that
    of its largest difference.

    Examples
    --------
    >>> import pandas as pd
    >>> at = pd.to_datetime([0, 60_000], unit="ms", utc=True)
    >>> fills = pd.DataFrame({"coin": "BTC", "px": [100.0, 110.0], "sz": 2.0, "side": ["B", "A"],
    ...     "time": at, "start_position": [0.0, 2.0], "closed_pnl": [0.0, 20.0], "fee": [0.1, 0.3]})
    >>> trades = pd.DataFrame({"coin": ["BTC"], "position_type": "Long", "close_time": at[1],
    ...     "gross_pnl": 20.0, "fees": 0.4, "funding_pnl": 0.0, "net_pnl": 19.6})
    >>> compare_with_service(fills, None, trades)[["figure", "ours", "theirs", "cause"]]
        figure  ours  theirs              cause
    0    gross  20.0    20.0              equal
    1     fees  -0.4    -0.4              equal
    2  funding   NaN     0.0  funding_not_given
    3      net  19.6    19.6              equal
    """
    fills = prepare.fills(fills, account, prices, meta)
    ours = round_trips(fills, funding)
    if "user" in ours and ours["user"].nunique() > 1:
        raise ValueError("fills: they are of several accounts; compare one account at a time")
    ours = ours[ours["closed"].notna()]
    theirs = _read_trades(Table(trades, "trades", "completed_trades"))
    mine = ours[["coin", "side", "opened", "status", "forced", "at_par", "size", *_FIGURES]].assign(
        end=ours["closed"].dt.as_unit("ms").astype("int64"),
        notional=ours["size"] * ours["entry_px"],
    )
    key = ["coin", "side", "end"]
    both = (side.assign(place=side.groupby(key).cumcount()) for side in (mine, theirs))
    pairs = next(both).merge(next(both), "outer", [*key, "place"], suffixes=("_ours", "_theirs"))
    pairs = pairs.sort_values(["end", "coin", "side", "place"], ignore_index=True)
    opened = pairs["opened_ours"].fillna(pairs["opened_theirs"])
    size, notional = (
        pairs[f"{name}_theirs"].fillna(pairs[f"{name}_ours"]) for name in ("size", "notional")
    )
    times, end, status = fills.table.ms(), pairs["end"], pairs["status"]
    outside = (end < times.min(initial=LAST_MS)) | (end > times.max(initial=FIRST_MS))
    causes = {
        "not_a_perp": ~pairs["coin"].map(is_perp_coin).astype(bool),
        "outside_fills": status.isna() & outside,
        "only_theirs": status.isna(),
        "opened_before": status.eq("late"),
        "fills_missing": status.isin(["broken", "moved"]),
        "only_ours": pairs["net_theirs"].isna(),
        "other_token": pairs["at_par"].eq(True),
        "forced": pairs["forced"].eq(True),
    }
    shared = pd.Series(np.select(list(causes.values()), list(causes), "unexplained"), dtype="str")
    lacks = pairs["funding_ours"].isna() & status.notna() & (shared == "unexplained")
    why = "funding_not_given" if funding is None else "funding_missing"
    reasons = {"funding": shared.mask(lacks, why), "gross": shared, "fees": shared, "net": shared}
    parts, main, largest = dict[str, pd.DataFrame](), shared, pd.Series(-1.0, pairs.index)
    for figure, cause in reasons.items():
        left, right = pairs[f"{figure}_ours"], pairs[f"{figure}_theirs"]
        apart = (left - right).abs()
        if figure == "gross":
            cause = cause.mask(apart <= notional * _POINT + size * _TICK, "rounding")
        if figure == "net":  # that of its largest difference, the first of equal ones
            cause = main.mask(main == "equal", shared)
        cause = cause.mask(apart <= _CENT, "equal")
        part = pairs[["coin", "side"]].assign(opened=opened, closed=utc_times(end))
        part["figure"] = pd.Series(figure, pairs.index, dtype="str")
        parts[figure] = part.assign(ours=left, theirs=right, difference=left - right, cause=cause)
        apart = apart.fillna(right.abs()).fillna(0.0)
        main = main.mask(apart > largest, cause)
        largest = largest.clip(lower=apart)
    made = pd.concat([parts[name] for name in _FIGURES]).sort_index(kind="stable")
    if summary is not None:
        made = pd.concat([made, _compare_summary(ours, theirs, Table(summary, "summary"))])
    inputs = {"fills": fills.table.frame, "funding": funding, "trades": trades, "summary": summary}
    return finish(made, inputs, helper="pnl.compare_with_service")


def _read_trades(table: Table) -> pd.DataFrame:
    """Return the service's trades with our names, signs and order."""
    table.require(("coin", "position_type", "close_time", *_FIGURES.values()))
    size, entry = (table.number(name, np.nan) for name in ("position_closed_size", "entry_px"))
    made: dict[str, Any] = {
        "coin": table.text("coin").texts(),
        "side": table.text("position_type").texts().str.lower(),
        "end": table.known_ms("close_time"),
        "opened": utc_times(table.ms("open_time") if table.has("open_time") else size * np.nan),
        "size": size,
        "notional": size * entry,
        **{name: table.number(column) for name, column in _FIGURES.items()},
    }
    return pd.DataFrame(made | {"fees": 0.0 - made["fees"]}, index=range(len(table)))


def _compare_summary(ours: pd.DataFrame, theirs: pd.DataFrame, table: Table) -> pd.DataFrame:
    table.require(_SUMMARY)
    complete = ours[ours["status"].isin(["closed", "liquidated"])]
    complete = complete[complete["coin"].map(is_perp_coin).astype(bool)]
    mine, sums = (
        # A figure is missing if a trade lacks its part.
        (
            *(trades[name].sum(skipna=False) for name in ("net", "fees", "funding")),
            float(len(trades)),
            (trades["net"] > 0).sum() / max(len(trades), 1),
        )
        for trades in (complete, theirs)
    )
    made = pd.DataFrame({"figure": pd.Series(_SUMMARY, dtype="str"), "ours": mine})
    made = made[: 5 * len(table)]
    stated = [table.number(name)[0] for name in made["figure"]]
    is_fee, is_share = made["figure"] == "total_fees", made["figure"] == "win_rate"
    made["theirs"] = np.where(is_fee, 0.0 - np.array(stated), stated)
    made["difference"] = made["ours"] - made["theirs"]
    limit = np.where(is_share, _SHARE, _CENT)
    others = np.abs(np.array(sums)[: len(made)] - made["theirs"])
    causes = [made["difference"].abs() <= limit, others <= limit]
    made["cause"] = pd.Series(np.select(causes, ["equal", "trades"], "unexplained"), dtype="str")
    never = utc_times(np.full(len(made), NO_TIME))
    places: dict[str, Any] = {"coin": "", "side": "", "opened": never, "closed": never}
    made = made.assign(**places).astype({"coin": "str", "side": "str"})
    return made[[*places, "figure", "ours", "theirs", "difference", "cause"]]
