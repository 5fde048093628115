"""Views of the wallet explorer: one account, one coin or one day of it, or several accounts."""

import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import performance, pnl
from toolkit.client import Session
from toolkit.errors import HistoryWarning, MissingColumns, ToolkitError
from toolkit.fetch.account import Account
from toolkit.fetch.concat import concat
from toolkit.prepare.door import Table
from toolkit.prepare.states import spot_backed_users
from toolkit.times import to_iso
from toolkit.widgets.view_html import error_text

PERIODS: Final = ("1d", "7d", "30d", "90d", "365d")

_IMPORTS: Final = ("import toolkit as tk", "from IPython.display import display", "")
_EQUITY_CODE: Final = (
    "states = account.states",
    "frames = (account.fills, account.funding, account.ledger)",
    "times = {'start_time': account.start_ms, 'end_time': account.end_ms}",
    "curve = tk.pnl.carried_back(states.accounts, states.positions, *frames, **times)",
)
_COMPARISON_CODE: Final = (
    'earned = tk.pnl.attribution(fills, funding, ledger, by="user")',
    'earned = earned.sort_values("net", ascending=False, kind="stable", ignore_index=True)',
    "total = tk.pnl.attribution(fills, funding, ledger)",
    'hours = tk.pnl.attribution(fills, funding, ledger, by=["user", "hour"])',
    'largest = hours[hours["user"].isin(earned.nlargest(6, "volume")["user"])]',
    "display(earned, tk.plots.cumulative_pnl(largest), tk.plots.waterfall(total))",
)
_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class WalletRequest:
    """The request of the wallet explorer.

    - ``user``: address of the account
    - ``period``: length of the period, such as ``"30d"``
    - ``coin``, ``day``: one coin, one day (``"2025-09-28"``, UTC); None for all
    """

    user: str
    period: str = "30d"
    coin: str | None = None
    day: str | None = None


class WalletFigures:
    """The figures of an account; each is computed once.

    - ``account``: its frames
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self._earned: dict[tuple[str, ...], pd.DataFrame] = {}

    def attribution(self, *by: str) -> pd.DataFrame:
        """Return PnL by groups, computed once for each grouping; the ledger has no coins."""
        if by not in self._earned:
            account = self.account
            ledger = None if "coin" in by else account.ledger
            frames = (account.prepared, account.funding, ledger)
            self._earned[by] = pnl.attribution(*frames, by=by or None)
        return self._earned[by]

    @cached_property
    def is_spot_backed(self) -> bool:
        """Whether the state lacks the collateral, which is in the spot wallet."""
        states = self.account.states
        if states is None:
            return False
        parts = (Table(states.accounts, "accounts"), Table(states.positions, "positions"))
        return bool(spot_backed_users(*parts))

    @property
    def value(self) -> float | None:
        """The value of the perp accounts now; None if it is not known."""
        states = self.account.states
        if states is None or self.is_spot_backed:
            return None
        return float(states.accounts["account_value"].sum())

    @cached_property
    def gain_and_return(self) -> tuple[float, float]:
        """The change of the value without deposits, and the return; NaN if they are not known."""
        account, states = self.account, self.account.states
        with warnings.catch_warnings(), suppress(MissingColumns):  # fills lack amounts
            warnings.simplefilter("ignore", HistoryWarning)  # a dash states what is not known
            if len(account.fills):
                frames = (account.prepared, account.funding, account.ledger)
                value = pnl.value(*frames, accounts=None if states is None else states[:2])
                rows = performance.returns(value)
                if rows["return_"].notna().any():
                    return float(rows["gain"].sum()), float(rows["growth"].iloc[-1]) - 1
        return float("nan"), float("nan")

    @cached_property
    def equity(self) -> pd.DataFrame | None:
        """The perp equity of the account over the period; None if its present state is unknown."""
        account = self.account
        if account.states is None or self.is_spot_backed:
            return None
        frames = (*account.states[:2], account.fills, account.funding, account.ledger)
        times: Any = {"start_time": account.start_ms, "end_time": account.end_ms}
        return pnl.carried_back(*frames, account=account.address, **times)


@dataclass(frozen=True)
class WalletView:
    """The view of the wallet explorer.

    - ``request``: the request
    - ``figures``: the figures of the account
    - ``earned``: `tk.pnl.attribution` of the chosen coin and day: one row, or none without data
    - ``coins``, ``days``: the same by coin (of the chosen day) and by day (of the chosen coin)
    - ``hours``: the same by hour, of the chosen coin and day
    """

    request: WalletRequest
    figures: WalletFigures
    earned: pd.DataFrame
    coins: pd.DataFrame
    days: pd.DataFrame
    hours: pd.DataFrame

    @property
    def account(self) -> Account:
        """The frames of the account."""
        return self.figures.account

    @property
    def fills(self) -> pd.DataFrame:
        """The fills of the chosen coin and day, oldest first."""
        return _keep_chosen(self.account.fills, self.request, "fills")

    @property
    def positions(self) -> pd.DataFrame | None:
        """The positions now, of the chosen coin."""
        states, coin = self.account.states, self.request.coin
        if states is None or coin is None:
            return None if states is None else states.positions
        return states.positions[states.positions["coin"] == coin]

    @property
    def equity(self) -> pd.DataFrame | None:
        """The equity of the account on the chosen day; None for a coin, or if it is not known."""
        curve = self.figures.equity
        if curve is None or self.request.coin is not None:
            return None
        # A point is at the end of its hour, so the last point of a day is at the next midnight.
        day = self.request.day
        return curve if day is None else curve[curve["time"].between(*_day_limits(day))]

    @property
    def code(self) -> str:
        """The code of the view."""
        coin, day, account = self.request.coin, self.request.day, self.account
        lines = [f"account = tk.account({account.address!r}, {to_iso(account.start_ms)!r})"]
        for name, by in _list_groups(self.request).items():
            ledger = "" if "coin" in by else ", account.ledger"
            frames = f"account.prepared, account.funding{ledger}{f', by={by!r}' if by else ''}"
            lines.append(f"{name} = tk.pnl.attribution({frames})")
            if coin is not None and name != "coins":
                lines.append(f'{name} = {name}[{name}["coin"] == {coin!r}]')
            if day is not None and name != "days":
                time = "hour" if name == "hours" else "day"
                lines.append(f'{name} = {name}[{name}["{time}"].dt.strftime("%F") == {day!r}]')
        lines.append("display(tk.plots.waterfall(earned), tk.plots.cumulative_pnl(hours))")
        if coin is None and account.states is not None:
            lines += _EQUITY_CODE
            if day is not None:
                limits = ", ".join(f'"{midnight:%Y-%m-%d}"' for midnight in _day_limits(day))
                lines.append(f'curve = curve[curve["time"].between({limits})]')
            lines.append('display(tk.plots.equity_curve(curve, of="equity"))')
        return "\n".join([*_IMPORTS, *lines])


def wallet_view(
    request: WalletRequest, session: Session, figures: WalletFigures | None = None
) -> WalletView:
    """Return the view of a request.

    - ``figures``: figures of the same account and period; if they are passed, nothing is fetched

    Raise ToolkitError if fills or ledger cannot be fetched.
    """
    if figures is None:
        figures = WalletFigures(fetch_account(request.user, request.period, session))
    frames = {
        name: _keep_chosen(figures.attribution(*by), request, name)
        for name, by in _list_groups(request).items()
    }
    return WalletView(request, figures, **frames)


def fetch_account(user: str, period: str, session: Session) -> Account:
    """Return an account with the frames of a view; the view says itself what is missing."""
    account = Account(user, period, None, session, quiet=True)
    # States first: then no row is later than they are.
    return account.fetch("states", "fills", "ledger", "funding")


def _list_groups(request: WalletRequest) -> dict[str, list[str]]:
    """Return the groups of each attribution of a view, for the chosen coin and day."""
    coin = ["coin"] if request.coin is not None else []
    day = ["day"] if request.day is not None else []
    return {
        "earned": [*coin, *day],
        "coins": ["coin", *day],
        "days": [*coin, "day"],
        "hours": [*coin, "hour"],
    }


def _keep_chosen(frame: pd.DataFrame, request: WalletRequest, name: str) -> pd.DataFrame:
    """Return the rows of the chosen coin (except for coins) and day (except for days)."""
    if request.coin is not None and name != "coins":
        frame = frame[frame["coin"] == request.coin]
    if request.day is not None and name != "days":
        time = {"hours": "hour", "fills": "time"}.get(name, "day")
        frame = frame[frame[time].between(*_day_limits(request.day), inclusive="left")]
    return frame


def _day_limits(day: str) -> tuple[pd.Timestamp, pd.Timestamp]:
    begin = pd.Timestamp(day, tz="UTC")
    return begin, begin + pd.Timedelta(days=1)


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
        users, first = [*self.figures], next(iter(self.figures.values())).account
        is_paid = any(each.account.funding is not None for each in self.figures.values())
        paid = "tk.concat([account.funding for account in accounts])"
        named = (f'{name}["user"] = users[0]' for name in ("fills", "funding")[: 1 + is_paid])
        lines = (
            f"users = {users!r}",
            f"accounts = [tk.account(user, {to_iso(first.start_ms)!r}) for user in users]",
            "fills = tk.concat([account.fills for account in accounts])",
            f"funding = {paid if is_paid else None}",
            "ledger = tk.concat([account.ledger for account in accounts])",
            *(named if len(users) == 1 else ()),
            *_COMPARISON_CODE,
        )
        return "\n".join([*_IMPORTS, *lines])


def comparison_view(
    request: ComparisonRequest, session: Session, known: Mapping[str, WalletFigures]
) -> ComparisonView:
    """Return the view of a request; `known` has the figures of accounts that were fetched before.

    Raise ToolkitError if no account can be fetched.
    """
    figures, errors = dict(known), dict[str, Exception]()

    def fetch(user: str) -> None:
        try:
            figures[user] = WalletFigures(fetch_account(user, request.period, session))
        except (ToolkitError, ValueError) as error:
            errors[user] = error

    missing = [user for user in request.users if user not in known]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(fetch, missing))
    if not figures:
        raise errors[missing[0]]
    figures = {user: figures[user] for user in request.users if user in figures}
    sources: dict[str, Any] = {}
    for name in ("fills", "funding", "ledger"):
        frames = {user: getattr(each.account, name) for user, each in figures.items()}
        known_frames = [frame for frame in frames.values() if frame is not None]
        sources[name] = concat(known_frames) if known_frames else None
        if len(known_frames) == 1 and name != "ledger":  # a single frame does not name its account
            ((user, frame),) = ((u, frame) for u, frame in frames.items() if frame is not None)
            sources[name] = frame.assign(user=user)
    earned, total, hours = (
        pnl.attribution(**sources, by=by) for by in ("user", None, ["user", "hour"])
    )
    earned = earned.sort_values("net", ascending=False, kind="stable", ignore_index=True)
    failed = {user: error_text(errors[user]) for user in missing if user in errors}
    return ComparisonView(request, figures, failed, earned, total, hours)
