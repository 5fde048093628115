"""The slippage explorer: coin, size, side, period -> curve, table, fitted parameters."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from toolkit.client import Session, current_session
from toolkit.contract.dexes import strip_native_dex
from toolkit.contract.requests import AMOUNTS
from toolkit.plots.formats import short_usd
from toolkit.widgets.asking import Fetch, coins_of, in_words, listed, quiet, through
from toolkit.widgets.newest import Newest
from toolkit.widgets.panel import Panel, choice
from toolkit.widgets.slippage_view import (
    PERIODS,
    Market,
    Side,
    SlippageRequest,
    SlippageView,
    slippage_view,
)

__all__ = ["SlippageExplorer", "slippage_explorer"]


class SlippageExplorer:
    """A widget that shows what it costs to trade a size; made by `slippage_explorer`.

    Attributes
    ----------
    view : SlippageView or None
        What is shown: `view.curve` and `view.params` are frames. None until something could be
        shown.
    error : Exception or None
        Why what was asked last is not shown.
    widget : ipywidgets.VBox
        To lay it out beside others.
    """

    def __init__(
        self, request: SlippageRequest, coins: Sequence[str], fetch: Fetch, clock: Callable[[], int]
    ) -> None:
        self._fetch, self._now_ms = fetch, clock()
        self._markets: dict[tuple[str, str], Market] = {}
        self._held = False
        self.view: SlippageView | None = None
        self.error: Exception | None = None
        self._coin = choice("Coin", coins, request.coin, "Market")
        self._amount = choice(
            "Size, USD",
            [(short_usd(size), float(size)) for size in AMOUNTS],
            float(request.amount),
            "Notional of the order",
        )
        self._side = choice("Side", ["both", "buy", "sell"], request.side, "Side of the order")
        periods = list(dict.fromkeys([*PERIODS, request.period]))
        self._period = choice("Period", periods, request.period, "How far back samples reach")
        self._controls = (self._coin, self._amount, self._side, self._period)
        self._panel = Panel(self._controls)
        self.widget = self._panel.widget
        self._newest: Newest[SlippageRequest] = Newest(self._answer)
        for one in self._controls:
            one.observe(self._changed, "value")
        self._changed()
        self.settle()

    @property
    def request(self) -> SlippageRequest:
        """What the controls ask for."""
        return SlippageRequest(
            self._coin.value, self._amount.value, self._side.value, self._period.value
        )

    @property
    def code(self) -> str:
        """The cell that reproduces what is shown, without a widget."""
        return "" if self.view is None else self.view.code

    def set(self, **parameters: Any) -> "SlippageExplorer":
        """Ask for something else, and wait for it: `coin`, `amount`, `side`, `period`."""
        wanted = replace(self.request, **parameters)
        with self._panel.lock:
            self._held = True
            try:
                for name in parameters:
                    getattr(self, f"_{name}").value = getattr(wanted, name)
            finally:
                self._held = False
        self._changed()
        self.settle()
        return self

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until what was asked last is shown; tells whether it is."""
        return self._newest.settle(seconds)

    def close(self) -> None:
        """Remove it from the notebook."""
        self._newest.drop()
        self._panel.close()

    def __enter__(self) -> "SlippageExplorer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        asked = self.request
        return (
            f"tk.widgets.slippage_explorer({asked.coin!r}, {asked.amount:_.0f}, "
            f"side={asked.side!r}, period={asked.period!r})"
        )

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        return self._panel.bundle(repr(self), **options)

    def _changed(self, _: object = None) -> None:
        if self._held:
            return
        self._panel.say("asking ...")
        self._newest.ask(self.request)

    def _answer(self, request: SlippageRequest, wanted: Callable[[], bool]) -> None:
        try:
            known = self._markets.get((request.coin, request.period))
            view = slippage_view(request, self._fetch, self._now_ms, known)
            html = view.html
        except Exception as error:  # whatever it is must be seen: nobody reads a thread's traceback
            self._fail(error, wanted)
            return
        self._markets[request.coin, request.period] = view.market
        with self._panel.lock:
            if wanted():
                self.view, self.error = view, None
                self._panel.show(html, view.code)
                self._panel.say("")

    def _fail(self, error: Exception, wanted: Callable[[], bool]) -> None:
        with self._panel.lock:
            if wanted():
                self.error = error
                still = "" if self.view is None else "What is shown below was asked before."
                self._panel.say(still, in_words(error))


def slippage_explorer(
    coin: str = "BTC",
    amount: float = 10_000,
    *,
    side: Side = "both",
    period: str = "7d",
    coins: str | Sequence[str] | None = None,
    session: Session | None = None,
) -> SlippageExplorer:
    """Explore what it costs to trade a size at once: curve, table, fitted parameters.

    Costs 10 points for each of nine sizes and each page of 2,000 samples (20 days), once for
    each coin and period; 2 more for the list of coins.

    Parameters
    ----------
    coin : str, default "BTC"
        The market: plain on the native dex, ``<dex>:<symbol>`` on a builder-deployed one.
    amount : float, default 10_000
        Notional in USD: 1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5 or 1e6.
    side : {"both", "buy", "sell"}, default "both"
        Side of the order.
    period : str, default "7d"
        How far back from now, such as ``"36h"`` or ``"7d"``.
    coins : str or sequence of str, optional
        The markets to choose from; the perps of the native dex when not given, and those of the
        other dexes of a local source.
    session : Session, optional
        Where to ask; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    SlippageExplorer
        Displayed at the end of a cell. ``explorer.view.curve`` and ``explorer.view.params`` are the
        frames that are shown, ``explorer.code`` the cell that makes them without a widget.

    Raises
    ------
    ToolkitError
        If the list of coins cannot be had. Later failures are shown in words.
    ValueError
        If there is no such amount or side.

    Notes
    -----
    Quantiles as in `tk.slippage.curve`, parameters as in `tk.slippage.fit`: too thin a book
    counts as infinitely dear. Intervals need more than a day.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> explorer = slippage_explorer("BTC", period="1d", session=session)
    >>> explorer.view.curve["side"].unique().tolist()
    ['buy', 'sell']
    >>> explorer.set(side="buy")
    tk.widgets.slippage_explorer('BTC', 10_000, side='buy', period='1d')
    """
    session = current_session(session)
    fetch = through(quiet(session))
    coin = strip_native_dex(coin)
    names = coins_of(session, fetch) if coins is None else listed(coins)
    request = SlippageRequest(coin, float(amount), side, period)
    named = list(dict.fromkeys([*names, coin]))
    return SlippageExplorer(request, named, fetch, session.now_ms)
