"""Staking: delegations, and what validators earned for their delegators."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import fetch_frame
from toolkit.fetch.registry import fetches
from toolkit.fetch.request import Extra, Numbers, OnIncomplete
from toolkit.times import Time

__all__ = ["delegations", "validator_apr_history"]


@fetches("delegations")
def delegations(
    user: str, *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch what a user has delegated to validators.

    Costs 2 points a request.

    Parameters
    ----------
    user : str
        Address of the account.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text of the wire.
    extra : {"drop", "keep"}
        Fields that this version does not know: left out, or columns of text behind the others.
    session : Session, optional
        Where to ask; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    DataFrame
        One row per validator; empty for a user who has delegated nothing.

    Raises
    ------
    BadRequest
        If the address is malformed.

    Examples
    --------
    >>> import toolkit as tk
    >>> row = {
    ...     "validator": "0x" + "5" * 40,
    ...     "amount": "12060.16529862",
    ...     "lockedUntilTimestamp": 1756684800000,
    ... }
    >>> tk.frame("delegations", [row], numbers="text")["amount"][0]
    '12060.16529862'
    """
    return fetch_frame("delegations", user=user, numbers=numbers, extra=extra, session=session)


@fetches("validatorAprHistory")
def validator_apr_history(
    validator: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    page_size: int = 12,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the weekly APR of a validator's delegators.

    All pages are read. Weeks start on Monday, 00:00 UTC; values are recomputed once a day,
    shortly after midnight UTC, and the week in progress is partial until it closes.

    Costs 2 points a request. Data since 2025-08-01.

    Parameters
    ----------
    validator : str
        Address of the validator.
    start : Time, optional
        Earliest week, inclusive.
    end : Time, optional
        Latest week, inclusive.
    page_size : int
        Weeks of one page, 1 to 100.
    max_rows : int, optional
        Most weeks to return, the newest ones; all when not given.
    on_incomplete : {"raise", "warn"}
        When not every row can be had: raise `Incomplete` with those that could, or warn and
        return them marked.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text of the wire.
    extra : {"drop", "keep"}
        Fields that this version does not know: left out, or columns of text behind the others.
    session : Session, optional
        Where to ask; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    DataFrame
        One row per week, newest first.

    Raises
    ------
    BadRequest
        If `end` is before `start`, or the address is malformed.

    Notes
    -----
    APRs are raw fractions (0.182 is 18.2 %), simple, not compounded: rewards of the week
    over the stake of the week, times 365. The commission is ``1 - net_apr / gross_apr``.

    Examples
    --------
    >>> import toolkit as tk
    >>> list(tk.frame("validatorAprHistory", []))
    ['week', 'net_apr', 'gross_apr', 'total_delegator_rewards']
    """
    return fetch_frame(
        "validatorAprHistory",
        validator=validator,
        start=start,
        end=end,
        page_size=page_size,
        max_rows=max_rows,
        on_incomplete=on_incomplete,
        numbers=numbers,
        extra=extra,
        session=session,
    )
