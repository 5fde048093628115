"""Figures of results: one function for each, drawn with matplotlib, without pyplot.

Every function takes a result of an analysis helper and gives a `matplotlib.figure.Figure`. It
draws for light or dark surroundings, marks simulated data, and carries its meaning in words:
`alt`.
"""

from toolkit.plots.cumulative import cumulative_pnl
from toolkit.plots.funding import funding_by_coin, funding_over_time
from toolkit.plots.slippage import slippage_curve
from toolkit.plots.style import alt
from toolkit.plots.waterfall import waterfall

__all__ = [
    "alt",
    "cumulative_pnl",
    "funding_by_coin",
    "funding_over_time",
    "slippage_curve",
    "waterfall",
]


def __dir__() -> list[str]:
    return list(__all__)
