"""The slippage explorer: the cost of a size in a market."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict, Unpack, get_args

import ipywidgets as ipw

from toolkit.client import Session, current_session
from toolkit.contract.requests import AMOUNTS
from toolkit.fetch.markets import market_code
from toolkit.plots.formats import short_usd
from toolkit.widgets.fetcher import Fetcher, bind_session, list_choices
from toolkit.widgets.panel import Explorer, make_control
from toolkit.widgets.slippage_view import (
    PERIODS,
    Side,
    SlippageRequest,
    SlippageView,
    slippage_view,
)


class SlippageChoice(TypedDict, total=False):
    """What `SlippageExplorer.set` chooses."""

    coin: str
    amount: float
    side: Side
    period: str


class SlippageExplorer(Explorer[SlippageRequest, SlippageView]):
    """A widget that shows the cost of trading a size; returned by `slippage_explorer`.

    Attributes
    ----------
    view : SlippageView or None
        The view: `view.curve` and `view.params` are frames. None until the first view.
    error : Exception or None
        Why the last request is not shown.
    widget : ipywidgets.VBox
        The widget, to place it next to others.
    """

    def __init__(
        self,
        request: SlippageRequest,
        coins: Sequence[str],
        fetch: Fetcher,
        clock: Callable[[], int],
    ) -> None:
        self._fetch, self._now_ms = fetch, clock()
        self._markets: dict[tuple[str, str], SlippageView] = {}
        choose = partial(make_control, ipw.Dropdown)
        self._coin = choose("Coin", "Market", options=coins, value=request.coin)
        sizes = [(short_usd(size), float(size)) for size in AMOUNTS]
        amount, period = float(request.amount), request.period
        self._amount = choose("Size, USD", "Notional of the order", options=sizes, value=amount)
        sides = get_args(Side)
        self._side = choose("Side", "Side of the order", options=sides, value=request.side)
        periods = [*dict.fromkeys([*PERIODS, period])]
        self._period = choose("Period", "Period of the samples", options=periods, value=period)
        controls = (self._coin, self._amount, self._side, self._period)
        super().__init__(controls, self._compute_view)
        for control in controls:
            control.observe(self._on_change, "value")
        self._on_change()
        self.settle()

    @property
    def request(self) -> SlippageRequest:
        """The request of the controls."""
        return SlippageRequest(
            self._coin.value, self._amount.value, self._side.value, self._period.value
        )

    def set(self, **parameters: Unpack[SlippageChoice]) -> "SlippageExplorer":
        """Set `coin`, `amount`, `side` or `period`, and wait for the view."""
        request = replace(self.request, **parameters)
        with self._quiet():
            for name in parameters:
                getattr(self, f"_{name}").value = getattr(request, name)
        self._on_change()
        self.settle()
        return self

    def __repr__(self) -> str:
        request = self.request
        return (
            f"tk.widgets.slippage_explorer({request.coin!r}, {request.amount:_.0f}, "
            f"side={request.side!r}, period={request.period!r})"
        )

    def _on_change(self, _: object = None) -> None:
        if not self._is_quiet:
            self._ask(self.request)

    def _compute_view(self, request: SlippageRequest) -> tuple[SlippageView, str]:
        key = (request.coin, request.period)
        view = slippage_view(request, self._fetch, self._now_ms, self._markets.get(key))
        self._markets[key] = view
        return view, view.html


def slippage_explorer(
    coin: str = "BTC",
    amount: float = 10_000,
    *,
    side: Side = "both",
    period: str = "7d",
    coins: str | Sequence[str] | None = None,
    session: Session | None = None,
) -> SlippageExplorer:
    """Explore the cost of trading a size in one order: curve, table, fitted parameters.

    It costs 10 points for each of nine sizes and each page of 2,000 samples (20 days), once for
    each coin and period, and 2 points for the list of coins.

    Parameters
    ----------
    coin : str, default "BTC"
        The market: without a prefix on the native dex, ``<dex>:<symbol>`` on a builder-deployed
        one.
    amount : float, default 10_000
        Notional in USD: 1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5 or 1e6.
    side : {"both", "buy", "sell"}, default "both"
        Side of the order.
    period : str, default "7d"
        Length of the period up to now, such as ``"36h"`` or ``"7d"``.
    coins : str or sequence of str, optional
        Markets to choose from; by default the perps of the native dex, and of a local source also
        those of its other dexes.
    session : Session, optional
        Session to fetch with; by default that of `tk.connect` or `tk.local`.

    Returns
    -------
    SlippageExplorer
        To show it, write it as the last line of a cell. ``explorer.view.curve`` and
        ``explorer.view.params`` are the frames of the view, ``explorer.code`` is the code for them
        without a widget.

    Raises
    ------
    ToolkitError
        If the list of coins cannot be fetched. The widget shows later errors as text.
    ValueError
        If the amount or the side is not known.

    Notes
    -----
    Quantiles are those of `tk.slippage.curve`, parameters those of `tk.slippage.fit`: if the book
    is too thin, the cost counts as infinite. Intervals need more than a day of samples.

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
    # Progress bars cannot be shown on a widget's thread.
    session = replace(current_session(session), progress=False)
    coin = market_code(session, coin)
    request = SlippageRequest(coin, float(amount), side, period)
    choices = [*list_choices(session, coins, coin)]
    return SlippageExplorer(request, choices, bind_session(session), session.now_ms)
