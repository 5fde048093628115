"""The view of the slippage explorer: the cost of trading a size at once."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, get_args

import pandas as pd

from toolkit import plots, slippage
from toolkit.contract.requests import AMOUNTS
from toolkit.fetch.market import slippage_history
from toolkit.plots import formats
from toolkit.plots.tables import Column
from toolkit.times import to_iso, to_ms
from toolkit.widgets import view_html
from toolkit.widgets.fetcher import Fetcher
from toolkit.widgets.svg import draw_svg

Side = Literal["both", "buy", "sell"]

PERIODS: Final = ("1d", "3d", "7d", "30d")

_PAGE: Final = 2000  # samples of a page, the maximum
_DRAWS: Final = 199  # bootstrap resamples: enough for a view


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
    request: SlippageRequest, fetch: Fetcher, now_ms: int, known: SlippageView | None = None
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
    ask = partial(fetch, slippage_history, request.coin, page_size=_PAGE)
    frames = [ask(amount, start, now_ms) for amount in AMOUNTS]
    samples = pd.concat(frames, ignore_index=True)
    samples.attrs = frames[0].attrs
    fit = slippage.fit(samples, draws=_DRAWS)
    return SlippageView(request, start, now_ms, slippage.curve(samples), fit)


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
    Column("q50", "median", formats.basis_points, "median slippage against mid, basis points"),
    Column(
        "q10",
        "10 %",
        formats.basis_points,
        "a tenth of the samples cost at most this, basis points",
    ),
    Column("q90", "90 %", formats.basis_points, "nine tenths cost at most this, basis points"),
    Column(
        "half_spread_bps", "half spread", formats.basis_points, "median half spread, basis points"
    ),
    Column("missing_share", "too thin", formats.percent_share, "share of samples without a cost"),
    Column("n", "samples", formats.whole_number, "samples, one every 15 minutes"),
)
