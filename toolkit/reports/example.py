"""The example account of a simulated exchange: an account with complete data."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from toolkit.client import Session, current_session
from toolkit.fetch.fills import user_fills, user_fills_by_time
from toolkit.fetch.funding import builder_approved_funding_by_time
from toolkit.prepare.door import Table
from toolkit.prepare.roles import read_roles
from toolkit.reports.funding_coverage import compare_funding
from toolkit.reports.report_frames import fetch_optional

_MAX_ACCOUNTS: Final = 40
_MIN_FILLS: Final = 50  # a report of fewer fills shows little
_PAYMENT: Final = ("user", "coin", "time", "usdc", "szi", "n_samples")
# Session -> time and account of the last search, which reads all payments and takes seconds.
_found: WeakKeyDictionary[Session, tuple[int, str]] = WeakKeyDictionary()


def example_account(session: Session | None = None) -> str:
    """Return the account of a report for which no account was chosen.

    The users of the exchange's builders are searched, those with the largest funding payments
    first. The first account is taken that has at least 50 fills, closed a position itself, and has
    funding rows for every position hour. A session searches once, as long as its time does not
    change.

    Parameters
    ----------
    session : Session, optional
        A session of `toolkit.local`, whose ``world`` names the builders; by default the default
        session.

    Returns
    -------
    str
        Its address. If none of the first 40 accounts has all funding rows, the one with the largest
        share of them. Without any funding, the first account of the source.

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
    now, known = session.now_ms(), _found.get(session)
    if known is None or known[0] != now:
        payments = _fetch_payments(session, world.get("builders", ()))
        rows_of, ranked = payments.groupby("user").indices, _rank_by_funding(payments)
        best, largest = (ranked or [str(world["users"][0])])[0], 0.0
        for user in ranked[:_MAX_ACCOUNTS]:
            share = _covered_share(session, user, payments.iloc[rows_of[user]], largest)
            if share > largest:
                best, largest = user, share
            if share == 1.0:
                break
        known = _found[session] = (now, best)
    return known[1]


def _fetch_payments(session: Session, builders: Sequence[str]) -> pd.DataFrame:
    """Return the funding rows of all builders, with the column ``builder``.

    Numbers are text, which is fastest to read: only the payments are used as numbers.
    """
    fetch = partial(builder_approved_funding_by_time, numbers="text", session=session)
    answers = {builder: fetch_optional({}, "", fetch, builder, 0) for builder in builders}
    parts = [pd.DataFrame(columns=[*_PAYMENT, "builder"], dtype=object)]
    for builder, rows in answers.items():
        if rows is not None and len(rows):
            rows.attrs = {}  # pandas compares attrs at great length
            parts.append(rows[[*_PAYMENT]].assign(builder=builder))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _rank_by_funding(payments: pd.DataFrame) -> list[str]:
    """Return the users of builders, those with the largest funding first."""
    rows = payments.drop_duplicates(["user", "coin", "time"])
    sums = rows["usdc"].astype("float64").abs().groupby(rows["user"]).sum()
    return [str(user) for user in sums.sort_values(ascending=False, kind="stable").index]


def _covered_share(session: Session, user: str, payments: pd.DataFrame, above: float) -> float:
    """Return the share of position hours with a funding row.

    It is 0 for an account with few fills, and for one that closed no position itself: a report of
    it shows little. It is less than 1 if there is a row without a position. A share that is not
    greater than `above` is returned as 0.
    """
    now = session.now_ms()
    fills = fetch_optional(
        {}, "", user_fills_by_time, user, 0, now, numbers="exact", session=session
    )
    if fills is None or len(fills) < _MIN_FILLS:
        return 0.0
    fills.attrs = {}  # pandas copies attrs at every step
    # Few accounts pass this first comparison. The others need none of the slower checks.
    most = compare_funding(fills, payments.drop_duplicates(["time", "coin"]), now)
    if not most.covered or most.covered / most.held <= above:
        return 0.0
    latest = fetch_optional({}, "", user_fills, user, session=session)
    if latest is not None and latest["builder"].notna().any():
        payments = payments[payments["builder"].isin(latest["builder"].dropna())]
    found = compare_funding(fills, payments.drop_duplicates(["time", "coin"]), now)
    share = found.covered / (found.held + found.beyond) if found.covered else 0.0
    return share if share > above and _has_closed(fills, user) else 0.0


def _has_closed(fills: pd.DataFrame, user: str) -> bool:
    """Return whether an account closed positions that the exchange did not close."""
    table = Table(fills, "fills", "none")
    is_free = ~read_roles(table, user).forced
    return bool((np.nan_to_num(table.number("closed_pnl"))[is_free] != 0).any())
