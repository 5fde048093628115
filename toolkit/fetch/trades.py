"""Completed trades and their sums, as the service computes them."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame
from toolkit.fetch.registry import fetches
from toolkit.times import Time


@fetches("userCompletedTradesByTime")
def user_completed_trades_by_time(
    user: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    cursor: str | None = None,
    dex: str | None = None,
    page_size: int = 100,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the perp positions of an account from flat to flat, as the service computes them.

    Spot, outcome markets and positions that are still open are not included. All pages are read.
    `tk.pnl.round_trips` makes such trades from fills; `tk.pnl.compare_with_service` compares both.

    Costs 20 points a request. Data since 2025-08-01.

    Parameters
    ----------
    user : str
        Address of the account.
    start : Time, optional
        First time at which a trade ended, inclusive; required without `cursor`.
    end : Time, optional
        Last time at which a trade ended, inclusive; by default now.
    cursor : str, optional
        Continue after this key, ``<close_time>_<tx_index>``, instead of from `start`.
    dex : str, optional
        Only trades of this dex; every name of the native dex is accepted.
    page_size : int
        Trades of one page, 1 to 500. A page of 500 costs as much as one of 100.
    max_rows : int, optional
        Most trades to return, from the start of the range; by default all.
    on_incomplete : {"raise", "warn"}
        If rows are missing: raise `Incomplete` with the rows that came, or warn and return them;
        their provenance then says ``complete: no``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per trade, sorted by (`close_time`, `tx_index`).

    Raises
    ------
    BadRequest
        If a value is malformed, or `start` and `cursor` are both missing.
    Incomplete
        If not every page could be read.

    Notes
    -----
    ``net_pnl = gross_pnl - fees + funding_pnl``, in USD. `fees` are positive if paid, and
    `funding_pnl` is positive if received. `entry_px` and `exit_px` are size-weighted averages.
    `position_closed_size` is positive for a `position_type` of ``Short``, too.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> trades = tk.user_completed_trades_by_time(exchange.world["users"][0], 0)
    >>> net = trades["gross_pnl"] - trades["fees"] + trades["funding_pnl"]
    >>> bool((net - trades["net_pnl"]).abs().max() < 1e-6)
    True
    """
    return fetch_frame("userCompletedTradesByTime", **locals())


@fetches("userPnlSummary")
def user_pnl_summary(
    user: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    dex: str | None = None,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the sums over the completed trades of an account, as the service computes them.

    Costs 20 points a request. Data since 2025-08-01.

    Parameters
    ----------
    user : str
        Address of the account.
    start : Time, optional
        Only trades that ended at this time or later; by default all.
    end : Time, optional
        Only trades that ended at this time or earlier; by default all.
    dex : str, optional
        Only trades of this dex; every name of the native dex is accepted.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row.

    Raises
    ------
    BadRequest
        If a value is malformed.

    Notes
    -----
    `total_pnl` is the sum of ``net_pnl`` over `total_trades` trades, so `total_fees` and
    `total_funding` are inside. `win_rate` and `loss_rate` are shares of the trades.
    `volume_traded` is in USD. `account_age_days` is independent of the range. `human_score` goes
    from 0 to 100; a simulated exchange has none. `days_active` counts days, and `traded_pairs`
    lists markets.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> summary = tk.user_pnl_summary(exchange.world["users"][0])
    >>> bool(0 <= summary["win_rate"][0] <= 1)
    True
    """
    return fetch_frame("userPnlSummary", **locals())
