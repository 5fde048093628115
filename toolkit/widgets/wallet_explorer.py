"""The wallet explorer: an address -> where its money came from and went, by coin and day."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.client import Session, current_session
from toolkit.contract.dexes import strip_native_dex
from toolkit.widgets.asking import Fetch, in_words, quiet, through
from toolkit.widgets.newest import Newest
from toolkit.widgets.panel import Panel, button, choice, listing, text
from toolkit.widgets.wallet_page import coin_options, day_options, page
from toolkit.widgets.wallet_view import PERIODS, Account, WalletRequest, WalletView, wallet_view

__all__ = ["WalletExplorer", "wallet_explorer"]


class WalletExplorer:
    """A widget that takes an account apart; made by `wallet_explorer`.

    Attributes
    ----------
    view : WalletView or None
        What is shown, as frames: `earned`, `coins`, `days`, `hours`, `fills`, `positions`. None
        until something could be shown.
    error : Exception or None
        Why what was asked last is not shown.
    widget : ipywidgets.VBox
        To lay it out beside others.
    """

    def __init__(self, request: WalletRequest, fetch: Fetch, clock: Callable[[], int]) -> None:
        self._fetch, self._clock = fetch, clock
        self._builders = request.builders
        self._filling: int | None = None
        self.view: WalletView | None = None
        self.error: Exception | None = None
        periods = list(dict.fromkeys([*PERIODS, request.period]))
        self._user = text("Address", request.user, "Address of the account; Enter asks for it")
        self._period = choice("Period", periods, request.period, "How far back")
        self._refresh = button("Refresh", "Ask the service again")
        self._coin = listing("Coin", _all("coins", request.coin), request.coin, "One coin", "22em")
        self._day = listing("Day", _all("days", request.day), request.day, "One day, UTC", "22em")
        self._panel = Panel([self._user, self._period, self._refresh, self._coin, self._day])
        self.widget = self._panel.widget
        self._newest: Newest[tuple[WalletRequest, int]] = Newest(self._answer)
        self._asked = 0  # an account is fetched once for each of these
        self._known: tuple[int, Account] | None = None
        for one in (self._user, self._period):
            one.observe(self._other_account, "value")
        for one in (self._coin, self._day):
            one.observe(self._changed, "value")
        self._refresh.on_click(self._again)
        self._changed()
        self.settle()

    @property
    def request(self) -> WalletRequest:
        """What the controls ask for."""
        return WalletRequest(
            self._user.value.strip(),
            self._period.value,
            self._coin.value,
            self._day.value,
            self._builders,
        )

    @property
    def code(self) -> str:
        """The cell that reproduces what is shown, without a widget."""
        return "" if self.view is None else self.view.code

    def set(
        self, *, user: str | None = None, period: str | None = None, **chosen: str | None
    ) -> "WalletExplorer":
        """Ask for something else, and wait for it: `user`, `period`, `coin`, `day`.

        Another account or period begins with all of its coins and days.
        """
        for control, value in ((self._user, user), (self._period, period)):
            if value is not None:
                control.value = value
        self.settle()
        for name, value in chosen.items():
            {"coin": self._coin, "day": self._day}[name].value = value
        self.settle()
        return self

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until what was asked last is shown; tells whether it is."""
        return self._newest.settle(seconds)

    def close(self) -> None:
        """Remove it from the notebook."""
        self._newest.drop()
        self._panel.close()

    def __enter__(self) -> "WalletExplorer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        asked = self.request
        named = [f"period={asked.period!r}"]
        named += [
            f"{name}={getattr(asked, name)!r}" for name in ("coin", "day") if getattr(asked, name)
        ]
        return f"tk.widgets.wallet_explorer({asked.user!r}, {', '.join(named)})"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        return self._panel.bundle(repr(self), **options)

    def _other_account(self, _: object = None) -> None:
        with self._fills_lists():
            self._coin.value = self._day.value = None
        self._again()

    def _again(self, _: object = None) -> None:
        with self._panel.lock:
            self._asked += 1
        self._changed()

    def _changed(self, _: object = None) -> None:
        if self._filling == threading.get_ident():
            return
        with self._panel.lock:
            self._panel.say("asking ...")
            self._newest.ask((self.request, self._asked))

    def _answer(self, asked: tuple[WalletRequest, int], wanted: Callable[[], bool]) -> None:
        request, number = asked
        try:
            view = wallet_view(request, self._fetch, self._clock(), self._fetched(number))
            html = page(view)
        except Exception as error:  # whatever it is must be seen: nobody reads a thread's traceback
            self._fail(error, wanted)
            return
        self._known = number, view.account
        with self._panel.lock:
            if wanted():
                self.view, self.error = view, None
                self._panel.show(html, view.code)
                self._panel.say("")
                with self._fills_lists():
                    _refill(self._coin, coin_options(view), view.request.coin)
                    _refill(self._day, day_options(view), view.request.day)

    def _fetched(self, number: int) -> Account | None:
        return self._known[1] if self._known is not None and self._known[0] == number else None

    def _fail(self, error: Exception, wanted: Callable[[], bool]) -> None:
        with self._panel.lock:
            if wanted():
                self.error = error
                still = "" if self.view is None else "What is shown below was asked before."
                self._panel.say(still, in_words(error))

    @contextmanager
    def _fills_lists(self) -> Iterator[None]:
        """Change the lists without asking again: their callbacks come on this same thread."""
        with self._panel.lock:
            self._filling = threading.get_ident()
            try:
                yield
            finally:
                self._filling = None


def _all(what: str, chosen: str | None) -> list[tuple[str, str | None]]:
    return [(f"all {what}", None), *([(chosen, chosen)] if chosen else [])]


def _refill(control: Any, options: list[tuple[str, str | None]], chosen: str | None) -> None:
    """Give a list its lines; where it has them already the reader's place in it is kept."""
    if chosen not in [value for _, value in options]:
        options = [*options, (f"{chosen}: nothing", chosen)]
    if list(control.options) != options:
        control.options = options
    control.value = chosen


def wallet_explorer(
    address: str | None = None,
    *,
    period: str = "30d",
    coin: str | None = None,
    day: str | None = None,
    builders: Sequence[str] | None = None,
    session: Session | None = None,
) -> WalletExplorer:
    """Explore an account: where its money came from and went, over time, by coin and by day.

    Asks once for each account and period: 10 points for each page of fills and of the ledger, 100
    for the positions, 100 for each page of each builder's funding rows. Coins and days of it then
    cost nothing.

    Parameters
    ----------
    address : str, optional
        The account; the first one of a local source when not given.
    period : str, default "30d"
        How far back from now, such as ``"36h"`` or ``"30d"``.
    coin, day : str, optional
        Show one coin, or one day (``"2025-09-28"``, UTC).
    builders : sequence of str, optional
        Builders that the account had approved: funding rows can be had only through them. When
        not given, those through which its latest fills were routed, or all of a local source. An
        empty list asks for no funding.
    session : Session, optional
        Where to ask; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    WalletExplorer
        Displayed at the end of a cell. ``explorer.view`` holds the frames that are shown,
        ``explorer.code`` is the cell that makes them without a widget.

    Raises
    ------
    ValueError
        If no account is named and the source does not say which it has. Later failures are shown
        in words.

    Notes
    -----
    Money as in `tk.pnl.attribution`: USD, positive is good for the account, in exact decimals.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> explorer = wallet_explorer(session.world["users"][0], session=session)
    >>> explorer.set(coin="BTC").view.earned["coin"].tolist()
    ['BTC']
    """
    session = current_session(session)
    world: Any = session.world or {}
    if address is None:
        if not world.get("users"):
            raise ValueError("give an address: this source does not say which accounts it has")
        address = str(world["users"][0])
    if builders is None:
        builders = world.get("builders")
    known = None if builders is None else tuple(builders)
    coin = None if coin is None else strip_native_dex(coin)
    request = WalletRequest(address, period, coin, day, known)
    return WalletExplorer(request, through(quiet(session)), session.now_ms)
