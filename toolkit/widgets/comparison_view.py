"""The view of the wallet explorer of several accounts: their PnL side by side."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pandas as pd

from toolkit import pnl
from toolkit.client import Session
from toolkit.errors import ToolkitError
from toolkit.fetch.account import Account
from toolkit.fetch.concat import concat
from toolkit.times import to_iso
from toolkit.widgets.fetcher import error_text
from toolkit.widgets.wallet_view import WalletFigures, fetch_account

_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """The request for several accounts.

    - ``users``: addresses of the accounts
    - ``period``: length of the period, such as ``"30d"``
    """

    users: tuple[str, ...]
    period: str


@dataclass(frozen=True)
class ComparisonView:
    """The view of several accounts.

    - ``request``: the request
    - ``figures``: address -> figures of the account
    - ``failed``: address -> why the account is missing
    - ``earned``: `tk.pnl.attribution` by account, the largest net first
    - ``total``: the same of all accounts together: one row
    - ``hours``: the same by account and hour
    """

    request: ComparisonRequest
    figures: Mapping[str, WalletFigures]
    failed: Mapping[str, str]
    earned: pd.DataFrame
    total: pd.DataFrame
    hours: pd.DataFrame

    @property
    def largest(self) -> pd.DataFrame:
        """The hours of the accounts with the largest volume, as many as a figure can have."""
        return self.hours[self.hours["user"].isin(self.earned.nlargest(6, "volume")["user"])]

    @property
    def code(self) -> str:
        """The code of the view."""
        imports = ["import toolkit as tk", "from IPython.display import display", ""]
        return "\n".join([*imports, *_code_lines(self)])


def comparison_view(
    request: ComparisonRequest, session: Session, known: Mapping[str, WalletFigures]
) -> ComparisonView:
    """Return the view of a request; `known` has the figures of accounts that were fetched before.

    Raise ToolkitError if no account can be fetched.
    """
    figures, errors = dict(known), dict[str, Exception]()

    def fetch(user: str) -> Account | Exception:
        try:
            return fetch_account(user, request.period, session)
        except (ToolkitError, ValueError) as error:
            return error

    missing = [user for user in request.users if user not in known]
    with ThreadPoolExecutor(_THREADS) as pool:
        for user, found in zip(missing, pool.map(fetch, missing), strict=True):
            if isinstance(found, Exception):
                errors[user] = found
            else:
                figures[user] = WalletFigures(found)
    if not figures:
        raise errors[missing[0]]
    figures = {user: figures[user] for user in request.users if user in figures}
    sources: Any = (_join(figures, name) for name in ("fills", "funding", "ledger"))
    attribute: Any = partial(pnl.attribution, *sources)
    earned = attribute(by="user")
    return ComparisonView(
        request,
        figures,
        {user: error_text(error) for user, error in errors.items()},
        earned.sort_values("net", ascending=False, kind="stable", ignore_index=True),
        attribute(),
        attribute(by=["user", "hour"]),
    )


def _join(figures: Mapping[str, WalletFigures], name: str) -> pd.DataFrame | None:
    """Return a frame of all accounts, which names them; None if no account has it."""
    frames = {user: getattr(each.account, name) for user, each in figures.items()}
    known = {user: frame for user, frame in frames.items() if frame is not None}
    if len(known) == 1 and name != "ledger":
        ((user, frame),) = known.items()
        named: pd.DataFrame = frame.assign(user=user)
        return named
    return concat(known.values()) if known else None


def _code_lines(view: ComparisonView) -> Iterator[str]:
    users, first = [*view.figures], next(iter(view.figures.values())).account
    yield f"users = {users!r}"
    yield f"accounts = [tk.account(user, {to_iso(first.start_ms)!r}) for user in users]"
    yield "fills = tk.concat([account.fills for account in accounts])"
    is_paid = any(each.account.funding is not None for each in view.figures.values())
    paid = "tk.concat([account.funding for account in accounts])"
    yield f"funding = {paid if is_paid else None}"
    yield "ledger = tk.concat([account.ledger for account in accounts])"
    if len(users) == 1:
        yield from (f'{name}["user"] = users[0]' for name in ("fills", "funding")[: 1 + is_paid])
    yield 'earned = tk.pnl.attribution(fills, funding, ledger, by="user")'
    yield 'earned = earned.sort_values("net", ascending=False, kind="stable", ignore_index=True)'
    yield "total = tk.pnl.attribution(fills, funding, ledger)"
    yield 'hours = tk.pnl.attribution(fills, funding, ledger, by=["user", "hour"])'
    yield 'largest = hours[hours["user"].isin(earned.nlargest(6, "volume")["user"])]'
    yield "display(earned, tk.plots.cumulative_pnl(largest), tk.plots.waterfall(total))"
