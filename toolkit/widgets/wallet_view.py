"""The view of the wallet explorer: one account, or one coin or one day of it."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pandas as pd

from toolkit import performance, pnl
from toolkit.contract.dexes import ALL_DEXES
from toolkit.errors import HistoryWarning, MissingColumns, ToolkitError
from toolkit.fetch.accounts import batch_clearinghouse_states, user_non_funding_ledger_updates
from toolkit.fetch.fills import user_fills, user_fills_by_time
from toolkit.fetch.funding import builder_approved_funding_by_time
from toolkit.fetch.many import many
from toolkit.prepare.door import Table
from toolkit.prepare.states import spot_backed_users
from toolkit.times import to_iso, to_ms
from toolkit.widgets.fetcher import Fetcher, error_text

PERIODS: Final = ("1d", "7d", "30d", "90d", "365d")


@dataclass(frozen=True, slots=True)
class WalletRequest:
    """The request of the wallet explorer.

    - ``user``: address of the account
    - ``period``: length of the period, such as ``"30d"``
    - ``coin``, ``day``: one coin, one day (``"2025-09-28"``, UTC); None for all
    - ``builders``: builders of the funding rows; None for the builders of the account's latest
      fills
    """

    user: str
    period: str = "30d"
    coin: str | None = None
    day: str | None = None
    builders: tuple[str, ...] | None = None


@dataclass(frozen=True)
class AccountData:
    """The fetched frames of an account in a period, money in exact decimals.

    - ``fills``, ``ledger``, ``funding``: fetched frames; funding has the rows of the account only,
      and is None if no builder is known
    - ``builders``: builders whose funding rows were requested
    - ``positions``: positions now; None if they cannot be fetched
    - ``accounts``: account values now, by dex; None if positions are None
    - ``missing_reason``: why positions are missing
    """

    user: str
    start_ms: int
    end_ms: int
    fills: pd.DataFrame
    ledger: pd.DataFrame
    funding: pd.DataFrame | None
    builders: tuple[str, ...]
    positions: pd.DataFrame | None
    accounts: pd.DataFrame | None = None
    missing_reason: str = ""
    _earned: dict[tuple[str, ...], pd.DataFrame] = field(default_factory=dict, repr=False)

    def attribution(self, *by: str) -> pd.DataFrame:
        """Return PnL by groups, computed once for each grouping; the ledger has no coins."""
        if by not in self._earned:
            ledger = None if "coin" in by else self.ledger
            self._earned[by] = pnl.attribution(
                self.fills, self.funding, ledger, by=by or None, account=self.user
            )
        return self._earned[by]

    @property
    def is_spot_backed(self) -> bool:
        """Whether the state lacks the collateral, which is in the spot wallet."""
        return self.accounts is not None and bool(self.accounts["account_value"].isna().any())

    @cached_property
    def returns(self) -> pd.DataFrame:
        """`tk.performance.returns` of the account's value; empty if it is not known."""
        states = both_states(self.accounts, self.positions)
        return value_returns(self.fills, self.funding, self.ledger, states, account=self.user)

    @cached_property
    def equity(self) -> pd.DataFrame | None:
        """The perp equity of the account over the period; None if its present state is unknown."""
        if self.accounts is None or self.positions is None or self.is_spot_backed:
            return None
        curve: pd.DataFrame = pnl.carried_back(
            self.accounts,
            self.positions,
            self.fills,
            self.funding,
            self.ledger,
            start_time=self.start_ms,
            end_time=self.end_ms,
            account=self.user,
        )
        return curve


@dataclass(frozen=True)
class WalletView:
    """The view of the wallet explorer.

    - ``request``: the request
    - ``account``: the frames of the account
    - ``earned``: `tk.pnl.attribution` of the chosen coin and day: one row, or none without data
    - ``coins``, ``days``: the same by coin (of the chosen day) and by day (of the chosen coin)
    - ``hours``: the same by hour, of the chosen coin and day
    """

    request: WalletRequest
    account: AccountData
    earned: pd.DataFrame
    coins: pd.DataFrame
    days: pd.DataFrame
    hours: pd.DataFrame

    @property
    def fills(self) -> pd.DataFrame:
        """The fills of the chosen coin and day, oldest first."""
        return _keep_chosen(self.account.fills, self.request)

    @property
    def positions(self) -> pd.DataFrame | None:
        """The positions now, of the chosen coin."""
        positions, coin = self.account.positions, self.request.coin
        if positions is None or coin is None:
            return positions
        return positions[positions["coin"] == coin]

    @property
    def equity(self) -> pd.DataFrame | None:
        """The equity of the account on the chosen day; None for a coin, or if it is not known."""
        curve = self.account.equity
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
    request: WalletRequest, fetch: Fetcher, now_ms: int, account: AccountData | None = None
) -> WalletView:
    """Return the view of a request.

    - ``request``: the request
    - ``fetch``: fetches the frames
    - ``now_ms``: the present, in Unix milliseconds
    - ``account``: frames of the same account and period; if they are passed, nothing is fetched

    Raise ToolkitError if fills, ledger or funding cannot be fetched.
    """
    account = fetch_account(request, fetch, now_ms) if account is None else account
    coin = ["coin"] if request.coin is not None else []
    day = ["day"] if request.day is not None else []
    return WalletView(
        request,
        account,
        earned=_keep_chosen(account.attribution(*coin, *day), request),
        coins=_keep_day(account.attribution("coin", *day), request),
        days=_keep_coin(account.attribution(*coin, "day"), request),
        hours=_keep_chosen(account.attribution(*coin, "hour"), request),
    )


def both_states(
    accounts: pd.DataFrame | None, positions: pd.DataFrame | None
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return account values and positions; None if they are not known."""
    return None if accounts is None or positions is None else (accounts, positions)


def value_returns(
    fills: pd.DataFrame,
    funding: pd.DataFrame | None,
    ledger: pd.DataFrame,
    states: tuple[pd.DataFrame, pd.DataFrame] | None,
    **options: Any,
) -> pd.DataFrame:
    """Return the returns of accounts by day, from their value; empty if it is not known."""
    if fills.empty:
        return pd.DataFrame()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)  # a dash states what is not known
        try:
            value = pnl.value(fills, funding, ledger, accounts=states, **options)
        except MissingColumns:  # some fills do not state all amounts
            return pd.DataFrame()
        made: pd.DataFrame = performance.returns(value)
    return made


def gain_and_return(returns: pd.DataFrame) -> tuple[float, float]:
    """Return the change of a value without deposits, and the return; NaN if they are not known."""
    if returns.empty or returns["return_"].isna().all():
        return float("nan"), float("nan")
    return float(returns["gain"].sum()), float(returns["growth"].iloc[-1]) - 1


def fetch_account(request: WalletRequest, fetch: Fetcher, now_ms: int) -> AccountData:
    """Fetch the frames of an account."""
    user = request.user.strip().lower()
    positions, accounts, missing_reason = fetch_state([user], fetch)
    start, end = period_limits(request.period, accounts, now_ms)
    fills = fetch(user_fills_by_time, user, start, end, numbers="exact")
    ledger = fetch(user_non_funding_ledger_updates, user, start, end, numbers="exact")
    builders = request.builders if request.builders is not None else latest_builders(user, fetch)
    return AccountData(
        user,
        start,
        end,
        fills,
        ledger,
        _fetch_funding(user, builders, fetch, start, end),
        builders,
        positions,
        accounts,
        missing_reason,
    )


def latest_builders(user: str, fetch: Fetcher) -> tuple[str, ...]:
    """Return the builders through which the account's latest fills were routed."""
    return tuple(sorted(fetch(user_fills, user)["builder"].dropna().unique()))


def _fetch_funding(
    user: str, builders: tuple[str, ...], fetch: Fetcher, start: int, end: int
) -> pd.DataFrame | None:
    """Return the funding rows of the account through its builders, each payment once."""
    if not builders:
        return None
    rows = fetch(
        many, builder_approved_funding_by_time, list(builders), start, end, numbers="exact"
    )
    own: pd.DataFrame = rows[rows["user"] == user].drop_duplicates(["time", "coin"])
    return own


def fetch_state(
    users: Sequence[str], fetch: Fetcher
) -> tuple[pd.DataFrame | None, pd.DataFrame | None, str]:
    """Return positions and account values, or why they are missing.

    The value of a unified or portfolio-margin account is missing, because its collateral is.
    """
    try:
        state = fetch(batch_clearinghouse_states, users, dex=ALL_DEXES, numbers="exact")
    except ToolkitError as error:
        return None, None, error_text(error)
    accounts = state.accounts.copy()
    hidden = spot_backed_users(Table(accounts, "accounts"), Table(state.positions, "positions"))
    accounts["account_value"] = accounts["account_value"].mask(accounts["user"].isin(hidden))
    return state.positions, accounts, ""


def period_limits(period: str, accounts: pd.DataFrame | None, now_ms: int) -> tuple[int, int]:
    """Return start and end of a period, in Unix milliseconds.

    The period ends at the time of the account values, so that no row is later than they are.
    """
    end = now_ms if accounts is None or accounts.empty else to_ms(accounts["time"].max())
    return to_ms(period, now_ms=end), end


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


def _code_lines(request: WalletRequest, account: AccountData) -> Iterator[str]:
    start, end = to_iso(account.start_ms), to_iso(account.end_ms)
    exact = 'start, end, numbers="exact")'
    yield f"user, start, end = {account.user!r}, {start!r}, {end!r}"
    yield f"fills = tk.user_fills_by_time(user, {exact}"
    sources = ["fills"]
    if account.funding is not None:
        yield f"builders = {list(account.builders)!r}"
        yield f"paid = tk.many(tk.builder_approved_funding_by_time, builders, {exact}"
        yield 'funding = paid[paid["user"] == user].drop_duplicates(["time", "coin"])'
    sources.append("funding" if account.funding is not None else "None")
    if request.coin is None:
        yield f"ledger = tk.user_non_funding_ledger_updates(user, {exact}"
        sources.append("ledger")
    yield from _attribution_lines(request, sources)
    yield "display(tk.plots.waterfall(earned), tk.plots.cumulative_pnl(hours))"
    if request.coin is None and account.positions is not None:
        yield 'state = tk.batch_clearinghouse_states([user], dex="ALL_DEXES", numbers="exact")'
        yield f"frames = (state.accounts, state.positions, {', '.join(sources)})"
        yield "curve = tk.pnl.carried_back(*frames, start_time=start, end_time=end)"
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
        tables = ", ".join(source for source in sources if "coin" not in by or source != "ledger")
        option = f", by={by!r}" if by else ""
        yield f"{name} = tk.pnl.attribution({tables}{option}, account=user)"
        if coin and name != "coins":
            yield f'{name} = {name}[{name}["coin"] == {request.coin!r}]'
        if day and name != "days":
            time = "hour" if name == "hours" else "day"
            yield f'{name} = {name}[{name}["{time}"].dt.strftime("%F") == {request.day!r}]'
