"""The example account of a simulated exchange: one about which everything can be said."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import directions
from toolkit.client import Session, current_session
from toolkit.fetch import builder_approved_funding_by_time, user_fills_by_time
from toolkit.reports.coverage import coverage
from toolkit.reports.material import builders_of, payments_to, shown

__all__ = ["example_account"]

_TRIES: Final = 40
_FILLS: Final = 50  # with fewer there is little to show
# What was found in each session, and when: reading all payments takes seconds.
_found: WeakKeyDictionary[Session, tuple[int, str]] = WeakKeyDictionary()


def example_account(session: Session | None = None) -> str:
    """Choose the account that a report shows when none is named.

    Of the clients of the exchange's builders it is the one that paid and received most funding,
    among those with at least 50 fills, some of which close a position of its own accord, whose
    funding rows cover every position. A session finds it once, as long as its time stands still.

    Parameters
    ----------
    session : Session, optional
        A session of `toolkit.local`, whose ``world`` names the builders; the default one when
        not given.

    Returns
    -------
    str
        Its address. If no account is covered that well, the one covered best; without funding,
        the first account.

    Raises
    ------
    ValueError
        If the session does not say what is in its source.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> example_account() in session.world["users"]
    True
    """
    session = current_session(session)
    world: Any = session.world or {}
    if not world.get("users"):
        raise ValueError("no account was named, and this source does not say which it has: user=")
    now, known = session.now_ms(), _found.get(session)
    if known is None or known[0] != now:
        known = _found[session] = (now, _chosen(session, world))
    return known[1]


def _chosen(session: Session, world: Mapping[str, Any]) -> str:
    fetch = partial(builder_approved_funding_by_time, numbers="exact", session=session)
    found = {one: shown({}, "", fetch, one, 0) for one in world.get("builders", ())}
    payments = {one: rows for one, rows in found.items() if rows is not None}
    ranked = _by_funding(payments)
    best, most = (ranked or [str(world["users"][0])])[0], 0.0
    for user in ranked[:_TRIES]:
        share = _covered(session, user, payments)
        if share > most:
            best, most = user, share
        if share == 1.0:
            break
    return best


def _by_funding(payments: Mapping[str, pd.DataFrame]) -> list[str]:
    """List the clients of builders, those with most funding first."""
    if not payments:
        return []
    rows = pd.concat([frame[["user", "coin", "time", "usdc"]] for frame in payments.values()])
    rows = rows.drop_duplicates(["user", "coin", "time"])
    turned = rows["usdc"].astype("float64").abs().groupby(rows["user"]).sum()
    return [str(user) for user in turned.sort_values(ascending=False, kind="stable").index]


def _covered(session: Session, user: str, payments: Mapping[str, pd.DataFrame]) -> float:
    """Give the share of position hours with a funding row; 0 for an account of few fills.

    Likewise for one that closed nothing itself: of its PnL there is little to say. A row too
    many makes it less than 1.
    """
    own = [payments[one] for one in builders_of(session, user) if one in payments]
    if not own:
        return 0.0
    now = session.now_ms()
    fills = shown({}, "", user_fills_by_time, user, 0, now, numbers="exact", session=session)
    if fills is None or len(fills) < _FILLS or not _closed_any(fills, user):
        return 0.0
    found = coverage(fills, payments_to(user, own), now)
    return found.covered / (found.held + found.beyond) if found.covered else 0.0


def _closed_any(fills: pd.DataFrame, user: str) -> bool:
    """Return whether an account closed positions that the exchange did not close."""
    frame = nw.from_native(fills, eager_only=True)
    free = frame.filter(~directions.is_forced_close(frame.columns, user))["closed_pnl"]
    return bool((free.fill_null(0) != 0).any())
