"""The wallet explorer: PnL, fees and funding of an account by coin and day, or of several."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import ipywidgets as ipw

from toolkit.client import Session, current_session
from toolkit.fetch.markets import market_code, market_names
from toolkit.plots import formats
from toolkit.widgets import wallet_html
from toolkit.widgets import wallet_view as views
from toolkit.widgets.panel import Explorer, make_control, push_button

ExplorerRequest = views.WalletRequest | views.ComparisonRequest
ExplorerView = views.WalletView | views.ComparisonView
ExplorerLoad = tuple[ExplorerRequest, dict[str, views.WalletFigures]]
"""A request, and the figures of the accounts that were fetched before."""

ALL_ACCOUNTS: Final = "all"
"""What `WalletExplorer.set` takes as `user` to compare all accounts."""


class WalletExplorer(Explorer[ExplorerView]):
    """A widget that shows the PnL of accounts; returned by `wallet_explorer`.

    Attributes
    ----------
    view : WalletView or ComparisonView or None
        The frames of the view: `earned`, `coins`, `days`, `hours`, `fills`, `positions` of one
        account; `earned`, `total`, `hours` of several. None until the first view.
    error : Exception or None
        Why the last request is not shown.
    widget : ipywidgets.VBox
        The widget, to place it next to others.
    """

    def __init__(
        self, request: views.WalletRequest, session: Session, users: Sequence[str]
    ) -> None:
        self._session = session
        self._users = tuple(dict.fromkeys(user.strip().lower() for user in users))
        periods = list(dict.fromkeys([*views.PERIODS, request.period]))
        hint, typed = "Address of the account; press Enter to load it", request.user
        self._user = make_control(ipw.Text, "Address", hint, "34em", value=typed)
        self._user.continuous_update = False
        chosen = self._users[0] if request.coin or request.day else None
        accounts = [(formats.short_address(user), user) for user in self._users]
        choose = partial(make_control, ipw.Select, width="22em", rows=7)
        first = [("all accounts", None), *accounts]
        self._account = choose("Account", "One account", options=first, value=chosen)
        coins = _first_options("coins", request.coin)
        self._coin = choose("Coin", "One coin", options=coins, value=request.coin)
        days = _first_options("days", request.day)
        self._day = choose("Day", "One day, UTC", options=days, value=request.day)
        self._period = make_control(
            ipw.Dropdown, "Period", "Length of the period", options=periods, value=request.period
        )
        self._refresh = push_button("Refresh", "Fetch the account again")
        account = self._account if len(self._users) > 1 else self._user
        controls = [account, self._period, self._refresh, self._coin, self._day]
        super().__init__(controls, self._compute_view)
        self._known: dict[str, views.WalletFigures] = {}  # a new one for each reload
        for control in (self._user, self._period, self._account):
            control.observe(self._load_account, "value")
        for control in (self._coin, self._day):
            control.observe(self._on_change, "value")
        self._refresh.on_click(self._reload)
        self._on_change()
        self.settle()

    @property
    def request(self) -> ExplorerRequest:
        """The request of the controls."""
        several = len(self._users) > 1
        if several and self._account.value is None:
            return views.ComparisonRequest(self._users, self._period.value)
        return views.WalletRequest(
            self._account.value if several else self._user.value.strip(),
            self._period.value,
            self._coin.value,
            self._day.value,
        )

    def set(
        self, *, user: str | None = None, period: str | None = None, **chosen: str | None
    ) -> "WalletExplorer":
        """Set `user`, `period`, `coin` or `day`, and wait for the view.

        Another account or period starts with all coins and all days. Of several accounts, `user` is
        one of them, or ``"all"`` to compare them.
        """
        if user is not None and len(self._users) > 1:
            known = {ALL_ACCOUNTS: None, **{address: address for address in self._users}}
            if (name := user.strip().lower()) not in known:
                raise ValueError(f"unknown user {user!r}; choose one of the accounts, or 'all'")
            self._account.value = known[name]
        elif user is not None:
            self._user.value = user
        if period is not None:
            self._period.value = period
        self.settle()
        if chosen and isinstance(self.request, views.ComparisonRequest):
            raise ValueError("choose one account before a coin or a day: set(user=...)")
        for name, value in chosen.items():
            control = {"coin": self._coin, "day": self._day}[name]
            choices = [choice for _, choice in control.options]
            if value not in choices:
                listed = ", ".join(filter(None, choices))
                advice = f"choose one of {listed}" if listed else f"it has no {name}"
                raise ValueError(f"no {name} {value!r} is in this period; {advice}")
            control.value = value
        self.settle()
        return self

    def __repr__(self) -> str:
        request = self.request
        if isinstance(request, views.ComparisonRequest):
            return f"tk.widgets.wallet_explorer({[*request.users]!r}, period={request.period!r})"
        options = {name: getattr(request, name) for name in ("period", "coin", "day")}
        text = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
        return f"tk.widgets.wallet_explorer({request.user!r}, {text})"

    def _load_account(self, change: Any) -> None:
        """Start again with all coins and days; another address or period is fetched."""
        if self._is_quiet:
            return
        with self._quiet():
            self._coin.value = self._day.value = None
        if change.owner is self._account:
            self._on_change(change)
        else:
            self._reload()

    def _reload(self, _: object = None) -> None:
        self._known = {}
        self._on_change()

    def _on_change(self, change: Any = None) -> None:
        if self._is_quiet:
            return
        with self._lock:
            if change is not None and change.owner.value != change.new:
                # A view that arrived in between has set the list to its own value.
                with self._quiet():
                    _set_options(change.owner, list(change.owner.options), change.new)
            self._ask((self.request, self._known))

    def _compute_view(self, load: ExplorerLoad) -> tuple[ExplorerView, str]:
        request, known = load
        if isinstance(request, views.ComparisonRequest):
            view = views.comparison_view(request, self._session, known)
            known |= view.figures
            return view, wallet_html.comparison_html(view)
        one = views.wallet_view(request, self._session, known.get(request.user))
        known[request.user] = one.figures
        return one, wallet_html.wallet_html(one)

    def _update_controls(self, view: ExplorerView) -> None:
        with self._quiet():
            is_one = isinstance(view, views.WalletView)
            for control in (self._coin, self._day):
                control.layout.display = None if is_one else "none"
            if isinstance(view, views.ComparisonView):
                _set_options(self._account, wallet_html.account_options(view), None)
                return
            _set_options(self._coin, wallet_html.coin_options(view), view.request.coin)
            _set_options(self._day, wallet_html.day_options(view), view.request.day)


def _first_options(what: str, chosen: str | None) -> list[tuple[str, str | None]]:
    return [(f"all {what}", None), *([(chosen, chosen)] if chosen else [])]


def _set_options(control: Any, options: list[tuple[str, str | None]], chosen: str | None) -> None:
    """Set the options of a list; if they are the same, its scroll position does not change."""
    if chosen not in [value for _, value in options]:
        options = [*options, (f"{chosen}: no rows", chosen)]
    if list(control.options) != options:
        control.options = options
    control.value = chosen


def wallet_explorer(
    address: str | Sequence[str] | None = None,
    *,
    period: str = "30d",
    coin: str | None = None,
    day: str | None = None,
    session: Session | None = None,
) -> WalletExplorer:
    """Explore the PnL, fees and funding of an account over time, by coin and by day.

    Several accounts are compared: in one table, and in one figure of their PnL over time. Then each
    of them can be chosen.

    Each account and period is fetched once: 10 points for each page of fills, funding and ledger, 2
    for the positions on each dex. Choosing an account, a coin or a day then costs no points. What
    the source does not have is left out, and a note says so.

    Parameters
    ----------
    address : str or sequence of str, optional
        The account, or several to compare; by default the first account of a local source.
    period : str, default "30d"
        Length of the period up to now, such as ``"36h"`` or ``"30d"``.
    coin, day : str, optional
        Show one coin, or one day (``"2025-09-28"``, UTC). If several accounts are passed with
        coin or day, the widget starts with the first account.
    session : Session, optional
        Session to fetch with; by default that of `tk.connect` or `tk.local`.

    Returns
    -------
    WalletExplorer
        To show it, write it as the last line of a cell. ``explorer.view`` has the frames of the
        view, ``explorer.code`` is the code for them without a widget.

    Raises
    ------
    ValueError
        If `address` is missing and the source does not name its accounts. The widget shows later
        errors as text.

    Notes
    -----
    Amounts are those of `tk.pnl.attribution`: USD, positive is good for the account.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> explorer = wallet_explorer(session.world["users"][0], session=session)
    >>> explorer.set(coin="BTC").view.earned["coin"].tolist()
    ['BTC']
    >>> several = wallet_explorer(session.world["users"][:3], session=session)
    >>> len(several.view.earned)
    3
    """
    session = current_session(session)
    world: Any = session.world or {}
    if address is None:
        if not world.get("users"):
            raise ValueError("this source does not name its accounts: pass an address")
        address = str(world["users"][0])
    users = [address] if isinstance(address, str) else [str(name) for name in address]
    if not users:
        raise ValueError("address is empty: pass an address, or a list of addresses")
    if coin is not None:
        coin = market_names([market_code(session, coin)], session=session).popitem()[1]
    request = views.WalletRequest(users[0], period, coin, day)
    # Progress bars cannot be shown on a widget's thread.
    return WalletExplorer(request, replace(session, progress=False), users)
