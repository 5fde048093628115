"""The example account of a simulated exchange: one about which everything can be said."""

from itertools import islice
from typing import Any, Final

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.fetch import builder_approved_funding_by_time, user_fills_by_time
from toolkit.reports.coverage import coverage
from toolkit.reports.material import builders_of, funding_of

__all__ = ["example_account"]

_TRIES: Final = 8


def example_account(session: Session | None = None) -> str:
    """Choose the account that a report shows when none is named.

    Of the clients of the exchange's builders it is the one that paid and received most funding,
    among those whose funding rows cover every position.

    Parameters
    ----------
    session : Session, optional
        A session of `toolkit.local`, whose ``world`` names the builders; the default one when
        not given.

    Returns
    -------
    str
        Its address. If no account is covered that well, the one with most funding; without
        builders, the first account.

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
    ranked = _by_funding(session, world.get("builders", ()))
    chosen = (user for user in islice(ranked, _TRIES) if _is_covered(session, user))
    return next(chosen, ranked[0] if ranked else str(world["users"][0]))


def _by_funding(session: Session, builders: list[str]) -> list[str]:
    """List the clients of builders, those with most funding first."""
    frames = [builder_approved_funding_by_time(one, 0, session=session) for one in builders]
    if not frames:
        return []
    rows = pd.concat([frame[["user", "coin", "time", "usdc"]] for frame in frames])
    rows = rows.drop_duplicates(["user", "coin", "time"])
    turned = rows["usdc"].abs().groupby(rows["user"]).sum()
    return [str(user) for user in turned.sort_values(ascending=False, kind="stable").index]


def _is_covered(session: Session, user: str) -> bool:
    builders = builders_of(session, user)
    if not builders:
        return False
    now = session.now_ms()
    fills = user_fills_by_time(user, 0, now, numbers="exact", session=session)
    funding = funding_of(session, user, builders, 0, now)
    return coverage(fills, funding, now).complete
