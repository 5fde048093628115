"""Slippage: cost by order size, fitted curves, and capacity."""

from toolkit.analysis.market.slippage import (
    SlippageFit,
    asymmetry,
    capacity,
    cost,
    curve,
    fit,
    heatmap,
)
from toolkit.public_path import set_public_path

__all__ = ["SlippageFit", "asymmetry", "capacity", "cost", "curve", "fit", "heatmap"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
