"""Funding payments."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame
from toolkit.fetch.registry import fetches
from toolkit.times import Time


@fetches("builderApprovedFundingByTime")
def builder_approved_funding_by_time(
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
    """Fetch every funding payment of users while they had approved a builder.

    There is one row per position and funding hour. All pages are read. Every payment comes
    exactly once, also if a page ends inside an hour.

    Costs 100 points a request.

    Parameters
    ----------
    builder : str
        Address of the builder.
    start : Time, optional
        First time, inclusive; required unless `cursor` is passed.
    end : Time, optional
        Last time, inclusive; by default now.
    cursor : str, optional
        Continue after this key, ``<time>_<user>_<coin>``, instead of from `start`.
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
        One row per payment, sorted by (`time`, `user`, `coin`).

    Raises
    ------
    BadRequest
        If both `start` and `cursor` are missing, or a value is malformed.
    Incomplete
        If not every page could be read.

    Notes
    -----
    `usdc` is positive when received and negative when paid; a positive `funding_rate` means
    that longs pay. `usdc` is minus `szi` times oracle price times `funding_rate`.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> payments = tk.builder_approved_funding_by_time(exchange.world["builders"][0], "1d")
    >>> payments["time"].is_monotonic_increasing
    True
    >>> list(payments)
    ['user', 'time', 'hash', 'type', 'coin', 'usdc', 'szi', 'funding_rate', 'n_samples']
    """
    return fetch_frame("builderApprovedFundingByTime", **locals())


@fetches("userFunding")
def user_funding(
    user: str,
    start: Time = 0,
    end: Time | None = None,
    *,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the funding payments of an account.

    There is one row per position and funding hour, or per day in rows of 2023. All pages are read.

    Costs 10 points a request.

    Parameters
    ----------
    user : str
        Address of the account.
    start : Time
        First time, inclusive; by default the first payment.
    end : Time, optional
        Last time, inclusive; by default now.
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
        One row per payment, sorted by (`time`, `coin`).

    Raises
    ------
    BadRequest
        If a value is malformed.
    Incomplete
        If not every page could be read.

    Notes
    -----
    `usdc` is positive when received and negative when paid; a positive `funding_rate` means
    that longs pay. `usdc` is minus `szi` times oracle price times `funding_rate`.

    Examples
    --------
    >>> import toolkit as tk
    >>> exchange = tk.local(seed=7, size="tiny")
    >>> payments = tk.user_funding(exchange.world["users"][0], "1d")
    >>> list(payments)
    ['time', 'hash', 'type', 'coin', 'usdc', 'szi', 'funding_rate', 'n_samples']
    """
    return fetch_frame("userFunding", **locals())
