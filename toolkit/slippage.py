"""Slippage: cost by order size, fitted curves, and capacity."""

from toolkit.analysis.market.slippage import asymmetry, curve, heatmap
from toolkit.analysis.market.slippage_cost import capacity, cost
from toolkit.analysis.market.slippage_fit import SlippageFit, fit
from toolkit.public_names import publish_names

__all__ = ["SlippageFit", "asymmetry", "capacity", "cost", "curve", "fit", "heatmap"]

publish_names(__name__)
