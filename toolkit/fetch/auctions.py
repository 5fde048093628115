"""Auctions for deploying a spot pair or a perp."""

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, fetch_frame
from toolkit.fetch.registry import fetches


@fetches("spotPairDeployAuctionStatus")
def spot_pair_deploy_auction_status(
    *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch the state of the auction for deploying a spot pair.

    The gas price falls from `start_gas` over `duration_seconds`. The first account that pays the
    current price deploys the pair and ends the auction.

    Costs 2 points a request.

    Parameters
    ----------
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row, with the state of the auction.

    Notes
    -----
    `end_gas` is missing while the auction is in progress.

    Examples
    --------
    >>> import toolkit as tk
    >>> empty = tk.frame("spotPairDeployAuctionStatus", [])
    >>> list(empty)
    ['start_time_seconds', 'duration_seconds', 'start_gas', 'current_gas', 'end_gas']
    """
    return fetch_frame("spotPairDeployAuctionStatus", **locals())


@fetches("perpDeployAuctionStatus")
def perp_deploy_auction_status(
    *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch the state of the auction for deploying a perp.

    The gas price falls from `start_gas` over `duration_seconds`. The first account that pays the
    current price deploys the perp and ends the auction.

    Costs 2 points a request.

    Parameters
    ----------
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row, with the state of the auction.

    Notes
    -----
    `current_gas` is missing after the end of the auction. `end_gas` is missing before the end.

    Examples
    --------
    >>> import toolkit as tk
    >>> ended = {
    ...     "startTimeSeconds": 1756684800,
    ...     "durationSeconds": 111600,
    ...     "startGas": "500.0",
    ...     "currentGas": None,
    ...     "endGas": "250.5",
    ... }
    >>> auction = tk.frame("perpDeployAuctionStatus", ended)
    >>> auction["current_gas"].isna().tolist()
    [True]
    >>> auction["start_time_seconds"][0].isoformat()
    '2025-09-01T00:00:00+00:00'
    """
    return fetch_frame("perpDeployAuctionStatus", **locals())
