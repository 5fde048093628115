"""The slippage explorer: what trades of each size cost, from samples of the order book."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

import ipywidgets as ipw
import pandas as pd

from toolkit import plots, slippage
from toolkit.client import Session, current_session
from toolkit.contract.requests import AMOUNTS
from toolkit.fetch.market import slippage_history
from toolkit.fetch.markets import market_code
from toolkit.plots import formats
from toolkit.plots.tables import Column
from toolkit.times import to_iso, to_ms
from toolkit.widgets import view_html
from toolkit.widgets.panel import Explorer, list_choices, make_control
from toolkit.widgets.svg import draw_svg

Side = Literal["both", "buy", "sell"]

PERIODS: Final = ("1d", "3d", "7d", "30d")

_PAGE: Final = 2000  # samples of a page, the maximum
_DRAWS: Final = 199  # bootstrap resamples: enough for a view

bps: Final = formats.basis_points
_MEANINGS: Final = {
    "half_spread": "half spread, bps",
    "a": "a, additional cost of 100k USD, bps",
    "k": "k, exponent of the size",
    "sigma": "sigma, scatter of the logarithm",
}
_PARAMS: Final = (
    Column("meaning", "parameter", number=False),
    Column("side", "side", number=False),
    Column("estimate", "estimate", "{:.3g}".format),
    Column("low", "from", "{:.3g}".format, "lower end of the interval"),
    Column("high", "to", "{:.3g}".format, "upper end of the interval"),
)
_COLUMNS: Final = (
    Column("amount_usd", "size", formats.short_usd, "notional of the order, USD"),
    Column("side", "side", meaning="buy: takes asks; sell: takes bids", number=False),
    Column("q50", "median", bps, "median slippage against mid, basis points"),
    Column("q10", "10 %", bps, "a tenth of the samples cost at most this, basis points"),
    Column("q90", "90 %", bps, "nine tenths cost at most this, basis points"),
    Column("half_spread_bps", "half spread", bps, "median half spread, basis points"),
    Column("missing_share", "too thin", formats.percent_share, "share of samples without a cost"),
    Column("n", "samples", formats.whole_number, "samples, one every 15 minutes"),
)


@dataclass(frozen=True, slots=True)
class SlippageRequest:
    """The request of the slippage explorer.

    - ``coin``: the market
    - ``amount``: notional of the order in USD, one of `AMOUNTS`
    - ``side`` ({"both", "buy", "sell"}): side of the order
    - ``period``: length of the period, such as ``"7d"``

    Raise ValueError if the amount or the side is not known.
    """

    coin: str
    amount: float = 10_000
    side: Side = "both"
    period: str = "7d"

    def __post_init__(self) -> None:
        sides = get_args(Side)
        for name, value, known in (("amount", self.amount, AMOUNTS), ("side", self.side, sides)):
            if value not in known:
                raise ValueError(
                    f"unknown {name} {value!r}; choose one of {', '.join(map(str, known))}"
                )


@dataclass(frozen=True)
class SlippageView:
    """The view of the slippage explorer.

    - ``request``: the request
    - ``start_ms``, ``end_ms``: the period, both ends inclusive
    - ``all_curves``: `tk.slippage.curve` of every size and side
    - ``fit``: `tk.slippage.fit` of the same samples
    """

    request: SlippageRequest
    start_ms: int
    end_ms: int
    all_curves: pd.DataFrame
    fit: slippage.SlippageFit

    @property
    def curve(self) -> pd.DataFrame:
        """The curve of the requested sides."""
        return self._keep_side(self.all_curves)

    @property
    def params(self) -> pd.DataFrame:
        """The fitted parameters of the requested sides."""
        return self._keep_side(self.fit.params)

    def _keep_side(self, rows: pd.DataFrame) -> pd.DataFrame:
        side = self.request.side
        return rows if side == "both" else rows[rows["side"] == side]

    @property
    def at_size(self) -> pd.DataFrame:
        """The rows of the requested size."""
        return self.curve[self.curve["amount_usd"] == self.request.amount]

    @property
    def headline(self) -> str:
        """Return the cost of the size in a sentence."""
        amount, told = self.request.amount, []
        size = f"{formats.short_usd(amount)} USD of {self.request.coin}"
        row: Any
        for row in self.at_size.itertuples():
            verb = "Buying" if row.side == "buy" else "Selling"
            if pd.isna(row.q50):
                told.append(f"{verb} {size}: in most samples the book was too thin.")
            else:
                bps, usd = formats.basis_points(row.q50), amount * row.q50 / 1e4
                high = f"; in one of ten samples more than {row.q90:,.2f} bps"
                told.append(
                    f"{verb} {size} at once costs {bps} bps in the median, {usd:,.2f} USD"
                    f"{'' if pd.isna(row.q90) else high}."
                )
            if row.missing:
                share = formats.percent_share(row.missing_share)
                told.append(f"The book was too thin in {share} of {row.n:,} samples.")
        return " ".join(told) or f"There are no samples of {size} in this period."

    @property
    def code(self) -> str:
        """The code of the view."""
        start, end = to_iso(self.start_ms), to_iso(self.end_ms)
        sizes, side = ", ".join(f"{amount:_}" for amount in AMOUNTS), self.request.side
        chosen = f'curve, params = (f[f["side"] == {side!r}] for f in (curve, params))\n'
        return (
            "import toolkit as tk\n\n"
            f"coin, start, end = {self.request.coin!r}, {start!r}, {end!r}\n"
            f"sizes = [{sizes}]\n"
            "frames = [tk.slippage_history(coin, size, start, end, page_size=2000) "
            "for size in sizes]\n"
            "samples = tk.concat(frames)\n"
            f"curve = tk.slippage.curve(samples)\n"
            f"params = tk.slippage.fit(samples, draws={_DRAWS}).params\n"
            f"{'' if side == 'both' else chosen}"
            "tk.plots.slippage_curve(curve)"
        )

    @property
    def html(self) -> str:
        """Headline, figure and tables."""
        curve, drawn = self.curve, self.curve[self.curve["n"] > 0]
        chosen = curve["amount_usd"] == self.request.amount
        caption = f"{self.request.coin}, by size"
        sizes = view_html.table(caption, curve, _COLUMNS, marked=chosen, empty="no samples")
        rows = self.params.assign(meaning=self.params["name"].map(_MEANINGS))
        caption = "Fitted: half spread + a * (size / 100k USD)^k"
        params = view_html.table(caption, rows, _PARAMS, empty="too few samples for a fit")
        note = view_html.note("Intervals of 95 % from a bootstrap of days; a dash means not known.")
        figure = draw_svg(plots.slippage_curve, drawn) if len(drawn) else ""
        head = view_html.note(self.headline, "tk-head")
        return f'{head}{figure}<div class="tk-side">{sizes}<div>{params}{note}</div></div>'


def slippage_view(
    request: SlippageRequest,
    fetch: Callable[..., pd.DataFrame],
    now_ms: int,
    known: SlippageView | None = None,
) -> SlippageView:
    """Return the view of a request.

    - ``request``: the request
    - ``fetch``: fetches the samples of all sizes
    - ``now_ms``: the present, in Unix milliseconds
    - ``known``: a view of the same coin and period; if it is passed, nothing is fetched

    Raise ToolkitError if the samples cannot be fetched.
    """
    if known is not None:
        return replace(known, request=request)
    start = to_ms(request.period, now_ms=now_ms)
    frames = [fetch(request.coin, amount, start, now_ms, page_size=_PAGE) for amount in AMOUNTS]
    samples = pd.concat(frames, ignore_index=True)
    samples.attrs = frames[0].attrs
    fit = slippage.fit(samples, draws=_DRAWS)
    return SlippageView(request, start, now_ms, slippage.curve(samples), fit)


class SlippageChoice(TypedDict, total=False):
    """What `SlippageExplorer.set` chooses."""

    coin: str
    amount: float
    side: Side
    period: str


class SlippageExplorer(Explorer[SlippageView]):
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
        fetch: Callable[..., pd.DataFrame],
        now_ms: int,
    ) -> None:
        self._fetch, self._now_ms = fetch, now_ms
        self._markets: dict[tuple[str, str], SlippageView] = {}
        choose = partial(make_control, ipw.Dropdown)
        self._coin = choose("Coin", "Market", options=coins, value=request.coin)
        sizes = [(formats.short_usd(size), float(size)) for size in AMOUNTS]
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
    fetch = partial(slippage_history, session=session)
    return SlippageExplorer(request, list_choices(session, coins, coin), fetch, session.now_ms())
