"""Order book depth: profiles by distance, imbalance, and recovery after a drop."""

from toolkit.analysis.market.depth import consistency, imbalance, profile
from toolkit.analysis.market.resilience import Resilience, resilience
from toolkit.public_names import publish_names

__all__ = ["Resilience", "consistency", "imbalance", "profile", "resilience"]

publish_names(__name__)
