"""Slippage: cost by order size, fitted curves, and capacity."""

from toolkit.analysis.market.slippage import asymmetry, curve, heatmap
from toolkit.analysis.market.slippage_cost import capacity, cost
from toolkit.analysis.market.slippage_fit import SlippageFit, fit
from toolkit.public_path import set_public_path

__all__ = ["SlippageFit", "asymmetry", "capacity", "cost", "curve", "fit", "heatmap"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
