"""The view of the wallet explorer: one account, or one coin or one day of it."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pandas as pd

from toolkit import performance, pnl
from toolkit.client import Session
from toolkit.errors import HistoryWarning, MissingColumns
from toolkit.fetch.account import Account
from toolkit.prepare.door import Table
from toolkit.prepare.states import spot_backed_users
from toolkit.times import to_iso

PERIODS: Final = ("1d", "7d", "30d", "90d", "365d")


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
            ledger = None if "coin" in by else self.account.ledger
            self._earned[by] = pnl.attribution(
                self.account.prepared, self.account.funding, ledger, by=by or None
            )
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
    def returns(self) -> pd.DataFrame:
        """`tk.performance.returns` of the account's value; empty if it is not known."""
        account = self.account
        if account.fills.empty:
            return pd.DataFrame()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HistoryWarning)  # a dash states what is not known
            try:
                value = pnl.value(
                    account.prepared,
                    account.funding,
                    account.ledger,
                    accounts=None if account.states is None else account.states[:2],
                )
            except MissingColumns:  # some fills do not state all amounts
                return pd.DataFrame()
            made: pd.DataFrame = performance.returns(value)
        return made

    @cached_property
    def equity(self) -> pd.DataFrame | None:
        """The perp equity of the account over the period; None if its present state is unknown."""
        account = self.account
        if account.states is None or self.is_spot_backed:
            return None
        curve: pd.DataFrame = pnl.carried_back(
            account.states.accounts,
            account.states.positions,
            account.fills,
            account.funding,
            account.ledger,
            start_time=account.start_ms,
            end_time=account.end_ms,
            account=account.address,
        )
        return curve


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
        return _keep_chosen(self.account.fills, self.request)

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
        imports = ["import toolkit as tk", "from IPython.display import display", ""]
        return "\n".join([*imports, *_code_lines(self.request, self.account)])


def wallet_view(
    request: WalletRequest, session: Session, figures: WalletFigures | None = None
) -> WalletView:
    """Return the view of a request.

    - ``figures``: figures of the same account and period; if they are passed, nothing is fetched

    Raise ToolkitError if fills or ledger cannot be fetched.
    """
    if figures is None:
        figures = WalletFigures(fetch_account(request.user, request.period, session))
    coin = ["coin"] if request.coin is not None else []
    day = ["day"] if request.day is not None else []
    return WalletView(
        request,
        figures,
        earned=_keep_chosen(figures.attribution(*coin, *day), request),
        coins=_keep_day(figures.attribution("coin", *day), request),
        days=_keep_coin(figures.attribution(*coin, "day"), request),
        hours=_keep_chosen(figures.attribution(*coin, "hour"), request),
    )


def fetch_account(user: str, period: str, session: Session) -> Account:
    """Return an account with the frames of a view; the view says itself what is missing."""
    account = Account(user, period, None, session, quiet=True)
    # States first: then no row is later than they are.
    return account.fetch("states", "fills", "ledger", "funding")


def gain_and_return(returns: pd.DataFrame) -> tuple[float, float]:
    """Return the change of a value without deposits, and the return; NaN if they are not known."""
    if returns.empty or returns["return_"].isna().all():
        return float("nan"), float("nan")
    return float(returns["gain"].sum()), float(returns["growth"].iloc[-1]) - 1


def _keep_coin(frame: pd.DataFrame, request: WalletRequest) -> pd.DataFrame:
    return frame if request.coin is None else frame[frame["coin"] == request.coin]


def _keep_day(frame: pd.DataFrame, request: WalletRequest) -> pd.DataFrame:
    """Return the rows of the chosen day, by the first of `day`, `hour`, `time` in the frame."""
    if request.day is None:
        return frame
    time = next(name for name in ("day", "hour", "time") if name in frame.columns)
    return frame[frame[time].between(*_day_limits(request.day), inclusive="left")]


def _day_limits(day: str) -> tuple[pd.Timestamp, pd.Timestamp]:
    begin = pd.Timestamp(day, tz="UTC")
    return begin, begin + pd.Timedelta(days=1)


def _keep_chosen(frame: pd.DataFrame, request: WalletRequest) -> pd.DataFrame:
    return _keep_day(_keep_coin(frame, request), request)


def _code_lines(request: WalletRequest, account: Account) -> Iterator[str]:
    yield f"account = tk.account({account.address!r}, {to_iso(account.start_ms)!r})"
    sources = ["account.prepared", "account.funding"]
    if request.coin is None:
        sources.append("account.ledger")
    yield from _attribution_lines(request, sources)
    yield "display(tk.plots.waterfall(earned), tk.plots.cumulative_pnl(hours))"
    if request.coin is None and account.states is not None:
        yield "states = account.states"
        yield "frames = (account.fills, account.funding, account.ledger)"
        yield "times = {'start_time': account.start_ms, 'end_time': account.end_ms}"
        yield "curve = tk.pnl.carried_back(states.accounts, states.positions, *frames, **times)"
        if request.day is not None:
            midnights = ", ".join(f'"{midnight:%Y-%m-%d}"' for midnight in _day_limits(request.day))
            yield f'curve = curve[curve["time"].between({midnights})]'
        yield 'display(tk.plots.equity_curve(curve, of="equity"))'


def _attribution_lines(request: WalletRequest, sources: Sequence[str]) -> Iterator[str]:
    """Yield the code of the attributions of a view, for the chosen coin and day."""
    coin = ["coin"] if request.coin is not None else []
    day = ["day"] if request.day is not None else []
    for name, by in (
        ("earned", [*coin, *day]),
        ("coins", ["coin", *day]),
        ("days", [*coin, "day"]),
        ("hours", [*coin, "hour"]),
    ):
        used = sources[:2] if "coin" in by else sources
        option = f", by={by!r}" if by else ""
        yield f"{name} = tk.pnl.attribution({', '.join(used)}{option})"
        if coin and name != "coins":
            yield f'{name} = {name}[{name}["coin"] == {request.coin!r}]'
        if day and name != "days":
            time = "hour" if name == "hours" else "day"
            yield f'{name} = {name}[{name}["{time}"].dt.strftime("%F") == {request.day!r}]'
