"""The status events of the orders of a user or a builder."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, OnIncomplete, fetch_frame
from toolkit.fetch.registry import fetches
from toolkit.times import Time


@fetches("builderOrdersByTime")
def builder_orders_by_time(
    builder: str,
    start: Time | None = None,
    end: Time | None = None,
    *,
    cursor: str | None = None,
    max_rows: int | None = None,
    on_incomplete: OnIncomplete = "raise",
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the status events of orders that were placed via a builder.

    All pages are read. The service chooses their size, so reading continues until a page has no
    new row.

    Costs 5 points a request. Data since 2025-08-07. Of a user with more than 100,000 orders
    between 2025-08-07 and 2025-11-04 the service has only the last 100,000 of that time.

    Parameters
    ----------
    builder : str
        Address of the builder.
    start : Time, optional
        First time of a status, inclusive; required unless `cursor` is passed.
    end : Time, optional
        Last time of a status, inclusive; by default now.
    cursor : str, optional
        Continue after this key, ``<statusTimestamp>_<txIndex>``, instead of from `start`.
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
        One row per status event, sorted by (`status_timestamp`, `tx_index`). An order has several
        events.

    Raises
    ------
    BadRequest
        If both `start` and `cursor` are missing, or a value is malformed.
    Incomplete
        If the events of one transaction fill a page.

    Notes
    -----
    `builder_fee` is in basis points (in fills it is an amount). `sz` is the size that is still
    open, `orig_sz` the ordered size.

    Examples
    --------
    >>> import toolkit as tk
    >>> orders = tk.frame("builderOrdersByTime", [])
    >>> "user" in orders, "builder" in orders
    (True, False)
    """
    return fetch_frame("builderOrdersByTime", **locals())


@fetches("historicalOrders")
def historical_orders(
    user: str,
    *,
    max_rows: int = 2000,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch the latest status events of a user's orders.

    This is one request. You cannot choose a time range. Only the latest 2,000 events are available.

    Costs 10 points a request. Data since 2025-08-07.

    Parameters
    ----------
    user : str
        Address of the account.
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
        One row per status event, newest first. An order has several events.

    Raises
    ------
    BadRequest
        If the address is malformed.

    Notes
    -----
    `builder_fee` is in basis points (in fills it is an amount). `sz` is the size that is still
    open, `orig_sz` the ordered size.

    Examples
    --------
    >>> import toolkit as tk
    >>> orders = tk.frame("historicalOrders", [])
    >>> "user" in orders, "builder" in orders
    (False, True)
    """
    return fetch_frame("historicalOrders", **locals())
