"""Order book depth: profiles by distance, imbalance, and recovery after a drop."""

from toolkit.analysis.market.depth import consistency, imbalance, profile
from toolkit.analysis.market.resilience import Resilience, resilience
from toolkit.public_path import set_public_path

__all__ = ["Resilience", "consistency", "imbalance", "profile", "resilience"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
