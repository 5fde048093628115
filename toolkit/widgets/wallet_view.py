"""What the wallet explorer shows, computed: one account, or one coin or day of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pandas as pd

from toolkit import pnl
from toolkit.contract.dexes import ALL_DEXES
from toolkit.errors import ToolkitError
from toolkit.fetch import (
    batch_clearinghouse_states,
    builder_approved_funding_by_time,
    user_fills,
    user_fills_by_time,
    user_non_funding_ledger_updates,
)
from toolkit.fetch.many import many
from toolkit.times import to_iso, to_ms
from toolkit.widgets.asking import Fetch, in_words

__all__ = ["PERIODS", "Account", "WalletRequest", "WalletView", "account_of", "wallet_view"]

PERIODS: Final = ("1d", "7d", "30d", "90d", "365d")


@dataclass(frozen=True, slots=True)
class WalletRequest:
    """What to show.

    Attributes
    ----------
    user : str
        Address of the account.
    period : str
        How far back, such as ``"30d"``.
    coin, day : str or None
        One coin, one day (``"2025-09-28"``, UTC); None shows all.
    builders : tuple of str or None
        Whose funding rows are looked through; None: those of the account's latest fills.
    """

    user: str
    period: str = "30d"
    coin: str | None = None
    day: str | None = None
    builders: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Account:
    """What is known of an account in a period, money in exact decimals.

    Attributes
    ----------
    fills, ledger, funding : DataFrame
        As fetched; the funding rows are those of the account, None where no builder is known.
    builders : tuple of str
        Whose funding rows were asked for.
    positions : DataFrame or None
        What it holds now; None where that cannot be had, and `lacking` says why.
    accounts : DataFrame or None
        What it is worth now, by dex; None where positions are.
    lacking : str
        Why positions are not known.
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
    lacking: str = ""
    _earned: dict[tuple[str, ...], pd.DataFrame] = field(default_factory=dict, repr=False)

    def attribution(self, *by: str) -> pd.DataFrame:
        """Attribute PnL, once for each grouping; the ledger knows no coin."""
        if by not in self._earned:
            ledger = None if "coin" in by else self.ledger
            self._earned[by] = pnl.attribution(
                self.fills, self.funding, ledger, by=by or None, account=self.user
            )
        return self._earned[by]

    @cached_property
    def equity(self) -> pd.DataFrame | None:
        """Its perp equity over the period; None where its state now is not known."""
        if self.accounts is None or self.positions is None:
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
    """What is shown.

    Attributes
    ----------
    request : WalletRequest
        What it answers.
    account : Account
        What it rests on.
    earned : DataFrame
        `tk.pnl.attribution` of what was chosen: one row, or none where nothing happened.
    coins, days : DataFrame
        The same by coin (of the chosen day) and by day (of the chosen coin).
    hours : DataFrame
        The same by hour, of what was chosen.
    """

    request: WalletRequest
    account: Account
    earned: pd.DataFrame
    coins: pd.DataFrame
    days: pd.DataFrame
    hours: pd.DataFrame

    @property
    def fills(self) -> pd.DataFrame:
        """The fills of what was chosen, oldest first."""
        return _chosen(self.account.fills, self.request)

    @property
    def positions(self) -> pd.DataFrame | None:
        """What is held now, of the chosen coin."""
        held, coin = self.account.positions, self.request.coin
        return held if held is None or coin is None else held[held["coin"] == coin]

    @property
    def equity(self) -> pd.DataFrame | None:
        """The equity of the account, on the chosen day; None of a coin, or where not known."""
        curve = self.account.equity
        if curve is None or self.request.coin is not None:
            return None
        # Its points stand at the ends of hours: a day's last one is the next midnight.
        day = self.request.day
        return curve if day is None else curve[curve["time"].between(*_ends(day))]

    @property
    def code(self) -> str:
        """The cell that reproduces it."""
        imports = ["import toolkit as tk", "from IPython.display import display", ""]
        return "\n".join([*imports, *_lines(self.request, self.account)])


def wallet_view(
    request: WalletRequest, fetch: Fetch, now_ms: int, account: Account | None = None
) -> WalletView:
    """Compute a view.

    Parameters
    ----------
    request : WalletRequest
        What to show.
    fetch : Fetch
        How to ask.
    now_ms : int
        The present, in Unix milliseconds.
    account : Account, optional
        What was fetched for the same account and period: nothing is asked then.

    Raises
    ------
    ToolkitError
        If fills, ledger or funding cannot be had.
    """
    account = account_of(request, fetch, now_ms) if account is None else account
    coin = ["coin"] if request.coin is not None else []
    day = ["day"] if request.day is not None else []
    return WalletView(
        request,
        account,
        earned=_chosen(account.attribution(*coin, *day), request),
        coins=_of_day(account.attribution("coin", *day), request),
        days=_of_coin(account.attribution(*coin, "day"), request),
        hours=_chosen(account.attribution(*coin, "hour"), request),
    )


def account_of(request: WalletRequest, fetch: Fetch, now_ms: int) -> Account:
    """Fetch what a view rests on."""
    user = request.user.strip().lower()
    positions, accounts, lacking = _state(user, fetch)
    # The period ends where the state was taken, so that nothing lies between it and the tables.
    end = now_ms if accounts is None or accounts.empty else to_ms(accounts["time"].max())
    start = to_ms(request.period, now_ms=end)
    fills = fetch(user_fills_by_time, user, start, end, numbers="exact")
    ledger = fetch(user_non_funding_ledger_updates, user, start, end, numbers="exact")
    builders = request.builders if request.builders is not None else _routed(user, fetch)
    return Account(
        user,
        start,
        end,
        fills,
        ledger,
        _funding(user, builders, fetch, start, end),
        builders,
        positions,
        accounts,
        lacking,
    )


def _routed(user: str, fetch: Fetch) -> tuple[str, ...]:
    """Give the builders through which the account's latest fills were routed."""
    return tuple(sorted(fetch(user_fills, user)["builder"].dropna().unique()))


def _funding(
    user: str, builders: tuple[str, ...], fetch: Fetch, start: int, end: int
) -> pd.DataFrame | None:
    """Fetch the funding rows of builders, and give those of the account, each payment once."""
    if not builders:
        return None
    rows = fetch(
        many, builder_approved_funding_by_time, list(builders), start, end, numbers="exact"
    )
    own: pd.DataFrame = rows[rows["user"] == user].drop_duplicates(["time", "coin"])
    return own


def _state(user: str, fetch: Fetch) -> tuple[pd.DataFrame | None, pd.DataFrame | None, str]:
    """Fetch what it holds and is worth; a view without it is still worth something."""
    try:
        state = fetch(batch_clearinghouse_states, [user], dex=ALL_DEXES, numbers="exact")
        return state.positions, state.accounts, ""
    except ToolkitError as error:
        return None, None, in_words(error)


def _of_coin(frame: pd.DataFrame, request: WalletRequest) -> pd.DataFrame:
    return frame if request.coin is None else frame[frame["coin"] == request.coin]


def _of_day(frame: pd.DataFrame, request: WalletRequest) -> pd.DataFrame:
    """Keep the rows of the chosen day, whatever column tells their time."""
    if request.day is None:
        return frame
    time = next(name for name in ("day", "hour", "time") if name in frame.columns)
    return frame[frame[time].between(*_ends(request.day), inclusive="left")]


def _ends(day: str) -> tuple[pd.Timestamp, pd.Timestamp]:
    begin = pd.Timestamp(day, tz="UTC")
    return begin, begin + pd.Timedelta(days=1)


def _chosen(frame: pd.DataFrame, request: WalletRequest) -> pd.DataFrame:
    return _of_day(_of_coin(frame, request), request)


def _lines(request: WalletRequest, account: Account) -> Iterator[str]:
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
    yield from _attributions(request, sources)
    yield "display(tk.plots.waterfall(earned), tk.plots.cumulative_pnl(hours))"
    if request.coin is None and account.positions is not None:
        yield 'state = tk.batch_clearinghouse_states([user], dex="ALL_DEXES", numbers="exact")'
        yield f"held = (state.accounts, state.positions, {', '.join(sources)})"
        yield "curve = tk.pnl.carried_back(*held, start_time=start, end_time=end)"
        if request.day is not None:
            midnights = ", ".join(f'"{one:%Y-%m-%d}"' for one in _ends(request.day))
            yield f'curve = curve[curve["time"].between({midnights})]'
        yield 'display(tk.plots.equity_curve(curve, of="equity"))'


def _attributions(request: WalletRequest, sources: Sequence[str]) -> Iterator[str]:
    """Write how the figures and tables of a view are attributed, and cut to what was chosen."""
    coin = ["coin"] if request.coin is not None else []
    day = ["day"] if request.day is not None else []
    for name, by in (
        ("earned", [*coin, *day]),
        ("coins", ["coin", *day]),
        ("days", [*coin, "day"]),
        ("hours", [*coin, "hour"]),
    ):
        tables = ", ".join(one for one in sources if "coin" not in by or one != "ledger")
        named = f", by={by!r}" if by else ""
        yield f"{name} = tk.pnl.attribution({tables}{named}, account=user)"
        if coin and name != "coins":
            yield f'{name} = {name}[{name}["coin"] == {request.coin!r}]'
        if day and name != "days":
            time = "hour" if name == "hours" else "day"
            yield f'{name} = {name}[{name}["{time}"].dt.strftime("%F") == {request.day!r}]'
