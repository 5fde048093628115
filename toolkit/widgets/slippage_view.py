"""What the slippage explorer shows, computed: what it costs to trade a size at once."""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import pandas as pd

from toolkit import plots, slippage
from toolkit.contract.requests import AMOUNTS
from toolkit.fetch import slippage_history
from toolkit.plots import formats
from toolkit.plots.formats import short_usd
from toolkit.times import to_iso, to_ms
from toolkit.widgets import markup
from toolkit.widgets.asking import Fetch
from toolkit.widgets.markup import Column
from toolkit.widgets.pictures import picture

__all__ = ["PERIODS", "Market", "Side", "SlippageRequest", "SlippageView", "slippage_view"]

Side = Literal["both", "buy", "sell"]

PERIODS: Final = ("1d", "3d", "7d", "30d")

_PAGE: Final = 2000  # samples of a request, the most there may be
_DRAWS: Final = 199  # resamples for an interval: enough to look at


@dataclass(frozen=True, slots=True)
class SlippageRequest:
    """What to show.

    Attributes
    ----------
    coin : str
        The market.
    amount : float
        Notional in USD of the order that is looked at, one of `AMOUNTS`.
    side : {"both", "buy", "sell"}
        Which side of the book.
    period : str
        How far back, such as ``"7d"``.

    Raises
    ------
    ValueError
        If there is no such amount or side.
    """

    coin: str
    amount: float = 10_000
    side: Side = "both"
    period: str = "7d"

    def __post_init__(self) -> None:
        sides = get_args(Side)
        for name, one, known in (("amount", self.amount, AMOUNTS), ("side", self.side, sides)):
            if one not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, not {one}")


@dataclass(frozen=True)
class Market:
    """What is known of a market in a period.

    Attributes
    ----------
    start_ms, end_ms : int
        The period, both ends inclusive.
    curve : DataFrame
        `tk.slippage.curve` of every size.
    fit : SlippageFit
        `tk.slippage.fit` of them.
    """

    start_ms: int
    end_ms: int
    curve: pd.DataFrame
    fit: slippage.SlippageFit


@dataclass(frozen=True)
class SlippageView:
    """What is shown.

    Attributes
    ----------
    request : SlippageRequest
        What it answers.
    market : Market
        What it rests on.
    """

    request: SlippageRequest
    market: Market

    @property
    def curve(self) -> pd.DataFrame:
        """The curve of the sides that were asked for."""
        return _of_side(self.market.curve, self.request.side)

    @property
    def params(self) -> pd.DataFrame:
        """The fitted parameters of the sides that were asked for."""
        return _of_side(self.market.fit.params, self.request.side)

    @property
    def at_size(self) -> pd.DataFrame:
        """The rows of the size that is looked at."""
        return self.curve[self.curve["amount_usd"] == self.request.amount]

    @property
    def headline(self) -> str:
        """Say what the size costs."""
        size = f"{short_usd(self.request.amount)} USD of {self.request.coin}"
        if not len(self.at_size):
            return f"There are no samples of {size} in this period."
        return " ".join(_sentence(row, size, self.request.amount) for row in _rows(self.at_size))

    @property
    def code(self) -> str:
        """The cell that reproduces it."""
        start, end = to_iso(self.market.start_ms), to_iso(self.market.end_ms)
        sizes = ", ".join(f"{amount:_}" for amount in AMOUNTS)
        side = self.request.side
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
        drawn = self.curve[self.curve["n"] > 0]
        return "".join(
            [
                markup.note(self.headline, "tk-head"),
                picture(plots.slippage_curve, drawn) if len(drawn) else "",
                f'<div class="tk-side">{self._sizes()}{self._fitted()}</div>',
            ]
        )

    def _sizes(self) -> str:
        chosen = self.curve["amount_usd"] == self.request.amount
        return markup.table(
            f"{self.request.coin}, by size", self.curve, _COLUMNS, marked=chosen, empty="no samples"
        )

    def _fitted(self) -> str:
        rows = self.params.assign(meaning=self.params["name"].map(_MEANINGS))
        caption = "Fitted: half spread + a * (size / 100k USD)^k"
        return (
            "<div>"
            + markup.table(caption, rows, _PARAMS, empty="too little to fit")
            + (
                markup.note("Intervals of 95 %, from drawing days again; a dash: cannot be told.")
                + "</div>"
            )
        )


def slippage_view(
    request: SlippageRequest, fetch: Fetch, now_ms: int, market: Market | None = None
) -> SlippageView:
    """Compute a view.

    Parameters
    ----------
    request : SlippageRequest
        What to show.
    fetch : Fetch
        How to ask.
    now_ms : int
        The present, in Unix milliseconds.
    market : Market, optional
        What was fetched for the same coin and period: nothing is asked then.

    Raises
    ------
    ToolkitError
        If it cannot be had.
    """
    return SlippageView(request, market or market_of(request, fetch, now_ms))


def market_of(request: SlippageRequest, fetch: Fetch, now_ms: int) -> Market:
    """Fetch what a view rests on, and fit it."""
    start = to_ms(request.period, now_ms=now_ms)
    frames = [
        fetch(slippage_history, request.coin, amount, start, now_ms, page_size=_PAGE)
        for amount in AMOUNTS
    ]
    samples = pd.concat(frames, ignore_index=True)
    samples.attrs = frames[0].attrs
    fit = slippage.fit(samples, draws=_DRAWS)
    return Market(start, now_ms, slippage.curve(samples), fit)


def _of_side(frame: pd.DataFrame, side: Side) -> pd.DataFrame:
    return frame if side == "both" else frame[frame["side"] == side]


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


def _sentence(row: Any, size: str, amount: float) -> str:
    doing = "Buying" if row.side == "buy" else "Selling"
    thin_share = formats.percent_share(row.missing_share)
    thin = f" The book was too thin in {thin_share} of {row.n:,} samples." if row.missing else ""
    if pd.isna(row.q50):
        return f"{doing} {size}: in most samples the book held too little.{thin}"
    cost = f"{formats.basis_points(row.q50)} bps in the median, {amount * row.q50 / 1e4:,.2f} USD"
    dear = "" if pd.isna(row.q90) else f"; in one of ten samples more than {row.q90:,.2f} bps"
    return f"{doing} {size} at once costs {cost}{dear}.{thin}"


_MEANINGS: Final = {
    "half_spread": "half spread, bps",
    "a": "a, cost of 100k USD beyond it, bps",
    "k": "k, how fast cost grows with size",
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
    Column("amount_usd", "size", short_usd, "notional of the order, USD"),
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
