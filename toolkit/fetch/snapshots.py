"""Snapshots of all accounts and all TWAP orders.

Poll the cheap timestamp function, and fetch the expensive snapshot only when its id has changed.
"""

from collections.abc import Sequence

import pandas as pd

from toolkit.client import Session
from toolkit.fetch.pull import Extra, Numbers, fetch_frame
from toolkit.fetch.registry import fetches


@fetches("accountValueSnapshotTimestamp")
def account_value_snapshot_timestamp(
    *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch which account-value snapshot is the latest.

    The service answers at once. Poll it every 10 to 30 seconds.

    Costs 2 points a request. This is an add-on: the key needs a permission for it.

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
        One row, with the id and the time of the latest snapshot.

    Raises
    ------
    NotReady
        If no snapshot has been published yet.
    NotPermitted
        If the key does not have the add-on.

    Examples
    --------
    >>> import toolkit as tk
    >>> row = {"snapshot_id": "20240915_state_123456789", "timestamp": 1726387200}
    >>> latest = tk.frame("accountValueSnapshotTimestamp", [row])
    >>> latest["timestamp"][0].isoformat()
    '2024-09-15T08:00:00+00:00'
    """
    return fetch_frame("accountValueSnapshotTimestamp", **locals())


@fetches("accountValueSnapshots")
def account_value_snapshots(
    collateral_tokens: str | Sequence[str],
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch account value, notionals and mode of every account, by collateral token.

    Costs 2 points a request. Can be requested 5 times in 10 minutes. This is an add-on: the key
    needs a permission for it.

    Parameters
    ----------
    collateral_tokens : str or sequence of str
        ``<token>`` (every dex with that collateral), ``<dex>:<token>`` (one dex), mixtures,
        or ``["ALL"]``.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per account and snapshot.

    Raises
    ------
    NotReady
        If no snapshot has been published yet.
    NotPermitted
        If the key does not have the add-on.
    AnswerInvalid
        If the binary answer is damaged or larger than is allowed.

    Notes
    -----
    `account_mode` decides what `account_value` covers. For portfolio-margin accounts it is the
    value in one settlement token, and `pm_total_account_value` is the total. The three ``pm_``
    columns are missing for all other accounts.

    Examples
    --------
    >>> import toolkit as tk
    >>> accounts = tk.frame("accountValueSnapshots", [])
    >>> list(accounts)[:4]
    ['snapshot_id', 'collateral_token', 'user', 'account_value']
    """
    return fetch_frame("accountValueSnapshots", **locals())


@fetches("perpTwapSnapshotTimestamp")
def perp_twap_snapshot_timestamp(
    *, numbers: Numbers = "float", extra: Extra = "drop", session: Session | None = None
) -> pd.DataFrame:
    """Fetch which TWAP snapshot is the latest.

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
        One row, with the id and the time of the latest snapshot.

    Raises
    ------
    NotReady
        If no snapshot has been published yet.

    Examples
    --------
    >>> import toolkit as tk
    >>> list(tk.frame("perpTwapSnapshotTimestamp", []))
    ['snapshot_id', 'timestamp']
    """
    return fetch_frame("perpTwapSnapshotTimestamp", **locals())


@fetches("perpTwapSnapshots")
def perp_twap_snapshots(
    market_names: str | Sequence[str],
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
) -> pd.DataFrame:
    """Fetch every TWAP order that is active or waits for its trigger, by market.

    Costs 2 points a request. Can be requested 5 times in 10 minutes.

    Parameters
    ----------
    market_names : str or sequence of str
        ``<market>`` (native dex), ``<dex>:<market>``, ``ALL`` (native dex), ``ALL:<dex>`` or
        ``ALL:ALL_DEXES``, which overrides every other entry.
    numbers : {"float", "exact", "text"}
        Form of number columns: float64, exact decimals, or the text on the wire.
    extra : {"drop", "keep"}
        Whether unknown fields are left out, or kept as columns of text after the known ones.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    DataFrame
        One row per TWAP order and snapshot.

    Raises
    ------
    NotReady
        If no snapshot has been published yet.
    AnswerInvalid
        If the binary answer is damaged or larger than is allowed.

    Notes
    -----
    `twap_id` is unique per user only. In snapshots from before trigger TWAPs existed,
    `stop_px`, `trigger_px` and `trigger_above` are missing, and `waiting` is False.

    Examples
    --------
    >>> import toolkit as tk
    >>> twaps = tk.frame("perpTwapSnapshots", [])
    >>> {"twap_id", "total_sz", "executed_sz", "waiting"} <= set(twaps)
    True
    """
    return fetch_frame("perpTwapSnapshots", **locals())
