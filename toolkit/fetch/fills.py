"""Fills of one user, or of all users who had approved a builder."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame
from toolkit.fetch.registry import fetches
from toolkit.times import Time


@fetches("userFills")
def user_fills(
    user: str,
    *,
    builder: str | None = None,
    aggregate_by_time: bool = False,
    dex: str | None = None,
    max_rows: int = 2000,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the latest fills of a user, with TWAP fills.

    This is one request. For a whole history use `user_fills_by_time`.

    Costs 10 points a request. Data since 2025-07-28, TWAP fills since 2025-08-02; some very
    active addresses may lack older fills.

    Parameters
    ----------
    user : str
        Address of the account.
    builder : str, optional
        Only fills routed through this builder.
    aggregate_by_time : bool
        Merge the partial fills of one crossing order (same `oid`, `coin`, `side` and `time`)
        into one row. Fills of a resting order merge only within one transaction. `sz`, the fees
        and `closed_pnl` are summed exactly, and `px` is the mean weighted by size. All other
        columns are those of the first fill. Merged rows cannot show that a fill is missing.
    dex : str, optional
        Only fills of this dex; every name of the native dex is accepted.
    max_rows : int
        Most rows to return, 1 to 2000.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per fill, newest first. Empty for an unknown user.

    Raises
    ------
    BadRequest
        If an address is malformed.

    Notes
    -----
    `closed_pnl` is positive for a gain. It contains no funding and no fees, except for spot: there
    it contains the fees of buys that were paid in the bought token. `fee` is the sum of all fees
    and rebates of the fill, in units of `fee_token`; it is negative if the account received more
    than it paid. It contains `builder_fee` and `deployer_fee`; the rest is the fee or the rebate of
    the exchange. Neither `tid` nor `oid` identifies a row.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> fills = tk.user_fills(exchange.world["users"][0], max_rows=50)
    >>> fills["time"].is_monotonic_decreasing
    True
    >>> fills["time"].dtype, fills["px"].dtype
    (datetime64[ms, UTC], dtype('float64'))
    """
    return fetch_frame("userFills", **locals())


@fetches("userFillsByTime")
def user_fills_by_time(
    user: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    cursor: str | None = None,
    builder: str | None = None,
    aggregate_by_time: bool = False,
    dex: str | None = None,
    venue: str | None = None,
    page_size: int = 2000,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the fills of a user in a range of time, with TWAP fills.

    All pages are read. Every fill comes exactly once, also if a page ends inside a transaction.

    Costs 10 points a request. Data since 2025-07-28, TWAP fills since 2025-08-02; some very
    active addresses may lack older fills.

    Parameters
    ----------
    user : str
        Address of the account.
    start : Time, optional
        First time, inclusive; required unless `cursor` is passed.
    end : Time, optional
        Last time, inclusive; by default now.
    cursor : str, optional
        Continue after this key, ``<time>_<txIndex>``, instead of from `start`.
    builder : str, optional
        Only fills routed through this builder.
    aggregate_by_time : bool
        Merge the partial fills of one crossing order (same `oid`, `coin`, `side` and `time`)
        into one row. Fills of a resting order merge only within one transaction. `sz`, the fees
        and `closed_pnl` are summed exactly, and `px` is the mean weighted by size. All other
        columns are those of the first fill. Merged rows cannot show that a fill is missing.
    dex : str, optional
        Only fills of this dex; every name of the native dex is accepted.
    venue : str, optional
        Only outcome markets of this venue: 2 to 4 letters, in any case.
    page_size : int
        Rows of one page, 1 to 2000.
    max_rows : int, optional
        Most rows to return, from the start of the range; by default all.
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
        One row per fill, sorted by (`time`, `tx_index`); equal keys are in the order of
        execution. Empty for an unknown user.

    Raises
    ------
    BadRequest
        If both `start` and `cursor` are missing, or a value is malformed.
    Incomplete
        If the service does not send all rows, for example because one transaction fills the largest
        page (2,000 rows).

    Notes
    -----
    `closed_pnl` is positive for a gain. It contains no funding and no fees, except for spot: there
    it contains the fees of buys that were paid in the bought token. `fee` is the sum of all fees
    and rebates of the fill, in units of `fee_token`; it is negative if the account received more
    than it paid. It contains `builder_fee` and `deployer_fee`; the rest is the fee or the rebate of
    the exchange. Neither `tid` nor `oid` identifies a row.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> fills = tk.user_fills_by_time(exchange.world["users"][0], "2d")
    >>> fills["time"].is_monotonic_increasing
    True
    >>> "venue" in fills, "builder" in fills
    (True, False)
    """
    return fetch_frame("userFillsByTime", **locals())


@fetches("builderApprovedFillsByTime")
def builder_approved_fills_by_time(
    builder: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    cursor: str | None = None,
    page_size: int = 2000,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch every fill that users made while they had approved a builder.

    An approval and its revocation count from their block. The fills in between belong to the
    builder also after the revocation. All pages are read.

    Costs 100 points a request. Data since 2025-07-28, TWAP fills since 2025-08-02.

    Parameters
    ----------
    builder : str
        Address of the builder.
    start : Time, optional
        First time, inclusive; required unless `cursor` is passed.
    end : Time, optional
        Last time, inclusive; by default now.
    cursor : str, optional
        Continue after this key, ``<time>_<txIndex>``, instead of from `start`.
    page_size : int
        Rows of one page, 1 to 2000.
    max_rows : int, optional
        Most rows to return, from the start of the range; by default all.
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
        One row per fill, sorted by (`time`, `tx_index`); `user` is the account.

    Raises
    ------
    BadRequest
        If both `start` and `cursor` are missing, or a value is malformed.
    Incomplete
        If the service does not send all rows, for example because one transaction fills the largest
        page (2,000 rows).

    Notes
    -----
    `builder` is the builder through which the fill itself was routed. It is usually missing, and
    always for liquidations and TWAP fills. Signs are those of `user_fills`.

    Examples
    --------
    >>> import toolkit as tk
    >>> fills = tk.frame("builderApprovedFillsByTime", [])
    >>> "user" in fills, "builder" in fills, "venue" in fills
    (True, True, False)
    """
    return fetch_frame("builderApprovedFillsByTime", **locals())


@fetches("builderFillsByTime")
def builder_fills_by_time(
    builder: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    cursor: str | None = None,
    page_size: int = 2000,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the fills of all users that were routed through a builder.

    Fills that users made elsewhere while they had approved the builder are not among them: for
    these, see `builder_approved_fills_by_time`. All pages are read.

    Costs 5 points a request. Data since 2025-07-28.

    Parameters
    ----------
    builder : str
        Address of the builder.
    start : Time, optional
        First time, inclusive; required unless `cursor` is passed.
    end : Time, optional
        Last time, inclusive; by default now.
    cursor : str, optional
        Continue after this key, ``<time>_<txIndex>``, instead of from `start`.
    page_size : int
        Rows of one page, 1 to 2000.
    max_rows : int, optional
        Most rows to return, from the start of the range; by default all.
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
        One row per fill, sorted by (`time`, `tx_index`); `user` is the account.

    Raises
    ------
    BadRequest
        If both `start` and `cursor` are missing, or a value is malformed.
    Incomplete
        If the service does not send all rows, for example because one transaction fills the largest
        page (2,000 rows).

    Notes
    -----
    `builder_fee` is what the account paid to the builder, in units of `fee_token`; it is a part of
    `fee`. Liquidations and TWAP fills have no builder, so they are not among the rows.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> fills = tk.builder_fills_by_time(exchange.world["builders"][0], "1d")
    >>> fills["builder"].unique().tolist() == exchange.world["builders"][:1]
    True
    """
    return fetch_frame("builderFillsByTime", **locals())


@fetches("liquidationHistoryByTime")
def liquidation_history_by_time(
    start: Time | None = None,
    end: Time | None = None,
    *,
    coin: str | None = None,
    page_size: int = 500,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the liquidations of one market or of all, newest first.

    All pages are read, from the end of the range to its start.

    Costs 2 points a request. Data since 2025-07-28.

    Parameters
    ----------
    start : Time, optional
        First time, inclusive; by default the first day.
    end : Time, optional
        Last time, inclusive; by default now.
    coin : str, optional
        Only this market: the symbol on the native dex, ``<dex>:<symbol>`` on a builder-deployed
        dex; ``btc``, ``$BTC`` and ``BTC-PERP`` mean BTC. By default all markets.
    page_size : int
        Rows of one page, 1 to 1000.
    max_rows : int, optional
        Most rows to return, from the end of the range; by default all.
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
        One row per fill of a liquidated account, `user`, newest first.

    Raises
    ------
    BadRequest
        If a value is malformed.
    Incomplete
        If not every page could be read, for example because one millisecond fills the largest page
        (1,000 rows).

    Notes
    -----
    `side` is A if a long was liquidated, and B if a short was. The size in USD is `px` times `sz`.
    `liquidation_method` is market if the position was sold to the book, and backstop if a vault
    took it over. The vault may be liquidated later with the same position: leave such a vault out
    of sums.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> forced = tk.liquidation_history_by_time("3d", coin="xrp")
    >>> forced["time"].is_monotonic_decreasing, forced["side"].unique().tolist()
    (True, ['A', 'B'])
    """
    return fetch_frame("liquidationHistoryByTime", **locals())


@fetches("userTwapSliceFills")
def user_twap_slice_fills(
    user: str, *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch the latest fills of a user's TWAP orders, each with the id of its order.

    This is one request for at most 2,000 fills. If exactly 2,000 come, older ones are probably
    missing: a warning says so, and ``complete`` is ``no``. For older TWAP fills use
    `user_fills_by_time`.

    Costs 10 points a request.

    Parameters
    ----------
    user : str
        Address of the account.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per fill, newest first; `twap_id` is the order. Empty for an unknown user.

    Raises
    ------
    BadRequest
        If the address is malformed.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> slices = tk.user_twap_slice_fills(exchange.world["users"][4])
    >>> len(slices), slices["twap_id"].nunique(), slices["time"].is_monotonic_decreasing
    (763, 3, True)
    """
    return fetch_frame("userTwapSliceFills", **locals())
