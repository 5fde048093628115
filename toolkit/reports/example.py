"""The example account of a simulated exchange: an account of which a report shows much."""

from typing import Any, Final
from weakref import WeakKeyDictionary

from toolkit.client import Session, current_session
from toolkit.fetch.fills import user_fills_by_time
from toolkit.reports.report_frames import fetch_optional

_MAX_ACCOUNTS: Final = 40
_MIN_FILLS: Final = 50
_MIN_COINS: Final = 7
_found: WeakKeyDictionary[Session, str] = WeakKeyDictionary()


def example_account(session: Session | None = None) -> str:
    """Return the account of a report for which no account was chosen.

    It is the first account of the source that has at least 50 fills, in at least 7 coins, and paid
    a builder. A session searches once.

    Parameters
    ----------
    session : Session, optional
        A session of `toolkit.local`, whose ``world`` names the accounts; by default the default
        session.

    Returns
    -------
    str
        Its address. If none of the first 40 accounts is such an account, the first of them.

    Raises
    ------
    ValueError
        If the source does not name its accounts.

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
        raise ValueError("this source does not name its accounts: pass user=")
    if session not in _found:
        _found[session] = str(world["users"][0])
        for user in world["users"][:_MAX_ACCOUNTS]:
            fills = fetch_optional({}, "", user_fills_by_time, user, 0, session=session)
            if fills is None or len(fills) < _MIN_FILLS or fills["coin"].nunique() < _MIN_COINS:
                continue
            if (fills["builder_fee"] > 0).any():
                _found[session] = str(user)
                break
    return _found[session]
