"""The view of the wallet explorer of several accounts: their PnL side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pandas as pd

from toolkit import pnl
from toolkit.contract.requests import is_address
from toolkit.errors import Incomplete, ToolkitError
from toolkit.fetch.accounts import user_non_funding_ledger_updates
from toolkit.fetch.fills import user_fills_by_time
from toolkit.fetch.funding import builder_approved_funding_by_time
from toolkit.fetch.many import many
from toolkit.times import to_iso
from toolkit.widgets.fetcher import Fetcher, error_text
from toolkit.widgets.wallet_view import (
    AccountData,
    both_states,
    fetch_state,
    latest_builders,
    period_limits,
    value_returns,
)

_LEDGER_USER: Final = "account"  # `tk.many` names it so: a ledger row has a user of its own


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """The request for several accounts.

    - ``users``: addresses of the accounts
    - ``period``: length of the period, such as ``"30d"``
    - ``builders``: builders of the funding rows; None for those of the accounts' latest fills
    """

    users: tuple[str, ...]
    period: str
    builders: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ComparedAccounts:
    """The frames of several accounts in one period.

    - ``accounts``: address -> frames of the account
    - ``failed``: address -> why the account is missing
    - ``fills``, ``funding``, ``ledger``: the rows of all accounts
    - ``states``: the account values and positions of all accounts; None if they are not known
    """

    accounts: Mapping[str, AccountData]
    failed: Mapping[str, str]
    fills: pd.DataFrame
    funding: pd.DataFrame | None
    ledger: pd.DataFrame
    states: tuple[pd.DataFrame, pd.DataFrame] | None = None


@dataclass(frozen=True)
class ComparisonView:
    """The view of several accounts.

    - ``request``: the request
    - ``compared``: the frames of the accounts
    - ``earned``: `tk.pnl.attribution` by account, the largest net first
    - ``total``: the same of all accounts together: one row
    - ``hours``: the same by account and hour
    - ``returns``: `tk.performance.returns` of the accounts' values; empty if they are not known
    """

    request: ComparisonRequest
    compared: ComparedAccounts
    earned: pd.DataFrame
    total: pd.DataFrame
    hours: pd.DataFrame
    returns: pd.DataFrame

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
    request: ComparisonRequest, fetch: Fetcher, now_ms: int, compared: ComparedAccounts | None
) -> ComparisonView:
    """Return the view of a request; `compared` has its frames if they were fetched before.

    Raise ToolkitError if no account can be fetched.
    """
    compared = fetch_accounts(request, fetch, now_ms) if compared is None else compared
    sources = (compared.fills, compared.funding, compared.ledger)
    earned = pnl.attribution(*sources, by="user")
    return ComparisonView(
        request,
        compared,
        earned.sort_values("net", ascending=False, kind="stable", ignore_index=True),
        pnl.attribution(*sources),
        pnl.attribution(*sources, by=["user", "hour"]),
        value_returns(*sources, compared.states),
    )


def fetch_accounts(request: ComparisonRequest, fetch: Fetcher, now_ms: int) -> ComparedAccounts:
    """Fetch the frames of several accounts, each kind of row with one call of `tk.many`."""
    users = [user.strip().lower() for user in request.users]
    positions, accounts, missing_reason = fetch_state([*filter(is_address, users)], fetch)
    start, end = period_limits(request.period, accounts, now_ms)
    failed: dict[str, str] = {}
    fills = _fetch_many(fetch, user_fills_by_time, users, start, end, failed)
    ledger = _fetch_many(fetch, user_non_funding_ledger_updates, users, start, end, failed)
    builders = request.builders
    if builders is None:
        builders = _latest_builders(fetch, users, failed)
    known = [user for user in users if user not in failed]
    funding = None
    if builders:
        paid = fetch(
            many, builder_approved_funding_by_time, list(builders), start, end, numbers="exact"
        )
        funding = paid[paid["user"].isin(known)].drop_duplicates(["user", "time", "coin"])
    fills, ledger = fills[fills["user"].isin(known)], ledger[ledger[_LEDGER_USER].isin(known)]
    return ComparedAccounts(
        {
            user: AccountData(
                user,
                start,
                end,
                _rows_of(fills, "user", user),
                _rows_of(ledger, _LEDGER_USER, user),
                None if funding is None else funding[funding["user"] == user],
                builders,
                _state_of(positions, user),
                _state_of(accounts, user),
                missing_reason,
            )
            for user in known
        },
        failed,
        fills,
        funding,
        ledger,
        both_states(accounts, positions),
    )


def _fetch_many(
    fetch: Fetcher,
    function: Callable[..., pd.DataFrame],
    users: Sequence[str],
    start: int,
    end: int,
    failed: dict[str, str],
) -> pd.DataFrame:
    """Return the rows of the accounts, and add to `failed` why those of others are missing."""
    wanted = [user for user in users if user not in failed]
    try:
        rows: pd.DataFrame = fetch(many, function, wanted, start, end, numbers="exact")
    except Incomplete as error:
        if len(error.failed) == len(wanted):
            raise error.failed[wanted[0]] from None
        failed |= {user: error_text(cause) for user, cause in error.failed.items()}
        rows = cast("pd.DataFrame", error.rows)
    return rows


def _latest_builders(
    fetch: Fetcher, users: Sequence[str], failed: dict[str, str]
) -> tuple[str, ...]:
    """Return the builders of all accounts, and add to `failed` accounts without an answer."""
    found: set[str] = set()
    for user in users:
        if user not in failed:
            try:
                found.update(latest_builders(user, fetch))
            except ToolkitError as error:
                failed[user] = error_text(error)
    return tuple(sorted(found))


def _rows_of(frame: pd.DataFrame, column: str, user: str) -> pd.DataFrame:
    """Return the rows and the provenance of one account, as its own fetch function does."""
    rows = frame[frame[column] == user].drop(columns=column).reset_index(drop=True)
    facts = frame.attrs["toolkit"]
    others = {name: value for name, value in facts["parameters"].items() if name != "users"}
    rows.attrs["toolkit"] = {
        **facts,
        "parameters": {"user": user, **others},
        "rows": len(rows),
    }
    return rows


def _state_of(frame: pd.DataFrame | None, user: str) -> pd.DataFrame | None:
    return None if frame is None else frame[frame["user"] == user].reset_index(drop=True)


def _code_lines(view: ComparisonView) -> Iterator[str]:
    compared: Any = view.compared
    account = next(iter(compared.accounts.values()))
    exact = 'start, end, numbers="exact")'
    yield f"users = {list(compared.accounts)!r}"
    yield f"start, end = {to_iso(account.start_ms)!r}, {to_iso(account.end_ms)!r}"
    yield f"fills = tk.many(tk.user_fills_by_time, users, {exact}"
    yield f"ledger = tk.many(tk.user_non_funding_ledger_updates, users, {exact}"
    if compared.funding is None:
        yield "funding = None"
    else:
        yield f"builders = {list(account.builders)!r}"
        yield f"paid = tk.many(tk.builder_approved_funding_by_time, builders, {exact}"
        yield 'own = paid[paid["user"].isin(users)]'
        yield 'funding = own.drop_duplicates(["user", "time", "coin"])'
    states = "None"
    if compared.states is not None:
        states = "states"
        yield 'states = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", numbers="exact")'
    yield f"value = tk.pnl.value(fills, funding, ledger, accounts={states})"
    yield "returns = tk.performance.returns(value)"
    yield 'earned = tk.pnl.attribution(fills, funding, ledger, by="user")'
    yield 'earned = earned.sort_values("net", ascending=False, kind="stable", ignore_index=True)'
    yield "total = tk.pnl.attribution(fills, funding, ledger)"
    yield 'hours = tk.pnl.attribution(fills, funding, ledger, by=["user", "hour"])'
    yield 'largest = hours[hours["user"].isin(earned.nlargest(6, "volume")["user"])]'
    yield "display(earned, tk.plots.cumulative_pnl(largest), tk.plots.waterfall(total))"
