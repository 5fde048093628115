"""Staking: delegations, and the APRs of validators."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame
from toolkit.fetch.registry import fetches
from toolkit.times import Time


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
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per validator. Empty for a user without delegations.

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
    return fetch_frame("delegations", **locals())


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

    All pages are read. Weeks start on Monday, 00:00 UTC. The service recomputes the values once a
    day, shortly after midnight UTC. The current week is partial until it ends.

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
        Most weeks to return, the newest ones; by default all.
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
    return fetch_frame("validatorAprHistory", **locals())
